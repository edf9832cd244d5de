"""The shape of the code: how long things are, what must not appear, and that a wrong import is
noticed."""

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lib import paths

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/[\w.-]")
TEXT = {"", ".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cff", ".ipynb", ".json", ".tsv"}
TEXT |= {".csv", ".cfg"}
SPACE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
DOCUMENTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def code_lines(text: str) -> set[int]:
    """The numbers of the lines of a Python file that hold more than a docstring or a comment."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SPACE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def sources() -> list[Path]:
    return sorted(paths.ROOT.glob("lib/**/*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return path.relative_to(paths.ROOT).as_posix()


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.AST]]:
    """Qualified name, node and parent of each function."""

    def walk(
        node: ast.AST, prefix: str
    ) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child, node
            name = (
                getattr(child, "name", None)
                if isinstance(child, ast.ClassDef | ast.FunctionDef)
                else None
            )
            yield from walk(child, f"{prefix}{name}." if name else prefix)

    yield from walk(tree(path), "")


def checkout() -> list[Path]:
    """Files that are, or would be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [
        paths.ROOT / name
        for name in listed.stdout.split("\0")
        if name and (paths.ROOT / name).is_file()
    ]


def test_no_function_is_longer_than_a_screen() -> None:
    long = {}
    for path in sources():
        lines = code_lines(path.read_text(encoding="utf-8"))
        for name, node, _ in functions(path):
            n = len(lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            if n > 60:
                long[f"{relative(path)}:{name}"] = n
    assert long == {}


def test_no_path_of_a_machine_in_any_text() -> None:
    found = []
    for path in checkout():
        if path.suffix in TEXT and path.stat().st_size < 5_000_000:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found += [f"{relative(path)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_no_file_is_too_large_for_github() -> None:
    assert [relative(path) for path in checkout() if path.stat().st_size > 48 * 2**20] == []


def test_outputs_and_fetched_data_are_not_committed() -> None:
    names = [relative(path) for path in checkout()]
    allowed = {"outputs/.gitkeep"}
    assert [
        name for name in names if name.startswith(("outputs/", ".venv/")) and name not in allowed
    ] == []
    assert [
        name for name in names if name.startswith(("data/senteval", "data/wiki1m", "data/corpus/"))
    ] == []


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """The import contracts of `pyproject.toml`, held against the code in `folder`."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
        "--no-cache",
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("planted", ["from lib.runs import grids", "from tools import site"])
def test_an_upward_import_breaks_the_contract(tmp_path: Path, planted: str) -> None:
    shutil.copy(paths.ROOT / "pyproject.toml", tmp_path)
    for package in ("lib", "tools", "benchmarks", "tests"):
        shutil.copytree(
            paths.ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    assert lint_imports(tmp_path).returncode == 0
    with (tmp_path / "lib" / "training" / "losses.py").open("a") as file:
        file.write(f"\n\ndef late():\n    {planted}\n")
    broken = lint_imports(tmp_path)
    assert (
        broken.returncode == 1
        and f"lib.training.losses -> {planted.split()[1]}.{planted.split()[3]}" in broken.stdout
    )


def test_every_station_of_the_walk_is_on_one_screen() -> None:
    """A function, or each function of a class."""
    text = (paths.ROOT / "book" / "walk.md").read_text(encoding="utf-8")
    stations = re.findall(r"\[`(\w+)`\]\(\.\./(lib/[\w/]+\.py)\)", text)
    assert len(re.findall(r"^\d+\. \*\*", text, re.M)) == 10 and len(stations) >= 10
    for name, file in stations:
        path = paths.ROOT / file
        lines = code_lines(path.read_text(encoding="utf-8"))
        lengths = [
            len(lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            for qualified, node, _ in functions(path)
            if name in qualified.split(".")
        ]
        assert lengths and max(lengths) <= 60, f"{file}: {name}"
