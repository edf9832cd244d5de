"""How long the notebooks are: cells, words that are read, and the longest cell of code.

Command line: `python -m tools.density` prints a line for each notebook, and a warning for each
number above its limit; `python -m tools.density 04` does so for one notebook.
"""

import argparse
import re
import sys
from collections.abc import Sequence

import nbformat
import pandas as pd

from lib.runs import notebooks

LIMITS = {"cells": 80, "words": 2300, "longest cell": 25}
NOT_PROSE = re.compile(r"```.*?```|\$\$.*?\$\$|<[^>]+>|^[ >]*\|.*$", re.S | re.M)


def is_folded(cell: nbformat.NotebookNode) -> bool:
    """Whether a reader sees a bar in the place of a cell's code."""
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    return cell.cell_type == "code" and (hidden or "hide-input" in cell.metadata.get("tags", []))


def lines(source: str) -> int:
    """Lines of code, without blank lines and comments.

    Example:
        >>> lines("# a sum\\n\\nx = 1  # one\\nx + 1")
        2
    """
    stripped = (line.strip() for line in source.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in stripped)


def words(text: str) -> int:
    """Words of Markdown, without fenced code, display equations, tables and tags.

    Example:
        >>> words("## Loss\\n\\nThe *loss* of `f`.\\n\\n$$a = b$$\\n\\n| a |\\n|---|\\n| b |")
        5
    """
    return sum(any(map(str.isalnum, word)) for word in NOT_PROSE.sub(" ", text).split())


def told(cell: nbformat.NotebookNode) -> list[str]:
    """The prose of a cell: its own, or what its code prints as Markdown."""
    if cell.cell_type == "markdown":
        return [cell.source]
    return [
        one.data["text/markdown"] for one in cell.outputs if "text/markdown" in one.get("data", {})
    ]


def count(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """Cells that are not empty, words of prose, told by code or not, and the lines of the longest
    cell that shows its code."""
    cells = [cell for cell in notebook.cells if cell.source.strip()]
    code = [cell for cell in cells if cell.cell_type == "code"]
    return {
        "cells": len(cells),
        "words": sum(words(text) for cell in cells for text in told(cell)),
        "longest cell": max((lines(one.source) for one in code if not is_folded(one)), default=0),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and the warnings."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.density", description="How long the notebooks are."
    )
    parser.add_argument("names", nargs="*", help="01, 02_simcse or a path (default: all)")
    names = parser.parse_args(arguments).names
    found = [notebooks.find(name) for name in names] or notebooks.find_all()
    counts = {path.stem: count(notebooks.read(path)) for path in found}
    print(pd.DataFrame(counts).T.to_string())
    for name, numbers in counts.items():
        for what, limit in LIMITS.items():
            if numbers[what] > limit:
                print(f"{name}: {what} {numbers[what]}, at most {limit} wanted", file=sys.stderr)


if __name__ == "__main__":
    main()
