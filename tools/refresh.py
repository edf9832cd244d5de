"""Execute notebooks in place, for a commit.

Command line: `python -m tools.refresh 01 02` (default: all; `make notebooks`).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

from lib.data import files
from lib.runs import notebooks
from tools import pages


def refresh(notebook: Path, progress: bool = False) -> notebooks.Outcome:
    """Execute a notebook in place, with the parameters it has, on shipped data, from an empty
    `outputs/`.

    What a commit should not hold is left out: timings, widget state, messages of libraries.
    The notebook is replaced only if every cell succeeded.
    """
    with tempfile.TemporaryDirectory() as folder, _shipped_data_and_outputs_in(folder):
        outcome = notebooks.execute(notebook, Path(folder) / notebook.name, progress=progress)
        if not outcome.error:
            node = committable(nbformat.read(outcome.path, as_version=4))
            with_links_of(node, nbformat.read(notebook, as_version=4))
            files.write_text(notebook, nbformat.writes(node) + "\n")
    return outcome


def committable(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy of an executed notebook without what differs from run to run and means nothing to a
    reader."""
    node = nbformat.from_dict(executed)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    node.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    for cell in node.cells:
        for key in ("papermill", "execution", "widgets"):
            cell.metadata.pop(key, None)
        if not cell.metadata.get("tags", True):
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            kept = (out for out in cell.outputs if out.get("name") != "stderr")
            cell.outputs = [still for out in kept if (still := pages.without_widget(out))]
    return node


def with_links_of(node: nbformat.NotebookNode, original: nbformat.NotebookNode) -> None:
    """Give the text cells their own links again: an executed copy has those of its folder."""
    sources = {cell.id: cell.source for cell in original.cells if cell.cell_type == "markdown"}
    for cell in node.cells:
        cell.source = sources.get(cell.id, cell.source)


@contextmanager
def _shipped_data_and_outputs_in(folder: str) -> Iterator[None]:
    """Runs go to `folder`, and real data is not looked for: a commit holds our own sentences."""
    before = {name: os.environ.pop(name, None) for name in ("CSE_OUTPUTS", "CSE_DATA")}
    os.environ["CSE_OUTPUTS"] = folder
    try:
        yield
    finally:
        os.environ.pop("CSE_OUTPUTS")
        os.environ.update({name: value for name, value in before.items() if value is not None})


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 if a notebook failed; it is left as it was."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.refresh", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", help="01, 02_simcse or the path of a notebook (default: every notebook)"
    )
    options = parser.parse_args(argv)
    sources = [notebooks.find(name) for name in options.names] or notebooks.find_all()
    failed = 0
    for notebook in sources:
        done = refresh(notebook, sys.stderr.isatty())
        failed += bool(done.error)
        print(f"{notebook.stem}: {done.error or 'refreshed'}, {notebooks.clock(done.seconds)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
