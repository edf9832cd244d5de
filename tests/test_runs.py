"""Run folders: parameters of a notebook, identities, atomic writes, the table of all runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from filelock import FileLock, Timeout
from nbformat.v4 import new_code_cell, new_notebook

from lib import files, paths, runs
from lib import results as committed
from lib.files import write_json, write_text
from lib.runs import Run, collect, environment, parameters, peak_rss_gib, run_id
from tools import markers, table

IMPORTS = "import numpy as np\n%matplotlib inline"
CELL = (
    'beta: float = 0.5  # share\nradius: int = 4000\nprofile: str = "mini"\nmax_steps: int | None ='
    " None"
)
CALL = "p = parameters(globals())"
DEFAULTS = {"beta": 0.5, "radius": 4000, "profile": "mini", "max_steps": None}


def test_parameters_without_injection():
    assert parameters({"In": ["", IMPORTS, CELL, CALL], **DEFAULTS, "other": 1}) == DEFAULTS


def test_parameters_with_injection():
    namespace = {
        "In": ["", IMPORTS, CELL, "# Parameters\nbeta = 0.3\nmax_steps = 5\n", CALL],
        **DEFAULTS,
    }
    namespace.update(beta=0.3, max_steps=5)
    assert parameters(namespace) == {**DEFAULTS, "beta": 0.3, "max_steps": 5}


@pytest.mark.parametrize(
    ("injected", "message"),
    [
        ("bata = 0.3", "no parameter 'bata': did you mean 'beta'"),
        ("zzz = 1", "'zzz': it has beta, radius, profile"),
    ],
)
def test_a_misspelt_parameter_is_an_error(injected, message):
    with pytest.raises(ValueError, match=message):
        parameters({"In": ["", CELL, f"# Parameters\n{injected}", CALL], **DEFAULTS, "bata": 0.3})


@pytest.mark.parametrize(
    "cells",
    [
        ["", CELL, CALL, CALL],
        ["", CELL, CALL, "x = 3\nprint(x)", "%timeit x", CALL],
        ["", CELL, "", CALL, "# Parameters of the plot\ncolour = 'red'", CALL],
        ["", "beta: float = 9.0\nold: int = 1", CALL, CELL, CALL],
    ],
)
def test_cells_may_be_run_again_and_out_of_order(cells):
    assert parameters({"In": cells, **DEFAULTS}) == DEFAULTS


@pytest.mark.parametrize(
    "namespace", [{}, {"In": ["", CALL]}, {"In": ["", "%matplotlib inline", "x = 1", CALL]}]
)
def test_outside_a_notebook_is_an_error(namespace):
    with pytest.raises(ValueError, match="after the parameters cell"):
        parameters(namespace)


@pytest.mark.parametrize(("name", "fails"), [("beta", False), ("bata", True)])
def test_a_real_papermill_execution(tmp_path, name, fails):
    papermill = pytest.importorskip("papermill")
    root = str(Path(runs.__file__).parent.parent)
    cells = [
        new_code_cell(f"import sys\nsys.path.insert(0, {root!r})\nfrom lib.runs import parameters"),
        new_code_cell(CELL, metadata={"tags": ["parameters"]}),
        new_code_cell(CALL + "\nprint(sorted(p.items()))"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), tmp_path / "in.ipynb")

    def execute():
        out = str(tmp_path / "out.ipynb")
        return papermill.execute_notebook(
            str(tmp_path / "in.ipynb"), out, {name: 0.25}, kernel_name="python3", progress_bar=False
        )

    if fails:
        with pytest.raises(papermill.PapermillExecutionError, match=r"did you mean 'beta'\?"):
            execute()
    else:
        text = execute().cells[-1].outputs[0]["text"]
        assert "('beta', 0.25)" in text and "('radius', 4000)" in text


def test_run_id_is_stable_across_processes():
    code = (
        "from lib.runs import run_id; print(run_id('r', {'lr': 3e-4, 'b': [1, None], 'a': 'é'}, 7))"
    )
    root = Path(runs.__file__).parent.parent
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True
    )
    mine = run_id("r", {"a": "é", "b": [1, None], "lr": 3e-4}, 7)
    assert done.stdout.strip() == mine
    recipe, digits, seed = mine.split("-")
    assert (recipe, seed, len(digits)) == ("r", "s7", 8) and int(digits, 16) >= 0


def test_run_id_depends_on_everything_that_moves_numbers(monkeypatch):
    def digits(params, data):
        return Run("n", "r", 1, params, data, "folder").id

    base = digits({"lr": 1.0}, {"corpus": "aa"})
    monkeypatch.setattr(runs, "RESULTS_VERSION", runs.RESULTS_VERSION + 1)
    raised = digits({"lr": 1.0}, {"corpus": "aa"})
    monkeypatch.undo()
    others = [
        raised,
        digits({"lr": 1.1}, {"corpus": "aa"}),
        digits({"lr": 1.0}, {"corpus": "ab"}),
        digits({"lr": 1.0, "x": None}, {"corpus": "aa"}),
        Run("n", "r", 2, {"lr": 1.0}, {"corpus": "aa"}, "folder").id,
        Run("n", "q", 1, {"lr": 1.0}, {"corpus": "aa"}, "folder").id,
    ]
    assert len({base, *others}) == 7
    assert base == digits({"lr": 1.0}, {"corpus": "aa"})


def test_run_folder(tmp_path, monkeypatch):
    run = Run("nb", "rec", 3, {"lr": 0.1, "steps_": None}, {"corpus": "aa"}, tmp_path)
    assert run.folder == tmp_path / "nb" / run.id and run.metrics is None
    run.start()
    assert run.metrics is None
    saved = json.loads((run.folder / "params.json").read_text())
    known = {"run_id": run.id, "recipe": "rec", "seed": 3, "results_version": runs.RESULTS_VERSION}
    assert saved == {**known, "lr": 0.1, "steps_": None, "data": {"corpus": "aa"}}
    run.finish(
        {"score": np.float32(0.5), "steps": np.int64(4)},
        [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}],
    )
    assert run.metrics == {"score": 0.5, "steps": 4}
    assert run.history()["loss"].tolist() == [2.0, 1.0]
    assert sorted(p.name for p in run.folder.iterdir()) == [
        "env.json",
        "history.csv",
        "metrics.json",
        "params.json",
    ]
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "elsewhere"))
    assert Run("nb", "rec", 3, {}, {}).folder.parent == (tmp_path / "elsewhere").resolve() / "nb"


def test_metrics_come_last(tmp_path, monkeypatch):
    run = Run("nb", "rec", 3, {}, {}, tmp_path)
    run.start()

    def fail(path, *_):
        if path.name == "metrics.json":
            raise KeyboardInterrupt
        return write_json(path, *_)

    monkeypatch.setattr(runs, "write_json", fail)
    with pytest.raises(KeyboardInterrupt):
        run.finish({"score": 1.0}, [{"step": 1}])
    assert (run.folder / "history.csv").exists()
    assert run.metrics is None and collect(tmp_path).empty


def test_a_metric_that_is_no_number_is_null_in_the_file_and_nan_in_tables(tmp_path):
    run = Run("nb", "rec", 3, {}, {}, tmp_path)
    run.start()
    run.finish({"score": np.float32("nan"), "loss": float("inf"), "steps": 4})
    text = (run.folder / "metrics.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"score": None, "loss": None, "steps": 4}
    assert np.isnan(run.metrics["score"]) and run.metrics["steps"] == 4
    (row,) = collect(tmp_path).to_dict("records")
    assert np.isnan([row["score"], row["loss"]]).all() and row["collapsed"] == "score loss"


@pytest.mark.parametrize("name", ["params.json", "env.json", "metrics.json"])
@pytest.mark.parametrize("content", ["", '{"a"', "[1]", None])
def test_a_damaged_file_is_named(tmp_path, name, content):
    run = Run("nb", "rec", 3, {}, {}, tmp_path)
    run.start()
    run.finish({"score": 1.0})
    (run.folder / name).unlink()
    if content is not None:
        (run.folder / name).write_text(content)
    if content is None and name == "metrics.json":
        assert collect(tmp_path).empty
        return
    with pytest.raises(
        ValueError, match=rf"{run.id}/{name.replace('.', '[.]')} is damaged .*: remove its folder"
    ):
        collect(tmp_path)


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a" / "metrics.json"
    write_json(path, {"old": 1})
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom lib import files\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_json(Path(sys.argv[1]), {'new': list(range(10000))})\n"
    )
    root = Path(runs.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=root, check=False)
    assert done.returncode == -9
    assert json.loads(path.read_text()) == {"old": 1}
    write_json(path, {"new": "é"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"new": "é"}


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "f", "old")
    with pytest.raises(TypeError):
        write_json(tmp_path / "f", {"x": object()})
    assert (tmp_path / "f").read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["f"]


def test_collect_nothing(tmp_path, monkeypatch):
    assert collect(tmp_path).empty and collect(tmp_path / "absent").empty
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path))
    assert collect().empty


def test_collect_finished_runs_only(tmp_path):
    for seed in (1, 2):
        run = Run("nb", "rec", seed, {"lr": 0.1}, {"corpus": "aa"}, tmp_path)
        run.start()
        run.finish({"score": 10.0 * seed})
    Run("nb", "rec", 3, {"lr": 0.1}, {}, tmp_path).start()
    (tmp_path / "nb" / "page.html").write_text("")
    table = collect(tmp_path)
    assert len(table) == 2 and "data" not in table
    assert sorted(zip(table["seed"], table["score"], strict=True)) == [(1, 10.0), (2, 20.0)]
    assert set(table["notebook"]) == {"nb"} and set(table["lr"]) == {0.1}
    assert {"run_id", "recipe", "machine", "commit"} <= set(table.columns)
    assert table["machine"].notna().all()


def test_environment_without_git(monkeypatch):
    found = environment()
    assert found["versions"]["torch"] and found["python"] and found["cpu"] and found["threads"] > 0
    json.dumps(found)
    monkeypatch.setenv("PATH", "")
    assert environment()["commit"] is None and environment()["dirty"] is None


def test_environment_names_the_device_that_computes(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda,
        "get_device_name",
        lambda device=None: f"GPU {torch.device(device or 'cuda:0').index}",
    )
    names = {name: environment(name)["machine"] for name in ("cpu", "cuda:0", "cuda:1")}
    assert names == {"cpu": runs.cpu_name(), "cuda:0": "GPU 0", "cuda:1": "GPU 1"}
    assert environment("cuda:1")["device"] == "cuda:1"


def test_changes_that_are_not_committed_are_recorded(tmp_path, monkeypatch):
    def git(*arguments):
        name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert environment()["commit"] is None
    git("init")
    for name in ("a.py", "results/a.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("one\n")
    git("add", ".")
    git("commit", "-m", "one")
    assert environment()["dirty"] is False and len(environment()["commit"]) == 40
    (tmp_path / "new.txt").write_text("not part of it\n")
    assert environment()["dirty"] is False
    for name in ("a.py", "results/a.csv"):
        (tmp_path / name).write_text("what grids write, and tests\n")
    assert environment()["dirty"] is False
    (tmp_path / "lib" / "a.py").write_text("two\n")
    assert environment()["dirty"] is True


def test_peak_rss_is_in_gib():
    block = np.ones(2**25)  # 256 MiB
    assert 0.3 < peak_rss_gib() < 64 and block.sum() > 0


def finished(
    folder: Path, notebook: str, name: str, seed: int, profile: str, score: float
) -> runs.Run:
    record = runs.Run(notebook, name, seed, {"profile": profile, "max_steps": 10}, {}, folder)
    record.start()
    record.finish({"stsb_dev_spearman_last": score})
    return record


def test_results_hold_runs_on_real_data_once(tmp_path: Path) -> None:
    finished(tmp_path / "a", "02_simcse", "mini_simcse", 1, "mini", 50.0)
    with pytest.raises(FileNotFoundError, match="no finished run of 02_simcse"):
        committed.save("02_simcse", tmp_path / "a", tmp_path)
    first = finished(tmp_path / "a", "02_simcse", "mini_simcse", 1, "small", 60.0)
    path, *numbers = committed.save("02_simcse", tmp_path / "a", tmp_path)
    assert numbers == [1, 0, 0]
    second = finished(tmp_path / "b", "02_simcse", "mini_simcse", 2, "small", 70.0)
    committed.save("02_simcse", tmp_path / "b", tmp_path)
    finished(tmp_path / "a", "02_simcse", "mini_simcse", 3, "small", 60.5)
    saved = committed.save("02_simcse", tmp_path / "a", tmp_path, only={first.id})
    assert str(saved).endswith("02_simcse.csv: 0 new, 1 replaced")
    table = pd.read_csv(path)
    assert table["run_id"].tolist() == [first.id, second.id]
    assert table["stsb_dev_spearman_last"].tolist() == [60.0, 70.0]
    assert {"seed", "profile", "machine", "commit"} <= set(table.columns)


def test_a_damaged_run_of_another_notebook_does_not_stand_in_the_way(tmp_path: Path) -> None:
    finished(tmp_path / "a", "02_simcse", "mini_simcse", 1, "small", 60.0)
    other = finished(tmp_path / "a", "03_consert", "mini_consert", 1, "small", 60.0)
    (other.folder / "params.json").write_text("{")
    assert committed.save("02_simcse", tmp_path / "a", tmp_path).added == 1
    with pytest.raises(ValueError, match="is damaged"):
        committed.save("03_consert", tmp_path / "a", tmp_path)


def test_the_table_of_results_is_sorted_by_seed_within_a_recipe(tmp_path: Path) -> None:
    for seed in (11, 2, 1):
        for steps in (10, 20, 30):
            record = runs.Run(
                "n",
                "r",
                seed,
                {"profile": "small", "max_steps": 5, "lr": steps},
                {},
                tmp_path / "a",
            )
            record.start()
            record.finish({"stsb_dev_spearman_last": 1.0})
    assert (
        pd.read_csv(committed.save("n", tmp_path / "a", tmp_path).path)["seed"].tolist()
        == [1] * 3 + [2] * 3 + [11] * 3
    )


def test_rows_of_an_older_version_are_not_added(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(runs, "RESULTS_VERSION", runs.RESULTS_VERSION - 1)
    finished(tmp_path / "a", "02_simcse", "mini_simcse", 1, "small", 60.0)
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError, match="no finished run"):
        committed.save("02_simcse", tmp_path / "a", tmp_path)


def test_two_outputs_folders_share_the_lock_of_one_table(tmp_path: Path, monkeypatch) -> None:
    finished(tmp_path / "a", "02_simcse", "mini_simcse", 1, "small", 60.0)
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr(files, "FileLock", lambda path, timeout: FileLock(path, timeout=0))
    for outputs in ("one", "two"):
        monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / outputs))
        with FileLock(results / ".02_simcse.csv.lock"), pytest.raises(Timeout):
            committed.save("02_simcse", tmp_path / "a", results)
        assert not (results / "02_simcse.csv").exists()
    assert len(pd.read_csv(committed.save("02_simcse", tmp_path / "a", results).path)) == 1


def test_fill_replaces_between_the_markers_only(tmp_path: Path) -> None:
    text = tmp_path / "README.md"
    text.write_text("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")
    markers.fill(text, "x", "new")
    markers.fill(text, "x", "newer")
    assert text.read_text() == "before\n<!-- x: begin -->\nnewer\n<!-- x: end -->\nafter\n"
    with pytest.raises(ValueError, match="has no lines"):
        markers.fill(text, "y", "new")


def test_committed_tables_are_those_of_the_results() -> None:
    for text, content in table.headlines().items():
        assert " ± " in content
        assert f"<!-- headline: begin -->\n{content}\n<!-- headline: end -->" in text.read_text(
            encoding="utf-8"
        )


def test_the_readmes_figure_shows_the_means_of_its_table() -> None:
    (axis,) = table.headline_figure("simcse_small", table.SMALL).axes
    shown = dict(zip([t.get_text() for t in axis.get_yticklabels()], axis.texts, strict=True))
    lines = table.headline("simcse_small", table.SMALL).splitlines()[2:]
    assert len(shown) == len(lines) == len(table.SMALL)
    for line in lines:
        name, *_, score = [cell.strip() for cell in line.strip("|").split("|")]
        assert float(shown[name].get_text()) == pytest.approx(float(score.split()[0]), abs=0.06)


def test_a_headline_has_the_rows_of_its_grid_that_were_run() -> None:
    content = table.headline("simcse_small", {"SimCSE": "ours", "no such row": "nothing"})
    collected = committed.rows("simcse_small").query("row == 'SimCSE'")
    test = collected["sts7_test_avg_best"]
    (line,) = content.splitlines()[2:]
    assert line.startswith(f"| ours | {len(test)} | ")
    assert line.endswith(f"| {test.mean():.2f} ± {test.std():.2f} |")


def test_committed_checksums_are_those_of_the_files() -> None:
    found = table.checksums()
    assert f"\n{found}\n" in (paths.DATA / "README.md").read_text(encoding="utf-8")
    for path in (paths.MINI / "corpus.txt", *paths.MIDI_BERT.glob("*.safetensors")):
        line = f"| {path.parent.name}/{path.name} | {path.stat().st_size:,} | "
        assert f"{line}`{files.sha256(path)}` |" in found


def test_a_profile_that_is_none_stops_the_notebook_in_its_first_cells():
    cells = ["profile: str = 'ful'", "given = parameters(globals())"]
    with pytest.raises(ValueError, match="unknown profile 'ful': choose one of mini"):
        runs.parameters({"In": cells, "profile": "ful"})
