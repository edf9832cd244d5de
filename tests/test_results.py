"""The committed results: histories beside the rows, and the files they are kept in."""

from pathlib import Path

import pandas as pd
import pytest

from lib import grids, paths, results, runs

STEPS = [
    {"step": 1, "loss": 4.75, "in_batch_accuracy": 0.25, "lr": 1e-4, "positive_cosine": 0.91},
    {"step": 2, "loss": 3.123456789, "in_batch_accuracy": 0.5, "lr": 0.0, "dev_score": 71.25},
]


def trained(
    folder: Path, seed: int, history: list[dict] | None = STEPS, notebook: str = "02_simcse"
) -> runs.Run:
    """A finished run with a history."""
    record = runs.Run(
        notebook, "small_simcse", seed, {"profile": "small", "max_steps": 2}, {}, folder
    )
    record.start()
    record.finish(
        {"sts7_test_avg_best": 60.0, "train_seconds": 3600.0, "dev_seconds": 1.0}, history
    )
    return record


def test_histories_are_kept_once_each(tmp_path):
    first, second = trained(tmp_path / "runs", 1), trained(tmp_path / "runs", 2)
    trained(tmp_path / "runs", 3, STEPS[:1])
    trained(tmp_path / "runs", 4, None)
    for _ in range(2):
        results.save("02_simcse", tmp_path / "runs", tmp_path)
    table = results.histories("02_simcse", tmp_path)
    assert table["run_id"].tolist() == sorted([first.id] * 2 + [second.id] * 2)
    assert table["loss"].tolist() == [4.75, 3.1235] * 2 and table["step"].tolist() == [1, 2] * 2
    assert table["dev_score"].isna().tolist() == [True, False] * 2
    assert table["positive_cosine"].isna().tolist() == [False, True] * 2
    assert list(table) == ["run_id", "step", *results.OF_A_STEP]
    trained(tmp_path / "runs", 2, [{**step, "loss": 1.0} for step in STEPS])
    results.save("02_simcse", tmp_path / "runs", tmp_path)
    again = results.histories("02_simcse", tmp_path).set_index("run_id")["loss"]
    assert (again[first.id] == [4.75, 3.1235]).all() and (again[second.id] == 1.0).all()


def test_the_same_histories_are_the_same_bytes(tmp_path):
    for place in ("a", "b"):
        trained(tmp_path / "runs", 1)
        results.save("02_simcse", tmp_path / "runs", tmp_path / place)
    a, b = (tmp_path / place / "histories" / "02_simcse.csv.xz" for place in ("a", "b"))
    assert a.read_bytes() == b.read_bytes()


def test_a_run_that_two_notebooks_trained_is_committed_once(tmp_path):
    for notebook, seeds in (("02_simcse", (1, 2)), ("04_una", (2, 3))):
        for seed in seeds:
            trained(tmp_path / "runs", seed, notebook=notebook)
    first = results.save("02_simcse", tmp_path / "runs", tmp_path)
    second = results.save("04_una", tmp_path / "runs", tmp_path)
    assert first[1:] == (2, 0, 0) and second[1:] == (1, 0, 1)
    assert str(second).endswith("1 new, 0 replaced, 1 in another notebook's file")
    assert results.every_run(tmp_path)["seed"].tolist() == [1, 2, 3]
    assert results.histories("04_una", tmp_path)["run_id"].nunique() == 1
    again = results.save("02_simcse", tmp_path / "runs", tmp_path)
    assert again[1:] == (0, 2, 0)


def test_runs_that_are_all_in_other_files_write_none(tmp_path):
    for notebook in ("02_simcse", "04_una"):
        trained(tmp_path / "runs", 1, notebook=notebook)
        results.save(notebook, tmp_path / "runs", tmp_path)
    assert [path.name for path in tmp_path.glob("*.csv")] == ["02_simcse.csv"]


def test_a_row_has_the_runs_of_every_notebook():
    """SimCSE is trained for one notebook and stands in the grids of all."""
    simcse = results.rows("simcse_small").query("row == 'SimCSE'")
    assert simcse["seed"].nunique() == 5
    for name in ("consert_small", "una_small", "sda_small", "quoted_small"):
        grid = grids.read(name)
        assert grid.notebook != "02_simcse"
        rows = results.rows(grid).query("row == 'SimCSE'")
        assert rows["run_id"].tolist() == simcse["run_id"].tolist(), name
        taken = results.steps(grid).query("row == 'SimCSE'")
        assert set(taken["seed"]) == set(simcse["seed"]) and taken["loss"].notna().all()


def test_no_histories_are_an_empty_table(tmp_path):
    assert len(results.histories("02_simcse", tmp_path)) == 0


@pytest.mark.parametrize("path", sorted(paths.RESULTS.glob("*.csv")), ids=lambda path: path.stem)
def test_committed_histories_are_of_committed_runs(path):
    table, steps = pd.read_csv(path), results.histories(path.stem)
    last = steps.groupby("run_id")["step"].agg(["size", "max"])
    assert set(last.index) <= set(table["run_id"]) and (last["size"] == last["max"]).all()
    taken = table.set_index("run_id")["steps"] if "steps" in table else pd.Series(dtype=float)
    assert (taken.reindex(last.index) == last["max"]).all()


def test_only_trainings_of_the_first_version_lack_a_history():
    table = results.every_run()
    trained_ones = table[table["steps"] > 0]
    kept = {run for name in table["notebook"].unique() for run in results.histories(name)["run_id"]}
    lacking = trained_ones[~trained_ones["run_id"].isin(kept)]
    assert set(lacking["results_version"]) == {1} and kept <= set(trained_ones["run_id"])
    assert (trained_ones["results_version"] == 1).sum() == len(lacking)
