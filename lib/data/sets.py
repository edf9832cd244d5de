"""Evaluation sets: the seven STS tasks, STS-B, SICK-R, the shipped pairs, CNSD and the seven
transfer tasks; and where real data is looked for.

That is the explicit `data_dir`, else `CSE_DATA` and then the project's `data/`. Evaluation sets lie
in the SentEval layout (`STS/`, `SICK/`, `MR/`, …) in one of the sub-folders `ROOTS`.
"""

from pathlib import Path

import yaml

from lib import paths
from lib.data import readers
from lib.data.readers import Pairs, TransferTask, Triplets

_SIZES = yaml.safe_load(Path(__file__).with_name("sizes.yaml").read_text(encoding="utf-8"))
SIZES: dict[str, int] = _SIZES["sets"]  # pairs, sentences or lines
STS_SUBSETS: dict[str, dict[str, list[int]]] = _SIZES["subsets"]  # pairs, those with a gold score
CORPUS_FILES: dict[str, list[str]] = _SIZES["corpora"]
GRADED_FILES: dict[str, dict[str, str]] = _SIZES["graded"]  # split → file
TRANSFER_FILES: dict[str, dict[str, str]] = _SIZES["transfer"]  # split, or label of a line → file
TRANSFER_TASKS = tuple(TRANSFER_FILES)
SPLITS = ("train", "dev", "test")
OWN_SETS = "own-sets"
WIKI1M: str = CORPUS_FILES["wiki1m"][0]
FETCH: str = "python -m lib data fetch"
PUBLISHED = {"stsb": "STS-B", "cnsd": "CNSD"}  # what a profile calls a set → its name here
ROOTS = ("senteval", "", "SentEval/data/downstream", "corpus", "chinese/cnsd", "cnsd")

Folder = str | Path | None


def find(relative: str, data_dir: Folder, fetched: bool = True) -> Path:
    """The first file of this name in the folders that are searched; an error says where it was
    looked for, and whether `FETCH` brings it."""
    bases = paths.data_dirs(data_dir)
    for base in bases:
        for root in ROOTS:
            if (base / root / relative).is_file():
                return base / root / relative
    where = f"{relative} is missing (looked for in {', '.join(map(str, bases))})"
    to = f" --target {data_dir}" if data_dir else ""
    remedy = f"`{FETCH}{to}` brings it, or" if fetched else f"it is not part of `{FETCH}`, so"
    elsewhere = "name another folder" if data_dir else "set CSE_DATA to a folder"
    raise FileNotFoundError(f"{where}: {remedy} {elsewhere} that has it")


def check_size(name: str, expected: int, size: int, path: Path) -> None:
    """Refuse a part of a published set.

    A folder with an empty file `own-sets` holds sets of the user's own, of any size.
    """
    own = any((folder / OWN_SETS).is_file() for folder in path.absolute().parents)
    if size != expected and not own:
        remedy = f"`{FETCH}`, or an empty file {OWN_SETS!r} beside sets of your own"
        raise ValueError(f"{path}: {size:,} where {name} has {expected:,}: {remedy}")


def sts_path(task: str, subset: str, data_dir: Folder, part: str = "input") -> Path:
    """The sentences of a sub-set of STS12 to STS16, or its gold scores, the part `gs`."""
    return find(f"STS/{task}-en-test/STS.{part}.{subset}.txt", data_dir)


def graded_path(name: str, split: str, data_dir: Folder) -> Path:
    """The file of a split of STS-B, SICK-R or CNSD."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    return find(GRADED_FILES[name][split], data_dir, fetched=name != "CNSD")


def _sts_files(data_dir: Folder, part: str) -> list[Path]:
    return [sts_path(t, s, data_dir, part) for t, subsets in STS_SUBSETS.items() for s in subsets]


def unlabelled_files(data_dir: Folder = None) -> list[Path]:
    """The files of the seven STS sets whose sentences ConSERT trains on."""
    both = [graded_path(name, split, data_dir) for name in ("STS-B", "SICK-R") for split in SPLITS]
    return _sts_files(data_dir, "input") + both


def graded_files(name: str, split: str, data_dir: Folder = None) -> list[Path]:
    """The files that are read for a graded set, `mini`, `stsb`, `cnsd`, or for the seven test sets,
    `sts7`.

    Example:
        >>> [path.name for path in graded_files("mini", "dev")]
        ['sts_dev.tsv']
    """
    if name == "mini":
        return [paths.MINI / f"sts_{split}.tsv"]
    if name != "sts7":
        return [graded_path(PUBLISHED[name], split, data_dir)]
    both = [graded_path(name, split, data_dir) for name in ("STS-B", "SICK-R")]
    return [*_sts_files(data_dir, "input"), *_sts_files(data_dir, "gs"), *both]


def transfer_files(data_dir: Folder = None) -> list[Path]:
    """The files of the seven transfer tasks."""
    return [find(name, data_dir) for files in TRANSFER_FILES.values() for name in files.values()]


def sts_subset(task: str, subset: str, data_dir: Folder) -> Pairs:
    """A sub-set of STS12 to STS16 with its scores."""
    path, gold = (sts_path(task, subset, data_dir, part) for part in ("input", "gs"))
    pairs = readers.sts_subset(path, gold, f"{task} {subset}")
    check_size(pairs.name, STS_SUBSETS[task][subset][1], len(pairs), gold)
    return pairs


def sts_tasks(data_dir: Folder = None) -> dict[str, dict[str, Pairs]]:
    """The seven STS test sets: task → sub-set → pairs; STS-B and SICK-R have the one sub-set
    `test`.

    Pairs without a gold score (most of STS15 and STS16) are left out.

    Sources: SemEval 2012–2016, STS shared tasks; Cer et al. 2017 (STS-B); Marelli et al. 2014
    (SICK); Conneau & Kiela 2018 (SentEval, whose build these files are).
    """
    tasks = {
        task: {subset: sts_subset(task, subset, data_dir) for subset in subsets}
        for task, subsets in STS_SUBSETS.items()
    }
    tasks["STS-B"] = {"test": stsb("test", data_dir)}
    tasks["SICK-R"] = {"test": graded("SICK-R", "test", data_dir)}
    return tasks


def graded(name: str, split: str, data_dir: Folder = None) -> Pairs:
    """A split, train, dev or test, of STS-B, SICK-R (relatedness from 1 to 5; its dev set is SICK's
    "trial") or CNSD (STS-B in Chinese)."""
    path, full = graded_path(name, split, data_dir), f"{name} {split}"
    pairs = readers.graded_file(path, full, name)
    check_size(full, SIZES[full], len(pairs), path)
    return pairs


def graded_sets(name: str, split: str, data_dir: Folder = None) -> dict[str, Pairs]:
    """The pairs of a graded set, `mini`, `stsb` or `cnsd`, by its split; of the seven test sets,
    `sts7`, by task and sub-set. Its files: `graded_files`.

    Example:
        >>> [len(pairs) for pairs in graded_sets("mini", "dev").values()]
        [1800]
    """
    if name == "sts7":
        tasks = sts_tasks(data_dir)
        return {f"{task} {part}": p for task, parts in tasks.items() for part, p in parts.items()}
    if name == "mini":
        return {split: mini_pairs(split)}
    return {split: graded(PUBLISHED[name], split, data_dir)}


def stsb(split: str, data_dir: Folder = None) -> Pairs:
    """STS Benchmark: as `graded`.

    Raises:
        ValueError: another number of pairs than the published one; not where the folder holds an
            empty file `own-sets`.
    """
    return graded("STS-B", split, data_dir)


def mini_pairs(split: str) -> Pairs:
    """The shipped graded pairs with their kinds, `split` dev or test."""
    return readers.graded_file(paths.MINI / f"sts_{split}.tsv", f"mini {split}", "mini")


def mini_triplets() -> Triplets:
    """The shipped triplets: 232 anchors, each with a sentence of six kinds.

    Example:
        >>> triplets = mini_triplets()
        >>> len(triplets), len(set(triplets.anchors)), triplets.kinds[:2]
        (1392, 232, ['paraphrase', 'role swapped'])
    """
    return readers.triplets_file(paths.MINI / "triplets.tsv", "mini triplets")


def transfer_task(name: str, data_dir: Folder = None) -> TransferTask:
    """A transfer task of SentEval: MR, CR, SUBJ, MPQA (no splits), SST2, TREC (coarse classes),
    MRPC (pairs).

    A file that is valid UTF-8 throughout is read as UTF-8, any other as Latin-1 (SentEval reads all
    as Latin-1; the builds in circulation differ). Labels are SentEval's: 1 is positive, objective,
    paraphrase; TREC's index `TREC_CLASSES`.

    Source: Conneau & Kiela 2018 (SentEval).
    """
    if name not in TRANSFER_TASKS:
        raise ValueError(f"transfer task must be one of {', '.join(TRANSFER_TASKS)}, got {name!r}")
    files = {split: find(file, data_dir) for split, file in TRANSFER_FILES[name].items()}
    second: dict[str, list[str]] = {}
    splits: dict[str, tuple[list[str], list[int]]] = {}
    if "one" in files:
        one, zero = (readers.sentences_file(path) for path in files.values())
        splits["all"] = one + zero, [1] * len(one) + [0] * len(zero)
    else:
        for split, path in files.items():
            first, *seconds, labels = readers.labelled_file(path, name)
            splits[split] = first, labels
            if seconds:
                second[split] = seconds[0]
    for split, (_, labels) in splits.items():
        full = name if split == "all" else f"{name} {split}"
        path = files.get(split, next(iter(files.values())))
        check_size(full, SIZES[full], len(labels), path)
    return TransferTask(name, splits, second)
