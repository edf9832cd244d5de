"""Real data from the Hugging Face Hub, verified, and counts of every set: `python -m lib.data fetch` and `check`."""

import argparse
import gzip
import json
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lib import data, paths, readers
from lib.data import FETCH, TAR, WIKI1M
from lib.files import sha256, write_json

REPOSITORY = "princeton-nlp/datasets-for-simcse"
CHECKSUMS = "checksums.json"
EXPECTED = {task: sum(scored for _, scored in subsets.values()) for task, subsets in data.STS_SUBSETS.items()}
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
        return sum(len(data._sts_subset(task, subset, directory, False)) for subset in subsets)
    if name == "STS unlabelled":
        return len(data.sts_unlabelled(directory, check=False))
    if task in data.TRANSFER_TASKS:
        return len(data.transfer(task, directory, check=False).splits[split or "all"][0])
    if name == "wiki1m":
        return _count_lines(data._find(WIKI1M, directory, data.WIKI1M_ROOTS))
    read = {"STS-B": data.stsb, "SICK-R": data.sick, "CNSD": data.cnsd}[task]
    return len(read(split, directory, check=False))


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
