"""File formats: sentence files, graded pairs, labelled sentences. One reader per format, each takes
a path.

Every reader checks every line; a malformed one is a `ValueError` with file and line number.
"""

import csv
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
TRIPLET_COLUMNS = ("number", "anchor", "kind", "sentence")
LONGEST_LINE = 2**24
_LABELS = {"0": 0, "1": 1}
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Graded sentence pairs: `scores` (n,) float64 in [0, 5], `kinds` names each pair's kind where
    known.

    Raises:
        ValueError: columns of different lengths.
    """

    name: str
    sentence1: list[str]
    sentence2: list[str]
    scores: np.ndarray
    kinds: list[str] | None = None

    def __post_init__(self) -> None:
        lengths = [
            len(c)
            for c in (self.sentence1, self.sentence2, self.scores, self.kinds)
            if c is not None
        ]
        if len(set(lengths)) != 1:
            raise ValueError(f"{self.name}: columns of lengths {lengths} are no pairs")

    def __len__(self) -> int:
        return len(self.sentence1)


@dataclass(frozen=True)
class Triplets:
    """Sentences set against the anchor that they share, a row a sentence: `sentences[i]` stands in
    the relation `kinds[i]` to `anchors[i]`.

    Raises:
        ValueError: columns of different lengths; an anchor with two sentences of a kind.
    """

    name: str
    anchors: list[str]
    kinds: list[str]
    sentences: list[str]

    def __post_init__(self) -> None:
        lengths = [len(column) for column in (self.anchors, self.kinds, self.sentences)]
        if len(set(lengths)) != 1:
            raise ValueError(f"{self.name}: columns of lengths {lengths} are no triplets")
        seen: set[tuple[str, str]] = set()
        for anchor, kind in zip(self.anchors, self.kinds, strict=True):
            if (anchor, kind) in seen:
                raise ValueError(f"{self.name}: two sentences of kind {kind!r} for {anchor!r}")
            seen.add((anchor, kind))

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


def numbered(
    path: Path, fallback: str | None = None, quoted: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); `.xz` and `.gz` are decompressed.

    Lines end at LF or CRLF only, so that U+0085 or U+2028 inside a sentence does not split it.
    A byte order mark is dropped. With `fallback`, a file that is not valid UTF-8 throughout is
    decoded by that encoding. With `quoted`, cells may hold carriage returns.

    Raises:
        ValueError: bad UTF-8 (without `fallback`), UTF-16, NUL bytes, lines that end in CR alone,
            a line above 16 MiB, damaged archive.
    """
    encoding = fallback if fallback and not _is_utf8(path) else "utf-8"
    opener: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    number = returns = 0
    try:
        with opener(path, "rb") as file:
            for raw in iter(partial(file.readline, LONGEST_LINE + 1), b""):
                number += 1
                _check_bytes(path, number, raw)
                line = raw.decode(encoding).removesuffix("\n").removesuffix("\r")
                returns += "\r" in line
                yield number, line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeDecodeError as error:
        where = f"{path}, line {number}"
        raise ValueError(
            f"{where}: not valid UTF-8 (byte {error.start + 1} of the line)"
        ) from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(
            f"{path}, after line {number}: damaged archive ({error}): fetch or build it again"
        ) from error
    if returns and returns == number and not quoted:
        raise ValueError(
            f"{path}: carriage returns inside every one of its {number} lines: save it with lines "
            "that end in LF or CRLF"
        )


def _is_utf8(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check_bytes(path: Path, number: int, raw: bytes) -> None:
    if b"\0" in raw or (number == 1 and raw.startswith(_UTF16)):
        raise ValueError(
            f"{path}, line {number}: NUL bytes or the mark of UTF-16: save the file as UTF-8"
        )
    if len(raw) > LONGEST_LINE:
        raise ValueError(f"{path}, line {number}: longer than 16 MiB, which is no sentence")


def read_aligned(path: str | Path) -> list[str]:
    """Every line of a text file, stripped; blank lines are kept, so that line numbers stay.

    Args:
        path: UTF-8 text, also compressed, with `.gz` or `.xz` at its end.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `numbered`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    return [line.strip() for _, line in numbered(path)]


def _cells(
    path: Path, number: int, line: str, n: int, separator: str = "\t", more: bool = False
) -> list[str]:
    cells = line.split(separator)
    if len(cells) < n or (len(cells) > n and not more):
        least = "at least " if more else ""
        raise ValueError(
            f"{path}, line {number}: {len(cells)} fields where {least}{n} are expected"
        )
    return cells


def _score(path: Path, number: int, text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()) or float(text) > 5:
        raise ValueError(f"{path}, line {number}: {text!r} is no similarity between 0 and 5")
    return float(text)


def _sentence(path: Path, number: int, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{path}, line {number}: a sentence is empty")
    return text.strip()


def _label(path: Path, number: int, text: str) -> int:
    if text.strip() not in _LABELS:
        raise ValueError(f"{path}, line {number}: label {text!r} is neither 0 nor 1")
    return _LABELS[text.strip()]


def _table(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, the cells of `columns`) of a tab-separated file with a header line and no
    quoting."""
    header: list[str] = []
    for number, line in numbered(path):
        if number == 1:
            header = line.split("\t")
            for name in columns:
                _check_column(path, name, header)
        else:
            cells = _cells(path, number, line, len(header))
            yield number, [cells[header.index(c)] for c in columns]


def _check_column(path: Path, name: str, header: list[str]) -> None:
    if header.count(name) != 1:
        count = "two columns" if name in header else "no column"
        raise ValueError(f"{path}, line 1: {count} {name!r} among {header}")


def _pairs(
    path: Path, name: str, rows: list[tuple[str, str, float]], kinds: list[str] | None = None
) -> Pairs:
    if not rows:
        raise ValueError(f"{path}: 0 scored pairs")
    first, second, scores = (list(column) for column in zip(*rows, strict=True))
    return Pairs(name, first, second, np.array(scores, float), kinds)


# --- sentence files
# ----------------------------------------------------------------------------------------


def _column(path: Path, column: str, kind: str) -> Iterator[str]:
    lines = (line + "\n" for _, line in numbered(path, quoted=kind == ".csv"))
    if kind == ".csv":
        rows = csv.reader(lines, strict=True)
    else:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        header = next(rows, [])
        _check_column(path, column, header)
        for row in rows:
            if row and len(row) != len(header):
                raise ValueError(
                    f"{path}, line {rows.line_num}: {len(row)} fields where {len(header)} are"
                    " expected"
                )
            if row:
                yield re.sub(r"\s*[\r\n]+\s*", " ", row[header.index(column)])
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}") from error


def read_lines(path: str | Path, column: str | None = None) -> list[str]:
    """Sentences of a file, one a line, stripped; blank lines are skipped, blank cells too.

    Args:
        path: `.txt`, or `.csv` (quoted cells) and `.tsv` (no quoting) with a header line; each also
            compressed, with `.xz` or `.gz` after it. UTF-8, with or without a byte order mark.
        column: the column of a `.csv` or `.tsv` file; a line break inside a cell becomes a space.

    Raises:
        FileNotFoundError: no such file.
        ValueError: bad UTF-8, missing column or ragged row (with file and line number), damaged
            archive, unknown suffix.

    Example:
        >>> import tempfile; folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text('id,text\\n1,"Hello, you."\\n2,\\n')
        >>> read_lines(folder / "a.csv", column="text")
        ['Hello, you.']
    """
    return [line for line in sentence_lines(path, column) if line]


def sentence_lines(path: str | Path, column: str | None = None) -> list[str]:
    """As `read_lines`, with the blank lines of a `.txt` file and blank cells kept as empty
    sentences."""
    path = Path(path)
    kind = (path.with_suffix("") if path.suffix in (".xz", ".gz") else path).suffix
    if kind not in (".txt", ".csv", ".tsv"):
        raise ValueError(
            f"{path}: the name must end in .txt, .csv or .tsv, or in one of these and .xz or .gz"
        )
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if (kind == ".txt") != (column is None):
        need = (
            "has no columns: leave `column` out"
            if column
            else "has columns: say which one in `column`"
        )
        raise ValueError(f"{path}: a {kind} file {need}")
    lines = (line for _, line in numbered(path)) if column is None else _column(path, column, kind)
    return [line.strip() for line in lines]


def handwritten_file(path: Path) -> list[tuple[str, str]]:
    """(sentence, paraphrase) of a file with a line `sentence | paraphrase` or `sentence` each; the
    paraphrase is empty where there is none. Blank lines and those that start with `#` are skipped.

    Raises:
        ValueError: an empty sentence or paraphrase, or more than one `|` (with file and line
            number).
    """
    rows = []
    for number, line in numbered(path):
        if line.strip() and not line.startswith("#"):
            cells = line.split("|")
            if len(cells) > 2:
                raise ValueError(f"{path}, line {number}: {len(cells)} fields, at most 2 expected")
            sentence, *other = (_sentence(path, number, cell) for cell in cells)
            rows.append((sentence, other[0] if other else ""))
    return rows


# --- graded pairs
# ------------------------------------------------------------------------------------------


def sts_input(path: Path) -> list[tuple[str, str]]:
    """Every sentence pair of a SemEval `STS.input.X.txt`, two tab-separated columns, scored or
    not."""
    pairs = []
    for number, line in numbered(path):
        a, b = _cells(path, number, line, 2)
        pairs.append((_sentence(path, number, a), _sentence(path, number, b)))
    return pairs


def sts_subset(path: Path, gold_path: Path, name: str) -> Pairs:
    """Scored pairs of `STS.input.X.txt` and `STS.gs.X.txt`; an empty gold line is a pair nobody
    scored."""
    pairs, gold = sts_input(path), [line for _, line in numbered(gold_path)]
    if len(pairs) != len(gold):
        raise ValueError(
            f"{path}, line {len(pairs)}: the last one, but {gold_path.name} has {len(gold)} lines"
        )
    rows = []
    for number, ((a, b), score) in enumerate(zip(pairs, gold, strict=True), 1):
        if score.strip():
            rows.append((a, b, _score(gold_path, number, score)))
    return _pairs(gold_path, name, rows)


def _row(path: Path, number: int, a: str, b: str, score: str) -> tuple[str, str, float]:
    return _sentence(path, number, a), _sentence(path, number, b), _score(path, number, score)


def stsb_file(path: Path, name: str) -> Pairs:
    """STS Benchmark: no header, no quoting; fields 5, 6, 7 are score and sentences, source fields
    may follow."""
    rows = []
    for number, line in numbered(path):
        cells = _cells(path, number, line, 7, more=True)
        rows.append(_row(path, number, cells[5], cells[6], cells[4]))
    return _pairs(path, name, rows)


def sick_file(path: Path, name: str) -> Pairs:
    """SICK: columns by the names in its header line."""
    table = _table(path, ("sentence_A", "sentence_B", "relatedness_score"))
    return _pairs(path, name, [_row(path, number, *cells) for number, cells in table])


def kinds_file(path: Path, name: str) -> Pairs:
    """Graded pairs with kinds: header `score kind sentence1 sentence2`, tab-separated without
    quoting."""
    rows, kinds = [], []
    for number, (score, kind, a, b) in _table(path, ("score", "kind", "sentence1", "sentence2")):
        rows.append(_row(path, number, a, b, score))
        kinds.append(kind)
    return _pairs(path, name, rows, kinds)


def triplets_file(path: Path, name: str) -> Triplets:
    """Triplets: header `number anchor kind sentence`, tab-separated without quoting; anchor and
    number name each other."""
    rows: list[tuple[str, str, str]] = []
    anchor_of: dict[str, str] = {}
    number_of: dict[str, str] = {}
    for line, (number, anchor, kind, other) in _table(path, TRIPLET_COLUMNS):
        rows.append((_sentence(path, line, anchor), kind, _sentence(path, line, other)))
        if (anchor_of.setdefault(number, anchor), number_of.setdefault(anchor, number)) != (
            anchor,
            number,
        ):
            raise ValueError(f"{path}, line {line}: number {number} and anchor do not match")
    if not rows:
        raise ValueError(f"{path}: 0 triplets")
    return Triplets(name, *(list(column) for column in zip(*rows, strict=True)))


def cnsd_file(path: Path, name: str) -> Pairs:
    """CNSD's Chinese STS-B: lines of `id||sentence1||sentence2||score`."""
    rows = []
    for number, line in numbered(path):
        _, a, b, score = _cells(path, number, line, 4, separator="||")
        rows.append(_row(path, number, a, b, score))
    return _pairs(path, name, rows)


# --- labelled sentences
# ------------------------------------------------------------------------------------


def _some(path: Path, sentences: list[str]) -> list[str]:
    if not sentences:
        raise ValueError(f"{path}: 0 sentences")
    return sentences


def sentences_file(path: Path) -> list[str]:
    """One sentence a line; Latin-1 where the file is not valid UTF-8 (MR, CR, SUBJ, MPQA).

    Blank lines are kept as empty sentences: CR and MPQA hold seven, and the published counts
        include them.
    """
    return _some(path, [line.strip() for _, line in numbered(path, fallback="latin-1")])


def sst2_file(path: Path) -> tuple[list[str], list[int]]:
    """SST-2: `sentence<TAB>0|1`."""
    sentences, labels = [], []
    for number, line in numbered(path, fallback="latin-1"):
        sentence, label = _cells(path, number, line, 2)
        sentences.append(_sentence(path, number, sentence))
        labels.append(_label(path, number, label))
    return _some(path, sentences), labels


def trec_file(path: Path) -> tuple[list[str], list[int]]:
    """TREC: `CLASS:subclass question`; labels index the coarse classes in `TREC_CLASSES`."""
    sentences, labels = [], []
    for number, line in numbered(path, fallback="latin-1"):
        fine, _, question = line.partition(" ")
        coarse = fine.partition(":")[0]
        if coarse not in TREC_CLASSES or not question.strip():
            raise ValueError(
                f"{path}, line {number}: no `CLASS:subclass question` of {', '.join(TREC_CLASSES)}"
            )
        sentences.append(question.strip())
        labels.append(TREC_CLASSES.index(coarse))
    return _some(path, sentences), labels


def mrpc_file(path: Path) -> tuple[list[str], list[str], list[int]]:
    """MRPC: header `Quality  #1 ID  #2 ID  #1 String  #2 String`, tab-separated without quoting."""
    first, second, labels = [], [], []
    for number, (label, a, b) in _table(path, ("Quality", "#1 String", "#2 String")):
        first.append(_sentence(path, number, a))
        second.append(_sentence(path, number, b))
        labels.append(_label(path, number, label))
    return _some(path, first), second, labels


# --- settings
# ----------------------------------------------------------------------------------------------


class _Yaml(yaml.SafeLoader):
    """The core schema of YAML 1.2 with decimal numbers and merge keys; no key may stand twice."""

    yaml_implicit_resolvers: dict = {}  # noqa: RUF012

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for position, key in enumerate(keys):
            if key in keys[:position]:
                raise yaml.composer.ComposerError(
                    None, None, f"{key!r} stands twice", node.start_mark
                )
        return node


_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+", list("-+0123456789")),
    "merge": ("<<", ["<"]),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
}
for _name, (_pattern, _first) in _PLAIN.items():
    _tag = f"tag:yaml.org,2002:{_name}"
    _Yaml.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), _first)
_Yaml.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value, 10))
_Yaml.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def yaml_value(text: str) -> Any:
    """What a YAML text means by the core schema of YAML 1.2, in which `yes` and `1:30` are text and
    010 is ten.

    Raises:
        ValueError: no YAML, or a key stands twice; one line that says where.

    Example:
        >>> yaml_value("{lr: 1e-3, steps: 010, at: 1:30, is: yes, seeds: [1, 2], model: null}")
        {'lr': 0.001, 'steps': 10, 'at': '1:30', 'is': 'yes', 'seeds': [1, 2], 'model': None}
    """
    try:
        return yaml.load(text, _Yaml)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
