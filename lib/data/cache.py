"""What several runs need of one text, made once: kept in a folder under the hash of its content."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np

from lib.data import files

T = TypeVar("T")
Arrays = dict[str, np.ndarray]


def digest(*parts: str | Iterable[str]) -> str:
    """16 hexadecimal digits of texts and lists of texts; no two different inputs are joined alike.

    Example:
        >>> digest("a", ["b", "c"]) == digest("a", ["bc"])
        False
    """
    found = hashlib.sha256()
    for part in parts:
        lines = [part] if isinstance(part, str) else part
        for line in lines:
            text = line.encode()
            found.update(len(text).to_bytes(8, "little") + text)
        found.update(b"end of part")
    return found.hexdigest()[:16]


def kept(path: Path, make: Callable[[], T], save: Callable, load: Callable[[Path], T]) -> T:
    """What `load` reads from `path`; where nothing is, or something damaged, what `make` gives,
    saved there.

    Of several processes one makes it, the others wait and read.

    Args:
        save: of the value and the path, complete or not at all.
        load: raises ValueError or OSError if the file is damaged.
    """
    with files.locked(path):
        try:
            return load(path)
        except (ValueError, OSError):
            value = make()
            save(value, path)
            return value


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write arrays by name as one `.npz` file, complete or not at all."""
    with files.written(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_arrays(path: Path, names: Iterable[str]) -> Arrays:
    """Read what `save_arrays` wrote.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names}
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, zlib and NumPy name a damaged file in a dozen ways
        raise ValueError(f"{path} is damaged") from error
