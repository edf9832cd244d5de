"""Text files augmented line by line, resumable and there only when complete."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import Timeout
from tqdm import tqdm

from lib.data.files import locked

Change = Callable[[list[str], int], list[str]]


def write_aligned(
    lines: Sequence[str],
    out: Path,
    prepare: Callable[[], Change],
    key: str,
    chunk: int = 1000,
    progress: bool = False,
) -> None:
    """Write what `prepare()` makes of `lines` to `out`, line i belonging to line i; blank lines
    stay blank.

    What is done so far stands in `<out>.<key>.partial`, where the same call goes on. `out` appears
    when it is complete.

    Args:
        prepare: gives `(lines, number of the first) → lines`, as many and without line breaks.
        key: names the text and all settings; another key begins anew.

    Raises:
        OSError: another process writes `out`, or nothing can be written there.
        ValueError: the number of lines changes.
    """
    partial = out.with_name(f"{out.name}.{key}.partial")
    try:
        with locked(out, 0), _begun(partial) as file:
            done = _whole_chunks(file, chunk)
            change = prepare()
            bar = tqdm(total=len(lines), initial=done, unit="line", disable=not progress)
            for start in range(done, len(lines), chunk):
                part = list(lines[start : start + chunk])
                changed = change(part, start)
                if len(changed) != len(part) or any("\n" in x or "\r" in x for x in changed):
                    raise ValueError(f"lines were split or joined from line {start + 1} on")
                pairs = zip(part, changed, strict=True)
                file.write("".join((new if old else "") + "\n" for old, new in pairs).encode())
                file.flush()
                os.fsync(file.fileno())
                bar.update(len(part))
            bar.close()
            os.replace(partial, out)
    except Timeout as error:
        raise OSError(f"another process is writing {out}: wait, or name another output") from error


@contextmanager
def _begun(partial: Path) -> Iterator[BinaryIO]:
    """The partial file, to read and to append to; it is removed if nothing has been written."""
    try:
        with open(partial, "a+b") as file:
            yield file
    finally:
        if partial.is_file() and not partial.stat().st_size:
            partial.unlink()


def _whole_chunks(file, chunk: int) -> int:
    """Lines of the complete chunks in a partial file, which is cut there."""
    file.seek(0)
    ends = [0]
    for line in file:
        if line.endswith(b"\n"):
            ends.append(ends[-1] + len(line))
    done = (len(ends) - 1) // chunk * chunk
    file.truncate(ends[done])
    return done
