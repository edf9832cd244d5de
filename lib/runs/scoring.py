"""What a run is scored by: dev while it trains, the test sets when it has ended; and the methods
without training, which a trained encoder has to stand beside."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import data, evaluate, paths
from lib.data import files
from lib.encoder import Encoder
from lib.runs import inputs
from lib.runs.folder import Run
from lib.runs.job import Job, Profile, of_profile
from lib.training.recipe import Recipe, recipe
from lib.training.state import is_better

GEOMETRY = ("alignment", "uniformity", "mean_cosine", "effective_rank")
OF_AN_ENCODER = ("word_vectors", "sif")
METHODS = ("bag_of_words", "tfidf", *OF_AN_ENCODER)


def encode_of(
    encoder: Encoder, recipe: Recipe, precision: str = "fp32", pooling=None, max_length: int = 0
) -> evaluate.Encode:
    """How the recipe's sentences become vectors at evaluation.

    Args:
        pooling: None: the encoder's own.
        max_length: tokens to cut at; 0: the longest the model reads.
    """
    cut = min(max_length, encoder.longest_input()) if max_length else None
    encode = partial(encoder.encode, pooling=pooling, precision=precision, max_length=cut)
    return evaluate.whitened_encode(encode) if recipe.whiten else encode


class DevScore:
    """The dev set of a job as a function of an encoder: Spearman × 100.

    The embeddings of the last call and of the highest score are kept, so that the geometry of those
    two states costs no second encoding. Those of the highest are not where a training is taken up
    (`resumed`): a later state may have the very score of one from before the interruption.
    """

    def __init__(self, job: Job, resumed: bool = False):
        self.pairs = inputs.graded(job.profile, "dev", job.settings.data_dir)["dev"]
        self.recipe, self.precision, self.resumed = job.recipe, job.scoring, resumed
        self.kept: dict[str, tuple[float, evaluate.Encode]] = {}

    def __call__(self, encoder: Encoder) -> float:
        """Spearman × 100 of `encoder` as it is now."""
        known = self._known(encoder)
        score = evaluate.pairs_spearman(known, self.pairs)
        self.kept["last"] = score, known
        if not self.resumed and ("best" not in self.kept or is_better(score, self.kept["best"][0])):
            self.kept["best"] = score, known
        return score

    def geometry(self, encoder: Encoder, which: str, score: float) -> dict[str, float]:
        """`evaluate.geometry` of `encoder`, the `best` or the `last`, of this `score`.

        It is encoded again if its score was measured before an interruption.
        """
        measured, known = self.kept.get(which, (None, None))
        known = known if known and measured == score else self._known(encoder)
        return evaluate.geometry(known, self.pairs)

    def _known(self, encoder: Encoder) -> evaluate.Encode:
        sentences = [*self.pairs.sentence1, *self.pairs.sentence2]
        length = self.recipe.dev_max_length
        encode = encode_of(encoder, self.recipe, self.precision, max_length=length)
        return evaluate.remember(encode, sentences)


def job_test_scores(job: Job, encoder: Encoder) -> dict[str, float]:
    """The test scores of a job's encoder, Spearman × 100; those with the recipe's `also_pooling`
    have its name at the end of theirs."""
    found: dict[str, float] = {}
    for pooling in dict.fromkeys((None, job.recipe.also_pooling or None)):
        length = job.recipe.test_max_length
        encode = encode_of(encoder, job.recipe, job.scoring, pooling, length)
        scores = test_scores(encode, job.profile, job.settings.data_dir)
        ending = f"_{pooling}" if pooling else ""
        found |= {f"{name}{ending}": value for name, value in scores.items()}
    return found


def test_scores(
    encode: evaluate.Encode, profile: Profile, data_dir: str | None = None
) -> dict[str, float]:
    """The profile's test scores of any `encode`, Spearman × 100."""
    if profile.test != "sts7":
        pairs = inputs.graded(profile, "test", data_dir)["test"]
        return {f"{profile.test}_test_spearman": evaluate.pairs_spearman(encode, pairs)}
    scores = evaluate.sts7(encode, data_dir)
    average = {"sts7_test_avg": scores.pop("avg")}
    return {f"{task}_test_spearman": value for task, value in scores.items()} | average


def names_of_scores(profile: Profile, recipe: Recipe) -> list[str]:
    """Names of the scores that a finished run has.

    Example:
        >>> from lib.runs.job import profile
        >>> from lib.training.recipe import recipe
        >>> names_of_scores(profile("mini"), recipe("mini_simcse"))[:3]
        ['mini_dev_spearman_best', 'mini_dev_spearman_last', 'dev_alignment_best']
    """
    tests = [f"{profile.test}_test_spearman"]
    if profile.test == "sts7":
        tasks = (*data.STS_SUBSETS, "STS-B", "SICK-R")
        tests = [*(f"{task}_test_spearman" for task in tasks), "sts7_test_avg"]
    measures = [f"{profile.dev}_dev_spearman", *(f"dev_{name}" for name in GEOMETRY), *tests]
    if recipe.also_pooling:
        measures += [f"{name}_{recipe.also_pooling}" for name in tests]
    scores = [f"{name}_{which}" for name in measures for which in ("best", "last")]
    if recipe.transfer_pooling:
        scores += [f"{name}_transfer_best" for name in (*data.TRANSFER_TASKS, "avg", "MRPC f1")]
    return scores


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

    def with_text_at_hand(self) -> "Baseline":
        """The method on the training text that is here (`inputs.with_text_at_hand`)."""
        return replace(self, profile=inputs.with_text_at_hand(self.profile, self.data_dir))

    @cached_property
    def sentences(self) -> list[str]:
        """The text whose words are counted."""
        return inputs.sentences_of(self.profile, self.data_dir)

    @property
    def usual(self) -> str:
        """The encoder of the profile."""
        return self.profile.model or recipe(f"{self.profile.recipes}_simcse_bert").backbone

    @property
    def folder(self) -> str:
        """The encoder whose input embeddings are taken, a folder or a Hub id; empty for none."""
        return inputs.model_path(self.model or self.usual) if self.method in OF_AN_ENCODER else ""

    @property
    def inputs(self) -> list[inputs.Input]:
        """What it reads."""
        found = inputs.graded_inputs(self.profile, self.data_dir)
        found.append(inputs.corpus_input(self.profile, self.data_dir))
        return [*found, inputs.model_input(self.folder)] if self.folder else found

    def record(self) -> Run:
        """Its run, finished or not."""
        hashes = {"model": ""} | {one.name: one.digest() for one in self.inputs}
        params = of_profile(self.profile, len(self.sentences))
        if self.model and _same_for_all(self.model) != _same_for_all(self.usual):
            params["vectors"] = _same_for_all(self.model)
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
        dev = inputs.graded(self.profile, "dev", self.data_dir)["dev"]
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


def _same_for_all(name: str) -> str:
    """One name of a folder, however it was written; a package's or Hub's id as it is."""
    path = Path(name) if Path(name).exists() else paths.ROOT / name
    return inputs.portable(str(path.resolve())) if path.exists() else name
