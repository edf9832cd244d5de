"""Execute a notebook with parameters, through papermill.

The executed copy is written under a temporary name and renamed when it is complete. The copy of a
notebook that failed is kept as `<name>.failed.ipynb`.
"""

import ast
import difflib
import hashlib
import json
import logging
import math
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote, unquote

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from lib import paths
from lib.data import files
from lib.data.readers import yaml_value

PATTERN = "[0-9][0-9]_*.ipynb"
KINDS = ("None", "bool", "int", "float", "list", "dict", "str")
LOCAL_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
SECONDS_BETWEEN_LINES = 10.0


class NotebookError(ValueError):
    """A request that cannot be met: an unknown notebook or parameter, or a value of wrong type."""


@dataclass(frozen=True)
class Outcome:
    """An executed notebook.

    Attributes:
        name: the notebook's name without its ending.
        path: the executed copy.
        seconds: how long it took.
        error: the cell and the exception that stopped it; None if every cell succeeded.
    """

    name: str
    path: Path
    seconds: float
    error: str | None = None


# --- notebooks and their parameters ---------------------------------------------------------


def find_all(folder: Path | None = None) -> list[Path]:
    """The notebooks of the course, `NN_name.ipynb`, in order.

    Raises:
        NotebookError: the folder holds none.
    """
    folder = folder or paths.NOTEBOOKS
    found = sorted(folder.glob(PATTERN))
    if not found:
        raise NotebookError(f"No notebook named like 01_name.ipynb in {folder}.")
    return found


def find(name: str, folder: Path | None = None) -> Path:
    """The notebook that `02_simcse`, `02`, `02_simcse.ipynb` or a path means.

    Raises:
        NotebookError: there is no such notebook; the message has the nearest name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    if Path(name).name != name:
        raise NotebookError(f"No notebook {name!r}: no such file that ends in .ipynb.")
    stems = {path.stem: path for path in find_all(folder)}
    numbers = {stem.split("_")[0]: path for stem, path in stems.items()}
    stem = name.removesuffix(".ipynb")
    if found := stems.get(stem) or numbers.get(stem):
        return found
    raise NotebookError(f"No notebook {name!r}{_nearest(stem, list(stems))}")


def read(path: Path) -> nbformat.NotebookNode:
    """A notebook in the present format.

    Raises:
        NotebookError: the file is not there, or is no notebook.
    """
    try:
        node = nbformat.read(path, as_version=4)
        nbformat.validate(node)
    except Exception as error:  # nbformat raises whatever a strange shape leads to
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise NotebookError(f"{path} is no notebook: {reason}") from error
    return node


def parameter_kinds(notebook: Path) -> dict[str, str]:
    """The parameters of a notebook with their types, as its cell tagged `parameters` declares them.

    The type is the annotation, or else the type of the default.

    Raises:
        NotebookError: it is no notebook, or its parameters are no Python.
    """
    tagged = [c.source for c in read(notebook).cells if "parameters" in c.metadata.get("tags", [])]
    try:
        body = ast.parse("\n".join(tagged)).body
    except (SyntaxError, ValueError) as error:
        message = f"{notebook}: the cell tagged `parameters` is no Python: {error}"
        raise NotebookError(message) from error
    kinds = {}
    for line in body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            kinds[line.target.id] = ast.unparse(line.annotation)
        elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            default = getattr(line.value, "value", None)
            kinds[line.targets[0].id] = "" if default is None else type(default).__name__
    return kinds


def check_parameters(notebook: Path, names: Sequence[str]) -> None:
    """Compare names with the parameters of a notebook.

    Raises:
        NotebookError: a name that the notebook does not define; the message has the nearest one.
    """
    known = list(parameter_kinds(notebook))
    for name in names:
        if name not in known:
            hint = _nearest(name, known)
            raise NotebookError(f"{notebook.stem} has no parameter {name!r}{hint}")


def read_parameters(notebook: Path, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The values of parameters that were typed as texts, read by their declared types.

    Raises:
        NotebookError: a name that the notebook does not define or that is given twice, or a text
            that is no value of its type.
    """
    names = [name for name, _ in texts]
    check_parameters(notebook, names)
    if twice := [name for name in names if names.count(name) > 1]:
        raise NotebookError(f"{notebook.stem}: parameter {twice[0]!r} is given twice.")
    kinds, values = parameter_kinds(notebook), {}
    for name, text in texts:
        try:
            values[name] = parse_value(text, kinds[name])
        except ValueError as error:
            message = f"{notebook.stem}: {name} must be {kinds[name]}, got {text!r}."
            raise NotebookError(message) from error
    return values


def parse_value(text: str, kind: str = "") -> Any:
    """The value that a text means for a parameter of a declared type.

    Args:
        kind: such as `float`, `Optional[float]` or `float | None`; "" for what the text looks like.

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
    union = re.sub(r"Optional\[(.*)\]", r"\1 | None", kind)
    kinds = [part.strip().partition("[")[0] for part in union.split("|")]
    if kinds == ["str"]:
        return text
    try:
        value = None if text == "None" else yaml_value(text)
    except ValueError:
        value = text
    if not set(kinds) <= set(KINDS):
        return value
    own = type(value).__name__.replace("NoneType", "None")
    fits = own in kinds or (own == "int" and "float" in kinds)
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if fits and own != "str" and not is_infinite and text.strip():
        return value
    if "str" in kinds:
        return text
    raise ValueError(f"{text!r} is no {kind}")


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{hint}. There are {', '.join(known) or 'none'}."


# --- execution --------------------------------------------------------------------------------


def run_path(notebook: Path, parameters: dict[str, Any], lesson: bool = True) -> Path:
    """Where `run` puts a notebook: `outputs/<stem>/<stem>-<8 hex of the parameters>.ipynb`."""
    key = json.dumps({"parameters": parameters, "lesson": lesson}, sort_keys=True, default=str)
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    return paths.outputs() / notebook.stem / f"{notebook.stem}-{digest}.ipynb"


class OwnKernel(AsyncKernelManager):
    """An IPython kernel of this interpreter, whatever kernels the user has registered."""

    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]
        """Start the kernel with encrypted transport and the project on its import path.

        A kernel that is stopped logs a traceback of its sockets as an error: it logs nothing here,
        as the errors of cells come back with the notebook.
        """
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(paths.ROOT), *([inherited] if inherited else [])])
        environment = {**os.environ, "PYTHONPATH": path}
        kwargs["extra_arguments"] = [*kwargs["extra_arguments"], "--log-level=CRITICAL"]
        await super().start_kernel(env=environment, transport_encryption="auto", **kwargs)


class Progress:
    """Counts the cells that were begun, and writes a line about it every ten seconds."""

    def __init__(self, label: str, cells: int, stream: TextIO | None) -> None:
        self.label, self.cells, self.stream = label, cells, stream
        self.cell, self.start = 0, time.monotonic()
        self.written = self.start
        self.write(f"{label}: {cells} cells")

    def __call__(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """One code cell begins; nbclient calls this by the names of its arguments."""
        self.cell += 1
        now = time.monotonic()
        if now - self.written >= SECONDS_BETWEEN_LINES:
            self.written = now
            elapsed = clock(now - self.start)
            self.write(f"{self.label}: cell {self.cell} of {self.cells}, {elapsed}")

    def write(self, line: str) -> None:
        """Write a line, if there is a stream for it."""
        if self.stream:
            print(line, file=self.stream, flush=True)


def execute(
    notebook: Path,
    target: Path,
    parameters: dict[str, Any] | None = None,
    lesson: bool = True,
    stream: TextIO | None = None,
) -> Outcome:
    """What came of one notebook that was executed in a kernel of this interpreter.

    Args:
        notebook: the source, which is not changed.
        target: the executed copy; `<stem>.failed.ipynb` beside it if a cell fails.
        parameters: values for names of the cell tagged `parameters`.
        lesson: False leaves out the cells tagged `lesson`.
        stream: where lines of progress go; None for nowhere.

    Raises:
        NotebookError: unknown parameter.
    """
    parameters = parameters or {}
    check_parameters(notebook, list(parameters))
    node = read(notebook)
    if not lesson:
        node.cells = [c for c in node.cells if "lesson" not in c.metadata.get("tags", [])]
    relink(node, notebook.parent, target.parent)
    code = [cell for cell in node.cells if cell.cell_type == "code" and cell.source.strip()]
    failed = target.with_suffix(".failed.ipynb")
    files.make_folder(target.parent, "--out or CSE_OUTPUTS")
    files.sweep_folder(target.parent)
    start = time.monotonic()
    with files.scratch_folder(target) as folder:
        source, partial = folder / notebook.name, folder / f"executed-{target.name}"
        nbformat.write(node, source)
        for _ in range(2):  # a kernel that did not start is started once more
            progress = Progress(notebook.stem, len(code) + bool(parameters), stream)
            error = _papermill(source, partial, parameters, progress)
            if not error or progress.cell:
                break
        final = failed if error else target
        if partial.exists():
            files.replace(partial, final)
    if not error:
        failed.unlink(missing_ok=True)
    return Outcome(notebook.stem, final, time.monotonic() - start, error)


def _papermill(
    source: Path, partial: Path, parameters: dict[str, Any], progress: Progress
) -> str | None:
    """Execute `source` into `partial`; the error as text, or None."""
    import papermill  # half a second, which `--help` does not need
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    # papermill reads a path as a template, so braces in it are doubled
    source_name, partial_name = (
        str(path).replace("{", "{{").replace("}", "}}") for path in (source, partial)
    )
    try:
        papermill.execute_notebook(
            source_name,
            partial_name,
            parameters,
            kernel_name="python3",
            progress_bar=False,
            kernel_manager_class=OwnKernel,
            on_cell_execute=progress,
        )
    except PapermillExecutionError as error:
        message = re.sub(r"\x1b\[[0-9;]*m", "", error.evalue)
        return f"cell [{error.exec_count}]: {error.ename}: {message}"
    except Exception as error:
        return f"cell [{progress.cell}]: {type(error).__name__}: {error}"
    return None


def relink(notebook: nbformat.NotebookNode, source: Path, target: Path) -> None:
    """Change the links to files in a notebook's text so that they hold for a copy elsewhere.

    Args:
        source: the folder of the notebook, in which the links hold now.
        target: the folder of the copy.
    """

    def moved(link: re.Match[str]) -> str:
        file = source / unquote(link[1])
        if not file.exists():
            return link[0]
        try:
            return quote(Path(os.path.relpath(file, target)).as_posix())
        except ValueError:  # another drive, on Windows
            return file.as_uri()

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LOCAL_LINK.sub(moved, cell.source)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: `clock(75)` is `1:15`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
