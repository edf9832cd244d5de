"""`python -m lib evaluate data/mini-bert --suite mini`: score a model."""

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a task."""
    about = "Spearman's correlation × 100 of cosine similarities and gold scores."
    parser = verb_parser("evaluate", about)
    add = parser.add_argument
    add("model", metavar="MODEL", help="a folder or a Hugging Face id")
    add("--suite", choices=("sts", "mini"), default="sts", help="seven STS sets, or shipped pairs")
    add("--pooling", help="cls, mean, pooler, … (default: as it was saved, else what fits it)")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    add("--device", default="auto", help="cpu, cuda or mps (default: the best there is)")
    add("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    options = parser.parse_args(arguments)
    from lib.encoder import Encoder
    from lib.encoder.device import resolve_device, resolve_precision
    from lib.runs import model_path

    device = resolve_device(options.device)
    encoder = Encoder.load(model_path(options.model), pooling=options.pooling, device=str(device))
    precision = resolve_precision(options.precision, device)
    pooling, head = encoder.settings["eval_pooling"], encoder.settings["eval_head"]
    scores = _scores(encoder, precision, options)
    print(f"pooling {pooling}{' and head' if head else ''}, {precision} on {device}")
    print(*(f"{task:<10}{score:7.2f}" for task, score in scores.items()), sep="\n")
    if any(map(math.isnan, scores.values())):
        print("nan: all similarities of a task are equal; the embeddings have collapsed")
    return 0


def _scores(encoder: Any, precision: str, options: argparse.Namespace) -> dict[str, float]:
    """Name → Spearman × 100 of a suite."""
    from lib import data, evaluate

    encode = partial(encoder.encode, precision=precision, progress=sys.stderr.isatty())
    if options.suite == "sts":
        return evaluate.sts7(encode, options.data_dir)
    sets = [data.mini_pairs(split) for split in ("dev", "test")]
    return {pairs.name: evaluate.pairs_spearman(encode, pairs) for pairs in sets}
