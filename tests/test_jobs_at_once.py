"""`python -m lib grid NAME --jobs N`: the same runs as one after another, on one parse."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from tiny import hear_interrupts

from lib import data, paths

CELLS = [
    {"row": "simcse", "set": {"method": "simcse"}},
    {"row": "una", "set": {"method": "una"}},
    {"row": "sda", "set": {"method": "sda", "rule": "punctuation"}},
    {"row": "broken", "set": {"method": "simcse", "model": "no/such"}},
]


@pytest.fixture
def grid(tmp_path) -> Path:
    """Four rows, one of which cannot be trained, on a few lines of text."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(data.corpus("mini", n=300)) + "\n", encoding="utf-8")
    settings = {
        "source": "a test",
        "notebook": "04_una",
        "profile": "mini",
        "metric": "mini_test_spearman_last",
        "seeds": [1],
        "common": {"max_steps": 2, "batch_size": 16, "corpus": str(text), "eval_every": 1},
        "cells": CELLS,
    }
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def start(grid: Path, outputs: Path, *options: str) -> subprocess.Popen:
    """The command, in a group of processes of its own, with one thread each."""
    environment = {**os.environ, "CSE_OUTPUTS": str(outputs), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lib", "grid", str(grid), "--device", "cpu", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        command,
        cwd=paths.ROOT,
        env=environment,
        start_new_session=True,
        preexec_fn=hear_interrupts,
        **pipes,
    )


def results(outputs: Path) -> dict[str, dict]:
    """Metrics by run, without what takes time and memory."""
    timed = ("train_seconds", "dev_seconds", "sentences_per_second", "peak_rss_gib")
    found = {}
    for path in outputs.glob("04_una/*/metrics.json"):
        metrics = json.loads(path.read_text(encoding="utf-8"))
        found[path.parent.name] = {k: v for k, v in metrics.items() if k not in timed}
    return found


@pytest.mark.slow
def test_two_at_once_give_what_one_after_another_gives(grid, tmp_path):
    lines = []
    for name, options in (("one", ()), ("two", ("--jobs", "2"))):
        process = start(grid, tmp_path / name, *options)
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 1 and "1 of 4 runs failed" in errors
        lines.append(sorted(out.splitlines()))
    assert lines[0] == lines[1] and sum(line.startswith("FAILED broken") for line in lines[1]) == 1
    assert results(tmp_path / "one") == results(tmp_path / "two") != {}


@pytest.mark.slow
def test_ctrl_c_stops_all_and_a_second_call_finishes(grid, tmp_path):
    process = start(grid, tmp_path / "cut", "--jobs", "2", "--rows", "simcse", "una", "sda")
    deadline = time.monotonic() + 120
    while not results(tmp_path / "cut") and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130 and len(results(tmp_path / "cut")) < 3
    again = start(grid, tmp_path / "cut", "--jobs", "2", "--rows", "simcse", "una", "sda")
    again.communicate(timeout=300)
    assert again.returncode == 0 and len(results(tmp_path / "cut")) == 3
