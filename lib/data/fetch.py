"""Real data from the Hugging Face Hub, verified, and counts of every set:
`python -m lib data fetch` and `check`."""

import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lib import data, files, paths
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
MOST_BYTES = 2 * 2**30
MOST_MEMBERS = 10_000
MOST_LEVELS = 16
LONGEST_HEADER = 2**20
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


class Unsafe(ValueError):
    """An archive that would write outside its folder, or too much."""


class _Limited:
    """A decompressed archive that ends in an error where it is larger than it may be.

    Tar's own headers are read in one piece, so that a large piece is a header made to fill the
    memory.
    """

    def __init__(self, file: Any, most: int):
        self.file, self.most = file, most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LONGEST_HEADER:
            raise Unsafe(f"a header of {size:,} bytes")
        return self._checked(self.file.read(size))

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0 and offset > self.most:
            raise Unsafe(f"more than {self.most:,} bytes")
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def _checked(self, content: bytes) -> bytes:
        if self.file.tell() > self.most:
            raise Unsafe(f"more than {self.most:,} bytes")
        return content


def _opened(path: Path) -> Any:
    """The archive's bytes, decompressed by what its first bytes say."""
    begin = path.open("rb").read(6) if path.is_file() else b""
    marks = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh": bz2.open}
    opener: Any = next((opener for mark, opener in marks.items() if begin.startswith(mark)), open)
    return opener(path, "rb")


def _safe_members(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    size = 0
    for number, member in enumerate(tar, 1):
        name = member.name if len(member.name) < 200 else f"{member.name[:200]}…"
        parts = member.name.replace("\\", "/").split("/")
        if (
            member.name.startswith(("/", "\\"))
            or ".." in parts
            or re.match(r"[A-Za-z]:", member.name)
        ):
            raise Unsafe(f"{name!r} points outside its folder")
        if not (member.isfile() or member.isdir()):
            raise Unsafe(f"{name!r} is a link or a device")
        if len(parts) > MOST_LEVELS:
            raise Unsafe(f"{name!r} lies deeper than {MOST_LEVELS} folders")
        size += max(0, member.size)
        if size > MOST_BYTES:
            raise Unsafe(f"its files have more than {MOST_BYTES:,} bytes")
        if number > MOST_MEMBERS:
            raise Unsafe(f"it has more than {MOST_MEMBERS:,} files and folders")
        if not parts[-1].startswith("._"):
            members.append(member)
    return members


def _extract(tar_path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder, after all of its members have been looked at."""
    try:
        with _opened(tar_path) as file:
            limited: Any = _Limited(file, MOST_BYTES + 2**20 * 100)
            with tarfile.open(fileobj=limited, mode="r:") as tar:
                tar.extractall(folder, _safe_members(tar), filter="data")
    except Unsafe as error:
        raise ValueError(f"{tar_path.name} is unsafe, nothing unpacked: {error}") from error
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{tar_path.name} cannot be unpacked: {error}") from error


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
        _extract(tar_path, unpacked)
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
