"""`python -m lib.evaluate MODEL`: any folder or Hugging Face id on the seven STS tasks or the shipped pairs."""

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from lib import data, evaluate, files
from lib.encoder import Encoder, resolve_device, resolve_precision


def _score_suite(encode: evaluate.Encode, suite: str, data_dir: Path | None, aggregation: str) -> tuple[dict, dict]:
    """(name → Spearman × 100, kinds table) of a suite."""
    if suite == "sts":
        return evaluate.sts7(encode, data_dir, aggregation), {}
    dev, test = data.mini_pairs("dev"), data.mini_pairs("test")
    known = evaluate.remember(encode, evaluate._sentences([dev, test]))
    scores = {"mini dev": evaluate.pairs_spearman(known, dev), "mini test": evaluate.pairs_spearman(known, test)}
    return scores, evaluate.by_kind(known, test)


def _table(scores: dict[str, float], kinds: dict[str, dict[str, float]]) -> str:
    lines = [f"{task:<10}{score:7.2f}" for task, score in scores.items()]
    if any(math.isnan(score) for score in scores.values()):
        lines.append("nan: all similarities of a task are equal; the embeddings have collapsed to one point")
    if kinds:
        lines += ["", f"{'mini test, kind':<28}{'n':>6}{'gold':>7}{'cosine':>8}{'Spearman':>10}{'AUC':>7}"]
        for kind, row in kinds.items():
            n, gold, cosine, rho, auc = row.values()
            lines.append(f"{kind:<28}{n:>6}{gold:>7.2f}{cosine:>8.3f}{rho:>10.2f}{auc:>7.3f}")
        lines.append("AUC: probability that a paraphrase has a higher cosine than a pair of this kind")
    return "\n".join(lines)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def main(arguments: list[str] | None = None) -> int:
    """`python -m lib.evaluate MODEL --suite sts|mini`: one line a task; exit status 2 if something is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.evaluate",
        description="Spearman's correlation × 100 of cosine similarities and gold scores.",
    )
    parser.add_argument("model", metavar="MODEL", help="a folder or a Hugging Face id")
    parser.add_argument("--suite", choices=("sts", "mini"), default="sts", help="seven STS sets, or the shipped pairs")
    parser.add_argument("--pooling", help="cls, mean, … (default: what the model was saved with, else cls)")
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--aggregation", choices=evaluate.AGGREGATIONS, default="all", help="of a task's sub-sets")
    parser.add_argument("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    parser.add_argument("--json", type=Path, help="also write the scores to this file")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.json:
            if chosen.json.is_dir():
                raise ValueError(f"--json {chosen.json} is a folder: name a file")
            chosen.json.parent.mkdir(parents=True, exist_ok=True)
        device = resolve_device(chosen.device)
        encoder = Encoder.load(chosen.model, pooling=chosen.pooling, device=str(device))
        precision = resolve_precision(chosen.precision, device)
        encode = lambda sentences: encoder.encode(sentences, precision=precision, progress=sys.stderr.isatty())  # noqa: E731
        scores, kinds = _score_suite(encode, chosen.suite, chosen.data_dir, chosen.aggregation)
        print(_table(scores, kinds))
        if chosen.json:
            about = {"model": chosen.model, "suite": chosen.suite, "pooling": encoder.settings["eval_pooling"]}
            about |= {"precision": precision, "device": str(device), "aggregation": chosen.aggregation}
            files.write_json(chosen.json, _without_nan({**about, "spearman": scores, "kinds": kinds}))
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
