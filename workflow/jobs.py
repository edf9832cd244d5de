"""Jobs: a grid's cells as notebooks to execute, each at a path of its own, for
`workflow/Snakefile`."""

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import paths
from lib.checked import closest
from lib.data.files import write_text
from lib.runs import grids, notebooks
from lib.runs.baseline import UNTRAINED
from lib.runs.folder import RESULTS_VERSION
from lib.runs.grids import Grid
from lib.runs.profiles import profile_named

FOLDER = "workflow"
KNOWN = sorted(path.stem for path in paths.GRIDS.glob("*.yaml"))


@dataclass(frozen=True)
class Configuration:
    """The configuration of a `snakemake` call.

    Attributes:
        profile, seeds: "" and () leave them to the grid.
        steps: `max_steps` if it is given.
        machine: parameters of a notebook that are about the machine: data_dir, device.
        python: interpreter of the jobs.
        options: the same for `python -m lib grid`, as words.
        choice: what a table's file name says of them.
    """

    profile: str
    seeds: tuple[int, ...]
    steps: dict[str, int]
    machine: dict[str, str]
    python: str
    options: list[str]
    choice: str


def settings(config: Mapping[str, object]) -> Configuration:
    """Read and check what `--config` gives.

    Raises:
        ValueError: an unknown key or a wrong value; the message names the key.

    Example:
        >>> settings({"seeds": "42,0", "data_dir": "a,b"}).options
        ['--seeds', '42', '0', '--data-dir', 'a,b']
    """
    known = ("profile", "seeds", "max_steps", "data_dir", "device", "python")
    if unknown := sorted(map(str, set(config) - set(known))):
        hint = closest(unknown[0], known, "there are")
        raise ValueError(f"--config {unknown[0]}: no such key{hint}")
    texts = {name: str(config[name]) for name in known if name in config}
    for name in ("seeds", "max_steps"):
        numbers = texts.get(name, "0").split(",")
        if not all(part.strip().isascii() and part.strip().isdigit() for part in numbers):
            text = " ".join(texts[name].split())[:50]
            raise ValueError(f"--config {name}={text}: whole numbers are expected, e.g. 42")
    seeds = tuple(int(seed) for seed in texts["seeds"].split(",")) if "seeds" in texts else ()
    steps = {"max_steps": int(texts["max_steps"])} if "max_steps" in texts else {}
    if "profile" in texts:
        profile_named(texts["profile"])
    options = []
    for name in ("profile", "seeds", "max_steps", "data_dir", "device"):
        if name in texts:
            values = map(str, seeds) if name == "seeds" else [texts[name]]
            options += [f"--{name.replace('_', '-')}", *values]
    return Configuration(
        texts.get("profile", ""),
        seeds,
        steps,
        {name: texts[name] for name in ("data_dir", "device") if name in texts},
        texts.get("python", sys.executable),
        options,
        "".join(f"-{name}{texts[name]}" for name in ("seeds", "max_steps") if name in texts),
    )


def tables(chosen: Configuration) -> dict[str, Grid]:
    """The grids of `workflow/grids/` at the profile and seeds asked for; those that are of the
    papers' own size are left out at another profile."""
    found = {}
    for path in sorted(paths.GRIDS.glob("*.yaml")):
        grid = grids.read(path)
        if chosen.profile in ("", grid.profile) or not grid.is_papers_own:
            at = grid.at(chosen.profile, **chosen.steps)
            found[path.stem] = at.changed(seeds=list(chosen.seeds) or grid.seeds)
    return found


def no_table(name: str) -> str:
    """Why there is no table of this name, in one sentence."""
    if name in KNOWN:
        return f"{name} is a table of the papers' own size and has no other profile"
    return f"no table {name}{closest(name, ['all', *KNOWN], 'there are')}"


@dataclass(frozen=True)
class NotebookJob:
    """One notebook, executed without its lesson with one set of parameters.

    Attributes:
        notebook: its stem.
        name: method, eight digits of all parameters, seed.
        parameters: profile and seed among them.
    """

    notebook: str
    name: str
    parameters: Mapping[str, object]

    @classmethod
    def of(cls, notebook: str, parameters: Mapping[str, object]) -> "NotebookJob":
        """The job with these parameters; the same ones, in any order, give the same job, until
        `RESULTS_VERSION` rises."""
        content = json.dumps([RESULTS_VERSION, dict(parameters)], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        return cls(notebook, f"{parameters['method']}-{digest}-s{parameters['seed']}", parameters)

    @property
    def path(self) -> Path:
        """The executed notebook: `<outputs>/workflow/<notebook>/<name>.ipynb`."""
        return paths.outputs() / FOLDER / self.notebook / f"{self.name}.ipynb"

    def command(self, executable: str = sys.executable) -> str:
        """The shell command that executes it.

        Example:
            >>> job = NotebookJob.of("04_una", {"method": "una", "profile": "mini", "seed": 1})
            >>> job.command("python").split()[:6]
            ['python', '-m', 'lib', 'run', '04_una', '--no-lesson']
        """
        words = [executable, "-m", "lib", "run", self.notebook]
        words += ["--no-lesson", "--out", str(self.path)]
        for name, value in self.parameters.items():
            words += ["-p", name, str(value)]
        return shlex.join(words)


def jobs(grid: Grid, **common: object) -> list[NotebookJob]:
    """All jobs of a grid, each once; rows without training are no notebook's and stay out.

    Args:
        common: parameters that are about the machine: data_dir, device.
    """
    job_by_name: dict[str, NotebookJob] = {}
    for cell, seed in grid.runs():
        if cell.set["method"] in UNTRAINED:
            continue
        parameters = {"profile": grid.profile, "seed": seed, **cell.set, **common}
        one = NotebookJob.of(grid.notebook, parameters)
        job_by_name.setdefault(one.name, one)
    return list(job_by_name.values())


def report(grid_jobs: Iterable[NotebookJob]) -> pd.DataFrame:
    """One line a job that was begun: done or failed; seconds as Snakemake's benchmark file has
    them."""
    lines = []
    for one in grid_jobs:
        failed = one.path.with_suffix(".failed.ipynb")
        state = "done" if one.path.exists() else "failed" if failed.exists() else ""
        if not state:
            continue
        timing = one.path.with_suffix(".tsv")
        seconds = _seconds(timing) if state == "done" else None
        lines.append(
            {"notebook": one.notebook, "run": one.name, "state": state, "seconds": seconds}
        )
    return pd.DataFrame(lines, columns=["notebook", "run", "state", "seconds"])


def _seconds(timing: Path) -> float | None:
    """Of Snakemake's benchmark file, if it is there and whole."""
    try:
        return float(pd.read_csv(timing, sep="\t")["s"].sum())
    except (OSError, ValueError, KeyError):
        return None


def write_report(grid_jobs: Iterable[NotebookJob], path: Path) -> str:
    """Write `report` as CSV; return a line that sums it up, with the runs that failed below it."""
    table = report(grid_jobs)
    write_text(path, table.to_csv(index=False, float_format="%.1f"))
    counts = table["state"].value_counts()
    seconds = notebooks.clock(table["seconds"].sum())
    lines = [
        f"{counts.get('done', 0)} runs done, {counts.get('failed', 0)} failed, {seconds} of"
        f" computing: {path}"
    ]
    for line in table[table["state"] == "failed"].itertuples():
        lines.append(f"failed: {paths.outputs() / FOLDER / line.notebook / line.run}.failed.ipynb")
    return "\n".join(lines)
