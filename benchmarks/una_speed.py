"""Speed of UNA on a CPU: counting TF-IDF, hard negatives from term numbers to WordPiece ids, their
cost in training.

The reference is Algorithm 1 of the paper in plain Python, word by word, on the same model; it
begins with words that are cut already, as ours begins with terms that are numbered already.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from benchmarks import common
from benchmarks.common import OURS, Sample, Side
from lib import data, paths
from lib.augment.tfidf import Terms, TfidfModel, terms_of
from lib.augment.una import UNA
from lib.encoder import Encoder
from lib.encoder.device import resolve_precision
from lib.encoder.tokens import tokenise
from lib.training import recipe as recipes
from lib.training.batches import Feed, Text, make_views
from lib.training.loop import fit
from lib.training.recipe import Recipe

REFERENCE_BATCH = 1000  # strings that the reference hands to the tokenizer at once
SAMPLES = {
    "one": 20_000,
    "choices": 500,
    "small": 100_000,
}  # sentences of the sides that do not take all of them
PREFIX, CHOICES = "Algorithm 1 in Python", "Algorithm 1 in Python, choices(window)"
SIMCSE = "mini_simcse"
STRINGS, IDS = f"{OURS}, to strings, batches of", f"{OURS}, to ids, batches of"
PARTS = ("counting", "negatives", "training")
Measured = tuple[dict[str, list[Sample]], list[dict]]

# A fresh process that counts and nothing else. Its own peak is VmHWM: ru_maxrss contains that of
# the parent's memory at the moment of the fork.
COUNT = """
import json, sys, time
from itertools import islice
from pathlib import Path
from lib.augment.tfidf import TfidfModel

def peak():
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(s.split()[1]) * 1024 for s in lines if s.startswith("VmHWM:")), own)

path, n, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path, encoding="utf-8") as f:
    start = time.perf_counter()
    model = TfidfModel.fit((line.rstrip("\\n") for line in islice(f, n)))
    seconds = time.perf_counter() - start
own = peak()
model.save(out)
print(json.dumps({"seconds": seconds, "terms": len(model.terms), "own": own}))
"""


# --- the reference
# -----------------------------------------------------------------------------------------


class Plain:
    """Algorithm 1 of the paper as one writes it down: dictionaries, lists and a loop over the words
    of a sentence.

    Everything that does not depend on the sentence is computed here: idf, the terms sorted by s,
    the prefix sums of s.

    Source: Shu & Lampos 2024 (UNA), Algorithm 1.
    """

    def __init__(self, model: TfidfModel, beta: float, radius: int, seed: int = 0):
        self.beta, self.radius, self.random = beta, radius, random.Random(seed)
        self.idf = dict(zip(model.terms, model.idf.tolist(), strict=True))
        self.sorted = [model.terms[i] for i in model.order.tolist()]
        self.s = model.s[model.order].tolist()
        self.rank = {term: i for i, term in enumerate(self.sorted)}
        self.prefix = list(accumulate(self.s, initial=0.0))

    def probabilities(self, words: Sequence[str]) -> list[float]:
        """p of every word, lines 6 to 8."""
        counts, n = Counter(words), len(words)
        tf = {word: math.log1p(count / n) for word, count in counts.items()}
        z = [tf[word] * self.idf[word] for word in words]
        lowest = min(z)
        mean = sum(z) / n - lowest
        p = [min(self.beta * (x - lowest) / mean, 1.0) if mean > 0 else 0.0 for x in z]
        p[z.index(max(z))] = 1.0
        return p

    def bounds(self, word: str) -> tuple[int, int, int]:
        """Rank of `word` in the order of s, and where its window begins and ends, line 9."""
        here = self.rank[word]
        return here, max(here - self.radius, 0), min(here + self.radius + 1, len(self.s))

    def window(self, word: str) -> tuple[list[str], list[float]]:
        """The window's terms and their weights: s, 0 for the word itself."""
        here, first, last = self.bounds(word)
        weights = self.s[first:last]
        weights[here - first] = 0.0
        if not any(weights):
            weights = [float(rank != here) for rank in range(first, last)]
        return self.sorted[first:last], weights

    def by_choices(self, word: str) -> str:
        """A replacement as the paper describes it: look at the whole window, line 10."""
        candidates, weights = self.window(word)
        return self.random.choices(candidates, weights)[0] if any(weights) else word

    def by_prefix(self, word: str) -> str:
        """The same distribution by one binary search in the prefix sums."""
        here, first, last = self.bounds(word)
        before, own_weight = self.prefix[first], self.s[here]
        others = self.prefix[last] - before - own_weight
        if others <= 1e-12:
            return self.by_choices(word)
        target = before + self.random.random() * others
        if target >= self.prefix[here]:
            target += own_weight
        return self.sorted[min(bisect_right(self.prefix, target, first, last) - 1, last - 1)]

    def __call__(self, words: Sequence[str], draw: Callable[[str], str]) -> str:
        """A negative of one sentence, lines 7 to 12."""
        if not words:
            return ""
        p = self.probabilities(words)
        return " ".join(
            draw(w) if self.random.random() < q else w for w, q in zip(words, p, strict=True)
        )


# --- the sides
# ---------------------------------------------------------------------------------------------


@dataclass
class Source:
    """Negatives of numbered sentences as `UnaNegatives` makes them, on a model that was fitted
    elsewhere."""

    terms: Terms
    una: UNA
    tokenizer: Any
    max_length: int = 32
    seconds: float = 0.0

    def strings(self, rows: np.ndarray, step: int) -> list[str]:
        """The negatives as text."""
        return self.una.model.strings(self.una(self.terms[rows], rows, epoch=step))

    def __call__(self, rows: np.ndarray, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Padded ids and mask `(n, t)`; the time is added to `seconds`."""
        start = time.perf_counter()
        text = self.strings(rows, step)
        ids_and_mask = tokenise(text, self.tokenizer, self.max_length)[np.arange(len(text))]
        self.seconds += time.perf_counter() - start
        return ids_and_mask


def count(text: Path, n: int, out: Path) -> dict:
    """`TfidfModel.fit` on the first `n` lines of `text` in a process of its own; the model is left
    in `out`."""
    command = [sys.executable, "-c", COUNT, str(text), str(n), str(out)]
    done = subprocess.run(command, cwd=paths.ROOT, check=True, stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    own_gib = None if measured["own"] is None else measured["own"] / 2**30
    row = {
        "sentences": n,
        "terms": measured["terms"],
        "seconds": round(measured["seconds"], 2),
        "sentences_per_second": round(n / measured["seconds"]),
        "seconds_per_100k": round(measured["seconds"] * 1e5 / n, 2),
        "GiB_together": "" if own_gib is None else round(own_gib, 3),
    }
    print(f"fit {n:,} sentences: {row['seconds']} s, {row['GiB_together']} GiB", flush=True)
    return row


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch and the tokenizer on one thread."""
    threads, parallel = torch.get_num_threads(), os.environ.get("TOKENIZERS_PARALLELISM", "true")
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        os.environ["TOKENIZERS_PARALLELISM"] = parallel


def ours(make: Callable[[np.ndarray, int], object], corpus: int, n: int, batch: int) -> Side:
    """What `make` gives for `n` of `corpus` sentences in a random order, `batch` at a time."""

    def run(i: int) -> Sample:
        order = np.random.default_rng(i).permutation(corpus)[:n]
        start = time.perf_counter()
        for first in range(0, n, batch):
            make(order[first : first + batch], i)
        return Sample(time.perf_counter() - start, n)

    return run


def theirs(
    plain: Plain, draw: Callable[[str], str], words: Sequence[list[str]], tokenizer=None
) -> Side:
    """The reference on sentences of `words`, to strings or, with a tokenizer, to padded ids."""

    def run(_: int) -> Sample:
        start = time.perf_counter()
        for first in range(0, len(words), REFERENCE_BATCH):
            strings = [plain(sentence, draw) for sentence in words[first : first + REFERENCE_BATCH]]
            if tokenizer is not None:
                tokenizer(
                    strings, truncation=True, max_length=32, padding=True, return_tensors="pt"
                )
        return Sample(time.perf_counter() - start, len(words))

    return run


def timed(function: Callable[[Sequence[str]], object], sentences: Sequence[str]) -> Side:
    """Any function of sentences."""

    def run(_: int) -> Sample:
        start = time.perf_counter()
        function(sentences)
        return Sample(time.perf_counter() - start, len(sentences))

    return run


def negative_sides(
    source: Source, sentences: Sequence[str], tokenizer, batch: int, scale: float
) -> dict[str, Side]:
    """From terms to text and to WordPiece ids, ours and the reference; and what reading text costs
    beside it."""
    some, few, many = (
        sentences[: max(1, int(SAMPLES[k] * scale))] for k in ("one", "choices", "small")
    )
    words = [terms_of(s) for s in some]
    plain = Plain(source.una.model, source.una.beta, source.una.radius)
    corpus = len(source.terms)
    return {
        f"{STRINGS} {batch:,}": ours(source.strings, corpus, len(sentences), batch),
        f"{STRINGS} 64": ours(source.strings, corpus, len(many), 64),
        f"{IDS} 64": ours(source, corpus, len(some), 64),
        f"{PREFIX}, to strings": theirs(plain, plain.by_prefix, words),
        f"{PREFIX}, to ids": theirs(plain, plain.by_prefix, words, tokenizer),
        f"{CHOICES}, to ids": theirs(plain, plain.by_choices, words[: len(few)], tokenizer),
        "lib.encoder.tokens.tokenise of the corpus": timed(
            lambda s: tokenise(s, tokenizer, 32), many
        ),
        "TfidfModel.encode of the corpus": timed(source.una.model.encode, some),
    }


def training_sides(
    folder: Path, sentences: list[str], source: Source, recipe_by_name: dict[str, Recipe]
) -> dict[str, Side]:
    """`lib.training.loop.fit` for one epoch of `sentences`, one side a recipe."""

    def side(recipe: Recipe) -> Side:
        def run(i: int) -> Sample:
            encoder = Encoder.load(
                folder, pooling=recipe.pooling, head=recipe.head, dropout=recipe.dropout
            )
            views = make_views(Text(sentences), recipe, encoder.tokenizer)
            source.seconds = 0.0
            negatives = source if recipe.negative == "una" else None
            result = fit(encoder, Feed(views, recipe, negatives, seed=i), device="cpu")
            seconds = round(source.seconds, 2)
            return Sample(
                result.seconds, result.steps * recipe.batch_size, {"seconds_drawing": seconds}
            )

        return run

    return {name: side(recipe) for name, recipe in recipe_by_name.items()}


# --- the report
# --------------------------------------------------------------------------------------------


def take_sentences(n: int, options: argparse.Namespace, tokenizer) -> tuple[list[str], str]:
    """`n` sentences and what they are."""
    if options.smoke:
        return common.made_up(n, tokenizer), "made-up strings (smoke run)"
    try:
        return data.corpus("wikipedia", options.data_dir, n), f"{n:,} distinct ones of Wikipedia"
    except (FileNotFoundError, ValueError):
        return common.wikipedia(n, options.data_dir)


def targets(
    counted: list[dict], ratios: list[dict], samples: dict[str, list[Sample]]
) -> list[dict]:
    """What was hoped for beside what was found, of the parts that were measured."""
    table: list[tuple[str, float | str, str, float]] = []
    if counted:
        smaller, largest = counted[-2:]
        growth = largest["seconds_per_100k"] / max(smaller["seconds_per_100k"], 0.01)
        what = f"fit on {largest['sentences']:,} sentences"
        table += [
            (f"{what}: seconds", largest["seconds"], "≤", 90),
            (f"{what}: GiB", largest["GiB_together"], "≤", 2.5),
        ]
        table += [
            ("its seconds per 100k / those of the next smaller corpus", round(growth, 3), "≤", 1.2)
        ]
    rates = {row["side"]: row["sentences_per_second"] for row in common.rows(samples)}
    table += [
        (f"negatives per second, {side}", rate, "≥", 100_000)
        for side, rate in rates.items()
        if STRINGS in side
    ]
    table += [(r["what"], r["ratio"], "≤", 1.25) for r in ratios if r["what"].startswith("time")]
    rows = []
    for what, value, sign, aim in table:
        met = (
            ""
            if isinstance(value, str)
            else "yes"
            if (value <= aim if sign == "≤" else value >= aim)
            else "no"
        )
        rows.append({"what": what, "measured": value, "target": f"{sign} {aim:,}", "met": met})
    return rows


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = common.parser(__doc__, repetitions=2)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    p.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[10_000, 100_000, 1_000_000],
        help="sentences to fit on",
    )

    p.add_argument(
        "--batch", type=int, default=2048, help="sentences whose negatives are drawn at once"
    )
    p.add_argument(
        "--steps",
        type=int,
        default=80,
        help="steps of an epoch of training (80 are 5,120 sentences)",
    )
    p.add_argument("--radius", type=int, default=4000, help="r of UNA")
    options = p.parse_args(argv)
    options.scale = 1.0
    if options.smoke:
        options.sizes, options.batch, options.steps, options.radius, options.repetitions = (
            [100, 200, 400],
            128,
            5,
            20,
            1,
        )
        options.scale = 0.01
    if len(options.sizes) < 2 or max(options.sizes) < options.steps * 64:
        raise SystemExit("--sizes takes at least two numbers, the largest at least 64 × --steps")
    options.sizes.sort()
    common.prepare(options)
    return options


def fit_all(
    options: argparse.Namespace, sentences: list[str], folder: Path
) -> tuple[list[dict], Path]:
    """Count every size; the model of all sentences is left in the file."""
    text, out = folder / "sentences.txt", folder / "model.npz"
    text.write_text("".join(f"{s}\n" for s in sentences), encoding="utf-8")
    return [count(text, n, out) for n in options.sizes], out


def number(
    options: argparse.Namespace, sentences: list[str], model: TfidfModel, tokenizer
) -> tuple[Source, str]:
    """Term numbers of all sentences, and what they took."""
    start = time.perf_counter()
    terms = model.encode(sentences)
    seconds = time.perf_counter() - start
    took = f"{seconds:.1f} s to number {len(sentences):,} sentences"
    print(took, flush=True)
    return Source(terms, UNA(model, radius=options.radius), tokenizer), took


def measure_negatives(
    options: argparse.Namespace, source: Source, sentences: list[str], tokenizer
) -> Measured:
    """Negatives of all sentences and the reference."""
    with one_thread():
        sides = negative_sides(source, sentences, tokenizer, options.batch, options.scale)
        samples = common.interleave(sides, options.repetitions)
    whole, small, ids, plain_strings, plain_ids, *_ = samples
    return samples, [
        common.ratio(
            f"to strings, batches of {options.batch:,} / the reference",
            whole,
            plain_strings,
            samples,
        ),
        common.ratio("to strings, batches of 64 / the reference", small, plain_strings, samples),
        common.ratio("to ids, batches of 64 / the reference", ids, plain_ids, samples),
    ]


def measure_training(
    options: argparse.Namespace, source: Source, sentences: list[str], folder: Path
) -> Measured:
    """An epoch without negatives and with both modes of them, after a few steps that are not
    timed."""
    model, base = paths.MINI_BERT, recipes.recipe(SIMCSE, batch_size=64, max_length=32)
    if options.smoke:
        model = folder / "model"
        common.tiny_model(model)
    una = base.changed(negative="una", every=5, radius=options.radius)
    with_una = {f"{SIMCSE}, UNA {m}": una.changed(negative_mode=m) for m in ("doubled", "extra")}
    training_sides(model, sentences[:320], source, {"warm-up": una})["warm-up"](0)
    sides = training_sides(
        model, sentences[: options.steps * 64], source, {SIMCSE: base, **with_una}
    )
    samples = common.interleave(sides, options.repetitions)
    return samples, [
        common.ratio(f"time of an epoch, {name} / {SIMCSE}", SIMCSE, name, samples)
        for name in with_una
    ]


def measure(options: argparse.Namespace, folder: Path) -> dict:
    """The parts asked for in one report."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MINI_BERT)
    sentences, text = take_sentences(options.sizes[-1], options, tokenizer)
    settings: dict[str, object] = {"sentences": text, "repetitions": options.repetitions}
    counted: list[dict] = []
    samples: dict[str, list[Sample]] = {}
    ratios: list[dict] = []
    if "counting" in options.parts:
        counted, path = fit_all(options, sentences, folder)
    if {"negatives", "training"} & set(options.parts):
        model = TfidfModel.load(path) if counted else TfidfModel.fit(sentences)
        source, settings["preparation"] = number(options, sentences, model, tokenizer)
        settings["UNA"] = (
            f"β = {source.una.beta}, r = {options.radius:,}; negatives and the reference on one"
            " thread"
        )
    if "negatives" in options.parts:
        samples, ratios = measure_negatives(options, source, sentences, tokenizer)
    if "training" in options.parts:
        more, costs = measure_training(options, source, sentences, folder)
        samples, ratios = {**samples, **more}, ratios + costs
        shape = "a tiny model" if options.smoke else "data/mini-bert"
        steps = f"{options.steps} steps of 64, at most 32 tokens, UNA on every 5th"
        settings["training"] = f"{shape}, {steps}, {resolve_precision('auto', 'cpu')}"
    aims = targets(counted, ratios, samples)
    table = common.rows(samples)
    return common.report(
        "una_speed", "UNA on a CPU", settings, table, ratios, counting=counted, targets=aims
    )


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    options = arguments(argv)
    environment = common.machine()
    with tempfile.TemporaryDirectory() as folder:
        content = measure(options, Path(folder))
    common.write(content, environment, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
