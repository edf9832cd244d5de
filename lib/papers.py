"""The book of results: every table of the papers beside our runs, what is covered, and files to use
elsewhere."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from lib import paths, runs
from lib.data.files import write_text
from lib.results import every_run
from lib.runs import grids
from lib.runs.grids import Grid

SEEDS = (42, 0, 1, 11, 15)
PROFILES = ("full", "small", "light", "mini")
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


def shown(grid: Grid, profile_name: str) -> Grid:
    """`sized`, without the rows of a RoBERTa below the papers' setting: our encoders there are
    BERTs, and no surrogate stands under a RoBERTa's name."""
    if profile_name == "full":
        return sized(grid, profile_name)
    cells = tuple(cell for cell in grid.cells if not _of_roberta(cell))
    return sized(replace(grid, cells=cells), profile_name)


def _of_roberta(cell: grids.Cell) -> bool:
    return "roberta" in f"{cell.set.get('model', '')} {cell.set['method']} {cell.row}".lower()


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


def export(table: pd.DataFrame, folder: Path, name: str, caption: str) -> list[Path]:
    """Write a table as `<name>.csv`, `.md` and `.tex` (which needs the LaTeX package booktabs) into
    a folder.

    Args:
        table: with its row labels as index; numbers have two decimals in Markdown and LaTeX, all of
            them in CSV.
        caption: first line of the Markdown, `\\caption` of the LaTeX.
    """
    shown = table.map(
        lambda v: ("–" if np.isnan(v) else f"{v:.2f}") if isinstance(v, float) else str(v)
    )
    header = ["", *map(str, shown.columns)]
    body = [
        [str(index), *row]
        for index, row in zip(shown.index, shown.to_numpy().tolist(), strict=True)
    ]
    lines = [header, ["---"] * len(header), *body]
    markdown = "\n".join(
        "| " + " | ".join(c.replace("|", "·") for c in line) + " |" for line in lines
    )
    plain = shown.replace(r"\|", "·", regex=True)
    escaped = re.sub(r"([%&_#$])", r"\\\1", caption)
    latex = (
        plain.to_latex(caption=escaped, label=f"tab:{name}", escape=True)
        .replace("±", r"$\pm$")
        .replace("–", "--")
    )
    files = {
        "csv": table.to_csv(),
        "md": f"{caption}\n\n{markdown}\n",
        "tex": latex.replace("·", r"$\cdot$"),
    }
    for suffix, text in files.items():
        write_text(folder / f"{name}.{suffix}", text)
    return [folder / f"{name}.{suffix}" for suffix in files]
