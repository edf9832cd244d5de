"""Methods without training, which a trained encoder has to stand beside: a run each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import evaluate
from lib.data import files
from lib.data.sets import graded_sets
from lib.encoder import Encoder
from lib.runs.experiment import test_scores
from lib.runs.folder import Run
from lib.runs.inputs import Input, corpus_input, graded_inputs, model_input, model_path, portable
from lib.runs.profiles import Profile, of_profile, sentences_of, with_text_at_hand
from lib.training.recipe import recipe

OF_AN_ENCODER = ("word_vectors", "sif")
UNTRAINED = ("bag_of_words", "tfidf", *OF_AN_ENCODER)


@dataclass(frozen=True)
class Baseline:
    """A method without training, on the text and the sets of a profile: a run as a `Job` is one.

    Attributes:
        notebook: folder of the run under the outputs.
        method: `bag_of_words` (word counts), `tfidf` (scikit-learn's, idf from the profile's
            corpus), `word_vectors` (mean of an encoder's input embeddings) or `sif` (the same,
            weighted by a/(a + p(w)) and without the common component; p from the corpus).
        model: the encoder whose input embeddings the last two take; None: the profile's.

    Source: SIF is Arora et al. 2017.
    """

    notebook: str
    method: str
    profile: Profile
    data_dir: str | None = None
    model: str | None = None

    def with_text_at_hand(self) -> Baseline:
        """The method on the training text that is here (`profiles.with_text_at_hand`)."""
        return replace(self, profile=with_text_at_hand(self.profile, self.data_dir))

    @cached_property
    def sentences(self) -> list[str]:
        """The text whose words are counted."""
        return sentences_of(self.profile, self.data_dir)

    @property
    def usual(self) -> str:
        """The encoder of the profile."""
        return self.profile.model or recipe(f"{self.profile.recipe_prefix}_simcse_bert").backbone

    @property
    def folder(self) -> str:
        """The encoder whose input embeddings are taken, a folder or a Hub id; empty for none."""
        return model_path(self.model or self.usual) if self.method in OF_AN_ENCODER else ""

    @property
    def inputs(self) -> list[Input]:
        """What it reads."""
        found = graded_inputs(self.profile, self.data_dir)
        found.append(corpus_input(self.profile, self.data_dir))
        return [*found, model_input(self.folder)] if self.folder else found

    def record(self) -> Run:
        """Its run, finished or not."""
        hashes = {"model": ""} | {one.name: one.digest() for one in self.inputs}
        params = of_profile(self.profile, len(self.sentences))
        if self.model and portable(self.model) != portable(self.usual):
            params["vectors"] = portable(self.model)
        return Run(self.notebook, f"{self.profile.name}_{self.method}", 0, params, hashes)

    def run(self) -> Run:
        """Its run, scored if it is not finished."""
        record = self.record()
        with files.locked(record.folder):
            if record.metrics is None:
                record.start("cpu")
                record.finish(self._scores())
        return record

    def _scores(self) -> dict[str, float]:
        encode = self._encode()
        scores = test_scores(encode, self.profile, self.data_dir)
        dev = graded_sets(self.profile.dev, "dev", self.data_dir)["dev"]
        scores[f"{self.profile.dev}_dev_spearman"] = evaluate.pairs_spearman(encode, dev)
        both = ("best", "last")
        return {f"{name}_{which}": value for name, value in scores.items() for which in both}

    def _encode(self) -> evaluate.Encode:
        if self.method == "bag_of_words":
            return evaluate.bag_of_words_encode(CountVectorizer())
        if self.method == "tfidf":
            return evaluate.bag_of_words_encode(TfidfVectorizer().fit(self.sentences))
        encoder = Encoder.load(self.folder)
        matrix = encoder.backbone.get_input_embeddings().weight.detach().numpy()
        sif = self.sentences if self.method == "sif" else None
        return evaluate.word_vectors_encode(matrix, encoder.tokenizer, sif)
