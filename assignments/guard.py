"""Which of a student's cells are not run when an assignment is graded, and why.

The code is read and not run. `nbgrader_config.py` calls `prepared` before a submission is executed;
students ask beforehand with `python guard.py NOTEBOOK`. This is a fence and no wall: it stops
shortcuts, not somebody who is determined to get past it. Grade in a container.
"""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterator, Mapping, Set
from copy import deepcopy
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words(
    "__future__ bisect collections collections.abc copy functools heapq itertools math numpy"
    " numpy.linalg numpy.random random re statistics torch torch.linalg torch.nn"
    " torch.nn.functional typing"
)
"""The modules that students may use."""

_BUILTINS = frozenset(dir(builtins)) | {"display"}
_NO_NAMES = _words(
    "__import__ breakpoint compile delattr dir eval exec exit get_ipython getattr globals help"
    " input locals memoryview open quit setattr vars"
)
_NO_ATTRIBUTES = _words(
    "ag_frame attrgetter autograd builtins cr_frame dump enable_grad f_back f_globals f_locals"
    " fromfile func genfromtxt get_type_hints gi_frame importlib inference_mode inspect load loadtxt"
    " memmap methodcaller operator os save savetxt savez set_default_device set_default_dtype"
    " set_grad_enabled sys tb_frame tb_next tofile update_wrapper wraps"
)
_METHODS = _words("__call__ __getitem__ __init__ __iter__ __len__ __next__ __repr__")
_SETTABLE = _words("grad requires_grad training")
_IPYTHON = re.compile(r"_i{1,3}|_i?\d+|_[iod]h|In|Out")  # _i7 is the text of cell 7, _7 its output


def prepared(notebook: Any, locked: Mapping[str, str]) -> Any:
    """A copy of a submission in which a refused cell is a comment, and what it would have defined
    fails with the reason.

    Args:
        notebook: a submission, its cells with nbgrader's metadata.
        locked: source by name of the teacher's cells. A cell of such a name gets it back: nbgrader
            puts a note before a test that was deleted.
    """
    copy = deepcopy(notebook)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.source = locked.get(_name(cell), cell.source)
            for other in set(cell.metadata) - {"nbgrader"}:
                del cell.metadata[other]  # a tag can keep a cell from being run
    helpers = {name for source in locked.values() for name in _names(source)[0]}
    for place, why in _objections(copy, locked).items():
        cell = copy.cells[place]
        cell.source = _stub(cell.source, _name(cell), why, helpers)
    return copy


def refused(notebook: Any, locked: Mapping[str, str]) -> dict[str | int, list[str]]:
    """Why students' cells are not run, by name of the cell (by place where it has none)."""
    found = _objections(notebook, locked)
    return {_name(notebook.cells[place]) or place: why for place, why in found.items()}


def _objections(notebook: Any, locked: Mapping[str, str]) -> dict[int, list[str]]:
    code = {k: cell for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"}
    tests = {_name(c) for c in code.values() if c.metadata.get("nbgrader", {}).get("grade")}
    given: dict[str, str] = {}
    for source in (locked[name] for name in set(locked) - tests):
        given |= dict.fromkeys(_names(source)[0], "") | _origins(source)
    students = {k: cell.source for k, cell in code.items() if _name(cell) not in locked}
    own = {name for source in students.values() for name in _names(source)[0]}
    used = {_name(code[k]) for k in students}  # the tests call these functions
    used |= {name for source in students.values() for name in _read(source)}
    found = {k: refusals(source, given, own, used) for k, source in students.items()}
    return {k: why for k, why in found.items() if why}


def _name(cell: Any) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def refusals(
    source: str, given: Mapping[str, str], own: Set[str] = frozenset(), used: Set[str] = frozenset()
) -> list[str]:
    """Why a student's cell is not run; empty where there is no reason.

    Args:
        source: its code.
        given: the names that the assignment's cells bind, without the tests, and the dotted name
            that each is imported from ("" for one defined there). No student binds them.
        own: names that the student's cells bind.
        used: names that the student's cells read, or the tests.

    Example:
        >>> refusals("from lib.training.losses import info_nce", {})
        ['imports lib.training.losses: write it yourself']
        >>> refusals("import os", {})  # nobody uses it
        []
    """
    nodes = _nodes(source)
    if not nodes:
        return ["is no plain Python: it has a magic (% or !), or a mistake of syntax"]
    why = [reason for node in nodes for reason in _reasons(node, used)]
    bound, inside = _names(source)
    origins = _origins(source)
    for name in sorted(bound):
        same = name in origins and origins[name] == given.get(name)
        if name in _BUILTINS or (name in given and not same):
            why.append(f"gives {name} a new meaning, which the assignment uses: take another name")
    for name in sorted(inside - _BUILTINS - _NO_NAMES - bound - own - set(given)):
        why.append(f"uses {name}, which neither it nor the assignment defines")
    return list(dict.fromkeys(why))


def _reasons(node: ast.AST, used: Set[str]) -> Iterator[str]:
    """What is wrong with one piece of code, whatever stands around it."""
    for module, origin, name in _imports(node):
        last = origin.rpartition(".")[2]
        if module.partition(".")[0] == "lib":
            yield f"imports {module}: write it yourself"
        elif name in used and module not in MODULES:  # an import that nobody uses does no harm
            yield f"imports {module}: not needed here"
        elif name == "*" or (name in used and (last[:1] == "_" or last in _NO_ATTRIBUTES)):
            yield f"imports {origin}: not needed here"
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        hidden = node.attr.startswith("_") and node.attr != "__init__" and not own
        if hidden or node.attr in _NO_ATTRIBUTES:
            yield f"uses .{node.attr}: not needed here"
        elif node.attr.startswith("register"):
            yield f"uses .{node.attr}: hooks are not for this"
        elif not (isinstance(node.ctx, ast.Load) or own or node.attr in _SETTABLE):
            yield f"sets .{node.attr} of something that is not its own"
    if isinstance(node, ast.Constant) and re.search(r"\.__|^__\w+__$", str(node.value)):
        yield "holds a text with .__: not needed here"
    if isinstance(node, ast.Name) and (node.id in _NO_NAMES or _IPYTHON.fullmatch(node.id)):
        yield f"uses {node.id}: not needed here"
    for word in (getattr(node, field, None) for field in ("id", "name", "asname")):
        if isinstance(word, str) and word.startswith("__") and word not in _METHODS | _NO_NAMES:
            yield f"defines {word}: results must be plain values"


def _imports(node: ast.AST) -> list[tuple[str, str, str]]:
    """Module, dotted origin and bound name of all that a statement imports."""
    if isinstance(node, ast.Import):
        return [(a.name, a.name, a.asname or a.name.partition(".")[0]) for a in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [(module, f"{module}.{a.name}", a.asname or a.name) for a in node.names]
    return []


def _origins(source: str) -> dict[str, str]:
    return {name: origin for node in _nodes(source) for _, origin, name in _imports(node)}


def _read(source: str) -> set[str]:
    names = [node for node in _nodes(source) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _nodes(source: str) -> list[ast.AST]:
    """All nodes of a cell's code; none if it is no Python."""
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return []


def _names(source: str) -> tuple[set[str], set[str]]:
    """Global names that code binds, and those that its functions read; by the compiler's tables."""
    bound: set[str] = set()
    inside: set[str] = set()
    tables = [symtable.symtable(source, "cell", "exec")] if _nodes(source) else []
    for table in tables:  # grows by the functions inside each
        tables += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if top or symbol.is_global():
                if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                    bound.add(symbol.get_name())
                if symbol.is_referenced() and not top:
                    inside.add(symbol.get_name())
    return bound, inside


def _stub(source: str, name: str, why: list[str], helpers: Set[str]) -> str:
    """Code in place of a refused cell: what it would have defined, failing with the reason."""
    where = f"the cell {name!r}" if name else "a cell"
    reason = f"{where} was not run: it {'; it '.join(why[:2])}"
    defined = {n for n in {name, *_names(source)[0]} if n.isidentifier()} - helpers - _BUILTINS
    lines = [f"# Put in by the grader: {where} was not run. It", *(f"# - {item}" for item in why)]
    for each in sorted(defined):
        lines += ["", f"def {each}(*_, **__):", f"    raise AssertionError({reason!r})"]
    lines += ["", f"print({reason!r})", "", "# The cell as it was handed in:"]
    return "\n".join([*lines, *(f"# {line}" for line in source.splitlines())])


def main(paths: list[str]) -> int:
    """Say of each notebook which of its cells would not be run; 1 if there is one, else 0."""
    import nbformat

    status = 0
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        metas = [(cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells]
        found = refused(notebook, {m["grade_id"]: c.source for c, m in metas if m.get("locked")})
        for name, why in found.items():
            cell = notebook.cells[name].source.partition("\n")[0] if type(name) is int else name
            print(f"{path}: the cell {cell} would not be run: it {'; it '.join(why)}")
            status = 1
        if not found:
            print(f"{path}: every cell would be run")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
