"""Finished runs as rows of `results/`."""

import lzma
from collections.abc import Collection, Iterable
from pathlib import Path

import pandas as pd

from lib import paths
from lib.data import files
from lib.results import committed
from lib.runs import folder

Member = tuple[str, str, str, str]  # grid, row, column, run id


def save(notebook: str, outputs=None, results: Path = paths.RESULTS, only=None) -> Path:
    """Merge the finished runs of `notebook` on real data into `results/<notebook>.csv`, one row a
    run, and their histories into `results/histories/<notebook>.csv.xz`.

    Runs of the mini profile stay out, all but the run ids of `only` if it is given, and those that
    the file of another notebook has: grids share runs, and each is committed once. A row whose run
    id is there already is replaced; the others stay. Processes that do so at once wait for each
    other.

    Args:
        outputs: folder of the runs (default `paths.outputs()`); results: folder to write to.

    Raises:
        ValueError: as `folder.collect`.
    """
    path, every = results / f"{notebook}.csv", committed.every_run(results)
    table = folder.collect(outputs, notebook)
    if not len(table):
        return path
    table = table.query("profile != 'mini'")
    table = table if only is None else table[table["run_id"].isin(only)]
    table = table[~table["run_id"].isin(every.loc[every["notebook"] != notebook, "run_id"])]
    if not len(table):
        return path
    table = table.dropna(axis=1, how="all")
    with files.locked(path):
        place = Path(outputs or paths.outputs()) / notebook
        _save_histories([place / run_id for run_id in table["run_id"]], notebook, results)
        if path.exists():
            old = pd.read_csv(path, low_memory=False)
            table = pd.concat([old[~old["run_id"].isin(table["run_id"])], table])
        order = ["recipe", "profile", "max_steps", "seed", "run_id"]
        table = table.sort_values(order, kind="stable")
        files.write_text(path, table.to_csv(index=False, float_format="%.8g"))
    return path


def save_grid(found: Collection[Member]) -> list[Path]:
    """Commit the runs behind a grid's rows, whichever notebooks' folders they lie in."""
    only = {run_id for *_, run_id in found}
    table = folder.collect().query("run_id in @only")
    written = [save(notebook, only=only) for notebook in sorted(set(table["notebook"]))]
    add_members(found)
    return written


def add_members(found: Iterable[Member], results: Path = paths.RESULTS) -> None:
    """Enter the runs of a grid's rows in the `grids.csv` of a folder, each once."""
    path = results / committed.MEMBERS
    with files.locked(path):
        new = pd.DataFrame(list(found), columns=["grid", "row", "column", "run_id"])
        table = pd.concat([committed.members(results), new]).drop_duplicates()
        table = table.sort_values("grid", kind="stable")
        files.write_text(path, table.to_csv(index=False))


def _save_histories(folders: list[Path], notebook: str, results: Path) -> None:
    """Merge the histories of trainings among these runs into the notebook's file."""
    found = [place / "history.csv" for place in folders if (place / "history.csv").exists()]
    steps = [pd.read_csv(path).assign(run_id=path.parent.name) for path in found]
    if not (steps := [history for history in steps if len(history) > 1]):
        return
    new = pd.concat(steps).reindex(columns=["run_id", "step", *committed.OF_A_STEP])
    old = committed.histories(notebook, results)
    old = old[~old["run_id"].isin(new["run_id"])]
    table = (pd.concat([old, new]) if len(old) else new).sort_values(["run_id", "step"])
    text = table.to_csv(index=False, float_format="%.5g")
    path = committed.history_path(notebook, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_bytes(path, lzma.compress(text.encode(), preset=9))
