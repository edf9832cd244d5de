"""Finished runs on real data become committed results."""

import lzma
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import paths
from lib.data import files
from lib.results import committed
from lib.runs import folder

Member = tuple[str, str, str, str]  # grid, row, column, run id


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
    outputs: Path | None = None,
    results: Path = paths.RESULTS,
    only: Collection[str] | None = None,
) -> Saved:
    """Merge the finished runs of `notebook` on real data into `results/<notebook>.csv`, one row a
    run, and their histories into `results/histories/<notebook>.csv.xz`.

    Runs of the mini profile stay out, all but the run ids of `only` if it is given, and those that
    the file of another notebook has: grids share runs, and each is committed once. A row whose run
    id is there already is replaced; the others stay. Processes that do so at once wait for each
    other.

    Raises:
        FileNotFoundError: there is no such run.
        ValueError: as `folder.collect`.
    """
    table = folder.collect(outputs, notebook)
    if len(table):
        table = table[table["profile"] != "mini"]
        table = table if only is None else table[table["run_id"].isin(only)]
    if not len(table):
        raise FileNotFoundError(
            f"no finished run of {notebook} on real data under {outputs or paths.outputs()}: "
            "run a grid of `workflow/grids/` first, `python -m lib grid NAME`"
        )
    path = results / f"{notebook}.csv"
    known_elsewhere = table["run_id"].isin(_ids_of_others(notebook, results))
    table, elsewhere = table[~known_elsewhere].dropna(axis=1, how="all"), int(known_elsewhere.sum())
    if not len(table):
        return Saved(path, 0, 0, elsewhere)
    with files.locked(path):
        place = Path(outputs or paths.outputs()) / notebook
        _save_histories([place / run_id for run_id in table["run_id"]], notebook, results)
        found, replaced = len(table), 0
        if path.exists():
            old = pd.read_csv(path, low_memory=False)
            known = old["run_id"].isin(table["run_id"])
            replaced = int(known.sum())
            table = pd.concat([old[~known], table])
        order = ["recipe", "profile", "max_steps", "seed", "run_id"]
        table = table.sort_values(order, kind="stable")
        files.write_text(path, table.to_csv(index=False, float_format="%.8g"))
    return Saved(path, found - replaced, replaced, elsewhere)


def save_everywhere(only: Collection[str], outputs: Path | None = None) -> list[Saved]:
    """`save` for these runs, whichever notebooks' folders they lie in."""
    table = folder.collect(outputs)
    notebooks = sorted(set(table.loc[table["run_id"].isin(only), "notebook"]))
    return [save(notebook, outputs, only=only) for notebook in notebooks]


def add_members(found: Iterable[Member], results: Path = paths.RESULTS) -> None:
    """Enter the runs of a grid's rows; a row's run of the same id is entered once."""
    path = results / committed.MEMBERS
    with files.locked(path):
        new = pd.DataFrame(list(found), columns=["grid", "row", "column", "run_id"])
        table = pd.concat([committed.members(results), new]).drop_duplicates()
        table = table.sort_values("grid", kind="stable")
        files.write_text(path, table.to_csv(index=False))


def _ids_of_others(notebook: str, results: Path) -> set[str]:
    others = [path for path in committed.files(results) if path.stem != notebook]
    return {run_id for path in others for run_id in pd.read_csv(path, usecols=["run_id"])["run_id"]}


def _save_histories(folders: list[Path], notebook: str, results: Path) -> None:
    """Merge the histories of trainings among these runs into the notebook's file."""
    steps = []
    for place in folders:
        if (place / "history.csv").exists():
            history = pd.read_csv(place / "history.csv")
            if len(history) > 1:
                steps.append(history.assign(run_id=place.name))
    if not steps:
        return
    new = pd.concat(steps).reindex(columns=["run_id", "step", *committed.OF_A_STEP])
    old = committed.histories(notebook, results)
    old = old[~old["run_id"].isin(new["run_id"])]
    table = (pd.concat([old, new]) if len(old) else new).sort_values(["run_id", "step"])
    text = table.to_csv(index=False, float_format="%.5g")
    path = committed.history_path(notebook, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_bytes(path, lzma.compress(text.encode(), preset=9))


def members_at_hand(outputs: Path | None = None, results: Path = paths.RESULTS) -> list[Member]:
    """The rows of shipped grids behind which committed runs stand, as `outputs/grids/` has them."""
    known = set(committed.every_run(results)["run_id"])
    shipped = {path.stem for path in paths.GRIDS.glob("*.yaml")}
    found: list[Member] = []
    for path in sorted((Path(outputs or paths.outputs()) / "grids").glob("*.csv")):
        if path.stem in shipped:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            found += [
                (line[0], line[1], line[2], line[3])
                for line in table.itertuples(index=False)
                if line[3] in known
            ]
    return found
