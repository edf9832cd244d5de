"""The lists of versions agree, and what the code imports is declared."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lib import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11.4", "3.12.7", "3.13.1")
PLATFORMS = (("linux", "posix", "Linux"), ("darwin", "posix", "Darwin"), ("win32", "nt", "Windows"))


def declared(*left_out: str) -> dict[str, Requirement]:
    """The direct dependencies, those of the extras included."""
    extras = PROJECT["optional-dependencies"]
    groups = [lines for extra, lines in extras.items() if extra not in left_out]
    found = [Requirement(line) for lines in [PROJECT["dependencies"], *groups] for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def pins() -> dict[str, list[Requirement]]:
    """The lines of `constraints.txt`, by package."""
    found: dict[str, list[Requirement]] = {}
    for line in (paths.ROOT / "constraints.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            requirement = Requirement(line)
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def test_every_dependency_is_pinned_to_one_version_within_its_range() -> None:
    for name, lines in pins().items():
        for pin in lines:
            assert re.fullmatch(r"==[\w.!+]+", str(pin.specifier)), f"{name} is not pinned"
    for name, requirement in declared().items():
        assert name in pins(), f"{name} is not in constraints.txt"
        assert all(requirement.specifier.contains(str(pin.specifier)[2:]) for pin in pins()[name])


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda p: p[0])
def test_one_pin_applies_to_an_environment(python: str, platform: tuple[str, str, str]) -> None:
    environment = {"python_version": python.rpartition(".")[0], "python_full_version": python}
    environment |= zip(("sys_platform", "os_name", "platform_system"), platform, strict=True)
    for name, lines in pins().items():
        active = [pin for pin in lines if pin.marker is None or pin.marker.evaluate(environment)]
        assert len(active) <= 1, f"{name}: {active}"
        assert active or name not in declared(), f"{name} has no version on {platform[0]}"


def test_environment_yml_has_the_same_pins() -> None:
    content = yaml.safe_load((paths.ROOT / "environment.yml").read_text(encoding="utf-8"))
    entries = content["dependencies"][-1]["pip"]
    listed = [Requirement(entry) for entry in entries if not entry.startswith("--")]
    wanted = {name: str(pins()[name][0].specifier) for name in declared("generate")}
    assert {canonicalize_name(one.name): str(one.specifier) for one in listed} == wanted


def test_what_lib_imports_is_declared() -> None:
    distributions = packages_distributions()
    undeclared = set()
    for path in sorted(paths.ROOT.glob("lib/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            tops = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"lib"}
            for top in tops:
                owners = {canonicalize_name(owner) for owner in distributions.get(top, [top])}
                if not owners & set(declared()):
                    undeclared.add(f"{path.name}: {top}")
    assert undeclared == set()


def test_the_python_of_the_front_page_prints_what_stands_beside_it(capsys) -> None:
    page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(block, {})
    printed = [float(number) for number in capsys.readouterr().out.split()]
    beside = [float(number) for number in block.rpartition("# ")[2].split()]
    assert printed == pytest.approx(beside, abs=0.011)  # bf16 moves the second decimal by one


def test_the_version_is_the_same_wherever_it_stands() -> None:
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (paths.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d[\d.]*)\] - (.*)$", changelog, re.M)
    entry = (paths.ROOT / "README.md").read_text(encoding="utf-8").partition("```bibtex")[2]
    assert citation["version"] == PROJECT["version"] and f"{{{PROJECT['version']}}}" in entry
    assert f"{{{citation['title']}}}" in entry
    assert releases[0] == (citation["version"], citation["date-released"])
