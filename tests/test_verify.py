"""The committed results: every row has its grid and its id, and rows drawn by date come out again."""

import datetime

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


@pytest.mark.parametrize("shift", [0.0, 0.9, 1.1])
def test_a_row_is_within_its_sd_or_told(monkeypatch, capsys, shift) -> None:
    day = datetime.date(2026, 1, 1)
    drawn = iter(verify.draw(day))

    def run(notebook, method, profile, *, seed, **given):
        grid, _, row, sd = next(drawn)
        metrics = {grid.metric: row[grid.metric] + shift * sd}
        return type("Again", (), {"id": row["run_id"], "metrics": metrics})

    monkeypatch.setattr(verify.experiment, "run", run)
    with pytest.raises(SystemExit) as end:
        verify.main(["--date", str(day)])
    assert (end.value.code == 0) == (shift < 1)
    assert "recorded" in capsys.readouterr().out


def test_a_row_with_another_id_is_told(monkeypatch) -> None:
    day = datetime.date(2026, 1, 1)
    drawn = iter(verify.draw(day))

    def run(notebook, method, profile, *, seed, **given):
        grid, _, row, _ = next(drawn)
        return type("Again", (), {"id": "another", "metrics": {grid.metric: row[grid.metric]}})

    monkeypatch.setattr(verify.experiment, "run", run)
    with pytest.raises(SystemExit, match="does not come out"):
        verify.main(["--date", str(day)])


def test_nothing_to_verify_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match="nothing to verify"):
        verify.main([])
