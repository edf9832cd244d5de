"""Files that are complete or not there: written under a temporary name, then renamed; and what
several runs need of one text, made once and kept under the hash of its content.

A temporary name is `.<name>.tmp-<host>-<process>`, so that no two writers share one, on whatever
machines. What a killed writer left is removed by the next one on its machine in that folder.
"""

import hashlib
import json
import os
import shutil
import socket
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
from filelock import FileLock

T = TypeVar("T")
Arrays = dict[str, np.ndarray]


def temporary_name(path: Path, kind: str = "tmp") -> Path:
    """A name beside `path` that no other process on any machine uses.

    Example:
        >>> temporary_name(Path("a/metrics.json")).name.startswith(".metrics.json.tmp-")
        True
    """
    return path.with_name(f".{path.name}.{kind}-{socket.gethostname()}-{os.getpid()}")


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` for this process alone, removed at the end."""
    with _temporary(path) as folder:
        folder.mkdir()
        yield folder


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """`temporary_name` with nothing there, at the end as at the beginning."""
    path.parent.mkdir(parents=True, exist_ok=True)
    here = f".tmp-{socket.gethostname()}"
    for left in path.parent.glob(f".*{here}-*"):
        name, _, process = left.name.rpartition("-")
        if name.endswith(here) and process.isdigit() and not psutil.pid_exists(int(process)):
            remove(left)
    temporary = temporary_name(path)
    remove(temporary)
    try:
        yield temporary
    finally:
        remove(temporary)


def unpack(
    archive: Path, folder: Path, wanted: Callable[[tarfile.TarInfo], bool] = lambda member: True
) -> None:
    """Unpack a tar archive, compressed or not, into a folder of its own.

    Args:
        wanted: whether a member is to be unpacked.

    Raises:
        ValueError: it is damaged, or a wanted member would lie elsewhere.
    """
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter(wanted, tar), filter="data")
    except Exception as error:  # every compression has errors of its own
        raise ValueError(f"{archive} cannot be unpacked, nothing taken: {error}") from error


def remove(path: Path) -> None:
    """Remove a file or a folder, whichever it is; one that is not there is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary name to write a file or a folder to; on success it takes the place of `path`,
    else it is removed.

    Readers see the old content or the new one, never a part; while a *folder* takes the place of
    another there is a moment in which neither has the name. The old folder is removed only after
    the new one has it.

    Example:
        >>> import tempfile; folder = Path(tempfile.mkdtemp())
        >>> with atomic_write(folder / "a.txt") as temporary:
        ...     _ = temporary.write_text("whole")
        >>> [p.name for p in folder.iterdir()]
        ['a.txt']
    """
    with _temporary(Path(path)) as temporary:
        yield temporary
        replace(temporary, Path(path))


def replace(temporary: Path, path: Path) -> None:
    """Give a finished file or folder its name."""
    old = temporary_name(path, "old")
    remove(old)
    if path.is_dir():
        path.rename(old)
    os.replace(temporary, path)
    remove(old)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file: complete, or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """As `write_bytes`, for UTF-8 text; line ends stay as they are."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, content: Any) -> None:
    """As `write_text`, for indented JSON.

    Raises:
        ValueError: a number is NaN or infinite, which JSON does not have; write None.
    """
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file that holds an object (or, with `kind=list`, a list).

    Raises:
        ValueError: it holds something else; the message names the file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): remove it or write it again") from error
    if isinstance(content, kind):
        return content
    raise ValueError(f"{path} must hold a {kind.__name__}: write it again")


@contextmanager
def locked(path: str | Path, timeout: float = -1) -> Iterator[None]:
    """One process at a time, on any machine that shares the folder; others wait.

    The lock is an empty file `.<name>.lock` beside `path`, which goes when the work is done. Who
    waited for it sees then that the file has no name any more, and asks for the lock anew.

    Args:
        timeout: seconds to wait; below 0: for ever.

    Raises:
        filelock.Timeout: another process has held it for `timeout` seconds.
        OSError: nothing can be written beside `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    lock.touch()  # fails at once where nothing can be written
    with FileLock(lock, timeout):
        try:
            yield
        finally:
            if os.name == "posix":  # elsewhere `filelock` removes it
                lock.unlink(missing_ok=True)


def sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_foreign(path: Path, mark: str) -> bool:
    """Whether `path` must not be replaced: it is a file, or a folder with content but without
    `mark`.

    Args:
        mark: name of a file that every folder of our own making has.
    """
    return path.is_file() or (path.is_dir() and any(path.iterdir()) and not (path / mark).exists())


def digest(*parts: str | Iterable[str]) -> str:
    """16 hexadecimal digits of texts and lists of texts; no two different inputs are joined alike.

    Example:
        >>> digest("a", ["b", "c"]) == digest("a", ["bc"])
        False
    """
    found = hashlib.sha256()
    for part in parts:
        for line in [part] if isinstance(part, str) else part:
            text = line.encode()
            found.update(len(text).to_bytes(8, "little") + text)
        found.update(b"end of part")
    return found.hexdigest()[:16]


def cached(path: Path, make: Callable[[], T], save: Callable, load: Callable[[Path], T]) -> T:
    """What `load` reads from `path`; where nothing is, or something damaged, what `make` gives,
    saved there.

    Of several processes one makes it, the others wait and read.

    Args:
        save: of the value and the path, complete or not at all.
        load: raises ValueError or OSError if the file is damaged.
    """
    with locked(path):
        try:
            return load(path)
        except (ValueError, OSError):
            value = make()
            save(value, path)
            return value


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write arrays by name as one `.npz` file, complete or not at all."""
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_arrays(path: Path, names: Iterable[str]) -> Arrays:
    """Read what `save_arrays` wrote.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is damaged.
    """
    try:
        with np.load(path) as file:
            return {name: file[name] for name in names}
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, zlib and NumPy name a damaged file in a dozen ways
        raise ValueError(f"{path} is damaged") from error
