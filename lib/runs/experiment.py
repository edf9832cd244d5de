"""One run from its job to its metrics: data, encoder, training and scores."""

from __future__ import annotations

import os
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from lib import data, evaluate, paths
from lib.augment.sda import parse
from lib.data import files
from lib.data.sets import graded_sets
from lib.encoder import Encoder
from lib.evaluate import transfer
from lib.evaluate.sphere import MEASURES
from lib.runs.folder import Run, peak_rss_gib
from lib.runs.inputs import model_path, positives_path
from lib.runs.job import Job, fetch_configuration, is_causal, portable_parameters
from lib.runs.profiles import Profile
from lib.runs.workers import available_cores
from lib.training import checkpoint
from lib.training.batches import Feed
from lib.training.forward import ProcessGroup, is_main_process
from lib.training.loop import fit
from lib.training.recipe import Recipe
from lib.training.state import Result
from lib.training.views import Text

OF_THE_END = ("loss", "in_batch_accuracy")  # means of the last ten steps
SHARED = 5_000  # sentences from which on a text's tokens and counts are kept for other runs


def run(notebook: str, method: str, profile_name: str = "mini", **parameters: Any) -> Run:
    """Train once and evaluate the best and the last checkpoint; a run that is finished is not done
    again.

    That holds across notebooks: a finished run of the same id in the same outputs folder is
    taken. An interrupted run is taken up where its checkpoint stands; one that another process
    is training is waited for. Of several processes (`torchrun`) the first evaluates and writes.

    Args:
        notebook, method, profile_name, parameters: as `Job.of`; `max_steps=0` evaluates without
            training.

    Returns:
        The finished run; `run.metrics` holds `<set>_dev_spearman_best|last`,
        `<set>_test_spearman_best|last`, `loss_last`, `in_batch_accuracy_last`, `train_seconds`,
        `peak_rss_gib`, …

    Raises:
        ValueError: a parameter that is none, or outside its range; a set by which nothing can be
            ranked.
        FileNotFoundError: data, encoder or another file is not there.
    """
    fetch_configuration(parameters.get("model"))
    return run_job(Job.of(notebook, method, profile_name, **parameters).with_text_at_hand())


def run_job(job: Job) -> Run:
    """As `run`, for a job."""
    record = job.record()
    alone = files.locked(record.folder) if ProcessGroup.processes() == 1 else nullcontext()
    if finished := record.finished():
        return finished
    with alone:  # a second process waits, then finds the run finished; those of one training share
        if record.metrics is not None:
            return record
        if is_main_process():
            resolved = {**job.recipe.values(), **portable_parameters(job.recipe)}
            record.start(job.device, resolved, precision=job.precision, scoring=job.scoring)
        _train_and_score(job, record)
    return record


def _train_and_score(job: Job, record: Run) -> None:
    """The run itself; with `steps=0` there is no training. The main process writes."""
    encoder = new_encoder(job.recipe, job.settings.seed)
    dev = DevScore(job)
    if job.steps == 0:
        encoder.to(job.device)
        halved = job.device.type == "cuda" and job.scoring == "bf16"
        if halved and is_causal(job.recipe.backbone):
            encoder.backbone.bfloat16()
        score = dev(encoder)
        result = Result([{"step": 0, "dev_score": score}], best_step=0, best_score=score)
    else:
        settings = job.settings
        feed = Feed.of(text_of(job), job.recipe, encoder.tokenizer, settings.seed)
        options = settings.model_dump(include={"device", "checkpoint_minutes", "progress"})
        options |= {"max_steps": job.steps, "precision": job.precision, "compile": job.compiled}
        result = fit(encoder, feed, dev=dev, out=record.folder, **options)
    if is_main_process():
        record.finish(_metrics(job, encoder, result, dev), result.history)
        (record.folder / checkpoint.NAME).unlink(missing_ok=True)


def text_of(job: Job) -> Text:
    """The training text with the positives and negations that the recipe asks for.

    Raises:
        ValueError: `positive_file` does not belong to the training text line by line.
        FileNotFoundError: it is not there.
    """
    recipe, sentences = job.recipe, job.sentences
    texts = rewritten(recipe, sentences, job.settings.seed)
    aligned = texts[recipe.rule] if recipe.positive == "sda" else None
    if recipe.positive == "file":
        path, profile, data_dir = positives_path(recipe), job.profile, job.settings.data_dir
        _, aligned = data.aligned_corpus(profile.corpus, path, data_dir, profile.n_sentences)
    negated = texts["negation"] if recipe.negative == "sda" else None
    cache = paths.outputs() / "cache" if len(sentences) >= SHARED else None
    return Text(sentences, aligned, negated, cache)


def rewritten(recipe: Recipe, sentences: list[str], seed: int = 0) -> dict[str, list[str]]:
    """The training text after each rule of SDA that the recipe asks for; parses are kept in
    `outputs/parses`."""
    shares = {"negation": 1.0} if recipe.negative == "sda" else {}
    if recipe.positive == "sda":
        shares[recipe.rule] = recipe.augmented_share
    if not shares:
        return {}
    options: dict[str, Any] = {"nouns": recipe.dn_nouns, "model": model_path(recipe.parser)}
    options |= {"workers": cores() if len(sentences) >= 100_000 else 1}
    options |= {"folder": paths.outputs() / "parses"}
    return parse.rewrite(sentences, list(shares), seed, shares, **options)


def cores() -> int:
    """Processor cores that this process may use, shared among the processes of one training on this
    machine."""
    return max(1, len(available_cores()) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def new_encoder(recipe: Recipe, seed: int) -> Encoder:
    """The encoder that a training begins with."""
    names = {"pooling", "head", "eval_pooling", "eval_head", "dropout"}
    options = recipe.model_dump(include=names | {"lora_rank", "head_init", "head_per_view"})
    return Encoder.load(model_path(recipe.backbone), seed=seed, **options)


def _metrics(job: Job, encoder: Encoder, result: Result, dev: DevScore) -> dict[str, object]:
    """Metrics of a training, whose last weights `encoder` has; it is left with the best ones."""
    best = last = _scores(job, encoder, dev, result.history[-1]["dev_score"])
    if result.best_state is not None and result.best_step != result.steps:
        encoder.load_trained_state(result.best_state)
        best = _scores(job, encoder, dev, result.best_score)
    metrics: dict[str, object] = {f"{name}_last": value for name, value in last.items()}
    metrics |= {f"{name}_best": value for name, value in best.items()}
    metrics[f"{job.profile.dev}_dev_spearman_best"] = result.best_score
    if job.recipe.transfer_pooling:
        metrics |= _transfer_scores(job, encoder)
    if result.best_state is not None:
        for name in OF_THE_END:
            metrics[f"{name}_last"] = float(np.mean([h[name] for h in result.history[-10:]]))
        metrics["sentences_per_second"] = result.sentences_per_second
    metrics |= {"best_step": result.best_step, "steps": result.steps}
    metrics |= {"train_seconds": result.seconds, "dev_seconds": result.dev_seconds}
    return metrics | {"peak_rss_gib": peak_rss_gib()}


def _scores(job: Job, encoder: Encoder, dev: DevScore, score: Any) -> dict[str, float]:
    """Dev score, its geometry and the test scores of the encoder as it is."""
    found = {f"dev_{name}": value for name, value in dev.geometry(encoder).items()}
    return {f"{job.profile.dev}_dev_spearman": score} | found | job_test_scores(job, encoder)


def _transfer_scores(job: Job, encoder: Encoder) -> dict[str, float]:
    """Accuracies of the seven transfer tasks, from vectors that are not whitened."""
    recipe = job.recipe.changed(whiten=False)
    how = job.scoring, recipe.transfer_pooling, recipe.test_max_length
    encode = encode_of(encoder, recipe, *how)
    scores = transfer.transfer7(encode, job.settings.data_dir)
    return {f"{name}_transfer_best": value for name, value in scores.items()}


# --- scores


def encode_of(
    encoder: Encoder, recipe: Recipe, precision: str = "fp32", pooling=None, max_length: int = 0
) -> evaluate.Encode:
    """How the recipe's sentences become vectors at evaluation.

    Args:
        pooling: None: the encoder's own.
        max_length: tokens to cut at; 0: the longest the model reads.
    """
    encode = partial(encoder.encode, pooling=pooling, precision=precision, max_length=max_length)
    return evaluate.whitened_encode(encode) if recipe.whiten else encode


class DevScore:
    """The dev set of a job as a function of an encoder: Spearman × 100."""

    def __init__(self, job: Job):
        self.pairs = graded_sets(job.profile.dev, "dev", job.settings.data_dir)["dev"]
        self.recipe, self.precision = job.recipe, job.scoring
        self.last: evaluate.Encode | None = None  # the embeddings that were scored last

    def __call__(self, encoder: Encoder) -> float:
        """Spearman × 100 of `encoder` as it is now."""
        self.last = self._known(encoder)
        return evaluate.pairs_spearman(self.last, self.pairs)

    def geometry(self, encoder: Encoder) -> dict[str, float]:
        """`evaluate.geometry` of `encoder` as it is now; if it is asked for right after a score,
        nothing is encoded again."""
        known, self.last = self.last or self._known(encoder), None
        return evaluate.geometry(known, self.pairs)

    def _known(self, encoder: Encoder) -> evaluate.Encode:
        length = self.recipe.dev_max_length
        encode = encode_of(encoder, self.recipe, self.precision, max_length=length)
        return evaluate.remember(encode, [*self.pairs.sentence1, *self.pairs.sentence2])


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
        pairs = graded_sets(profile.test, "test", data_dir)["test"]
        return {f"{profile.test}_test_spearman": evaluate.pairs_spearman(encode, pairs)}
    scores = evaluate.sts7(encode, data_dir)
    average = {"sts7_test_avg": scores.pop("avg")}
    return {f"{task}_test_spearman": value for task, value in scores.items()} | average


def names_of_scores(profile: Profile, recipe: Recipe) -> list[str]:
    """Names of the scores that a finished run has.

    Example:
        >>> from lib.runs.profiles import profile_named
        >>> from lib.training.recipe import recipe
        >>> names_of_scores(profile_named("mini"), recipe("mini_simcse"))[:3]
        ['mini_dev_spearman_best', 'mini_dev_spearman_last', 'dev_alignment_best']
    """
    tests = [f"{profile.test}_test_spearman"]
    if profile.test == "sts7":
        tasks = (*data.STS_SUBSETS, "STS-B", "SICK-R")
        tests = [*(f"{task}_test_spearman" for task in tasks), "sts7_test_avg"]
    measures = [f"{profile.dev}_dev_spearman", *(f"dev_{name}" for name in MEASURES), *tests]
    if recipe.also_pooling:
        measures += [f"{name}_{recipe.also_pooling}" for name in tests]
    scores = [f"{name}_{which}" for name in measures for which in ("best", "last")]
    if recipe.transfer_pooling:
        scores += [f"{name}_transfer_best" for name in (*data.TRANSFER_TASKS, "avg", "MRPC f1")]
    return scores
