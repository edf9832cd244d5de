"""Do the committed results still come out? Two rows drawn by date are trained again and compared.

Command line: `python -m tools.verify` (`make verify-results`), some minutes on a CPU; exit status 1
    if a row misses.
"""

import argparse
import datetime
import sys
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from lib import data, experiment, grids, identity, paths, results, runs, untrained
from lib.augment import sda
from lib.device import resolve_precision
from lib.grids import Cell, Grid

# Hashes that are in today's ids and that the runs of results version 1 did not take.
NOT_RECORDED = ("synonyms", "english")


def committed(
    prepared: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
) -> Iterator[tuple[Grid, Cell, pd.DataFrame]]:
    """Every cell of a grid that has rows in `results/`, with these rows; cells on one training text
    come together. `prepared` may change a table before it is looked at."""
    cells = []
    finished = prepared(results.every_run(paths.RESULTS))
    for path in sorted(paths.GRIDS.glob("*.yaml")):
        grid = grids.read(path)
        collected = grids.collect(grid, finished)
        for cell in grid.cells:
            names = {cell.row.format(seed=seed) for seed in grid.seeds}
            rows = collected[collected["row"].isin(names) & (collected["column"] == cell.column)]
            if len(rows):
                cells.append((grid, cell, rows))
    yield from sorted(cells, key=lambda one: str(one[2]["corpus"].iloc[0]))


def run_id(grid: Grid, cell: Cell, row: pd.Series, data_dir: str | None = None) -> str:
    """The id that the run of a row has with the data and the encoder as they are here.

    Of a row that was made under other rules than today's, the id is that of its own rules.
    """
    params, hashes, name = identity_of(grid, cell, row, data_dir)
    return runs.run_id(name, {"params": params, "data": hashes}, int(row["seed"]))


def identity_of(
    grid: Grid, cell: Cell, row: pd.Series, data_dir: str | None = None
) -> tuple[dict, dict, str]:
    """Parameters, hashes and recipe's name that the id of a row is made of."""
    method = str(cell.set["method"])
    if method in untrained.METHODS:
        record = untrained.record(grid.notebook, method, grid.profile, data_dir, cell.model)
        return dict(record.params), dict(record.data), record.recipe
    profile, recipe, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
    sentences = experiment.sentences_of(profile, data_dir) if steps != 0 else []
    lacking = NOT_RECORDED if row.get("results_version") == 1 else ()
    params, hashes = identity.of_run(
        profile, recipe, steps, sentences, data_dir, row["precision"], row["scoring"], lacking
    )
    if row.get("compile") is True or row.get("compile") == 1:
        params["compile"] = True
    if "rules" in hashes:
        hashes["rules"] = str(int(row["rules"]))
    return params, hashes, recipe.name


def is_of_today(row: pd.Series) -> bool:
    """Whether a run made now with the row's parameters has the row's id.

    Not so for rows of results version 1, whose runs did not record WordNet's files nor the lists of
    English words, if they depend on them; and for rows of other rules of SDA.
    """
    if row.get("results_version") == runs.RESULTS_VERSION:
        return pd.isna(row.get("rules")) or int(row["rules"]) == sda.VERSION
    return pd.isna(row.get("rules")) and row.get("synonyms") != "wordnet"


def is_at_hand(grid: Grid, cell: Cell, data_dir: str | None = None) -> bool:
    """Whether the training text of a cell's runs is here."""
    profile = experiment.resolve(grid.profile, **cell.set)[0]  # type: ignore[arg-type]
    try:
        return bool(data.corpus_files(profile.corpus, data_dir))
    except FileNotFoundError:
        return False


def draw(
    day: datetime.date, n: int = 2, seeds: int = 3, data_dir: str | None = None
) -> list[tuple[Grid, Cell, pd.Series, float]]:
    """`n` committed rows of trained runs, drawn by the date, each with the sd of its cell's metric
    over its seeds.

    Rows that cannot come out again are left out: those of other rules than today's, those whose
    training text is not here, and cells in which a seed collapsed. A run that cells of several
    grids share counts once.

    Args:
        seeds: fewest seeds of a cell whose spread is worth comparing with.
    """
    cells = [
        (grid, cell, rows)
        for grid, cell, rows in committed()
        if len(rows) >= seeds and rows[grid.metric].notna().all()
        if is_at_hand(grid, cell, data_dir)
    ]
    pairs = [
        (grid, cell, row, rows[grid.metric].std(ddof=1))
        for grid, cell, rows in cells
        for _, row in rows.iterrows()
        if is_of_today(row)
    ]
    pairs = list({pair[2]["run_id"]: pair for pair in pairs if pair[3] > 0}.values())
    drawn = np.random.default_rng(day.toordinal()).choice(
        len(pairs), size=min(n, len(pairs)), replace=False
    )
    return [pairs[i] for i in drawn]


def rerun(day: datetime.date, n: int = 2, data_dir: str | None = None) -> pd.DataFrame:
    """Train `n` rows again on the CPU, in a folder of their own, and compare: one line a row.

    They are trained in the precision that this processor has units for, which may be another than
    the row's.

    Returns:
        row, seed, run_id; `same id`, False where the data, the encoder or a rule has changed since;
        the precisions of both; recorded, again, seed sd, and `within`: whether they differ by no
        more than it.
    """
    lines = []
    for grid, cell, row, sd in draw(day, n, data_dir=data_dir):
        parameters = {name: value for name, value in cell.set.items() if name != "method"}
        id_today = run_id(grid, cell, row, data_dir)  # stops where the row's text is not here
        with tempfile.TemporaryDirectory() as folder:
            again = experiment.run(
                grid.notebook,
                str(cell.set["method"]),
                grid.profile,
                seed=int(row["seed"]),
                device="cpu",
                data_dir=data_dir,
                output_dir=folder,
                **parameters,  # type: ignore[arg-type]
            )
            value = float((again.metrics or {})[grid.metric])
        recorded = float(row[grid.metric])
        lines.append(
            {
                "row": f"{grid.notebook}: {row['row']}",
                "seed": int(row["seed"]),
                "run_id": id_today,
                "same id": id_today == row["run_id"],
                "precision": f"{row['precision']}, {resolve_precision('auto', 'cpu')}",
                "recorded": recorded,
                "again": value,
                "seed sd": sd,
                "within": abs(value - recorded) <= sd,
            }
        )
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison; exit 1 if a row has another id by now, or is not within its seed sd."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.verify", description="Train committed rows again."
    )
    parser.add_argument("--date", type=datetime.date.fromisoformat, default=datetime.date.today())
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--data-dir")
    options = parser.parse_args(arguments)
    try:
        table = rerun(options.date, options.rows, options.data_dir)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    if not len(table):
        sys.exit(
            f"nothing to verify: no cell of a grid has three seeds in {paths.RESULTS} and its"
            " training text here (`python -m lib data fetch`)"
        )
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    sys.exit(
        0 if (table["within"] & table["same id"]).all() else "a row does not come out as recorded"
    )


if __name__ == "__main__":
    main()
