"""The committed results: frozen rows, the runs behind a grid's rows, and histories."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from lib import data, paths, results
from lib.runs import finished
from lib.runs.folder import Run
from lib.training.recipe import recipe
from tools import results_pages, verify

STEPS = [
    {"step": 1, "loss": 4.75, "in_batch_accuracy": 0.25, "lr": 1e-4, "positive_cosine": 0.91},
    {"step": 2, "loss": 3.123456789, "in_batch_accuracy": 0.5, "lr": 0.0, "dev_score": 71.25},
]
EVERY = results.every_run()
FILES = sorted(paths.RESULTS.glob("[0-9]*.csv"))


def trained(folder, seed: int, history=STEPS, notebook: str = "02_simcse") -> Run:
    """A finished run with a history."""
    params = {"profile": "small", "max_steps": 2}
    record = Run(notebook, "small_simcse", seed, params, {}, folder)
    record.start(resolved=recipe("small_simcse").values())
    record.finish({"sts7_test_avg_best": 60.0, "train_seconds": 3600.0}, history)
    return record


def test_the_id_of_every_committed_run_follows_from_its_row() -> None:
    """So a row carries all that its numbers depend on, and no default of today has a part in it."""
    assert len(EVERY) >= 747
    for row in EVERY.to_dict("records"):
        assert verify.id_of(row) == row["run_id"]


@pytest.mark.parametrize("n", [4, None])
def test_a_run_is_trained_again_on_its_own_draw_or_on_all_of_its_corpus_in_order(n) -> None:
    row = EVERY[EVERY["max_steps"] > 0].iloc[0].to_dict() | {"corpus": "mini"}
    job = verify.job_of(row | {"n_sentences": float(n or len(data.corpus("mini")))})
    assert job.profile.n_sentences == n


def test_every_row_of_a_grid_is_a_committed_run() -> None:
    known = results.members()
    assert set(known["run_id"]) <= set(EVERY["run_id"]) and not known.duplicated().any()
    one_seed = results.rows("una_light").groupby(["row", "column", "seed"]).size()
    assert (one_seed == 1).all()


def test_the_pages_are_those_of_the_rows() -> None:
    for name, text in zip(("README.md", "rows.md"), results_pages.pages(), strict=True):
        assert (paths.RESULTS / name).read_text(encoding="utf-8") == text, "run `make table`"


def test_reading_results_needs_no_training_stack() -> None:
    code = "import sys, lib.results; lib.results.rows('una_light'); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=paths.ROOT
    )
    assert done.stdout.strip() == "False", done.stderr


def test_a_grid_without_runs_is_told_what_there_is() -> None:
    with pytest.raises(ValueError, match="there is no grid 'una_lite'; committed are runs of"):
        results.rows("una_lite")
    assert len(results.rows("consert_small_heads")) == 0, "a grid of which nothing has run"


def test_a_row_has_the_runs_of_every_notebook() -> None:
    simcse = results.rows("simcse_small").query("row == 'SimCSE'")
    assert simcse["seed"].nunique() >= 5
    for name in ("consert_small", "una_small", "sda_small"):
        rows = results.rows(name).query("row == 'SimCSE'")
        assert set(rows["run_id"]) >= set(simcse["run_id"]), name
        taken = results.steps(name).query("row == 'SimCSE'")
        assert set(taken["seed"]) == set(rows["seed"]) and taken["loss"].notna().all()


def test_histories_are_kept_once_each(tmp_path) -> None:
    first, second = trained(tmp_path / "runs", 1), trained(tmp_path / "runs", 2)
    trained(tmp_path / "runs", 3, STEPS[:1])
    trained(tmp_path / "runs", 4, None)
    for _ in range(2):
        finished.save("02_simcse", tmp_path / "runs", tmp_path)
    table = results.histories("02_simcse", tmp_path)
    assert table["run_id"].tolist() == sorted([first.id] * 2 + [second.id] * 2)
    assert table["loss"].tolist() == [4.75, 3.1235] * 2 and table["step"].tolist() == [1, 2] * 2
    assert list(table) == ["run_id", "step", *results.OF_A_STEP]
    trained(tmp_path / "runs", 2, [{**step, "loss": 1.0} for step in STEPS])
    finished.save("02_simcse", tmp_path / "runs", tmp_path)
    again = results.histories("02_simcse", tmp_path).set_index("run_id")["loss"]
    assert (again[first.id] == [4.75, 3.1235]).all() and (again[second.id] == 1.0).all()


def test_without_runs_nothing_is_saved(tmp_path) -> None:
    assert not finished.save("04_una", tmp_path / "outputs", tmp_path).exists()


def test_a_run_that_two_notebooks_trained_is_committed_once(tmp_path) -> None:
    for notebook, seeds in (("02_simcse", (1, 2)), ("04_una", (2, 3))):
        for seed in seeds:
            trained(tmp_path / "runs", seed, notebook=notebook)
    for notebook in ("02_simcse", "04_una", "02_simcse"):
        finished.save(notebook, tmp_path / "runs", tmp_path)
        again = results.every_run(tmp_path)["seed"].tolist()
    assert again == [1, 2, 3]


def test_a_row_that_is_saved_carries_its_whole_recipe_and_gives_its_id(tmp_path) -> None:
    run = trained(tmp_path / "runs", 1)
    finished.save("02_simcse", tmp_path / "runs", tmp_path)
    (row,) = results.every_run(tmp_path).to_dict("records")
    assert row["run_id"] == run.id and json.loads(row["data"]) == {}
    assert row["dropout"] == 0.1 and row["beta"] == 0.5 and row["eval_pooling"] == "mean"


def test_members_are_entered_once(tmp_path) -> None:
    found = [("g", "a", "", "run-1"), ("g", "b", "", "run-1")]
    for _ in range(2):
        finished.add_members(found, tmp_path)
    assert results.members(tmp_path).to_numpy().tolist() == [list(one) for one in found]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_committed_histories_are_of_committed_runs(path) -> None:
    table, steps = pd.read_csv(path, low_memory=False), results.histories(path.stem)
    last = steps.groupby("run_id")["step"].agg(["size", "max"])
    assert set(last.index) <= set(table["run_id"]) and (last["size"] == last["max"]).all()
    taken = table.set_index("run_id")["steps"] if "steps" in table else pd.Series(dtype=float)
    assert (taken.reindex(last.index) == last["max"]).all()
