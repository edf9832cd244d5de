"""Carry the rows of the former profile `small` over to `light`, its name today: prove each id by
the former rule, then write it by today's.

Command line: `python -m tools.carry_over` (CSE_DATA=folder of the sets). `light` is what `small`
was: mini-BERT on real data. A row keeps its numbers and gets the name of its profile (in the name
of its recipe, too, if it is a method without training) and the id that follows from it. A row whose
id does not come out by the former rule stops the script before anything is written.
"""

import sys

import pandas as pd

from lib import paths, results, runs
from lib.grids import Cell, Grid
from lib.untrained import METHODS
from tools import verify

FORMER, TODAY = "small", "light"


def former_id(grid: Grid, cell: Cell, row: pd.Series) -> str:
    """The id that the row had under the former name of its profile."""
    params, hashes, recipe = verify.identity_of(grid, cell, row)
    recipe = recipe.replace(f"{TODAY}_", f"{FORMER}_", 1)
    return runs.run_id(
        recipe, {"params": params | {"profile": FORMER}, "data": hashes}, int(row["seed"])
    )


def main() -> int:
    """Prove all rows, then write all files."""
    tables = {path: pd.read_csv(path) for path in sorted(paths.RESULTS.glob("*.csv"))}
    ids: dict[str, str] = {}
    for grid, cell, rows in verify.committed(renamed):
        for _, row in rows.iterrows():
            if former_id(grid, cell, row) != row["run_id"]:
                raise SystemExit(f"{grid.notebook}: {row['run_id']} is not the id of its row")
            ids[row["run_id"]] = verify.run_id(grid, cell, row)
    for path, table in tables.items():
        table = renamed(table)
        if lost := set(table.loc[table["profile"] == TODAY, "run_id"]) - set(ids):
            raise SystemExit(f"{path}: no grid has {', '.join(sorted(lost))}")
        table["run_id"] = table["run_id"].map(lambda name: ids.get(name, name))
        results.write_table(path, table)
    print(f"{len(ids)} rows")
    return 0


def renamed(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the profile's name of today."""
    methods = {f"{FORMER}_{name}": f"{TODAY}_{name}" for name in METHODS}
    return table.assign(
        profile=table["profile"].replace(FORMER, TODAY), recipe=table["recipe"].replace(methods)
    )


if __name__ == "__main__":
    sys.exit(main())
