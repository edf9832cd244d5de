"""`python -m lib evaluate MODEL`: any folder or Hugging Face id on the seven STS tasks or the
shipped pairs."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.commands import reporting

HEADS = f"{'mini test, kind':<28}{'n':>6}{'gold':>7}{'cosine':>8}{'Spearman':>10}{'AUC':>7}"


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a task."""
    options = _options(arguments)
    from lib.data import files  # torch is imported only now: --help does not need it

    if options.json and options.json.is_dir():
        raise ValueError(f"--json {options.json} is a folder: name a file")
    if options.json:  # before hours of work are spent on its content
        files.make_folder(options.json.parent, "--json")
    from functools import partial

    from lib.encoder import Encoder
    from lib.encoder.device import resolve_device, resolve_precision

    device = resolve_device(options.device)
    encoder = Encoder.load(options.model, pooling=options.pooling, device=str(device))
    precision = resolve_precision(options.precision, device)
    encode = partial(encoder.encode, precision=precision, progress=sys.stderr.isatty())
    pooling, head = encoder.settings["eval_pooling"], encoder.settings["eval_head"]
    scores, kinds = _scores(encode, options)
    print(f"pooling {pooling}{' and head' if head else ''}, {precision} on {device}")
    print(*(f"{task:<10}{score:7.2f}" for task, score in scores.items()), sep="\n")
    if any(map(math.isnan, scores.values())):
        print("nan: all similarities of a task are equal; the embeddings have collapsed")
    for kind, row in kinds.items():
        n, gold, cosine, rho, auc = row.values()
        print("" if kind != next(iter(kinds)) else f"\n{HEADS}\n", end="")
        print(f"{kind:<28}{n:>6}{gold:>7.2f}{cosine:>8.3f}{rho:>10.2f}{auc:>7.3f}")
    if options.json:
        about = {"model": options.model, "suite": options.suite, "pooling": pooling, "head": head}
        about |= {"precision": precision, "device": str(device), "spearman": scores, "kinds": kinds}
        files.write_json(options.json, _without_nan(about))
    return 0


def _scores(encode: Any, options: argparse.Namespace) -> tuple[dict, dict]:
    """(name → Spearman × 100, kinds table) of a suite."""
    from lib import data, evaluate
    from lib.evaluate.sts import sentences_of

    if options.suite == "sts":
        return evaluate.sts7(encode, options.data_dir), {}
    dev, test = data.mini_pairs("dev"), data.mini_pairs("test")
    known = evaluate.remember(encode, sentences_of([dev, test]))
    scores = {f"mini {pairs.name}": evaluate.pairs_spearman(known, pairs) for pairs in (dev, test)}
    return scores, evaluate.by_kind(known, test)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    about = "Spearman's correlation × 100 of cosine similarities and gold scores."
    parser = argparse.ArgumentParser(prog="python -m lib evaluate", description=about)
    add = parser.add_argument
    add("model", metavar="MODEL", help="a folder or a Hugging Face id")
    add("--suite", choices=("sts", "mini"), default="sts", help="seven STS sets, or shipped pairs")
    add("--pooling", help="cls, mean, … (default: as it was saved, else what fits it)")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    add("--device", default="auto")
    add("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    add("--json", type=Path, help="also write the scores to this file")
    return parser.parse_args(arguments)
