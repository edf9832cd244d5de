"""Grids: files that name runs, the runs behind their rows, and their tables."""

import math

import pandas as pd
import pytest
import yaml

from lib import data, paths, results
from lib.__main__ import main as cli
from lib.data.files import write_text
from lib.runs import Job, experiment, finished, grids
from lib.runs.baseline import UNTRAINED, Baseline
from lib.runs.folder import Run
from lib.runs.grids import beside_paper, read
from lib.runs.profiles import profile_named

GRIDS = sorted(paths.GRIDS.glob("*.yaml"))
OF_PAPERS = [path for path in GRIDS if read(path.stem).table]
OWN = [path.stem for path in GRIDS if not read(path.stem).table]


@pytest.mark.parametrize("path", OF_PAPERS, ids=lambda path: path.stem)
def test_every_row_of_the_paper_is_in_the_grid_and_no_other(path) -> None:
    grid = read(path)
    printed = pd.read_csv(paths.PAPERS / f"{grid.table}.csv", dtype=str, keep_default_na=False)
    rows = {cell.row.format(seed=seed) for cell in grid.cells for seed in grid.seeds}
    columns = {cell.column for cell in grid.cells} - set(printed.columns)
    assert rows & set(printed["row_id"]), "the grid has rows of the paper's table"
    for cell in grid.cells:
        if cell.column not in columns:
            assert {cell.row.format(seed=s) for s in grid.seeds} <= set(printed["row_id"])


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_different_cells_are_different_runs(path) -> None:
    grid = read(path)
    sets = [(cell.set, grids.job_of(grid, cell, 42, {})) for cell in grid.cells]
    trained = [
        (own, job.recipe.parameters(), job.steps, job.profile)
        for own, job in sets
        if isinstance(job, Job)
    ]
    for i, (own, *what) in enumerate(trained):
        for other, *else_ in trained[:i]:
            assert own == other or what != else_, (own, other)


def tiny_grid(folder, name="tiny", **changes) -> str:
    """A grid file of two rows and one run."""
    cell = {"method": "una"}
    content = {"source": "s", "notebook": "04_una", "profile": "mini", "seeds": [3]}
    content |= {"metric": "mini_test_spearman_last", "common": {"max_steps": 1, "batch_size": 4}}
    content |= {"cells": [{"row": "a", "set": cell}, {"row": "b", "set": cell}]} | changes
    write_text(folder / f"{name}.yaml", yaml.safe_dump(content))
    return str(folder / f"{name}.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": []}, "at least one"),
        ({"seeds": [1, 1]}, "distinct"),
        ({"notebook": "99_no"}, "no notebook '99_no'"),
        ({"metric": "mini_test_spearman_lst"}, "did you mean 'mini_test_spearman_last'"),
        ({"common": {"bata": 1}}, "row 'a': a recipe has no field 'bata': did you mean 'beta'"),
        ({"cells": [{"row": "a", "set": {}}]}, "row 'a': method must be named"),
        ({"cells": [{"row": "{x}", "set": {"method": "una"}}]}, "row '{x}'"),
        ({"cells": [{"row": "a", "sets": {}}]}, "cell 1 has no field 'sets': did you mean 'set'"),
        ({"cells": [{"row": "a", "set": {"method": "tfidf"}}]}, "takes no batch_size"),
        ({"cells": [{"set": {"method": "una"}}]}, "cell 1 needs 'row'"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path, changes: dict, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(tiny_grid(tmp_path, **changes))
    assert message in str(caught.value) and "tiny.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.yaml", "^no file no.yaml$"),
        ("una_lite", "did you mean 'una_light'"),
        ("zzz", "there are .*una_light"),
    ],
)
def test_a_grid_that_is_not_there_is_told_as_it_was_asked_for(name: str, message: str) -> None:
    with pytest.raises(FileNotFoundError, match=message):
        read(name)


def test_a_file_without_a_grid_is_told(tmp_path) -> None:
    write_text(tmp_path / "empty.yaml", "")
    with pytest.raises(ValueError, match="it holds no grid"):
        read(tmp_path / "empty.yaml")


def test_what_a_cell_names_is_used_or_refused(tmp_path) -> None:
    own = tmp_path / "mine.txt"
    write_text(own, "\n".join(data.corpus("mini")[:200]))
    cells = [{"row": "mine", "set": {"method": "simcse", "corpus": str(own), "model": "m"}}]
    small = read(tiny_grid(tmp_path, profile="small", metric="sts7_test_avg_best", cells=cells))
    for grid in (small, small.at("mini")):
        job = grids.job_of(grid, grid.cells[0], 3, {})
        assert isinstance(job, Job)
        assert job.profile.corpus == str(own) and job.recipe.backbone == "m"
    assert small.at("mini").metric == "mini_test_spearman_best"
    with pytest.raises(ValueError, match="paper's own setting"):
        read("una_table_c5").at("mini")


def test_seeds_are_outermost_and_shared_runs_are_done_once(tmp_path) -> None:
    once = {"method": "simcse", "max_steps": 0}
    cells = [{"row": "a", "set": {"method": "una"}}, {"row": "b", "set": {"method": "una"}}]
    grid = read(tiny_grid(tmp_path, seeds=[3, 4], cells=[*cells, {"row": "c", "set": once}]))
    assert [(cell.row, seed) for cell, seed in grid.runs()] == [("a", 3), ("c", 3), ("a", 4)]


def test_a_grid_trains_what_is_missing_and_its_table_counts_each_run_once(
    tmp_path, little, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("CSE_OUTPUTS", str(little))
    grid = tiny_grid(tmp_path)
    assert cli(["grid", grid]) == 0
    (finished,) = little.glob("04_una/*/metrics.json")
    before = finished.stat().st_mtime_ns
    assert cli(["grid", grid]) == 0 and finished.stat().st_mtime_ns == before
    other = tiny_grid(tmp_path, "other", notebook="02_simcse")
    assert cli(["grid", other]) == 0  # the same run, held by two notebooks
    capsys.readouterr()
    assert cli(["grid", grid, "--table", str(tmp_path / "t.csv")]) == 0
    table = pd.read_csv(tmp_path / "t.csv").set_index("row")
    assert table["n"].to_dict() == {"a": 1, "b": 1}
    assert grids.collect(read(grid).at("", max_steps=2)).empty
    assert len(grids.collect(read(grid).at("", max_steps=1))) == 2
    for edited in ({"max_steps": 2, "batch_size": 4}, {"max_steps": 1}):
        assert grids.collect(read(tiny_grid(tmp_path, common=edited))).empty
    assert not list(paths.RESULTS.glob("*tiny*"))


def test_a_grid_of_ones_own_is_compared_and_drawn(tmp_path, outputs, capsys) -> None:
    grid = tiny_grid(tmp_path, seeds=[1, 2, 3])
    rows = [("a", 50.0), ("b", 51.0)]
    for row, mean in rows:
        for seed in (1, 2, 3):
            params = {"profile": "mini", "max_steps": 1, "note": mean}
            run = Run("04_una", "mini_una", seed, params, {})
            run.start()
            run.finish({"mini_test_spearman_last": mean + 0.1 * seed**2})
            finished.add_members([("tiny", row, "", run.id)], outputs)
    picture = tmp_path / "forest.png"
    assert cli(["grid", grid, "--against", "a", "--rows", "b", "--plot", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert cli(["grid", grid, "--table", str(tmp_path / "t.csv"), "--seeds", "2", "3"]) == 0
    assert pd.read_csv(tmp_path / "t.csv")["n"].tolist() == [2, 2]
    assert "1.00" in printed and picture.stat().st_size > 1000


@pytest.mark.parametrize(
    "options",
    [
        ["--jobs", "0"],
        ["--table", "x.md"],
        ["--plot", "x.png"],
        ["--rows", "SimCSEE"],
        ["--seeds", "1", "1"],
    ],
)
def test_a_wrong_request_is_one_line(options, capsys) -> None:
    assert cli(["grid", "una_light", *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1


def test_only_whole_runs_of_a_shipped_grid_join_the_results(monkeypatch, tmp_path) -> None:
    saved: list = []
    member = ("una_light", "SimCSE", "", "id")
    monkeypatch.setattr(grids, "train", lambda grid, machine, say, jobs: ([member], []))
    monkeypatch.setattr(finished, "save_grid", lambda found: saved.append(found) or [])
    own = tiny_grid(tmp_path, profile="light", metric="sts7_test_avg_best")
    for arguments in (["una_light"], ["una_light", "--max-steps", "3"], [own]):
        assert cli(["grid", *arguments]) == 0
    assert cli(["grid", "una_light", "--profile", "mini"]) == 0
    assert saved == [[member]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_failure_is_one_line_and_the_others_go_on(tmp_path, little, jobs: int) -> None:
    cells = [
        {"row": "bad", "set": {"method": "simcse", "model": str(tmp_path / "none")}},
        {"row": "good", "set": {"method": "simcse"}},
    ]
    grid = read(tiny_grid(tmp_path, cells=cells))
    lines: list[str] = []
    machine = {"device": "cpu", "output_dir": str(little), "data_dir": None}
    members, failed = grids.train(grid, machine, lines.append, jobs)
    assert [member[1] for member in members] == ["good"] and len(failed) == 1
    assert len(lines) == 2 and sum(line.startswith("FAILED bad, seed 3") for line in lines) == 1


def test_among_processes_that_train_together_a_failure_ends_all(tmp_path, monkeypatch) -> None:
    grid = read(tiny_grid(tmp_path))
    monkeypatch.setattr(grids, "job_of", lambda *_: 1 / 0)
    work = (grid, grid.cells[0], 3, {})
    assert grids._outcome(work)[0] is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ZeroDivisionError):
        grids._outcome(work)


def test_other_steps_are_for_cells_that_train() -> None:
    grid = read("simcse_light").at("", max_steps=3)
    grids.check(grid)
    steps = {cell.row: cell.set.get("max_steps") for cell in grid.cells}
    assert steps["as pre-trained"] == 0
    assert steps["TF-IDF"] is None and steps["SimCSE"] == 3


def test_beside_paper_is_the_mean_over_seeds_and_the_printed_figure() -> None:
    grid = read("una_table_c5")
    row = grid.cells[0].row
    scores = [80.0, 82.0, math.nan]
    runs_of = pd.DataFrame({"row": row, "column": grid.cells[0].column, grid.metric: scores})
    runs_of["collapsed"] = ["", "", grid.metric]
    table = beside_paper(grid, runs_of[:2]).set_index("row")
    first = table.reset_index().iloc[0]
    assert first[["n", "collapsed", "mean"]].tolist() == [2, 0, 81.0]
    assert first["sd"] == pytest.approx(2**0.5)
    assert first["paper"] == pytest.approx(80.61, abs=3)
    lost = beside_paper(grid, runs_of).iloc[0]
    assert lost["n"] == 3 and lost["collapsed"] == 1
    assert math.isnan(lost["mean"]) and math.isnan(lost["sd"])


def test_input_embeddings_are_those_of_the_encoder_that_a_cell_names(little, monkeypatch) -> None:
    monkeypatch.setenv("CSE_OUTPUTS", str(little))
    ids = {}
    for model in (None, str(paths.MINI_BERT), "data/mini-albert"):
        run = Baseline("02_simcse", "sif", profile_named("mini"), None, model).run()
        assert math.isfinite(run.metrics["mini_dev_spearman_last"])
        ids[model] = run.id
    assert ids[None] == ids[str(paths.MINI_BERT)] != ids["data/mini-albert"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_every_row_runs_from_text_to_score_at_mini(little, name: str) -> None:
    grid = read(name).at("mini")
    real = {"corpus", "n_sentences", "transfer_pooling", "positive_file", "parser", "synonyms"}
    brief = {"max_steps": 2, "eval_every": 1, "batch_size": 16, "output_dir": str(little)}
    for cell in grid.cells:
        own = {k: v for k, v in cell.set.items() if k not in real and k != "method"}
        if cell.method in UNTRAINED:
            continue
        steps = 0 if own.get("max_steps") == 0 else 2
        run = experiment.run(
            grid.notebook, cell.method, "mini", **{**own, **brief, "max_steps": steps, "seed": 7}
        )
        assert run.metrics["steps"] == steps, cell.row
        assert math.isfinite(run.metrics["mini_dev_spearman_last"]), cell.row


def test_committed_rows_are_rows_of_their_grids_or_of_one_that_was_given_up() -> None:
    known = results.members()
    for path in GRIDS:
        rows = {cell.row for cell in read(path).cells}
        own = known[known["grid"] == path.stem]
        assert set(own["row"]) <= rows, path.stem
