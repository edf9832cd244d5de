"""A search box for notebooks: one query, and beside each other what several encoders find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets
import pandas as pd

from lib.evaluate import Encode
from lib.evaluate.neighbours import top_k
from lib.evaluate.sts import as_matrix

CELL = 'style="text-align: left; vertical-align: top; white-space: normal"'
NO_VECTOR = "no vector: none of its words is known"


@dataclass(frozen=True)
class TextTable:
    """A table of sentences as a notebook shows it: flush left, without row numbers.

    Example:
        >>> as_text(pd.DataFrame({"query": ["1 < 2"]}))._repr_html_().count("1 &lt; 2")
        1
    """

    table: pd.DataFrame

    def _repr_html_(self) -> str:
        head = "".join(f"<th {CELL}>{escape(str(name))}</th>" for name in self.table)
        body = "".join(
            "<tr>" + "".join(f"<td {CELL}>{escape(str(cell))}</td>" for cell in cells) + "</tr>"
            for cells in self.table.to_numpy()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        return self.table.to_string(index=False, justify="left")


as_text = TextTable


def search_box(
    encoders: Mapping[str, Encode], sentences: Sequence[str], k: int = 5, show_cosines: bool = True
) -> widgets.VBox:
    """A text field, and under it the k sentences that each encoder holds nearest to what is typed.

    The sentences are encoded once, now; a query is encoded when Enter is pressed or the field is
    left. Without a running kernel nothing is found: show `evaluate.neighbour_table` beside the box.

    Args:
        encoders: name → encoder, a column each. An encoder must give a sentence the same vector
            alone as among others: a vectorizer that is not yet fitted does not, nor SIF.
        sentences: the collection; one that stands twice counts once.
        k: sentences in a column.
        show_cosines: put its cosine before each sentence; their level may tell which encoder it is.

    Returns:
        A box with two children, the field and the table.

    Example:
        >>> letters = lambda texts: [[t.count("a"), t.count("o")] for t in texts]
        >>> box = search_box({"letters": letters}, ["a cat", "a dog", "no fox"], k=1)
        >>> field, table = box.children
        >>> field.value = "bananas & mangoes"
        >>> "a dog" in table.value, "a cat" in table.value
        (False, True)
    """
    collection = list(dict.fromkeys(sentences))
    rows = {
        name: as_matrix(encode(collection), len(collection)) for name, encode in encoders.items()
    }
    how: Any = {"continuous_update": False, "layout": {"width": "100%", "max_width": "50em"}}
    field, table = widgets.Text(placeholder="a sentence, then Enter", **how), widgets.HTML()

    def search(change: object) -> None:
        query = field.value.strip()
        found = {
            name: found_by(as_matrix(encode([query]), 1), rows[name], collection, k, show_cosines)
            for name, encode in encoders.items()
            if query
        }
        table.value = TextTable(pd.DataFrame(found))._repr_html_() if query else ""

    field.observe(search, "value")
    return widgets.VBox([field, table])


def found_by(query: Any, rows: Any, collection: list[str], k: int, show_cosines: bool) -> list[str]:
    """The k sentences nearest to a query, with their cosines if these are wanted; for a zero vector
    what that means."""
    if not abs(query).sum():
        return [NO_VECTOR, *[""] * (min(k, len(collection)) - 1)]
    places, cosines = top_k(query, rows, k)
    if not show_cosines:
        return [collection[i] for i in places[0]]
    return [f"{c:.2f} {collection[i]}" for i, c in zip(places[0], cosines[0], strict=True)]
