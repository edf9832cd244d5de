"""Evaluation sets: the seven STS tasks, STS-B, SICK-R, the shipped pairs, CNSD and the seven
transfer tasks."""

from collections.abc import Callable
from pathlib import Path

from lib import paths
from lib.data import readers
from lib.data.folders import FETCH, find, find_senteval
from lib.data.readers import Pairs, TransferTask, Triplets

_SIZES = readers.yaml_value(Path(__file__).with_name("sizes.yaml").read_text(encoding="utf-8"))
SIZES: dict[str, int] = _SIZES["sets"]  # pairs, sentences or lines
STS_SUBSETS: dict[str, dict[str, list[int]]] = _SIZES["subsets"]  # pairs, those with a gold score
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
OWN_SETS = "own-sets"


def _check_split(split: str, splits: tuple[str, ...] = SPLITS) -> None:
    if split not in splits:
        raise ValueError(f"split must be one of {', '.join(splits)}, got {split!r}")


def check_size(name: str, expected: int, size: int, path: Path, check: bool) -> None:
    """Refuse a part of a published set.

    A folder with an empty file `own-sets` holds sets of the user's own, of any size.
    """
    if not check or size == expected:
        return
    if any((folder / OWN_SETS).is_file() for folder in path.absolute().parents):
        return
    raise ValueError(
        f"{path}: {size:,} where {name} has {expected:,}: bring the whole file (`{FETCH}`), or, if"
        f" the sets there are your own, put an empty file {OWN_SETS!r} into {path.parent}"
    )


def sts_path(task: str, subset: str, data_dir: str | Path | None) -> Path:
    """The sentences of a sub-set of STS12 to STS16."""
    return find_senteval(f"STS/{task}-en-test/STS.input.{subset}.txt", data_dir)


def stsb_path(split: str, data_dir: str | Path | None) -> Path:
    """A split of STS-B."""
    return find_senteval(f"STS/STSBenchmark/sts-{split}.csv", data_dir)


def sick_path(split: str, data_dir: str | Path | None) -> Path:
    """A split of SICK-R."""
    return find_senteval(f"SICK/{SICK_FILES[split]}", data_dir)


def cnsd_path(split: str, data_dir: str | Path | None) -> Path:
    """A split of CNSD's STS-B."""
    return find(f"cnsd-sts-{split}.txt", data_dir, ("chinese/cnsd", "cnsd", ""), fetched=False)


def _mini_path(name: str) -> Path:
    path = paths.MINI / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `python -m tools.mini_data` writes it")
    return path


def _sts_files(data_dir: str | Path | None) -> list[Path]:
    return [sts_path(task, part, data_dir) for task in STS_SUBSETS for part in STS_SUBSETS[task]]


def unlabelled_files(data_dir: str | Path | None = None) -> list[Path]:
    """The files of the seven STS sets whose sentences ConSERT trains on."""
    splits = [path(split, data_dir) for path in (stsb_path, sick_path) for split in SPLITS]
    return _sts_files(data_dir) + splits


def graded_files(name: str, split: str, data_dir: str | Path | None = None) -> list[Path]:
    """The files that are read for a graded set, `mini`, `stsb`, `cnsd`, or for the seven test sets,
    `sts7`.

    Example:
        >>> [path.name for path in graded_files("mini", "dev")]
        ['sts_dev.tsv']
    """
    if name == "mini":
        return [paths.MINI / f"sts_{split}.tsv"]
    if name != "sts7":
        return [{"stsb": stsb_path, "cnsd": cnsd_path}[name](split, data_dir)]
    inputs = _sts_files(data_dir)
    gold = [path.with_name(path.name.replace("STS.input.", "STS.gs.")) for path in inputs]
    return [*inputs, *gold, stsb_path(split, data_dir), sick_path(split, data_dir)]


def transfer_files(data_dir: str | Path | None = None) -> list[Path]:
    """The files of the seven transfer tasks."""
    names = [name for files in TRANSFER_FILES.values() for name in files.values()]
    return [find_senteval(name, data_dir) for name in names]


def sts_subset(task: str, subset: str, data_dir: str | Path | None, check: bool = True) -> Pairs:
    """A sub-set of STS12 to STS16 with its scores."""
    path = sts_path(task, subset, data_dir)
    gold_path = path.with_name(f"STS.gs.{subset}.txt")
    if not gold_path.is_file():
        raise FileNotFoundError(
            f"{gold_path} is missing beside {path.name}: remove that folder and run `{FETCH}`"
        )
    pairs = readers.sts_subset(path, gold_path, f"{task} {subset}")
    check_size(pairs.name, STS_SUBSETS[task][subset][1], len(pairs), gold_path, check)
    return pairs


def sts_tasks(
    data_dir: str | Path | None = None, check: bool = True
) -> dict[str, dict[str, Pairs]]:
    """The seven STS test sets: task → sub-set → pairs; STS-B and SICK-R have the one sub-set
    `test`.

    Pairs without a gold score (most of STS15 and STS16) are left out.

    Args:
        check: as `stsb`.

    Sources: SemEval 2012–2016, STS shared tasks; Cer et al. 2017 (STS-B); Marelli et al. 2014
    (SICK); Conneau & Kiela 2018 (SentEval, whose build these files are).
    """
    tasks = {
        task: {subset: sts_subset(task, subset, data_dir, check) for subset in subsets}
        for task, subsets in STS_SUBSETS.items()
    }
    tasks["STS-B"] = {"test": stsb("test", data_dir, check)}
    tasks["SICK-R"] = {"test": sick("test", data_dir, check)}
    return tasks


def _graded(
    name: str,
    split: str,
    path_of: Callable[[str, str | Path | None], Path],
    read: Callable[[Path, str], Pairs],
    data_dir: str | Path | None,
    check: bool,
) -> Pairs:
    _check_split(split)
    path, name = path_of(split, data_dir), f"{name} {split}"
    pairs = read(path, name)
    check_size(name, SIZES[name], len(pairs), path, check)
    return pairs


def stsb(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """STS Benchmark, `split` train, dev or test.

    Args:
        check: refuse a file with another number of pairs than the published one; not asked of a
            folder that holds an empty file `own-sets`.
    """
    return _graded("STS-B", split, stsb_path, readers.stsb_file, data_dir, check)


def sick(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """SICK relatedness (1–5), `split` train, dev (SICK's "trial") or test; `check` as `stsb`."""
    return _graded("SICK-R", split, sick_path, readers.sick_file, data_dir, check)


def cnsd(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """The Chinese STS-B of CNSD, `split` train, dev or test; `check` as `stsb`."""
    return _graded("CNSD", split, cnsd_path, readers.cnsd_file, data_dir, check)


def mini_pairs(split: str) -> Pairs:
    """The shipped graded pairs with their kinds, `split` dev or test."""
    _check_split(split, ("dev", "test"))
    return readers.kinds_file(_mini_path(f"sts_{split}.tsv"), f"mini {split}")


def mini_triplets() -> Triplets:
    """The shipped triplets: 232 anchors, each with a sentence of six kinds.

    Example:
        >>> triplets = mini_triplets()
        >>> len(triplets), len(set(triplets.anchors)), triplets.kinds[:2]
        (1392, 232, ['paraphrase', 'role swapped'])
    """
    return readers.triplets_file(_mini_path("triplets.tsv"), "mini triplets")


def transfer_task(
    name: str, data_dir: str | Path | None = None, check: bool = True
) -> TransferTask:
    """A transfer task of SentEval: MR, CR, SUBJ, MPQA (no splits), SST2, TREC (coarse classes),
    MRPC (pairs).

    A file that is valid UTF-8 throughout is read as UTF-8, any other as Latin-1 (SentEval reads all
    as Latin-1; the builds in circulation differ). Labels are SentEval's: 1 is positive, objective,
    paraphrase; TREC's index `TREC_CLASSES`.

    Args:
        check: as `stsb`.

    Source: Conneau & Kiela 2018 (SentEval).
    """
    if name not in TRANSFER_TASKS:
        raise ValueError(f"transfer task must be one of {', '.join(TRANSFER_TASKS)}, got {name!r}")
    files = {split: find_senteval(file, data_dir) for split, file in TRANSFER_FILES[name].items()}
    second: dict[str, list[str]] = {}
    splits: dict[str, tuple[list[str], list[int]]] = {}
    if name in BINARY_TASKS:
        one, zero = (readers.sentences_file(path) for path in files.values())
        splits["all"] = one + zero, [1] * len(one) + [0] * len(zero)
    elif name == "MRPC":
        for split, path in files.items():
            first, second[split], labels = readers.mrpc_file(path)
            splits[split] = first, labels
    else:
        read = readers.sst2_file if name == "SST2" else readers.trec_file
        splits = {split: read(path) for split, path in files.items()}
    for split, (_, labels) in splits.items():
        full = name if split == "all" else f"{name} {split}"
        path = files.get(split, next(iter(files.values())))
        check_size(full, SIZES[full], len(labels), path, check)
    return TransferTask(name, splits, second)
