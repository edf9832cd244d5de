"""Grids: the runs behind a table, as a file of notebook parameters.

`python -m lib grid NAME` trains what is missing of `workflow/grids/NAME.yaml`.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import yaml
from pydantic import BeforeValidator, field_validator

from lib import paths
from lib.checked import Checked, closest, setting, validated
from lib.results import committed
from lib.runs import experiment, folder
from lib.runs.baseline import OF_AN_ENCODER, UNTRAINED, Baseline
from lib.runs.experiment import names_of_scores
from lib.runs.finished import Member, add_members
from lib.runs.job import Job, fetch_configuration, portable_parameters
from lib.runs.profiles import profile_named
from lib.runs.workers import at_once
from lib.training.forward import ProcessGroup, is_main_process


class Cell(Checked):
    """One cell of a table: its place, and the notebook parameters that lead to it.

    Attributes:
        row, column: where the paper prints it (`row_id` and column of its CSV); a column that it
            does not print has no figure of the paper's. A grid of our own names its rows freely.
            `{seed}` in a row stands for the seed.
        set: parameters, without profile and seed.
    """

    row: Annotated[str, BeforeValidator(str)]
    column: str = ""
    set: dict[str, Any] = setting({})

    @property
    def method(self) -> str:
        """The recipe, or the method without training."""
        return str(self.set["method"])

    @property
    def ignores_seed(self) -> bool:
        """Whether nothing is trained, so that all seeds are one run."""
        return self.method in UNTRAINED or self.set.get("max_steps") == 0


class Grid(Checked):
    """All cells of one table.

    Attributes:
        name: of its file, without ending; path: the file.
        source: paper and table, or what a table of our own asks.
        notebook: whose parameters are set, and where the runs lie under `outputs/`.
        metric: which of a run's metrics belongs in the table.
        table: name of the paper's CSV in `data/papers/`, empty for a table of our own.
        factor: by which the paper's figure is multiplied to be Spearman × 100.
        common, column: of all cells that do not say otherwise.
    """

    name: str
    path: str
    source: str
    notebook: str
    profile: str
    metric: str
    seeds: list[int]
    table: str = ""
    factor: float = 100.0
    common: dict[str, Any] = setting({})
    column: str = ""
    cells: list[Cell]

    @field_validator("cells", mode="before")
    @classmethod
    def _each(cls, cells: Any, info: Any) -> Any:
        if not isinstance(cells, list):
            return cells
        common, column = (info.data.get(name) for name in ("common", "column"))
        found = [validated(Cell, cell, f"cell {number}") for number, cell in enumerate(cells, 1)]
        return [
            Cell(row=one.row, column=one.column or column, set={**(common or {}), **one.set})
            for one in found
        ]

    def changed(self, **fields: Any) -> "Grid":
        """A copy with other fields, unchecked."""
        return self.model_copy(update=fields)

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of `workflow/grids`, at its own profile."""
        return Path(self.path) == paths.GRIDS / f"{self.name}.yaml"

    @property
    def is_papers_own(self) -> bool:
        """Whether a cell names a paper's recipe, whose size it has."""
        return any(cell.method.startswith("paper_") for cell in self.cells)

    def runs(self) -> Iterator[tuple[Cell, int]]:
        """Cell and seed of every run, seeds outermost; one that two cells share, or that has no
        seed, comes once."""
        for number, seed in enumerate(self.seeds):
            done: list[Mapping[str, object]] = []
            for cell in self.cells:
                if cell.set not in done and not (cell.ignores_seed and number):
                    done.append(cell.set)
                    yield cell, seed

    def at(self, profile_name: str, **parameters: object) -> "Grid":
        """This grid at another profile, with more parameters in all cells that train.

        What a cell names is used; a grid of the paper's own recipes has its size from there and is
        refused at another profile: those of other profiles name the method alone.

        Raises:
            ValueError: there is no such profile, or a cell has one of its own.
        """
        cells = [
            c if c.ignores_seed else c.model_copy(update={"set": {**c.set, **parameters}})
            for c in self.cells
        ]
        profile = profile_named(profile_name or self.profile)
        if profile.name == self.profile:
            return self.changed(cells=cells)
        if self.is_papers_own:
            raise ValueError(f"{self.name} is the paper's own setting, of profile {self.profile}")
        new = {"name": f"{self.name}@{profile.name}", "metric": profile.metric(self.metric)}
        return self.changed(**new, profile=profile.name, cells=cells)


def read(name: str | Path) -> Grid:
    """The grid in a file, or in `workflow/grids/<name>.yaml`.

    Raises:
        FileNotFoundError: no such file; the message lists the grids there are.
        ValueError: not YAML, a key is unknown, missing or of another type, a cell stands twice or
            leads to no run; the message names the file and the cell.

    Example:
        >>> grid = read("una_table_c5")
        >>> grid.cells[0].row, dict(grid.cells[0].set)
        ('beta_0_8', {'method': 'paper_una_bert', 'beta': 0.8})
    """
    path = Path(name) if str(name).endswith(".yaml") else paths.GRIDS / f"{name}.yaml"
    if not path.is_file() and str(name).endswith(".yaml"):
        raise FileNotFoundError(f"no file {name}")
    if not path.is_file():
        known = [p.stem for p in sorted(paths.GRIDS.glob("*.yaml"))]
        raise FileNotFoundError(f"no grid {str(name)!r}{closest(name, known, 'there are')}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no grid: book/use.md shows one")
        content |= {"name": path.stem, "path": str(path.absolute())}
        grid = validated(Grid, content, "a grid")
        check(grid)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return grid


def check(grid: Grid) -> None:
    """Refuse, before anything is trained, a cell that is no run and a metric that its run will not
    have.

    Raises:
        ValueError: there is such a cell; the message names its row.
    """
    if not (paths.NOTEBOOKS / f"{grid.notebook}.ipynb").is_file():
        raise ValueError(f"there is no notebook {grid.notebook!r}")
    if grid.table and not (paths.PAPERS / f"{grid.table}.csv").is_file():
        raise ValueError(f"data/papers has no table {grid.table!r}")
    places = [(cell.row, cell.column) for cell in grid.cells]
    for name, found in (("seeds", grid.seeds), ("cells", places)):
        if not found or len(set(found)) < len(found):
            raise ValueError(f"{name} must be distinct and at least one, got {found}")
    for cell in grid.cells:
        try:
            if not isinstance(cell.set.get("method"), str):
                raise ValueError(f"method must be named, got {cell.set.get('method')!r}")
            cell.row.format(seed=0)
            for seed in (min(grid.seeds), max(grid.seeds)):
                job = job_of(grid, cell, seed, {})
            known = [] if isinstance(job, Baseline) else names_of_scores(job.profile, job.recipe)
            if known and grid.metric not in known:
                hint = closest(grid.metric, known, "it has")
                raise ValueError(f"its run has no metric {grid.metric!r}{hint}")
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"row {cell.row!r}: {error}") from error


def job_of(grid: Grid, cell: Cell, seed: int, machine: Mapping[str, Any]) -> Job | Baseline:
    """What a cell trains or scores with a seed.

    Args:
        machine: device, folders and other fields of `RunSettings`.
    """
    own = {name: value for name, value in cell.set.items() if name != "method"}
    if cell.method not in UNTRAINED:
        return Job.of(grid.notebook, cell.method, grid.profile, **{**machine, **own, "seed": seed})
    if idle := sorted(own.keys() - (["model"] if cell.method in OF_AN_ENCODER else [])):
        raise ValueError(f"{cell.method} trains nothing and takes no {idle[0]}")
    data_dir, model = machine.get("data_dir"), own.get("model")
    return Baseline(grid.notebook, cell.method, profile_named(grid.profile), data_dir, model)


def train(
    grid: Grid, machine: Mapping[str, Any], say: Callable[[str], None], jobs: int = 1
) -> tuple[list[Member], list[str]]:
    """Train what is missing; a run that fails does not stop the others.

    Which runs stand behind which rows is kept in `outputs/grids.csv`.

    Args:
        machine: fields of `RunSettings`, for every run.
        say: is given one line a run.
        jobs: runs at once, each with its share of the cores.

    Raises:
        RuntimeError: one of several processes was killed.

    Returns:
        The finished runs, and one line for each that failed.
    """
    members: list[Member] = []
    failed = []
    work = [(grid, cell, seed, machine) for cell, seed in grid.runs()]
    outcomes: Any = ((item, _outcome(item)) for item in work)
    if jobs > 1:
        _parse_texts(grid, machine)
        gpus = 0 if machine.get("device") == "cpu" else torch.cuda.device_count()
        outcomes = at_once(_outcome, work, jobs, gpus)
    for (_, cell, seed, _), (run_id, line) in outcomes:
        if run_id is None:
            failed.append(line)
        else:
            same = [other for other in grid.cells if other.set == cell.set]
            found = [(grid.name, one.row.format(seed=seed), one.column, run_id) for one in same]
            add_members(found, paths.outputs())
            members += found
        if run_id is None or is_main_process():
            say(line)
    return members, failed


def _outcome(work: tuple[Grid, Cell, int, Mapping[str, Any]]) -> tuple[str | None, str]:
    """The id of a finished run, or None if it failed, and what there is to say of it.

    Among processes that train together a failure is raised and ends them all: they may not go on
    with different runs.
    """
    grid, cell, seed, machine = work
    name = f"{cell.row}, seed {seed}"
    try:
        fetch_configuration(cell.set.get("model"))
        job = job_of(grid, cell, seed, machine).with_text_at_hand()
        record = job.run() if isinstance(job, Baseline) else experiment.run_job(job)
        score = (record.metrics or {}).get(grid.metric)
    except Exception as error:
        if ProcessGroup.processes() > 1:
            raise
        return None, f"FAILED {name}: {type(error).__name__}: {' '.join(str(error).split())}"
    return record.id, f"{name}: {grid.metric} {'–' if score is None else f'{score:.2f}'}"


def _parse_texts(grid: Grid, machine: Mapping[str, Any]) -> None:
    """Parse, with all cores and once, what several runs of SDA are about to need."""
    parsed: list[object] = []
    for cell in grid.cells:
        job = job_of(grid, cell, grid.seeds[0], machine).with_text_at_hand()
        if not isinstance(job, Job) or job.steps == 0:
            continue
        text = (job.profile, job.recipe.parser)
        if text not in parsed and experiment.rewritten(job.recipe, job.sentences):
            parsed.append(text)


# --- tables of runs that are not committed


def collect(grid: Grid) -> pd.DataFrame:
    """The finished runs that a grid has trained or found, one line a row and seed, with `row` and
    `column`; `outputs/grids.csv` lists them. Runs of other seeds are left out, and those of other
    settings than their cell has today, of other `--max-steps`, say."""
    known, runs_of = committed.members(paths.outputs()), folder.collect()
    own = known[known["grid"] == grid.name].drop(columns="grid")
    if not len(own) or not len(runs_of):
        return pd.DataFrame(columns=["row", "column", "run_id", "seed", grid.metric])
    found = own.merge(runs_of, on="run_id")
    return found[[any(_fits(grid, c, run) for c in grid.cells) for run in found.to_dict("records")]]


def _fits(grid: Grid, cell: Cell, run: Mapping[Any, Any]) -> bool:
    """Whether a finished run of a grid is in a cell and has its settings."""
    place = cell.row.format(seed=run["seed"]), cell.column
    if place != (run["row"], run["column"]) or not (cell.ignores_seed or run["seed"] in grid.seeds):
        return False
    job = job_of(grid, cell, run["seed"], {})
    wanted = {n: value for n, value in cell.set.items() if n in ("corpus", "n_sentences")}
    if isinstance(job, Job):
        wanted |= {"profile": job.profile.name, "max_steps": job.steps}
        wanted |= job.recipe.in_use() | portable_parameters(job.recipe)
    return all(run.get(name) == value or pd.isna(run.get(name)) for name, value in wanted.items())


def scores_of(runs_of: pd.DataFrame, metric: str) -> pd.Series:
    """The metric of the runs that have it; NaN of one that collapsed."""
    found = runs_of.reindex(columns=[metric, "collapsed"])
    collapsed = [metric in str(names).split() for names in found["collapsed"]]
    return found.loc[found[metric].notna() | np.array(collapsed, bool), metric].astype(float)


def beside_paper(grid: Grid, runs_of: pd.DataFrame) -> pd.DataFrame:
    """The paper's figure and ours, one line a cell (Spearman × 100).

    Args:
        runs_of: as `collect` or `results.rows`.

    Returns:
        row, column, paper; n, the seeds with this metric; collapsed, how many of them are no
        number; mean and sd (n − 1) of the metric over all n, NaN where one collapsed.
    """
    printed = pd.DataFrame()
    if grid.table:
        path = paths.PAPERS / f"{grid.table}.csv"
        printed = pd.read_csv(path, dtype=str, keep_default_na=False).set_index("row_id")
    lines: list[dict[str, object]] = []
    for cell, seed in product(grid.cells, grid.seeds):
        row, column = cell.row.format(seed=seed), cell.column
        same = (runs_of["row"] == row) & (runs_of["column"] == column)
        ours = scores_of(runs_of[same], grid.metric)
        paper = float(printed.loc[row, column]) if column in printed else np.nan
        line = {"row": row, "column": column, "paper": round(grid.factor * paper, 2)}
        line |= {"n": len(ours), "collapsed": ours.isna().sum(), "mean": ours.mean(skipna=False)}
        lines.append({**line, "sd": ours.std(skipna=False)})
    return pd.DataFrame(lines).drop_duplicates(["row", "column"], ignore_index=True)
