"""Seconds to score the seven STS tasks with all-MiniLM-L6-v2 on a CPU: `lib.evaluate.sts7` and
SentenceTransformer.

Theirs is `SentenceTransformer.encode` with its defaults on both columns of each task; the
correlations are computed by the same function on both sides, and reading the files is part of both
times.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks import common
from benchmarks.common import OURS, THEIRS, Sample, Side
from lib import data, evaluate
from lib.data import sets
from lib.encoder import Encoder
from lib.encoder.device import resolve_precision

CPU = torch.device("cpu")
DEFAULT = f"{THEIRS} fp32 (its default)"


class Scorer:
    """Both sides on one model; `scores` keeps what each side found."""

    def __init__(self, model: Path, data_dir: str | Path | None):
        from sentence_transformers import SentenceTransformer

        self.data_dir = data_dir
        self.theirs_model = SentenceTransformer(str(model), device="cpu")
        self.max_length = self.theirs_model.get_max_seq_length()
        self.encoder = Encoder.load(model, pooling="mean")
        self.scores: dict[str, dict[str, float]] = {}

    def sentences(self) -> list[str]:
        """Both columns of every task, repetitions included."""
        tasks = data.sts_tasks(self.data_dir)
        pairs = [p for subsets in tasks.values() for p in subsets.values()]
        return [s for p in pairs for s in (*p.sentence1, *p.sentence2)]

    def warm_up(self, n: int = 256) -> None:
        """Encode a few sentences on both sides."""
        some = self.sentences()[:n]
        self.encoder.encode(some, max_length=self.max_length, precision="fp32")
        self.theirs_model.encode(some)

    def ours(self, precision: str) -> Sample:
        """`lib.evaluate.sts7` with `Encoder.encode` at its default batch size."""
        encoded = 0

        def encode(sentences: list[str]) -> np.ndarray:
            nonlocal encoded
            encoded += len(sentences)
            return self.encoder.encode(sentences, precision=precision, max_length=self.max_length)

        start = time.perf_counter()
        self.scores[f"{OURS} {precision}"] = evaluate.sts7(encode, self.data_dir)
        return Sample(time.perf_counter() - start, len(self.sentences()), {"encoded": encoded})

    def theirs(self) -> Sample:
        """`SentenceTransformer.encode` on the first and on the second column of each task."""
        encoded, scores = 0, {}
        start = time.perf_counter()
        for task, subsets in data.sts_tasks(self.data_dir).items():
            first = [s for pairs in subsets.values() for s in pairs.sentence1]
            second = [s for pairs in subsets.values() for s in pairs.sentence2]
            u, v = self.theirs_model.encode(first), self.theirs_model.encode(second)
            encoded += len(u) + len(v)
            cosine = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
            scores[task] = evaluate.spearman(
                cosine, np.concatenate([pairs.scores for pairs in subsets.values()])
            )
        seconds = time.perf_counter() - start
        self.scores[DEFAULT] = {**scores, "avg": float(np.mean(list(scores.values())))}
        return Sample(seconds, len(self.sentences()), {"encoded": encoded})

    def score_table(self) -> list[dict]:
        """Spearman × 100 of every side, then the largest difference from our fp32 over the
        tasks."""
        reference = self.scores[f"{OURS} fp32"]
        table = []
        for side, scores in self.scores.items():
            gap = max(abs(scores[task] - reference[task]) for task in reference)
            rounded = {task: round(value, 2) for task, value in scores.items()}
            table.append({"side": side, **rounded, "largest_difference_to_lib_fp32": round(gap, 4)})
        return table


def smoke_folder(folder: Path) -> tuple[Path, Path]:
    """A tiny model and seven tiny tasks in the layout of the real ones."""
    tokenizer = common.tiny_model(folder / "plain")
    Encoder.load(folder / "plain", pooling="mean").export_sentence_transformers(folder / "model")
    (folder / sets.OWN_SETS).touch()
    texts = iter(common.made_up(1000, tokenizer))
    files = [
        (f"STS/{task}-en-test/STS.%s.{s}.txt", "")
        for task, subsets in data.STS_SUBSETS.items()
        for s in subsets
    ]
    for pattern, _ in files:
        root = folder / "senteval" / pattern
        root.parent.mkdir(parents=True, exist_ok=True)
        pairs = [(next(texts), next(texts)) for _ in range(6)]
        Path(str(root) % "input").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
        Path(str(root) % "gs").write_text("".join(f"{i % 6}\n" for i in range(6)))
    stsb, sick = (
        folder / "senteval/STS/STSBenchmark/sts-test.csv",
        folder / "senteval/SICK/SICK_test_annotated.txt",
    )
    for path in (stsb, sick):
        path.parent.mkdir(parents=True, exist_ok=True)
    stsb.write_text(
        "".join(f"g\tf\ty\t{i}\t{i % 6}\t{next(texts)}\t{next(texts)}\n" for i in range(12))
    )
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    sick.write_text(
        head + "".join(f"{i}\t{next(texts)}\t{next(texts)}\t{1 + i % 5}\tX\n" for i in range(12))
    )
    return folder / "model", folder


def measure(
    options: argparse.Namespace, model: Path, data_dir: str | Path | None, source: str
) -> dict:
    """Time all sides and collect the report."""
    scorer = Scorer(model, data_dir)
    scorer.warm_up()
    auto = resolve_precision("auto", CPU)
    sides: dict[str, Side] = {f"{OURS} fp32": lambda _: scorer.ours("fp32")}
    if auto != "fp32" or options.bf16:
        sides[f"{OURS} bf16"] = lambda _: scorer.ours("bf16")
    sides[DEFAULT] = lambda _: scorer.theirs()
    samples = common.interleave(sides, options.repetitions)
    ratios = [
        common.ratio(
            f"precision lib chooses ({auto}) / default", f"{OURS} {auto}", DEFAULT, samples
        )
    ]
    if auto != "fp32":
        ratios.append(common.ratio("both fp32", f"{OURS} fp32", DEFAULT, samples))
    settings = {
        "model": source,
        "longest input": f"{scorer.max_length} tokens",
        "theirs": "encode() with its defaults on both columns of each task",
        "ours": "evaluate.sts7(), every distinct sentence once",
        "repetitions": options.repetitions,
    }
    title = "Scoring the seven STS tasks on a CPU"
    table = common.rows(samples)
    return common.report("score_speed", title, settings, table, ratios, scores=scorer.score_table())


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table."""
    p = common.parser(__doc__)
    p.add_argument(
        "--bf16", action="store_true", help="time bf16 too where the CPU has none (slow)"
    )
    options = p.parse_args(argv)
    if options.smoke:
        options.repetitions = 1
    common.prepare(options)
    environment = common.machine()
    try:
        content = common.of_minilm(options, partial(measure, options), smoke_folder)
    except FileNotFoundError as error:
        print(f"score_speed: {error}", file=sys.stderr)
        return 1
    common.write(content, environment, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
