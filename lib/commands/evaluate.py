"""`python -m lib evaluate MODEL`: any folder or Hugging Face id on the seven STS tasks or the
shipped pairs."""

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lib import data, evaluate, files
from lib.commands import reporting
from lib.device import resolve_device, resolve_precision
from lib.encoder import Encoder
from lib.evaluate.sts import sentences_of


def _score_suite(
    encode: evaluate.Encode, suite: str, data_dir: Path | None, aggregation: str
) -> tuple[dict, dict]:
    """(name → Spearman × 100, kinds table) of a suite."""
    if suite == "sts":
        return evaluate.sts7(encode, data_dir, aggregation), {}
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
        lines.append(
            "nan: all similarities of a task are equal; the embeddings have collapsed to one point"
        )
    if kinds:
        lines += [
            "",
            f"{'mini test, kind':<28}{'n':>6}{'gold':>7}{'cosine':>8}{'Spearman':>10}{'AUC':>7}",
        ]
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


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a task."""
    options = _options(arguments)
    if options.json:
        if options.json.is_dir():
            raise ValueError(f"--json {options.json} is a folder: name a file")
        options.json.parent.mkdir(parents=True, exist_ok=True)
    device = resolve_device(options.device)
    encoder = Encoder.load(options.model, pooling=options.pooling, device=str(device))
    precision = resolve_precision(options.precision, device)
    encode = partial(encoder.encode, precision=precision, progress=sys.stderr.isatty())
    scores, kinds = _score_suite(encode, options.suite, options.data_dir, options.aggregation)
    print(_table(scores, kinds))
    if options.json:
        about = {
            "model": options.model,
            "suite": options.suite,
            "pooling": encoder.settings["eval_pooling"],
        }
        about |= {"precision": precision, "device": str(device), "aggregation": options.aggregation}
        files.write_json(options.json, _without_nan({**about, "spearman": scores, "kinds": kinds}))
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
        "--pooling", help="cls, mean, … (default: what the model was saved with, else cls)"
    )
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--aggregation", choices=evaluate.AGGREGATIONS, default="all", help="of a task's sub-sets"
    )
    parser.add_argument("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    parser.add_argument("--json", type=Path, help="also write the scores to this file")
    return parser.parse_args(arguments)
