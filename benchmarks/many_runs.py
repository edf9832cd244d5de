"""Wall seconds of a grid of many small runs on one GPU: `python -m lib grid NAME --jobs N` in an
empty outputs folder, against as many bare processes at once that train one run each.

Both sides train the same runs with the same command, from the start of the first process to the
end of the last, imports, tokenisation and scores included. In a grid the processes stay, tokens and
TF-IDF are counted once for all runs on a text, and SDA's parses are made once before them; a bare
process has an outputs folder of its own, which is empty, and makes all of that for its run alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from pathlib import Path

import torch

from benchmarks import common
from benchmarks.common import Sample, Side
from lib import data, paths
from lib.runs import Job, experiment, grids, profiles
from lib.runs.grids import Cell, Grid

GRIDS = ("una_small", "sda_small")
SHARED, BARE = "one grid", "bare processes"
TARGET = {"runs": 41, "steps": 300, "seconds": 150}
NOT_HERE = {"synonyms", "positive_file"}


def cells(found: list[Grid], n: int) -> list[Cell]:
    """`n` distinct runs: the rows of the grids in turn that are trained and need no other files,
    then the same again at 1.1, 1.2, … times their learning rate."""
    in_turn = chain.from_iterable(zip_longest(*(grid.cells for grid in found)))
    distinct: list[Cell] = []
    for cell in filter(None, in_turn):
        values = {name: value for name, value in cell.set.items() if name != "max_steps"}
        alone = not cell.ignores_seed and not NOT_HERE & values.keys()
        if alone and values not in [other.set for other in distinct]:
            distinct.append(Cell(row=cell.row, set=values))
    if not distinct:
        raise SystemExit("many_runs: these grids have no rows that are trained on the text alone")
    rows = list(distinct)
    while len(rows) < n:
        again = len(rows) // len(distinct)
        rows += [quicker(cell, found[0].profile, again) for cell in distinct]
    return [Cell(row=f"{number} {cell.row}", set=cell.set) for number, cell in enumerate(rows[:n])]


def quicker(cell: Cell, profile: str, again: int) -> Cell:
    """The cell at 1 + `again` / 10 times its learning rate."""
    usual = Job.of("", profile_name=profile, **cell.set).recipe.lr
    lr = float(f"{usual * (1 + again / 10):.6g}")
    return Cell(row=cell.row, set={**cell.set, "lr": lr})


def has_real_data(data_dir: str | None) -> bool:
    """Whether the text and the sets of the profile `small` are here."""
    try:
        data.corpus_files(profiles.profile_named("small").corpus, data_dir)
        data.stsb("dev", data_dir)
        data.sts_tasks(data_dir)
    except FileNotFoundError:
        return False
    return True


def choose(options: argparse.Namespace) -> Grid:
    """The runs to time, as a grid at the profile that this machine has the data for."""
    profile = options.profile or ("small" if has_real_data(options.data_dir) else "mini")
    parameters = {"eval_every": options.eval_every, "model": str(options.model or paths.MIDI_BERT)}
    if options.smoke:
        parameters["n_sentences"] = 600
    found = [grids.read(name).at(profile, **parameters) for name in options.grids]
    rows = cells(found, options.runs)
    source = "the runs of a benchmark"
    return found[0].changed(name="many_runs", source=source, seeds=[42], cells=rows, table="")


def write_grid(grid: Grid, rows: list[Cell], path: Path) -> Path:
    """A file of some of the grid's runs, for `python -m lib grid`."""
    content = {
        "source": grid.source,
        "notebook": grid.notebook,
        "profile": grid.profile,
        "metric": grid.metric,
        "seeds": list(grid.seeds),
        "cells": [{"row": cell.row, "set": dict(cell.set)} for cell in rows],
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


class Race:
    """Both sides, each in folders that are empty when its clock starts and gone after it stops."""

    def __init__(self, grid: Grid, options: argparse.Namespace, device: torch.device):
        self.grid, self.options, self.device = grid, options, device
        self.parent = paths.outputs() / "benchmarks"
        self.parent.mkdir(parents=True, exist_ok=True)

    def train(self, file: Path, outputs: Path, jobs: int, threads: int = 0) -> None:
        """`python -m lib grid` in a folder of its own.

        Raises:
            RuntimeError: a run failed.
        """
        options = self.options
        command = [sys.executable, "-m", "lib", "grid", str(file), "--jobs", str(jobs)]
        command += ["--max-steps", str(options.steps), "--device", self.device.type]
        if options.data_dir:
            command += ["--data-dir", str(Path(options.data_dir).absolute())]
        share = {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        environment = os.environ | {"CSE_OUTPUTS": str(outputs), "HF_HUB_OFFLINE": "1"}
        environment |= share if threads else {}
        done = subprocess.run(
            command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")

    def shared(self, _: int) -> Sample:
        """All runs in one grid."""
        rows = self.grid.cells
        with tempfile.TemporaryDirectory(dir=self.parent) as name:
            file = write_grid(self.grid, rows, Path(name) / "grid.yaml")
            start = time.perf_counter()
            self.train(file, Path(name) / "outputs", self.options.jobs)
            return Sample(time.perf_counter() - start, len(rows))

    def bare(self, _: int) -> Sample:
        """A process a run, as many at once as the grid has, with the same share of the cores."""
        rows, jobs = self.grid.cells[: self.options.bare_runs], self.options.jobs
        threads = max(1, experiment.cores() // jobs)
        with tempfile.TemporaryDirectory(dir=self.parent) as name:
            places = [Path(name) / str(number) for number in range(len(rows))]
            for place, cell in zip(places, rows, strict=True):
                place.mkdir()
                write_grid(self.grid, [cell], place / "grid.yaml")
            start = time.perf_counter()
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda p: self.train(p / "grid.yaml", p / "o", 1, threads), places))
            return Sample(time.perf_counter() - start, len(rows))


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Command line."""
    p = common.parser(__doc__, repetitions=2)
    p.add_argument("--grids", nargs="+", default=GRIDS, help="names in workflow/grids/")
    p.add_argument("--profile", help="default: small where its data is, else mini")
    p.add_argument("--model", help="default: midi-BERT")
    p.add_argument("--runs", type=int, default=TARGET["runs"])
    p.add_argument("--bare-runs", type=int, help="the other side trains so many (default: all)")
    p.add_argument("--steps", type=int, default=TARGET["steps"], help="of every run")
    p.add_argument("--eval-every", type=int, default=50)
    p.add_argument("--jobs", type=int, default=min(10, experiment.cores()), help="at once")
    options = p.parse_args(argv)
    if options.smoke:
        options.runs, options.steps, options.eval_every, options.jobs = 3, 2, 2, 2
        options.profile, options.repetitions, options.bare_runs = "mini", 1, None
    common.prepare(options)
    options.bare_runs = options.bare_runs or options.runs
    if min(options.runs, options.bare_runs, options.jobs, options.steps) < 1:
        raise SystemExit("--runs, --bare-runs, --jobs and --steps must be at least 1")
    return options


def measure(options: argparse.Namespace, device: torch.device) -> dict:
    """Time both sides and collect the report."""
    grid = choose(options)
    race = Race(grid, options, device)
    sides: dict[str, Side] = {SHARED: race.shared, BARE: race.bare}
    samples = common.interleave(sides, options.repetitions)
    table = []
    for row in common.rows(samples):
        runs = row.pop("sentences")
        rate = round(60 * runs / row["median_seconds"], 2)
        del row["sentences_per_second"]
        table.append({"side": row.pop("side"), "runs": runs, **row, "runs_per_minute": rate})
    asked = (options.runs, options.steps) == (TARGET["runs"], TARGET["steps"])
    seconds = round(statistics.median(s.seconds for s in samples[SHARED]), 1)
    what = f"{options.runs} runs of {options.steps} steps, {options.jobs} at once: seconds"
    on = "a GPU" if device.type == "cuda" else "a CPU (smoke run)"
    settings = {
        "runs": f"{options.runs} of {', '.join(options.grids)}, profile {grid.profile}; the rows in"
        " turn, once all are there again at higher learning rates",
        "encoder": Path(str(grid.cells[0].set["model"])).name,
        "each run": f"{options.steps} steps, a dev score every {options.eval_every}",
        SHARED: f"python -m lib grid --jobs {options.jobs}, its outputs folder empty at the start",
        BARE: f"a process a run, {options.jobs} at once, an empty outputs folder each: tokens,"
        " TF-IDF and parses are made for every run; the first"
        f" {options.bare_runs} of the runs",
        "repetitions": options.repetitions,
    }
    return common.report(
        "many_runs",
        f"Many small runs on {on}, from an empty outputs folder",
        settings,
        table,
        [common.ratio("runs a minute, one grid / bare processes", SHARED, BARE, samples)],
        targets=[
            common.target(what, seconds, "≤", TARGET["seconds"], asked and device.type == "cuda")
        ],
    )


def measure_or_try(options: argparse.Namespace, device: torch.device) -> dict:
    """`measure`, in a smoke run with a tiny model."""
    if not options.smoke:
        return measure(options, device)
    with tempfile.TemporaryDirectory() as folder:
        options.model = Path(folder) / "tiny"
        common.tiny_model(options.model)
        return measure(options, device)


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the table; exit status 1 if a run failed."""
    failures = (OSError, RuntimeError)
    return common.run_on_gpu("many_runs", arguments(argv), measure_or_try, failures)


if __name__ == "__main__":
    sys.exit(main())
