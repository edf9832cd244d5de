"""Speed of ConSERT's views in embedding space, and what they cost in a training step.

The reference is a loop over sentences with `torch.randperm` and `index_fill`, as in the authors'
code, written for this benchmark.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks import common
from benchmarks.common import Sample, Side
from lib import paths
from lib.augment import vectors
from lib.encoder import Encoder
from lib.training import recipe as recipes
from lib.training.batches import Feed
from lib.training.loop import fit

RATES = {"token_cutoff": 0.15, "feature_cutoff": 0.2, "span_cutoff": 0.05, "dropout": 0.2}
TARGETS = ("token_cutoff", "feature_cutoff", "span_cutoff", "shuffle")
PLAIN, VIEWS = "SimCSE step", "ConSERT step: feature cutoff and shuffle"


def cutoff_by_sentence(x: Tensor, mask: Tensor, rate: float, direction: str) -> Tensor:
    """Rows, columns, elements or a span of each sentence, one sentence after the other."""
    changed = []
    for i in range(len(x)):
        length = int(mask[i].sum().item())
        sample, axis, n = x[i], 0, length
        if direction == "columns":
            axis, n = 1, x.shape[2]
        elif direction == "elements":
            sample, n = sample.reshape(-1), length * x.shape[2]
        count = int(n * rate)
        cut = torch.randperm(n, device=x.device)[:count]
        if direction == "span":
            start = random.randint(0, n - count)
            cut = torch.arange(start, start + count, device=x.device)
        changed.append(torch.index_fill(sample, axis, cut, 0.0).reshape(x[i].shape).unsqueeze(0))
    return torch.cat(changed)


def shuffle_by_sentence(positions: Tensor, mask: Tensor) -> Tensor:
    """Position ids of each sentence's tokens in random order, one sentence after the other."""
    changed = []
    for i in range(len(positions)):
        length = int(mask[i].sum().item())
        order = list(range(length))
        random.shuffle(order)
        order += range(length, positions.shape[1])
        order_tensor = torch.tensor(order, device=positions.device)
        changed.append(torch.index_select(positions[i], 0, order_tensor).unsqueeze(0))
    return torch.cat(changed)


REFERENCE: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "token_cutoff": partial(cutoff_by_sentence, direction="rows"),
    "feature_cutoff": partial(cutoff_by_sentence, direction="columns"),
    "span_cutoff": partial(cutoff_by_sentence, direction="span"),
    "dropout": partial(cutoff_by_sentence, direction="elements"),
}


def timed(call: Callable[[], object], times: int, sentences: int, device: torch.device) -> Side:
    """`times` calls after two that are not counted."""

    def run(_: int) -> Sample:
        for _ in range(2):
            call()
        common.synchronise(device)
        start = time.perf_counter()
        for _ in range(times):
            call()
        common.synchronise(device)
        return Sample(time.perf_counter() - start, times * sentences)

    return run


def view_sides(shape: tuple[int, int, int], times: int, device: torch.device) -> dict[str, Side]:
    """Ours and the reference for every view, on one batch of sentences of 8 tokens to the full
    length."""
    n, t, _ = shape
    lengths = torch.linspace(min(8, t), t, n).long()
    mask = (torch.arange(t)[None] < lengths[:, None]).long().to(device)
    x, generator = torch.randn(shape, device=device), torch.Generator(device).manual_seed(0)
    positions = torch.arange(t, device=device).repeat(n, 1)
    sides: dict[str, Side] = {}
    for name, rate in RATES.items():
        ours = partial(vectors.OUTPUT_VIEWS[name], x, mask, rate, generator)
        sides[f"{name}, lib"] = timed(ours, times, n, device)
        sides[f"{name}, by sentence"] = timed(
            partial(REFERENCE[name], x, mask, rate), max(1, times // 10), n, device
        )
    sides["shuffle, lib"] = timed(
        partial(vectors.shuffle, positions, mask, generator), times, n, device
    )
    theirs = partial(shuffle_by_sentence, positions, mask)
    sides["shuffle, by sentence"] = timed(theirs, max(1, times // 10), n, device)
    return sides


def training_sides(sentences: list[str], steps: int, device: torch.device) -> dict[str, Side]:
    """A training step with and without views, all else equal: mini-BERT, batch 96, no dropout
    inside."""

    def side(view1: str, view2: str) -> Side:
        recipe = recipes.recipe("mini_consert", view1=view1, view2=view2, eval_at_epoch_ends=False)

        def run(i: int) -> Sample:
            encoder = Encoder.load(paths.MINI_BERT, pooling="mean", dropout=0.0, device=str(device))
            feed = Feed.of(sentences, recipe, encoder.tokenizer, seed=i)
            ticks: list[float] = []

            def clock(_: Encoder) -> float:
                common.synchronise(device)
                ticks.append(time.perf_counter())
                return 0.0

            every = steps // 2
            fit(
                encoder,
                feed,
                max_steps=steps + every,
                dev=clock,
                eval_every=every,
                device=str(device),
            )
            return Sample(ticks[-1] - ticks[0], steps * recipe.batch_size)

        return run

    return {PLAIN: side("none", "none"), VIEWS: side("feature_cutoff", "shuffle")}


def targets(ratios: list[dict], cost: dict, device: torch.device) -> list[dict]:
    """What is asked for beside what was measured."""
    rows = [
        {
            "what": r["what"],
            "measured": r["ratio"],
            "target": "≥ 10",
            "met": "yes" if r["ratio"] >= 10 else "no",
        }
        for r in ratios
        if device.type == "cuda" or r["what"] in TARGETS
    ]
    met = "yes" if cost["ratio"] <= 1.1 else "no"
    return [*rows, {"what": cost["what"], "measured": cost["ratio"], "target": "≤ 1.1", "met": met}]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    p = common.parser(__doc__)
    p.add_argument("--times", type=int, default=100, help="calls of each view in one repetition")
    p.add_argument("--steps", type=int, default=20, help="timed training steps")
    p.add_argument("--device", default="cpu")
    options = p.parse_args(argv)
    common.prepare(options)
    if options.smoke:
        options.times, options.steps, options.repetitions = 2, 2, 1
    return options


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    options = arguments(argv)
    device, shape = torch.device(options.device), (8, 16, 32) if options.smoke else (96, 64, 768)
    environment = common.machine(device)
    sentences, corpus = common.wikipedia(
        96 * (options.steps + options.steps // 2), options.data_dir
    )
    samples = common.interleave(view_sides(shape, options.times, device), options.repetitions)
    names = [*RATES, "shuffle"]
    ratios = [common.ratio(name, f"{name}, lib", f"{name}, by sentence", samples) for name in names]
    steps = common.interleave(training_sides(sentences, options.steps, device), options.repetitions)
    cost = common.ratio("time of a step, ConSERT / SimCSE", PLAIN, VIEWS, steps)
    settings = {
        "batch": f"{shape[0]} sentences of 8 to {shape[1]} tokens, width {shape[2]}, fp32",
        "rates": ", ".join(f"{name} {rate}" for name, rate in RATES.items()),
        "training": (
            f"data/mini-bert, {options.steps} steps of 96, at most 64 tokens, {corpus}, no dropout"
            " inside"
        ),
        "repetitions": options.repetitions,
    }
    table = common.rows(samples) + common.rows(steps)
    content = common.report(
        "views_speed",
        "Views in embedding space",
        settings,
        table,
        [*ratios, cost],
        targets=targets(ratios, cost, device),
    )
    common.write(content, environment, options.results, device if device.type == "cuda" else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
