"""What keeps grading honest: students' cells are read before they run, the tests' tools are
watched while they run.

Two lines of defence, both put in when an assignment is graded, so that no student can take them
out:

1. `refusals` reads a student's cell *without running it*, in the grader's process. A cell that
   imports what the task asks to write, reaches for Python's machinery, changes what is not its own
   or reads the tests' variables is not run: `prepared` puts functions in its place that fail with
   the reason.
2. `begin`, `keep` and `check` run in the kernel beside the student's code. They remember `torch`,
   `numpy`, `builtins` and the notebook's own helpers before it starts, and fail a test before and
   after which one of them is not what it was.

Both live beside `nbgrader_config.py`, which hands them to `nbgrader autograde`
(`tools/classroom.py` uses them too). Students ask beforehand: `python guard.py NOTEBOOK`.

This is a fence, not a wall: the second line shares a process with the code it watches. Grade in a
container.
"""

import ast
import builtins
import importlib
import re
import symtable
import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import FunctionType, ModuleType
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words(
    "__future__ bisect collections collections.abc copy functools heapq itertools math"
    " numpy numpy.linalg numpy.random random re statistics torch torch.linalg torch.nn"
    " torch.nn.functional typing"
)
"""What students may import; of what else an assignment's own cells import, only the names there."""

_BUILTINS = frozenset(dir(builtins)) | {"display"}
_NO_BUILTINS = _words(
    "__import__ breakpoint compile delattr dir eval exec exit get_ipython getattr globals help"
    " input locals memoryview open quit setattr vars"
)
_NO_ATTRIBUTES = _words(
    "DataSource ForwardRef SystemRandom ag_frame cr_frame dump dumps f_back f_builtins f_code"
    " f_globals f_locals from_file fromfile fromregex genfromtxt get_ipython get_type_hints gi_frame"
    " load loadtxt memmap partialmethod save savetxt savez savez_compressed set_default_device"
    " set_default_dtype set_default_tensor_type set_printoptions singledispatch"
    " singledispatchmethod tb_frame tb_next tofile total_ordering update_wrapper with_traceback"
    " wraps"
)
_METHODS = frozenset(
    ["__call__", "__getitem__", "__init__", "__iter__", "__len__", "__next__", "__post_init__", "__repr__"]
)
_SETTABLE = frozenset(["training", "requires_grad", "grad"])
_DISPLAY = re.compile(r"_(repr|ipython)_\w*_")  # how a notebook shows a value: HTML, JavaScript …
_IPYTHON = re.compile(r"_.+|In|Out")  # its own variables: _i7 is the text of cell 7, _ the output


class RefusedError(Exception):
    """The grader did not accept something; the message says what and where."""


def prepared(notebook: Any, locked: Mapping[str, str], inspect: bool = True, module: str = __name__) -> Any:
    """A copy of a submitted notebook that is safe to grade.

    Students' cells that `refusals` objects to hold stubs that fail with the reason, and their code
    as a comment. Around the teacher's cells stand calls of `trust`, `keep` and `check`.

    Args:
        notebook: a submission, its locked cells already restored by nbgrader.
        locked: source by name of the teacher's cells, from the gradebook. A cell of such a name gets
            that source again: nbgrader puts a note before a test that was deleted and comes back.
        inspect: False leaves the first line of defence out (for tests of the second).
        module: the name under which the notebook's kernel imports this file.
    """
    copy = deepcopy(notebook)
    for cell in copy.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "code" and name in locked:
            cell.source = locked[name]
    call = f"__import__({module!r}, fromlist=['*'])"
    objections = refused(copy, locked) if inspect else {}
    given, _ = _names_of(copy, locked)
    for place, cell in enumerate(copy.cells):
        meta = cell.metadata.get("nbgrader", {})
        key = meta.get("grade_id") or place
        if cell.cell_type != "code":
            continue
        for other in set(cell.metadata) - {"nbgrader"}:
            del cell.metadata[other]  # a tag can keep a cell from being run
        if not _is_locked(cell, locked):
            if key in objections:
                name = meta.get("grade_id", "")
                cell.source = _stub(cell.source, name, objections[key], given)
        elif meta.get("grade"):
            line = f"{call}.check(globals())  # put in by the grader"
            cell.source = f"{line}\n{cell.source}\n{line}"
        else:
            names = sorted(_bound(cell.source))
            cell.source = f"{call}.trust()  # put in by the grader\n{cell.source}\n{call}.keep(globals(), {names!r})"
    return copy


def refused(notebook: Any, locked: Mapping[str, str]) -> dict[str | int, list[str]]:
    """The students' cells of a notebook that are not run, by name (by place where a cell has none),
    and why."""
    given, tests = _names_of(notebook, locked)
    cells = [
        (cell.metadata.get("nbgrader", {}).get("grade_id") or place, cell)
        for place, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
    ]
    own = {n for _, cell in cells if not _is_locked(cell, locked) for n in _bound(cell.source)}
    available: dict[str, str] = {}  # the teacher's names so far, and the module of each
    found = {}
    for key, cell in cells:
        if not _is_locked(cell, locked):
            if why := refusals(cell.source, available, own - given, tests, given):
                found[key] = why
        elif not cell.metadata["nbgrader"].get("grade"):
            imported = _imports(cell.source)
            available |= {name: imported.get(name, "") for name in _bound(cell.source)}
    return found


def first_cell(module: str = __name__) -> Any:
    """The cell that starts `begin`, before all others."""
    import nbformat

    source = f"__import__({module!r}, fromlist=['*']).begin()  # put in by the grader"
    return nbformat.v4.new_code_cell(source)


def _is_locked(cell: Any, locked: Mapping[str, str]) -> bool:
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    return name in locked and locked[name].strip() == cell.source.strip()


def _names_of(notebook: Any, locked: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Names that the teacher's cells bind: the helpers', the tests'."""
    given: set[str] = set()
    tests: set[str] = set()
    graded = {
        cell.metadata.get("nbgrader", {}).get("grade_id")
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    for name, source in locked.items():
        if bound := _bound(source):
            (tests if name in graded else given).update(bound)
    return given, tests - given


def _bound(source: str) -> set[str]:
    """Names that a cell's code binds in the notebook; none if it is no Python."""
    try:
        return _globals(source)[1]
    except (SyntaxError, ValueError):
        return set()


def _globals(source: str) -> tuple[set[str], set[str], set[str]]:
    """Global names that code reads inside functions and classes, binds anywhere, and reads at the
    top; by the compiler's own tables."""
    inside: set[str] = set()
    bound: set[str] = set()
    top: set[str] = set()

    def visit(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            name, is_set = symbol.get_name(), symbol.is_assigned() or symbol.is_imported()
            if table.get_type() == "module":
                if is_set or symbol.is_namespace():
                    bound.add(name)
                if symbol.is_referenced():
                    top.add(name)
            elif symbol.is_global() or (str(table.get_type()) == "class" and not symbol.is_free()):
                if symbol.is_referenced():
                    inside.add(name)
                if symbol.is_declared_global() and (is_set or symbol.is_namespace()):
                    bound.add(name)
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(source, "cell", "exec"))
    return inside, bound, top


def _imports(source: str) -> dict[str, str]:
    """Dotted module, or module and name, by the name that an import binds."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def refusals(
    source: str,
    given: Mapping[str, str],
    own: Iterable[str] = (),
    tests: Iterable[str] = (),
    protected: Iterable[str] = (),
) -> list[str]:
    """Why a student's cell is not run; empty where there is no reason.

    Args:
        source: its code, which is read and not run.
        given: the names that the assignment's cells above it bind, and for each the dotted module
            it is imported from ("" for one defined there).
        own: names that the students' cells bind.
        tests: names that the tests bind: no function of a student reads them.
        protected: names of all the assignment's own cells: no student binds them.

    Example:
        >>> refusals("from lib.training.losses import info_nce", {})
        ['imports lib.training.losses: write it yourself']
        >>> refusals("def double(x):\\n    return x + x", {})
        []
    """
    try:
        tree = ast.parse(source)
        inside, bound, top = _globals(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        return [f"is no plain Python at line {line}: a magic (% or !), or a mistake of syntax"]
    why = []
    here = _imports(source)
    allowed = {n: d for n, d in here.items() if {d, d.rpartition(".")[0]} & MODULES}
    modules = {name: dotted for name, dotted in {**given, **allowed}.items() if _module(dotted)}
    for name in sorted(bound):
        same = here.get(name) and here.get(name) == given.get(name)
        if (name in {*given, *protected} and not same) or name in _BUILTINS:
            why.append(f"gives {name} a new meaning, which the tests use: take another name")
        elif _IPYTHON.fullmatch(name):
            why.append(f"uses {name}, a name of the notebook's machinery")
    readable = (_BUILTINS - _NO_BUILTINS) | set(given) | bound | set(own)
    for name in sorted(inside | top):
        if name in _NO_BUILTINS or _IPYTHON.fullmatch(name):
            why.append(f"uses {name}: not needed here")
        elif name in tests and name in inside and name not in given:
            why.append(f"reads {name} from outside, a variable of the tests: hand it over")
        elif name not in readable and name not in tests:
            why.append(f"uses {name}, which neither it nor the assignment defines")
    why += _Reader(tree, modules).why
    return list(dict.fromkeys(why))


def _module(dotted: str) -> ModuleType | None:
    """The module that a dotted name means, None if it means something else. One that students may
    not use is not imported: a stand-in, known by its name in small letters."""
    parent, _, name = dotted.rpartition(".")
    if dotted in MODULES:
        return importlib.import_module(dotted)
    if parent in MODULES:
        value = getattr(importlib.import_module(parent), name, None)
        return value if isinstance(value, ModuleType) else None
    return ModuleType(dotted) if name.islower() else None


class _Reader(ast.NodeVisitor):
    """What a cell imports, reaches for and changes."""

    def __init__(self, tree: ast.AST, modules: Mapping[str, str]) -> None:
        self.why: list[str] = []
        self._modules = modules
        self._inner: set[int] = set()  # modules that stand before a dot
        for node in ast.walk(tree):  # a docstring may hold any text
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                self._inner.add(id(body[0].value))
        self.visit(tree)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._imported("." * node.level + (node.module or ""))
        for alias in node.names:
            if alias.name == "*":
                self.why.append("imports *: name what you use")
            elif f"{node.module}.{alias.name}" not in MODULES:
                self._attribute(alias.name)
                if node.module in MODULES and _module(f"{node.module}.{alias.name}"):
                    self.why.append(f"imports {node.module}.{alias.name}: not needed here")

    def _imported(self, name: str) -> None:
        if name.partition(".")[0] == "lib":
            self.why.append(f"imports {name}: write it yourself")
        elif name not in MODULES:
            self.why.append(f"imports {name}: not needed here")

    def _attribute(self, name: str) -> None:
        if name in _NO_ATTRIBUTES or (name.startswith("_") and name != "__init__"):
            self.why.append(f"uses .{name}: not needed here")
        elif name.startswith("register"):
            self.why.append(f"uses .{name}: hooks are not for this")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if not (own and re.fullmatch(r"_\w*[a-z0-9]", node.attr)):
            self._attribute(node.attr)
        if not isinstance(node.ctx, ast.Load) and not own and node.attr not in _SETTABLE:
            self.why.append(f"sets .{node.attr} of something that is not its own")
        literal = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if node.attr in ("format", "format_map") and not literal:
            self.why.append(f"uses .{node.attr} of a text that is not written out")
        dotted = self._dotted(node.value)
        if dotted:
            self._inner.add(id(node.value))
            name = f"{dotted}.{node.attr}"
            if dotted not in MODULES or (_module(name) and name not in MODULES):
                self.why.append(f"uses {name}: not needed here")
            elif _module(name) and id(node) not in self._inner:
                self.why.append(f"uses the module {name} as a value: import it under a name")
        self.generic_visit(node)

    def _dotted(self, node: ast.expr) -> str:
        """The dotted name of a module that an expression spells out; "" if it does not."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id, "")
        if isinstance(node, ast.Attribute) and (parent := self._dotted(node.value)):
            name = f"{parent}.{node.attr}"
            return name if _module(name) else ""
        return ""

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._modules and id(node) not in self._inner:
            self.why.append(f"uses the module {node.id} as a value: write {node.id}.name")
        if node.id == "type":
            self.why.append("uses type for something else than the type of one value")
        if node.id in _NO_BUILTINS:
            self.why.append(f"uses {node.id}: not needed here")

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1:
            for child in node.args:
                self.visit(child)
            return
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._attribute(name)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for item in ast.walk(node):
            name = next((n for n in (getattr(item, k, None) for k in ("asname", "name", "id")) if n), None)
            is_special = isinstance(name, str) and name.startswith("__")
            if is_special and name not in _METHODS:
                self.why.append(f"class {node.name} defines {name}: results must be plain values")
            if isinstance(name, str) and _DISPLAY.fullmatch(name):
                self.why.append(f"class {node.name} defines {name}: results are shown as text")
        if node.keywords:
            self.why.append(f"class {node.name} has a metaclass: not needed here")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and "__" in node.value and id(node) not in self._inner:
            self.why.append("holds a text with __: not needed here")


def _stub(source: str, name: str, why: list[str], given: set[str]) -> str:
    """Code in place of a refused cell: what it would have defined, failing with the reason."""
    where = f"the cell {name!r}" if name else "a cell"
    reason = f"{where} was not run: it {'; it '.join(why[:2])}"
    mine = _bound(source) - given - _BUILTINS - set(_imports_of(source))
    defined = sorted({n for n in mine if not _IPYTHON.fullmatch(n)} | {n for n in [name] if n.isidentifier()})
    lines = [f"# Put in by the grader: {where} was not run. It", *(f"# - {item}" for item in why), ""]
    lines += [f"def {name}(*_, **__):\n    raise AssertionError({reason!r})" for name in defined]
    lines += ["", f"print({reason!r})", "", "# The cell as it was handed in:"]
    return "\n".join([*lines, *(f"# {line}" for line in source.splitlines())])


def _imports_of(source: str) -> dict[str, str]:
    try:
        return _imports(source)
    except (SyntaxError, ValueError):
        return {}


# The second line of defence, in the kernel.

_WATCHED = _words(
    "builtins math random statistics collections functools itertools numpy numpy.linalg"
    " numpy.random numpy.testing torch torch.linalg torch.nn torch.nn.functional torch.testing"
    " torch.autograd transformers lib.encoder"
)
_CLASSES = {
    "torch": ("Tensor", "Generator"),
    "random": ("Random",),
    "torch.nn": ("Module", "Dropout", "Linear", "Embedding"),
    "transformers": ("BertModel", "LlamaModel"),
    "lib.encoder": ("Encoder",),
}
_STUDENT = ("__main__", "assignment", "")  # modules in which students' code runs
_MISSING = object()
_start: dict[str, tuple[Any, dict[str, Any]]] = {}
_kept: dict[str, tuple[Any, Any]] = {}
_state: dict[str, Any] = {"trusted": True, "unwatched": {}}


def begin() -> None:
    """Remember Python's and the libraries' functions, before anything of a student runs."""
    _kept.clear()
    _state.update(
        trusted=False, machinery=_machinery(), finder=_NoLibrary(), tracing=(sys.gettrace(), sys.getprofile())
    )
    end()
    sys.meta_path.insert(0, _state["finder"])
    _watch()


def end() -> None:
    """Take the finder of `begin` away (where a process grades several notebooks)."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _NoLibrary)]
    _kept.clear()


def trust() -> None:
    """A cell of the teacher's begins: it may import what students write themselves."""
    _state["trusted"] = True


def keep(namespace: Mapping[str, Any], names: Iterable[str]) -> None:
    """A cell of the teacher's ends: remember what it has bound."""
    _state["trusted"] = False
    _watch()
    for name in names:
        if name in namespace:
            _kept[name] = (namespace[name], _inner(namespace[name]))


def check(namespace: dict[str, Any]) -> None:
    """Fail if something that the tests rely on is not what it was; put it back, so that the next
    test is an honest one.

    Raises:
        RefusedError: names what was changed.
    """
    _state["trusted"] = False
    found = [*_changed_modules(), *_changed_names(namespace), *_changed_machinery()]
    for name, value in namespace.items():
        origin = value.__name__ if isinstance(value, ModuleType) else ""
        if isinstance(value, FunctionType | type):
            origin = _origin(value)
        if origin.partition(".")[0] == "lib" and name not in _kept and not name.startswith("_"):
            found.append(f"{name} comes from {origin}: write it yourself")
    if found:
        raise RefusedError("the grader refuses this test: " + "; ".join(found))


def _origin(value: Any) -> str:
    origin = getattr(value, "__module__", "")
    return origin if isinstance(origin, str) else ""


def _inner(value: Any) -> Any:
    """What of a helper could be changed without another object in its place."""
    if isinstance(value, FunctionType):
        return value.__code__, value.__defaults__, value.__kwdefaults__
    if isinstance(value, type) and value.__module__ in _STUDENT:
        return dict(vars(value))
    return None


def _watch() -> None:
    for name in _WATCHED:
        module = sys.modules.get(name)
        for label, thing in [(name, module)] + [
            (f"{name}.{kind}", getattr(module, kind, None)) for kind in _CLASSES.get(name, ())
        ]:
            if thing is not None and label not in _start:
                values = {
                    key: value
                    for key, value in vars(thing).items()
                    if not key.startswith("_") or (key.startswith("__") and callable(value))
                }
                _start[label] = (thing, values)
                _state["unwatched"][label] = set(vars(thing)) - values.keys()


def _changed_modules() -> list[str]:
    found = []
    for label, (thing, values) in _start.items():
        now = vars(thing)
        for key, value in values.items():
            if not _same(now.get(key, _MISSING), value):
                found.append(f"{label}.{key} was replaced")
                setattr(thing, key, value)
        if isinstance(thing, type):  # what a class inherits can be hidden, too
            for key in sorted(set(now) - values.keys() - _state["unwatched"].get(label, set())):
                if any(key in vars(base) for base in thing.__mro__[1:]):
                    found.append(f"{label}.{key} was replaced")
                    delattr(thing, key)
    return found


def _same(now: Any, then: Any) -> bool:
    """Whether a library's name still means what it did: the same object, or one of the same name
    that the library itself has put there (torch wraps functions when its compiler is loaded)."""
    if now is then:
        return True
    name = getattr(then, "__name__", None)
    home = getattr(now, "__globals__", {}).get("__name__", _origin(now))
    own = home.partition(".")[0] == _origin(then).partition(".")[0] and _origin(now) == _origin(then)
    return own and name is not None and getattr(now, "__name__", None) == name


def _changed_names(namespace: dict[str, Any]) -> list[str]:
    found = []
    for name, (value, inner) in _kept.items():
        if namespace.get(name, _MISSING) is not value:
            found.append(f"{name}, which the assignment gives, was replaced")
            namespace[name] = value
        elif _inner(value) != inner:
            found.append(f"{name}, which the assignment gives, was changed")
    for name in (_BUILTINS - _NO_BUILTINS) & set(namespace):
        if not name.startswith("_") and name != "display" and namespace[name] is not getattr(builtins, name, _MISSING):
            found.append(f"{name} hides Python's own")
            del namespace[name]
    return found


def _changed_machinery() -> list[str]:
    now, then = _machinery(), _state.get("machinery", {})
    found = [f"{what} changed" for what in now if now[what] != then.get(what)]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        if not torch.is_grad_enabled():
            found.append("gradients were switched off")
            torch.set_grad_enabled(True)
        if torch.get_default_dtype() is not torch.float32:
            found.append("torch's default type was changed")
            torch.set_default_dtype(torch.float32)
        hooks = torch.nn.modules.module
        for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
            if getattr(hooks, name):
                found.append("a hook was put on every module")
                getattr(hooks, name).clear()
        if torch.overrides._len_torch_function_stack():
            found.append("torch's functions are intercepted")
    if (sys.gettrace(), sys.getprofile()) != _state["tracing"]:
        found.append("a trace function watches the tests")
        sys.settrace(_state["tracing"][0])
        sys.setprofile(_state["tracing"][1])
    strange = [f for f in sys.meta_path if _origin(type(f)) in _STUDENT]
    if strange or _state["finder"] not in sys.meta_path:
        found.append("sys.meta_path, by which modules are found, was changed")
        kept = [f for f in sys.meta_path if f not in (*strange, _state["finder"])]
        sys.meta_path[:] = [_state["finder"], *kept]
    return found


def _machinery() -> dict[str, Any]:
    """IPython's places where code can be put between a cell and its result."""
    core = sys.modules.get("IPython.core.interactiveshell")
    if core is None or not core.InteractiveShell.initialized():
        return {}
    shell = core.InteractiveShell.instance()
    own = [name for name, value in vars(shell).items() if isinstance(value, FunctionType)]
    hooks = [call for calls in shell.events.callbacks.values() for call in calls]
    events = [id(call) for call in hooks if _origin(call) in _STUDENT]
    manager = shell.input_transformer_manager
    return {
        "IPython's AST transformers": [id(t) for t in shell.ast_transformers],
        "IPython's input transformers": [
            id(t)
            for t in (
                *shell.input_transformers_post,
                *manager.cleanup_transforms,
                *manager.line_transforms,
                *manager.token_transformers,
            )
        ],
        "IPython's event hooks": events,
        "IPython's methods": own
        + [
            (name, id(value))
            for kind in type(shell).__mro__
            for name, value in vars(kind).items()
            if isinstance(value, FunctionType)
        ],
    }


class _NoLibrary:
    """Keeps a student's code from importing the course's own solutions; the library's own imports,
    and the teacher's, go on."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] != "lib" or _state["trusted"]:
            return
        frame = sys._getframe(1)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back  # type: ignore[assignment]
        importer = frame.f_globals.get("__name__", "") if frame is not None else ""
        if importer in _STUDENT:
            raise RefusedError(f"{name} is imported: write it yourself")


def main(paths: list[str]) -> None:
    """Say of each notebook which of its cells would not be run, and why."""
    import nbformat

    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        metas = [(cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells]
        locked = {m["grade_id"]: c.source for c, m in metas if m.get("locked")}
        found = refused(notebook, locked)
        for key, why in found.items():
            print(f"{path}: the cell {key} would not be run: it {'; it '.join(why)}")
        if not found:
            print(f"{path}: every cell would be run")


if __name__ == "__main__":
    main(sys.argv[1:])
