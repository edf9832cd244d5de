"""Text files augmented line by line, resumable and there only when complete; folders that may not
be replaced."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import Timeout
from tqdm import tqdm

from lib.data.readers import read_aligned
from lib.files import locked, sha256, write_json

__all__ = ["Change", "read_aligned", "write_aligned"]

Change = Callable[[list[str], int], list[str]]


def write_aligned(
    lines: Sequence[str],
    out: str | Path,
    prepare: Callable[[], Change],
    identity: dict,
    chunk: int = 1000,
    progress: bool = False,
    sources: Sequence[Path] = (),
    force: bool = False,
) -> bool:
    """Write what `prepare()` makes of `lines` to `out`, line i belonging to line i; blank lines
    stay blank.

    What is done so far stands in `<out>.partial`; the same call continues there. `out` appears
    when complete, beside it `.<name>.made.json` with what it was made of. One process writes at a
    time: a second one waits, then finds it finished.

    Args:
        prepare: called once there is something to do; gives `(lines, number of the first) →
            lines`, as many and without line breaks, which sees no blank line's content.
        identity: what the result depends on besides `lines`, JSON values.
        sources: files that are read, which `out` must not be.
        force: replace a file that was not made by the same call.

    Returns:
        Whether anything was written: False if the same call has finished before.

    Raises:
        FileExistsError: `out` is there and was not made by the same call.
        ValueError: `out` is one of the sources, a folder or a `.gz` or `.xz`; the partial file is
            of another text or other parameters; the number of lines changes.
    """
    out = _output(Path(out), sources)
    partial, note = out.with_name(out.name + ".partial"), out.with_name(out.name + ".partial.json")
    made = out.with_name(f".{out.name}.made.json")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    record = json.loads(json.dumps({"lines": len(lines), "sha256": digest, **identity}))
    with _alone(out):
        if _is_finished(out, made, record, force):
            partial.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
            return False
        done = _done(partial, note, {**record, "chunk": chunk}, chunk, force)
        change = prepare()
        write_json(note, {**record, "chunk": chunk})
        try:
            _append(lines, partial, change, done, chunk, progress)
        except BaseException:
            _drop_if_empty(partial, note)
            raise
        write_json(made, {**record, "out": sha256(partial)})
        os.replace(partial, out)
        note.unlink()
    return True


def _output(out: Path, sources: Sequence[Path]) -> Path:
    """Where `out` really lies; a file that is read, a folder and a compressed name are refused."""
    try:
        real = out.resolve()
        same = [source for source in sources if source.resolve() == real]
        same += [
            source
            for source in sources
            if real.exists() and source.exists() and real.samefile(source)
        ]
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{out}: {error}: name another output") from error
    if same:
        raise ValueError(f"{out} is a file that is read ({same[0]}): name another output")
    if real.exists() and not real.is_file():
        kind = "a folder" if real.is_dir() else "no plain file"
        raise ValueError(f"{out} is {kind}: name a file")
    if real.suffix in (".gz", ".xz"):
        raise ValueError(f"{out}: plain text is written, name it without {real.suffix}")
    return real


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(out, 0))
        except (FileExistsError, NotADirectoryError, PermissionError, FileNotFoundError) as error:
            reason = error.strerror or str(error)
            raise OSError(
                f"nothing can be written to {out.parent} ({reason}): name another output"
            ) from error
        except Timeout:
            warnings.warn(f"waiting for another process that writes {out}", stacklevel=2)
            stack.enter_context(locked(out))
        yield


def _is_finished(out: Path, made: Path, record: dict, force: bool) -> bool:
    if not out.exists():
        return False
    earlier = _read_note(made)
    same = bool(earlier) and earlier.pop("out", "") == sha256(out)
    if same and earlier == record:
        return True
    if force:
        return False
    reason = (
        f"made with another {_different(earlier, record)}"
        if same
        else "not of this command's making"
    )
    raise FileExistsError(
        f"{out} is there already and {reason}: name another output, or replace it with --force"
    )


def _different(earlier: dict, record: dict) -> str:
    """Names of what differs; the method alone where that does."""
    names = [key for key in sorted({*earlier, *record}) if earlier.get(key) != record.get(key)]
    return "method" if "method" in names else ", ".join(names)


def _drop_if_empty(partial: Path, note: Path) -> None:
    """What has not got beyond its beginning is no reason to refuse another request."""
    if partial.exists() and partial.stat().st_size == 0:
        partial.unlink()
        note.unlink(missing_ok=True)


def _read_note(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _append(
    lines: Sequence[str], partial: Path, change: Change, done: int, chunk: int, progress: bool
) -> None:
    with (
        open(partial, "a", encoding="utf-8", newline="\n") as f,
        tqdm(
            total=len(lines), initial=done, unit="line", unit_scale=True, disable=not progress
        ) as bar,
    ):
        for start in range(done, len(lines), chunk):
            part = list(lines[start : start + chunk])
            changed = change(part, start)
            if len(changed) != len(part):
                raise ValueError(
                    f"{len(part)} lines became {len(changed)} from line {start + 1} on"
                )
            if any("\n" in new or "\r" in new for new in changed):
                raise ValueError(f"a line break inside a line, from line {start + 1} on")
            f.write(
                "".join((new if old else "") + "\n" for old, new in zip(part, changed, strict=True))
            )
            f.flush()
            os.fsync(f.fileno())
            bar.update(len(part))


def _done(partial: Path, note: Path, record: dict, chunk: int, force: bool) -> int:
    """Lines of complete chunks in the partial file, which is cut there."""
    _drop_if_empty(partial, note)
    if not partial.exists():
        return 0
    earlier = _read_note(note)
    if different := _different(earlier, record):
        if force:
            partial.unlink()
            return 0
        raise ValueError(
            f"{partial} was begun with another {different}: delete it, name another output, or"
            " begin anew with --force"
        )
    content = partial.read_bytes()
    complete = content.count(b"\n") // chunk * chunk
    position = 0
    for _ in range(complete):
        position = content.index(b"\n", position) + 1
    os.truncate(partial, position)
    return complete
