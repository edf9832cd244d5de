"""What a bundle's `run.sh` does on a machine without a network: check, unpack, install, run, and
pack the finished runs up.

`python -m lib bundle` writes this file into `run.sh`, where Python reads it. It needs nothing but
Python's own library and pip, as nothing else is there yet.
"""

import argparse
import hashlib
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

ARCHIVE = "runs.tar.gz"
FINISHED = ("params.json", "env.json", "history.csv", "metrics.json")
CHECKPOINTS = ("best", "last")
GRACE_SECONDS = 60
INTERRUPTED = 130
SAFE: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
CHECK = (
    "import importlib.util as u, sys;"
    "lacking = [name for name in sys.argv[1:] if not u.find_spec(name)];"
    "sys.exit('no ' + ', no '.join(lacking)) if lacking else None;"
    "import lib.commands.grid"
)


def main(words: list[str]) -> int:
    """The words are the bundle's folder, the SHA-256 of its manifest, and what `run.sh` was given.

    Exit status: 0; 1 if a run failed; 2 if the bundle or the machine is not as it must be, with one
    sentence on stderr; 130 if it was interrupted, be it by its own time limit.
    """
    here, digest = Path(words[0]), words[1]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    begun = time.monotonic()
    try:
        options, of_grid = _options(words[2:])
        manifest = read_manifest(here / "manifest.json", digest)
        base = Path(options.work or here).resolve()
        folder = base / "work" / digest[:8]
        prepare(here, manifest, folder)
        environment = surroundings(folder, base / "work" / "outputs")
        check_modules(manifest["modules"], environment)
        if options.prepare:
            say(f"ready: {manifest['runs']} runs, `sh run.sh` starts them")
            return 0
        try:
            deadline = begun + 60 * options.minutes
            return run_grids(manifest["grids"], of_grid, folder, environment, deadline)
        finally:
            count = pack_up(base / "work" / "outputs", base / ARCHIVE, options.models, digest)
            say(f"finished runs: {count}, in {base / ARCHIVE}")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: `sh run.sh` goes on where it stood", file=sys.stderr)
        return INTERRUPTED


def say(text: str) -> None:
    """A line of what is being done, at once."""
    print(text, flush=True)


def _options(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of `run.sh`, and what is left for `lib grid`."""
    parser = argparse.ArgumentParser(
        prog="sh run.sh",
        allow_abbrev=False,
        description="Run the bundle's grids; what is not listed here goes to `python -m lib grid`.",
    )
    parser.add_argument("--minutes", type=float, help="interrupt the runs after so many")
    parser.add_argument("--prepare", action="store_true", help="check and install, run nothing")
    parser.add_argument("--models", action="store_true", help="pack the checkpoints up, too")
    parser.add_argument("--work", help="folder to unpack and run in (default: that of run.sh)")
    options, others = parser.parse_known_args(words)
    if not (options.minutes > 0 and math.isfinite(options.minutes)):
        raise ValueError(f"--minutes must be above 0, got {options.minutes:g}")
    return options, others


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path, digest: str) -> dict:
    """What the bundle is made of.

    Raises:
        ValueError: it is missing, or not the one that belongs to `run.sh`.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing: copy all files of the bundle beside run.sh")
    if sha256(path) != digest:
        raise ValueError(f"{path} is damaged, or of another bundle than run.sh: copy it again")
    return json.loads(path.read_text(encoding="utf-8"))


def wrong_parts(here: Path, manifest: dict) -> list[str]:
    """The parts that are missing, or not what the manifest says, each with what is wrong."""
    found = []
    for archive in manifest["archives"]:
        for part in archive["parts"]:
            path = here / part["name"]
            if not path.is_file():
                found.append(f"{path.name} is missing")
            elif path.stat().st_size != part["bytes"]:
                size = path.stat().st_size
                found.append(f"{path.name} has {size:,} bytes instead of {part['bytes']:,}")
            elif sha256(path) != part["sha256"]:
                found.append(f"{path.name} is damaged")
    return found


def prepare(here: Path, manifest: dict, folder: Path) -> None:
    """Check and unpack the parts, and install the wheels, where that was not done before.

    Both appear whole or not at all, so that a second call, or one at the same time, is no harm.

    Raises:
        ValueError: a part is missing or damaged, Python is another than the wheels are for, or pip
            fails.
    """
    version = "{}.{}".format(*sys.version_info[:2])
    if manifest["wheels"] not in (None, version):
        raise ValueError(
            f"the wheels are for Python {manifest['wheels']}, this is {version}: name another,"
            f" PYTHON=python{manifest['wheels']} sh run.sh, or bundle with --python {version}"
        )
    project, site = folder / "project", folder / "site"
    if not project.is_dir():
        if wrong := wrong_parts(here, manifest):
            raise ValueError(f"{'; '.join(wrong)}: copy again what is named into {here}")
        unpack(here, manifest, project)
    if manifest["wheels"] and not site.is_dir():
        install(project / "wheels", site)


class Joined(io.RawIOBase):
    """The parts of an archive, read one after the other as one file."""

    def __init__(self, paths: list[Path]):
        self.files = [path.open("rb") for path in paths]

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes; 0 of them at the end."""
        while self.files:
            if count := self.files[0].readinto(buffer):  # type: ignore[attr-defined]
                return count
            self.files.pop(0).close()
        return 0


def unpack(here: Path, manifest: dict, project: Path) -> None:
    """Unpack all archives into a folder, which appears when every file in it has been checked.

    Raises:
        ValueError: a file is missing or another one; the message names it.
    """
    temporary = _temporary(project)
    try:
        for archive in manifest["archives"]:
            parts = [here / part["name"] for part in archive["parts"]]
            with tarfile.open(fileobj=io.BufferedReader(Joined(parts), 2**20), mode="r|gz") as tar:
                tar.extractall(temporary, **SAFE)
        for name, digest in manifest["files"].items():
            path = temporary / name
            if not path.is_file() or sha256(path) != digest:
                raise ValueError(f"{name} was not unpacked as it was packed: is the disk full?")
        _rename(temporary, project)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    say(f"unpacked {len(manifest['files'])} files into {project}")


def install(wheels: Path, site: Path) -> None:
    """Install wheels into a folder of their own, which appears when all are installed.

    Raises:
        ValueError: pip fails; the message holds its reason.
    """
    temporary = _temporary(site)
    found = sorted(map(str, wheels.glob("*.whl")))
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--no-compile", "--target", str(temporary), *found]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise ValueError(f"the wheels in {wheels} cannot be installed: {reason}")
        _rename(temporary, site)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    say(f"installed {len(found)} wheels into {site}")


def _temporary(folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    name = folder.with_name(f".{folder.name}.tmp-{os.uname().nodename}-{os.getpid()}")
    shutil.rmtree(name, ignore_errors=True)
    name.mkdir()
    return name


def _rename(temporary: Path, folder: Path) -> None:
    """Give a folder its name, unless another process was first."""
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def surroundings(folder: Path, outputs: Path) -> dict[str, str]:
    """The environment variables of the runs: the bundle's code, packages and data, no network."""
    project = folder / "project"
    first = [str(project), str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    found = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in first if path))
    found |= {"CSE_DATA": str(project / "data"), "CSE_OUTPUTS": str(outputs)}
    found |= {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    for name, place in (("HF_HUB_CACHE", "hub"), ("NLTK_DATA", "nltk")):
        if (project / place).is_dir():
            found[name] = str(project / place)
    return found


def check_modules(modules: list[str], environment: dict[str, str]) -> None:
    """Can everything be imported that the runs import?

    Raises:
        ValueError: it cannot; the message names what is missing.
    """
    command = [sys.executable, "-P", "-c", CHECK, *modules]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it ends without a word"])[-1]
        raise ValueError(
            f"{sys.executable} cannot run the bundle: {reason}: install what it lacks, or bundle"
            " anew with its `pip freeze` (--freeze; --torch brings torch)"
        )


def run_grids(
    grids: list[list[str]],
    more: list[str],
    folder: Path,
    environment: dict[str, str],
    deadline: float,
) -> int:
    """Run the grids one after the other until the deadline; the worst of their exit statuses."""
    statuses = []
    for words in grids:
        command = [sys.executable, "-m", "lib", "grid", *words, *more]
        statuses.append(run_until(command, folder / "project", environment, deadline))
        if statuses[-1] == INTERRUPTED:
            say("interrupted, or out of time: `sh run.sh` goes on where it stood")
            break
    return max(statuses, default=0)


def run_until(
    command: list[str], folder: Path, environment: dict[str, str], deadline: float
) -> int:
    """Run a command; interrupt it at the deadline or when this process is, end it a minute later.

    Returns:
        Its exit status, 130 if it was interrupted.
    """
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_hear_interrupts,
    )
    try:
        status = child.wait(max(0.0, deadline - time.monotonic()))
        return status if status >= 0 else 1
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        for number, seconds in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGKILL, None)):
            try:
                os.killpg(child.pid, number)
                child.wait(seconds)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                continue
            except ProcessLookupError:
                pass
            break
        return INTERRUPTED


def _hear_interrupts() -> None:
    """Undo what a shell does to its background jobs, which are deaf to interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def pack_up(outputs: Path, archive: Path, models: bool, digest: str) -> int:
    """Write the finished runs to an archive, with a list of their files' hashes; how many they are.

    Args:
        models: their checkpoints, too.
        digest: of the bundle's manifest, which is recorded.
    """
    listed: dict[str, dict[str, str]] = {}
    for metrics in sorted(outputs.glob("*/*/metrics.json")):
        run = metrics.parent
        kept = [run / name for name in FINISHED]
        if models:
            kept += [path for name in CHECKPOINTS for path in sorted((run / name).rglob("*"))]
        kept = [path for path in kept if path.is_file() and not path.name.startswith(".")]
        listed[f"{run.parent.name}/{run.name}"] = {
            path.relative_to(run).as_posix(): sha256(path) for path in kept
        }
    temporary = archive.with_name(f".{archive.name}.tmp-{os.uname().nodename}-{os.getpid()}")
    contents = temporary.with_name(f"{temporary.name}.json")
    try:
        text = json.dumps({"bundle": digest, "runs": listed}, indent=1)
        contents.write_text(text, encoding="utf-8")
        with tarfile.open(temporary, "w:gz") as tar:
            tar.add(contents, "runs.json", filter=_plain)
            for run_name, hashes in listed.items():
                for name in hashes:
                    place = f"{run_name}/{name}"
                    tar.add(outputs / place, place, filter=_plain)
        temporary.replace(archive)
    finally:
        contents.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)
    return len(listed)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without whose it is."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
