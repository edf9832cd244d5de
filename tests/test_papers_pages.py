"""The book of results: coverage, the papers' figures beside ours, exports, from full and from empty
folders."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from lib import experiment, grids, identity, papers, paths, runs
from tools import paper_tables


def test_every_table_of_the_papers_is_a_grid_or_has_its_place() -> None:
    index = pd.read_csv(paths.PAPERS / "index.csv")["file"].str.removesuffix(".csv")
    made = {grid.table for grid in papers.papers_grids().values()}
    unmade = papers.unmade().set_index("table")["where"]
    assert set(unmade.index) == set(index) - made
    assert "not yet" not in set(unmade)
    assert set(papers.NO_TRAINING) <= set(index)


def test_coverage_counts_conditions_and_not_more(tmp_path, monkeypatch) -> None:
    table = papers.coverage(papers.finished(tmp_path)).set_index("table")
    assert set(table.index) == set(papers.papers_grids())
    assert table.loc["sda_table_4", ["printed", "in the grid"]].tolist() == [19, 12]
    assert table.loc["una_table_d7", ["printed", "in the grid", "of light"]].tolist() == [11, 10, 2]
    assert np.isnan(table.loc["consert_figure_9", "printed"])
    assert (table["in the grid"] <= table["printed"].fillna(np.inf)).all()
    assert table.loc["una_table_1", ["light", "of light"]].tolist() == [2, 4], (
        "BERT's and RoBERTa's rows are the same runs of ours; paraphrases are not at hand, and count"
    )
    assert table.loc["backbones_table_1", "of small"] == 7, "also encoders that are too large here"
    assert table.loc["consert_table_8", ["light", "of light"]].tolist() == [1, 8]
    assert table.loc["sda_table_7", "of light"] == 5, "Chinese rows are asked for, too"
    assert table.loc["sda_table_8", "light"] == 9, "also those whose recipe has another name"
    assert table.loc["sda_table_7", "light"] == 0, "English runs are no Chinese STS-B"
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    empty = papers.finished(tmp_path)
    nothing = papers.coverage(empty)[["full", "small", "light", "mini"]]
    assert len(empty) == 0 and nothing.sum().sum() == 0


def test_a_run_of_any_notebook_counts_once(tmp_path) -> None:
    before = papers.finished(tmp_path)
    assert len(before) == before["run_id"].nunique() > 250
    profile, recipe, steps = experiment.resolve("mini", "una")
    known = identity.of_run(profile, recipe, steps, experiment.sentences_of(profile))
    run = runs.Run("07_results", recipe.name, 42, *known, str(tmp_path))
    run.start()
    run.finish(
        {
            "mini_test_spearman_last": 50.0,
            "mini_test_spearman_best": 51.0,
            "mini_dev_spearman_best": 52.0,
        }
    )
    after = papers.finished(tmp_path)
    assert len(after) == len(before) + 1 and run.id in set(after["run_id"])
    counts = [papers.coverage(table).set_index("table")["mini"] for table in (before, after)]
    assert (counts[1] - counts[0])[lambda change: change > 0].to_dict() == {
        "una_table_1": 1,
        "una_table_2": 1,
        "una_table_c4": 1,
        "una_table_c5": 1,
        "una_table_c6": 1,
    }
    copied = tmp_path / "04_una" / before["run_id"].iloc[-1]
    copied.parent.mkdir()
    shutil.copytree(run.folder, copied)
    params = json.loads((copied / "params.json").read_text()) | {"run_id": copied.name}
    (copied / "params.json").write_text(json.dumps(params))
    assert len(papers.finished(tmp_path)) == len(after), (
        "a committed run that lies under outputs, too"
    )


def test_each_task_stands_beside_the_papers(tmp_path) -> None:
    results = papers.finished(tmp_path)
    table = paper_tables.side_by_side(papers.sized(grids.read("una_table_2"), "light"), results)
    assert set(table["column"]) == {"STS Avg."}
    table = paper_tables.side_by_side(papers.sized(grids.read("una_table_1"), "light"), results)
    assert table["column"].nunique() == 8
    line = table.set_index(["row", "column"]).loc[("bert_simcse", "STS Bench.")]
    own = pd.read_csv(paths.RESULTS / "04_una.csv").query(
        "recipe == 'mini_simcse' and max_steps == 160"
    )
    plain = own[own["positive"].eq("dropout") & own["representation"].isna() & own["bucket"]]
    assert line["n"] == 5 and line["paper"] == 76.16
    assert line["mean"] == pytest.approx(plain["STS-B_test_spearman_best"].mean())
    assert line["difference"] == pytest.approx(line["mean"] - 76.16)
    page = paper_tables.page(table)
    assert page.loc["bert_una", "Avg."].startswith("76.14 | ")


def test_a_collapsed_seed_is_shown() -> None:
    line = {
        "row": "una",
        "column": "Avg.",
        "paper": 76.14,
        "n": 3,
        "collapsed": 1,
        "mean": np.nan,
        "sd": np.nan,
    }
    assert (
        paper_tables.page(pd.DataFrame([line])).loc["una", "Avg."] == "76.14 | – (3, 1 collapsed)"
    )
