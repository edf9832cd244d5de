"""Training texts: what each is called, where its files are, and seeded samples of it; and the
sentences to look at and to search."""

import warnings
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd

from lib import paths
from lib.data import readers, sets
from lib.data.readers import read_aligned, read_lines
from lib.data.sets import CORPUS_FILES, Folder

CORPORA = ("mini", *CORPUS_FILES, "wiki1m_head", "sts_unlabelled", "stsb_train")
MIN_WORDS = 3
HEAD = 11_548
REAL_TEXT = {"wiki1m": "of wiki1m", "wiki1m_head": "at the beginning of wiki1m"}
PLANTED = ["same meaning", "decoy", "same subject"]


def sts_unlabelled(data_dir: Folder = None) -> list[str]:
    """The 89,192 sentences of the seven STS sets: every line, every split, pairs without a gold
    score included.

    These are ConSERT's training sentences, and the sentences of the test sets are among them.

    Source: Yan et al. 2021 (ConSERT), Table 1.
    """
    pairs: list[tuple[str, str]] = []
    for task, subsets in sets.STS_SUBSETS.items():
        for subset, (size, _) in subsets.items():
            path = sets.sts_path(task, subset, data_dir)
            found = readers.sts_input(path)
            sets.check_size(f"{task} {subset}", size, len(found), path)
            pairs += found
    for name in ("STS-B", "SICK-R"):
        for split in sets.SPLITS:
            graded = sets.graded(name, split, data_dir)
            pairs += zip(graded.sentence1, graded.sentence2, strict=True)
    return [sentence for pair in pairs for sentence in pair]


def corpus_files(name: str | Path, data_dir: Folder = None) -> list[Path]:
    """The files that `corpus` reads for a name, in order.

    Raises:
        FileNotFoundError: one is not there, or there is no corpus of that name; the message says
            what brings it.

    Example:
        >>> [path.name for path in corpus_files("mini")]
        ['corpus.txt']
    """
    if name == "mini":
        return [paths.MINI / "corpus.txt"]
    if name == "sts_unlabelled":
        return sets.unlabelled_files(data_dir)
    if name == "stsb_train":
        return [sets.graded_path("STS-B", "train", data_dir)]
    if name == "wiki1m_head":
        name = "wiki_slice" if is_here("wiki_slice", data_dir) else "wiki1m"
    if name in CORPUS_FILES:
        return [sets.find(file, data_dir, name == "wiki1m") for file in CORPUS_FILES[str(name)]]
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
    lacks = name == "wikipedia" and not is_here("wikipedia", data_dir)
    return "wiki1m" if lacks and is_here("wiki1m", data_dir) else str(name)


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
        sets.check_size("wiki1m", sets.SIZES["wiki1m"], len(lines), files[0])
    if name == "wiki1m_head":
        lines = lines[:HEAD]
        sets.check_size("wiki1m_head", HEAD, len(lines), files[0])
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


def training_text(name: str | Path, data_dir: Folder = None, n: int | None = None) -> list[str]:
    """As `corpus`, with a warning that counts the lines which repeat an earlier one.

    Two equal sentences in one batch are each other's negatives, although they mean the same.
    """
    sentences = corpus(name, data_dir, n)
    if repeated := len(sentences) - len(set(sentences)):
        lines = f"{repeated:,} of {len(sentences):,} lines of {str(name)!r} repeat an earlier line"
        effect = "in the same batch the two count as each other's negatives"
        warnings.warn(f"{lines}; {effect}", stacklevel=2)
    return sentences


def aligned_corpus(
    name: str | Path, positives: str | Path, data_dir: Folder = None, n: int | None = None
) -> tuple[list[str], list[str]]:
    """The sentences that `corpus` gives, and with each the line of another file that belongs to it.

    Line i of `positives` belongs to line i of the corpus's file, blank lines counted; for a corpus
    that is put together from several files, to its i-th sentence. Blank lines at the end of a file
    do not count.

    Args:
        positives: a text file that `read_aligned` reads, e.g. of paraphrases.
        name, data_dir, n: as `corpus`, with its seed 0.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: other numbers of lines, or a line that is blank in one file alone.

    Example:
        >>> first, second = aligned_corpus("mini", paths.MINI / "corpus.txt", n=3)
        >>> first == second == corpus("mini", n=3)
        True
    """
    both = list(zip_longest(_lines(name, data_dir), read_aligned(positives), fillvalue=""))
    for number, (line, other) in enumerate(both, 1):
        if bool(line) != bool(other):
            where = f"{positives}, line {number}: a sentence here or in the corpus {str(name)!r}"
            rule = "line i must belong to line i, as `lib augment` writes it"
            raise ValueError(f"{where}, but not in both: {rule}")
    pairs = [pair for pair in both if pair[0]]
    drawn = [pairs[row] for row in sample(len(pairs), n)]
    return [line for line, _ in drawn], [other for _, other in drawn]


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
    return read_lines(paths.MINI / "queries.txt")


def planted() -> pd.DataFrame:
    """For each of `queries` the three sentences that `handwritten` holds for it, which a search can
    be judged by.

    Returns:
        A row a query: `query`, `same meaning` (in other words), `decoy` (its words with another
        meaning) and `same subject`.

    Example:
        >>> planted()["same meaning"][0]
        'A hound is bounding across the white winter meadow.'
    """
    text = (paths.MINI / "handwritten.txt").read_text(encoding="utf-8")
    sentences = text.split("## the dozen\n")[1].split("\n## ")[0].splitlines()
    return pd.DataFrame({"query": queries()} | {k: sentences[i::3] for i, k in enumerate(PLANTED)})


def searchable(data_dir: Folder = None, n: int = 20_000) -> tuple[list[str], str]:
    """Distinct sentences of 4 to 40 words to search in: real ones where there are any.

    Real ones are those of wiki1m, or of its beginning where only that is here; else `handwritten`
    is searched. Nothing is downloaded.

    Args:
        n: sentences at most; more than these are drawn from with seed 0, fewer are all taken, in
            order.

    Returns:
        The sentences, and one line that says what they are.

    Raises:
        ValueError: `n` below 0, or a part of a published corpus.

    Example:
        >>> sentences, what = searchable(paths.MINI, n=2)
        >>> len(sentences), what.split(" of ")[0], what.split("sentences ")[1]
        (2, '2', 'written by hand for this course')
    """
    name = next((name for name in REAL_TEXT if is_here(name, data_dir)), None)
    text = corpus(name, data_dir) if name else handwritten()
    fitting = [s for s in dict.fromkeys(text) if 4 <= len(s.split()) <= 40]
    rows = sample(len(fitting), n if n < len(fitting) else None)
    source = f"{REAL_TEXT[name]} (English Wikipedia)" if name else "written by hand for this course"
    share = f"{len(rows):,} of the {len(text):,}" if len(rows) < len(text) else f"{len(rows):,}"
    return [fitting[row] for row in rows], f"{share} sentences {source}"
