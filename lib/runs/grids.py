"""Grids: the runs behind a table, as a file of notebook parameters.

`python -m lib grid NAME` trains what is missing of `workflow/grids/NAME.yaml`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import yaml
from pydantic import BeforeValidator, field_validator

from lib import paths
from lib.checked import Checked, closest, made, setting
from lib.data import files
from lib.results.statistics import mean_sd
from lib.runs import folder, inputs
from lib.runs.committing import Member
from lib.runs.experiment import new_encoder, rewritten, run_job
from lib.runs.job import Job, bring, profile
from lib.runs.scoring import METHODS, OF_AN_ENCODER, Baseline, names_of_scores
from lib.runs.workers import at_once
from lib.training.batches import Feed
from lib.training.forward import is_main_process
from lib.training.loop import fit

TRIED = 5  # steps that are timed


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
    def has_no_seed(self) -> bool:
        """Whether nothing is trained, so that all seeds are one run."""
        return self.method in METHODS or self.set.get("max_steps") == 0


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
    cells: list[Cell]
    table: str = ""
    factor: float = 100.0
    common: dict[str, Any] = setting({})
    column: str = ""

    @field_validator("cells", mode="before")
    @classmethod
    def _each(cls, cells: Any) -> Any:
        if not isinstance(cells, list):
            return cells
        return [made(Cell, cell, f"cell {number}") for number, cell in enumerate(cells, 1)]

    def changed(self, **fields: Any) -> "Grid":
        """A copy with other fields, unchecked."""
        return self.model_copy(update=fields)

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of `workflow/grids`, at its own profile."""
        return Path(self.path) == paths.GRIDS / f"{self.name}.yaml"

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

        What a cell names is used; a grid of the paper's own recipes has its size from there and is
        refused at another profile: those of other profiles name the method alone.

        Raises:
            ValueError: there is no such profile, or a cell has one of its own.
        """
        cells = [c.model_copy(update={"set": {**c.set, **parameters}}) for c in self.cells]
        used = profile(profile_name or self.profile)
        if used.name == self.profile:
            return self.changed(cells=cells)
        if self.is_of_its_size:
            raise ValueError(f"{self.name} is the paper's own setting, of profile {self.profile}")
        new = {"name": f"{self.name}@{used.name}", "metric": used.metric(self.metric)}
        return self.changed(**new, profile=used.name, cells=cells)


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
        hint = closest(name, known) or f": there are {', '.join(known)}"
        raise FileNotFoundError(f"no grid {str(name)!r}{hint}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            content |= {"name": path.stem, "path": str(path.absolute())}
        grid = made(Grid, content, "a grid")
        cells = [
            Cell(row=one.row, column=one.column or grid.column, set={**grid.common, **one.set})
            for one in grid.cells
        ]
        grid = grid.changed(cells=cells)
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
                _check_metric(grid.metric, job_of(grid, cell, seed, {}))
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"row {cell.row!r}: {error}") from error


def _check_metric(metric: str, job: Job | Baseline) -> None:
    known = [metric] if isinstance(job, Baseline) else names_of_scores(job.profile, job.recipe)
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
        return Job.of(grid.notebook, cell.method, grid.profile, **{**machine, **own, "seed": seed})
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
    outcomes: Any = ((item, _outcome(item)) for item in work)
    if jobs > 1:
        parse_texts(grid, machine)
        gpus = 0 if machine.get("device") == "cpu" else torch.cuda.device_count()
        outcomes = at_once(_outcome, work, jobs, gpus)
    for (_, cell, seed, _), (run_id, line) in outcomes:
        if run_id is None:
            failed.append(line)
        else:
            same = [other for other in grid.cells if other.set == cell.set]
            found = [(grid.name, one.row.format(seed=seed), one.column, run_id) for one in same]
            enter(grid.name, found)
            members += found
        if run_id is None or is_main_process():
            say(line)
    return members, failed


def _outcome(work: tuple[Grid, Cell, int, Mapping[str, Any]]) -> tuple[str | None, str]:
    """The id of a finished run, or None if it failed, and what there is to say of it."""
    grid, cell, seed, machine = work
    name = f"{cell.row}, seed {seed}"
    try:
        bring(cell.set.get("model"))
        job = job_of(grid, cell, seed, machine).with_text_at_hand()
        record = job.run() if isinstance(job, Baseline) else run_job(job)
        score = (record.metrics or {}).get(grid.metric)
    except Exception as error:
        return None, f"FAILED {name}: {type(error).__name__}: {' '.join(str(error).split())}"
    return record.id, f"{name}: {grid.metric} {'–' if score is None else f'{score:.2f}'}"


def parse_texts(grid: Grid, machine: Mapping[str, Any]) -> None:
    """Parse, with all cores and once, what several runs of SDA are about to need."""
    parsed: list[object] = []
    for cell in grid.cells:
        job = job_of(grid, cell, grid.seeds[0], machine).with_text_at_hand()
        if isinstance(job, Job) and job.steps != 0:
            text = (job.profile, job.recipe.parser)
            if text not in parsed and rewritten(job.recipe, job.sentences):
                parsed.append(text)


# --- before a training


def plan(grid: Grid, machine: Mapping[str, Any], say: Callable[[str], object]) -> pd.DataFrame:
    """One line a run of a grid that trains: what it lacks, else how long it takes here.

    Five steps of each recipe are trained, and some sentences scored, here and now. The parses and
    counts before the first step and the seven transfer tasks are not timed.

    Args:
        machine: data_dir, device.
        say: is told what is being timed.

    Returns:
        row, seed, recipe, steps, minutes; `missing`, sentences joined by "; ", empty if the run can
        start, else steps and minutes are NaN.

    Raises:
        ValueError, OSError: an encoder that is damaged.
    """
    paces: dict[object, tuple[float, float]] = {}
    lines = []
    for cell, seed in grid.runs():
        job = job_of(grid, cell, seed, machine)
        if isinstance(job, Baseline):
            continue
        line = {"row": cell.row.format(seed=seed), "seed": seed, "recipe": job.recipe.name}
        line["missing"] = "; ".join(filter(None, (one.missing() for one in job.inputs)))
        if not line["missing"]:
            job = job.with_text_at_hand()
            if (key := (repr(job.recipe), job.profile)) not in paces:
                say(f"timing {TRIED} steps of {cell.row}")
                paces[key] = _pace(job)
            line |= _cost(job, *paces[key])
        lines.append(line)
    columns = ["row", "seed", "recipe", "steps", "minutes", "missing"]
    return pd.DataFrame(lines).reindex(columns=columns)


def _pace(job: Job) -> tuple[float, float]:
    """Seconds of a training's step, and of a sentence that is scored; a positive or a negative that
    is rewritten text is as long as the text itself, which stands in its place."""
    text = job.sentences[: max(2_000, TRIED * job.recipe.batch_size)]
    encoder = new_encoder(job.recipe, seed=0)
    feed = Feed.of(text, job.recipe, encoder.tokenizer, 0, aligned=text, negated=text)
    device = job.settings.device
    seconds = fit(encoder, feed, max_steps=TRIED, eval_every=TRIED, device=device).seconds
    begun = time.perf_counter()
    encoder.encode(text[:256])
    return seconds / TRIED, (time.perf_counter() - begun) / len(text[:256])


def _cost(job: Job, step: float, score: float) -> dict[str, float]:
    """Steps and minutes of a run: training, dev scores, test scores of the best and of the last."""
    steps = job.recipe.steps(len(job.sentences)) if job.steps is None else job.steps
    sets = (inputs.graded(job.profile, split, job.settings.data_dir) for split in ("dev", "test"))
    dev, test = (2 * sum(map(len, of.values())) for of in sets)
    scored = (steps // job.recipe.eval_every + 1) * dev + 2 * test
    return {"steps": steps, "minutes": (steps * step + scored * score) / 60}


# --- tables of runs that are not committed


def enter(name: str, found: list[Member]) -> pd.DataFrame:
    """Add runs to the list of those behind a grid's rows, `outputs/grids/NAME.csv`."""
    path = paths.outputs() / "grids" / f"{name}.csv"
    with files.locked(path):
        new = pd.DataFrame(found, columns=["grid", "row", "column", "run_id"])
        old = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else new[:0]
        table = pd.concat([old, new]).drop_duplicates()
        files.write_text(path, table.to_csv(index=False))
    return table


def collect(grid: Grid, machine: Mapping[str, Any]) -> pd.DataFrame:
    """The finished runs of a grid under `outputs/`, one line a row and seed, with `row` and
    `column`: those that the grid has trained, and those that a notebook has."""
    own = enter(grid.name, list(_found(grid, machine)))
    finished = folder.collect()
    if not len(own) or not len(finished):
        return pd.DataFrame(columns=["row", "column", "run_id", "seed", grid.metric])
    return own.drop(columns="grid").merge(finished, on="run_id")


def _found(grid: Grid, machine: Mapping[str, Any]) -> Iterator[Member]:
    """The runs of the grid that are finished here, by their ids."""
    for cell in grid.cells:
        try:
            record = job_of(grid, cell, grid.seeds[0], machine).with_text_at_hand().record()
        except (OSError, ValueError):  # its text, sets or encoder are not here
            continue
        for seed in grid.seeds[:1] if cell.has_no_seed else grid.seeds:
            one = record if cell.has_no_seed else record.with_seed(seed)
            if one.elsewhere():
                yield grid.name, cell.row.format(seed=seed), cell.column, one.id


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
    rows = collected.groupby("row", sort=False)
    table = rows["seed"].nunique().to_frame("seeds")
    for name, metric in metrics.items():
        table[name] = [mean_sd(_scores(part, metric)) for _, part in rows]
    return table


def _scores(runs_of: pd.DataFrame, metric: str) -> pd.Series:
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
    for cell in grid.cells:
        for row in dict.fromkeys(cell.row.format(seed=seed) for seed in grid.seeds):
            same = (runs_of["row"] == row) & (runs_of["column"] == cell.column)
            ours = _scores(runs_of[same], grid.metric)
            line = {"row": row, "column": cell.column, "paper": np.nan, "n": len(ours)}
            if cell.column in printed:
                line["paper"] = round(grid.factor * float(printed.loc[row, cell.column]), 2)
            mean, sd = ours.mean(skipna=False), ours.std(skipna=False)
            lines.append({**line, "collapsed": ours.isna().sum(), "mean": mean, "sd": sd})
    return pd.DataFrame(lines)
