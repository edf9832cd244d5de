"""`python -m lib evaluate MODEL`: any folder or Hugging Face id on the seven STS tasks or the
shipped pairs."""

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.commands import reporting


def _score_suite(encode: Any, options: argparse.Namespace) -> tuple[dict, dict]:
    """(name → Spearman × 100, kinds table) of a suite."""
    from lib import data, evaluate
    from lib.evaluate.sts import sentences_of

    if options.suite == "sts":
        return evaluate.sts7(encode, options.data_dir, options.aggregation), {}
    dev, test = data.mini_pairs("dev"), data.mini_pairs("test")
    known = evaluate.remember(encode, sentences_of([dev, test]))
    scores = {
        "mini dev": evaluate.pairs_spearman(known, dev),
        "mini test": evaluate.pairs_spearman(known, test),
    }
    return scores, evaluate.by_kind(known, test)


def _table(scores: dict[str, float], kinds: dict[str, dict[str, float]]) -> str:
    lines = [f"{task:<10}{score:7.2f}" for task, score in scores.items()]
    if any(math.isnan(score) for score in scores.values()):
        lines.append("nan: all similarities of a task are equal; the embeddings have collapsed")
    if kinds:
        heads = f"{'mini test, kind':<28}{'n':>6}{'gold':>7}{'cosine':>8}{'Spearman':>10}{'AUC':>7}"
        lines += ["", heads]
        for kind, row in kinds.items():
            n, gold, cosine, rho, auc = row.values()
            lines.append(f"{kind:<28}{n:>6}{gold:>7.2f}{cosine:>8.3f}{rho:>10.2f}{auc:>7.3f}")
        lines.append(
            "AUC: probability that a paraphrase has a higher cosine than a pair of this kind"
        )
    return "\n".join(lines)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before hours of work are spent on its content."""
    if path.is_dir():
        raise ValueError(f"--json {path} is a folder: name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise OSError(f"--json {path} cannot be written: {error.strerror}") from error


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a task."""
    options = _options(arguments)
    if options.json:
        _check_writable(options.json)
    from functools import partial

    from lib import files  # torch is imported only now: --help does not need it
    from lib.encoder import Encoder
    from lib.encoder.device import resolve_device, resolve_precision

    device = resolve_device(options.device)
    encoder = Encoder.load(options.model, pooling=options.pooling, device=str(device))
    precision = resolve_precision(options.precision, device)
    encode = partial(encoder.encode, precision=precision, progress=sys.stderr.isatty())
    pooling, head = encoder.settings["eval_pooling"], encoder.settings["eval_head"]
    scores, kinds = _score_suite(encode, options)
    print(f"pooling {pooling}{' and head' if head else ''}, {precision} on {device}")
    print(_table(scores, kinds))
    if options.json:
        about = {"model": options.model, "suite": options.suite, "pooling": pooling, "head": head}
        about |= {"precision": precision, "device": str(device)}
        about |= {"aggregation": options.aggregation, "spearman": scores, "kinds": kinds}
        files.write_json(options.json, _without_nan(about))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib evaluate",
        description="Spearman's correlation × 100 of cosine similarities and gold scores.",
    )
    parser.add_argument("model", metavar="MODEL", help="a folder or a Hugging Face id")
    parser.add_argument(
        "--suite",
        choices=("sts", "mini"),
        default="sts",
        help="seven STS sets, or the shipped pairs",
    )
    parser.add_argument(
        "--pooling",
        help="cls, mean, …; pooler: [CLS] through the model's own pooler (default: what the model"
        " was saved with, else what fits it)",
    )
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--aggregation",
        choices=("all", "mean", "wmean"),
        default="all",
        help="of a task's sub-sets",
    )
    parser.add_argument("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    parser.add_argument("--json", type=Path, help="also write the scores to this file")
    return parser.parse_args(arguments)
