"""Execute a notebook with parameters, through papermill.

The executed copy is written under a temporary name and renamed when it is complete. The copy of a
notebook that failed is kept as `<name>.failed.ipynb`.
"""

import ast
import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import quote, unquote

import nbformat
import papermill
from papermill.exceptions import PapermillExecutionError

from lib import paths
from lib.checked import closest
from lib.data import files

LOCAL_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


class Outcome(NamedTuple):
    """An executed notebook.

    Attributes:
        path: the executed copy.
        seconds: how long it took.
        error: the cell and the exception that stopped it; None if every cell succeeded.
    """

    path: Path
    seconds: float
    error: str | None


def find_all() -> list[Path]:
    """The notebooks of the course, `NN_name.ipynb`, in order."""
    return sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def find(name: str) -> Path:
    """The notebook that `02_simcse`, `02`, `02_simcse.ipynb` or a path means.

    Raises:
        ValueError: there is no such notebook; the message has the nearest name.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    known = {key: path for path in find_all() for key in (path.stem, path.name, path.stem[:2])}
    if name not in known:
        hint = closest(name, known) or f": there are {', '.join(p.stem for p in find_all())}"
        raise ValueError(f"no notebook {name!r}{hint}")
    return known[name]


def read(path: Path) -> nbformat.NotebookNode:
    """A notebook in the present format.

    Raises:
        ValueError: the file is no notebook.
    """
    try:
        node = nbformat.read(path, as_version=4)
        nbformat.validate(node)
    except Exception as error:  # nbformat raises whatever a strange shape leads to
        raise ValueError(f"{path} is no notebook ({type(error).__name__})") from error
    return node


def parameter_names(notebook: Path) -> list[str]:
    """The names in a notebook's cell tagged `parameters`, as papermill reads it."""
    return list(papermill.inspect_notebook(read(notebook)))


def read_parameters(notebook: Path, texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The values of parameters that were typed as (name, text); the notebook checks them.

    Raises:
        ValueError: a name that the notebook does not define or that is given twice.
    """
    names = parameter_names(notebook)
    values: dict[str, Any] = {}
    for name, text in texts:
        if name not in names or name in values:
            what = f"is given {name!r} twice" if name in values else f"has no parameter {name!r}"
            raise ValueError(f"{notebook.stem} {what}{closest(name, {*names} - {name})}")
        values[name] = parse_value(text)
    return values


def parse_value(text: str) -> Any:
    """The value that a text means in Python; what is no literal is itself.

    Example:
        >>> [parse_value(text) for text in ("1e-3", "None", "[0, 1]", "bert-base", "010")]
        [0.001, None, [0, 1], 'bert-base', '010']
    """
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def run_path(notebook: Path, parameters: dict[str, Any], lesson: bool = True) -> Path:
    """Where `run` puts a notebook: `outputs/<stem>/<stem>-<8 hex of the parameters>.ipynb`."""
    digest = hashlib.sha256(repr((sorted(parameters.items()), lesson)).encode()).hexdigest()[:8]
    return paths.outputs() / notebook.stem / f"{notebook.stem}-{digest}.ipynb"


def execute(
    notebook: Path,
    target: Path,
    parameters: dict[str, Any] | None = None,
    lesson: bool = True,
    progress: bool = False,
) -> Outcome:
    """What came of one notebook that was executed in a kernel of this interpreter.

    Args:
        notebook: the source, which is not changed.
        target: the executed copy; `<stem>.failed.ipynb` beside it if a cell fails.
        parameters: values for names of the cell tagged `parameters`.
        lesson: False leaves out the cells tagged `lesson`.
        progress: whether a bar on stderr counts the cells.

    Raises:
        ValueError: it is no notebook.
        OSError: nothing can be written beside the target.
    """
    node, start, error = read(notebook), time.monotonic(), None
    if not lesson:
        node.cells = [c for c in node.cells if "lesson" not in c.metadata.get("tags", [])]
    relink(node, notebook.parent, target.parent)
    failed = target.with_suffix(".failed.ipynb")
    with files.scratch_folder(target) as folder:
        source, partial = folder / notebook.name, folder / "executed.ipynb"
        nbformat.write(node, source)
        own: Any = {"kernel_name": "python3", "progress_bar": progress}
        own["extra_arguments"] = ["--log-level=CRITICAL"]  # its sockets complain when it is stopped
        search = os.pathsep.join([str(paths.ROOT), os.environ.get("PYTHONPATH", "")])
        templates = [str(path).replace("{", "{{").replace("}", "}}") for path in (source, partial)]
        try:
            with patch.dict(os.environ, PYTHONPATH=search):  # the kernel's `lib` is this checkout's
                papermill.execute_notebook(*templates, parameters, **own)
        except PapermillExecutionError as stopped:
            error = f"cell [{stopped.exec_count}]: {stopped.ename}: {stopped.evalue}"
        except Exception as stopped:  # the kernel ended
            error = f"{type(stopped).__name__}: {stopped}"
        if partial.exists():
            files.replace(partial, failed if error else target)
    if not error:
        failed.unlink(missing_ok=True)
    return Outcome(failed if error else target, time.monotonic() - start, error)


def relink(notebook: nbformat.NotebookNode, source: Path, target: Path) -> None:
    """Change the links to files in a notebook's text so that they hold for a copy elsewhere.

    Args:
        source: the folder of the notebook, in which the links hold now.
        target: the folder of the copy.
    """

    def moved(link: re.Match[str]) -> str:
        file = source / unquote(link[1])
        return quote(Path(os.path.relpath(file, target)).as_posix()) if file.exists() else link[0]

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LOCAL_LINK.sub(moved, cell.source)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: `clock(75)` is `1:15`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
