"""Train the project's small English spaCy pipeline on the UD English EWT treebank and score it.

`python data/mini-spacy/build.py` does it all; the README beside this file says what comes out.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab


class Sentence(NamedTuple):
    """One sentence of a CoNLL-U file; `heads` are positions in the sentence, a root's is its own."""

    text: str
    words: list[str]
    spaces: list[bool]
    tags: list[str]
    pos: list[str]
    morphs: list[str]
    lemmas: list[str]
    heads: list[int]
    deps: list[str]
    opens_document: bool = False


def parse_sentence(block: str) -> Sentence:
    """Read one sentence.

    Comment lines, empty nodes (`1.1`) and enhanced dependencies are left out. The words of a multiword token
    stand without a space between them, and the last takes the space of the token.

    Args:
        block: the sentence's lines.

    Returns:
        The sentence.

    Raises:
        ValueError: a multiword token is not its words in a row, or a line has not ten columns.

    Example:
        >>> block = "# text = Go!\\n1\\tGo\\tgo\\tVERB\\tVB\\t_\\t0\\troot\\t_\\tSpaceAfter=No\\n2\\t!\\t!\\tPUNCT\\t.\\t_\\t1\\tpunct\\t_\\t_"
        >>> parse_sentence(block).heads
        [0, 0]
    """
    text, opens_document = "", False
    rows: list[list[str]] = []
    spaces: list[bool] = []
    ranges: list[tuple[int, int, str, bool]] = []
    for line in block.splitlines():
        if line.startswith("#"):
            if line.startswith("# text = "):
                text = line.removeprefix("# text = ")
            opens_document |= line.startswith("# newdoc")
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise ValueError(f"{len(columns)} columns, not 10: {line!r}")
        space = "SpaceAfter=No" not in columns[9].split("|")
        if "-" in columns[0]:
            first, last = map(int, columns[0].split("-"))
            ranges.append((first, last, columns[1], space))
        elif "." not in columns[0]:
            rows.append(columns)
            spaces.append(space)
    for first, last, form, space in ranges:
        if "".join(row[1] for row in rows[first - 1 : last]) != form:
            raise ValueError(f"the words of {form!r} do not add up to it")
        spaces[first - 1 : last] = [False] * (last - first) + [space]
    _, words, lemmas, pos, tags, morphs, heads, deps, _, _ = (list(column) for column in zip(*rows, strict=True))
    return Sentence(
        text,
        words,
        spaces,
        tags,
        pos,
        ["" if morph == "_" else morph for morph in morphs],
        lemmas,
        [int(head) - 1 if head != "0" else i for i, head in enumerate(heads)],
        ["ROOT" if dep == "root" else dep for dep in deps],
        opens_document,
    )


def read_conllu(path: Path) -> Iterator[Sentence]:
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if block.strip():
            yield parse_sentence(block)
