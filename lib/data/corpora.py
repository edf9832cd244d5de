"""Training texts: what each is called, where its files are, and seeded samples of it."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lib import paths
from lib.data import readers, sets
from lib.data.folders import WIKI1M, WIKI1M_ROOTS, find
from lib.data.readers import read_aligned, read_lines

WIKIPEDIA_FILES = ("wikipedia_en_2015.txt.xz", "wikipedia_en_2021.txt.xz")
MIN_WORDS = 3
HEAD = 11_548
Folder = str | Path | None


def pretrain_corpus(data_dir: Folder = None, progress: bool = True) -> Iterator[str]:
    """Yield every sentence of `corpus/pretrain/*.txt.xz`, files in sorted order, blank lines
    skipped."""
    for base in paths.data_dirs(data_dir):
        for path in sorted((base / "corpus" / "pretrain").glob("*.txt.xz")):
            lines = readers.numbered(path)
            for _, line in tqdm(lines, desc=path.name, disable=not progress):
                if line.strip():
                    yield line.strip()


def sts_unlabelled(data_dir: Folder = None, check: bool = True) -> list[str]:
    """The 89,192 sentences of the seven STS sets: every line, every split, pairs without a gold
    score included.

    These are ConSERT's training sentences, and the sentences of the test sets are among them.

    Args:
        check: as `stsb`.

    Source: Yan et al. 2021 (ConSERT), Table 1.
    """
    pairs: list[tuple[str, str]] = []
    for task, subsets in sets.STS_SUBSETS.items():
        for subset, (size, _) in subsets.items():
            path = sets.sts_path(task, subset, data_dir)
            found = readers.sts_input(path)
            sets.check_size(f"{task} {subset}", size, len(found), path, check)
            pairs += found
    for reader in (sets.stsb, sets.sick):
        for split in sets.SPLITS:
            graded = reader(split, data_dir, check)
            pairs += zip(graded.sentence1, graded.sentence2, strict=True)
    return [sentence for pair in pairs for sentence in pair]


def _not_fetched(*names: str) -> Callable[[Folder], list[Path]]:
    return lambda data_dir: [find(name, data_dir, fetched=False) for name in names]


def _wiki_slice(data_dir: Folder) -> list[Path]:
    return [find("wiki_slice.txt", data_dir, ("corpus", ""), fetched=False)]


def _wiki1m(data_dir: Folder) -> list[Path]:
    return [find(WIKI1M, data_dir, WIKI1M_ROOTS)]


def _wiki1m_head(data_dir: Folder) -> list[Path]:
    return (_wiki_slice if is_here("wiki_slice", data_dir) else _wiki1m)(data_dir)


_FILES: dict[str, Callable[[Folder], list[Path]]] = {
    "mini": lambda data_dir: [paths.MINI / "corpus.txt"],
    "wikipedia": _not_fetched(*(f"corpus/pretrain/{file}" for file in WIKIPEDIA_FILES)),
    "wiki1m": _wiki1m,
    "wiki1m_head": _wiki1m_head,
    "wiki_slice": _wiki_slice,
    "sts_unlabelled": sets.unlabelled_files,
    "stsb_train": lambda data_dir: [sets.stsb_path("train", data_dir)],
    "simclue": _not_fetched("chinese/simclue.txt"),
}
CORPORA = tuple(_FILES)


def corpus_files(name: str | Path, data_dir: Folder = None) -> list[Path]:
    """The files that `corpus` reads for a name, in order.

    Raises:
        FileNotFoundError: one is not there, or there is no corpus of that name; the message says
            what brings it.

    Example:
        >>> [path.name for path in corpus_files("mini")]
        ['corpus.txt']
    """
    if name in _FILES:
        return _FILES[str(name)](data_dir)
    if Path(name).is_file():
        return [Path(name)]
    known = ", ".join(CORPORA)
    raise FileNotFoundError(f"no corpus {str(name)!r}: give one of {known} or the path of a file")


def is_here(name: str, data_dir: Folder = None) -> bool:
    """Whether a corpus can be read."""
    try:
        corpus_files(name, data_dir)
    except FileNotFoundError:
        return False
    return True


def at_hand(name: str | Path, data_dir: Folder = None) -> str:
    """`wiki1m` for `wikipedia` where only that one is here; any other name as it is.

    Example:
        >>> at_hand("mini")
        'mini'
    """
    if name != "wikipedia" or is_here("wikipedia", data_dir) or not is_here("wiki1m", data_dir):
        return str(name)
    return "wiki1m"


def _lines(name: str | Path, data_dir: Folder) -> list[str]:
    """A corpus before any of it is drawn; the blank lines of a text file are still there."""
    files = corpus_files(name, data_dir)
    if name == "sts_unlabelled":
        return sts_unlabelled(data_dir)
    if name == "stsb_train":
        pairs = sets.stsb("train", data_dir)
        return pairs.sentence1 + pairs.sentence2
    if name == "wikipedia":
        texts = [sentence for path in files for sentence in read_lines(path)]
        long = (text for text in texts if len(text.split(maxsplit=MIN_WORDS - 1)) == MIN_WORDS)
        return list(dict.fromkeys(long))
    lines = read_aligned(files[0])
    if name == "wiki1m":
        sets.check_size("wiki1m", sets.SIZES["wiki1m"], len(lines), files[0], True)
    if name == "wiki1m_head":
        lines = lines[:HEAD]
        sets.check_size("wiki1m_head", HEAD, len(lines), files[0], True)
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
    name: str | Path, data_dir: Folder = None, n: int | None = None, seed: int = 0
) -> list[str]:
    """Training sentences by name, or of a text file that `read_lines` reads.

    Args:
        name: `mini` (the shipped corpus), `wikipedia` (the distinct sentences of at least three
            words of two Wikipedia dumps), `wiki1m` (SimCSE's 1,000,000 sentences), `wiki1m_head`
            (the first 11,548 of them, from that file or from `wiki_slice`), `wiki_slice` (a file
            `corpus/wiki_slice.txt`), `sts_unlabelled` (ConSERT's sentences, those of the test sets
            among them), `stsb_train` (both sides of STS-B's 5,749 training pairs), `simclue` (the
            sentences of SimCLUE's pairs in a file of your making, `chinese/simclue.txt`, one a
            line), or a path.
        n, seed: as `sample`.

    Raises:
        FileNotFoundError: the corpus is not there; the message names the command that brings it.
        ValueError: no sentence, fewer than `n` sentences, or a part of a published corpus.
    """
    sentences = [line for line in _lines(name, data_dir) if line]
    if not sentences:
        raise ValueError(f"{corpus_files(name, data_dir)[0]}: 0 sentences")
    return [sentences[row] for row in sample(len(sentences), n, seed)]


def training_text(
    name: str | Path, data_dir: Folder = None, n: int | None = None, seed: int = 0
) -> list[str]:
    """As `corpus`, with a warning that counts the lines which repeat an earlier one.

    Two equal sentences in one batch are each other's negatives, although they mean the same.
    """
    sentences = corpus(name, data_dir, n, seed)
    if repeated := len(sentences) - len(set(sentences)):
        warnings.warn(
            f"{repeated:,} of {len(sentences):,} lines of {str(name)!r} repeat an earlier line:"
            " where both are in one batch, a sentence is trained as its own negative",
            stacklevel=2,
        )
    return sentences


def aligned_corpus(
    name: str | Path,
    positives: str | Path,
    data_dir: Folder = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[list[str], list[str]]:
    """The sentences that `corpus` gives, and with each the line of another file that belongs to it.

    Line i of `positives` belongs to line i of the corpus's file, blank lines counted; for a corpus
    that is put together from several files, to its i-th sentence. Blank lines at the end of a file
    do not count.

    Args:
        positives: a text file that `read_aligned` reads, e.g. of paraphrases.
        name, data_dir, n, seed: as `corpus`.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: other numbers of lines, a line that is blank in one file alone, or a sample of
            the corpus in its place.

    Example:
        >>> first, second = aligned_corpus("mini", paths.MINI / "corpus.txt", n=3, seed=7)
        >>> first == second == corpus("mini", n=3, seed=7)
        True
    """
    lines, others = _lines(name, data_dir), read_aligned(positives)
    ends = [max((i for i, x in enumerate(text, 1) if x), default=0) for text in (lines, others)]
    if ends[0] != ends[1]:
        raise ValueError(
            f"{positives} has {ends[1]:,} lines, the corpus {str(name)!r} {ends[0]:,}: line i must"
            " belong to line i, as `python -m lib augment` writes it"
        )
    pairs = list(zip(lines[: ends[0]], others[: ends[1]], strict=True))
    for number, (line, other) in enumerate(pairs, 1):
        if bool(line) != bool(other):
            where = f"only in the corpus {str(name)!r}" if other else "only there"
            raise ValueError(
                f"{positives}, line {number}: blank {where}, so the two do not belong together"
            )
    pairs = [pair for pair in pairs if pair[0]]
    drawn_pairs = [pairs[row] for row in sample(len(pairs), n, seed)]
    return [line for line, _ in drawn_pairs], [other for _, other in drawn_pairs]
