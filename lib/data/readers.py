"""File formats: text files, graded pairs, labelled sentences; one reader for each, of a path.

Every reader checks every line; a malformed one is a `ValueError` with file and line number.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
LONGEST_LINE = 1_000_000  # bytes; spaCy parses no longer text
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class Format(NamedTuple):
    """A table of texts without quoting.

    Attributes:
        columns: of two sentences and a score (and a kind), or of sentences and a label: their names
            in the header line, or their numbers.
        counts: how many cells a line may have; none: as many as the header line.
        separator: what stands between two cells.
        fallback: the encoding of a file that is not valid UTF-8 throughout.
    """

    columns: Sequence[int | str]
    counts: tuple[int, ...] = ()
    separator: str = "\t"
    fallback: str | None = None


GRADED = {
    "STS-B": Format((5, 6, 4), (7, 9)),  # the sources of both sentences may follow
    "SICK-R": Format(("sentence_A", "sentence_B", "relatedness_score")),
    "CNSD": Format((1, 2, 3), (4,), "||"),
    "mini": Format(("sentence1", "sentence2", "score", "kind")),
}
LABELLED = {
    "SST2": Format((0, 1), (2,), fallback="latin-1"),
    "MRPC": Format(("#1 String", "#2 String", "Quality")),
}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Graded sentence pairs: `scores` (n,) float64 in [0, 5], `kinds` names each pair's kind where
    known."""

    name: str
    sentence1: list[str]
    sentence2: list[str]
    scores: np.ndarray
    kinds: list[str] | None = None

    def __len__(self) -> int:
        return len(self.sentence1)


@dataclass(frozen=True)
class Triplets:
    """Sentences set against the anchor that they share, one sentence a row: `sentences[i]` stands
    in the relation `kinds[i]` to `anchors[i]`; an anchor has one sentence of a kind at most."""

    name: str
    anchors: list[str]
    kinds: list[str]
    sentences: list[str]

    def __len__(self) -> int:
        return len(self.sentences)


@dataclass(frozen=True)
class TransferTask:
    """A classification task: split → (sentences, labels).

    A task without given splits has the one split `all`. In MRPC, which classifies pairs, `second`
    holds the second sentences of each split.
    """

    name: str
    splits: dict[str, tuple[list[str], list[int]]]
    second: dict[str, list[str]] = field(default_factory=dict)


# --- text files


def numbered(path: Path, fallback: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); `.xz` and `.gz` are decompressed.

    Lines end at LF or CRLF only, so that U+0085 or U+2028 inside a sentence does not split it.
    A byte order mark is dropped. With `fallback`, a file that is not valid UTF-8 throughout is
    decoded by that encoding.

    Raises:
        ValueError: bad UTF-8 (without `fallback`), UTF-16, NUL bytes, a carriage return inside a
            line, a line above 1,000,000 bytes, a damaged archive.
    """
    encoding = fallback if fallback and not _is_utf8(path) else "utf-8"
    opener: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    number = 0
    try:
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                line = raw.removesuffix(b"\n").removesuffix(b"\r")
                if b"\0" in line or b"\r" in line or len(line) > LONGEST_LINE:
                    fault = "NUL, a carriage return or more than 1,000,000 bytes in a line"
                    raise ValueError(f"{path}, line {number}: {fault}: save it as UTF-8 with LF")
                text = line.decode(encoding)
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not valid UTF-8: save it as such") from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path}: damaged archive ({error}): fetch it again") from error


def _is_utf8(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_aligned(path: str | Path) -> list[str]:
    """Every line of a text file, stripped; blank lines are kept, so that line numbers stay.

    Every command and recipe reads its sentences here: training text, positives, text to augment or
    to search.

    Args:
        path: a `.txt` file in UTF-8, or one that is compressed: `.txt.gz`, `.txt.xz`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: another kind of file, such as a table; as `numbered`.
    """
    path = Path(path)
    if not path.name.endswith((".txt", ".txt.gz", ".txt.xz")):
        raise ValueError(f"{path} is no text file: write one sentence a line in a .txt file")
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    return [line.strip() for _, line in numbered(path)]


def read_lines(path: str | Path) -> list[str]:
    """The sentences of a text file: as `read_aligned`, without the blank lines.

    Example:
        >>> import tempfile; path = Path(tempfile.mkdtemp()) / "a.txt"
        >>> _ = path.write_text("Hello, you.\\n\\nGood-bye.\\n")
        >>> read_lines(path)
        ['Hello, you.', 'Good-bye.']
    """
    return [line for line in read_aligned(path) if line]


# --- cells of a line; `where` names file and line


def cells(path: Path, form: Format) -> Iterator[tuple[str, list[str]]]:
    """Yield (file and line, the cells of the format's columns) of every line."""
    columns, counts, separator, fallback = form
    lines = numbered(path, fallback)
    if not counts:
        header = next(lines, (1, ""))[1].split(separator)
        if wrong := [name for name in columns if header.count(str(name)) != 1]:
            expected = f"expected exactly one column {wrong[0]!r} in the header {header}"
            raise ValueError(f"{path}, line 1: {expected}")
        columns, counts = [header.index(str(name)) for name in columns], (len(header),)
    for number, line in lines:
        where, found = f"{path}, line {number}", line.split(separator)
        if len(found) not in counts:
            expected = " or ".join(map(str, counts))
            raise ValueError(f"{where}: {len(found)} fields where {expected} are expected")
        yield where, [found[int(column)] for column in columns]


def _sentence(where: str, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{where}: a sentence is empty")
    return text.strip()


def _score(where: str, text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()) or float(text) > 5:
        raise ValueError(f"{where}: {text!r} is no similarity between 0 and 5")
    return float(text)


def _label(where: str, text: str) -> int:
    if text.strip() not in ("0", "1"):
        raise ValueError(f"{where}: label {text!r} is neither 0 nor 1")
    return int(text)


def _columns(path: Path, rows: Iterable[Sequence], what: str) -> list[list]:
    """The columns of rows, of which there must be one."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    if not columns:
        raise ValueError(f"{path}: 0 {what}")
    return columns


def handwritten_file(path: Path) -> list[tuple[str, str]]:
    """(sentence, paraphrase) of a file with a line `sentence | paraphrase` or `sentence` each; the
    paraphrase is empty where there is none. Blank lines and those that start with `#` are skipped.
    """
    lines = (line for line in read_aligned(path) if line and not line.startswith("#"))
    parts = (line.partition("|") for line in lines)
    return [(sentence.strip(), paraphrase.strip()) for sentence, _, paraphrase in parts]


# --- graded pairs


def graded_file(path: Path, name: str, form: str) -> Pairs:
    """Scored pairs in one of the formats of `GRADED`."""
    rows = (
        (_sentence(where, a), _sentence(where, b), _score(where, score), *kind)
        for where, (a, b, score, *kind) in cells(path, GRADED[form])
    )
    first, second, scores, *kinds = _columns(path, rows, "scored pairs")
    return Pairs(name, first, second, np.array(scores), *kinds)


def sts_input(path: Path) -> list[tuple[str, str]]:
    """Every sentence pair of a SemEval `STS.input.X.txt`, two tab-separated columns, scored or
    not."""
    rows = cells(path, Format((0, 1), (2,)))
    return [(_sentence(where, a), _sentence(where, b)) for where, (a, b) in rows]


def sts_subset(path: Path, gold_path: Path, name: str) -> Pairs:
    """Scored pairs of `STS.input.X.txt` and `STS.gs.X.txt`; an empty gold line is a pair nobody
    scored."""
    pairs, gold = sts_input(path), list(numbered(gold_path))
    if len(pairs) != len(gold):
        raise ValueError(f"{path}: {len(pairs)} lines, but {gold_path.name} has {len(gold)}")
    rows = (
        (*pair, _score(f"{gold_path}, line {number}", score))
        for pair, (number, score) in zip(pairs, gold, strict=True)
        if score.strip()
    )
    first, second, scores = _columns(gold_path, rows, "scored pairs")
    return Pairs(name, first, second, np.array(scores))


def triplets_file(path: Path, name: str) -> Triplets:
    """Triplets: header `number anchor kind sentence`, tab-separated without quoting."""
    rows = (found for _, found in cells(path, Format(("anchor", "kind", "sentence"))))
    return Triplets(name, *_columns(path, rows, "triplets"))


# --- labelled sentences


def sentences_file(path: Path) -> list[str]:
    """One sentence a line; Latin-1 where the file is not valid UTF-8 (MR, CR, SUBJ, MPQA).

    Blank lines are kept as empty sentences: CR and MPQA hold seven, and the published counts
    include them.
    """
    rows = ((line.strip(),) for _, line in numbered(path, "latin-1"))
    return _columns(path, rows, "sentences")[0]


def labelled_file(path: Path, task: str) -> list[list]:
    """The columns of SST-2 and TREC, sentences and labels, or of MRPC, where second sentences stand
    between them; Latin-1 where the file is not valid UTF-8."""
    if task == "TREC":
        return _columns(path, _trec_rows(path), "sentences")
    rows = (
        (*(_sentence(where, text) for text in texts), _label(where, label))
        for where, (*texts, label) in cells(path, LABELLED[task])
    )
    return _columns(path, rows, "sentences")


def _trec_rows(path: Path) -> Iterator[tuple[str, int]]:
    """Lines `CLASS:subclass question`; labels index the coarse classes in `TREC_CLASSES`."""
    for number, line in numbered(path, "latin-1"):
        fine, _, question = line.partition(" ")
        coarse = fine.partition(":")[0]
        if coarse not in TREC_CLASSES:
            raise ValueError(f"{path}, line {number}: no `CLASS:subclass question` of TREC")
        yield _sentence(f"{path}, line {number}", question), TREC_CLASSES.index(coarse)
