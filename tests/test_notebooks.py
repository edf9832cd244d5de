"""The notebooks as committed: their form, their outputs, and their behaviour under papermill.

Each notebook is executed by nbval in lax mode (every cell runs; cells marked `# NBVAL_CHECK_OUTPUT` are compared
with the committed output), by `lib.course run --no-lesson` with changed parameters, and by papermill with changed
parameters in full (01; the others by `make test-long`).
"""

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

from lib import paths
from workflow import course, pages

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob(course.NOTEBOOK_PATTERN))
REQUIRED = ("profile", "seed", "n_seeds", "model", "max_steps", "device", "data_dir", "output_dir")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/[\w.-]|[A-Z]:\\\\Users")
FORBIDDEN = ("in this cell we will", "in this cell, we will")
CHECKED = "NBVAL_CHECK_OUTPUT"

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def parameters_cell(path: Path) -> nbformat.NotebookNode:
    (cell,) = [cell for cell in code_cells(path) if "parameters" in tags(cell)]
    return cell


def length(source: str) -> int:
    """Lines of code of a cell, blank lines and comments left out."""
    lines = (line.strip() for line in source.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def environment(outputs: Path) -> dict[str, str]:
    """A process environment with its own outputs, offline, and the project on the import path."""
    return {
        **os.environ,
        "CSE_OUTPUTS": str(outputs),
        "PYTHONPATH": str(paths.ROOT),
        "HF_HUB_OFFLINE": "1",
        "JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter"),
    }


def run(arguments: list[str], cwd: Path, outputs: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(outputs), capture_output=True, text=True, check=False)


def trained_steps(outputs: Path) -> list[int]:
    """Training steps of every finished run below a folder."""
    files = outputs.glob("**/metrics.json")
    return [int(json.loads(file.read_text()).get("steps", 0)) for file in files]


def test_the_first_two_notebooks_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS[:2]] == ["01_infonce", "02_simcse"]


def test_every_notebook_has_a_number_of_the_course() -> None:
    numbers = [int(path.stem[:2]) for path in NOTEBOOKS]
    assert sorted(set(numbers)) == numbers and set(numbers) <= set(range(1, 8))


@each
def test_is_a_valid_notebook_of_this_interpreter(path: Path) -> None:
    node = read(path)
    nbformat.validate(node)
    assert (node.nbformat, node.nbformat_minor >= 5) == (4, True)
    assert node.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in node.cells]
    assert len(set(ids)) == len(ids)


@each
def test_begins_with_number_and_question(path: Path) -> None:
    first = read(path).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(rf"# {path.stem[:2]}\b", first.source), "the first line is `# NN …`"
    title, sentence = pages.summary(path)
    assert title.startswith(path.stem[:2]) and sentence
    assert sum(line.startswith("# ") for c in read(path).cells if c.cell_type == "markdown" for line in [c.source]) == 1


@each
def test_parameters_are_typed_literals_with_comments(path: Path) -> None:
    cell = parameters_cell(path)
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.AnnAssign) and statement.value is not None, ast.unparse(statement)
        ast.literal_eval(statement.value)
        line = cell.source.splitlines()[(statement.end_lineno or 1) - 1]
        assert "#" in line, f"no comment: {line}"
    names = course.parameter_names(path)
    assert [name for name in REQUIRED if name not in names] == []
    assert re.search(r"""^profile: str = ["']mini["']""", cell.source, re.M), "the committed profile is mini"


@each
def test_parameters_are_checked_in_the_next_cell(path: Path) -> None:
    cells = code_cells(path)
    following = cells[cells.index(parameters_cell(path)) + 1]
    assert "runs.parameters(globals())" in following.source
    assert "lesson" not in tags(following) and "lesson" not in tags(parameters_cell(path))


@each
def test_has_a_lesson_and_a_run(path: Path) -> None:
    lesson = [cell for cell in code_cells(path) if "lesson" in tags(cell)]
    assert lesson and len(lesson) < len(code_cells(path))


@each
def test_cells_are_short(path: Path) -> None:
    lengths = [length(cell.source) for cell in code_cells(path)]
    assert max(lengths) <= 40
    assert statistics.median(lengths) <= 10


@each
def test_is_light_and_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size <= 250 * 1024
    assert "widgets" not in read(path).metadata
    assert "papermill" not in read(path).metadata
    assert [match.group() for match in MACHINE_PATH.finditer(text)] == []
    assert [phrase for phrase in FORBIDDEN if phrase in text.lower()] == []


@each
def test_was_executed_in_order_without_errors(path: Path) -> None:
    cells = [cell for cell in code_cells(path) if cell.source.strip()]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [out.ename for cell in cells for out in cell.outputs if out.output_type == "error"] == []


@each
def test_compared_cells_have_outputs(path: Path) -> None:
    compared = [cell for cell in code_cells(path) if CHECKED in cell.source]
    assert compared, "no cell is compared with its committed output"
    assert [cell.source for cell in compared if not cell.outputs] == []


@each
def test_links_between_files_lead_somewhere(path: Path) -> None:
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (path.parent / target).exists()] == []


@each
def test_nbval(path: Path, tmp_path: Path) -> None:
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env", "-q"]
    done = run(["pytest", *options, "--nbval-cell-timeout=600", str(path)], paths.ROOT, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{len([c for c in code_cells(path) if c.source.strip()])} passed" in done.stdout


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[] if p in NOTEBOOKS[:1] else [pytest.mark.long]) for p in NOTEBOOKS]
)
def test_papermill_with_changed_parameters(path: Path, tmp_path: Path) -> None:
    changes = ["-p", "seed", "3", "-p", "max_steps", "3", "-p", "n_seeds", "2"]
    done = run(["papermill", path.name, str(tmp_path / "out.ipynb"), *changes], path.parent, tmp_path / "outputs")
    assert done.returncode == 0, done.stderr[-4000:]
    node = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    (injected,) = [cell for cell in node.cells if "injected-parameters" in tags(cell)]
    assert "seed = 3" in injected.source
    assert 3 in trained_steps(tmp_path / "outputs"), "no run made the three training steps asked for"


@each
def test_run_needs_no_lesson_cell_nor_the_projects_folder(path: Path, tmp_path: Path) -> None:
    options = ["-p", "max_steps", "2", "-p", "seed", "5", "--no-lesson", "--out", str(tmp_path / "out.ipynb")]
    done = run(["lib.course", "run", path.stem, *options], tmp_path, tmp_path / "outputs")
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    node = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert not [cell for cell in node.cells if "lesson" in tags(cell)]
    assert 2 in trained_steps(tmp_path / "outputs"), "no run made the two training steps asked for"
    assert {p.name for p in tmp_path.iterdir()} == {"out.ipynb", "outputs"}, "files beside the outputs"


@each
def test_misspelt_parameter_fails(path: Path, tmp_path: Path) -> None:
    arguments = ["papermill", str(path), str(tmp_path / "out.ipynb"), "-p", "temprature", "0.1"]
    done = run(arguments, paths.ROOT, tmp_path / "outputs")
    assert done.returncode != 0
    assert "temprature" in done.stderr and "Error" in done.stderr
    assert trained_steps(tmp_path / "outputs") == []
