"""Methods without training, scored as runs of their own: what a trained encoder has to stand
beside."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import evaluate, paths
from lib.data import files
from lib.encoder import Encoder
from lib.runs import inputs
from lib.runs.folder import Run
from lib.runs.job import of_profile
from lib.runs.profiles import Profile
from lib.runs.scoring import test_scores
from lib.training.recipe import recipe

OF_AN_ENCODER = ("word_vectors", "sif")
METHODS = ("bag_of_words", "tfidf", *OF_AN_ENCODER)


@dataclass(frozen=True)
class Baseline:
    """A method without training, on the text and the sets of a profile.

    Attributes:
        notebook: folder of the run under the outputs.
        method: `bag_of_words` (word counts), `tfidf` (scikit-learn's, idf from the profile's
            corpus), `word_vectors` (mean of an encoder's input embeddings) or `sif` (the same,
            weighted by a/(a + p(w)) and without the common component; p from the corpus).
        model: the encoder whose input embeddings the last two take; None: the profile's.

    Raises:
        ValueError: unknown method, or a model for one that takes none.

    Source: SIF is Arora et al. 2017.
    """

    notebook: str
    method: str
    profile: Profile
    data_dir: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            known = ", ".join(METHODS)
            raise ValueError(
                f"unknown method without training {self.method!r}: choose one of {known}"
            )
        if self.model and self.method not in OF_AN_ENCODER:
            raise ValueError(f"{self.method} takes no model: it needs no encoder")

    def with_text_at_hand(self) -> "Baseline":
        """The method on the training text that is here (`inputs.with_text_at_hand`)."""
        return replace(self, profile=inputs.with_text_at_hand(self.profile, self.data_dir))

    @cached_property
    def sentences(self) -> list[str]:
        """The text whose words are counted."""
        return inputs.sentences_of(self.profile, self.data_dir)

    @property
    def folder(self) -> str:
        """The encoder whose input embeddings are taken, a folder or a Hub id; empty for none."""
        return inputs.model_path(self._encoder(self.model)) if self.method in OF_AN_ENCODER else ""

    @property
    def vectors(self) -> str | None:
        """The name by which a run says whose input embeddings it took; None where it is the
        profile's encoder."""
        if self.model is None:
            return None
        usual, other = (_same_for_all(self._encoder(name)) for name in (None, self.model))
        return None if other == usual else other

    @property
    def inputs(self) -> list[inputs.Input]:
        """What it reads."""
        found = inputs.graded_inputs(self.profile, self.data_dir)
        found.append(inputs.corpus_input(self.profile, self.data_dir))
        return [*found, inputs.model_input(self.folder)] if self.folder else found

    def record(self) -> Run:
        """Its run, finished or not."""
        hashes = {"model": ""}
        for one in self.inputs:
            hashes |= one.hashes()
        params = of_profile(self.profile, len(self.sentences))
        if self.vectors:
            params["vectors"] = self.vectors
        return Run(self.notebook, f"{self.profile.name}_{self.method}", 0, params, hashes)

    def run(self) -> Run:
        """Its run, scored if it is not finished."""
        record = self.record()
        with files.locked(record.folder):
            if record.metrics is None:
                record.start("cpu")
                record.finish(self._scores())
        return record

    def _encoder(self, model: str | None) -> str:
        own = self.profile.model or recipe(f"{self.profile.recipes}_simcse_bert").backbone
        return model or own

    def _scores(self) -> dict[str, float]:
        encode = self._encode()
        scores = test_scores(encode, self.profile, self.data_dir)
        dev = inputs.dev_pairs(self.profile, self.data_dir)
        scores[f"{self.profile.dev}_dev_spearman"] = evaluate.pairs_spearman(encode, dev)
        both = ("best", "last")
        return {f"{name}_{which}": value for name, value in scores.items() for which in both}

    def _encode(self) -> Callable:
        if self.method in OF_AN_ENCODER:
            encoder = Encoder.load(self.folder)
            matrix = encoder.backbone.get_input_embeddings().weight.detach().numpy()
            counts = None
            if self.method == "sif":
                counts = evaluate.token_counts(self.sentences, encoder.tokenizer)
            return evaluate.word_vectors_encode(matrix, encoder.tokenizer, counts)
        if self.method == "tfidf":
            return evaluate.bag_of_words_encode(TfidfVectorizer().fit(self.sentences))
        return evaluate.bag_of_words_encode(CountVectorizer())


def _same_for_all(name: str) -> str:
    """One name of a folder, however it was written; a package's or Hub's id as it is."""
    path = Path(name) if Path(name).exists() else paths.ROOT / name
    return inputs.portable(str(path.resolve())) if path.exists() else name
