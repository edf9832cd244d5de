"""Grids for a machine without a network: packed, trained in another folder, and taken back."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tiny import finished_runs

from lib import paths
from lib.__main__ import main as cli
from lib.data import files
from lib.runs.baseline import Baseline
from lib.runs.profiles import profile_named
from tools import offline

TINY = """
source: two runs of a test
notebook: 02_simcse
profile: mini
metric: mini_test_spearman_last
seeds: [42]
cells:
  - {row: TF-IDF, set: {method: tfidf}}
  - {row: PI, set: {method: sda, rule: punctuation, n_sentences: 64, batch_size: 32, max_steps: 2}}
"""


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """A grid of two runs, one of them with a parser."""
    (tmp_path / "tiny_grid.yaml").write_text(TINY)
    return str(tmp_path / "tiny_grid.yaml")


@pytest.mark.slow
def test_a_grid_is_packed_trained_elsewhere_and_taken_back(
    grid, tmp_path, outputs, monkeypatch, capsys
) -> None:
    packed, there = tmp_path / "packed", tmp_path / "there"
    assert offline.main(["pack", str(packed), "--grid", grid, "--limit", "10MB"]) == 0
    assert max(path.stat().st_size for path in packed.iterdir()) == 10**7
    assert offline.main(["pack", str(packed), "--grid", grid]) == 2
    packed.rename(there)

    def start() -> subprocess.CompletedProcess:
        variables = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
        variables["CSE_AUTO_PRECISION"] = os.environ.get("CSE_AUTO_PRECISION", "")
        command = ["sh", str(there / "run.sh")]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)

    part = there / "project.tar.gz.002"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + b"?")
    damaged = start()
    assert damaged.returncode == 2 and "project.tar.gz.002: FAILED" in damaged.stdout
    part.write_bytes(whole)
    done = start()
    assert done.returncode == 0 and "finished runs: 2, in " in done.stdout, (
        done.stdout + done.stderr
    )
    archive = str(there / "runs.tar.gz")
    capsys.readouterr()
    assert offline.main(["take", archive, "--grid", grid]) == 0
    assert offline.main(["take", archive, "--grid", grid]) == 0
    told = capsys.readouterr().out
    assert "2 taken, 0 here already, 0 refused" in told and "0 taken, 2 here already" in told
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "ours"))
    assert cli(["grid", grid]) == 0
    ours = finished_runs(tmp_path / "ours")
    assert ours == finished_runs(outputs) and len(ours) == 2


@pytest.fixture
def finished(tmp_path, little, monkeypatch) -> Path:
    """An outputs folder of another machine with one finished run."""
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "there"))
    Baseline("02_simcse", "tfidf", profile_named("mini")).run()
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "here"))
    return tmp_path / "there"


def archive_of(folder: Path, more: str = "") -> str:
    path = folder.with_name("runs.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, "", filter=lambda one: None if one.name.endswith(".lock") else one)
        if more:
            tar.addfile(tarfile.TarInfo(more))
    return str(path)


def test_a_run_is_taken_once(finished, grid, capsys) -> None:
    archive = archive_of(finished)
    for counts in ("1 taken, 0 here already", "0 taken, 1 here already"):
        assert offline.main(["take", archive, "--grid", grid]) == 0
        assert counts in capsys.readouterr().out
    assert len(finished_runs(finished.with_name("here"))) == 1


@pytest.mark.timeout(60)
def test_a_run_that_is_being_trained_here_is_refused(finished, grid, capsys) -> None:
    name = next(finished.glob("02_simcse/mini_tfidf-*")).name
    with files.locked(finished.with_name("here") / "02_simcse" / name):
        assert offline.main(["take", archive_of(finished), "--grid", grid]) == 1
    assert "it is being trained here just now" in capsys.readouterr().err


def test_a_run_below_another_notebook_is_refused(finished, grid, capsys) -> None:
    (finished / "02_simcse").rename(finished / "04_una")
    assert offline.main(["take", archive_of(finished), "--grid", grid]) == 1
    assert "no row of these grids has its id" in capsys.readouterr().err


def change(name: str, **values):
    def edit(run: Path) -> None:
        content = json.loads((run / name).read_text())
        (run / name).write_text(json.dumps(content | values))

    return edit


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change("params.json", n_sentences=60), "its id does not follow"),
        (change("metrics.json", mini_test_spearman_last=float("nan")), "a value is no number"),
        (lambda run: (run / "env.json").unlink(), "/env.json'"),
        (lambda run: (run / "weights.bin").write_text(""), "weights.bin is no file of a finished"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(finished, grid, capsys, damage, message) -> None:
    damage(next(finished.glob("02_simcse/mini_tfidf-*")))
    assert offline.main(["take", archive_of(finished), "--grid", grid]) == 1
    error = capsys.readouterr().err
    assert message in error and error.startswith("refused: 02_simcse/") and error.count("\n") == 1
    assert finished_runs(finished.with_name("here")) == {}


def test_a_run_on_other_data_or_of_another_grid_is_refused(finished, grid, capsys) -> None:
    archive = archive_of(finished)
    assert offline.main(["take", archive, "--grid", "una_light", "--profile", "mini"]) == 1
    with (paths.MINI / "corpus.txt").open("a") as file:
        file.write("One more sentence.\n")
    assert offline.main(["take", archive, "--grid", grid]) == 1
    assert capsys.readouterr().err.count("no row of these grids has its id") == 2


@pytest.mark.parametrize("name", ["../escaped", "02_simcse/../../y"])
def test_an_archive_that_would_write_elsewhere_is_refused(finished, grid, capsys, name) -> None:
    assert offline.main(["take", archive_of(finished, name), "--grid", grid]) == 2
    error = capsys.readouterr().err
    assert "cannot be unpacked, nothing taken" in error and error.count("\n") == 1
    assert finished_runs(finished.with_name("here")) == {}


def test_a_damaged_archive_is_refused(finished, grid, capsys) -> None:
    path = Path(archive_of(finished))
    path.write_bytes(path.read_bytes()[:400])
    assert offline.main(["take", str(path), "--grid", grid]) == 2
    error = capsys.readouterr().err
    assert "runs.tar.gz cannot be unpacked" in error and error.count("\n") == 1
