"""The shape of the code: who may import whom, how long things are, and what must not appear."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lib import paths

# Each layer may import from the layers above it and from its own.
LAYERS = (
    {"paths", "files"},
    {"profiles", "recipes", "readers"},
    {"data", "tokens", "losses", "augment", "distributed", "dropout", "heads", "lora", "plots", "pretrained"},
    {"checkpoint", "optimizer"},
    {"encoder"},
    {"evaluate", "runs", "transfer"},
    {"train"},
    {"course"},
)
# The command line of a module may reach up for what only it needs.
MAIN_MAY_IMPORT = {"augment": {"encoder"}, "evaluate": {"encoder"}}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/[\w.-]")
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cff", ".ipynb", ".json", ".tsv", ".csv", ".cfg", ""}


def sources() -> list[Path]:
    return sorted(paths.ROOT.glob("lib/**/*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return path.relative_to(paths.ROOT).as_posix()


def module(path: Path) -> str:
    """`lib/augment/eda.py` belongs to `augment`."""
    return path.relative_to(paths.ROOT / "lib").parts[0].removesuffix(".py")


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name in names)


def code_lines(path: Path) -> set[int]:
    """Numbers of the lines that hold code: no blank line, comment or docstring."""
    text = path.read_text(encoding="utf-8")
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.AST]]:
    """Qualified name, node and parent of each function."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child, node
            name = getattr(child, "name", None) if isinstance(child, ast.ClassDef | ast.FunctionDef) else None
            yield from walk(child, f"{prefix}{name}." if name else prefix)

    yield from walk(tree(path), "")


def imports(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Modules of `lib` that are imported anywhere below a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                if alias.name.startswith("lib."):
                    yield alias.name.split(".")[1], child
        elif isinstance(child, ast.ImportFrom) and child.module == "lib":
            for alias in child.names:
                yield alias.name, child
        elif isinstance(child, ast.ImportFrom) and (child.module or "").startswith("lib."):
            yield (child.module or "").split(".")[1], child


def calls(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            yield ast.unparse(child.func)


def checkout() -> list[Path]:
    """Files that are, or would be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [paths.ROOT / name for name in listed.stdout.split("\0") if name and (paths.ROOT / name).is_file()]


def test_every_module_has_a_layer() -> None:
    known = set().union(*LAYERS)
    assert {module(path) for path in sources()} - {"__init__"} - known == set()


def test_imports_point_one_way() -> None:
    wrong = []
    for path in sources():
        if module(path) == "__init__":
            continue
        in_main = command_line(path)
        for target, node in imports(tree(path)):
            allowed = MAIN_MAY_IMPORT.get(module(path), set()) if id(node) in in_main else set()
            if target not in allowed and layer(target) > layer(module(path)):
                wrong.append(f"{relative(path)} imports {target}")
    assert wrong == []


def test_no_cycle_between_modules() -> None:
    graph: dict[str, set[str]] = {}
    for path in sources():
        top_level = ast.Module(
            body=[n for n in tree(path).body if isinstance(n, ast.Import | ast.ImportFrom)], type_ignores=[]
        )
        graph.setdefault(module(path), set()).update(name for name, _ in imports(top_level) if name != module(path))

    def reach(start: str, seen: set[str]) -> set[str]:
        for name in graph.get(start, set()) - seen:
            seen.add(name)
            reach(name, seen)
        return seen

    assert [name for name in graph if name in reach(name, set())] == []


def test_no_function_is_longer_than_a_screen() -> None:
    long = {}
    for path in sources():
        lines = code_lines(path)
        for name, node, _ in functions(path):
            n = len(lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            if n > 50:
                long[f"{relative(path)}:{name}"] = n
    assert long == {}


def command_line(path: Path) -> set[int]:
    """Ids of the nodes in main() and in the private functions that only main() calls, directly or not."""
    named = {name: node for name, node, parent in functions(path) if isinstance(parent, ast.Module)}
    inside = {id(child) for child in ast.walk(named["main"])} if "main" in named else set()
    private = {name: node for name, node in named.items() if name.startswith("_")}
    while True:
        before = len(inside)
        for name, node in private.items():
            uses = [n for n in ast.walk(tree(path)) if isinstance(n, ast.Name) and n.id == name]
            if uses and all(id(use) in inside for use in uses):
                inside |= {id(child) for child in ast.walk(node)}
        if len(inside) == before:
            return inside


def test_only_the_command_line_prints() -> None:
    printing = []
    for path in sources():
        allowed = command_line(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and id(node) not in allowed:
                printing.append(f"{relative(path)}:{node.lineno}")
    assert printing == []


def test_no_pickles() -> None:
    assert [relative(p) for p in sources() if {"torch.load", "pickle.load", "pickle.loads"} & set(calls(tree(p)))] == []


def test_public_functions_have_docstrings() -> None:
    missing = []
    for path in sources():
        for name, node, parent in functions(path):
            public = not any(part.startswith("_") for part in name.split("."))
            if public and isinstance(parent, ast.Module | ast.ClassDef) and ast.get_docstring(node) is None:
                missing.append(f"{relative(path)}:{name}")
        if path.name != "__init__.py" and ast.get_docstring(tree(path)) is None:
            missing.append(relative(path))
    assert missing == []


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


def test_outputs_and_fetched_data_are_not_committed() -> None:
    names = [relative(path) for path in checkout()]
    allowed = {"outputs/.gitkeep"}
    assert [name for name in names if name.startswith(("outputs/", ".venv/")) and name not in allowed] == []
    assert [name for name in names if name.startswith(("data/senteval", "data/wiki1m", "data/corpus/"))] == []


def test_line_counter_ignores_docstrings_comments_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('"""Doc\nstring."""\n\n# note\nx = """a\nb"""\n\n\ndef f():\n    """D."""\n    return x  # c\n')
    assert code_lines(path) == {5, 6, 9, 11}
