"""Speed of UNA on a CPU: counting TF-IDF, hard negatives from term numbers to WordPiece ids, their
cost in training.

The reference is Algorithm 1 of the paper in plain Python, word by word, on the same model; it
begins with words that are cut already, as ours begins with terms that are numbered already.
"""

import argparse
import math
import os
import random
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
from lib.training.batches import Feed
from lib.training.loop import fit
from lib.training.recipe import Recipe
from lib.training.views import Text, make_views

REFERENCE_BATCH = 1000  # strings that the reference hands to the tokenizer at once
SHARE = 0.02  # of all sentences, for the slower sides
REFERENCE = "Algorithm 1 in Python"
SIMCSE = "mini_simcse"


# --- the reference
# -----------------------------------------------------------------------------------------


class Plain:
    """Algorithm 1 of the paper as one writes it down: dictionaries, lists and a loop over the words
    of a sentence.

    Everything that does not depend on the sentence is computed here: idf, the terms sorted by s,
    the prefix sums of s. A replacement is drawn by one binary search in them.

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

    def draw(self, word: str) -> str:
        """A replacement, line 10."""
        here, first, last = self.bounds(word)
        before, own_weight = self.prefix[first], self.s[here]
        others = self.prefix[last] - before - own_weight
        if others <= 1e-12:
            candidates, weights = self.window(word)
            return self.random.choices(candidates, weights)[0] if any(weights) else word
        target = before + self.random.random() * others
        if target >= self.prefix[here]:
            target += own_weight
        return self.sorted[min(bisect_right(self.prefix, target, first, last) - 1, last - 1)]

    def __call__(self, words: Sequence[str]) -> str:
        """A negative of one sentence, lines 7 to 12."""
        if not words:
            return ""
        p = self.probabilities(words)
        return " ".join(
            self.draw(w) if self.random.random() < q else w for w, q in zip(words, p, strict=True)
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
    seconds: float = 0.0

    def strings(self, rows: np.ndarray, step: int) -> list[str]:
        """The negatives as text."""
        return self.una.model.strings(self.una(self.terms[rows], rows, epoch=step))

    def __call__(self, rows: np.ndarray, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Padded ids and mask `(n, t)`; the time is added to `seconds`."""
        start = time.perf_counter()
        text = self.strings(rows, step)
        ids_and_mask = tokenise(text, self.tokenizer, 32)[np.arange(len(text))]
        self.seconds += time.perf_counter() - start
        return ids_and_mask


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


def theirs(plain: Plain, words: Sequence[list[str]], tokenizer=None) -> Side:
    """The reference on sentences of `words`, to strings or, with a tokenizer, to padded ids."""

    def run(_: int) -> Sample:
        start = time.perf_counter()
        for first in range(0, len(words), REFERENCE_BATCH):
            strings = [plain(sentence) for sentence in words[first : first + REFERENCE_BATCH]]
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


# --- the parts: samples and ratios of each
# ------------------------------------------------------------------------------------------

Measured = tuple[dict[str, list[Sample]], list[dict]]


def measure_counting(
    options: argparse.Namespace, sentences: list[str]
) -> tuple[dict[str, list[Sample]], TfidfModel]:
    """`TfidfModel.fit` on every size; and the model of all sentences, the largest of them."""
    models: dict[int, TfidfModel] = {}

    def fit_and_keep(some: Sequence[str]) -> None:
        models[len(some)] = TfidfModel.fit(some)

    fits = {
        f"TfidfModel.fit of {n:,} sentences": timed(fit_and_keep, sentences[:n])
        for n in options.sizes
    }
    return common.interleave(fits, options.repetitions), models[len(sentences)]


def measure_negatives(
    options: argparse.Namespace, source: Source, sentences: list[str]
) -> Measured:
    """Negatives to text and to WordPiece ids, ours and the reference; and what reading text costs
    beside it."""
    corpus = len(sentences)
    few = max(64, int(SHARE * corpus))
    words = [terms_of(s) for s in sentences[:few]]
    plain = Plain(source.una.model, source.una.beta, source.una.radius)
    strings, ids = f"{OURS}, to strings", f"{OURS}, to ids, batches of 64"
    their_strings, their_ids = f"{REFERENCE}, to strings", f"{REFERENCE}, to ids"
    sides = {
        strings: ours(source.strings, corpus, corpus, options.batch),
        ids: ours(source, corpus, few, 64),
        their_strings: theirs(plain, words),
        their_ids: theirs(plain, words, source.tokenizer),
        "tokenise": timed(lambda s: tokenise(s, source.tokenizer, 32), sentences[:few]),
        "TfidfModel.encode": timed(source.una.model.encode, sentences[:few]),
    }
    with one_thread():
        samples = common.interleave(sides, options.repetitions)
    return samples, [
        common.ratio("to strings / the reference", strings, their_strings, samples),
        common.ratio("to ids / the reference", ids, their_ids, samples),
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


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = common.parser(__doc__, repetitions=2)
    p.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[10_000, 100_000, 1_000_000],
        help="sentences to fit on",
    )
    p.add_argument("--batch", type=int, default=2048, help="negatives drawn at once")
    p.add_argument("--steps", type=int, default=80, help="steps of an epoch of training")
    p.add_argument("--radius", type=int, default=4000, help="r of UNA")
    options = p.parse_args(argv)
    if options.smoke:
        options.sizes, options.batch, options.steps = [100, 400], 128, 5
        options.radius, options.repetitions = 20, 1
    if max(options.sizes) < options.steps * 64:
        raise SystemExit("the largest of --sizes must be at least 64 × --steps")
    options.sizes.sort()
    common.prepare(options)
    return options


def measure(options: argparse.Namespace, folder: Path) -> dict:
    """All parts in one report."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MINI_BERT)
    sentences, text = take_sentences(options.sizes[-1], options, tokenizer)
    samples, model = measure_counting(options, sentences)
    source = Source(model.encode(sentences), UNA(model, radius=options.radius), tokenizer)
    negatives, compared = measure_negatives(options, source, sentences)
    training, costs = measure_training(options, source, sentences, folder)
    samples = {**samples, **negatives, **training}
    shape = "a tiny model" if options.smoke else "data/mini-bert"
    steps = f"{options.steps} steps of 64, at most 32 tokens, UNA on every 5th"
    settings = {
        "sentences": text,
        "repetitions": options.repetitions,
        "terms": f"{len(model.terms):,}",
        "UNA": f"β = {source.una.beta}, r = {options.radius:,}; negatives, and the reference, on"
        f" one thread, {options.batch:,} at once to strings",
        "training": f"{shape}, {steps}, {resolve_precision('auto', 'cpu')}",
    }
    return common.report(
        "una_speed", "UNA on a CPU", settings, common.rows(samples), compared + costs
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
