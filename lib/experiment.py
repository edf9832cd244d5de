"""From parameters to metrics: data, encoder, training and evaluation of one run, in one call."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from filelock import Timeout

from lib import checkpoint, data, evaluate, files, identity, paths, profiles, recipes, runs, train
from lib.augment.sda import parse
from lib.batches import Feed
from lib.cores import available_cores
from lib.device import resolve_device, resolve_precision
from lib.distributed import Group, is_main_process
from lib.encoder import Encoder
from lib.encoder.pretrained import fitting_pooling
from lib.evaluate import transfer
from lib.evaluate.sts import unit
from lib.forward import compiles
from lib.identity import dev_pairs, model_hash, model_path, portable, text_hash
from lib.profiles import Profile
from lib.recipes import RECIPES, Recipe
from lib.settings import check_whole_number

__all__ = ["dev_pairs", "model_hash", "model_path", "portable", "resolve", "run", "text_hash"]

GEOMETRY = ("alignment", "uniformity", "mean_cosine", "effective_rank")
MOST_STEPS = 10_000_000
# Sentences from which on a text's tokens and counts are kept for other runs.
SHARED = 5_000


def resolve(
    profile_name: str,
    method: str,
    model: str | None = None,
    max_steps: int | None = None,
    corpus: str | None = None,
    n_sentences: int | None = None,
    **changes,
) -> tuple[Profile, Recipe, int | None]:
    """Profile, recipe and number of steps of a run; a parameter given explicitly wins over the
    profile.

    Args:
        method: recipe without its first part: `simcse` is `mini_simcse` at mini and light,
            `small_simcse` at small, `paper_simcse_bert` at full (where the backbone's family picks
            the recipe); a full recipe name is taken as it is.
        model: encoder to start from; None is the profile's. Where the recipe pools with `cls` and
            the model is causal, the last token is taken.
        max_steps: 0 to 10,000,000; None is the profile's.
        corpus: training text, all of it, as `lib.data.corpus` names it; None is the profile's.
        n_sentences: how many of it, drawn once for all seeds; None is the profile's number.
        changes: recipe fields; None means the recipe's own.

    Raises:
        ValueError: a name that there is not, or a value outside its range.
    """
    _check_names(profile=profile_name, method=method, model=model, corpus=corpus)
    if max_steps is not None:
        check_whole_number("max_steps", max_steps, 0, MOST_STEPS)
    if n_sentences is not None:
        check_whole_number("n_sentences", n_sentences, 1)
    model, corpus = model and str(model), corpus and str(corpus)
    profile = profiles.profile(profile_name)
    if corpus is not None and corpus != profile.corpus:
        profile = replace(profile, corpus=corpus, n_sentences=None)
    if n_sentences is not None:
        profile = replace(profile, n_sentences=n_sentences)
    fields = {k: v for k, v in changes.items() if v is not None}
    if fixed := {"name", "source", "backbone"} & set(fields):
        raise ValueError(
            f"{sorted(fixed)[0]} is no parameter of a run: name a recipe in method, an encoder in"
            " model"
        )
    if profile.eval_every is not None:
        fields.setdefault("eval_every", profile.eval_every)
    name = (
        method
        if method.startswith(("mini_", "small_", "paper_"))
        else f"{profile.recipes}_{method}"
    )
    if name == f"paper_{method}" and name not in RECIPES:
        name += (
            "_zh"
            if profile_name == "chinese"
            else "_roberta"
            if "roberta" in (model or "")
            else "_bert"
        )
    base = recipes.recipe(name)
    backbone = model or profile.model or base.encoder.backbone
    if model and _is_causal(model):
        for field, usual in (("pooling", base.encoder), ("eval_pooling", base.evaluation)):
            if usual.pooling == "cls":
                fields.setdefault(field, "last_token")
    return (
        profile,
        base.changed(backbone=backbone, **fields),
        max_steps if max_steps is not None else profile.max_steps,
    )


def _is_causal(model: str) -> bool:
    """Whether a model's first token sees itself alone; not of a model that cannot be read now,
    which whoever loads it is told."""
    try:
        return fitting_pooling(model_path(model)) == "last_token"
    except (OSError, ValueError, ImportError):
        return False


def _check_names(**names: object) -> None:
    optional = {"model", "corpus", "data_dir", "output_dir"}
    for name, value in names.items():
        if name in optional and (value is None or value == "" or isinstance(value, Path)):
            continue
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be a name or a path, got {value!r}")


def with_text_at_hand(profile: Profile, data_dir: str | None = None) -> Profile:
    """The profile with the training text that is here: wiki1m in place of the Wikipedia dumps, with
    a warning."""
    corpus = data.at_hand(profile.corpus, data_dir)
    if corpus != profile.corpus:
        message = (
            f"the corpus {profile.corpus!r} is not here: {corpus!r} is read in its place, and"
            " recorded so"
        )
        warnings.warn(message, stacklevel=2)
    return replace(profile, corpus=corpus)


def sentences_of(profile: Profile, data_dir: str | None = None) -> list[str]:
    """The profile's training text. The sample is the same for every seed.

    It is kept until another one is asked for or one of its files changes.
    """
    stamps = []
    for path in data.corpus_files(profile.corpus, data_dir):
        status = path.stat()
        stamps.append(
            (str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        )
    return list(_corpus(profile.corpus, data_dir, profile.n_sentences, tuple(stamps)))


@lru_cache(maxsize=1)
def _corpus(name: str, data_dir: str | None, n: int | None, stamps: tuple) -> tuple[str, ...]:
    return tuple(data.corpus(name, data_dir, n, seed=0))


def rewritten(recipe: Recipe, sentences: list[str], seed: int = 0) -> dict[str, list[str]]:
    """The training text after each rule of SDA that the recipe asks for; parses are kept in
    `outputs/parses`."""
    positive = recipe.positive
    shares = {"negation": 1.0} if recipe.negative.kind == "sda" else {}
    if positive.kind == "sda":
        shares[positive.rule] = positive.share
    if not shares:
        return {}
    return parse.rewrite(
        sentences,
        list(shares),
        seed,
        shares,
        model_path(positive.parser),
        paths.outputs() / "parses",
        workers=cores() if len(sentences) >= 100_000 else 1,
        nouns=positive.nouns,
    )


def cores() -> int:
    """Processor cores that this process may use, shared among the processes of one training on this
    machine."""
    return max(1, len(available_cores()) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def positives_of(recipe: Recipe, profile: Profile, data_dir: str | None = None) -> list[str]:
    """The lines of `positive_file` that belong to the sentences of `sentences_of`, one each, in
    their order.

    Raises:
        ValueError: no file is named, or it does not belong to the training text line by line.
        FileNotFoundError: the file is not there.
    """
    path = identity.positives_path(recipe)
    return data.aligned_corpus(profile.corpus, path, data_dir, profile.n_sentences, seed=0)[1]


def encode_as(
    encoder: Encoder,
    recipe: Recipe,
    precision: str = "fp32",
    pooling: str | None = None,
    max_length: int = 0,
) -> evaluate.Encode:
    """How the recipe's sentences become vectors at evaluation, with its own pooling or another.

    Args:
        max_length: tokens to cut at; 0: the longest the model reads.
    """
    cut = min(max_length, encoder.longest_input()) if max_length else None
    encode = partial(encoder.encode, precision=precision, pooling=pooling, max_length=cut)
    return evaluate.whitened_encode(encode) if recipe.evaluation.whiten else encode


def encode_with_each(
    encoder: Encoder,
    recipe: Recipe,
    precision: str,
    poolings: Sequence[str | None],
    max_length: int = 0,
) -> list[evaluate.Encode]:
    """`encode_as` of the encoder as it is now, with each of several poolings; sentences that all of
    them are asked for go through the encoder once."""
    cut = min(max_length, encoder.longest_input()) if max_length else None
    known: dict[tuple[str, ...], list[np.ndarray]] = {}

    def encode(place: int, sentences: Sequence[str]) -> np.ndarray:
        asked = tuple(sentences)
        if asked not in known:
            known.clear()
            known[asked] = encoder.encode_with(poolings, asked, precision=precision, max_length=cut)
        return known[asked][place]

    encodes: list[evaluate.Encode] = [partial(encode, place) for place in range(len(poolings))]
    return [evaluate.whitened_encode(e) if recipe.evaluation.whiten else e for e in encodes]


class DevScore:
    """The profile's dev set as a function of an encoder: Spearman ×100.

    The embeddings of the last call and of the highest score are kept, so that the geometry of those
    two states costs no second encoding. Those of the highest are not where a training is taken up
    (`resumed`): a later state may have the very score of one from before the interruption.
    """

    def __init__(
        self,
        profile: Profile,
        recipe: Recipe,
        data_dir: str | None = None,
        precision: str = "fp32",
        resumed: bool = False,
    ):
        self.pairs, self.recipe, self.precision = dev_pairs(profile, data_dir), recipe, precision
        self.resumed = resumed
        self.kept: dict[str, tuple[float, evaluate.Encode]] = {}

    def __call__(self, encoder: Encoder) -> float:
        """Spearman ×100 of `encoder` as it is now."""
        known = self._known(encoder)
        score = evaluate.pairs_spearman(known, self.pairs)
        self.kept["last"] = score, known
        if not self.resumed and (
            "best" not in self.kept or train.is_better(score, self.kept["best"][0])
        ):
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
        encode = encode_as(
            encoder, self.recipe, self.precision, max_length=self.recipe.evaluation.dev_max_length
        )
        return evaluate.remember(encode, sentences)


def test_metrics(
    encoder: Encoder,
    profile: Profile,
    recipe: Recipe,
    suffix: str,
    data_dir: str | None = None,
    precision: str = "fp32",
    geometry: dict[str, float] | None = None,
) -> dict:
    """The profile's test scores and dev geometry, each key ending in `suffix`; Spearman ×100.

    The test scores with the recipe's `also_pooling`, which is named in their keys, come with them.
    A `geometry` that is known already is taken as it is.
    """
    evaluation = recipe.evaluation
    if geometry is None:
        encode = encode_as(encoder, recipe, precision, max_length=evaluation.dev_max_length)
        geometry = evaluate.geometry(encode, dev_pairs(profile, data_dir))
    scores = {f"dev_{name}": value for name, value in geometry.items()}
    also = [evaluation.also_pooling] if evaluation.also_pooling else []
    encodes = encode_with_each(
        encoder, recipe, precision, [None, *also], evaluation.test_max_length
    )
    for encode, ending in zip(encodes, ["", *(f"_{pooling}" for pooling in also)], strict=True):
        of_pooling = test_scores(encode, profile, data_dir)
        scores |= {f"{name}{ending}": value for name, value in of_pooling.items()}
    return {f"{name}_{suffix}": value for name, value in scores.items()}


def test_scores(
    encode: evaluate.Encode, profile: Profile, data_dir: str | None = None
) -> dict[str, float]:
    """The profile's test scores of any `encode`, Spearman ×100."""
    if profile.test == "mini":
        return {"mini_test_spearman": evaluate.pairs_spearman(encode, data.mini_pairs("test"))}
    if profile.test == "cnsd":
        return {"cnsd_test_spearman": evaluate.pairs_spearman(encode, data.cnsd("test", data_dir))}
    scores = {
        f"{task}_test_spearman": value for task, value in evaluate.sts7(encode, data_dir).items()
    }
    scores["sts7_test_avg"] = scores.pop("avg_test_spearman")
    return scores


def scores_of(profile: Profile, recipe: Recipe) -> list[str]:
    """Names of the scores that a finished run has.

    Example:
        >>> scores_of(*resolve("mini", "simcse")[:2])[:3]
        ['mini_dev_spearman_best', 'mini_dev_spearman_last', 'dev_alignment_best']
    """
    tests = [f"{profile.test}_test_spearman"]
    if profile.test == "sts7":
        tests = [
            *(f"{task}_test_spearman" for task in (*data.STS_SUBSETS, "STS-B", "SICK-R")),
            "sts7_test_avg",
        ]
    measures = [f"{profile.dev}_dev_spearman", *(f"dev_{name}" for name in GEOMETRY), *tests]
    if recipe.evaluation.also_pooling:
        measures += [f"{name}_{recipe.evaluation.also_pooling}" for name in tests]
    scores = [f"{name}_{which}" for name in measures for which in ("best", "last")]
    if recipe.evaluation.transfer_pooling:
        scores += [f"{name}_transfer_best" for name in (*data.TRANSFER_TASKS, "avg", "MRPC f1")]
    return scores


def run(
    notebook: str,
    method: str,
    profile_name: str = "mini",
    *,
    seed: int = 42,
    model: str | None = None,
    max_steps: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    scoring: str | None = None,
    compile: bool | None = None,
    checkpoint_minutes: float = 5.0,
    data_dir: str | None = None,
    output_dir: str | None = None,
    force: bool = False,
    progress: bool = False,
    **changes,
) -> runs.Run:
    """Train once and evaluate the best and the last checkpoint; a run that is finished is not done
    again.

    That holds across notebooks: a finished run of the same id in the same outputs folder is
    copied. An interrupted run is taken up where its checkpoint stands; one that another process
    is training is waited for. Of several processes (`torchrun`) the first evaluates and writes.

    Args:
        notebook: the folder's name under `outputs/`.
        method, model, max_steps, changes: as `resolve`; `max_steps=0` evaluates without training.
        precision: of the training; scoring: of the embeddings that are scored (None: the
            profile's). What they are resolved to is recorded and part of the id.
        compile, checkpoint_minutes: as `lib.train.fit`; a compiled training is another run, as its
            numbers are others.
        output_dir: outputs folder (None: `paths.outputs()`).
        force: run again although a result is there.

    Returns:
        The finished run; `run.metrics` holds `<set>_spearman_best|last`, `sts7_test_avg_best|last`,
        `loss_last`, `in_batch_accuracy_last`, `train_seconds`, `peak_rss_gib`, …

    Raises:
        ValueError: a parameter that is none, or outside its range.
        FileNotFoundError: data, encoder or another file is not there.
    """
    _check_names(notebook=notebook, data_dir=data_dir, output_dir=output_dir)
    check_whole_number("seed", seed, 0, 2**32 - 1)
    profile, recipe, steps = resolve(profile_name, method, model, max_steps, **changes)
    torch_device = resolve_device(device)
    precision = resolve_precision(precision, torch_device)
    scoring = resolve_precision(profile.scoring if scoring is None else scoring, torch_device)
    if steps != 0:
        profile = with_text_at_hand(profile, data_dir)
    sentences = sentences_of(profile, data_dir) if steps != 0 else []
    params, hashes = identity.of_run(
        profile, recipe, steps, sentences, data_dir, precision, scoring
    )
    if compile := _compiled(compile, torch_device, steps, recipe, len(sentences)):
        params["compile"] = True
    record = runs.Run(notebook, recipe.name, int(seed), params, hashes, output_dir)
    if not force and record.metrics is not None:
        return _tidied(record)
    with _alone(record.folder):
        if not force and record.metrics is None and Group.processes() == 1 and record.adopt():
            train.discard_checkpoint(record.folder)
        if not force and record.metrics is not None:
            return record
        if is_main_process():
            record.start(torch_device, force, precision=precision, scoring=scoring)
            if force:
                train.discard_checkpoint(record.folder)
        machine = {"device": device, "precision": precision, "progress": progress}
        machine |= {"compile": compile, "checkpoint_minutes": checkpoint_minutes}
        _train_and_score(record, profile, recipe, steps, sentences, data_dir, scoring, machine)
    return record


def _compiled(asked: bool | None, device, steps: int | None, recipe: Recipe, lines: int) -> bool:
    """Whether the training of a text of so many lines is compiled; nothing else is."""
    if steps is None:
        steps = recipe.batches.steps(lines)
    return steps > 0 and compiles(asked, device, steps, recipe, Group.processes())


def _train_and_score(record, profile, recipe, steps, sentences, data_dir, scoring, machine) -> None:
    """The run itself; with `steps=0` there is no training. The main process writes."""
    encoder = _new_encoder(recipe, record.seed)
    texts = rewritten(recipe, sentences, record.seed) if steps != 0 else {}
    dev = DevScore(
        profile, recipe, data_dir, scoring, resumed=(record.folder / checkpoint.NAME).exists()
    )
    if steps == 0:
        on_gpu = encoder.to(resolve_device(machine["device"])).device.type == "cuda"
        if on_gpu and scoring == "bf16" and _is_causal(recipe.encoder.backbone):
            encoder.backbone.bfloat16()
        score = dev(encoder)
        result = train.Result(
            history=[{"step": 0, "dev_score": score}], best_step=0, best_score=score
        )
    else:
        feed = _feed(
            recipe, profile, sentences, texts, encoder, record.seed, data_dir, machine["progress"]
        )
        result = train.fit(encoder, feed, max_steps=steps, dev=dev, out=record.folder, **machine)
    if is_main_process():
        metrics: dict[str, object] = {}
        if recipe.negative.kind == "sda" and texts:
            metrics |= negation_cosines(encoder, sentences, texts["negation"], scoring)
        metrics |= _metrics(encoder, result, recipe, profile, data_dir, scoring, dev)
        record.finish(metrics, result.history)
        train.discard_checkpoint(record.folder)


def negation_cosines(
    encoder: Encoder,
    sentences: Sequence[str],
    negated: Sequence[str],
    precision: str = "fp32",
    n: int = 1000,
) -> dict[str, float]:
    """Where a negation stands in the space of the loss, without dropout: mean cosines of a training
    sentence with its own negation and with other sentences.

    Args:
        sentences, negated: the training text and the hard negatives; the first `n` are taken.

    Returns:
        `own_negation_cosine_last` and `other_sentence_cosine_last`, in [-1, 1].
    """
    with encoder.as_trained():
        z, z_negated = (
            unit(encoder.encode(list(text[:n]), precision=precision))
            for text in (sentences, negated)
        )
    own, others = np.sum(z * z_negated), z.sum(axis=0)
    total = len(z)
    return {
        "own_negation_cosine_last": float(own / total),
        "other_sentence_cosine_last": float((others @ others - total) / (total * (total - 1))),
    }


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time in a run's folder: a second one waits, then finds the run finished.

    The processes of one distributed training share the folder as they are.
    """
    if Group.processes() > 1:
        yield
        return
    with files.locked(folder):
        yield


def _tidied(record: runs.Run) -> runs.Run:
    """A finished run without what a killed process left in its folder; left alone while another is
    at work there."""
    if (record.folder / "checkpoint.safetensors").exists() or record.remains():
        try:
            with files.locked(record.folder, timeout=0):
                train.discard_checkpoint(record.folder)
                record.sweep()
        except (Timeout, OSError):
            return record
    return record


def _new_encoder(recipe: Recipe, seed: int) -> Encoder:
    return Encoder.load(
        model_path(recipe.encoder.backbone),
        pooling=recipe.encoder.pooling,
        head=recipe.head.kind,
        eval_pooling=recipe.evaluation.pooling,
        eval_head=recipe.evaluation.head,
        dropout=recipe.encoder.dropout,
        seed=seed,
        lora_rank=recipe.encoder.lora_rank,
        head_init=recipe.head.init,
        head_per_view=recipe.head.per_view,
    )


def _feed(recipe, profile, sentences, texts, encoder, seed, data_dir, progress) -> Feed:
    """The batches of the run: its text with the positives and hard negatives that the recipe asks
    for; `texts` as `rewritten`."""
    aligned = texts[recipe.positive.rule] if recipe.positive.kind == "sda" else None
    if recipe.positive.kind == "file":
        aligned = positives_of(recipe, profile, data_dir)
    negated = texts.get("negation")
    return Feed.of(
        sentences,
        recipe,
        encoder.tokenizer,
        seed,
        aligned=aligned,
        negated=negated,
        progress=progress,
        cache=paths.outputs() / "cache" if len(sentences) >= SHARED else None,
    )


def _metrics(encoder, result, recipe, profile, data_dir, scoring, dev) -> dict[str, object]:
    """Metrics of a training, whose last weights `encoder` has; it is left with the best ones."""

    def score(which: str, dev_spearman: float) -> dict:
        geometry = dev.geometry(encoder, which, dev_spearman)
        return test_metrics(encoder, profile, recipe, which, data_dir, scoring, geometry)

    last_score = result.history[-1]["dev_score"]
    at_last = score("last", last_score)
    metrics = {f"{profile.dev}_dev_spearman_last": last_score} | at_last
    if result.best_state is None or result.best_step == result.steps:
        metrics.update(
            {f"{name.removesuffix('last')}best": value for name, value in at_last.items()}
        )
    else:
        encoder.load_trained_state(result.best_state)
        metrics.update(score("best", result.best_score))
    if pooling := recipe.evaluation.transfer_pooling:
        plain = recipe.changed(whiten=False)
        encode = encode_as(encoder, plain, scoring, pooling, recipe.evaluation.test_max_length)
        transfer_scores = transfer.transfer7(encode, data_dir)
        metrics.update({f"{name}_transfer_best": value for name, value in transfer_scores.items()})
    if result.best_state is not None:
        tail = result.history[-min(10, len(result.history)) :]
        metrics["loss_last"] = float(np.mean([h["loss"] for h in tail]))
        metrics["in_batch_accuracy_last"] = float(np.mean([h["in_batch_accuracy"] for h in tail]))
        metrics["sentences_per_second"] = result.sentences_per_second
    return metrics | {
        f"{profile.dev}_dev_spearman_best": result.best_score,
        "best_step": result.best_step,
        "steps": result.steps,
        "train_seconds": result.seconds,
        "dev_seconds": result.dev_seconds,
        "peak_rss_gib": runs.peak_rss_gib(),
    }
