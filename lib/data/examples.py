"""Sentences to look at: the course's own, a dozen queries, and a collection to search."""

from pathlib import Path
from typing import TYPE_CHECKING

from lib import paths
from lib.data import readers
from lib.data.corpora import corpus, is_here, sample

if TYPE_CHECKING:
    import pandas as pd

REAL_TEXT = {
    "wiki1m": "of wiki1m (English Wikipedia)",
    "wiki1m_head": "at the beginning of wiki1m (English Wikipedia)",
}
SHORTEST, LONGEST = 4, 40
PLANTED = ["same meaning", "decoy", "same subject"]


def handwritten() -> list[str]:
    """The sentences that were written by hand for the course, in the order of their file.

    Those that have a paraphrase there are also in the corpus `mini`; the others are in no text to
    train on.

    Example:
        >>> handwritten()[1]
        'Nobody knew why the lights had gone out.'
    """
    return [sentence for sentence, _ in readers.handwritten_file(paths.MINI / "handwritten.txt")]


def queries() -> list[str]:
    """The dozen sentences whose nearest neighbours the notebooks show; none is in the corpus
    `mini`.

    Example:
        >>> len(queries()), queries()[0]
        (12, 'A dog runs through the snow.')
    """
    return readers.read_lines(paths.MINI / "queries.txt")


def planted() -> "pd.DataFrame":
    """For each of `queries` the three sentences that `handwritten` holds for it, which a search can
    be judged by.

    Returns:
        A row a query: `query`, `same meaning` (in other words), `decoy` (its words with another
        meaning) and `same subject`.

    Raises:
        ValueError: the part `## the dozen` of the file does not have three sentences a query.

    Example:
        >>> planted()["same meaning"][0]
        'A hound is bounding across the white winter meadow.'
    """
    import pandas as pd  # takes half a second

    path = paths.MINI / "handwritten.txt"
    _, dozen = path.read_text(encoding="utf-8").split("## the dozen\n")
    sentences = dozen.split("\n## ")[0].splitlines()
    asked = queries()
    if len(sentences) != len(PLANTED) * len(asked):
        raise ValueError(f"{path}: {len(sentences)} of the dozen, {3 * len(asked)} expected")
    return pd.DataFrame({"query": asked} | {k: sentences[i::3] for i, k in enumerate(PLANTED)})


def searchable(data_dir: str | Path | None = None, n: int = 20_000) -> tuple[list[str], str]:
    """Distinct sentences of 4 to 40 words to search in: real ones where there are any.

    Real ones are those of wiki1m, or of its beginning where only that is here; else `handwritten`
    is searched. Nothing is downloaded.

    Args:
        n: sentences at most; more than these are drawn from with seed 0, fewer are all taken, in
            order.

    Returns:
        The sentences, and one line that says what they are.

    Raises:
        ValueError: `n` below 1, or a part of a published corpus.

    Example:
        >>> sentences, what = searchable(paths.MINI, n=2)
        >>> len(sentences), what.split(" of ")[0], what.split("sentences ")[1]
        (2, '2', 'written by hand for this course')
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    name = next((name for name in REAL_TEXT if is_here(name, data_dir)), None)
    text = corpus(name, data_dir) if name else handwritten()
    fitting = [s for s in dict.fromkeys(text) if SHORTEST <= len(s.split()) <= LONGEST]
    rows = sample(len(fitting), n if n < len(fitting) else None)
    source = REAL_TEXT[name] if name else "written by hand for this course"
    share = f"{len(rows):,} of the {len(text):,}" if len(rows) < len(text) else f"{len(rows):,}"
    return [fitting[row] for row in rows], f"{share} sentences {source}"
