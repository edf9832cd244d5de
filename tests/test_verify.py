"""The committed results: every row has its grid and its id, and rows drawn by date come out again."""

import datetime

import numpy as np
import pandas as pd
import pytest

from lib import paths
from workflow import verify


@pytest.mark.real_data
def test_every_run_id_is_that_of_its_row() -> None:
    rest = {path.stem: set(pd.read_csv(path)["run_id"]) for path in paths.RESULTS.glob("*.csv")}
    assert sum(map(len, rest.values())) > 250
    for grid, cell, rows in verify.committed():
        for row in rows.itertuples():
            assert verify.run_id(grid, cell, row.seed) == row.run_id, (grid.source, cell.row)
            rest[grid.notebook].discard(row.run_id)
    assert not any(rest.values()), rest


def test_the_rows_are_drawn_by_the_date() -> None:
    one, same, other = (verify.draw(datetime.date(2026, 1, day)) for day in (1, 1, 2))
    ids = [[row["run_id"] for _, _, row, _ in drawn] for drawn in (one, same, other)]
    assert ids[0] == ids[1] != ids[2] and len(ids[0]) == 2
    assert all(sd > 0 and row[grid.metric] > 0 for grid, _, row, sd in one)


def test_a_row_that_does_not_come_out_is_told(monkeypatch, capsys) -> None:
    class Again:
        id, metrics = "x", None

    def run(notebook, method, profile, *, seed, **given):
        Again.metrics = dict.fromkeys(("sts7_test_avg_last", "sts7_test_avg_best", "avg_transfer_best"), 0.0)
        return Again

    monkeypatch.setattr(verify.experiment, "run", run)
    table = verify.rerun(datetime.date(2026, 1, 1))
    assert not table["within"].any() and not table["same id"].any()
    with pytest.raises(SystemExit, match="does not come out"):
        verify.main(["--date", "2026-01-01"])
    assert "recorded" in capsys.readouterr().out
    assert np.isfinite(table["seed sd"]).all()
