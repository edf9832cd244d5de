"""Real data from the Hugging Face Hub, verified, and counts of every set:
`python -m lib data fetch` and `check`."""

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib import archives, data, files, paths
from lib.data import FETCH, TAR, WIKI1M, readers, sets
from lib.data.folders import WIKI1M_ROOTS, find
from lib.files import sha256, write_json

REPOSITORY = "princeton-nlp/datasets-for-simcse"
CHECKSUMS = "checksums.json"
EXPECTED = {
    task: sum(scored for _, scored in subsets.values())
    for task, subsets in data.STS_SUBSETS.items()
}
EXPECTED |= {"STS unlabelled": 89192, **data.SIZES}
OPTIONAL = ("CNSD train", "CNSD dev", "CNSD test", "wiki1m")
ABSENT = "absent"
CheckRow = tuple[str, int, int | str]


def _count_lines(path: Path) -> int:
    return sum(1 for _ in readers.numbered(path))


def _count(name: str, directory: Path) -> int:
    task, _, split = name.partition(" ")
    if task in data.STS_SUBSETS:
        subsets = data.STS_SUBSETS[task]
        return sum(len(sets.sts_subset(task, subset, directory, False)) for subset in subsets)
    if name == "STS unlabelled":
        return len(data.sts_unlabelled(directory, check=False))
    if task in data.TRANSFER_TASKS:
        return len(data.transfer_task(task, directory, check=False).splits[split or "all"][0])
    if name == "wiki1m":
        return _count_lines(find(WIKI1M, directory, WIKI1M_ROOTS))
    reader = {"STS-B": data.stsb, "SICK-R": data.sick, "CNSD": data.cnsd}[task]
    return len(reader(split, directory, check=False))


def check(directory: str | Path, sets: tuple[str, ...] = tuple(EXPECTED)) -> list[CheckRow]:
    """Count the sets under `directory`: (set, expected, found), found being a count, `absent` or
    what is wrong."""
    counted: dict[str, int | str] = {}
    for name in sets:
        try:
            counted[name] = _count(name, Path(directory))
        except FileNotFoundError:
            counted[name] = ABSENT
        except (ValueError, OSError) as error:
            counted[name] = str(error)
    return [(name, EXPECTED[name], counted[name]) for name in sets]


def differences(rows: list[CheckRow]) -> list[str]:
    """What is wrong in the rows of `check`, in words; the sets of `OPTIONAL` may be absent."""
    return [
        f"{name}: {expected} expected, found {found}"
        for name, expected, found in rows
        if found != expected and not (name in OPTIONAL and found == ABSENT)
    ]


def _check_senteval(root: Path) -> list[str]:
    return differences(check(root, tuple(name for name in EXPECTED if name not in OPTIONAL)))


def download(name: str, folder: Path) -> Path:
    """Bring a file of the data set from the Hub into `folder`."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ConnectionError(
            f"HF_HUB_OFFLINE is set, so {name} is not downloaded: unset it, or give a folder that"
            f" holds {TAR} and {WIKI1M} with `{FETCH} --source FOLDER`"
        )
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(REPOSITORY, name, repo_type="dataset", local_dir=folder))
    except (
        Exception
    ) as error:  # the hub's, its transport's and the system's have no class in common
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConnectionError(f"{name} of {REPOSITORY} cannot be downloaded: {reason}") from error


def _recorded(target: Path) -> dict[str, str]:
    path = target / CHECKSUMS
    if not path.is_file():
        return {}
    try:
        digests = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: remove it and fetch again") from error
    if not isinstance(digests, dict) or not all(
        isinstance(digest, str) for digest in digests.values()
    ):
        raise ValueError(f"{path} must hold names with their SHA-256: remove it and fetch again")
    return digests


def _verify(path: Path, target: Path) -> str:
    """The file's SHA-256, compared with the one recorded at the first download if there is one."""
    digest = sha256(path)
    known = _recorded(target).get(path.name, digest)
    if known != digest:
        raise ValueError(
            f"{path.name} has SHA-256 {digest}, but {known} was recorded at the first download: the"
            f" file has changed; if that is meant, remove its line from {target / CHECKSUMS} and"
            " fetch again"
        )
    return digest


def unpack(tar_path: str | Path, target: str | Path) -> Path:
    """Unpack an archive of SentEval's data into `target/senteval`, which appears complete and
    counted or not at all.

    The data root may lie at any depth of the archive. Absolute names, `..`, links and devices are
    refused, and more than 2 GiB or 10,000 files.

    Raises:
        FileExistsError: `target/senteval` is there already.
        ValueError: not an archive, an unsafe member, too large, no SentEval data inside, or a set
            of another size than expected.
    """
    tar_path, final = Path(tar_path), Path(target) / "senteval"
    if final.exists():
        raise FileExistsError(f"{final} is there already: remove it first")
    with files.scratch_folder(final) as unpacked:
        archives.extract(tar_path, unpacked)
        marks = sorted(unpacked.rglob("STS/STS12-en-test"), key=lambda path: len(path.parts))
        if not marks:
            raise ValueError(
                f"{tar_path.name} holds no STS/STS12-en-test: it is no archive of SentEval's data"
            )
        root = marks[0].parents[1]
        if wrong := _check_senteval(root):
            raise ValueError(f"{tar_path.name} is not the data expected: {'; '.join(wrong)}")
        root.rename(final)
    return final


def fetch(
    target: str | Path | None = None,
    download: Callable[[str, Path], Path] = download,
    names: tuple[str, ...] = (TAR, WIKI1M),
) -> list[Path]:
    """Bring the evaluation sets and SimCSE's Wikipedia sentences into `target`; what is there
    already is kept.

    Line and pair counts are verified; what fails does not get its final name. The SHA-256 of each
    file that passed is recorded in `target/checksums.json` and verified from then on, at a new
    download and, for the Wikipedia sentences, also where the file is there already.

    Args:
        target: folder, None is the project's `data/`.
        download: (file name, folder to write to) → path of the file.
        names: which of the two files.

    Returns:
        The folder `senteval` and the file `wiki1m_for_simcse.txt`, as far as asked for.

    Raises:
        ConnectionError: no download possible, or `HF_HUB_OFFLINE` forbids it.
        ValueError: a file is not what was expected.

    Source: Gao et al. 2021 (SimCSE), dataset `princeton-nlp/datasets-for-simcse` on the Hugging
        Face Hub.
    """
    target = Path(target or paths.DATA)
    files.make_folder(target, "--target")
    final = {TAR: target / "senteval", WIKI1M: target / WIKI1M}
    with files.locked(target / "fetch"), files.scratch_folder(target / "fetch") as folder:
        for name in names:
            digest = _bring(name, final[name], target, partial(download, name, folder))
            if digest:
                write_json(target / CHECKSUMS, {**_recorded(target), name: digest})
    return [final[name] for name in names]


def _bring(name: str, final: Path, target: Path, download: Callable[[], Path]) -> str:
    """One file, verified, at its place; its SHA-256, or "" where it is there already, unpacked."""
    there = final.exists()
    if there and name == TAR:
        if wrong := _check_senteval(final):
            raise ValueError(
                f"{final} is not the data expected, remove it and fetch again: {'; '.join(wrong)}"
            )
        return ""
    _recorded(target)
    path = final if there else download()
    digest = _verify(path, target)
    if name == TAR:
        unpack(path, target)
    elif (lines := _count_lines(path)) != EXPECTED["wiki1m"]:
        raise ValueError(f"{path.name} has {lines} lines where {EXPECTED['wiki1m']} are expected")
    elif not there:
        os.replace(path, final)
    return digest


def copy_from(source: Path, name: str, folder: Path) -> Path:
    """Bring a file from a folder that holds it already."""
    if not (source / name).is_file():
        raise FileNotFoundError(
            f"{name} is missing in {source}: --source names a folder that holds {TAR} and {WIKI1M}"
        )
    return Path(shutil.copy(source / name, folder / name))
