"""Text files augmented line by line, resumable and there only when complete; folders that may not be replaced."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tqdm import tqdm

from lib.files import write_json
from lib.readers import numbered


def read_aligned(path: str | Path) -> list[str]:
    """Every line of a text file (also `.gz`, `.xz`), stripped; blank lines are kept, so that numbers stay."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    return [line.strip() for _, line in numbered(path)]


def write_aligned(
    lines: Sequence[str],
    out: str | Path,
    change: Callable[[list[str], int], list[str]],
    identity: dict,
    chunk: int = 1000,
    progress: bool = False,
) -> None:
    """Write `change` of `lines` to `out`, line i belonging to line i; blank lines stay blank.

    What is done so far stands in `<out>.partial`; the same call continues there. `out` appears when complete.

    Args:
        change: `(lines, number of the first) → lines`, as many and without line breaks; sees no blank line's content.
        identity: what the result depends on besides `lines`, JSON values.

    Raises:
        ValueError: the partial file is of another text or other parameters, or the number of lines changes.
    """
    out = Path(out)
    partial, note = out.with_name(out.name + ".partial"), out.with_name(out.name + ".partial.json")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    record = json.loads(json.dumps({"lines": len(lines), "sha256": digest, "chunk": chunk, **identity}))
    done = _done(partial, note, record, chunk)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(note, record)
    with (
        open(partial, "a", encoding="utf-8", newline="\n") as f,
        tqdm(total=len(lines), initial=done, unit="line", unit_scale=True, disable=not progress) as bar,
    ):
        for start in range(done, len(lines), chunk):
            part = list(lines[start : start + chunk])
            changed = change(part, start)
            if len(changed) != len(part):
                raise ValueError(f"{len(part)} lines became {len(changed)} from line {start + 1} on")
            f.write("".join((new if old else "") + "\n" for old, new in zip(part, changed, strict=True)))
            f.flush()
            os.fsync(f.fileno())
            bar.update(len(part))
    os.replace(partial, out)
    note.unlink()


def _done(partial: Path, note: Path, record: dict, chunk: int) -> int:
    """Lines of complete chunks in the partial file, which is cut there."""
    if not partial.exists():
        return 0
    found = json.loads(note.read_text()) if note.exists() else {}
    if different := sorted(k for k in {*found, *record} if found.get(k) != record.get(k)):
        raise ValueError(f"{partial} was begun with another {', '.join(different)}: delete it, or name another output")
    content = partial.read_bytes()
    complete = content.count(b"\n") // chunk * chunk
    position = 0
    for _ in range(complete):
        position = content.index(b"\n", position) + 1
    os.truncate(partial, position)
    return complete


def is_foreign(path: Path, mark: str) -> bool:
    """Whether `path` must not be replaced: it is a file, or a folder with content but without `mark`.

    Args:
        mark: name of a file that every folder of our own making has.
    """
    return path.is_file() or (path.is_dir() and any(path.iterdir()) and not (path / mark).exists())
