"""The tables of the papers beside our runs, as the site shows them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from lib import grids, paths
from lib.grids import Grid
from lib.papers import sized

PROFILES = ("full", "small", "light", "mini")


def shown(grid: Grid, profile_name: str) -> Grid:
    """`sized`, without the rows of a RoBERTa below the papers' setting: our encoders there are
    BERTs, and no surrogate stands under a RoBERTa's name."""
    if profile_name == "full":
        return sized(grid, profile_name)
    cells = tuple(cell for cell in grid.cells if not _of_roberta(cell))
    return sized(replace(grid, cells=cells), profile_name)


def _of_roberta(cell: grids.Cell) -> bool:
    return "roberta" in f"{cell.set.get('model', '')} {cell.set['method']} {cell.row}".lower()


def side_by_side(grid: Grid, results: pd.DataFrame) -> pd.DataFrame:
    """Every score of a printed table beside ours: one line a row and column.

    A grid whose metric is the seven tasks' mean gives each task, too, where the paper prints it.
    Spearman × 100.

    Returns:
        Columns of `grids.beside_paper`, and difference: our mean minus the paper's figure.
    """
    parts = [grids.beside_paper(grid, results)]
    if grid.table and "sts7_test_avg" in grid.metric:
        tasks = _tasks()
        printed = pd.read_csv(paths.PAPERS / f"{grid.table}.csv", dtype=str, nrows=0).columns
        whole = {cell.column for cell in grid.cells}
        for column in (c for c in printed if tasks.get(c, "avg") != "avg" and c not in whole):
            metric = grid.metric.replace("sts7_test_avg", f"{tasks[column]}_test_spearman")
            cells = tuple(grids.Cell(cell.row, column, cell.set) for cell in grid.cells)
            parts.append(grids.beside_paper(replace(grid, metric=metric, cells=cells), results))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(difference=table["mean"] - table["paper"])


@cache
def _tasks() -> dict[str, str]:
    names = pd.read_csv(paths.PAPERS / "columns.csv", dtype=str)
    return dict(zip(names["printed"], names["task"], strict=True))


def page(table: pd.DataFrame) -> pd.DataFrame:
    """A side-by-side table as it is read: rows × columns, each cell `paper | mean ± sd (n)`.

    Where a seed collapsed there is no mean: `paper | – (n, how many collapsed)`.

    Example:
        >>> line = {"row": "una", "column": "Avg.", "paper": 76.14, "n": 2, "mean": 75.5,
        ...     "sd": 0.25}
        >>> page(pd.DataFrame([line])).loc["una", "Avg."]
        '76.14 | 75.50 ± 0.25 (2)'
    """
    order = list(dict.fromkeys(table["column"]))
    cells = table.assign(cell=[_cell(line) for line in table.itertuples()])
    wide = cells.pivot_table(
        index="row", columns="column", values="cell", aggfunc="first", sort=False
    )
    return wide.reindex(columns=order).rename_axis(index=None, columns=None)


def _cell(line) -> str:
    paper = "–" if np.isnan(line.paper) else f"{line.paper:.2f}"
    if not line.n:
        return f"{paper} | –"
    if lost := int(getattr(line, "collapsed", 0)):
        return f"{paper} | – ({line.n}, {lost} collapsed)"
    spread = f" ± {line.sd:.2f}" if line.n > 1 else ""
    return f"{paper} | {line.mean:.2f}{spread} ({line.n})"
