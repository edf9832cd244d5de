"""A search box for notebooks: one query, and beside each other what several encoders find."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any

import ipywidgets as widgets
import pandas as pd

from lib.evaluate import Encode
from lib.evaluate.neighbours import top_k
from lib.evaluate.sts import as_matrix

Found = Sequence[tuple[float, str]]
SAME_VECTOR = 0.99  # cosine; a sentence in another batch differs by rounding alone
CELL = 'style="text-align: left; vertical-align: top; white-space: normal"'
NO_VECTOR = "no vector: none of its words is known"


@dataclass(frozen=True)
class TextTable:
    """A table of sentences as a notebook shows it: flush left, without row numbers."""

    table: pd.DataFrame

    def _repr_html_(self) -> str:
        return _html(
            [escape(str(name)) for name in self.table],
            [[escape(str(cell)) for cell in line] for line in self.table.to_numpy()],
        )

    def __repr__(self) -> str:
        return self.table.to_string(index=False, justify="left")


def as_text(table: pd.DataFrame, same: str = "") -> TextTable:
    """A table of sentences to read: flush left, without row numbers.

    Args:
        table: e.g. `evaluate.neighbour_table`.
        same: what stands in place of a cell that repeats the one to its left, "=" say; empty: all
            cells are written out.

    Example:
        >>> table = pd.DataFrame({"query": ["Oh!"], "before": ["No."], "after": ["No."]})
        >>> as_text(table, same="=").table.loc[0].tolist()
        ['Oh!', 'No.', '=']
    """
    if not same:
        return TextTable(table)
    repeats = table.eq(table.shift(axis=1))
    return TextTable(table.mask(repeats, same))


def search_box(
    encoders: Mapping[str, Encode],
    sentences: Sequence[str],
    k: int = 5,
    placeholder: str = "a sentence, then Enter",
) -> widgets.VBox:
    """A text field, and under it the k sentences that each encoder holds nearest to what is typed.

    The sentences are encoded once, now; a query is encoded when Enter is pressed or the field is
    left. Without a running kernel nothing is found: show `evaluate.neighbour_table` beside the box.

    Args:
        encoders: name → encoder, a column each. An encoder must give a sentence the same vector
            alone as among others: a vectorizer that is not yet fitted does not, nor SIF.
        sentences: the collection; one that stands twice counts once.
        k: sentences in a column.
        placeholder: what the empty field says.

    Returns:
        A box with two children, the field and the table.

    Raises:
        TypeError: `sentences` is one string.
        ValueError: no encoder; `k` below 1 or larger than the collection; an encoder whose vectors
            depend on what is encoded beside them, or that returned another shape than (n, d), NaN
            or infinity.

    Example:
        >>> letters = lambda texts: [[t.count("a"), t.count("o")] for t in texts]
        >>> box = search_box({"letters": letters}, ["a cat", "a dog", "no fox"], k=1)
        >>> field, table = box.children
        >>> field.value = "bananas & mangoes"
        >>> "a dog" in table.value, "a cat" in table.value
        (False, True)
    """
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of strings, not one string")
    if not encoders:
        raise ValueError("no encoder to search with")
    collection = list(dict.fromkeys(sentences))
    if not 1 <= k <= len(collection):
        raise ValueError(f"k={k} neighbours asked for, the collection has {len(collection)}")
    rows = {name: _encoded(name, encode, collection) for name, encode in encoders.items()}
    field = widgets.Text(
        placeholder=placeholder,
        continuous_update=False,
        layout={"width": "100%", "max_width": "50em"},
    )
    table = widgets.HTML()

    def search(change: object) -> None:
        query = field.value.strip()
        table.value = results_html(found_by_each(query)) if query else ""

    def found_by_each(query: str) -> dict[str, Found]:
        return {
            name: _found(encode([query]), rows[name], collection, k)
            for name, encode in encoders.items()
        }

    field.observe(search, "value")
    return widgets.VBox([field, table])


def results_html(found: Mapping[str, Found]) -> str:
    """Lists of (cosine, sentence) as an HTML table, a column each under its name; all text is
    escaped.

    An empty list is a query without a vector, and its column says so.

    Example:
        >>> table = results_html({"before": [(0.5, "1 < 2")], "after": []})
        >>> "<th" in table, "0.50 1 &lt; 2" in table, NO_VECTOR in table
        (True, True, True)
    """
    columns = [
        [f"{cosine:.2f} {escape(sentence)}" for cosine, sentence in column] or [NO_VECTOR]
        for column in found.values()
    ]
    return _html(map(escape, found), zip_longest(*columns, fillvalue=""))


def _html(names: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th {CELL}>{name}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td {CELL}>{cell}</td>" for cell in cells) + "</tr>" for cells in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _encoded(name: str, encode: Encode, sentences: list[str]) -> Any:
    """The embeddings of a collection, if its first sentence with a vector also finds itself
    alone."""
    rows = as_matrix(encode(sentences), len(sentences))
    first = next((i for i in range(len(sentences)) if _has_vector(rows[i : i + 1])), None)
    if first is None:
        raise ValueError(f"{name}: the vectors of all sentences are zero")
    alone = as_matrix(encode([sentences[first]]), 1)
    same_width = alone.shape[1] == rows.shape[1]
    if not same_width or top_k(alone, rows, 1)[1][0, 0] < SAME_VECTOR:
        raise ValueError(
            f"{name}: a sentence has another vector alone than among others: fit the vectorizer"
            " or the whitening beforehand; SIF cannot encode a single query"
        )
    return rows


def _found(query: Any, rows: Any, sentences: list[str], k: int) -> Found:
    query = as_matrix(query, 1)
    if not _has_vector(query):
        return []
    places, cosines = top_k(query, rows, k)
    return [(float(c), sentences[i]) for i, c in zip(places[0], cosines[0], strict=True)]


def _has_vector(row: Any) -> bool:
    return abs(row).sum() != 0
