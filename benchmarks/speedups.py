"""What the speedups of `lib.encoder.layers` gain: a SimCSE training step on a CPU with and without.

The encoder, sentences and settings of `train_speed.py`, in fp32 and in bf16.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import common, train_speed
from benchmarks.common import Side, Task
from benchmarks.train_speed import CPU

PRECISIONS = ("fp32", "bf16")


def sides(task: Task) -> dict[str, Side]:
    """With and without, in each precision."""

    def side(precision: str, speedups: bool) -> Side:
        return lambda i: common.train_ours(task, i, CPU, precision=precision, speedups=speedups)

    return {
        f"{precision}, {'with' if speedups else 'without'}": side(precision, speedups)
        for precision in PRECISIONS
        for speedups in (True, False)
    }


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = common.parser(__doc__)
    p.add_argument("--steps", type=int, default=30, help="timed steps")
    p.add_argument(
        "--warmup", type=int, default=4, help="steps before the clock starts, an even number"
    )
    options = p.parse_args(argv)
    if options.smoke:
        options.steps, options.warmup, options.repetitions = 3, 2, 1
    common.prepare(options)
    return options


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    options = arguments(argv)
    environment = common.machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        weights, sentences, source = train_speed.model_and_text(folder, options)
        task = Task(folder, sentences, options.warmup, options.steps)
        samples = common.interleave(sides(task), options.repetitions)
    ratios = [
        common.ratio(
            f"{precision}: speedups", f"{precision}, with", f"{precision}, without", samples
        )
        for precision in PRECISIONS
    ]
    batch = "64, at most 32 tokens, [CLS] pooling, dropout 0.1"
    settings = common.settings_of_training(options, weights, source, batch)
    title = "What the speedups of the encoder gain in training on a CPU, sentences per second"
    content = common.report("speedups", title, settings, common.rows(samples), ratios)
    common.write(content, environment, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
