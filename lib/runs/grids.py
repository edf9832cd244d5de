"""Grids: the runs behind a table, as a file of notebook parameters.

`python -m lib grid NAME` trains what is missing of `workflow/grids/NAME.yaml`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml

from lib import paths
from lib.checked import closest
from lib.data import files
from lib.results.statistics import mean_sd
from lib.runs import folder
from lib.runs.baselines import METHODS, OF_AN_ENCODER, Baseline
from lib.runs.committing import Member
from lib.runs.experiment import record_of, rewritten, run_job
from lib.runs.folder import Run
from lib.runs.job import Job, bring
from lib.runs.profiles import profile
from lib.runs.scoring import names_of_scores
from lib.runs.workers import at_once
from lib.training.distributed import is_main_process

KEYS = ("source", "notebook", "profile", "metric", "seeds", "cells", "table", "factor", "common")
NEEDED = KEYS[:6]
CELL_KEYS = ("row", "column", "set")


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its place, and the notebook parameters that lead to it.

    Attributes:
        row, column: where the paper prints it (`row_id` and column of its CSV); a column that it
            does not print has no figure of the paper's. A grid of our own names its rows freely.
            `{seed}` in a row stands for the seed.
        set: parameters, without profile and seed.
    """

    row: str
    column: str
    set: Mapping[str, Any]

    @property
    def method(self) -> str:
        """The recipe, or the method without training."""
        return str(self.set["method"])

    @property
    def has_no_seed(self) -> bool:
        """Whether nothing is trained, so that all seeds are one run."""
        return self.method in METHODS or self.set.get("max_steps") == 0


@dataclass(frozen=True)
class Grid:
    """All cells of one table.

    Attributes:
        name: of its file, without ending.
        source: paper and table, or what a table of our own asks.
        notebook: whose parameters are set, and where the runs lie under `outputs/`.
        metric: which of a run's metrics belongs in the table.
        table: name of the paper's CSV in `data/papers/`, empty for a table of our own.
        factor: by which the paper's figure is multiplied to be Spearman × 100.
    """

    name: str
    source: str
    notebook: str
    profile: str
    metric: str
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    table: str = ""
    factor: float = 100.0
    common: Mapping[str, object] = field(default_factory=dict)
    path: Path = Path()

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of `workflow/grids`, at its own profile."""
        return self.path.parent == paths.GRIDS and self.name == self.path.stem

    @property
    def is_of_its_size(self) -> bool:
        """Whether a cell names a paper's recipe, whose size it has."""
        return any(cell.method.startswith("paper_") for cell in self.cells)

    def runs(self) -> Iterator[tuple[Cell, int]]:
        """Cell and seed of every run, seeds outermost; one that two cells share, or that has no
        seed, comes once."""
        for number, seed in enumerate(self.seeds):
            done: list[Mapping[str, object]] = []
            for cell in self.cells:
                if cell.set not in done and not (cell.has_no_seed and number):
                    done.append(cell.set)
                    yield cell, seed

    def at(self, profile_name: str, **parameters: object) -> "Grid":
        """This grid at another profile, with more parameters in all cells.

        What a cell names is used; a cell that names a paper's recipe has its size from there and
        is refused at another profile.

        Raises:
            ValueError: there is no such profile, or a cell has one of its own.
        """
        cells = tuple(replace(cell, set={**cell.set, **parameters}) for cell in self.cells)
        used = profile(profile_name or self.profile)
        if used.name == self.profile:
            return replace(self, cells=cells)
        for cell in cells:
            if cell.method.startswith("paper_"):
                raise ValueError(
                    f"{self.name}, row {cell.row!r}: {cell.method} is the paper's own setting, of"
                    f" profile {self.profile}; grids of {used.name} name the method alone, see"
                    " `workflow/grids/*_small.yaml`"
                )
        name = f"{self.name}@{used.name}"
        return replace(
            self, name=name, profile=used.name, metric=used.metric(self.metric), cells=cells
        )


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
    if not path.is_file():
        known = [p.stem for p in sorted(paths.GRIDS.glob("*.yaml"))]
        raise FileNotFoundError(
            f"no grid {str(name)!r}{closest(name, known) or ': there are ' + ', '.join(known)}"
        )
    try:
        return _parsed(path, yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _parsed(path: Path, content: object) -> Grid:
    """The grid that a file's content is.

    Raises:
        ValueError: a key is unknown, missing or of another type, or a cell leads to no run.
    """
    content = _keys("the file", content, KEYS, NEEDED)
    common = _values("common", content.pop("common", {}))
    column = content.pop("column", "")
    for name in ("source", "notebook", "profile", "metric"):
        if not isinstance(content[name], str):
            raise ValueError(f"{name} must be text (quote it), got {content[name]!r}")
    if not isinstance(content.get("factor", 1), int | float):
        raise ValueError(f"factor must be a number, got {content['factor']!r}")
    seeds = content.pop("seeds")
    if not isinstance(seeds, list) or not seeds or len(set(map(str, seeds))) != len(seeds):
        raise ValueError(f"seeds must be a list of distinct numbers, got {seeds!r}")
    if not isinstance(content["cells"], list) or not content["cells"]:
        raise ValueError("cells must be a list with at least one cell")
    cells = []
    for number, one in enumerate(content.pop("cells"), 1):
        known = _keys(f"cell {number}", one, CELL_KEYS, ("row",))
        own = {**common, **_values(f"cell {number}: set", known.get("set", {}))}
        cells.append(Cell(str(known["row"]), str(known.get("column", column)), own))
    places = [(cell.row, cell.column) for cell in cells]
    if twice := {place for place in places if places.count(place) > 1}:
        raise ValueError(f"{sorted(twice)} stands twice")
    grid = Grid(path.stem, **content, seeds=tuple(seeds), cells=tuple(cells), common=common)
    grid = replace(grid, path=path.absolute())
    check(grid)
    return grid


def _keys(where: str, content: object, known: tuple[str, ...], needed: tuple[str, ...]) -> dict:
    if not isinstance(content, dict):
        raise ValueError(f"{where}: keys and values expected, got {content!r}")
    for key in content:
        if key not in (*known, "column"):
            raise ValueError(f"{where}: unknown key {key!r}{closest(key, known)}")
    if missing := [key for key in needed if key not in content]:
        raise ValueError(f"{where}: the key {missing[0]!r} is missing")
    return dict(content)


def _values(where: str, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be keys and values, got {content!r}")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
            raise ValueError(f"{where}: {name} must be one value, got {value!r}")
    return content


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
    profile(grid.profile)
    for cell in grid.cells:
        try:
            if not isinstance(cell.set.get("method"), str):
                raise ValueError(f"method must be named, got {cell.set.get('method')!r}")
            cell.row.format(seed=0)
            for seed in grid.seeds if cell is grid.cells[0] else grid.seeds[:1]:
                _check_metric(grid.metric, job_of(grid, cell, seed, {}))
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"row {cell.row!r}: {error}") from error


def _check_metric(metric: str, job: Job | Baseline) -> None:
    if isinstance(job, Baseline):
        return
    known = names_of_scores(job.profile, job.recipe)
    if metric not in known:
        hint = closest(metric, known) or f": it has {', '.join(known)}"
        raise ValueError(f"its run has no metric {metric!r}{hint}")


def job_of(grid: Grid, cell: Cell, seed: int, machine: Mapping[str, Any]) -> Job | Baseline:
    """What a cell trains or scores with a seed.

    Args:
        machine: device, folders and other fields of `Settings`.
    """
    own = {name: value for name, value in cell.set.items() if name != "method"}
    if cell.method not in METHODS:
        return Job.of(grid.notebook, cell.method, grid.profile, seed=seed, **{**machine, **own})
    if idle := sorted(own.keys() - ({"model"} if cell.method in OF_AN_ENCODER else set())):
        raise ValueError(f"{cell.method} trains nothing and takes no {idle[0]}")
    data_dir, model = machine.get("data_dir"), own.get("model")
    return Baseline(grid.notebook, cell.method, profile(grid.profile), data_dir, model)


def train(
    grid: Grid, machine: Mapping[str, Any], say: Callable[[str], None], jobs: int = 1
) -> tuple[list[Member], list[str]]:
    """Train what is missing; a run that fails does not stop the others.

    Which runs stand behind which rows is kept in `outputs/grids/<name>.csv`.

    Args:
        machine: fields of `Settings`, for every run.
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
    if jobs > 1:
        parse_texts(grid, machine)
        gpus = 0 if machine.get("device") == "cpu" else torch.cuda.device_count()
        outcomes = at_once(_outcome, work, jobs, gpus)
    else:
        outcomes = ((item, _outcome(item)) for item in work)
    for (_, cell, seed, _), (run_id, line) in outcomes:
        if run_id is None:
            failed.append(line)
        else:
            found = _members(grid, cell, seed, run_id)
            enter(grid.name, found)
            members += found
        if run_id is None or is_main_process():
            say(line)
    return members, failed


def _members(grid: Grid, cell: Cell, seed: int, run_id: str) -> list[Member]:
    """The rows of the grid that this run stands behind."""
    same = [other for other in grid.cells if other.set == cell.set]
    return [(grid.name, one.row.format(seed=seed), one.column, run_id) for one in same]


def _outcome(work: tuple[Grid, Cell, int, Mapping[str, Any]]) -> tuple[str | None, str]:
    """The id of a finished run, or None if it failed, and what there is to say of it."""
    grid, cell, seed, machine = work
    name = f"{cell.row}, seed {seed}"
    try:
        if cell.set.get("model"):
            bring(cell.set["model"])
        record = _finished(job_of(grid, cell, seed, machine))
        score = (record.metrics or {}).get(grid.metric)
    except Exception as error:
        expected = isinstance(error, ValueError | OSError | ImportError)
        kind = "" if expected else f"{type(error).__name__}: "
        text = " ".join(str(error).split()) or type(error).__name__
        return None, f"FAILED {name}: {kind}{text}"
    return record.id, f"{name}: {grid.metric} {'–' if score is None else f'{score:.2f}'}"


def _finished(job: Job | Baseline) -> Run:
    at_hand = job.with_text_at_hand()
    return at_hand.run() if isinstance(at_hand, Baseline) else run_job(at_hand)


def parse_texts(grid: Grid, machine: Mapping[str, Any]) -> None:
    """Parse, with all cores and once, what several runs of SDA are about to need."""
    texts: dict[object, Job] = {}
    for cell in grid.cells:
        job = job_of(grid, cell, grid.seeds[0], machine)
        if isinstance(job, Baseline) or job.steps == 0:
            continue
        if "sda" in (job.recipe.positive, job.recipe.negative):
            job = job.with_text_at_hand()
            texts[job.profile.corpus, job.profile.n_sentences, job.recipe.parser] = job
    for job in texts.values():
        rewritten(job.recipe, job.sentences)


# --- tables of runs that are not committed


def members_path(name: str) -> Path:
    """Where the runs behind a grid's rows are listed."""
    return paths.outputs() / "grids" / f"{name}.csv"


def enter(name: str, found: list[Member]) -> None:
    """Add runs to a grid's list."""
    path = members_path(name)
    with files.locked(path):
        new = pd.DataFrame(found, columns=["grid", "row", "column", "run_id"])
        old = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else new[:0]
        files.write_text(path, pd.concat([old, new]).drop_duplicates().to_csv(index=False))


def collect(grid: Grid, machine: Mapping[str, Any]) -> pd.DataFrame:
    """The finished runs of a grid under `outputs/`, one line a row and seed, with `row` and
    `column`: those that the grid has trained, and those that a notebook has."""
    enter(grid.name, list(_found(grid, machine)))
    own = pd.read_csv(members_path(grid.name), dtype=str, keep_default_na=False)
    finished = folder.collect()
    if not len(own) or not len(finished):
        return pd.DataFrame(columns=["row", "column", "run_id", "seed", grid.metric])
    return own.drop(columns="grid").merge(finished, on="run_id")


def _found(grid: Grid, machine: Mapping[str, Any]) -> Iterator[Member]:
    """The runs of the grid that are finished here, by their ids."""
    for cell in grid.cells:
        try:
            record = _record(job_of(grid, cell, grid.seeds[0], machine).with_text_at_hand())
        except (OSError, ValueError):  # its text, sets or encoder are not here
            continue
        for seed in grid.seeds[:1] if cell.has_no_seed else grid.seeds:
            one = record.with_seed(record.seed if cell.has_no_seed else seed)
            if one.metrics is not None or one.elsewhere():
                yield grid.name, cell.row.format(seed=seed), cell.column, one.id


def _record(job: Job | Baseline) -> Run:
    return job.record() if isinstance(job, Baseline) else record_of(job)


def summary(collected: pd.DataFrame, metrics: Mapping[str, str]) -> pd.DataFrame:
    """One line a row of a grid: `seeds`, how many it has, and `mean_sd` of each metric over them.

    Args:
        collected: one line a row and seed, as `results.rows` gives it.
        metrics: the heading of each column, and the metric below it.

    Example:
        >>> runs_of = pd.DataFrame({"row": ["a", "a"], "seed": [0, 1], "score": [1.0, 2.0]})
        >>> summary(runs_of, {"STS": "score"}).to_dict("index")
        {'a': {'seeds': 2, 'STS': '1.50 ± 0.71'}}
    """
    lines: dict[str, dict[str, object]] = {}
    for row, part in collected.groupby("row", sort=False):
        lines[str(row)] = {"seeds": part["seed"].nunique()}
        for name, metric in metrics.items():
            lines[str(row)][name] = mean_sd(_scores(part, metric))
    return pd.DataFrame.from_dict(lines, orient="index", columns=["seeds", *metrics]).rename_axis(
        "row"
    )


def _scores(runs_of: pd.DataFrame, metric: str) -> pd.Series:
    """The metric of the runs that have it; NaN of one that collapsed."""
    if metric not in runs_of:
        return pd.Series(dtype=float)
    lost = runs_of.get("collapsed", pd.Series("", runs_of.index)).fillna("").astype(str)
    collapsed = [metric in names.split() for names in lost]
    return runs_of.loc[runs_of[metric].notna() | np.array(collapsed, bool), metric]


def beside_paper(grid: Grid, runs_of: pd.DataFrame) -> pd.DataFrame:
    """The paper's figure and ours, one line a cell (Spearman × 100).

    Args:
        runs_of: as `collect` or `results.rows`.

    Returns:
        row, column, paper; n, the seeds with this metric; collapsed, how many of them are no
        number; mean and sd (n − 1) of the metric over all n, NaN where one collapsed.
    """
    printed = None
    if grid.table:
        path = paths.PAPERS / f"{grid.table}.csv"
        printed = pd.read_csv(path, dtype=str, keep_default_na=False).set_index("row_id")
    lines: list[dict[str, object]] = []
    for cell in grid.cells:
        for row in dict.fromkeys(cell.row.format(seed=seed) for seed in grid.seeds):
            same = (runs_of["row"] == row) & (runs_of["column"] == cell.column)
            ours = _scores(runs_of[same], grid.metric).to_numpy(float)
            paper = math.nan
            if printed is not None and cell.column in printed:
                paper = round(grid.factor * float(printed.loc[row, cell.column]), 2)
            lines.append(
                {
                    "row": row,
                    "column": cell.column,
                    "paper": paper,
                    "n": len(ours),
                    "collapsed": int(np.isnan(ours).sum()),
                    "mean": ours.mean() if len(ours) else math.nan,
                    "sd": ours.std(ddof=1) if len(ours) > 1 else math.nan,
                }
            )
    return pd.DataFrame(lines)
