"""The committed results: every row has its grid and its id, and rows drawn by date come out
again."""

import datetime
import statistics

import numpy as np
import pandas as pd
import pytest

from lib import paths, results, runs
from lib.augment import sda
from tools import verify

DAY = datetime.date(2026, 1, 1)


@pytest.fixture(scope="module")
def every() -> list:
    """All committed cells with their rows, read once."""
    return list(verify.committed())


@pytest.fixture
def committed(every, monkeypatch) -> list:
    monkeypatch.setattr(verify, "committed", lambda: iter(every))
    return every


@pytest.mark.real_data
def test_every_run_id_is_that_of_its_row(every) -> None:
    for grid, cell, rows in every:
        for _, row in rows.iterrows():
            assert verify.run_id(grid, cell, row) == row["run_id"], (grid.source, cell.row)


def test_every_committed_run_is_taken_by_a_grid(every) -> None:
    """One that no grid takes was made twice, or its cell is gone."""
    ids = results.every_run()["run_id"]
    assert ids.is_unique, "a run is committed by one notebook"
    rest = set(ids)
    assert len(rest) > 250
    for _, _, rows in every:
        rest -= set(rows["run_id"])
    assert not rest


def test_every_committed_row_says_what_it_was_made_under() -> None:
    rows = results.every_run()
    trained = rows[rows["backbone"].notna()]
    assert (
        rows["results_version"].isin(range(1, runs.RESULTS_VERSION + 1)).all()
        and rows["run_id"].is_unique
    )
    assert (
        trained["precision"].isin(["fp32", "bf16"]).all()
        and trained["scoring"].isin(["fp32", "bf16"]).all()
    )
    assert (trained["rules"].notna() == trained["parser"].notna()).all()


@pytest.fixture
def all_texts(monkeypatch) -> None:
    monkeypatch.setattr(verify, "is_at_hand", lambda grid, cell, data_dir=None: True)


@pytest.mark.usefixtures("all_texts")
def test_the_rows_are_drawn_by_the_date(committed) -> None:
    one, same, other = (verify.draw(datetime.date(2026, 1, day)) for day in (1, 1, 2))
    ids = [[row["run_id"] for _, _, row, _ in drawn] for drawn in (one, same, other)]
    assert ids[0] == ids[1] != ids[2] and len(ids[0]) == 2
    for grid, cell, row, sd in one:
        (scores,) = (rows[grid.metric] for g, c, rows in committed if g == grid and c == cell)
        assert sd == pytest.approx(statistics.stdev(scores)) and row[grid.metric] in set(scores)


@pytest.mark.usefixtures("all_texts")
def test_only_rows_that_can_come_out_again_are_drawn(committed) -> None:
    drawn = verify.draw(DAY, n=10_000)
    assert all(sd > 0 for _, _, _, sd in drawn), "a cell without spread has nothing to compare with"
    rows = [row for _, _, row, _ in drawn]
    assert len(rows) > 200 and not any(row.get("synonyms") == "wordnet" for row in rows)
    assert all(pd.isna(row.get("rules")) or row["rules"] == sda.VERSION for row in rows)
    row = {"results_version": runs.RESULTS_VERSION, "rules": sda.VERSION}
    assert verify.is_of_today(pd.Series(row))
    assert not verify.is_of_today(pd.Series(row | {"rules": sda.VERSION - 1}))


def test_rows_whose_text_is_not_here_are_not_drawn(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    assert verify.draw(DAY) == []
    (tmp_path / "wiki1m_for_simcse.txt").write_text("One sentence of a text.\n")
    texts = {row["corpus"] for _, _, row, _ in verify.draw(DAY, n=10_000, data_dir=str(tmp_path))}
    assert texts == {"wiki1m_head"}


def recorded(monkeypatch, one_id, shift=0.0):
    """The drawn rows are trained again: their metric moved by a share of the sd, their id this one
    or their own."""
    drawn = iter(verify.draw(DAY))

    def run(notebook, method, profile, *, seed, device, **given):
        grid, _, row, sd = next(drawn)
        assert (seed, device) == (row["seed"], "cpu")
        return type("Again", (), {"metrics": {grid.metric: row[grid.metric] + shift * sd}})

    monkeypatch.setattr(verify.experiment, "run", run)
    monkeypatch.setattr(verify, "run_id", lambda grid, cell, row, data_dir: one_id or row["run_id"])


@pytest.mark.usefixtures("all_texts")
@pytest.mark.parametrize("shift", [-1.1, 0.0, 0.9, 1.1, np.nan])
def test_a_row_is_within_its_sd_or_told(committed, monkeypatch, capsys, shift) -> None:
    recorded(monkeypatch, None, shift)
    with pytest.raises(SystemExit) as end:
        verify.main(["--date", str(DAY)])
    assert (end.value.code == 0) == (abs(shift) < 1)
    assert "recorded" in capsys.readouterr().out


@pytest.mark.usefixtures("all_texts")
def test_a_row_with_another_id_is_told(committed, monkeypatch) -> None:
    recorded(monkeypatch, "another")
    with pytest.raises(SystemExit, match="does not come out"):
        verify.main(["--date", str(DAY)])


def test_nothing_to_verify_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match="nothing to verify"):
        verify.main([])
