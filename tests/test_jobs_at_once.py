"""`python -m lib grid NAME --jobs N`: the same runs as one after another, on one parse."""

from pathlib import Path

import pytest
import yaml
from tiny import finished_runs, python

from lib import data

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


@pytest.mark.slow
def test_two_at_once_give_what_one_after_another_gives(grid, tmp_path):
    lines = []
    for name, at_once in (("one", ()), ("two", ("--jobs", "2"))):
        environment = {"CSE_OUTPUTS": str(tmp_path / name), "OMP_NUM_THREADS": "1"}
        done = python("-m", "lib", "grid", grid, "--device", "cpu", *at_once, **environment)
        assert done.returncode == 1 and "1 of 4 runs failed" in done.stderr
        lines.append(sorted(done.stdout.splitlines()))
    assert lines[0] == lines[1] and sum(line.startswith("FAILED broken") for line in lines[1]) == 1
    assert finished_runs(tmp_path / "one") == finished_runs(tmp_path / "two") != {}
