"""Time of a SimCSE training step of BERT-base size on a GPU: `lib.training.loop.fit` and
sentence-transformers' trainer.

Weights are random, configuration and vocabulary are bert-base-uncased's. A 1M-sentence epoch is
extrapolated from the timed steps. The physical floor stands beside it: the matrix products of a
step at the measured bf16 rate, plus the bytes that AdamW must move at the measured copy
bandwidth. So does what can be counted without a GPU and predicts the time: operations that a step
starts one by one, how often it waits for the GPU, and how many shapes its batches have once they
are padded for compilation.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from benchmarks import common
from benchmarks.common import OURS, THEIRS, Side, Task
from benchmarks.waiting import GPU, watched
from lib import paths
from lib.augment.vectors import EmbeddingViews
from lib.encoder import Encoder
from lib.encoder.layers import speed_up
from lib.training import recipe as recipes
from lib.training.batches import Feed
from lib.training.forward import encode_batch, padded_widths
from lib.training.losses import Objective

EPOCH = 1_000_000
COUNTED: dict[str, dict] = {
    "SimCSE": {"name": "paper_simcse_bert"},
    "UNA, at every step": {"name": "paper_una_bert", "every": 1, "radius": 0.0089},
    "ConSERT": {"name": "paper_consert", "max_length": 32},
    "SDA's head": {"name": "paper_simcse_bert", "head": "bn_mlp", "batch_size": 128},
}
VOCABULARY = "vocab/bert-base-uncased"
OPTIMISER_BYTES = (
    28  # a parameter: read weight, gradient and two moments, write weight and two moments, fp32
)


def find_vocabulary(argument: str | None, data_dir: str | None) -> Path:
    """Folder with config.json and vocab.txt.

    Raises:
        FileNotFoundError: none there.
    """
    candidates = (
        [Path(argument)] if argument else [base / VOCABULARY for base in paths.data_dirs(data_dir)]
    )
    for folder in candidates:
        if (folder / "config.json").is_file() and (folder / "vocab.txt").is_file():
            return folder
    looked = ", ".join(map(str, candidates))
    raise FileNotFoundError(
        f"no config.json and vocab.txt of bert-base-uncased (looked in {looked}): name their folder"
        f" with --vocabulary, or set CSE_DATA to a folder that has {VOCABULARY}"
    )


def best_seconds(work: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """Shortest wall time of `work`, seconds."""
    work()
    times = []
    for _ in range(repeats):
        common.synchronise(device)
        start = time.perf_counter()
        work()
        common.synchronise(device)
        times.append(time.perf_counter() - start)
    return min(times)


def matmul_rate(device: torch.device, n: int) -> float:
    """FLOP/s of a bf16 product of two n × n matrices."""
    a = torch.randn(n, n, device=device, dtype=torch.bfloat16)
    return 2 * n**3 / best_seconds(lambda: a @ a, device)


def copy_bandwidth(device: torch.device, n: int) -> float:
    """Bytes/s read plus written by a copy of n fp32 values."""
    a = torch.zeros(n, device=device)
    b = torch.empty_like(a)
    return 8 * n / best_seconds(lambda: b.copy_(a), device)


def step_flops(config: BertConfig, sequences: int, tokens: float) -> float:
    """FLOPs of the matrix products of one training step: forward, and twice as much backward.

    A layer has 4 h² + 2 h i weights, each 2 FLOPs a token, and 4 t h FLOPs a token for QKᵀ and the
    weighted sum.

    Args:
        sequences: encoded in the step, both views; tokens: mean length t of one.

    Example:
        >>> config = BertConfig(hidden_size=2, intermediate_size=4, num_hidden_layers=1,
        ...     num_attention_heads=1)
        >>> step_flops(config, sequences=1, tokens=1.0)
        216.0
    """
    h, i = config.hidden_size, config.intermediate_size
    forward = config.num_hidden_layers * (2 * (4 * h * h + 2 * h * i) + 4 * tokens * h)  # one token
    return 3 * forward * sequences * tokens


def floor(
    config: BertConfig, batch: int, tokens: float, device: torch.device, smoke: bool
) -> list[dict]:
    """The least time of a step on this device, in ms, part by part."""
    with torch.device("meta"):
        parameters = sum(p.numel() for p in BertModel(config, add_pooling_layer=False).parameters())
    rate = matmul_rate(device, 256 if smoke else 8192)
    bandwidth = copy_bandwidth(device, 2**18 if smoke else 2**28)
    flops, moved = step_flops(config, 2 * batch, tokens), OPTIMISER_BYTES * parameters
    parts = [
        (
            "matrix products",
            f"{flops / 1e12:.4g} TFLOP",
            f"{rate / 1e12:.4g} TFLOP/s, bf16",
            flops / rate,
        ),
        ("AdamW", f"{moved / 1e9:.4g} GB", f"{bandwidth / 1e9:.4g} GB/s, copy", moved / bandwidth),
    ]
    table = [
        {"part": p, "work": w, "measured_rate": r, "ms": round(1000 * s, 4)} for p, w, r, s in parts
    ]
    total = round(1000 * sum(s for *_, s in parts), 4)
    return [*table, {"part": "together", "work": "", "measured_rate": "", "ms": total}]


def counts(sentences: list[str], tokenizer, steps: int) -> list[dict]:
    """Operations and synchronisations of a step at BERT-base size, and shapes among `steps` of
    them, by recipe."""
    config, table = BertConfig(vocab_size=len(tokenizer)), []
    for name, changes in COUNTED.items():
        recipe = recipes.recipe(**changes)  # type: ignore[arg-type]
        feed = Feed.of(sentences, recipe, tokenizer, 0)
        widths = padded_widths(recipe.max_length)
        last = min(steps, len(feed))
        shapes = {tuple(b.ids.shape) for _, b in feed.steps(0, last, widths=widths)}
        with torch.device(GPU):
            backbone = speed_up(BertModel(config, add_pooling_layer=False))
            encoder = Encoder(backbone, tokenizer, pooling="cls", head=recipe.head).train()
        views = EmbeddingViews(backbone, recipe.views) if recipe.has_views else None
        objective, (_, batch) = Objective(recipe), next(feed.steps(0, 1))
        with watched() as step:
            z = encode_batch(encoder, batch.to(GPU), views=views)
            objective(z).backward()
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        table.append(
            {
                "recipe": name,
                "operations": step.operations,
                "synchronisations": len(step.seen),
                "shapes_compiled": len(shapes),
            }
        )
    return table


def sides(task: Task, device: torch.device, compile: bool) -> dict[str, Side]:
    """Every row."""
    eager: Side = lambda i: common.train_ours(task, i, device, precision="bf16")  # noqa: E731
    compiled: Side = lambda i: common.train_ours(task, i, device, precision="bf16", compile=True)  # noqa: E731
    return {
        f"{OURS} bf16": eager,
        **({f"{OURS} bf16, compiled": compiled} if compile else {}),
        f"{THEIRS} fp32 (its default)": lambda i: common.train_theirs(task, i, device),
        f"{THEIRS} bf16": lambda i: common.train_theirs(task, i, device, bf16=True),
    }


def parser(description: str | None, compiled: str) -> argparse.ArgumentParser:
    """Arguments of every benchmark at BERT-base size; `compiled` says what `--compile` does."""
    p = common.parser(description)
    p.add_argument(
        "--vocabulary",
        help=f"folder with config.json and vocab.txt (default: {VOCABULARY} of the data)",
    )
    p.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help=compiled)
    return p


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = parser(__doc__, compiled="time torch.compile too")
    p.add_argument("--steps", type=int, default=300, help="timed steps")
    p.add_argument(
        "--warmup",
        type=int,
        default=60,
        help="steps before the clock starts, an even number; compilation falls into them",
    )
    options = p.parse_args(argv)
    if options.smoke:
        options.steps, options.warmup, options.repetitions, options.compile = 3, 2, 1, False
    common.prepare(options)
    return options


def base_model(options: argparse.Namespace, folder: Path) -> tuple[BertConfig, str]:
    """Write BERT-base with random weights, in a smoke run a tiny one; its configuration and what
    it is.

    Without bert-base-uncased's vocabulary it has the shipped tokenizer, whose pieces are the first
    of its 30,522 embeddings.

    Raises:
        FileNotFoundError: `--vocabulary` names a folder without it.
    """
    source, whose, config = paths.MINI_BERT, "mini-BERT's tokenizer", BertConfig()
    if not options.smoke:
        try:
            source = find_vocabulary(options.vocabulary, options.data_dir)
            whose, config = "its own tokenizer", BertConfig.from_pretrained(source)
        except FileNotFoundError:
            if options.vocabulary:
                raise
    tokenizer = AutoTokenizer.from_pretrained(source)
    if options.smoke:
        config = BertConfig(vocab_size=len(tokenizer), **common.TINY)
    common.save_model(folder, tokenizer, config)
    size = f"{config.num_hidden_layers} layers × {config.hidden_size}"
    return config, f"{size}, {config.vocab_size:,} tokens, random weights, {whose}"


def build(options: argparse.Namespace, folder: Path) -> tuple[BertConfig, str, Task, str]:
    """Write the model, read the sentences; configuration, model and text in words."""
    config, what = base_model(options, folder)
    n = (options.steps + options.warmup) * 64
    if options.smoke:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        sentences, origin = common.made_up(n, tokenizer), "made-up strings (smoke run)"
    else:
        sentences, origin = common.wikipedia(n, options.data_dir)
    return config, what, Task(folder, sentences, options.warmup, options.steps), origin


def measure(options: argparse.Namespace, device: torch.device) -> dict:
    """Time all sides and collect the report."""
    notes = common.leave_out_compilation(options)
    with tempfile.TemporaryDirectory() as name:
        config, what, task, origin = build(options, Path(name) / "model")
        tokenizer = AutoTokenizer.from_pretrained(task.model)
        counted = counts(task.sentences, tokenizer, 100)
        samples = common.interleave(sides(task, device, options.compile), options.repetitions)
    table = common.rows(samples)
    for row in table:
        row["ms_a_step"] = round(1000 * row["median_seconds"] / task.steps, 3)
        row["minutes_for_1M_sentences"] = round(EPOCH / row["sentences_per_second"] / 60, 2)
    best = f"{OURS} bf16, compiled" if options.compile else f"{OURS} bf16"
    ratios = [
        common.ratio("best of lib / default", best, f"{THEIRS} fp32 (its default)", samples),
        common.ratio("both bf16", best, f"{THEIRS} bf16", samples),
    ]
    if options.compile:
        ratios.append(common.ratio("compiled / not compiled", best, f"{OURS} bf16", samples))
    tokens = table[0]["mean_tokens"]
    settings = common.settings_of_training(options, what, origin)
    title = (
        "SimCSE training at BERT-base size on"
        f" {'a GPU' if device.type == 'cuda' else 'a CPU (smoke run)'}"
    )
    least = floor(config, task.batch_size, tokens, device, options.smoke)
    return common.report(
        "gpu", title, settings, table, ratios, floor=least, counts=counted, notes=notes
    )


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    return common.run_on_gpu("gpu", arguments(argv), measure, failures=(FileNotFoundError,))


if __name__ == "__main__":
    sys.exit(main())
