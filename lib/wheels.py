"""Which packages a machine without a network lacks for a verb of `lib`, and their wheels.

What `lib` needs is read from its own `import` lines, what those packages need in turn from their
wheels; versions are those of `constraints.txt`.
"""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from lib import paths

GRID = "lib.commands.grid"
MACHINES = ("x86_64", "aarch64")
GLIBC = range(28, 4, -1)  # of manylinux tags: 2.28 is what clusters of the last years have
Download = Callable[[list[str], "Target", Path], None]


@dataclass(frozen=True)
class Target:
    """The machine that wheels are for: Linux, CPython.

    Attributes:
        python: version, "3.12" or "3.12.4"; machine: a name of `MACHINES`.
        has: what is installed there, name → version, None where that is not known; None: nobody has
            said.

    Raises:
        ValueError: a Python that the project does not run on, or an unknown machine.
    """

    python: str
    machine: str = "x86_64"
    has: Mapping[str, str | None] | None = None

    def __post_init__(self) -> None:
        allowed = _project()["requires-python"]
        if not re.fullmatch(r"3\.\d+(\.\d+)?", self.python):
            raise ValueError(f"--python {self.python}: a version is expected, such as 3.12")
        if Version(self.python) not in SpecifierSet(allowed):
            raise ValueError(f"--python {self.python}: the project needs Python {allowed}")
        if self.machine not in MACHINES:
            raise ValueError(f"--machine {self.machine}: choose one of {', '.join(MACHINES)}")

    @property
    def minor(self) -> str:
        """Its Python without the last number."""
        return ".".join(self.python.split(".")[:2])

    def environment(self, extra: str = "") -> dict[str, str]:
        """What markers such as `python_version < "3.12"` are held against."""
        full = self.python if self.python.count(".") == 2 else f"{self.python}.99"
        known = {"python_version": self.minor, "python_full_version": full, "extra": extra}
        known |= {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
        known |= {"platform_machine": self.machine, "implementation_name": "cpython"}
        return known | {"platform_python_implementation": "CPython"}

    def applies(self, requirement: Requirement, extras: Collection[str] = ()) -> bool:
        """Whether a requirement holds there."""
        marker = requirement.marker
        return marker is None or any(marker.evaluate(self.environment(e)) for e in ("", *extras))


@cache
def _project() -> dict:
    return tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def frozen(path: Path) -> dict[str, str | None]:
    """The packages of a `pip freeze`: canonical name → version, None where the line tells none.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line that `pip freeze` does not write; the message names file and line.
    """
    if not path.is_file():
        raise FileNotFoundError(f"--freeze {path}: no such file, `pip freeze` on the target is it")
    found: dict[str, str | None] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("\ufeff")
        if not text or text.startswith(("#", "-")):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise ValueError(
                f"{path}, line {number}: {text[:60]!r} is no line of `pip freeze`"
            ) from error
        found[canonicalize_name(requirement.name)] = _version(requirement)
    return found


def _version(requirement: Requirement) -> str | None:
    """The version that a line of `pip freeze` tells: `name==1.0`, or `name @ …/name-1.0….whl`."""
    pinned = [s.version for s in requirement.specifier if s.operator in ("==", "===")]
    file = (requirement.url or "").partition("#")[0].rpartition("/")[2]
    try:
        return str(Version(pinned[0])) if pinned else str(parse_wheel_filename(file)[1])
    except (InvalidVersion, InvalidWheelFilename):
        return None


def pins(target: Target) -> dict[str, str]:
    """Canonical name → version of `constraints.txt`, for one machine."""
    lines = (paths.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in found
        if target.applies(one)
    }


def imported(module: str = GRID) -> dict[str, str]:
    """What a module of `lib` imports, itself or through others of `lib`, be it in a function.

    Returns:
        The name of each module from outside, and of the distribution that brings it.

    Example:
        >>> imported("lib.data.files")
        {'filelock': 'filelock', 'psutil': 'psutil'}
    """
    brings, todo = packages_distributions(), [module]
    seen: set[str] = set()
    outside: set[str] = set()
    while todo:
        name = todo.pop()
        path = _source(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        names = _import_lines(path) | ({name.rpartition(".")[0]} - {""})
        todo += [other for other in names if other.split(".")[0] == "lib"]
        outside |= {other.split(".")[0] for other in names} - {"lib"}
    found = sorted(outside - sys.stdlib_module_names)
    return {name: canonicalize_name(brings[name][0]) for name in found if name in brings}


def _source(module: str) -> Path | None:
    place = paths.ROOT.joinpath(*module.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def _import_lines(path: Path) -> set[str]:
    """The names in a file's `import` lines; of `from a import b` both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def roots(more: Collection[str] = (), module: str = GRID) -> list[Requirement]:
    """The packages that a module of `lib` needs itself, each with the versions that will do.

    These are those of `pyproject.toml`; where it names none, the one of `constraints.txt` and later
    ones of the same major version.

    Args:
        more: of the optional ones, those that are needed, too.
    """
    asked = {canonicalize_name(name) for name in more}
    wanted = set(imported(module).values())
    here = Target("{}.{}".format(*sys.version_info[:2]))
    fixed, extras = pins(here), _project()["optional-dependencies"].values()
    found = []
    for requirement in map(Requirement, _project()["dependencies"]):
        if canonicalize_name(requirement.name) in wanted | asked:
            found.append(_with_versions(requirement, fixed))
    for requirement in map(Requirement, (one for group in extras for one in group)):
        if canonicalize_name(requirement.name) in asked:
            found.append(_with_versions(requirement, fixed))
    return found


def _with_versions(requirement: Requirement, fixed: Mapping[str, str]) -> Requirement:
    if requirement.specifier:
        return requirement
    pinned = Version(fixed[canonicalize_name(requirement.name)])
    return Requirement(f"{requirement.name}>={pinned},<{pinned.major + 1}")


def import_names(wanted: Iterable[Requirement]) -> set[str]:
    """The modules by which a grid imports these packages."""
    names = {canonicalize_name(one.name) for one in wanted}
    return {module for module, package in imported().items() if package in names}


def is_there(requirement: Requirement, target: Target) -> bool:
    """Whether the target has a package in a version that will do."""
    version = (target.has or {}).get(canonicalize_name(requirement.name))
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def gather(
    wanted: Iterable[Requirement],
    target: Target,
    folder: Path,
    without: Collection[str] = ("torch",),
    download: Download | None = None,
) -> list[Path]:
    """Bring the wheels of some packages, and of what they need, that the target lacks.

    Args:
        folder: where they go.
        without: packages that are never brought, whatever the target has.
        download: brings some, as `download` does.

    Raises:
        ValueError: there is no such wheel for this target.
    """
    fixed, bring = pins(target), download or _download
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(wanted)
    seen: set[str] = set()
    while wanted:
        wheels = _wheels(folder)
        lacking = {}
        for one in wanted:
            name = canonicalize_name(one.name)
            if name not in without and name not in wheels and not is_there(one, target):
                lacking[name] = f"{name}=={fixed[name]}" if name in fixed else _plain(one)
        if lacking:
            bring(sorted(lacking.values()), target, folder)
            wheels = _wheels(folder)
        following = []
        for one in wanted:
            name = canonicalize_name(one.name)
            for other in _needs(wheels[name], one.extras, target) if name in wheels else ():
                if str(other) not in seen:
                    seen.add(str(other))
                    following.append(other)
        wanted = following
    return sorted(_wheels(folder).values())


def _plain(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def name_of(wheel: Path) -> str:
    """Canonical name of a wheel's package."""
    return str(parse_wheel_filename(wheel.name)[0])


def _wheels(folder: Path) -> dict[str, Path]:
    return {name_of(path): path for path in folder.glob("*.whl")}


def _needs(wheel: Path, extras: Collection[str], target: Target) -> list[Requirement]:
    """What a wheel says that it needs, on this target and with these extras."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        name = next(n for n in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        lines = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    return [one for one in map(Requirement, lines) if target.applies(one, extras)]


def _download(requirements: list[str], target: Target, folder: Path) -> None:
    """`pip download`, as if on the target."""
    tags = [f"manylinux_2_{minor}_{target.machine}" for minor in GLIBC]
    tags += [f"manylinux2014_{target.machine}", f"linux_{target.machine}"]
    options = ["--only-binary=:all:", "--no-deps", "--implementation", "cp", "--quiet"]
    options += ["--python-version", target.minor, "--dest", str(folder)]
    options += [word for tag in tags for word in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or done.stderr.splitlines() or ["pip failed"])[-1].removeprefix("ERROR: ")
        raise ValueError(
            f"the wheels for Python {target.python} on {target.machine} cannot be brought:"
            f" {reason}: give --freeze if the target has it, or --no-wheels"
        )
