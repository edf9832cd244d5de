"""Corpora and evaluation sets: where they are looked for, fetching and checking (formats: `lib.readers`).

Real data is looked for in the explicit `data_dir`, else in `CSE_DATA` and then the project's `data/`. Evaluation
sets lie in the SentEval layout (`STS/`, `SICK/`, `MR/`, …) under `senteval/`, in the folder itself or under
`SentEval/data/downstream/`. Nothing is downloaded except by `python -m lib.data fetch`.
"""

import lzma
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lib import paths, readers
from lib.readers import TREC_CLASSES, Pairs, Transfer, read_lines

__all__ = ["TREC_CLASSES", "Pairs", "Transfer", "corpus", "mini_pairs", "read_lines", "sts_tasks", "transfer"]

TAR: str = "senteval.tar"
WIKI1M: str = "wiki1m_for_simcse.txt"
FETCH: str = "python -m lib.data fetch"

SENTEVAL_ROOTS = ("senteval", "", "SentEval/data/downstream", "data/downstream", "downstream")
WIKI1M_ROOTS = ("", "corpus")
STS_SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
SPLITS = ("train", "dev", "test")
SICK_FILES = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
BINARY_TASKS = {  # (file of label 1, file of label 0)
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}
TRANSFER_TASKS = (*BINARY_TASKS, "SST2", "TREC", "MRPC")
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


# --- corpora -----------------------------------------------------------------------------------------------


def pretrain_corpus(data_dir: str | Path | None = None, progress: bool = True) -> Iterator[str]:
    """Yield every sentence of `corpus/pretrain/*.txt.xz`, files in sorted order, blank lines skipped."""
    for base in paths.data_dirs(data_dir):
        for path in sorted((base / "corpus" / "pretrain").glob("*.txt.xz")):
            with lzma.open(path, "rt", encoding="utf-8") as f:
                for line in tqdm(f, desc=path.name, disable=not progress):
                    if line.strip():
                        yield line.strip()


def _wikipedia(data_dir: str | Path | None) -> list[str]:
    try:
        _find(f"corpus/pretrain/{WIKIPEDIA_FILES[0]}", data_dir)
    except FileNotFoundError:
        return read_lines(_find(WIKI1M, data_dir, WIKI1M_ROOTS))
    files = [_find(f"corpus/pretrain/{name}", data_dir, fetched=False) for name in WIKIPEDIA_FILES]
    sentences = (s for path in files for s in read_lines(path) if len(s.split(maxsplit=MIN_WORDS - 1)) == MIN_WORDS)
    return list(dict.fromkeys(sentences))


def sts_unlabelled(data_dir: str | Path | None = None) -> list[str]:
    """The 89,192 sentences of the seven STS sets: every line, every split, pairs without a gold score included.

    These are ConSERT's training sentences, and the sentences of the test sets are among them.

    Source: Yan et al. 2021 (ConSERT), Table 1.
    """
    pairs: list[tuple[str, str]] = []
    for task, subsets in STS_SUBSETS.items():
        for subset in subsets:
            path = _senteval(f"STS/{task}-en-test/STS.input.{subset}.txt", data_dir)
            pairs += [(a.strip(), b.strip()) for a, b in readers.sts_input(path)]
    for read in (stsb, sick):
        for split in SPLITS:
            graded = read(split, data_dir)
            pairs += zip(graded.sentence1, graded.sentence2, strict=True)
    return [sentence for pair in pairs for sentence in pair]


def corpus(
    name: str | Path, data_dir: str | Path | None = None, n: int | None = None, seed: int = 0, column: str | None = None
) -> list[str]:
    """Training sentences by name, or of any file that `read_lines` reads.

    Args:
        name: `mini` (the shipped corpus), `wikipedia` (the distinct sentences of at least three words of two
            Wikipedia dumps; `wiki1m` where they are not at hand), `wiki1m` (SimCSE's 1,000,000 sentences),
            `wiki_slice` (their beginning), `sts_unlabelled` (ConSERT's sentences, those of the test sets among
            them), `stsb_train` (both sides of STS-B's 5,749 training pairs), `simclue` (the sentences of
            SimCLUE's pairs in a file of your making, `chinese/simclue.txt`, one a line), or a path.
        n: sentences wanted, drawn without replacement and in random order by `seed`, so that a smaller sample is the
            beginning of a larger one; None is all of them in file order.
        column: of a CSV or TSV path.

    Raises:
        FileNotFoundError: the corpus is not there; the message names the command that brings it.
        ValueError: fewer than `n` sentences.
    """
    named: dict[str, Callable[[], list[str]]] = {
        "mini": lambda: read_lines(paths.MINI / "corpus.txt"),
        "wikipedia": lambda: _wikipedia(data_dir),
        "wiki1m": lambda: read_lines(_find(WIKI1M, data_dir, WIKI1M_ROOTS)),
        "wiki_slice": lambda: read_lines(_find("wiki_slice.txt", data_dir, ("corpus", ""), fetched=False)),
        "sts_unlabelled": lambda: sts_unlabelled(data_dir),
        "simclue": lambda: read_lines(_find("chinese/simclue.txt", data_dir, fetched=False)),
        "stsb_train": lambda: (pairs := stsb("train", data_dir)).sentence1 + pairs.sentence2,
    }
    if str(name) not in named and not Path(name).is_file():
        raise FileNotFoundError(f"no corpus {str(name)!r}: give one of {', '.join(named)} or the path of a file")
    sentences = named[str(name)]() if str(name) in named else read_lines(name, column)
    if n is None:
        return sentences
    if not 0 <= n <= len(sentences):
        raise ValueError(f"n={n} sentences asked for, corpus {str(name)!r} has {len(sentences)}")
    order = np.random.default_rng(seed).permutation(len(sentences))[:n]
    return [sentences[i] for i in order]


# --- evaluation sets ---------------------------------------------------------------------------------------


def _sts_subset(task: str, subset: str, data_dir: str | Path | None) -> Pairs:
    path = _senteval(f"STS/{task}-en-test/STS.input.{subset}.txt", data_dir)
    gold_path = path.with_name(f"STS.gs.{subset}.txt")
    if not gold_path.is_file():
        raise FileNotFoundError(f"{gold_path} is missing beside {path.name}: remove that folder and run `{FETCH}`")
    return readers.sts_subset(path, gold_path, f"{task} {subset}")


def sts_tasks(data_dir: str | Path | None = None) -> dict[str, dict[str, Pairs]]:
    """The seven STS test sets: task → sub-set → pairs; STS-B and SICK-R have the one sub-set `test`.

    Pairs without a gold score (most of STS15 and STS16) are left out.

    Sources: SemEval 2012–2016, STS shared tasks; Cer et al. 2017 (STS-B); Marelli et al. 2014 (SICK); Conneau &
    Kiela 2018 (SentEval, whose build these files are).
    """
    tasks = {
        task: {subset: _sts_subset(task, subset, data_dir) for subset in subsets}
        for task, subsets in STS_SUBSETS.items()
    }
    return {**tasks, "STS-B": {"test": stsb("test", data_dir)}, "SICK-R": {"test": sick("test", data_dir)}}


def stsb(split: str, data_dir: str | Path | None = None) -> Pairs:
    """STS Benchmark, `split` train, dev or test."""
    _check_split(split)
    return readers.stsb_file(_senteval(f"STS/STSBenchmark/sts-{split}.csv", data_dir), f"STS-B {split}")


def sick(split: str, data_dir: str | Path | None = None) -> Pairs:
    """SICK relatedness (1–5), `split` train, dev (SICK's "trial") or test."""
    _check_split(split)
    return readers.sick_file(_senteval(f"SICK/{SICK_FILES[split]}", data_dir), f"SICK-R {split}")


def mini_pairs(split: str) -> Pairs:
    """The shipped graded pairs with their kinds, `split` dev or test."""
    _check_split(split, ("dev", "test"))
    path = paths.MINI / f"sts_{split}.tsv"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `python data/mini/build.py` writes it")
    return readers.kinds_file(path, f"mini {split}")


def cnsd(split: str, data_dir: str | Path | None = None) -> Pairs:
    """The Chinese STS-B of CNSD, `split` train, dev or test."""
    _check_split(split)
    path = _find(f"cnsd-sts-{split}.txt", data_dir, ("chinese/cnsd", "cnsd", ""), fetched=False)
    return readers.cnsd_file(path, f"CNSD {split}")


def transfer(name: str, data_dir: str | Path | None = None) -> Transfer:
    """A transfer task of SentEval: MR, CR, SUBJ, MPQA (no splits), SST2, TREC (coarse classes), MRPC (pairs).

    A file that is valid UTF-8 throughout is read as UTF-8, any other as Latin-1 (SentEval reads all as Latin-1; the
    builds in circulation differ). Labels are SentEval's: 1 is positive, objective, paraphrase; TREC's index
    `TREC_CLASSES`.

    Source: Conneau & Kiela 2018 (SentEval).
    """
    if name in BINARY_TASKS:
        one, zero = (readers.sentences_file(_senteval(relative, data_dir)) for relative in BINARY_TASKS[name])
        return Transfer(name, {"all": (one + zero, [1] * len(one) + [0] * len(zero))})
    if name == "SST2":
        files = {split: _senteval(f"SST/binary/sentiment-{split}", data_dir) for split in SPLITS}
        return Transfer(name, {split: readers.sst2_file(path) for split, path in files.items()})
    if name == "TREC":
        files = {
            "train": _senteval("TREC/train_5500.label", data_dir),
            "test": _senteval("TREC/TREC_10.label", data_dir),
        }
        return Transfer(name, {split: readers.trec_file(path) for split, path in files.items()})
    if name == "MRPC":
        files = {split: _senteval(f"MRPC/msr_paraphrase_{split}.txt", data_dir) for split in ("train", "test")}
        read = {split: readers.mrpc_file(path) for split, path in files.items()}
        splits = {split: (first, labels) for split, (first, _, labels) in read.items()}
        return Transfer(name, splits, {split: second for split, (_, second, _) in read.items()})
    raise ValueError(f"transfer task must be one of {', '.join(TRANSFER_TASKS)}, got {name!r}")


if __name__ == "__main__":
    from workflow.fetch import main

    sys.exit(main())
