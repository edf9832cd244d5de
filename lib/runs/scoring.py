"""What a run is scored by: dev while it trains, the test sets when it has ended."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from lib import data, evaluate
from lib.encoder import Encoder
from lib.runs.inputs import checked, dev_pairs, test_pairs
from lib.runs.job import Job
from lib.runs.profiles import Profile
from lib.training.recipe import Recipe
from lib.training.state import is_better

GEOMETRY = ("alignment", "uniformity", "mean_cosine", "effective_rank")


def encodes(
    encoder: Encoder,
    recipe: Recipe,
    precision: str = "fp32",
    poolings: Sequence[str | None] = (None,),
    max_length: int = 0,
) -> list[evaluate.Encode]:
    """How the recipe's sentences become vectors at evaluation, with each of several poolings (None:
    the encoder's own); sentences that all of them are asked for go through the encoder once.

    Args:
        max_length: tokens to cut at; 0: the longest the model reads.
    """
    cut = min(max_length, encoder.longest_input()) if max_length else None
    known: dict[tuple[str, ...], list[np.ndarray]] = {}

    def encode(place: int, sentences: Sequence[str]) -> np.ndarray:
        asked = tuple(sentences)
        if asked not in known:
            known.clear()
            known[asked] = encoder.encode_with(poolings, asked, precision=precision, max_length=cut)
        return known[asked][place]

    found: list[evaluate.Encode] = [partial(encode, place) for place in range(len(poolings))]
    return [evaluate.whitened_encode(e) if recipe.whiten else e for e in found]


class DevScore:
    """The dev set of a job as a function of an encoder: Spearman × 100.

    The embeddings of the last call and of the highest score are kept, so that the geometry of those
    two states costs no second encoding. Those of the highest are not where a training is taken up
    (`resumed`): a later state may have the very score of one from before the interruption.
    """

    def __init__(self, job: Job, resumed: bool = False):
        self.pairs = dev_pairs(job.profile, job.settings.data_dir)
        checked({"dev": self.pairs})
        self.recipe, self.precision = job.recipe, job.scoring
        self.resumed = resumed
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
        return evaluate.geometry(
            known if known and measured == score else self._known(encoder), self.pairs
        )

    def _known(self, encoder: Encoder) -> evaluate.Encode:
        sentences = [*self.pairs.sentence1, *self.pairs.sentence2]
        length = self.recipe.dev_max_length
        (encode,) = encodes(encoder, self.recipe, self.precision, max_length=length)
        return evaluate.remember(encode, sentences)


def job_test_scores(job: Job, encoder: Encoder) -> dict[str, float]:
    """The test scores of a job's encoder, Spearman × 100; those with the recipe's `also_pooling`
    have its name at the end of theirs."""
    also = [job.recipe.also_pooling] if job.recipe.also_pooling else []
    length = job.recipe.test_max_length
    found: dict[str, float] = {}
    poolings = [None, *also]
    of_each = encodes(encoder, job.recipe, job.scoring, poolings, length)
    for pooling, encode in zip(poolings, of_each, strict=True):
        ending = f"_{pooling}" if pooling else ""
        scores = test_scores(encode, job.profile, job.settings.data_dir)
        found |= {f"{name}{ending}": value for name, value in scores.items()}
    return found


def test_scores(
    encode: evaluate.Encode, profile: Profile, data_dir: str | None = None
) -> dict[str, float]:
    """The profile's test scores of any `encode`, Spearman × 100."""
    if profile.test != "sts7":
        pairs = test_pairs(profile, data_dir)["test"]
        return {f"{profile.test}_test_spearman": evaluate.pairs_spearman(encode, pairs)}
    scores = {
        f"{task}_test_spearman": value for task, value in evaluate.sts7(encode, data_dir).items()
    }
    scores["sts7_test_avg"] = scores.pop("avg_test_spearman")
    return scores


def names_of_scores(profile: Profile, recipe: Recipe) -> list[str]:
    """Names of the scores that a finished run has.

    Example:
        >>> from lib.runs.profiles import profile
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
