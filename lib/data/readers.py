"""File formats: text files, graded pairs, labelled sentences; one reader for each, of a path.

Every reader checks every line; a malformed one is a `ValueError` with file and line number.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
TRIPLET_COLUMNS = ("number", "anchor", "kind", "sentence")
LONGEST_LINE = 1_000_000  # bytes; spaCy parses no longer text
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
        kinds = self.sentence1 if self.kinds is None else self.kinds
        _check_lengths(self.name, self.sentence1, self.sentence2, self.scores, kinds)

    def __len__(self) -> int:
        return len(self.sentence1)


@dataclass(frozen=True)
class Triplets:
    """Sentences set against the anchor that they share, one sentence a row: `sentences[i]` stands
    in the relation `kinds[i]` to `anchors[i]`.

    Raises:
        ValueError: columns of different lengths; an anchor with two sentences of a kind.
    """

    name: str
    anchors: list[str]
    kinds: list[str]
    sentences: list[str]

    def __post_init__(self) -> None:
        _check_lengths(self.name, self.anchors, self.kinds, self.sentences)
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


def _check_lengths(name: str, *columns: Any) -> None:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) != 1:
        raise ValueError(f"{name}: columns of lengths {lengths}")


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
            for raw in iter(partial(file.readline, LONGEST_LINE + 1), b""):
                number += 1
                line = raw.removesuffix(b"\n").removesuffix(b"\r")
                if fault := _fault(line, number):
                    raise ValueError(f"{path}, line {number}: {fault}")
                text = line.decode(encoding)
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        where = f"{path}, line {number}"
        raise ValueError(f"{where}: not valid UTF-8 (byte {error.start + 1})") from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(
            f"{path}, after line {number}: damaged archive ({error}): fetch or build it again"
        ) from error


def _is_utf8(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fault(line: bytes, number: int) -> str:
    """What is wrong with the bytes of a line, or nothing."""
    if b"\0" in line or (number == 1 and line.startswith(_UTF16)):
        return "NUL bytes or the mark of UTF-16: save the file as UTF-8"
    if b"\r" in line:
        return "a carriage return inside the line: save the file with lines that end in LF or CRLF"
    if len(line) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE:,} bytes, which is no sentence"
    return ""


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
    kind = path.with_suffix("") if path.suffix in (".xz", ".gz") else path
    if kind.suffix != ".txt":
        raise ValueError(
            f"{path} is no text file: write one sentence a line in a .txt file (.txt.gz and .txt.xz"
            " are read too)"
        )
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


# --- parts of a line; `where` names file and line


def _fields(
    path: Path, counts: tuple[int, ...], separator: str = "\t", fallback: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield (file and line, cells) of every line, which must have one of these numbers of cells."""
    for number, line in numbered(path, fallback):
        where, cells = f"{path}, line {number}", line.split(separator)
        if len(cells) not in counts:
            expected = " or ".join(str(count) for count in counts)
            raise ValueError(f"{where}: {len(cells)} fields where {expected} are expected")
        yield where, cells


def _table(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield (file and line, the cells of `columns`) of a tab-separated file with a header line and
    no quoting."""
    header = next((line.split("\t") for _, line in numbered(path)), [])
    for name in columns:
        if header.count(name) != 1:
            count = "two columns" if name in header else "no column"
            raise ValueError(f"{path}, line 1: {count} {name!r} among {header}")
    rows = _fields(path, (len(header),))
    next(rows)
    for where, cells in rows:
        yield where, [cells[header.index(name)] for name in columns]


def _sentence(where: str, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{where}: a sentence is empty")
    return text.strip()


def _score(where: str, text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()) or float(text) > 5:
        raise ValueError(f"{where}: {text!r} is no similarity between 0 and 5")
    return float(text)


def _label(where: str, text: str) -> int:
    if text.strip() not in _LABELS:
        raise ValueError(f"{where}: label {text!r} is neither 0 nor 1")
    return _LABELS[text.strip()]


def _columns(path: Path, rows: Iterable[tuple], what: str) -> list[list]:
    """The columns of rows, of which there must be one."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    if not columns:
        raise ValueError(f"{path}: 0 {what}")
    return columns


def handwritten_file(path: Path) -> list[tuple[str, str]]:
    """(sentence, paraphrase) of a file with a line `sentence | paraphrase` or `sentence` each; the
    paraphrase is empty where there is none. Blank lines and those that start with `#` are skipped.

    Raises:
        ValueError: an empty sentence or paraphrase, or more than one `|` (with file and line
            number).
    """
    rows = []
    for where, cells in _fields(path, (1, 2), "|"):
        if (cells[0].strip() or len(cells) > 1) and not cells[0].startswith("#"):
            sentence, *other = (_sentence(where, cell) for cell in cells)
            rows.append((sentence, other[0] if other else ""))
    return rows


# --- graded pairs


def _pairs(path: Path, name: str, rows: Iterable[tuple[str, str, str, str, str]]) -> Pairs:
    """Pairs of rows (file and line, sentence, sentence, score, kind); kinds may be empty."""
    checked = (
        (_sentence(where, a), _sentence(where, b), _score(where, score), kind)
        for where, a, b, score, kind in rows
    )
    first, second, scores, kinds = _columns(path, checked, "scored pairs")
    return Pairs(name, first, second, np.array(scores, float), kinds if any(kinds) else None)


def sts_input(path: Path) -> list[tuple[str, str]]:
    """Every sentence pair of a SemEval `STS.input.X.txt`, two tab-separated columns, scored or
    not."""
    rows = _fields(path, (2,))
    return [(_sentence(where, a), _sentence(where, b)) for where, (a, b) in rows]


def sts_subset(path: Path, gold_path: Path, name: str) -> Pairs:
    """Scored pairs of `STS.input.X.txt` and `STS.gs.X.txt`; an empty gold line is a pair nobody
    scored."""
    pairs, gold = sts_input(path), list(numbered(gold_path))
    if len(pairs) != len(gold):
        raise ValueError(
            f"{path}, line {len(pairs)}: the last one, but {gold_path.name} has {len(gold)} lines"
        )
    rows = (
        (f"{gold_path}, line {number}", *pair, score, "")
        for pair, (number, score) in zip(pairs, gold, strict=True)
        if score.strip()
    )
    return _pairs(gold_path, name, rows)


def stsb_file(path: Path, name: str) -> Pairs:
    """STS Benchmark: no header, no quoting; fields 5, 6, 7 are score and sentences, and the sources
    of both sentences may follow, so that there are seven fields or nine."""
    rows = _fields(path, (7, 9))
    return _pairs(path, name, ((where, c[5], c[6], c[4], "") for where, c in rows))


def sick_file(path: Path, name: str) -> Pairs:
    """SICK: columns by the names in its header line."""
    table = _table(path, ("sentence_A", "sentence_B", "relatedness_score"))
    return _pairs(path, name, ((where, a, b, score, "") for where, (a, b, score) in table))


def kinds_file(path: Path, name: str) -> Pairs:
    """Graded pairs with kinds: header `score kind sentence1 sentence2`, tab-separated without
    quoting."""
    table = _table(path, ("sentence1", "sentence2", "score", "kind"))
    return _pairs(path, name, ((where, a, b, score, kind) for where, (a, b, score, kind) in table))


def cnsd_file(path: Path, name: str) -> Pairs:
    """CNSD's Chinese STS-B: lines of `id||sentence1||sentence2||score`."""
    rows = _fields(path, (4,), "||")
    return _pairs(path, name, ((where, a, b, score, "") for where, (_, a, b, score) in rows))


def triplets_file(path: Path, name: str) -> Triplets:
    """Triplets: header `number anchor kind sentence`, tab-separated without quoting; anchor and
    number name each other."""
    rows = []
    anchor_of: dict[str, str] = {}
    number_of: dict[str, str] = {}
    for where, (number, anchor, kind, other) in _table(path, TRIPLET_COLUMNS):
        known = anchor_of.setdefault(number, anchor), number_of.setdefault(anchor, number)
        if known != (anchor, number):
            raise ValueError(f"{where}: number {number} and anchor do not match")
        rows.append((_sentence(where, anchor), kind, _sentence(where, other)))
    return Triplets(name, *_columns(path, rows, "triplets"))


# --- labelled sentences


def sentences_file(path: Path) -> list[str]:
    """One sentence a line; Latin-1 where the file is not valid UTF-8 (MR, CR, SUBJ, MPQA).

    Blank lines are kept as empty sentences: CR and MPQA hold seven, and the published counts
    include them.
    """
    (sentences,) = _columns(
        path, ((line.strip(),) for _, line in numbered(path, "latin-1")), "sentences"
    )
    return sentences


def sst2_file(path: Path) -> tuple[list[str], list[int]]:
    """SST-2: `sentence<TAB>0|1`."""
    lines = _fields(path, (2,), fallback="latin-1")
    rows = ((_sentence(where, text), _label(where, label)) for where, (text, label) in lines)
    sentences, labels = _columns(path, rows, "sentences")
    return sentences, labels


def trec_file(path: Path) -> tuple[list[str], list[int]]:
    """TREC: `CLASS:subclass question`; labels index the coarse classes in `TREC_CLASSES`."""
    rows = []
    for number, line in numbered(path, "latin-1"):
        fine, _, question = line.partition(" ")
        coarse = fine.partition(":")[0]
        if coarse not in TREC_CLASSES or not question.strip():
            raise ValueError(
                f"{path}, line {number}: no `CLASS:subclass question` of {', '.join(TREC_CLASSES)}"
            )
        rows.append((question.strip(), TREC_CLASSES.index(coarse)))
    sentences, labels = _columns(path, rows, "sentences")
    return sentences, labels


def mrpc_file(path: Path) -> tuple[list[str], list[str], list[int]]:
    """MRPC: header `Quality  #1 ID  #2 ID  #1 String  #2 String`, tab-separated without quoting."""
    table = _table(path, ("#1 String", "#2 String", "Quality"))
    rows = (
        (_sentence(where, a), _sentence(where, b), _label(where, label))
        for where, (a, b, label) in table
    )
    first, second, labels = _columns(path, rows, "sentences")
    return first, second, labels


# --- settings


class _Yaml(yaml.SafeLoader):
    """The core schema of YAML 1.2 with decimal numbers and merge keys; no key may stand twice."""

    yaml_implicit_resolvers: dict = {}  # noqa: RUF012

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.MarkedYAMLError(problem=f"{twice[0]!r} stands twice, {node.start_mark}")
        return node


_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+", list("-+0123456789")),
    "merge": ("<<", ["<"]),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
}
for _name, (_pattern, _first) in _PLAIN.items():
    _Yaml.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first
    )
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
