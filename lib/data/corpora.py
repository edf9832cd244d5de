"""Training texts: what each is called, where its files are, and seeded samples of it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lib import paths
from lib.data import readers
from lib.data.folders import WIKI1M, WIKI1M_ROOTS, find
from lib.data.readers import read_aligned, read_lines
from lib.data.sets import (
    SIZES,
    SPLITS,
    STS_SUBSETS,
    check_size,
    sick,
    sick_path,
    sts_path,
    stsb,
    stsb_path,
)

WIKIPEDIA_FILES = ("wikipedia_en_2015.txt.xz", "wikipedia_en_2021.txt.xz")
MIN_WORDS = 3
DRAWN = "corpus/drawn/{}.txt.xz"


def pretrain_corpus(data_dir: str | Path | None = None, progress: bool = True) -> Iterator[str]:
    """Yield every sentence of `corpus/pretrain/*.txt.xz`, files in sorted order, blank lines
    skipped."""
    for base in paths.data_dirs(data_dir):
        for path in sorted((base / "corpus" / "pretrain").glob("*.txt.xz")):
            lines = readers.numbered(path)
            for _, line in tqdm(lines, desc=path.name, disable=not progress):
                if line.strip():
                    yield line.strip()


def sts_unlabelled(data_dir: str | Path | None = None, check: bool = True) -> list[str]:
    """The 89,192 sentences of the seven STS sets: every line, every split, pairs without a gold
    score included.

    These are ConSERT's training sentences, and the sentences of the test sets are among them.

    Args:
        check: as `stsb`.

    Source: Yan et al. 2021 (ConSERT), Table 1.
    """
    pairs: list[tuple[str, str]] = []
    for task, subsets in STS_SUBSETS.items():
        for subset, (size, _) in subsets.items():
            path = sts_path(task, subset, data_dir)
            subset_pairs = readers.sts_input(path)
            check_size(f"{task} {subset}", size, len(subset_pairs), path, check)
            pairs += subset_pairs
    for reader in (stsb, sick):
        for split in SPLITS:
            graded = reader(split, data_dir, check)
            pairs += zip(graded.sentence1, graded.sentence2, strict=True)
    return [sentence for pair in pairs for sentence in pair]


CORPORA = (
    "mini",
    "wikipedia",
    "wiki1m",
    "wiki1m_head",
    "wiki_slice",
    "sts_unlabelled",
    "stsb_train",
    "simclue",
)
HEAD = 11_548


def corpus_files(name: str | Path, data_dir: str | Path | None = None) -> list[Path]:
    """The files that `corpus` reads for a name, in order.

    Where a corpus is not here but a sample of it is, as `lib bundle` makes one, that is the file:
    `corpus/drawn/NAME.txt.xz`.

    Raises:
        FileNotFoundError: one is not there, or there is no corpus of that name; the message says
            what brings it.

    Example:
        >>> [path.name for path in corpus_files("mini")]
        ['corpus.txt']
    """
    sample = _drawn_file(name, data_dir)
    return [sample] if sample else _whole_files(name, data_dir)


def _drawn_file(name: str | Path, data_dir: str | Path | None) -> Path | None:
    """The sample of a corpus that is not here itself, if there is one."""
    if name not in CORPORA:
        return None
    try:
        _whole_files(name, data_dir)
    except FileNotFoundError:
        places = [base / DRAWN.format(name) for base in paths.data_dirs(data_dir)]
        return next((place for place in places if place.is_file()), None)
    return None


def _whole_files(name: str | Path, data_dir: str | Path | None) -> list[Path]:
    if name == "mini":
        return [paths.MINI / "corpus.txt"]
    if name == "wikipedia":
        names = [f"corpus/pretrain/{file}" for file in WIKIPEDIA_FILES]
        return [find(file, data_dir, fetched=False) for file in names]
    if name == "wiki1m_head" and is_here("wiki_slice", data_dir):
        name = "wiki_slice"
    if name in ("wiki1m", "wiki1m_head"):
        return [find(WIKI1M, data_dir, WIKI1M_ROOTS)]
    if name == "wiki_slice":
        return [find("wiki_slice.txt", data_dir, ("corpus", ""), fetched=False)]
    if name == "simclue":
        return [find("chinese/simclue.txt", data_dir, fetched=False)]
    if name == "stsb_train":
        return [stsb_path("train", data_dir)]
    if name == "sts_unlabelled":
        subsets = [(task, subset) for task in STS_SUBSETS for subset in STS_SUBSETS[task]]
        sts_files = [sts_path(task, subset, data_dir) for task, subset in subsets]
        splits = [path(split, data_dir) for path in (stsb_path, sick_path) for split in SPLITS]
        return sts_files + splits
    if Path(name).is_file():
        return [Path(name)]
    known = ", ".join(CORPORA)
    raise FileNotFoundError(f"no corpus {str(name)!r}: give one of {known} or the path of a file")


def at_hand(name: str | Path, data_dir: str | Path | None = None) -> str:
    """`wiki1m` for `wikipedia` where only that one is here; any other name as it is.

    Example:
        >>> at_hand("mini")
        'mini'
    """
    if name != "wikipedia" or is_here("wikipedia", data_dir) or not is_here("wiki1m", data_dir):
        return str(name)
    return "wiki1m"


def is_here(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether a corpus can be read, from its own files or from a sample of it."""
    try:
        corpus_files(name, data_dir)
    except FileNotFoundError:
        return False
    return True


def _beginning(path: Path, name: str | Path, n: int | None, seed: int) -> list[str]:
    """The first `n` sentences of a sample that was drawn elsewhere, by seed 0."""
    sentences = read_lines(path)
    if seed != 0 or n is None or n > len(sentences):
        raise ValueError(
            f"{path} holds {len(sentences):,} sentences of {name!r}, drawn by seed 0:"
            f" n={n}, seed={seed} needs the whole corpus"
        )
    return sentences[:n]


def _lines(name: str | Path, data_dir: str | Path | None, column: str | None) -> list[str]:
    """A corpus before any of it is drawn; the blank lines of a text file are still there."""
    if sample := _drawn_file(name, data_dir):
        raise ValueError(f"{sample} is a sample of {name!r}, which has lost its lines' numbers")
    files = _whole_files(name, data_dir)
    if str(name) in CORPORA and column is not None:
        raise ValueError(f"corpus {str(name)!r} has no columns: leave `column` out")
    if name == "sts_unlabelled":
        return sts_unlabelled(data_dir)
    if name == "stsb_train":
        pairs = stsb("train", data_dir)
        return pairs.sentence1 + pairs.sentence2
    if name == "wikipedia":
        texts = [sentence for path in files for sentence in read_lines(path)]
        long = (text for text in texts if len(text.split(maxsplit=MIN_WORDS - 1)) == MIN_WORDS)
        return list(dict.fromkeys(long))
    lines = readers.sentence_lines(files[0], column)
    if name == "wiki1m":
        check_size("wiki1m", SIZES["wiki1m"], len(lines), files[0], True)
    if name == "wiki1m_head":
        lines = lines[:HEAD]
        check_size("wiki1m_head", HEAD, len(lines), files[0], True)
    return lines


def sample(n_total: int, n: int | None = None, seed: int = 0) -> np.ndarray:
    """Numbers of the rows that are drawn from `n_total`, (n,) int64.

    A smaller sample is the beginning of a larger one. A corpus and a file that belongs to it line
    by line are drawn alike by the same three arguments.

    Args:
        n: rows wanted, drawn without replacement and in random order by `seed`; None is all of
            them in order.

    Raises:
        ValueError: fewer than `n` rows.

    Example:
        >>> sample(5, 3), sample(5, 2), sample(3)
        (array([2, 4, 3]), array([2, 4]), array([0, 1, 2]))
    """
    if n is None:
        return np.arange(n_total)
    if not 0 <= n <= n_total:
        raise ValueError(f"n={n} sentences asked for, the corpus has {n_total}")
    return np.random.default_rng(seed).permutation(n_total)[:n]


def corpus(
    name: str | Path,
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    column: str | None = None,
) -> list[str]:
    """Training sentences by name, or of any file that `read_lines` reads.

    Args:
        name: `mini` (the shipped corpus), `wikipedia` (the distinct sentences of at least three
            words of two Wikipedia dumps), `wiki1m` (SimCSE's 1,000,000 sentences), `wiki1m_head`
            (the first 11,548 of them, from that file or from `wiki_slice`), `wiki_slice` (a file
            `corpus/wiki_slice.txt`), `sts_unlabelled` (ConSERT's sentences, those of the test sets
            among them), `stsb_train` (both sides of STS-B's 5,749 training pairs), `simclue` (the
            sentences of SimCLUE's pairs in a file of your making, `chinese/simclue.txt`, one a
            line), or a path.
        n, seed: as `sample`.
        column: of a CSV or TSV path.

    Raises:
        FileNotFoundError: the corpus is not there; the message names the command that brings it.
        ValueError: no sentence, fewer than `n` sentences, or a part of a published corpus.
    """
    if drawn := _drawn_file(name, data_dir):
        return _beginning(drawn, name, n, seed)
    sentences = [line for line in _lines(name, data_dir, column) if line]
    if not sentences:
        raise ValueError(f"{corpus_files(name, data_dir)[0]}: 0 sentences")
    return [sentences[row] for row in sample(len(sentences), n, seed)]


def whole_or_sample(name: str | Path, data_dir: str | Path | None = None) -> list[str]:
    """Every sentence of a corpus, or of the sample of it that is here in its place.

    Raises:
        FileNotFoundError, ValueError: as `corpus`.
    """
    drawn = _drawn_file(name, data_dir)
    return read_lines(drawn) if drawn else corpus(name, data_dir)


def aligned_corpus(
    name: str | Path,
    positives: str | Path,
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[list[str], list[str]]:
    """The sentences that `corpus` gives, and with each the line of another file that belongs to it.

    Line i of `positives` belongs to line i of the corpus's file, blank lines counted; for a corpus
    that is put together from several files, to its i-th sentence. Blank lines at the end of a file
    do not count.

    Args:
        positives: a text file, e.g. of paraphrases; `.gz` and `.xz` are read too.
        name, data_dir, n, seed: as `corpus`.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: other numbers of lines, or a line that is blank in one file alone.

    Example:
        >>> first, second = aligned_corpus("mini", paths.MINI / "corpus.txt", n=3, seed=7)
        >>> first == second == corpus("mini", n=3, seed=7)
        True
    """
    lines = _without_end(_lines(name, data_dir, None))
    others = _without_end(read_aligned(positives))
    if len(lines) != len(others):
        raise ValueError(
            f"{positives} has {len(others):,} lines, the corpus {str(name)!r} {len(lines):,}: line"
            " i must belong to line i, as `python -m lib augment` writes it"
        )
    for number, (line, other) in enumerate(zip(lines, others, strict=True), 1):
        if bool(line) != bool(other):
            where = f"only in the corpus {str(name)!r}" if other else "only there"
            raise ValueError(
                f"{positives}, line {number}: blank {where}, so the two do not belong together"
            )
    pairs = [pair for pair in zip(lines, others, strict=True) if pair[0]]
    drawn = [pairs[row] for row in sample(len(pairs), n, seed)]
    return [line for line, _ in drawn], [other for _, other in drawn]


def _without_end(lines: list[str]) -> list[str]:
    """`lines` without the blank ones at their end."""
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]
