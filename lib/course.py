"""Execute the notebooks: the whole course, or one notebook with parameters of one's own.

`python -m lib course` executes all at the `mini` profile into `outputs/`, with an index page,
rendered pages and a table of results; `python -m lib run NAME` executes one, optionally without the
cells tagged `lesson`.

An executed notebook, and a page, is written under a temporary name and renamed when it is
complete; a notebook that failed is kept as `<name>.failed.ipynb`.
"""

import ast
import difflib
import hashlib
import json
import logging
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import nbformat
import pandas as pd
import papermill
import psutil
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from papermill.exceptions import PapermillExecutionError

from lib import files, paths
from lib.cores import available_cores
from lib.data.readers import yaml_value
from lib.documents import write_documents
from lib.pages import Outcome, bring_pictures, index_page, render, results_table, two_decimals
from lib.workers import at_once

MEMORY_GIB = 3.5  # the largest notebook at mini needs 3.1
NOTEBOOK_PATTERN = "[0-9][0-9]_*.ipynb"
LONGEST = (
    "03_consert",
    "05_sda",
    "04_una",
    "02_simcse",
)  # begun first, so that no core idles at the end


OPTIONAL = re.compile(r"Optional\[(.*)\]")
KINDS = (
    "None",
    "bool",
    "int",
    "float",
    "list",
    "dict",
    "str",
)  # in the order in which a text is tried


class CourseError(ValueError):
    """A request that cannot be carried out: unknown notebook, wrong parameter, missing kernel."""


# --- notebooks and their parameters ---------------------------------------------------------


def notebooks(folder: Path | None = None) -> list[Path]:
    """The course's notebooks, `NN_name.ipynb`, in order.

    Raises:
        CourseError: the folder holds none.
    """
    folder = folder or paths.NOTEBOOKS
    sources = sorted(folder.glob(NOTEBOOK_PATTERN))
    if not sources:
        raise CourseError(
            f"No notebook named like 01_name.ipynb in {folder}; name the folder with --notebooks."
        )
    return sources


def find_notebook(name: str, folder: Path | None = None) -> Path:
    """Resolve `02_simcse`, `02`, `02_simcse.ipynb` or the path of a notebook.

    Raises:
        CourseError: nothing, or more than one notebook, has that name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    if Path(name).name != name:
        raise CourseError(
            f"No notebook {name!r}: no such file, or its name does not end in .ipynb."
        )
    known = notebooks(folder)
    stem = Path(name).name.removesuffix(".ipynb")
    matches = [path for path in known if path.stem == stem] or [
        p for p in known if p.stem.split("_")[0] == stem
    ]
    if len(matches) != 1:
        stems = [path.stem for path in known]
        hint = _did_you_mean(stem, stems)
        raise CourseError(f"No notebook {name!r}{hint} There are {', '.join(stems)}.")
    return matches[0]


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook in the present format.

    Raises:
        CourseError: the file is not there, or is no notebook.
    """
    try:
        node = nbformat.read(path, as_version=4)
        nbformat.validate(node)
    except FileNotFoundError as error:
        raise CourseError(f"No notebook {str(path)!r}.") from error
    except Exception as error:  # nbformat raises whatever a strange shape leads to
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        if isinstance(error, AttributeError | KeyError | TypeError | IndexError):
            reason = "it has another shape"
        raise CourseError(f"{path} is no notebook: {reason}") from error
    return node


def parse_value(text: str, kind: str = "") -> Any:
    """Read the value of a parameter by the type that it is declared with.

    Args:
        kind: as annotated, e.g. `Optional[float]` or `float | None`; "" takes what the text looks
            like in YAML 1.2.

    Raises:
        ValueError: the text is no value of that type.

    Example:
        >>> [parse_value(text, "Optional[float]") for text in ("0.1", "1e-3", "010", "None")]
        [0.1, 0.001, 10, None]
        >>> [parse_value(text, "str") for text in ("010", "yes", "1:30", "Question: what?")]
        ['010', 'yes', '1:30', 'Question: what?']
        >>> [parse_value(text) for text in ("0.1", "true", "[0, 1]", "bert-base")]
        [0.1, True, [0, 1], 'bert-base']
    """
    union = OPTIONAL.sub(r"\1 | None", kind)
    kinds = [part.strip().partition("[")[0] for part in union.split("|")]
    if not set(kinds) <= set(KINDS):
        kinds = []
    if kinds == ["str"]:
        return text
    value = None if text == "None" else _yaml_or(text)
    if not kinds:
        return value
    if value is None and text.strip() and "None" in kinds:
        return None
    for one in KINDS[1:-1]:
        if one in kinds and _is(value, one):
            return value
    if "str" in kinds:
        return text
    raise ValueError(f"{text!r} is no {kind}")


def _yaml_or(text: str) -> Any:
    """The YAML value of a text, or the text where it is none."""
    try:
        return yaml_value(text)
    except ValueError:
        return text


def _is(value: Any, kind: str) -> bool:
    if kind in ("int", "float"):
        numbers = int if kind == "int" else int | float
        return isinstance(value, numbers) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, {"bool": bool, "list": list, "dict": dict}[kind])


def parameter_kinds(notebook: Path) -> dict[str, str]:
    """Names that the notebook's cell tagged `parameters` assigns, in order, with their declared
    types.

    The type is the annotation, else that of the default, else "". Read from the syntax tree:
    papermill's own inspection misses annotations such as `str | None`, which is why our notebooks
    write `Optional[str]`.

    Raises:
        CourseError: no notebook, or its parameters are no Python.
    """
    cells = read_notebook(notebook).cells
    source = next(
        (cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])), ""
    )
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise CourseError(
            f"{notebook}: the cell tagged `parameters` is no Python: {error}"
        ) from error
    kinds = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kinds[node.target.id] = ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            default = node.value.value if isinstance(node.value, ast.Constant) else None
            kinds |= dict.fromkeys(names, "" if default is None else type(default).__name__)
    return kinds


def parameter_names(notebook: Path) -> list[str]:
    """The names of `parameter_kinds`."""
    return list(parameter_kinds(notebook))


def read_parameters(notebook: Path, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Parameters as texts, read by the types that the notebook declares.

    Raises:
        CourseError: a name that the notebook does not define or that is given twice, or a text that
            is no value of its type.
    """
    names = [name for name, _ in texts]
    check_parameters(notebook, dict(texts))
    if twice := [name for name in names if names.count(name) > 1]:
        raise CourseError(f"{notebook.stem}: parameter {twice[0]!r} is given twice.")
    kinds, values = parameter_kinds(notebook), {}
    for name, text in texts:
        try:
            values[name] = parse_value(text, kinds[name])
        except ValueError as error:
            message = f"{notebook.stem}: {name} must be {kinds[name]}, got {text!r}."
            raise CourseError(message) from error
    return values


def check_parameters(notebook: Path, parameters: dict[str, Any]) -> None:
    """Compare names with those the notebook's cell tagged `parameters` defines.

    Raises:
        CourseError: a name that the notebook does not define, with the list of those it does.
    """
    known = parameter_names(notebook)
    for name in parameters:
        if name not in known:
            listed = ", ".join(known) or "none (no cell is tagged `parameters`)"
            hint = _did_you_mean(name, known)
            raise CourseError(
                f"{notebook.stem} has no parameter {name!r}{hint} Its parameters: {listed}."
            )


def without_lesson(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy of a notebook without the cells that carry the tag `lesson`."""
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell in copy.cells if "lesson" not in cell.metadata.get("tags", [])]
    return copy


def run_path(notebook: Path, parameters: dict[str, Any], lesson: bool = True) -> Path:
    """Where `run` puts a notebook: `outputs/<stem>/<stem>-<8 hex of the parameters>.ipynb`."""
    key = json.dumps({"parameters": parameters, "lesson": lesson}, sort_keys=True, default=str)
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    return paths.outputs() / notebook.stem / f"{notebook.stem}-{digest}.ipynb"


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)." if close else "."


def _papermill_path(path: Path) -> str:
    """papermill formats every path as a template: literal braces must be doubled."""
    return str(path).replace("{", "{{").replace("}", "}}")


# --- execution --------------------------------------------------------------------------------


class OwnKernel(AsyncKernelManager):
    """An IPython kernel of the running interpreter, whatever kernels the user has registered."""

    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]
        """Start the kernel with encrypted transport and the project's root on its import path."""
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(paths.ROOT), *([inherited] if inherited else [])])
        environment = {**os.environ, "PYTHONPATH": path}
        await super().start_kernel(env=environment, transport_encryption="auto", **kwargs)


class Progress:
    """One line of progress: rewritten every second on a terminal, a line every `every` seconds
    elsewhere.

    A notebook that is not `alone` on the terminal has lines of its own there too.
    """

    def __init__(
        self, label: str, cells: int, stream: TextIO, every: float = 15.0, alone: bool = True
    ) -> None:
        self.label, self.cells, self.stream, self.every = label, cells, stream, every
        self.cell = 0
        self.live = alone and stream.isatty()
        self._start = self._last = time.monotonic()
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "Progress":
        if self.live:
            self._ticker.start()
        else:
            self._write(f"{self.label}: {self.cells} cells\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._done.set()
        if self.live:
            self._ticker.join()
            self._write("\r\x1b[2K")

    def __call__(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """Count one code cell as begun; called by nbclient."""
        self.cell += 1
        if not self.live and time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self._write(self.line() + "\n")

    def line(self) -> str:
        """Which notebook, which cell, elapsed minutes and seconds."""
        return (
            f"{self.label}: cell {self.cell} of {self.cells},"
            f" {clock(time.monotonic() - self._start)}"
        )

    def _tick(self) -> None:
        while not self._done.wait(1.0):
            self._write("\r\x1b[2K" + self.line())

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def execute(
    notebook: Path,
    target: Path,
    parameters: dict[str, Any] | None = None,
    *,
    lesson: bool = True,
    label: str | None = None,
    stream: TextIO | None = None,
    alone: bool = True,
) -> Outcome:
    """Execute one notebook through papermill in a kernel of the running interpreter.

    Args:
        notebook: the source, not changed.
        target: the executed notebook; written when complete, else `<stem>.failed.ipynb` beside it.
        parameters: values for names of the cell tagged `parameters`.
        lesson: False drops the cells tagged `lesson` first.
        label: what progress calls the notebook (default: its stem).
        stream: where progress goes (default: nowhere).
        alone: whether no other notebook writes to `stream` meanwhile.

    Returns:
        The outcome; `error` names the cell and the exception when the notebook failed.

    Raises:
        CourseError: unknown parameter, or no IPython kernel in this environment.
    """
    parameters = parameters or {}
    check_parameters(notebook, parameters)
    node = read_notebook(notebook)
    if not lesson:
        node = without_lesson(node)
    cells = sum(
        cell.cell_type == "code" and bool(cell.source.strip()) for cell in node.cells
    ) + bool(parameters)
    failed = target.with_suffix(".failed.ipynb")
    start = time.monotonic()
    label = label or notebook.stem
    files.make_folder(target.parent, "--out or CSE_OUTPUTS")
    files.sweep_folder(target.parent)
    with files.scratch_folder(target) as folder:
        source, partial = folder / notebook.name, folder / f"executed-{target.name}"
        nbformat.write(node, source)
        with (
            open(os.devnull, "w") as nowhere,
            Progress(label, cells, stream or nowhere, alone=alone) as progress,
        ):
            error = _papermill(source, partial, parameters, progress)
        final = failed if error else target
        if partial.exists():
            files.replace(partial, final)
    bring_pictures(node, notebook.parent, target.parent)
    if not error:
        failed.unlink(missing_ok=True)
    return Outcome(notebook.stem, final, time.monotonic() - start, cells, error)


def _papermill(
    source: Path, partial: Path, parameters: dict[str, Any], progress: Progress
) -> str | None:
    """Execute `source` into `partial`; the error as text, or None."""
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(
            _papermill_path(source),
            _papermill_path(partial),
            parameters,
            kernel_name="python3",
            progress_bar=False,
            kernel_manager_class=OwnKernel,
            on_cell_execute=progress,
        )
    except PapermillExecutionError as error:
        return f"cell [{error.exec_count}]: {error.ename}: {_uncoloured(error.evalue)}"
    except NoSuchKernel as error:
        raise CourseError(
            f"ipykernel is missing in {sys.prefix}; run `make setup` and use its Python."
        ) from error
    except Exception as error:
        return f"cell [{progress.cell}]: {type(error).__name__}: {error}"
    return None


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: `clock(75)` is `1:15`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


# --- command line -------------------------------------------------------------------------------


def course(
    folder: Path | None = None,
    stream: TextIO | None = None,
    log: Callable[[str], None] | None = None,
    jobs: int = 1,
) -> int:
    """Execute every notebook at the `mini` profile; 0 if all succeeded, else 1.

    With `jobs` above 1, that many at a time, the longest first, each with its share of the
    processor's cores and with progress on the standard output; the last notebook, which reads what
    the others have left, begins after them.
    """
    log = log or (lambda text: None)
    sources = notebooks(folder)
    outputs = paths.outputs()
    labelled = [
        (notebook, f"[{n}/{len(sources)}] {notebook.stem}") for n, notebook in enumerate(sources, 1)
    ]
    outcomes = []
    for label, outcome in _all(labelled, stream, jobs):
        outcomes.append(outcome)
        log(f"{label}: {'FAILED' if outcome.error else 'done'} in {clock(outcome.seconds)}")
    outcomes.sort(key=lambda outcome: outcome.name)
    try:
        results = results_table([notebook.stem for notebook in sources])
    except ValueError as error:
        results = pd.DataFrame()
        log(f"\nNo table of results: {error}")
    write_documents(outputs)
    page = index_page(outcomes, results, outputs)
    if not results.empty:
        log(
            "\n"
            + results.head(40).to_string(
                index=False, float_format=two_decimals, na_rep="", max_colwidth=60
            )
        )
    log("\nExecuted notebooks:\n" + "\n".join(f"  {outcome.path}" for outcome in outcomes))
    log(f"Pages: {page}")
    for outcome in outcomes:
        if outcome.error:
            log(f"FAILED {outcome.name}, {outcome.error}")
    return int(any(outcome.error for outcome in outcomes))


def _all(
    labelled: Sequence[tuple[Path, str]], stream: TextIO | None, jobs: int
) -> Iterator[tuple[str, Outcome]]:
    """Label and outcome of each notebook, as they end."""
    together = len(labelled) - 1 if jobs > 1 and len(labelled) > 2 else 0
    if together:
        yield from _several(labelled[:together], jobs)
    for notebook, label in labelled[together:]:
        yield label, _one(notebook, label, stream)


def _several(labelled: Sequence[tuple[Path, str]], jobs: int) -> Iterator[tuple[str, Outcome]]:
    """`jobs` notebooks at a time, the longest first."""
    for (_, label), outcome in at_once(_beside_others, sorted(labelled, key=_rank), jobs):
        yield label, outcome


def _rank(labelled: tuple[Path, str]) -> int:
    stem = labelled[0].stem
    return LONGEST.index(stem) if stem in LONGEST else len(LONGEST)


def _beside_others(labelled: tuple[Path, str]) -> Outcome:
    notebook, label = labelled
    return _one(notebook, label, sys.stdout, alone=False)


def _one(notebook: Path, label: str, stream: TextIO | None, alone: bool = True) -> Outcome:
    target = paths.outputs() / notebook.stem / notebook.name
    try:
        outcome = execute(
            notebook, target, {"profile": "mini"}, label=label, stream=stream, alone=alone
        )
    except CourseError as error:
        outcome = Outcome(notebook.stem, target, 0.0, 0, str(error))
    if outcome.path.exists():
        render(outcome.path, outcome.path.with_suffix(".html"), notebook.parent)
    return outcome


def affordable_jobs(jobs: int, cores: int | None = None, gib: float | None = None) -> int:
    """How many notebooks at a time the machine has cores and free memory for: at least 1, at most
    `jobs`.

    Args:
        cores, gib: cores and free memory in GiB, both measured if None.

    Example:
        >>> affordable_jobs(4, cores=2, gib=16.0), affordable_jobs(2, cores=8, gib=4.0)
        (2, 1)
    """
    cores = cores or len(available_cores())
    gib = psutil.virtual_memory().available / 2**30 if gib is None else gib
    return max(1, min(jobs, cores, int(gib / MEMORY_GIB)))
