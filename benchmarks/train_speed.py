"""Sentences per second of SimCSE training on a CPU: `lib.training.loop.fit` and
sentence-transformers' trainer.

The same encoder (4 layers × 256, 8,192 tokens), sentences, batch of 64, 32 tokens and threads on
both sides.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoConfig, AutoTokenizer, BertConfig

from benchmarks import common
from benchmarks.common import OURS, THEIRS, Side, Task
from lib import paths
from lib.encoder import Encoder
from lib.encoder.device import resolve_precision

SHAPE = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}
CPU = torch.device("cpu")


def build_model(folder: Path, smoke: bool) -> str:
    """Write the model that both sides open in fp32 into `folder`; return which weights it has."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MINI_BERT)
    shape = common.TINY if smoke else SHAPE
    shipped = AutoConfig.from_pretrained(paths.MINI_BERT)
    if all(getattr(shipped, key, None) == value for key, value in shape.items()):
        Encoder.load(paths.MINI_BERT).backbone.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return "data/mini-bert"
    common.save_model(
        folder,
        tokenizer,
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **shape),
    )
    return "random weights, data/mini-bert's tokenizer"


def model_and_text(folder: Path, options: argparse.Namespace) -> tuple[str, list[str], str]:
    """Write the model; which weights it has, the sentences of all steps, and what those are."""
    weights = build_model(folder, options.smoke)
    n = (options.steps + options.warmup) * 64
    if options.smoke:
        return (
            weights,
            common.made_up(n, AutoTokenizer.from_pretrained(folder)),
            "made-up strings (smoke run)",
        )
    return weights, *common.wikipedia(n, options.data_dir)


def sides(task: Task, emulated: Task, auto: str, compile: bool) -> dict[str, Side]:
    """Every row; `emulated` is the shorter task of the bf16 rows where the hardware has no bf16."""
    compiled: Side = lambda i: common.train_ours(task, i, CPU, precision=auto, compile=True)  # noqa: E731
    return {
        **({f"{OURS} {auto}, compiled": compiled} if compile else {}),
        f"{OURS} fp32": lambda i: common.train_ours(task, i, CPU, precision="fp32"),
        f"{OURS} fp32, no buckets": lambda i: common.train_ours(
            task, i, CPU, precision="fp32", bucket=False
        ),
        f"{OURS} bf16": lambda i: common.train_ours(emulated, i, CPU, precision="bf16"),
        f"{OURS} bf16, no buckets": lambda i: common.train_ours(
            emulated, i, CPU, precision="bf16", bucket=False
        ),
        f"{THEIRS} fp32 (its default)": lambda i: common.train_theirs(task, i, CPU),
        f"{THEIRS} bf16": lambda i: common.train_theirs(emulated, i, CPU, bf16=True),
    }


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = common.parser(__doc__)
    p.add_argument("--steps", type=int, default=80, help="timed steps (80 are 5,120 sentences)")
    p.add_argument(
        "--warmup", type=int, default=10, help="steps before the clock starts, an even number"
    )
    p.add_argument(
        "--emulated-steps", type=int, default=16, help="timed bf16 steps where the CPU has no bf16"
    )
    p.add_argument(
        "--compile", action="store_true", help="time torch.compile too (needs a C++ compiler)"
    )
    options = p.parse_args(argv)
    if options.smoke:
        options.compile = False
        options.steps, options.warmup, options.emulated_steps, options.repetitions = 3, 2, 2, 1
    common.prepare(options)
    return options


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    options = arguments(argv)
    environment = common.machine()
    auto = resolve_precision("auto", CPU)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        weights, sentences, source = model_and_text(folder, options)
        task = Task(folder, sentences, options.warmup, options.steps)
        emulated = (
            task
            if auto == "bf16"
            else Task(folder, sentences, options.warmup, min(options.steps, options.emulated_steps))
        )
        samples = common.interleave(
            sides(task, emulated, auto, options.compile), options.repetitions
        )
    ratios = [
        common.ratio(
            f"precision lib chooses ({auto}) / default",
            f"{OURS} {auto}",
            f"{THEIRS} fp32 (its default)",
            samples,
        ),
        common.ratio("both bf16", f"{OURS} bf16", f"{THEIRS} bf16", samples),
        common.ratio("both fp32", f"{OURS} fp32", f"{THEIRS} fp32 (its default)", samples),
        common.ratio(
            "length buckets on / off, fp32", f"{OURS} fp32", f"{OURS} fp32, no buckets", samples
        ),
    ]
    if options.compile:
        ours, theirs = f"{OURS} {auto}, compiled", f"{THEIRS} fp32 (its default)"
        ratios.append(common.ratio(f"compile=True, {auto} / default", ours, theirs, samples))
    settings = common.settings_of_training(options, weights, source)
    title = "SimCSE training on a CPU, sentences per second"
    content = common.report("train_speed", title, settings, common.rows(samples), ratios)
    common.write(content, environment, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
