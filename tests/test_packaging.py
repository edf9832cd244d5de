"""The three lists of versions agree, and what the code imports is declared."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from lib import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11.4", "3.11.9", "3.12.7", "3.13.1")
PLATFORMS = (("linux", "posix", "Linux"), ("darwin", "posix", "Darwin"), ("win32", "nt", "Windows"))


def constraints() -> list[Requirement]:
    lines = (paths.ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def declared(extras: bool = True) -> dict[str, Requirement]:
    groups = [
        PROJECT["dependencies"],
        *(PROJECT["optional-dependencies"].values() if extras else []),
    ]
    return {canonicalize_name(r.name): r for group in groups for r in map(Requirement, group)}


def pins() -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for requirement in constraints():
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def pip_lines(name: str = "environment.yml") -> list[tuple[str, str]]:
    """Entries of a conda environment's pip section with their comments."""
    section = (paths.ROOT / name).read_text(encoding="utf-8").split("- pip:\n")[1]
    lines = [
        line.strip().removeprefix("- ").partition("  # ")
        for line in section.splitlines()
        if line.strip()
    ]
    return [(entry, reason) for entry, _, reason in lines]


def test_every_constraint_is_one_exact_version() -> None:
    for requirement in constraints():
        assert re.fullmatch(r"==[\w.!+]+", str(requirement.specifier)), (
            f"{requirement} is not pinned"
        )


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda p: p[0])
def test_at_most_one_pin_applies_to_an_environment(
    python: str, platform: tuple[str, str, str]
) -> None:
    environment = {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
        "sys_platform": platform[0],
        "os_name": platform[1],
        "platform_system": platform[2],
    }
    for name, candidates in pins().items():
        active = [r for r in candidates if r.marker is None or r.marker.evaluate(environment)]
        assert len(active) <= 1, f"{name}: {active}"
    for name in declared():
        active = [r for r in pins()[name] if r.marker is None or r.marker.evaluate(environment)]
        assert len(active) == 1, f"{name} has no version on {platform[0]}, Python {python}"


def test_every_dependency_is_pinned_within_its_range() -> None:
    for name, requirement in declared().items():
        assert name in pins(), f"{name} is not in constraints.txt"
        assert all(requirement.specifier.contains(str(pin.specifier)[2:]) for pin in pins()[name])


def test_environment_yml_has_the_same_pins_and_a_reason_each() -> None:
    wanted = declared(extras=False)
    for extra in set(PROJECT["optional-dependencies"]) - {"generate"}:
        wanted |= {
            canonicalize_name(Requirement(r).name): Requirement(r)
            for r in PROJECT["optional-dependencies"][extra]
        }
    options = [entry for entry, _ in pip_lines() if entry.startswith("--")]
    assert options == ["--constraint constraints.txt", "--editable ."]
    listed = {}
    for entry, reason in pip_lines():
        assert len(reason.split()) >= 1, f"{entry} has no reason"
        if not entry.startswith("--"):
            requirement = Requirement(entry)
            listed[canonicalize_name(requirement.name)] = str(requirement.specifier)
    assert set(listed) == set(wanted)
    assert listed == {name: str(pins()[name][0].specifier) for name in wanted}


@pytest.mark.parametrize("name", ["environment.yml", "binder/environment.yml"])
def test_environment_yml_is_python_pip_and_one_pip_section(name: str) -> None:
    content = yaml.safe_load((paths.ROOT / name).read_text(encoding="utf-8"))
    python, pip, section = content["dependencies"]
    assert pip == "pip" and list(section) == ["pip"]
    assert (
        Version(python.removeprefix("python="))
        in Requirement("x" + PROJECT["requires-python"]).specifier
    )


def test_binder_takes_the_pinned_torch_for_the_cpu_and_everything_else_by_constraint() -> None:
    entries = [entry for entry, _ in pip_lines("binder/environment.yml")]
    [torch] = [Requirement(entry) for entry in entries if not entry.startswith("-")]
    assert torch.name == "torch" and str(torch.specifier) == f"{pins()['torch'][0].specifier}+cpu"
    options = dict(entry.split() for entry in entries if entry.startswith("-"))
    assert options.pop("--extra-index-url") == "https://download.pytorch.org/whl/cpu"
    here = paths.ROOT / "binder"  # pip is started there
    assert (here / options.pop("-c")).resolve() == (paths.ROOT / "constraints.txt").resolve()
    assert (here / options.pop("-e")).resolve() == paths.ROOT.resolve() and not options


def test_the_workflow_tests_the_pythons_that_pyproject_allows() -> None:
    text = (paths.ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    tested = yaml.safe_load(text)["jobs"]["units"]["strategy"]["matrix"]["python"]
    allowed = Requirement("x" + PROJECT["requires-python"]).specifier
    assert tested == [minor for minor in (f"3.{n}" for n in range(40)) if minor in allowed]
    assert {python.rpartition(".")[0] for python in PYTHONS} == set(tested)


def test_installed_versions_are_the_pinned_ones() -> None:
    wrong = []
    for name in declared(extras=False):
        public = Version(version(name)).public
        if public not in {str(pin.specifier)[2:] for pin in pins()[name]}:
            wrong.append(f"{name} {public}")
    assert wrong == [], "run `make setup`"


def test_what_lib_imports_is_declared() -> None:
    distributions = packages_distributions()
    undeclared = set()
    for path in sorted([*paths.ROOT.glob("lib/**/*.py"), *paths.ROOT.glob("workflow/*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for top in (
                {name.split(".")[0] for name in names}
                - set(sys.stdlib_module_names)
                - {"lib", "workflow"}
            ):
                owners = {canonicalize_name(owner) for owner in distributions.get(top, [top])}
                if not owners & set(declared()):
                    undeclared.add(f"{path.name}: {top}")
    assert undeclared == set()


def test_verbs_have_a_line_of_help() -> None:
    makefile = (paths.ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony is not None
    for verb in phony.group(1).split():
        assert re.search(rf"^{verb}:.*  ## \w", makefile, re.M), f"{verb} has no help"


def test_licences_are_named() -> None:
    assert (paths.ROOT / "LICENSE").read_text().startswith("MIT License")
    text = (paths.ROOT / "LICENSES.md").read_text()
    for name in ("MIT", "CC BY 4.0", "CC BY-SA 4.0", "data/mini/", "data/mini-bert/"):
        assert name in text


def test_the_version_is_the_same_wherever_it_stands() -> None:
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["license"] and citation["version"] == PROJECT["version"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert [set(author) for author in citation["authors"]] == [{"name"}]
    changelog = (paths.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d[\d.]*)\] - (.*)$", changelog, re.M)
    assert releases[0] == (citation["version"], citation["date-released"])


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "assignments/README.md", "benchmarks/README.md"]
)
def test_commands_in_the_pages_are_there(page: str) -> None:
    """`make VERB` and `python -m MODULE`, wherever a page shows one."""
    text = (paths.ROOT / page).read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z-]+):.*  ## ", (paths.ROOT / "Makefile").read_text(), re.M))
    shown = set(re.findall(r"(?:^|`|&& )make ([a-z][a-z-]*)", text, re.M))
    assert shown <= verbs
    modules = set(re.findall(r"python -m ([\w.]+)", text)) - {"venv", "pip"}
    assert [name for name in sorted(modules) if find_spec(name) is None] == []
    assert shown | modules
