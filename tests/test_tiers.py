"""Every test belongs to a verb of the Makefile: nothing is silently never run, nothing is run
twice."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

import pytest

from lib import paths

MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["tool"]["pytest"][
    "ini_options"
]
MARKERS = [line.split(":")[0] for line in SETTINGS["markers"]]
RULE = re.compile(r"^(?P<verb>[a-z-]+):(?P<needs>[^#\n]*)##[^\n]*\n(?P<recipe>(?:\t.*\n)*)", re.M)
RULES = {rule["verb"]: rule for rule in RULE.finditer(MAKEFILE)}


def verbs(goal: str) -> list[str]:
    """A verb and those that it needs."""
    needs = [need for need in RULES[goal]["needs"].split() if need in RULES]
    return [goal, *(verb for need in needs for verb in verbs(need))]


def selections(goal: str) -> list[tuple[str, list[str]]]:
    """(marker expression, files) of each pytest that a verb starts."""
    found = []
    for verb in dict.fromkeys(verbs(goal)):
        for line in RULES[verb]["recipe"].splitlines():
            if "$(PYTEST)" in line:
                words = shlex.split(line)
                chosen = words[words.index("-m") + 1] if "-m" in words else option("-m")
                found.append((chosen, [word for word in words if word.startswith("tests/")]))
    return found


def option(name: str) -> str:
    """An option that every pytest gets."""
    return SETTINGS["addopts"][SETTINGS["addopts"].index(name) + 1]


def selected(expression: str, carried: dict[str, bool]) -> bool:
    """Does pytest's `-m expression` take a test with these markers?"""
    return bool(eval(expression, {}, carried))


def test_whatever_markers_a_test_carries_one_verb_of_test_all_runs_it_once() -> None:
    for values in product((False, True), repeat=len(MARKERS)):
        carried = dict(zip(MARKERS, values, strict=True))
        takers = [chosen for chosen, _ in selections("test-all") if selected(chosen, carried)]
        assert len(takers) == 1, (
            f"a test with {[m for m in MARKERS if carried[m]]} is run by {takers}"
        )


def test_a_verb_that_names_files_names_all_that_carry_its_marker() -> None:
    for chosen, named in selections("test-all"):
        if named:
            marker = chosen.split()[0]
            files = [p for p in paths.ROOT.glob("tests/*.py") if f"mark.{marker}" in p.read_text()]
            assert [
                f"tests/{path.name}" for path in files if path.name != Path(__file__).name
            ] == named


def test_make_test_leaves_out_what_it_says() -> None:
    """Whatever needs no more than `make setup` and is not slow is in `make test`, the notebooks
    with it."""
    chosen = [expression for expression, _ in selections("test")]
    assert any(selected(e, dict.fromkeys(MARKERS, False)) for e in chosen)
    for marker, expected in {
        "notebook": True,
        "wordnet": True,
        "real_data": True,
        "slow": False,
        "browser": False,
    }.items():
        carried = {name: name == marker for name in MARKERS}
        assert any(selected(expression, carried) for expression in chosen) is expected, marker


def test_every_file_of_tests_is_collected_or_imported() -> None:
    text = {path.stem: path.read_text(encoding="utf-8") for path in paths.ROOT.glob("tests/*.py")}
    helpers = {stem for stem in text if not stem.startswith("test_")} - {"conftest"}
    unused = [
        h
        for h in helpers
        if not any(re.search(rf"^\s*(from|import) {h}\b", t, re.M) for t in text.values())
    ]
    assert unused == []
    assert [
        path for path in paths.ROOT.glob("tests/**/test_*.py") if path.parent.name != "tests"
    ] == []


def test_pytest_alone_collects_and_skips_what_is_missing_with_a_reason(tmp_path) -> None:
    """As typed in the root: folders that are not installed are found, and a line counts what was
    left out."""
    (tmp_path / "test_probe.py").write_text(
        "import benchmarks, notebooks, results\ndef test_nothing(): pass\n"
    )
    program = str(Path(sys.executable).with_name("pytest"))
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    command = [program, "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml", "--rootdir", "."]
    command += [
        "tests/test_eda.py",
        str(tmp_path / "test_probe.py"),
        "-k",
        "wordnets_real_files or nothing",
    ]
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert re.search(
        r"wordnet tests: (1 run, 0 skipped|0 run, 1 skipped \(WordNet is not here: run .*\))",
        done.stdout,
    )


def test_a_precision_that_is_none_is_refused() -> None:
    environment = os.environ | {"CSE_AUTO_PRECISION": "fp16"}
    command = [sys.executable, "-m", "pytest", "tests/test_losses.py"]
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True)
    assert (
        done.returncode == pytest.ExitCode.USAGE_ERROR
        and "'fp16': name fp32 or bf16" in done.stderr
    )


def test_continuous_integration_is_setup_and_test_and_installs_nothing_else(tmp_path) -> None:
    """`.ci/run` with a `make` and installers that only write down how they are called."""
    (tmp_path / "project" / ".ci").mkdir(parents=True)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    shutil.copy(paths.ROOT / ".ci" / "run", tmp_path / "project" / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    calls = tmp_path / "calls"
    for name in ("make", "apt-get", "apt", "pip", "python", "python3", "conda", "curl", "wget"):
        stub = tmp_path / "bin" / name
        stub.write_text(f'#!/bin/sh\necho "{name} $* with ${{CSE_DATA:-nothing}}" >> "{calls}"\n')
        stub.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "CSE_DATA"}
    environment["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    subprocess.run([str(tmp_path / "project" / ".ci" / "run")], env=environment, check=True)
    data = tmp_path / "shared" / "data"
    assert calls.read_text().splitlines() == [f"make setup with {data}", f"make test with {data}"]
