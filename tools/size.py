"""How large `lib` is, and whether it stays within its limits.

Command line: `python -m tools.size` prints the counts; with `--check` it fails if one is above its
    limit.

A line of code is a line that holds more than a docstring or a comment. A room is a folder with
modules. The floors are the longest chain of imports from room to room, where a module that lies in
`lib` itself is a room of its own.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from lib import paths

LIMITS = {
    "lines of code": 6_000,
    "files": 60,
    "import floors": 8,
    "functions with more than six arguments": 0,
    "lines of code in tests": 13_000,
}
MOST_ARGUMENTS = 6
_SPACE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = _Function | ast.ClassDef | ast.Module


@dataclass(frozen=True)
class Function:
    """A function of a file: its place, and how many arguments and lines of code it has."""

    place: str
    arguments: int
    lines: int


def code_lines(text: str) -> set[int]:
    """The numbers of the lines of a Python file that are code.

    Example:
        >>> code_lines("'''Says what it does.'''\\n\\nx = 1  # one\\n# nothing\\ny = '''\\n'''")
        {3, 5, 6}
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SPACE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Documented) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def functions(text: str, file: str) -> list[Function]:
    """Every function of a Python file, without `self` and `cls` among its arguments.

    Example:
        >>> functions("def f(a, *, b=0):\\n    return a", "x.py")
        [Function(place='x.py:1 f', arguments=2, lines=2)]
    """
    lines, found = code_lines(text), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Function):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            own = [argument for argument in arguments if argument.arg not in ("self", "cls")]
            inside = lines & set(range(node.lineno, (node.end_lineno or 0) + 1))
            found.append(Function(f"{file}:{node.lineno} {node.name}", len(own), len(inside)))
    return found


def imported(text: str, package: str) -> set[str]:
    """The parts of `package` that a Python file imports, each by the first part of its name.

    Example:
        >>> sorted(imported("from lib import a, b\\nimport lib.c.d\\nimport os", "lib"))
        ['a', 'b', 'c']
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith(f"{package}.")}


def floors(package: Path) -> list[set[str]]:
    """The rooms of a package by floor; each imports only from floors before its own.

    Raises:
        graphlib.CycleError: two rooms import each other.
    """
    graph: dict[str, set[str]] = {}
    for file in package.rglob("*.py"):
        room = file.relative_to(package).parts[0].removesuffix(".py")
        if room != "__init__":
            found = imported(file.read_text(encoding="utf-8"), package.name)
            graph.setdefault(room, set()).update(found - {room})
    order = TopologicalSorter({room: found & graph.keys() for room, found in graph.items()})
    order.prepare()
    rooms = []
    while ready := set(order.get_ready()):
        rooms.append(ready)
        order.done(*ready)
    return rooms


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts; 1 if one is above its limit and `--check` is given."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    package = paths.ROOT / "lib"
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    tests = [path.read_text(encoding="utf-8") for path in (paths.ROOT / "tests").rglob("*.py")]
    every = [
        function
        for path, text in texts.items()
        for function in functions(text, path.relative_to(paths.ROOT).as_posix())
    ]
    many = [function for function in every if function.arguments > MOST_ARGUMENTS]
    counts = {
        "lines of code": sum(len(code_lines(text)) for text in texts.values()),
        "files": len(texts),
        "rooms": len({path.parent for path in texts}) - 1,
        "import floors": len(floors(package)),
        "functions with more than six arguments": len(many),
        "lines of code in tests": sum(len(code_lines(text)) for text in tests),
    }
    for name, count in counts.items():
        limit = f"  of at most {LIMITS[name]:,}" if name in LIMITS else ""
        print(f"{name:<40}{count:>7,}{limit}")
    longest = max(every, key=lambda function: function.lines)
    print(f"longest function: {longest.lines} lines of code, {longest.place}")
    for function in many:
        print(f"{function.arguments} arguments: {function.place}")
    above = [name for name, limit in LIMITS.items() if counts[name] > limit]
    if above:
        print("above the limit: " + ", ".join(above))
    return int(check and bool(above))


if __name__ == "__main__":
    sys.exit(main())
