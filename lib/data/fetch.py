"""Real data from the Hugging Face Hub, counted: `python -m lib data fetch` and `check`."""

import shutil
from pathlib import Path

from lib import data, paths
from lib.data import FETCH, WIKI1M, corpora, files, sets

REPOSITORY = "princeton-nlp/datasets-for-simcse"
TAR = "senteval.tar"
EXPECTED = {task: sum(scored for _, scored in of.values()) for task, of in sets.STS_SUBSETS.items()}
EXPECTED |= sets.SIZES
OPTIONAL = ("CNSD train", "CNSD dev", "CNSD test", "wiki1m")
ABSENT = "absent"
CheckRow = tuple[str, int, int | str]


def _count(name: str, directory: Path) -> int:
    task, _, split = name.partition(" ")
    if task in data.STS_SUBSETS:
        return sum(len(sets.sts_subset(task, part, directory)) for part in sets.STS_SUBSETS[task])
    if task in data.TRANSFER_TASKS:
        return len(data.transfer_task(task, directory).splits[split or "all"][0])
    if name in corpora.CORPORA:
        return len(data.corpus(name, directory))
    return len(sets.graded(task, split, directory))


def check(directory: str | Path, names: tuple[str, ...] = tuple(EXPECTED)) -> list[CheckRow]:
    """Count the sets under `directory`: (set, expected, found), found being a count, `absent` or
    what is wrong."""
    found: dict[str, int | str] = {}
    for name in names:
        try:
            found[name] = _count(name, Path(directory))
        except FileNotFoundError:
            found[name] = ABSENT
        except (ValueError, OSError) as error:
            found[name] = str(error)
    return [(name, EXPECTED[name], found[name]) for name in names]


def differences(rows: list[CheckRow]) -> list[str]:
    """What is wrong in the rows of `check`, in words; the sets of `OPTIONAL` may be absent."""
    return [
        f"{name}: {expected} expected, found {found}"
        for name, expected, found in rows
        if found != expected and not (name in OPTIONAL and found == ABSENT)
    ]


def download(name: str, folder: Path) -> Path:
    """The folder with a file of the data set, brought from the Hub; it goes on where it was
    interrupted."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(REPOSITORY, repo_type="dataset", allow_patterns=name, local_dir=folder)
    except Exception as error:  # the Hub's, its transport's and the system's have no common class
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        remedy = f"`{FETCH} --source FOLDER` takes {TAR} and {WIKI1M} from a folder"
        raise ConnectionError(f"{REPOSITORY} cannot be downloaded: {reason} ({remedy})") from error
    return folder


def _unpacked(tar_path: Path, folder: Path) -> Path:
    """The root of SentEval's data in an unpacked archive, where it may lie at any depth."""
    files.unpack(tar_path, folder, lambda m: (m.isfile() or m.isdir()) and "/._" not in m.name)
    marks = sorted(folder.rglob("STS/STS12-en-test"), key=lambda path: len(path.parts))
    if not marks:
        raise ValueError(f"{tar_path} is no archive of SentEval's data: no STS/STS12-en-test")
    return marks[0].parents[1]


def fetch(
    target: str | Path | None = None,
    source: str | Path | None = None,
    names: tuple[str, ...] = (TAR, WIKI1M),
) -> list[Path]:
    """Bring the evaluation sets and SimCSE's Wikipedia sentences into `target`; what is there
    already stays.

    Line and pair counts are verified; what fails does not get its final name.

    Args:
        target: folder, None is the project's `data/`.
        source: folder that holds the files already; None: the Hub.
        names: which of the two files.

    Returns:
        The folder `senteval` and the file `wiki1m_for_simcse.txt`, as far as asked for.

    Raises:
        ConnectionError: no download possible, or `HF_HUB_OFFLINE` forbids it.
        FileNotFoundError: `source` lacks a file.
        ValueError: a file is not what was expected.

    Source: Gao et al. 2021 (SimCSE), dataset `princeton-nlp/datasets-for-simcse` on the Hugging
        Face Hub.
    """
    target = Path(target or paths.DATA)
    final = {TAR: target / "senteval", WIKI1M: target / WIKI1M}
    parts = {TAR: tuple(name for name in EXPECTED if name not in OPTIONAL), WIKI1M: ("wiki1m",)}
    with files.locked(target / "fetch"), files.scratch_folder(target / "fetch") as scratch:
        for name in names:
            if final[name].exists():
                continue
            folder = Path(source) if source else download(name, target / ".download")
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{name} is missing in {folder}")
            if name == TAR:
                root = found = _unpacked(folder / name, scratch / "senteval")
            else:
                root, found = scratch, Path(shutil.copy(folder / name, scratch))
            if wrong := differences(check(root, parts[name])):
                raise ValueError(f"{folder / name} is not the data expected: {'; '.join(wrong)}")
            found.rename(final[name])
        files.remove(target / ".download")
    return [final[name] for name in names]
