"""How much stands in a notebook's cells: words, lines of code, pictures, folds; beside two chapters
of another course.

Command line: `python -m tools.density` prints a column a notebook; `python -m tools.density 04`
that of one, and what there is to mend in it. Any notebook can be named by its path.

`tools/yardstick.csv` holds the same counts of two chapters of S. Raschka's *Build a Large Language
Model (From Scratch)*, made by `python -m tools.density --csv ch03.ipynb ch05.ipynb` from the commit
that it names.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import nbformat
import pandas as pd

from lib import course
from tools import glossary, prose

YARDSTICK = Path(__file__).with_name("yardstick.csv")
LIMITS = {
    "lines_median": 6,
    "lines_longest": 25,
    "words_median": 35,
    "words_longest": 90,
    "unanswered": 0,
    "unintroduced": 0,
}
PICTURES = 3
WITHIN = 3

_PREDICT = re.compile(r"(?:\*{1,3}|_{1,3})predict\b", re.I)


@dataclass(frozen=True)
class Counts:
    """What stands in a notebook.

    Args:
        code_cells, markdown_cells: cells that are not empty.
        lines_median, lines_longest: lines of code of a cell that shows any, as `lines` counts them.
        lines_apart: lines of the folded cells and of the cell tagged `parameters`, all together;
            they are in no other number.
        words_median, words_longest: words of a Markdown cell that has any, as `prose.words` counts
            them.
        words_apart: words of the sections *Exercises* and *References*, all together; they are in
            no other number.
        pictures: PNG and SVG in outputs, and pictures in Markdown, attached or not.
        folds: `<details>` in Markdown.
        predictions: prompts `*Predict*`, in whatever emphasis, outside the exercises.
        unanswered: those without a fold of their own, as `unanswered` finds them.
        unintroduced: terms of the glossary, as `glossary.unintroduced` finds them.
    """

    code_cells: int
    markdown_cells: int
    lines_median: float
    lines_longest: int
    lines_apart: int
    words_median: float
    words_longest: int
    words_apart: int
    pictures: int
    folds: int
    predictions: int
    unanswered: int
    unintroduced: int


def is_folded(cell: nbformat.NotebookNode) -> bool:
    """Whether a reader sees a bar in place of a cell's source, in JupyterLab or on the site."""
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    return hidden or "hide-input" in cell.metadata.get("tags", [])


def lines(source: str) -> int:
    """Lines of code, blank ones and those that are a comment left out.

    Example:
        >>> lines("# a sum\\n\\nx = 1  # one\\nx + 1")
        2
    """
    stripped = (line.strip() for line in source.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in stripped)


def lines_of_cells(notebook: nbformat.NotebookNode) -> dict[int, int]:
    """Lines of each cell that shows code, by its place: not of the folded ones, nor of the
    parameters."""
    return {
        place: count
        for place, cell in _cells(notebook, "code")
        if not _is_apart(cell) and (count := lines(cell.source))
    }


def words_of_cells(notebook: nbformat.NotebookNode) -> dict[int, int]:
    """Words of each cell that shows prose, by its place: without exercises and references."""
    found: dict[int, int] = {}
    for passage in prose.passages(notebook):
        if not passage.apart and (count := prose.words(passage.text)):
            found[passage.cell] = found.get(passage.cell, 0) + count
    return found


def predictions(notebook: nbformat.NotebookNode) -> list[tuple[int, int]]:
    """Where a reader is asked to predict: cell, and place in its source. Exercises do not count."""
    return [
        (passage.cell, passage.start + found.start())
        for passage in prose.passages(notebook)
        if not passage.apart
        for found in _PREDICT.finditer(prose.blank(passage.text, prose.FENCE, prose.CODE))
    ]


def unanswered(notebook: nbformat.NotebookNode) -> list[int]:
    """Cells with a prediction that no fold answers.

    An answer is a `<details>` with a word below its summary, later in the same cell or in one of
    the next `WITHIN` cells, code cells counted. A fold answers one prediction, which may stand in
    its own summary. Hints of exercises answer none.
    """
    answers = [
        (passage.cell, passage.start + end)
        for passage in prose.passages(notebook)
        if not passage.apart
        for start, end in prose.folds(passage.text)
        if prose.answers(passage.text[start:end])
    ]
    missing = []
    for cell, place in predictions(notebook):
        later = [a for a in answers if (cell, place) < a and a[0] <= cell + WITHIN]
        if later:
            answers.remove(later[0])
        else:
            missing.append(cell)
    return missing


def count(notebook: nbformat.NotebookNode) -> Counts:
    """All counts of a notebook. A median of nothing is 0."""
    code, text = list(_cells(notebook, "code")), list(_cells(notebook, "markdown"))
    shown, said = lines_of_cells(notebook), words_of_cells(notebook)
    outputs = [out.get("data", {}) for _, cell in code for out in cell.get("outputs", [])]
    drawn = sum("image/png" in data or "image/svg+xml" in data for data in outputs)
    return Counts(
        code_cells=len(code),
        markdown_cells=len(text),
        lines_median=statistics.median(shown.values() or [0]),
        lines_longest=max(shown.values(), default=0),
        lines_apart=sum(lines(cell.source) for _, cell in code if _is_apart(cell)),
        words_median=statistics.median(said.values() or [0]),
        words_longest=max(said.values(), default=0),
        words_apart=sum(prose.words(p.text) for p in prose.passages(notebook) if p.apart),
        pictures=drawn + sum(prose.pictures(cell.source) for _, cell in text),
        folds=sum(len(prose.folds(cell.source)) for _, cell in text),
        predictions=len(predictions(notebook)),
        unanswered=len(unanswered(notebook)),
        unintroduced=len(glossary.unintroduced(notebook)),
    )


def over(
    counts: Counts, allowed: Mapping[str, float], pictures: int = PICTURES
) -> dict[str, float]:
    """The counts above what is allowed, and `pictures` if there are fewer than so many."""
    found = asdict(counts)
    above = {name: found[name] for name, limit in allowed.items() if found[name] > limit}
    return above | ({"pictures": counts.pictures} if counts.pictures < pictures else {})


def details(notebook: nbformat.NotebookNode) -> list[str]:
    """What to mend: cells over the limits, predictions without an answer, terms without an
    introduction, in the notebook's order."""
    found = [
        (cell, f"{size} {unit}")
        for unit, sizes in (("lines", lines_of_cells), ("words", words_of_cells))
        for cell, size in sizes(notebook).items()
        if size > LIMITS[f"{unit}_longest"]
    ]
    found += [(cell, "a prediction without an answer") for cell in unanswered(notebook)]
    found += [
        (use.cell, f"{use.found!r} before {use.term} is introduced")
        for use in glossary.unintroduced(notebook)
    ]
    ids = [cell.get("id", "") for cell in notebook.cells]
    return [f"cell {cell} ({ids[cell]}): {what}" for cell, what in sorted(found)]


def yardstick() -> pd.DataFrame:
    """The committed counts of the two chapters, a line each: repository, commit, path, and the
    fields of `Counts`. Terms of this course's glossary are not counted there."""
    return pd.read_csv(YARDSTICK)


def table(counts: Mapping[str, Counts]) -> pd.DataFrame:
    """A line a notebook, by its name."""
    rows = pd.DataFrame(map(asdict, counts.values()), index=list(counts))
    return rows.rename_axis("notebook")


def _cells(
    notebook: nbformat.NotebookNode, kind: str
) -> Iterator[tuple[int, nbformat.NotebookNode]]:
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == kind and cell.source.strip():
            yield place, cell


def _is_apart(cell: nbformat.NotebookNode) -> bool:
    return is_folded(cell) or "parameters" in cell.metadata.get("tags", [])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; of notebooks that are named, also what is over the limits."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.density", description="How much stands in the notebooks' cells."
    )
    parser.add_argument("names", nargs="*", help="01, 02_simcse or a path (default: all)")
    parser.add_argument("--csv", action="store_true", help="the table alone, with commas")
    options = parser.parse_args(arguments)
    found = [course.find_notebook(name) for name in options.names] or course.notebooks()
    read = {path.stem: nbformat.read(path, as_version=4) for path in found}
    counts = {name: count(notebook) for name, notebook in read.items()}
    if options.csv:
        table(counts).to_csv(sys.stdout)
        return
    beside = yardstick()
    beside.index = [f"({Path(path).stem})" for path in beside["path"]]
    shown = pd.concat([table(counts), beside[[field.name for field in fields(Counts)]]])
    print(shown.astype(object).T.to_string(float_format="{:g}".format, na_rep=""))
    for name in read if options.names else []:
        print(f"\n{name}", *details(read[name]), sep="\n  ")


if __name__ == "__main__":
    main()
