"""The notebooks as committed: their form, their outputs, and their behaviour under papermill.

Once each, by `make test`: nbval executes every cell and compares those with the tag
`nbval-check-output` with the committed output (`test_nbval`). From the syntax trees: a run needs no
lesson cell, and no cell binds anew what it or a cell above it reads. That a misspelt parameter
stops a notebook is tried on one of them (all call the same function, in the cell that a test asks
for).

By `make test-slow`: each without its lesson in a folder of its own; each with other parameters,
every cell twice and then all from the last to the first; and for the main parameters, whether two
values lead to two outputs. They protect what the trees do not show: an object that a cell changes
in place, a value that is not passed on, a path that holds in the project's folder alone.
"""

import ast
import builtins
import json
import os
import re
import subprocess
import symtable
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import nbformat
import papermill
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from papermill.parameterize import parameterize_notebook

from lib import data, paths, runs
from lib.runs import notebooks
from tools import pages
from tools.course import LONGEST
from tools.density import is_folded

NOTEBOOKS = notebooks.find_all()
SOLUTIONS = sorted((paths.NOTEBOOKS / "solutions").glob("*.ipynb"))
REQUIRED = ("profile", "seed", "n_seeds", "model", "max_steps", "device", "data_dir", "output_dir")
CHECKED = "nbval-check-output"
NOT_COMPARED = ("image/png", "text/html", "application/vnd.jupyter.widget-view+json")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
_LONGEST_FIRST = sorted(NOTEBOOKS, key=lambda path: (path.stem not in LONGEST, path.stem))
longest_first = pytest.mark.parametrize("path", _LONGEST_FIRST, ids=lambda path: path.stem)


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
    return subprocess.run(
        command, cwd=cwd, env=environment(outputs), capture_output=True, text=True, check=False
    )


def trained_steps(outputs: Path) -> list[int]:
    """Training steps of every finished run below a folder."""
    files = outputs.glob("**/metrics.json")
    return [int(json.loads(file.read_text()).get("steps", 0)) for file in files]


def test_the_notebooks_are_one_to_eight() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"0{number}" for number in range(1, 9)]


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
    card = pages.summary(path)
    assert card.title.startswith(path.stem[:2]) and all(card)


@each
def test_papermill_knows_every_parameter_and_its_help(path: Path) -> None:
    found = papermill.inspect_notebook(str(path))
    declared = [one.target.id for one in ast.parse(parameters_cell(path).source).body]
    assert list(found) == declared and all(one["help"] for one in found.values())


@each
def test_parameters_are_typed_literals(path: Path) -> None:
    cell = parameters_cell(path)
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.AnnAssign) and statement.value, ast.unparse(statement)
        ast.literal_eval(statement.value)
    names = notebooks.parameter_names(path)
    assert [name for name in REQUIRED if name not in names] == []
    assert 'profile: str = "mini"' in cell.source


@each
def test_parameters_are_checked_in_the_next_cell(path: Path) -> None:
    cells = code_cells(path)
    following = cells[cells.index(parameters_cell(path)) + 1]
    assert "runs.parameters(globals())" in following.source
    assert "lesson" not in tags(following) and "lesson" not in tags(parameters_cell(path))


@each
def test_prose_between_cells_of_the_lesson_is_of_the_lesson(path: Path) -> None:
    """`--no-lesson` would else leave a question whose answer is gone."""
    cells = read(path).cells
    code = [i for i, cell in enumerate(cells) if cell.cell_type == "code"]
    lost = {
        cell.id
        for before, after in pairwise(code)
        if {"lesson"} <= set(tags(cells[before])) & set(tags(cells[after]))
        for cell in cells[before + 1 : after]
        if "lesson" not in tags(cell)
    }
    assert lost == set()


def names_read(cell) -> set[str]:
    """The names whose value a cell uses, the arguments of its own functions left out."""
    nodes = list(ast.walk(python(cell)))
    names = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return names - {node.arg for node in nodes if isinstance(node, ast.arg)}


@each
def test_a_folded_cell_is_a_function_that_the_next_cell_is_the_first_to_use(path: Path) -> None:
    cells = code_cells(path)
    for i, cell in enumerate(cells):
        set_up = cell.id in ("imports", "settings", "derived") or "parameters" in tags(cell)
        if is_folded(cell) and not set_up and "say(" not in cell.source:
            (function,) = python(cell).body
            assert isinstance(function, ast.FunctionDef) and ast.get_docstring(function)
            used = [function.name in names_read(other) for other in cells]
            users = [n for n, uses in enumerate(used) if uses and n != i]
            assert users[:1] == [i + 1]
            used_by_run = any("lesson" not in tags(cells[n]) for n in users)
            assert ("lesson" in tags(cell)) != used_by_run


@each
def test_is_light_and_clean(path: Path) -> None:
    assert path.stat().st_size <= 400 * 1024
    assert "widgets" not in read(path).metadata
    assert "papermill" not in read(path).metadata


@pytest.mark.parametrize("path", [*NOTEBOOKS, *SOLUTIONS], ids=lambda path: path.stem)
def test_was_executed_in_order_without_errors(path: Path) -> None:
    cells = [cell for cell in code_cells(path) if cell.source.strip()]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [out.ename for cell in cells for out in cell.outputs if out.output_type == "error"] == []


@each
def test_compared_cells_have_outputs(path: Path) -> None:
    compared = [cell for cell in code_cells(path) if CHECKED in tags(cell)]
    assert compared, "no cell is compared with its committed output"
    assert [cell.source for cell in compared if not cell.outputs] == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "no file .*mine.txt"),
        ([], "mine.txt holds 0 different sentences"),
        (
            ["Too short."] + [f"A line {i}" for i in range(500)],
            "mine.txt holds 0 different .* of 8 to 60 words",
        ),
        (
            ["The same sentence has eight words in it."] * 500,
            "mine.txt holds 1 different .* at least 200",
        ),
    ],
)
def test_a_text_that_is_missing_empty_or_too_short_stops_notebook_08(
    tmp_path: Path, lines: list[str] | None, message: str
) -> None:
    own_text, mine = own_text_of_08(), tmp_path / "mine.txt"
    if lines is not None:
        mine.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        own_text(str(mine))


def test_notebook_08_reads_each_sentence_of_a_text_once(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text(
        "".join(f"This is sentence {i % 250} of my own file.\n\n" for i in range(300)),
        encoding="utf-8",
    )
    assert own_text_of_08()(str(mine)) == [
        f"This is sentence {i} of my own file." for i in range(250)
    ]


def own_text_of_08() -> Callable[[str], list[str]]:
    """The function of notebook 08 that reads the text."""
    (cell,) = [c for c in code_cells(notebooks.find("08")) if c.id == "own-text"]
    names: dict = {"Path": Path, "data": data, "runs": runs, "PLAYABLE": range(8, 61)}
    exec(cell.source, names)
    return names["own_text"]


# --- a run without its lesson, from the syntax trees
# --------------------------------------------------------

GIVEN = {*dir(builtins), "display", "get_ipython", "__annotations__"}


def python(cell: nbformat.NotebookNode) -> ast.Module:
    """The cell's syntax tree, IPython's own syntax turned into calls."""
    return ast.parse(TransformerManager().transform_cell(cell.source))


def names(statement: ast.stmt) -> tuple[set[str], set[str], set[str]]:
    """Global names that a statement binds, that it reads at once, and that its functions read when
    they are called."""
    binds, reads, later = set(), set(), set()

    def walk(table: symtable.SymbolTable, called: bool) -> None:
        for symbol in table.get_symbols():
            outside = symbol.is_global() and not symbol.is_local()  # both in a function named top
            if table.get_type() == "module" or outside:
                if symbol.is_assigned() or symbol.is_imported():
                    binds.add(symbol.get_name())
                if symbol.is_referenced():
                    (later if called else reads).add(symbol.get_name())
        for child in table.get_children():
            at_once = child.get_type() == "class" or child.get_name().endswith(("comp", "genexpr"))
            walk(child, called or not at_once)

    walk(symtable.symtable(ast.unparse(statement), "cell", "exec"), called=False)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        reads.add(statement.target.id)
    return binds, reads, later


def bound(cell: nbformat.NotebookNode) -> set[str]:
    """Global names that a cell binds."""
    return set().union(*(names(statement)[0] for statement in python(cell).body))


def needed_from_elsewhere(cells: Iterable[nbformat.NotebookNode]) -> list[str]:
    """Names that cells read, run one after the other, and that none of them has bound by then."""
    known, missing, deferred = set(GIVEN), set(), set()
    for statement in (statement for cell in cells for statement in python(cell).body):
        binds, reads, later = names(statement)
        is_compound = hasattr(statement, "body")
        missing |= reads - known - (binds if is_compound else set())
        deferred |= later
        known |= binds
    return sorted(missing | deferred - known)


@each
def test_no_run_cell_uses_a_name_of_the_lesson(path: Path) -> None:
    own = [cell for cell in code_cells(path) if "lesson" not in tags(cell)]
    assert needed_from_elsewhere(own) == []


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (["y = x + 1"], ["x"]),
        (["x += 1"], ["x"]),
        (["def f(a):\n    return a + x", "f(1)"], ["x"]),
        (["y = [x for _ in range(3)]"], ["x"]),
        (["%matplotlib inline\nx.plot()"], ["x"]),
        (["print(y)", "y = 1"], ["y"]),
        (["y = {x: 1 for x in range(3)}", "y"], []),
        (["def f(n):\n    return f(n - 1) + later", "later = 1", "f(2)"], []),
    ],
)
def test_the_check_finds_names_of_the_lesson(run: list[str], expected: list[str]) -> None:
    assert needed_from_elsewhere([new_code_cell(source) for source in run]) == expected


@pytest.mark.parametrize("path", NOTEBOOKS + SOLUTIONS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_cell_that_is_run_again_finds_every_name_as_it_was(path: Path) -> None:
    """Neither it nor a cell below binds a name anew that it reads."""
    cells = code_cells(path)
    last = {name: place for place, cell in enumerate(cells) for name in bound(cell)}
    anew = []
    for place, cell in enumerate(cells):
        reads = needed_from_elsewhere([cell])
        if "globals()" in cell.source:
            reads += notebooks.parameter_names(path)
        anew += [(cell.id, name) for name in reads if last.get(name, -1) >= place]
    assert anew == []


# --- executed
# ----------------------------------------------------------------------------------------------


@pytest.mark.timeout(3000)
@pytest.mark.notebook
@longest_first
def test_nbval(path: Path, tmp_path: Path) -> None:
    options = [
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "--nbval-lax",
        "--nbval-current-env",
    ]
    command = ["pytest", *options, "--nbval-cell-timeout=1200", str(path)]
    done = run(command, paths.ROOT, tmp_path)
    if "Kernel died before replying to kernel_info" in done.stdout:
        # before any cell ran: kernels that start in one moment may draw the same port
        done = run(command, paths.ROOT, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{len([c for c in code_cells(path) if c.source.strip()])} passed" in done.stdout


def executed(path: Path, cells: list[nbformat.NotebookNode], given: dict, outputs: Path) -> list:
    """Copies of cells of a notebook, executed in this order in one kernel with parameters given;
    none of them may fail."""
    copies = [new_code_cell(c.source, metadata={"of": c.id, "tags": tags(c)}) for c in cells]
    whole = new_notebook(cells=copies, metadata={**read(path).metadata, "papermill": {}})
    node = parameterize_notebook(whole, given)
    place = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        node, timeout=1200, allow_errors=True, coalesce_streams=True, resources=place
    )
    client.execute(env=environment(outputs))
    errors = [
        (cell.metadata.get("of"), f"{out.ename}: {out.evalue}")
        for cell in node.cells
        for out in cell.outputs
        if out.output_type == "error"
    ]
    assert errors == []
    return [cell for cell in node.cells if "of" in cell.metadata]


def shown(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Kind and text of each output, all but pictures, HTML and warnings."""
    kinds = []
    for out in cell.outputs:
        if out.output_type != "stream":
            kinds += [(kind, str(data)) for kind, data in sorted(out.data.items())]
        elif out.name == "stdout":
            kinds.append((out.name, out.text))
    return [(kind, "" if kind in NOT_COMPARED else text) for kind, text in kinds]


@pytest.mark.slow
@longest_first
def test_cells_run_twice_and_again_from_the_last_to_the_first(path: Path, tmp_path: Path) -> None:
    """As a reader runs them who tries something out, and with other parameters than the default."""
    cells = code_cells(path)
    again = [cell for cell in cells if "parameters" not in tags(cell)]  # papermill's stand below it
    order = [copy for cell in cells for copy in ((cell, cell) if cell in again else (cell,))]
    order += reversed(again)
    given = {"seed": 3, "max_steps": 3, "n_seeds": 2}
    first: dict[str, nbformat.NotebookNode] = {}
    changed = {}
    for cell in executed(path, order, given, tmp_path):
        before, now = shown(first.setdefault(cell.metadata["of"], cell)), shown(cell)
        if CHECKED not in tags(cell):  # the kinds alone: a figure stays a figure
            before, now = ([kind for kind, _ in one] for one in (before, now))
        if before != now:
            changed[cell.metadata["of"]] = before, now
    assert changed == {}
    assert 3 in trained_steps(tmp_path)


# Notebook, parameter, two values, what else is given, and the cells whose outputs it must change.
FEW = {"max_steps": 3}
REACHES = [
    ("01", "temperature", (0.05, 0.5), FEW, "derived run-curve paper-table search-places"),
    ("01", "n_seeds", (2, 5), {}, "random-loss"),
    ("02", "dropout", (0.0, 0.3), FEW, "run-plot run-read kinds"),
    ("03", "view1", ("token_cutoff", "dropout"), FEW | {"rate1": 0.6},
     "views-slider run-plot probe-figure payoff-figure"),
    ("04", "beta", (0.1, 0.9), FEW,
     "derived hook-table hook-answer p-slider b2 hard run-plot reading-table payoff"),
    ("05", "delta", (0.0, 0.4), FEW | {"n_sentences": 400},
     "derived push-slider run-scores live-curve"),
    ("06", "pooling", ("cls", "mean"), FEW, "run-read"),
    ("07", "method", ("simcse", "consert"), FEW, "derived run-read"),
]  # fmt: skip


def with_what_they_need(path: Path, wanted: list[str]) -> list[nbformat.NotebookNode]:
    """Cells of a notebook, by their ids, and those before them that bind a name they read."""
    kept, missing = [], set()
    for cell in reversed(code_cells(path)):
        if cell.id in wanted or bound(cell) & missing or "parameters" in tags(cell):
            kept.insert(0, cell)
            missing = missing - bound(cell) | set(needed_from_elsewhere([cell]))
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name", "values", "others", "ids"), REACHES)
def test_a_parameter_reaches(
    number: str, name: str, values: tuple, others: dict, ids: str, tmp_path: Path
) -> None:
    """The sentences, figures and scores that a reader sees are those of the value given."""
    path, wanted = notebooks.find(number), ids.split()
    cells = with_what_they_need(path, wanted)
    outputs = []
    for value in values:
        ran = executed(path, cells, others | {name: value}, tmp_path)
        outputs.append({cell.metadata["of"]: str(cell.outputs) for cell in ran})
    assert [one for one in wanted if outputs[0][one] == outputs[1][one]] == []


def stubs(path: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """The functions left to the reader, the cells and names of their solutions, and the cells that
    check them."""
    cells = code_cells(path)
    for cell, after in pairwise(cells):
        for left in (node.name for node in python(cell).body if isinstance(node, ast.FunctionDef)):
            if left.startswith("my_"):
                (solution,) = python(after).body
                checks = [other.id for other in cells if left in names_read(other)]
                yield left, after.id, solution.name, checks


def what_checks_say(path: Path, tmp_path: Path, answer: Callable) -> list[str]:
    """What each check of a notebook shows; `answer` makes of a stub's name, its solution's name and
    the solution's source the code that binds the stub."""
    solved = list(stubs(path))
    assert all(checks for *_, checks in solved)
    wanted = [check for *_, checks in solved for check in checks]
    cells = deepcopy(with_what_they_need(path, wanted + [place for _, place, *_ in solved]))
    for left, place, name, _ in solved:
        (cell,) = [one for one in cells if one.id == place]
        cell.source += f"\n\n{answer(left, name, cell.source)}\n"
    said = {c.metadata["of"]: str(shown(c)) for c in executed(path, cells, {}, tmp_path)}
    return [said[one] for one in wanted]


@pytest.mark.slow
@each
def test_every_solution_passes_the_check_of_its_stub(path: Path, tmp_path: Path) -> None:
    said = what_checks_say(path, tmp_path, lambda left, name, _: f"{left} = {name}")
    unsure = "not (yet|written)"
    assert [one for one in said if re.search(unsure, one) or "right" not in one] == []


SLIPS = {  # a stub → what stands in its solution, and what a reader may write there
    "my_info_nce": ("/ tau", ""),
    "my_forces": ("(n * tau)", "n"),
    "my_accuracy": ("F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T", "z1 @ z2.T"),
    "my_loss": ("/ temperature", "/ 0.05"),
    "my_push_loss": (".mean()", ".sum()"),
    "my_wins": ("> lead", "> 0.82"),
    "my_feature_cutoff": ("draws[i]", "draws[i, :length]"),
    "my_consert_loss": ("u.T / tau", "u.T / 0.1"),
    "my_probabilities": ("np.minimum(beta * a / a.mean(), 1)", "beta * a / a.mean()"),
    "my_share": (".sum(1)", ".mean(1)"),
    "my_extra": (") / tau", ") / 0.05"),
    "my_margin_loss": (") - delta", ") - tau * delta"),
    "my_negate": ("root.children", "doc"),
    "my_rotate": ("position * base", "position * 10_000.0"),
    "my_last": (" - 1]", " - 2]"),
    "my_verdict": ('high >= printed else "smaller"', 'mean >= printed else "smaller"'),
    "my_half_width": ("0.025 / together", "0.025"),
    "my_pick": ("(cosines > right).sum(1)", "(cosines > right).any(1)"),
    "my_interval": ("n - 3", "n"),
}


@pytest.mark.slow
@each
def test_no_check_accepts_a_slip(path: Path, tmp_path: Path) -> None:
    def answer(left: str, name: str, source: str) -> str:
        right, slip = SLIPS[left]
        assert right in source
        return source.replace(right, slip).replace(f"def {name}(", f"def {left}(")

    said = what_checks_say(path, tmp_path, answer)
    assert [one for one in said if "not yet" not in one] == []


@pytest.mark.slow
@longest_first
def test_run_needs_no_lesson_cell_nor_the_projects_folder(path: Path, tmp_path: Path) -> None:
    options = f"-p max_steps 2 -p seed 5 --no-lesson --out {tmp_path}/out.ipynb".split()
    done = run(["lib", "run", path.stem, *options], tmp_path, tmp_path / "outputs")
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    node = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert not [cell for cell in node.cells if "lesson" in tags(cell)]
    assert 2 in trained_steps(tmp_path / "outputs")
    assert {p.name for p in tmp_path.iterdir()} == {"out.ipynb", "outputs"}


@pytest.mark.parametrize("path", NOTEBOOKS + SOLUTIONS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_what_a_notebook_takes_from_lib_is_there(path: Path) -> None:
    """Names that it imports, and attributes of the modules among them."""
    modules, trees = {}, [python(cell) for cell in code_cells(path)]
    missing = []
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib":
            for alias in node.names:
                found = taken(node.module, alias.name)
                missing += [alias.name] * (found is None)
                if isinstance(found, ModuleType):
                    modules[alias.asname or alias.name] = found
    for node in (node for tree in trees for node in ast.walk(tree)):
        named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if named and node.value.id in modules and not hasattr(modules[node.value.id], node.attr):
            missing.append(f"{node.value.id}.{node.attr}")
    assert missing == [] and modules


def taken(package: str, name: str) -> object:
    """What `from package import name` gives, or None."""
    module = import_module(package)
    if not hasattr(module, name) and find_spec(f"{package}.{name}"):
        import_module(f"{package}.{name}")
    return getattr(module, name, None)


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_run(path: Path, tmp_path: Path) -> None:
    command = ["pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--nbval-lax"]
    done = run([*command, "--nbval-current-env", str(path)], paths.ROOT, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
