"""Can the course run here? What is wrong, and what to do about it, before a notebook fails
half-way.

Command line: `python -m tools.check` (`make check`), with names of extras to ask for those too:
`classroom`, `book`. It needs nothing but Python, of any version from 3.8 on, so that it can say
that this one is too old.
"""

import json
import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
MEMORY_GIB = 3.5  # the largest notebook at mini needs 3.1; for tools/course.py, too
DISK_GIB = 1.0
PYTHONS = ((3, 11), (3, 13))
_INSTALL = (
    "`make setup`, or `pip install -c constraints.txt -e .[test]` in the environment that your"
    " notebooks use"
)


def python(version=None):
    """Is the interpreter one that every pinned package has a build for?"""
    version = tuple(version or sys.version_info[:2])
    if PYTHONS[0] <= version <= PYTHONS[1]:
        return []
    present, oldest = ("{}.{}".format(*v) for v in (version, PYTHONS[0]))
    return [
        f"Python {present} is not supported, {oldest} to 3.13 are: `PYTHON=python3.12 make setup`"
        " picks another one"
    ]


def packages(extras=(), root=ROOT):
    """Is everything installed, in the versions that the results were made with?"""
    declared = _declared(extras, root)
    pins = dict(
        re.findall(
            r"^([\w.-]+)==([\w.+!]+)\s*$",
            (root / "constraints.txt").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    missing, other = [], []
    for name in declared:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        pinned = pins.get(name, version)
        if version.partition("+")[0] != pinned.partition("+")[0]:
            other.append(f"{name} {version} instead of {pinned}")
    messages = []
    if missing:
        option = "[" + ",".join(extras) + "]" if extras else ""
        how = f"`pip install -c constraints.txt -e .{option}`" if extras else _INSTALL
        messages.append(f"not installed in {sys.prefix}: {', '.join(missing)}. {how}")
    if other:
        messages.append(
            f"other versions than the tested ones: {', '.join(other)}. Scores may differ;"
            f" {_INSTALL}"
        )
    return messages


def _declared(extras, root):
    text = (root / "pyproject.toml").read_text("utf-8")
    base = re.search(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE).group(1)
    section = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    known = dict(re.findall(r"^(\w+) = \[(.*?)\]$", section, re.MULTILINE))
    unknown = set(extras) - set(known)
    if unknown:
        raise ValueError(f"no extra {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    listed = re.findall(r'"([\w.-]+)', base + ",".join(known[extra] for extra in extras))
    return [name.replace("_", "-").lower() for name in listed]


def installation(root=ROOT):
    """Does `from lib import …` find this checkout, and not another folder of that name?"""
    installed = list(metadata.distributions(name="contrastive-sentence-embeddings"))
    if not installed:
        return [
            f"the course itself is not installed in {sys.prefix}, so notebooks will not find `lib`."
            f" {_INSTALL}"
        ]
    where = next(filter(None, (one.read_text("direct_url.json") for one in installed)), None)
    try:
        url = json.loads(where)["url"] if where else ""
    except (ValueError, KeyError, TypeError):
        url = ""
    folder = Path(unquote(re.sub(r"^file://", "", url))) if url.startswith("file://") else root
    if folder.exists() and folder.resolve() != root.resolve():
        return [f"`lib` comes from another checkout, {folder}. In {root}: {_INSTALL}"]
    return []


def kernel():
    """Does Jupyter's kernel "Python 3" belong to this environment?"""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return []  # `packages` says so
    install = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return [f"Jupyter has no kernel python3: {install}"]
    except Exception as error:  # its kernel.json is somebody's file
        return [f"Jupyter's kernel python3 cannot be read ({error!r}): {install}"]
    bin_folder = Path(sys.executable).parent
    if Path(command).name == command or Path(command).parent == bin_folder:
        return []
    return [
        f'the kernel "Python 3" starts {command}, not this environment. Choose another in Kernel →'
        f" Change Kernel, or: {sys.executable} -m ipykernel install --sys-prefix"
    ]


def memory(gib=None):
    """Is there memory for the largest notebook at the mini profile?"""
    if gib is None:
        try:
            text = Path("/proc/meminfo").read_text()
            gib = int(re.search(r"MemAvailable:\s+(\d+)", text).group(1)) / 2**20
        except (OSError, AttributeError):
            return []
    if gib >= MEMORY_GIB:
        return []
    return [
        f"{gib:.1f} GiB of memory are free, {MEMORY_GIB:g} are needed: close other programs or"
        " other kernels"
    ]


def disk(folder=None, gib=None):
    """Is there room for what a run writes?"""
    folder = Path(folder or os.environ.get("CSE_OUTPUTS") or ROOT / "outputs")
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        return [
            f"{there} is a file, so nothing can be written to {folder}: name another folder in"
            " CSE_OUTPUTS"
        ]
    gib = shutil.disk_usage(there).free / 2**30 if gib is None else gib
    messages = []
    if gib < DISK_GIB:
        messages.append(
            f"{gib:.1f} GiB are free on the disk of {folder}: make room, or name a folder in"
            " CSE_OUTPUTS"
        )
    if not os.access(there, os.W_OK):
        messages.append(f"{there} cannot be written: name another folder in CSE_OUTPUTS")
    return messages


def problems(extras=()):
    """Everything that is wrong, each with what to do."""
    return [*python(), *installation(), *packages(extras), *kernel(), *memory(), *disk()]


def main(arguments=None):
    """Print what is wrong; exit status 1 if anything is, 2 for an unknown extra."""
    extras = tuple(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help"} & set(extras):
        print(__doc__)
        return 0
    try:
        messages = problems(extras)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in messages:
        print(f"* {line}")
    print(
        f"{len(messages)} problem{'s' * (len(messages) != 1)} found"
        if messages
        else "ready: `make lab` opens the notebooks"
    )
    return int(bool(messages))


if __name__ == "__main__":
    sys.exit(main())
