"""The tables of the papers as grids, and how far they have been run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from lib import grids, paths, runs
from lib.grids import Grid
from lib.results import every_run

SEEDS = (42, 0, 1, 11, 15)
_BACKBONE = re.compile(r"_(bert|roberta)(?=_una$|$)")
NO_TRAINING = {
    "una_table_a1": "counted in the tests of lib.data",
    "una_table_b2": "04_una, its own sentences",
    "sda_table_1": "05_sda, each rule on six sentences",
    "sda_table_2": "05_sda, share of sentences changed",
    "sda_text_jaccard": "05_sda, overlap of pairs",
    "consert_ext_table_2": "03_consert, sizes of the training sets",
    "consert_ext_table_3": "Table 9 in short",
    "consert_ext_table_4": "Table 10 in short",
    "consert_ext_table_5": "03_consert, best rates, from Figures 9 and 10",
    "una_text_stsb_dev": "Tables C4 to C6 and 2",
    "sda_figure_5": "best margins; the curves are grid sda_figure_5",
}


def finished(outputs: Path | None = None) -> pd.DataFrame:
    """Every finished run: the rows of `results/`, and the runs under `outputs`; one that is in both
    comes once."""
    committed, ours = every_run(paths.RESULTS), runs.collect(outputs)
    table = pd.concat([committed, ours], ignore_index=True) if len(ours) else committed
    return table.drop_duplicates("run_id", keep="last", ignore_index=True)


def papers_grids() -> dict[str, Grid]:
    """The grids that are tables of a paper, by name."""
    every_grid = {path.stem: grids.read(path) for path in sorted(paths.GRIDS.glob("*.yaml"))}
    return {
        name: grid
        for name, grid in every_grid.items()
        if grid.table or grid.profile in ("full", "chinese")
    }


def sized(grid: Grid, profile_name: str) -> Grid:
    """The grid at a profile, with five seeds where the paper has one; `full` is the paper's own
    setting."""
    seeds = grid.seeds if len(grid.seeds) > 1 else SEEDS
    return grid.at("" if profile_name == "full" else profile_name, seeds)


def coverage(results: pd.DataFrame) -> pd.DataFrame:
    """How far the papers' tables have been run: one line a grid.

    Cells that train the same, whatever their recipe is called, are one condition. On our encoders
    BERT's and RoBERTa's rows of a table train the same, so they are one condition there, too.

    Returns:
        table; `printed`, rows of the paper's file (NaN for a figure); `in the grid`, how many of
        them the grid has; `full`, of these with a run in the paper's setting; and for each of
        `small`, `light` and `mini` the distinct conditions that have a run of at least one seed,
        and `of small` …, how many the grid has: those that need text or an encoder which the
        profile lacks are counted, too.
    """
    known = grids.conditions_of(results)
    lines = []
    for name, grid in papers_grids().items():
        rows = {cell.row.format(seed=seed) for cell in grid.cells for seed in grid.seeds}
        file = paths.PAPERS / f"{grid.table}.csv"
        printed = set(pd.read_csv(file, dtype=str)["row_id"]) if grid.table else rows
        made = {c.row for c in grid.cells if grids.condition(grid, c) in known}
        line: dict[str, object] = {
            "table": name,
            "printed": len(printed) if grid.table else np.nan,
            "in the grid": len(rows & printed),
            "full": len(made),
        }
        for size in ("small", "light", "mini"):
            smaller = sized(grid, size)
            asked = {grids.condition(smaller, cell) for cell in smaller.cells}
            line |= {size: len(asked & known), f"of {size}": len(asked | _lacking(grid, smaller))}
        lines.append(line)
    return pd.DataFrame(lines)


def _lacking(grid: Grid, smaller: Grid) -> set[frozenset[tuple[str, object]]]:
    """The conditions of a grid that its smaller version leaves out, by their own parameters; one
    for both backbones where the smaller encoder would take the place of either."""
    kept = {(cell.row, cell.column) for cell in smaller.cells}
    found = set()
    for cell in grid.cells:
        if (cell.row, cell.column) in kept:
            continue
        values = dict(cell.set)
        if cell.smaller is not None:
            values.pop("model", None)
            values["method"] = _BACKBONE.sub("", str(values["method"]))
        found.add(frozenset(values.items()))
    return found


def unmade() -> pd.DataFrame:
    """Tables of the papers that are no grid of their own, and where their figures stand."""
    index = pd.read_csv(paths.PAPERS / "index.csv", dtype=str, keep_default_na=False)
    made = {grid.table for grid in papers_grids().values()}
    names = [name.removesuffix(".csv") for name in index["file"]]
    where = [NO_TRAINING.get(name, "not yet") for name in names]
    return pd.DataFrame({"table": names, "title": index["title"], "where": where})[
        [n not in made for n in names]
    ]
