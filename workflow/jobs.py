"""Jobs: a grid's cells as notebooks to execute, each at a path of its own, for `workflow/Snakefile`."""

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import paths, runs
from lib.files import write_text
from workflow import baselines, course
from workflow.grids import Grid

FOLDER = "workflow"


@dataclass(frozen=True)
class Job:
    """One notebook, executed without its lesson with one set of parameters.

    Attributes:
        notebook: its stem.
        name: method, eight digits of all parameters, seed.
        parameters: profile and seed among them.
    """

    notebook: str
    name: str
    parameters: Mapping[str, object]

    @property
    def path(self) -> Path:
        """The executed notebook: `<outputs>/workflow/<notebook>/<name>.ipynb`."""
        return paths.outputs() / FOLDER / self.notebook / f"{self.name}.ipynb"

    def command(self, executable: str = sys.executable) -> str:
        """The shell command that executes it.

        Example:
            >>> job("04_una", {"method": "una", "profile": "mini", "seed": 1}).command("python").split()[:6]
            ['python', '-m', 'lib.course', 'run', '04_una', '--no-lesson']
        """
        words = [executable, "-m", "lib.course", "run", self.notebook, "--no-lesson", "--out", str(self.path)]
        for name, value in self.parameters.items():
            text = value if isinstance(value, str | None) else json.dumps(value)
            words += ["-p", name, str(text)]
        return shlex.join(words)


def job(notebook: str, parameters: Mapping[str, object]) -> Job:
    """The job with these parameters; the same ones, in any order, give the same job, until `RESULTS_VERSION` rises."""
    content = json.dumps([runs.RESULTS_VERSION, dict(parameters)], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return Job(notebook, f"{parameters['method']}-{digest}-s{parameters['seed']}", parameters)


def jobs(grid: Grid, **common: object) -> list[Job]:
    """All jobs of a grid, each once; rows without training are no notebook's and stay out.

    Args:
        common: parameters that are about the machine: data_dir, device.
    """
    found: dict[str, Job] = {}
    for cell, seed in grid.runs():
        if cell.set["method"] in baselines.METHODS:
            continue
        one = job(grid.notebook, {"profile": grid.profile, "seed": seed, **cell.set, **common})
        found.setdefault(one.name, one)
    return list(found.values())


def report(wanted: Iterable[Job]) -> pd.DataFrame:
    """One line a job that was begun: done or failed; seconds as Snakemake's benchmark file has them."""
    lines = []
    for one in wanted:
        failed = one.path.with_suffix(".failed.ipynb")
        state = "done" if one.path.exists() else "failed" if failed.exists() else ""
        if not state:
            continue
        timing = one.path.with_suffix(".tsv")
        seconds = pd.read_csv(timing, sep="\t")["s"].sum() if timing.exists() and state == "done" else None
        lines.append({"notebook": one.notebook, "run": one.name, "state": state, "seconds": seconds})
    return pd.DataFrame(lines, columns=["notebook", "run", "state", "seconds"])


def write_report(wanted: Iterable[Job], path: Path) -> str:
    """Write `report` as CSV; return a line that sums it up, with the runs that failed below it."""
    table = report(wanted)
    write_text(path, table.to_csv(index=False, float_format="%.1f"))
    counts = table["state"].value_counts()
    seconds = course.clock(table["seconds"].sum())
    lines = [f"{counts.get('done', 0)} runs done, {counts.get('failed', 0)} failed, {seconds} of computing: {path}"]
    for line in table[table["state"] == "failed"].itertuples():
        lines.append(f"failed: {paths.outputs() / FOLDER / line.notebook / line.run}.failed.ipynb")
    return "\n".join(lines)
