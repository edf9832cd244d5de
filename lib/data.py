"""Corpora and evaluation sets: where they are looked for, fetching and checking (formats: `lib.readers`).

Real data is looked for in the explicit `data_dir`, else in `CSE_DATA` and then the project's `data/`. Evaluation
sets lie in the SentEval layout (`STS/`, `SICK/`, `MR/`, …) under `senteval/`, in the folder itself or under
`SentEval/data/downstream/`. Nothing is downloaded except by `python -m lib.data fetch`.
"""

import argparse
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lib import paths, readers
from lib.readers import TREC_CLASSES, Pairs, Transfer, read_lines

__all__ = ["TREC_CLASSES", "Pairs", "Transfer", "corpus", "mini_pairs", "read_lines", "sts_tasks", "transfer"]

REPOSITORY = "princeton-nlp/datasets-for-simcse"
TAR, WIKI1M = "senteval.tar", "wiki1m_for_simcse.txt"
CHECKSUMS = "checksums.json"
FETCH = "python -m lib.data fetch"

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
EXPECTED = {
    **{"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186},
    **{"STS-B train": 5749, "STS-B dev": 1500, "STS-B test": 1379},
    **{"SICK-R train": 4500, "SICK-R dev": 500, "SICK-R test": 4927, "STS unlabelled": 89192},
    **{"MR": 10662, "CR": 3775, "SUBJ": 10000, "MPQA": 10606},
    **{"SST2 train": 67349, "SST2 dev": 872, "SST2 test": 1821, "TREC train": 5452, "TREC test": 500},
    **{"MRPC train": 4076, "MRPC test": 1725},
    **{"CNSD train": 5231, "CNSD dev": 1458, "CNSD test": 1361, "wiki1m": 1000000},
}
OPTIONAL = ("CNSD train", "CNSD dev", "CNSD test", "wiki1m")
ABSENT = "absent"
WIKIPEDIA_FILES = ("wikipedia_en_2015.txt.xz", "wikipedia_en_2021.txt.xz")
MIN_WORDS = 3

CheckRow = tuple[str, int, int | str]


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
            them), `stsb_train` (both sides of STS-B's 5,749 training pairs), or a path.
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


# --- check -------------------------------------------------------------------------------------------------


def _count_lines(path: Path) -> int:
    return sum(1 for _ in readers.numbered(path))


def _count(name: str, directory: Path) -> int:
    task, _, split = name.partition(" ")
    if task in STS_SUBSETS:
        return sum(len(_sts_subset(task, subset, directory)) for subset in STS_SUBSETS[task])
    if name == "STS unlabelled":
        return len(sts_unlabelled(directory))
    if task in TRANSFER_TASKS:
        return len(transfer(task, directory).splits[split or "all"][0])
    if name == "wiki1m":
        return _count_lines(_find(WIKI1M, directory, WIKI1M_ROOTS))
    return len({"STS-B": stsb, "SICK-R": sick, "CNSD": cnsd}[task](split, directory))


def check(directory: str | Path, sets: tuple[str, ...] = tuple(EXPECTED)) -> list[CheckRow]:
    """Count the sets under `directory`: (set, expected, found), found being a count, `absent` or what is wrong."""
    found: dict[str, int | str] = {}
    for name in sets:
        try:
            found[name] = _count(name, Path(directory))
        except FileNotFoundError:
            found[name] = ABSENT
        except ValueError as error:
            found[name] = str(error)
    return [(name, EXPECTED[name], found[name]) for name in sets]


def differences(rows: list[CheckRow]) -> list[str]:
    """What is wrong in the rows of `check`, in words; the sets of `OPTIONAL` may be absent."""
    return [
        f"{name}: {expected} expected, found {found}"
        for name, expected, found in rows
        if found != expected and not (name in OPTIONAL and found == ABSENT)
    ]


def _check_senteval(root: Path) -> list[str]:
    return differences(check(root, tuple(name for name in EXPECTED if name not in OPTIONAL)))


# --- fetch -------------------------------------------------------------------------------------------------


def sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it: readers see the old or the new one, never a part."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`, for bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def write_json(path: Path, content) -> None:
    """`write_text` of indented JSON."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _download(name: str, folder: Path) -> Path:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ConnectionError(
            f"HF_HUB_OFFLINE is set, so {name} is not downloaded: unset it, or give a folder that holds "
            f"{TAR} and {WIKI1M} with `{FETCH} --source FOLDER`"
        )
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(hf_hub_download(REPOSITORY, name, repo_type="dataset", local_dir=folder))
    except (OSError, HfHubHTTPError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConnectionError(f"{name} of {REPOSITORY} cannot be downloaded: {reason}") from error


def _recorded(target: Path) -> dict[str, str]:
    path = target / CHECKSUMS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _verify(path: Path, target: Path) -> str:
    """The file's SHA-256, compared with the one recorded at the first download if there is one."""
    digest = sha256(path)
    known = _recorded(target).get(path.name, digest)
    if known != digest:
        raise ValueError(
            f"{path.name} has SHA-256 {digest}, but {known} was recorded at the first download: the file has changed; "
            f"if that is meant, remove its line from {target / CHECKSUMS} and fetch again"
        )
    return digest


def _safe_members(tar: tarfile.TarFile, tar_path: Path) -> list[tarfile.TarInfo]:
    members = []
    for member in tar:
        parts = member.name.replace("\\", "/").split("/")
        if member.name.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", member.name):
            raise ValueError(f"{tar_path} is unsafe, nothing unpacked: {member.name!r} points outside its folder")
        if not (member.isfile() or member.isdir()):
            raise ValueError(f"{tar_path} is unsafe, nothing unpacked: {member.name!r} is a link or a device")
        if not parts[-1].startswith("._"):
            members.append(member)
    return members


def unpack(tar_path: str | Path, target: str | Path) -> Path:
    """Unpack an archive of SentEval's data into `target/senteval`, which appears complete and counted or not at all.

    The data root may lie at any depth of the archive. Absolute names, `..`, links and devices are refused.

    Raises:
        FileExistsError: `target/senteval` is there already.
        ValueError: not an archive, an unsafe member, no SentEval data inside, or a set of another size than expected.
    """
    tar_path, final = Path(tar_path), Path(target) / "senteval"
    if final.exists():
        raise FileExistsError(f"{final} is there already: remove it first")
    with tempfile.TemporaryDirectory(dir=target, prefix=".senteval-") as folder:
        unpacked = Path(folder) / "senteval"
        unpacked.mkdir()
        try:
            with tarfile.open(tar_path) as tar:
                tar.extractall(unpacked, _safe_members(tar, tar_path), filter="data")
        except (tarfile.TarError, EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ValueError(f"{tar_path} cannot be unpacked: {error}") from error
        marks = sorted(unpacked.rglob("STS/STS12-en-test"), key=lambda path: len(path.parts))
        if not marks:
            raise ValueError(f"{tar_path} holds no STS/STS12-en-test: it is no archive of SentEval's data")
        root = marks[0].parents[1]
        if wrong := _check_senteval(root):
            raise ValueError(f"{tar_path} is not the data expected: {'; '.join(wrong)}")
        root.rename(final)
    return final


def fetch(
    target: str | Path | None = None,
    download: Callable[[str, Path], Path] = _download,
    names: tuple[str, ...] = (TAR, WIKI1M),
) -> list[Path]:
    """Bring the evaluation sets and SimCSE's Wikipedia sentences into `target`; what is there already is kept.

    Line and pair counts are verified; what fails does not get its final name. The SHA-256 of each file that passed is
    recorded in `target/checksums.json` and verified from then on, at a new download and, for the Wikipedia sentences,
    also where the file is there already.

    Args:
        target: folder, None is the project's `data/`.
        download: (file name, folder to write to) → path of the file.
        names: which of the two files.

    Returns:
        The folder `senteval` and the file `wiki1m_for_simcse.txt`, as far as asked for.

    Raises:
        ConnectionError: no download possible, or `HF_HUB_OFFLINE` forbids it.
        ValueError: a file is not what was expected.

    Source: Gao et al. 2021 (SimCSE), dataset `princeton-nlp/datasets-for-simcse` on the Hugging Face Hub.
    """
    target = Path(target or paths.DATA)
    target.mkdir(parents=True, exist_ok=True)
    final = {TAR: target / "senteval", WIKI1M: target / WIKI1M}
    with tempfile.TemporaryDirectory(dir=target, prefix=".fetch-") as folder:
        for name in names:
            there = final[name].exists()
            if there and name == TAR:
                if wrong := _check_senteval(final[TAR]):
                    raise ValueError(
                        f"{final[TAR]} is not the data expected, remove it and fetch again: {'; '.join(wrong)}"
                    )
                continue
            path = final[name] if there else download(name, Path(folder))
            digest = _verify(path, target)
            if name == TAR:
                unpack(path, target)
            elif (lines := _count_lines(path)) != EXPECTED["wiki1m"]:
                raise ValueError(f"{path.name} has {lines} lines where {EXPECTED['wiki1m']} are expected")
            elif not there:
                os.replace(path, final[name])
            write_json(target / CHECKSUMS, {**_recorded(target), name: digest})
    return [final[name] for name in names]


def _copy_from(source: Path, name: str, folder: Path) -> Path:
    if not (source / name).is_file():
        raise FileNotFoundError(f"{name} is missing in {source}: --source names a folder that holds {TAR} and {WIKI1M}")
    return Path(shutil.copy(source / name, folder / name))


# --- command line ------------------------------------------------------------------------------------------


def _check_table(rows: list[CheckRow]) -> str:
    lines = [f"{'set':<16}{'expected':>10}{'found':>10}"]
    for name, expected, found in rows:
        is_count = isinstance(found, int) or found == ABSENT
        note = " (optional)" if name in OPTIONAL and found == ABSENT else " <-" * (found != expected)
        lines.append(f"{name:<16}{expected:>10}{found if is_count else 'error':>10}{note}")
    wrong = differences(rows)
    return "\n".join([*lines, *wrong, f"{len(wrong)} of {len(rows)} sets differ" if wrong else "all sets as expected"])


def main(arguments: list[str] | None = None) -> int:
    """`python -m lib.data fetch [--target DIR] [--source DIR] [--only …]` and `python -m lib.data check DIR`."""
    parser = argparse.ArgumentParser(prog="python -m lib.data", description="Fetch and check the real data.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetching = verbs.add_parser("fetch", help=f"bring {TAR} and {WIKI1M}, verify them, unpack")
    fetching.add_argument("--target", type=Path, default=paths.DATA, help="folder to write to (default: data/)")
    fetching.add_argument("--source", type=Path, help=f"take {TAR} and {WIKI1M} from this folder, not from the Hub")
    fetching.add_argument("--only", choices=("senteval", "wiki1m"), help="only one of the two")
    checking = verbs.add_parser("check", help="count every set; exit status 1 on a difference")
    checking.add_argument("directory", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.verb == "check":
            if not chosen.directory.is_dir():
                raise FileNotFoundError(f"no folder {chosen.directory}")
            rows = check(chosen.directory)
            print(_check_table(rows))
            return 1 if differences(rows) else 0
        names = {"senteval": (TAR,), "wiki1m": (WIKI1M,)}.get(chosen.only, (TAR, WIKI1M))
        for path in fetch(chosen.target, partial(_copy_from, chosen.source) if chosen.source else _download, names):
            print(f"{path}: as expected")
        return 0
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
