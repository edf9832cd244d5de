"""What the notebooks' prose says in numbers, and the tables that say it too.

A notebook has a module here, `s02_simcse`, with its `STATEMENTS`. A sentence of the prose is written
with its numbers left out, and a function computes them from `results/`, from the papers' figures or
from the mini data; the filled sentence must stand in the notebook, so that neither changes alone.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pandas as pd

from lib import paths, results

OUTSIDE = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>", re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)(?: ?%)?|(?<![\w.])\d+ ?%")


@dataclass(frozen=True)
class Statement:
    """A sentence, or a part of one, as the notebook has it.

    Attributes:
        text: the words, with `{:.1f}` and the like where the numbers stand.
        values: computes the numbers, in their order.
    """

    text: str
    values: Callable[[], tuple]

    def filled(self) -> str:
        """The sentence with its numbers, in single spaces."""
        return one_line(self.text.format(*self.values()))


def signed(number: float) -> str:
    """A difference as the prose has it."""
    return f"{number:+.2f}".replace("-", "−")


def one_line(text: str) -> str:
    """A text with single spaces, without Markdown's stars and the targets of its links."""
    return " ".join(LINK.sub(r"\1", text).replace("*", "").split())


@cache
def prose(notebook: str) -> str:
    """All text cells of a notebook as one line."""
    node = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    cells = [cell.source for cell in node.cells if cell.cell_type == "markdown"]
    return one_line("\n".join(cells))


@cache
def shown(notebook: str) -> str:
    """All that the cells of a notebook have printed or returned as text."""
    node = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    outputs = [out for cell in node.cells if cell.cell_type == "code" for out in cell.outputs]
    texts = [out.get("text", "") for out in outputs]
    texts += [out.get("data", {}).get("text/plain", "") for out in outputs]
    return "\n".join(texts)


@cache
def rows(grid: str) -> pd.DataFrame:
    """As `lib.results.rows`."""
    return results.rows(grid)


@cache
def paper(table: str) -> pd.DataFrame:
    """A table of `data/papers/`, by `row_id`."""
    return pd.read_csv(paths.PAPERS / f"{table}.csv", dtype=str).set_index("row_id")


def mean(grid: str, row: str, metric: str = "sts7_test_avg_best") -> float:
    """Mean of a metric over the seeds of a grid's row."""
    table = rows(grid)
    return float(table.loc[table["row"] == row, metric].mean())


def numbers(text: str) -> list[str]:
    """Decimal numbers and percentages of a text, without code, equations, links and tags."""
    return NUMBER.findall(OUTSIDE.sub(" ", text))


def in_code(source: str) -> list[str]:
    """The numbers that a cell's source writes."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", source)


def agrees(number: str, text: str) -> bool:
    """Whether a number of `text`, rounded to the digits of `number`, is `number`; a percentage is
    found as a share, too."""
    plain = number.removesuffix("%").strip()
    digits = len(plain.partition(".")[2])
    found = {abs(float(n)) for n in re.findall(r"\d*\.?\d+(?:e-?\d+)?", text)}
    value, half = float(plain), 0.5 * 10**-digits + 1e-9
    scales = (1, 100) if plain != number else (1,)
    return any(abs(scale * f - value) <= half for f in found for scale in scales)


def modules() -> list[str]:
    """The notebooks that have statements here."""
    return [path.stem[1:] for path in sorted(Path(__file__).parent.glob("s[0-9]*.py"))]
