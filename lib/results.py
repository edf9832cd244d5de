"""The committed results: `results/NOTEBOOK.csv`, one row a run on real data, and their histories,
one row a step.

Command line: `python -m lib runs collect NOTEBOOK` appends finished runs to both.
"""

import lzma
from collections.abc import Collection
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import files, grids, paths, runs
from lib.files import write_bytes, write_text
from lib.grids import Grid

OF_A_STEP = (
    "loss",
    "in_batch_accuracy",
    "positive_cosine",
    "other_cosine",
    "own_negative_cosine",
    "dev_score",
)


class Saved(NamedTuple):
    """A file of results after `save`: how many of its rows are new or have been replaced, and how
    many runs stayed out because the file of another notebook has them."""

    path: Path
    added: int
    replaced: int
    elsewhere: int

    def __str__(self) -> str:
        there = f", {self.elsewhere} in another notebook's file" if self.elsewhere else ""
        return f"{self.path}: {self.added} new, {self.replaced} replaced{there}"


def save(
    notebook: str,
    folder: Path | None = None,
    results: Path = paths.RESULTS,
    only: Collection[str] | None = None,
) -> Saved:
    """Merge the finished runs of `notebook` on real data into `results/<notebook>.csv`, one row a
    run, and their histories into `results/histories/<notebook>.csv.xz`.

    Runs of the mini profile stay out, all but the run ids of `only` if it is given, and those that
    the file of another notebook has: grids share runs (SimCSE stands beside every method), and each
    is committed once. A row whose run id is there already is replaced; the others stay.
    Processes that do so at once wait for each other.

    Raises:
        FileNotFoundError: there is no such run.
        ValueError: as `runs.collect`.
    """
    table = runs.collect(folder, notebook)
    if len(table):
        table = table[table["profile"] != "mini"]
        table = table if only is None else table[table["run_id"].isin(only)]
    if not len(table):
        raise FileNotFoundError(
            f"no finished run of {notebook} on real data under {folder or paths.outputs()}: "
            "run a grid of `workflow/grids/` first, `python -m lib grid NAME`"
        )
    path = results / f"{notebook}.csv"
    committed = table["run_id"].isin(_ids_of_others(notebook, results))
    table, elsewhere = table[~committed].dropna(axis=1, how="all"), int(committed.sum())
    if not len(table):
        return Saved(path, 0, 0, elsewhere)
    with files.locked(path):
        place = Path(folder or paths.outputs()) / notebook
        _save_histories([place / run_id for run_id in table["run_id"]], notebook, results)
        found, replaced = len(table), 0
        if path.exists():
            old = pd.read_csv(path)
            known = old["run_id"].isin(table["run_id"])
            replaced = int(known.sum())
            table = pd.concat([old[~known], table])
        write_table(path, table)
    return Saved(path, found - replaced, replaced, elsewhere)


def _ids_of_others(notebook: str, results: Path) -> set[str]:
    others = [path for path in results.glob("*.csv") if path.stem != notebook]
    return {run_id for path in others for run_id in pd.read_csv(path, usecols=["run_id"])["run_id"]}


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write the rows of a notebook, sorted by recipe, profile, steps and seed."""
    table = table.sort_values(["recipe", "profile", "max_steps", "seed", "run_id"], kind="stable")
    write_text(path, table.to_csv(index=False, float_format="%.8g"))


def every_run(results: Path = paths.RESULTS) -> pd.DataFrame:
    """The committed runs of all notebooks, one row a run; no row where nothing is committed."""
    found = [pd.read_csv(path) for path in sorted(results.glob("*.csv"))]
    nothing = pd.DataFrame(columns=["notebook", "run_id", "recipe", "seed", "profile"])
    return pd.concat(found, ignore_index=True) if found else nothing


def rows(grid: str | Grid, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The committed runs of a grid: one line a row and seed, as `grids.collect` gives it.

    A run counts for every grid that asks for it, whichever notebook it was trained for: the SimCSE
    beside UNA, SDA and ConSERT is one and the same.

    Args:
        grid: its name in `workflow/grids/`, or the grid.

    Example:
        >>> found = rows("una_small")
        >>> {"UNA, doubled", "SimCSE"} <= set(found["row"])
        True
        >>> set(found["notebook"]) == {"02_simcse", "04_una"}
        True
    """
    grid = grids.read(grid) if isinstance(grid, str) else grid
    return grids.collect(grid, every_run(results))


def steps(grid: str | Grid, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The steps of the committed runs of a grid: `row`, `seed` and the columns of `histories`, one
    line a row, seed and step."""
    grid = grids.read(grid) if isinstance(grid, str) else grid
    runs_of = rows(grid, results)[["row", "seed", "run_id", "notebook"]]
    kept = [histories(notebook, results) for notebook in runs_of["notebook"].unique()]
    taken = pd.concat(kept) if kept else histories(grid.notebook, results)
    return runs_of.drop(columns="notebook").merge(taken, on="run_id")


def histories(notebook: str, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The steps of the committed runs of a notebook: `run_id`, `step`, `OF_A_STEP`; empty where
    none were kept.

    `dev_score` stands in the steps that were scored alone; a cosine that a run did not measure is
    NaN.
    """
    path = _history_path(notebook, results)
    if not path.exists():
        return pd.DataFrame(columns=["run_id", "step", *OF_A_STEP])
    return pd.read_csv(StringIO(lzma.decompress(path.read_bytes()).decode()))


def _history_path(notebook: str, results: Path) -> Path:
    return results / "histories" / f"{notebook}.csv.xz"


def _save_histories(folders: list[Path], notebook: str, results: Path) -> None:
    """Merge the histories of trainings among these runs into the notebook's file."""
    steps = []
    for folder in folders:
        if (folder / "history.csv").exists():
            history = pd.read_csv(folder / "history.csv")
            if len(history) > 1:
                steps.append(history.assign(run_id=folder.name))
    if not steps:
        return
    new = pd.concat(steps).reindex(columns=["run_id", "step", *OF_A_STEP])
    old = histories(notebook, results)
    old = old[~old["run_id"].isin(new["run_id"])]
    table = (pd.concat([old, new]) if len(old) else new).sort_values(["run_id", "step"])
    text = table.to_csv(index=False, float_format="%.5g")
    path = _history_path(notebook, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, lzma.compress(text.encode(), preset=9))
