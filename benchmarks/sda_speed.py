"""Speed of SDA: parsing and all four rules on real sentences, and each rule alone on parses in
memory.

Two references on the same pipeline with as many processes: `nlp(text)` sentence by sentence, then
the four rules; and a parse for each rule, as the authors' scripts do, on an eighth of the
sentences. Every side's time has the start of its processes in it. These import this module;
`benchmarks.common`, which takes seconds to import and serves the parent alone, is imported where
the parent needs it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import TYPE_CHECKING

import spacy

from lib import paths
from lib.augment import sda
from lib.augment.sda import parse

if TYPE_CHECKING:
    from benchmarks.common import Side

RULES = ("punctuation", "modal_verbs", "double_negation", "negation")
LIB, ONE_BY_ONE, BY_RULE = (
    "lib: one parse, four rules",
    "nlp(text), four rules",
    "nlp(text) for each rule",
)


@cache
def pipeline():
    """The shipped pipeline as spaCy loads it, with the components that `parse.load` uses."""
    nlp = spacy.load(paths.MINI_SPACY, exclude=parse.UNUSED)
    nlp.disable_pipe("morphologizer")
    return nlp


def one_by_one(part: list[str]) -> list[list[str]]:
    """A sentence parsed by itself, then every rule."""
    docs = [pipeline()(text) for text in part]
    return [[sda.apply(rule, doc, 0, i).text for rule in RULES] for i, doc in enumerate(docs)]


def by_rule(part: list[str]) -> list[list[str]]:
    """Every rule parses for itself."""
    return [
        [sda.apply(rule, pipeline()(text), 0, i).text for rule in RULES]
        for i, text in enumerate(part)
    ]


def in_processes(
    function: Callable[[list[str]], list], sentences: list[str], workers: int
) -> "Side":
    """Seconds of `function` on equal parts, with the start of its processes and their pipelines."""

    from benchmarks.common import Sample

    def run(_: int) -> Sample:
        start = time.perf_counter()
        parts = [sentences[i : i + 500] for i in range(0, len(sentences), 500)]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(function, parts))
        return Sample(time.perf_counter() - start, len(sentences))

    return run


def ours(sentences: list[str], workers: int) -> "Side":
    """Seconds of `parse.rewrite`, with the start of its processes."""

    from benchmarks.common import Sample

    def run(_: int) -> Sample:
        start = time.perf_counter()
        parse.rewrite(sentences, RULES, workers=workers)
        return Sample(time.perf_counter() - start, len(sentences))

    return run


def alone(rule: str, docs: list) -> "Side":
    """Seconds of one rule on parses in memory, in this process."""

    from benchmarks.common import Sample

    def run(_: int) -> Sample:
        start = time.perf_counter()
        for i, doc in enumerate(docs):
            sda.apply(rule, doc, 0, i)
        return Sample(time.perf_counter() - start, len(docs))

    return run


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    from benchmarks import common

    p = common.parser(__doc__)
    p.add_argument("--sentences", type=int, default=20_000)
    p.add_argument("--workers", type=int, default=2, help="processes of both sides")
    options = p.parse_args(argv)
    common.prepare(options)
    if options.smoke:
        options.sentences, options.workers, options.repetitions = 40, 1, 1
    return options


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    from benchmarks import common

    options = arguments(argv)
    environment = common.machine()
    sentences, corpus = common.wikipedia(options.sentences, options.data_dir)
    sides = {
        LIB: ours(sentences, options.workers),
        ONE_BY_ONE: in_processes(one_by_one, sentences, options.workers),
        BY_RULE: in_processes(by_rule, sentences[: max(1, len(sentences) // 8)], options.workers),
    }
    samples = common.interleave(sides, options.repetitions)
    docs = list(parse.parse(sentences[:5000]))
    rules = common.interleave(
        {f"{rule}, one core": alone(rule, docs) for rule in RULES}, options.repetitions
    )
    table = [*common.rows(samples), *common.rows(rules)]
    ratios = [
        common.ratio(f"against {theirs}", LIB, theirs, samples) for theirs in (ONE_BY_ONE, BY_RULE)
    ]
    speeds = {row["side"]: row["sentences_per_second"] for row in table}
    targets = [{"what": ratios[0]["what"], "measured": ratios[0]["ratio"], "target": "≥ 1.8×"}]
    targets += [{"what": side, "measured": speeds[side], "target": "≥ 5000/s"} for side in rules]
    limits = (1.8, *[5000] * len(rules))
    for line, limit in zip(targets, limits, strict=True):
        line["met"] = "yes" if float(line["measured"]) >= limit else "no"
    settings = {
        "text": f"{len(sentences):,} sentences, {corpus}; the rules alone on {len(docs):,} of them",
        "pipeline": "data/mini-spacy on both sides",
        "processes": options.workers,
        "repetitions": options.repetitions,
    }
    content = common.report(
        "sda_speed", "Parsing and rewriting", settings, table, ratios, targets=targets
    )
    common.write(content, environment, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
