"""Evaluation sets: the seven STS tasks, STS-B, SICK-R, the shipped pairs, CNSD and the seven
transfer tasks."""

from pathlib import Path

from lib import paths
from lib.data import readers
from lib.data.folders import FETCH, find, find_senteval
from lib.data.readers import Pairs, TransferTask, Triplets

STS_SUBSETS: dict[
    str, dict[str, tuple[int, int]]
] = {  # sub-set: (pairs, of them with a gold score)
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


def mini_path(split: str) -> Path:
    """A split of the shipped pairs."""
    return paths.MINI / f"sts_{split}.tsv"


def graded_files(name: str, split: str, data_dir: str | Path | None = None) -> list[Path]:
    """The files that are read for a graded set, `mini`, `stsb`, `cnsd`, or for the seven test sets,
    `sts7`.

    Example:
        >>> [path.name for path in graded_files("mini", "dev")]
        ['sts_dev.tsv']
    """
    if name == "mini":
        return [mini_path(split)]
    if name != "sts7":
        return [{"stsb": stsb_path, "cnsd": cnsd_path}[name](split, data_dir)]
    inputs = [
        sts_path(task, part, data_dir) for task, parts in STS_SUBSETS.items() for part in parts
    ]
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


def stsb(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """STS Benchmark, `split` train, dev or test.

    Args:
        check: refuse a file with another number of pairs than the published one; not asked of a
            folder that holds an empty file `own-sets`.
    """
    _check_split(split)
    path, name = stsb_path(split, data_dir), f"STS-B {split}"
    pairs = readers.stsb_file(path, name)
    check_size(name, SIZES[name], len(pairs), path, check)
    return pairs


def sick(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """SICK relatedness (1–5), `split` train, dev (SICK's "trial") or test; `check` as `stsb`."""
    _check_split(split)
    path, name = sick_path(split, data_dir), f"SICK-R {split}"
    pairs = readers.sick_file(path, name)
    check_size(name, SIZES[name], len(pairs), path, check)
    return pairs


def mini_pairs(split: str) -> Pairs:
    """The shipped graded pairs with their kinds, `split` dev or test."""
    _check_split(split, ("dev", "test"))
    path = mini_path(split)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `python -m tools.mini_data` writes it")
    return readers.kinds_file(path, f"mini {split}")


def mini_triplets() -> Triplets:
    """The shipped triplets: 232 anchors, each with a sentence of six kinds.

    Example:
        >>> triplets = mini_triplets()
        >>> len(triplets), len(set(triplets.anchors)), triplets.kinds[:2]
        (1392, 232, ['paraphrase', 'role swapped'])
    """
    path = paths.MINI / "triplets.tsv"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `python -m tools.mini_data` writes it")
    return readers.triplets_file(path, "mini triplets")


def cnsd(split: str, data_dir: str | Path | None = None, check: bool = True) -> Pairs:
    """The Chinese STS-B of CNSD, `split` train, dev or test; `check` as `stsb`."""
    _check_split(split)
    name = f"CNSD {split}"
    path = cnsd_path(split, data_dir)
    pairs = readers.cnsd_file(path, name)
    check_size(name, SIZES[name], len(pairs), path, check)
    return pairs


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
    if name in BINARY_TASKS:
        one, zero = (readers.sentences_file(path) for path in files.values())
        labels = [1] * len(one) + [0] * len(zero)
        check_size(name, SIZES[name], len(labels), files["one"], check)
        return TransferTask(name, {"all": (one + zero, labels)})
    second: dict[str, list[str]] = {}
    splits: dict[str, tuple[list[str], list[int]]] = {}
    for split, path in files.items():
        if name == "MRPC":
            first, second[split], labels = readers.mrpc_file(path)
            splits[split] = first, labels
        else:
            reader = readers.sst2_file if name == "SST2" else readers.trec_file
            splits[split] = reader(path)
        check_size(f"{name} {split}", SIZES[f"{name} {split}"], len(splits[split][0]), path, check)
    return TransferTask(name, splits, second)
