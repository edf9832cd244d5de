"""What a GPU needs for encoding and for keeping the best weights.

`encode`: seconds of `Encoder.encode` for the sentences of the seven STS tasks at BERT-base size,
beside SentenceTransformer's. `best`: what a new best dev score costs in a training of that size,
as a share of the 125 steps between two scores.
"""

import argparse
import itertools
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoTokenizer

from benchmarks import common, gpu
from benchmarks.common import OURS, THEIRS, Sample, Side, Task
from lib import data
from lib.encoder import Encoder
from lib.encoder.device import resolve_precision
from lib.training.batches import Feed
from lib.training.forward import Forward, ProcessGroup
from lib.training.loop import make_optimizer
from lib.training.state import State

STS_SENTENCES = 37_700
MINUTES = 5.0  # between checkpoints, as `lib.runs.experiment.run` writes them


@dataclass
class Part:
    """What one part found, and in words what it measured."""

    says: str
    rows: list[dict]
    ratios: list[dict] = field(default_factory=list)
    targets: list[dict] = field(default_factory=list)


def rows(part: str, unit: str, samples: Mapping[str, Sequence[Sample]]) -> list[dict]:
    """Rows of `common.rows` that say what was counted."""
    table = []
    for row in common.rows(samples):
        n, rate = row.pop("sentences"), row.pop("sentences_per_second")
        table.append({"part": part, "side": row.pop("side"), "done": f"{n:,} {unit}"} | row)
        table[-1]["per_second"] = f"{rate:,.0f}" if rate >= 100 else f"{rate:,.1f}"
    return table


def timed(work: Callable[[], object], device: torch.device, n: int) -> Sample:
    """Wall seconds of `work`, the GPU's included, and the most memory it took beside what was there
    before."""
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device) if on_gpu else 0
    common.synchronise(device)
    start = time.perf_counter()
    work()
    common.synchronise(device)
    seconds = time.perf_counter() - start
    if not on_gpu:
        return Sample(seconds, n)
    peak = (torch.cuda.max_memory_allocated(device) - before) / 2**30
    return Sample(seconds, n, {"peak_GiB_beside_weights": round(peak, 2)})


# --- encoding
# ------------------------------------------------------------------------------------------------


def sts_sentences(options: argparse.Namespace, tokenizer) -> tuple[list[str], str]:
    """Both columns of the seven STS tasks, or as many made-up strings; and which it was."""
    if not options.smoke:
        try:
            tasks = data.sts_tasks(options.data_dir)
        except FileNotFoundError:
            made_up = common.made_up(STS_SENTENCES, tokenizer)
            return made_up, "made-up strings, as many as the STS sets hold, which are not here"
        pairs = [p for subsets in tasks.values() for p in subsets.values()]
        found = [s for p in pairs for s in (*p.sentence1, *p.sentence2)]
        return found, "both columns of the seven STS tasks"
    return common.made_up(40, tokenizer), "made-up strings (smoke run)"


def encoders(
    folder: Path, sentences: list[str], device: torch.device
) -> tuple[dict[str, Side], tuple[str, str]]:
    """Every side, warm, and the names of the precision that lib chooses and of the other default.

    Each of theirs encodes the list as it is; one of them the distinct sentences alone, as lib does
    by itself.
    """
    from sentence_transformers import SentenceTransformer

    Encoder.load(folder / "plain", pooling="mean").export_sentence_transformers(folder / "st")
    ours = Encoder.load(folder / "plain", pooling="mean", device=str(device))
    fp32 = SentenceTransformer(str(folder / "st"), device=str(device))
    half = SentenceTransformer(str(folder / "st"), device=str(device)).bfloat16()
    auto, distinct = resolve_precision("auto", device), list(dict.fromkeys(sentences))
    default = f"{THEIRS} fp32 (its default)"
    work: dict[str, tuple[Callable[[list[str]], object], list[str]]] = {
        f"{OURS} {auto}": (lambda s: ours.encode(s, precision=auto), sentences),
        f"{OURS} fp32": (lambda s: ours.encode(s, precision="fp32"), sentences),
        default: (fp32.encode, sentences),
        f"{THEIRS} bf16": (half.encode, sentences),
        f"{THEIRS} bf16, distinct sentences": (half.encode, distinct),
    }
    for encode, _ in work.values():
        encode(sentences[:1024])

    def side(encode: Callable[[list[str]], object], text: list[str]) -> Side:
        return lambda _: timed(lambda: encode(text), device, len(sentences))

    return {name: side(*pair) for name, pair in work.items()}, (f"{OURS} {auto}", default)


def encode(options: argparse.Namespace, device: torch.device) -> Part:
    """Seconds to encode the sentences of the STS tasks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, model = gpu.base_model(options, folder / "plain")
        tokenizer = AutoTokenizer.from_pretrained(folder / "plain")
        sentences, origin = sts_sentences(options, tokenizer)
        sides, (best, default) = encoders(folder, sentences, device)
        samples = common.interleave(sides, options.repetitions)
    seconds = statistics.median(s.seconds for s in samples[best])
    what = f"encode {len(sentences):,} sentences, {best}: seconds"
    pairs = [
        ("encode: precision lib chooses / default", best, default),
        ("encode: both bf16", f"{OURS} bf16", f"{THEIRS} bf16"),
        ("encode: both bf16, distinct", f"{OURS} bf16", f"{THEIRS} bf16, distinct sentences"),
        ("encode: both fp32", f"{OURS} fp32", default),
    ]
    ratios = [common.ratio(*pair, samples) for pair in pairs if pair[1] in samples]
    says = (
        f"{model}; {len(sentences):,} sentences, {len(set(sentences)):,} distinct ({origin}); from"
        " strings to vectors on the host, each side's default batches, bf16 of theirs by"
        " `.bfloat16()`"
    )
    aims = [common.target(what, round(seconds, 2), "≤", 4, device.type == "cuda")]
    return Part(says, rows("encode", "sentences", samples), ratios, aims)


# --- a new best
# ------------------------------------------------------------------------------------------------


class Best:
    """The state of a training at which every dev score is a new best.

    Args:
        task: model and text of the training; its optimiser has moments, as after a step.
        folder: for the checkpoints.
    """

    def __init__(self, task: Task, device: torch.device, folder: Path):
        self.device = device
        encoder = Encoder.load(task.model, pooling="cls", device=str(device))
        feed = Feed.of(task.sample(), task.recipe(), encoder.tokenizer, 0)
        forward = Forward(encoder, feed.recipe, ProcessGroup(device))
        optimizer = make_optimizer(encoder.train(), feed.recipe)
        for parameter in encoder.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        optimizer.zero_grad()
        self.state = State(forward, optimizer, feed, folder)
        self.state.result.history.append({"step": 1})
        self.scores = itertools.count()
        for due in (False, True):
            self.arrives(due)

    def arrives(self, due: bool) -> None:
        """A new best; the dev score itself takes no time. A checkpoint is written if it is
        `due`."""
        self.state.result.steps += 1
        self.state.score(lambda _: float(next(self.scores)))
        self.state.save(0 if due else math.inf)

    def side(self, due: bool) -> Side:
        """`arrives`, timed."""
        return lambda _: timed(lambda: self.arrives(due), self.device, 1)


def best(options: argparse.Namespace, device: torch.device) -> Part:
    """What a new best costs, as a share of the steps between two dev scores."""
    precision = resolve_precision("auto", device)
    training = argparse.Namespace(**vars(options) | {"steps": options.between})
    with tempfile.TemporaryDirectory() as name:
        _, model, task, origin = gpu.build(training, Path(name) / "model")
        kept = Best(task, device, Path(name) / "run")
        compiled = ", compiled" if options.compile else ""
        steps = f"{options.between} steps, {precision}{compiled}"
        sides: dict[str, Side] = {
            steps: lambda i: common.train_ours(
                task, i, device, precision=precision, compile=options.compile
            ),
            "new best": kept.side(due=False),
            "new best, checkpoint due": kept.side(due=True),
        }
        samples = common.interleave(sides, options.repetitions)
    says = (
        f"{model}; {task.batch_size} a batch, {origin}. New best: `State.score` with a dev score"
        " that takes no time, and `State.save`; a checkpoint is due once in"
        f" {MINUTES:.0f} minutes, also where a training is short"
    )
    table = rows("best", "sentences", {steps: samples[steps]})
    table += rows("best", "times", {k: v for k, v in samples.items() if k != steps})
    return Part(says, table, [], shares(samples, steps, device.type == "cuda"))


def shares(samples: Mapping[str, Sequence[Sample]], steps: str, counts: bool) -> list[dict]:
    """What new bests and checkpoints cost, in % of the training's time."""
    middle = {name: statistics.median(s.seconds for s in done) for name, done in samples.items()}
    keeping = 100 * middle["new best"] / middle[steps]
    writing = max(0.0, middle["new best, checkpoint due"] - middle["new best"])
    by_minutes = 100 * writing / (60 * MINUTES)
    every = 100 * middle["new best, checkpoint due"] / middle[steps]
    each = f"of the time of {steps}"
    lines = [
        (f"a new best at every dev score, % {each}", keeping),
        (f"that, and a checkpoint every {MINUTES:.0f} minutes, %", keeping + by_minutes),
    ]
    what = f"for comparison: a new best and a checkpoint at every dev score, % {each}"
    return [
        *(common.target(what, round(share, 2), "<", 5, counts) for what, share in lines),
        {"what": what, "measured": round(every, 2), "target": "", "met": ""},
    ]


# --- all of it
# ------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[argparse.Namespace, torch.device], Part]] = {
    "encode": encode,
    "best": best,
}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = gpu.parser(__doc__, compiled="compile the training")
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these")
    p.add_argument("--between", type=int, default=125, help="steps between two dev scores")
    p.add_argument("--warmup", type=int, default=60, help="steps before those, an even number")
    options = p.parse_args(argv)
    if options.smoke:
        options.between, options.warmup = 3, 2
        options.repetitions, options.compile = 1, False
    common.prepare(options)
    return options


def measure(options: argparse.Namespace, device: torch.device) -> dict:
    """All parts one after the other; what a machine lacks is said in a note."""
    notes = common.leave_out_compilation(options)
    parts: dict[str, Part] = {}
    for name in options.parts:
        try:
            parts[name] = PARTS[name](options, device)
        except (FileNotFoundError, ImportError) as error:
            notes.append(f"{name}: left out, as something is not here: {error}")
        if device.type == "cuda":
            torch.cuda.empty_cache()
    settings = {name: part.says for name, part in parts.items()}
    together = {
        key: [line for part in parts.values() for line in getattr(part, key)]
        for key in ("rows", "ratios", "targets")
    }
    on = "a GPU" if device.type == "cuda" else "a CPU (smoke run)"
    return common.report(
        "gpu_parts",
        f"Encoding and new bests on {on}",
        settings | {"repetitions": options.repetitions},
        together["rows"],
        together["ratios"],
        targets=together["targets"],
        notes=notes,
    )


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table; exit status 1 if nothing could be measured."""
    return common.run_on_gpu("gpu_parts", arguments(argv), measure)


if __name__ == "__main__":
    sys.exit(main())
