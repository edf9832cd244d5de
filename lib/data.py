"""Corpora and evaluation sets: where they are looked for, fetching and checking (formats: `lib.readers`).

Real data is looked for in the explicit `data_dir`, else in `CSE_DATA` and then the project's `data/`. Evaluation
sets lie in the SentEval layout (`STS/`, `SICK/`, `MR/`, …) under `senteval/`, in the folder itself or under
`SentEval/data/downstream/`. Nothing is downloaded except by `python -m lib.data fetch`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lib import paths, readers
from lib.readers import TREC_CLASSES, Pairs, Transfer, read_aligned, read_lines

__all__ = [
    "TREC_CLASSES",
    "Pairs",
    "Transfer",
    "aligned_corpus",
    "at_hand",
    "corpus",
    "mini_pairs",
    "read_aligned",
    "read_lines",
    "sample",
    "sts_tasks",
    "transfer",
]

TAR: str = "senteval.tar"
WIKI1M: str = "wiki1m_for_simcse.txt"
FETCH: str = "python -m lib.data fetch"

SENTEVAL_ROOTS = ("senteval", "", "SentEval/data/downstream", "data/downstream", "downstream")
WIKI1M_ROOTS = ("", "corpus")
STS_SUBSETS: dict[str, dict[str, tuple[int, int]]] = {  # sub-set: (pairs, of them with a gold score)
    "STS12": {
        **{"MSRpar": (750, 750), "MSRvid": (750, 750), "SMTeuroparl": (459, 459)},
        **{"surprise.OnWN": (750, 750), "surprise.SMTnews": (399, 399)},
    },
    "STS13": {"FNWN": (189, 189), "headlines": (750, 750), "OnWN": (561, 561)},
    "STS14": {
        **{"deft-forum": (450, 450), "deft-news": (300, 300), "headlines": (750, 750)},
        **{"images": (750, 750), "OnWN": (750, 750), "tweet-news": (750, 750)},
    },
    "STS15": {
        **{"answers-forums": (2000, 375), "answers-students": (1500, 750), "belief": (2000, 375)},
        **{"headlines": (1500, 750), "images": (1500, 750)},
    },
    "STS16": {
        **{"answer-answer": (1572, 254), "headlines": (1498, 249), "plagiarism": (1271, 230)},
        **{"postediting": (3287, 244), "question-question": (1555, 209)},
    },
}
SPLITS = ("train", "dev", "test")
SICK_FILES = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
BINARY_TASKS = {  # (file of label 1, file of label 0)
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}
TRANSFER_FILES: dict[str, dict[str, str]] = {
    **{task: {"one": one, "zero": zero} for task, (one, zero) in BINARY_TASKS.items()},
    "SST2": {split: f"SST/binary/sentiment-{split}" for split in SPLITS},
    "TREC": {"train": "TREC/train_5500.label", "test": "TREC/TREC_10.label"},
    "MRPC": {split: f"MRPC/msr_paraphrase_{split}.txt" for split in ("train", "test")},
}
TRANSFER_TASKS = tuple(TRANSFER_FILES)
SIZES: dict[str, int] = {  # pairs, sentences or lines
    **{"STS-B train": 5749, "STS-B dev": 1500, "STS-B test": 1379},
    **{"SICK-R train": 4500, "SICK-R dev": 500, "SICK-R test": 4927},
    **{"MR": 10662, "CR": 3775, "SUBJ": 10000, "MPQA": 10606},
    **{"SST2 train": 67349, "SST2 dev": 872, "SST2 test": 1821},
    **{"TREC train": 5452, "TREC test": 500, "MRPC train": 4076, "MRPC test": 1725},
    **{"CNSD train": 5231, "CNSD dev": 1458, "CNSD test": 1361, "wiki1m": 1000000},
}
OWN_SETS = "own-sets"
WIKIPEDIA_FILES = ("wikipedia_en_2015.txt.xz", "wikipedia_en_2021.txt.xz")
MIN_WORDS = 3


# --- where files are ---------------------------------------------------------------------------------------


def _find(relative: str, data_dir: str | Path | None, roots: tuple[str, ...] = ("",), fetched: bool = True) -> Path:
    bases = paths.data_dirs(data_dir)
    for base in bases:
        for root in roots:
            if (base / root / relative).is_file():
                return base / root / relative
    where = ", ".join(str(base / roots[0] / relative) for base in bases)
    remedy = f"`{FETCH}` brings it, or set" if fetched else f"it is not part of `{FETCH}`, so set"
    raise FileNotFoundError(f"{relative} is missing (looked for {where}): {remedy} CSE_DATA to a folder that has it")


def _senteval(relative: str, data_dir: str | Path | None) -> Path:
    return _find(relative, data_dir, SENTEVAL_ROOTS)


def _check_split(split: str, splits: tuple[str, ...] = SPLITS) -> None:
    if split not in splits:
        raise ValueError(f"split must be one of {', '.join(splits)}, got {split!r}")


def _whole(name: str, expected: int, found: int, path: Path, check: bool) -> None:
    """Refuse a part of a published set.

    A folder with an empty file `own-sets` holds sets of the user's own, of any size.
    """
    if not check or found == expected:
        return
    if any((folder / OWN_SETS).is_file() for folder in path.absolute().parents):
        return
    raise ValueError(
        f"{path}: {found:,} where {name} has {expected:,}: bring the whole file (`{FETCH}`), or, if "
        f"the sets there are your own, put an empty file {OWN_SETS!r} into {path.parent}"
    )


# --- corpora -----------------------------------------------------------------------------------------------


def pretrain_corpus(data_dir: str | Path | None = None, progress: bool = True) -> Iterator[str]:
    """Yield every sentence of `corpus/pretrain/*.txt.xz`, files in sorted order, blank lines skipped."""
    for base in paths.data_dirs(data_dir):
        for path in sorted((base / "corpus" / "pretrain").glob("*.txt.xz")):
            lines = readers.numbered(path)
            for _, line in tqdm(lines, desc=path.name, disable=not progress):
                if line.strip():
                    yield line.strip()


def sts_unlabelled(data_dir: str | Path | None = None, check: bool = True) -> list[str]:
    """The 89,192 sentences of the seven STS sets: every line, every split, pairs without a gold score included.

    These are ConSERT's training sentences, and the sentences of the test sets are among them.

    Args:
        check: as `stsb`.

    Source: Yan et al. 2021 (ConSERT), Table 1.
    """
    pairs: list[tuple[str, str]] = []
    for task, subsets in STS_SUBSETS.items():
        for subset, (size, _) in subsets.items():
            path = _sts_path(task, subset, data_dir)
            found = readers.sts_input(path)
            _whole(f"{task} {subset}", size, len(found), path, check)
            pairs += found
    for read in (stsb, sick):
        for split in SPLITS:
            graded = read(split, data_dir, check)
            pairs += zip(graded.sentence1, graded.sentence2, strict=True)
    return [sentence for pair in pairs for sentence in pair]


CORPORA = ("mini", "wikipedia", "wiki1m", "wiki_slice", "sts_unlabelled", "stsb_train", "simclue")


def corpus_files(name: str | Path, data_dir: str | Path | None = None) -> list[Path]:
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
    if name == "wikipedia":
        found = [f"corpus/pretrain/{file}" for file in WIKIPEDIA_FILES]
        return [_find(file, data_dir, fetched=False) for file in found]
    if name == "wiki1m":
        return [_find(WIKI1M, data_dir, WIKI1M_ROOTS)]
    if name == "wiki_slice":
        return [_find("wiki_slice.txt", data_dir, ("corpus", ""), fetched=False)]
    if name == "simclue":
        return [_find("chinese/simclue.txt", data_dir, fetched=False)]
    if name == "stsb_train":
        return [_stsb_path("train", data_dir)]
    if name == "sts_unlabelled":
        subsets = [(task, subset) for task in STS_SUBSETS for subset in STS_SUBSETS[task]]
        found_sts = [_sts_path(task, subset, data_dir) for task, subset in subsets]
        splits = [path(split, data_dir) for path in (_stsb_path, _sick_path) for split in SPLITS]
        return found_sts + splits
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
    if name != "wikipedia" or _is_here("wikipedia", data_dir) or not _is_here("wiki1m", data_dir):
        return str(name)
    return "wiki1m"


def _is_here(name: str, data_dir: str | Path | None) -> bool:
    try:
        corpus_files(name, data_dir)
    except FileNotFoundError:
        return False
    return True


def _lines(name: str | Path, data_dir: str | Path | None, column: str | None) -> list[str]:
    """A corpus before any of it is drawn; the blank lines of a text file are still there."""
    files = corpus_files(name, data_dir)
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
        _whole("wiki1m", SIZES["wiki1m"], len(lines), files[0], True)
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
    name: str | Path, data_dir: str | Path | None = None, n: int | None = None, seed: int = 0, column: str | None = None
) -> list[str]:
    """Training sentences by name, or of any file that `read_lines` reads.

    Args:
        name: `mini` (the shipped corpus), `wikipedia` (the distinct sentences of at least three words of two
            Wikipedia dumps), `wiki1m` (SimCSE's 1,000,000 sentences), `wiki_slice` (the beginning of one of the
            dumps), `sts_unlabelled` (ConSERT's sentences, those of the test sets among them), `stsb_train` (both
            sides of STS-B's 5,749 training pairs), `simclue` (the sentences of SimCLUE's pairs in a file of your
            making, `chinese/simclue.txt`, one a line), or a path.
        n, seed: as `sample`.
        column: of a CSV or TSV path.

    Raises:
        FileNotFoundError: the corpus is not there; the message names the command that brings it.
        ValueError: no sentence, fewer than `n` sentences, or a part of a published corpus.
    """
    sentences = [line for line in _lines(name, data_dir, column) if line]
    if not sentences:
        raise ValueError(f"{corpus_files(name, data_dir)[0]}: 0 sentences")
    return [sentences[row] for row in sample(len(sentences), n, seed)]


def aligned_corpus(
    name: str | Path, positives: str | Path, data_dir: str | Path | None = None, n: int | None = None, seed: int = 0
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
            f"{positives} has {len(others):,} lines, the corpus {str(name)!r} {len(lines):,}: line i "
            "must belong to line i, as `python -m lib.augment` writes it"
        )
    for number, (line, other) in enumerate(zip(lines, others, strict=True), 1):
        if bool(line) != bool(other):
            where = f"only in the corpus {str(name)!r}" if other else "only there"
            raise ValueError(f"{positives}, line {number}: blank {where}, so the two do not belong together")
    pairs = [pair for pair in zip(lines, others, strict=True) if pair[0]]
    drawn = [pairs[row] for row in sample(len(pairs), n, seed)]
    return [line for line, _ in drawn], [other for _, other in drawn]


def _without_end(lines: list[str]) -> list[str]:
    """`lines` without the blank ones at their end."""
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]


# --- evaluation sets ---------------------------------------------------------------------------------------


def _sts_path(task: str, subset: str, data_dir: str | Path | None) -> Path:
    return _senteval(f"STS/{task}-en-test/STS.input.{subset}.txt", data_dir)


def _stsb_path(split: str, data_dir: str | Path | None) -> Path:
    return _senteval(f"STS/STSBenchmark/sts-{split}.csv", data_dir)


def _sick_path(split: str, data_dir: str | Path | None) -> Path:
    return _senteval(f"SICK/{SICK_FILES[split]}", data_dir)


def _sts_subset(task: str, subset: str, data_dir: str | Path | None, check: bool = True) -> Pairs:
    path = _sts_path(task, subset, data_dir)
    gold_path = path.with_name(f"STS.gs.{subset}.txt")
    if not gold_path.is_file():
        raise FileNotFoundError(f"{gold_path} is missing beside {path.name}: remove that folder and run `{FETCH}`")
    pairs = readers.sts_subset(path, gold_path, f"{task} {subset}")
    _whole(pairs.name, STS_SUBSETS[task][subset][1], len(pairs), gold_path, check)
    return pairs


def sts_tasks(data_dir: str | Path | None = None, check: bool = True) -> dict[str, dict[str, Pairs]]:
    """The seven STS test sets: task → sub-set → pairs; STS-B and SICK-R have the one sub-set `test`.

    Pairs without a gold score (most of STS15 and STS16) are left out.

    Args:
        check: as `stsb`.

    Sources: SemEval 2012–2016, STS shared tasks; Cer et al. 2017 (STS-B); Marelli et al. 2014 (SICK); Conneau &
    Kiela 2018 (SentEval, whose build these files are).
    """
    tasks = {
        task: {subset: _sts_subset(task, subset, data_dir, check) for subset in subsets}
        for task, subsets in STS_SUBSETS.items()
    }
    tasks["STS-B"] = {"test": stsb("test", data_dir, check)}
    tasks["SICK-R"] = {"test": sick("test", data_dir, check)}
    return tasks


def stsb(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """STS Benchmark, `split` train, dev or test.

    Args:
        check: refuse a file with another number of pairs than the published one; not asked of a
            folder that holds an empty file `own-sets`.
    """
    _check_split(split)
    path, name = _stsb_path(split, data_dir), f"STS-B {split}"
    pairs = readers.stsb_file(path, name)
    _whole(name, SIZES[name], len(pairs), path, check)
    return pairs


def sick(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """SICK relatedness (1–5), `split` train, dev (SICK's "trial") or test; `check` as `stsb`."""
    _check_split(split)
    path, name = _sick_path(split, data_dir), f"SICK-R {split}"
    pairs = readers.sick_file(path, name)
    _whole(name, SIZES[name], len(pairs), path, check)
    return pairs


def mini_pairs(split: str) -> Pairs:
    """The shipped graded pairs with their kinds, `split` dev or test."""
    _check_split(split, ("dev", "test"))
    path = paths.MINI / f"sts_{split}.tsv"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `python data/mini/build.py` writes it")
    return readers.kinds_file(path, f"mini {split}")


def cnsd(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """The Chinese STS-B of CNSD, `split` train, dev or test; `check` as `stsb`."""
    _check_split(split)
    name = f"CNSD {split}"
    path = _find(f"cnsd-sts-{split}.txt", data_dir, ("chinese/cnsd", "cnsd", ""), fetched=False)
    pairs = readers.cnsd_file(path, name)
    _whole(name, SIZES[name], len(pairs), path, check)
    return pairs


def transfer(name: str, data_dir: str | Path | None = None, check: bool = True) -> Transfer:
    """A transfer task of SentEval: MR, CR, SUBJ, MPQA (no splits), SST2, TREC (coarse classes), MRPC (pairs).

    A file that is valid UTF-8 throughout is read as UTF-8, any other as Latin-1 (SentEval reads all as Latin-1; the
    builds in circulation differ). Labels are SentEval's: 1 is positive, objective, paraphrase; TREC's index
    `TREC_CLASSES`.

    Args:
        check: as `stsb`.

    Source: Conneau & Kiela 2018 (SentEval).
    """
    if name not in TRANSFER_TASKS:
        raise ValueError(f"transfer task must be one of {', '.join(TRANSFER_TASKS)}, got {name!r}")
    files = {split: _senteval(file, data_dir) for split, file in TRANSFER_FILES[name].items()}
    if name in BINARY_TASKS:
        one, zero = (readers.sentences_file(path) for path in files.values())
        labels = [1] * len(one) + [0] * len(zero)
        _whole(name, SIZES[name], len(labels), files["one"], check)
        return Transfer(name, {"all": (one + zero, labels)})
    second: dict[str, list[str]] = {}
    splits: dict[str, tuple[list[str], list[int]]] = {}
    for split, path in files.items():
        if name == "MRPC":
            first, second[split], labels = readers.mrpc_file(path)
            splits[split] = first, labels
        else:
            read = readers.sst2_file if name == "SST2" else readers.trec_file
            splits[split] = read(path)
        _whole(f"{name} {split}", SIZES[f"{name} {split}"], len(splits[split][0]), path, check)
    return Transfer(name, splits, second)


if __name__ == "__main__":
    from workflow.fetch import main

    sys.exit(main())
