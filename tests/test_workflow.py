"""The Snakefile: which notebooks a table asks for, and that they run, survive a kill and are not
run twice."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from lib import paths
from lib.runs import grids
from lib.runs.notebooks import parse_value
from workflow import jobs

SNAKEMAKE = [str(Path(sys.executable).with_name("snakemake")), "--cores", "2"]


def snakemake(*words: str, outputs: Path, **options):
    environment = {k: v for k, v in os.environ.items() if k != "CSE_DATA"} | {
        "CSE_OUTPUTS": str(outputs)
    }
    return subprocess.Popen(
        [*SNAKEMAKE, "--directory", str(outputs.parent / "work"), *words],
        cwd=paths.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        **options,
    )


def finished(process) -> str:
    text = process.communicate(timeout=600)[0]
    assert process.returncode == 0, text[-3000:]
    return text


def test_jobs_are_the_runs_of_a_grid_each_once(outputs) -> None:
    found = jobs.jobs(grids.read("una_table_d7"))
    assert len(found) == 20 == len({one.path for one in found})
    shared = {one.path for one in jobs.jobs(grids.read("una_table_1"))}
    assert {one.path for one in found if one.name.endswith("-s42")} <= shared
    assert len(jobs.jobs(grids.read("simcse_light"))) == 1 + 5 * 2


def test_a_command_gives_back_its_parameters(outputs) -> None:
    parameters = {"profile": "mini", "seed": 42, "method": "una", "beta": 0.3}
    parameters |= {"corpus": "a b", "eval_head": True}
    one = jobs.NotebookJob.of("04_una", parameters)
    words = shlex.split(one.command())
    given = {
        words[i + 1]: parse_value(words[i + 2]) for i, word in enumerate(words) if word == "-p"
    }
    assert given == parameters and words[words.index("--out") + 1] == str(one.path)
    assert jobs.NotebookJob.of("04_una", dict(reversed(parameters.items()))).path == one.path
    assert jobs.NotebookJob.of("04_una", parameters | {"seed": 1}).path != one.path


def test_the_report_tells_done_from_failed(outputs) -> None:
    done, failed, missing = (
        jobs.NotebookJob.of("04_una", {"method": "una", "seed": seed}) for seed in range(3)
    )
    done.path.parent.mkdir(parents=True)
    done.path.write_text("{}")
    done.path.with_suffix(".tsv").write_text("s\th:m:s\n75.5\t0:01:15\n")
    failed.path.with_suffix(".failed.ipynb").write_text("{}")
    text = jobs.write_report([done, failed, missing], outputs / "report.csv")
    assert (
        text.startswith("1 runs done, 1 failed, 1:15 of computing")
        and f"{failed.name}.failed.ipynb" in text
    )
    assert list(pd.read_csv(outputs / "report.csv")["state"]) == ["done", "failed"]


def test_only_seeds_are_cut_at_a_comma() -> None:
    found = jobs.settings({"seeds": "42,0", "data_dir": "a, b,c", "device": "cpu", "max_steps": 7})
    assert found.seeds == (42, 0) and found.machine == {"data_dir": "a, b,c", "device": "cpu"}
    words = ["--seeds", "42", "0", "--max-steps", "7", "--data-dir", "a, b,c", "--device", "cpu"]
    assert found.options == words and found.choice == "-seeds42,0-max_steps7"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"seeds": "42;0"}, "--config seeds=42;0: whole numbers"),
        ({"profile": "tiny"}, "unknown profile 'tiny'"),
        ({"sedes": 1}, "--config sedes: no such key: did you mean 'seeds'?"),
    ],
)
def test_a_wrong_configuration_names_its_key(config, message) -> None:
    with pytest.raises(ValueError, match=message):
        jobs.settings(config)


def test_snakemake_says_what_is_wrong_with_a_request(tmp_path) -> None:
    process = snakemake("una_tabel_2", "--dry-run", outputs=tmp_path / "outputs")
    text = process.communicate(timeout=300)[0]
    assert process.returncode != 0 and "did you mean 'una_table_2'?" in text
    assert "Traceback" not in text


def test_every_table_is_a_target(tmp_path) -> None:
    words = ("all", "--dry-run", "--quiet", "rules", "--config", "profile=mini")
    text = finished(snakemake(*words, outputs=tmp_path / "outputs"))
    for name in jobs.tables(jobs.settings({"profile": "mini"})):
        assert re.search(rf"\b{name}\b", text), name
    assert not (tmp_path / "outputs").exists()


@pytest.mark.slow
def test_a_killed_table_finishes_with_the_numbers_of_one_that_was_not(tmp_path) -> None:
    words = ("una_small_seeds", "--config", "profile=mini", "max_steps=3", "seeds=42,0")
    process = snakemake(*words, outputs=tmp_path / "killed")
    begun = tmp_path / "killed" / "workflow" / "04_una"
    deadline = time.monotonic() + 300
    while not list(begun.glob("*.log")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert list(begun.glob("*.log")), "no notebook was begun"
    busy = snakemake(*words, outputs=tmp_path / "killed").communicate(timeout=300)[0]
    assert "Another snakemake is at work" in busy
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not list((tmp_path / "killed").glob("workflow/tables/*.csv"))
    assert "4 runs done, 0 failed" in finished(snakemake(*words, outputs=tmp_path / "killed"))
    assert "Nothing to be done" in finished(snakemake(*words, outputs=tmp_path / "killed"))
    finished(snakemake(*words, outputs=tmp_path / "whole"))
    first, second = (
        pd.read_csv(
            tmp_path / n / "workflow" / "tables" / "una_small_seeds-mini-seeds42,0-max_steps3.csv"
        )
        for n in ("killed", "whole")
    )
    pd.testing.assert_frame_equal(first, second)
    assert first["n"].tolist() == [2, 2] and first["mean"].between(1, 100).all()


@pytest.mark.slow
def test_a_failed_run_is_tried_again_and_reported(tmp_path) -> None:
    words = ("una_small_seeds", "--config", "profile=mini", "max_steps=1", "device=tpu")
    process = snakemake(*words, outputs=tmp_path / "outputs")
    text = process.communicate(timeout=600)[0]
    assert process.returncode != 0 and "0 runs done, " in text and "Trying to restart job" in text
    assert (
        "ValueError: device must be"
        in next((tmp_path / "outputs").glob("workflow/04_una/*.log")).read_text()
    )
