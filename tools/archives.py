"""Archives from elsewhere: every member is looked at before anything is unpacked."""

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from pathlib import Path
from typing import Any

MOST_BYTES = 2 * 2**30
MOST_MEMBERS = 10_000
MOST_LEVELS = 16
LONGEST_HEADER = 2**20


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

    def seek(self, place: int, whence: int = 0) -> int:
        if whence == 0 and place > self.most:
            raise Unsafe(f"more than {self.most:,} bytes")
        return self.file.seek(place, whence)

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


def _safe_members(tar: tarfile.TarFile, most: int) -> list[tarfile.TarInfo]:
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
        if size > most:
            raise Unsafe(f"its files have more than {most:,} bytes")
        if number > MOST_MEMBERS:
            raise Unsafe(f"it has more than {MOST_MEMBERS:,} files and folders")
        if not parts[-1].startswith("._"):
            members.append(member)
    return members


def extract(tar_path: Path, folder: Path, most: int | None = None) -> None:
    """Unpack an archive into an empty folder, after all of its members have been looked at.

    It may be compressed by gzip, xz or bzip2. Absolute names, `..`, links and devices are refused,
    and more than 10,000 files.

    Args:
        most: bytes of all files together; None is 2 GiB.

    Raises:
        ValueError: not an archive, damaged, an unsafe member, or too large; the message names it.
    """
    most = MOST_BYTES if most is None else most
    try:
        with _opened(tar_path) as file:
            limited: Any = _Limited(file, most + 2**20 * 100)
            with tarfile.open(fileobj=limited, mode="r:") as tar:
                tar.extractall(folder, _safe_members(tar, most), filter="data")
    except Unsafe as error:
        raise ValueError(f"{tar_path.name} is unsafe, nothing unpacked: {error}") from error
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{tar_path.name} cannot be unpacked: {error}") from error
