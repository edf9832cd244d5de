"""What only other machines run (GitHub, Docker, pre-commit, Kubernetes): it parses, and what it
names exists."""

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from lib import paths
from tools import sizes

FORMS = sorted((paths.ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FILES = [
    *sorted((paths.ROOT / ".github" / "workflows").glob("*.yml")),
    *FORMS,
    paths.ROOT / ".github" / "pull_request_template.md",
    paths.ROOT / ".pre-commit-config.yaml",
    paths.ROOT / "binder" / "environment.yml",
    paths.ROOT / "Dockerfile",
    *sorted((paths.ROOT / "workflow" / "profiles").glob("*/config.yaml")),
]
INSTALLED = {"venv", "pip"}  # of Python itself


def text(name: str | Path) -> str:
    return (paths.ROOT / name).read_text(encoding="utf-8")


def parsed(name: str | Path) -> Any:
    return yaml.safe_load(text(name))


def verbs() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*  ## ", text("Makefile"), re.M))


def steps() -> Iterator[dict[str, Any]]:
    for job in parsed(".github/workflows/tests.yml")["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_parses_and_the_commands_it_names_exist(path: Path) -> None:
    content = text(path)
    if path.suffix in (".yml", ".yaml"):
        assert isinstance(yaml.safe_load(content), dict)
    shown = set(re.findall(r"(?:`|run: )make ([a-z][a-z-]*)", content))
    assert shown <= verbs()
    modules = set(re.findall(r"python -m ([\w.]+)", content)) - INSTALLED
    assert [name for name in sorted(modules) if find_spec(name) is None] == []


def test_programs_that_are_started_by_name_are_installed_by_the_project() -> None:
    commands = "\n".join(step.get("run", "") for step in steps())
    started = set(re.findall(r"\.venv/Scripts/([\w-]+)", commands)) - {"python"}
    hooks = [
        hook["entry"].split()[0] for hook in parsed(".pre-commit-config.yaml")["repos"][0]["hooks"]
    ]
    started |= set(hooks) - {"python"}
    started |= set(re.findall(r'^CMD \["(\w+)"', text("Dockerfile"), re.M))
    scripts = {entry.name for entry in entry_points(group="console_scripts")}
    assert started == {"ruff", "mypy", "lint-imports", "jupyter"}
    assert (
        started - scripts <= {"ruff"} and find_spec("ruff") is not None
    )  # ruff is a binary, no entry point


def test_the_workflow_has_few_rights_and_an_end() -> None:
    workflow = parsed(".github/workflows/tests.yml")
    assert workflow["permissions"] == {"contents": "read"} and workflow["concurrency"]["group"]
    assert set(workflow.get("on", workflow.get(True))) == {
        "push",
        "pull_request",
        "workflow_dispatch",
    }
    assert all(job["timeout-minutes"] <= 120 for job in workflow["jobs"].values())
    matrix = workflow["jobs"]["units"]["strategy"]
    assert matrix["fail-fast"] is False
    assert matrix["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


def test_windows_runs_what_make_test_fast_runs() -> None:
    """The same commands in the same order, as the Makefile has them."""
    recipes = dict(re.findall(r"^(lint|test-fast):.*\n((?:\t.*\n)*)", text("Makefile"), re.M))
    makefile = recipes["lint"] + recipes["test-fast"]
    wanted = [line.strip().replace("$(JOBS)", "2") for line in makefile.splitlines()]
    wanted = [
        line.replace("$(PYTEST)", "$(BIN)/python -m pytest").replace("$(BIN)/", "")
        for line in wanted
    ]
    [windows] = [step for step in steps() if "-m pytest" in step.get("run", "")]
    assert windows["run"].replace(".venv/Scripts/", "").splitlines() == wanted
    assert windows["env"] == {"HF_HUB_OFFLINE": "1"} and "PYTEST := HF_HUB_OFFLINE=1 " in text(
        "Makefile"
    )


def test_every_way_in_installs_the_extras_that_setup_installs() -> None:
    [setup] = re.findall(r"-e '\.\[(.*)\]'", text("Makefile"))
    [windows] = re.findall(r'-e "\.\[(.*)\]"', text(".github/workflows/tests.yml"))
    [page] = re.findall(r'-e "\.\[(.*)\]"', text("book/use.md"))
    [docker] = re.findall(r"-e '\.\[(.*)\]'", text("Dockerfile"))
    assert windows == page == setup
    assert set(docker.split(",")) == set(setup.split(",")) - {
        "browser"
    }  # the image has no Chromium


@pytest.mark.parametrize(
    "path", [form for form in FORMS if form.name != "config.yml"], ids=lambda path: path.stem
)
def test_a_form_is_as_github_wants_it(path: Path) -> None:
    form = parsed(path)
    assert (
        form["name"]
        and form["description"]
        and set(form.get("labels", [])) <= {"bug", "enhancement"}
    )
    assert {field["type"] for field in form["body"]} <= {
        "textarea",
        "input",
        "dropdown",
        "checkboxes",
    }
    assert len({field["id"] for field in form["body"]}) == len(form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_hooks_download_nothing() -> None:
    repositories = parsed(".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    assert {hook["language"] for hook in repositories[0]["hooks"]} == {"system"}


def test_kubernetes_starts_the_image_that_its_comment_builds_from_the_dockerfile() -> None:
    profile = "workflow/profiles/kubernetes/config.yaml"
    settings = parsed(profile)
    image = settings["container-image"]
    assert f"-t {image} ." in text(profile) and f"docker push {image}" in text(profile)
    [name] = re.findall(r"docker build -t (\S+) \.", text("Dockerfile"))
    assert image.split("/")[-1] == f"{name}:latest"
    [folder] = re.findall(r"^WORKDIR (.*)$", text("Dockerfile"), re.M)
    assert settings["kubernetes-persistent-volumes"] == [f"my-claim:{folder}"]


def test_the_image_gets_what_the_install_reads_and_no_fetched_data() -> None:
    ignored = text(".dockerignore").splitlines()
    copied = {
        word
        for line in re.findall(r"^COPY (.*) \S+$", text("Dockerfile"), re.M)
        for word in line.split()
    }
    named = {word for word in copied if not word.startswith("--") and word != "."}
    assert "constraints.txt" in named and all((paths.ROOT / word).is_file() for word in named)
    assert not named & set(ignored)
    kept = [
        line
        for line in text(".gitignore").splitlines()
        if line.startswith(("data/", "assignments/", "outputs/"))
    ]
    assert [line for line in kept if line.rstrip("/") not in ignored] == []


def test_a_file_that_is_too_large_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for path, size in ((small, sizes.LIMIT), (large, sizes.LIMIT + 1)):
        with path.open("wb") as file:
            file.truncate(size)
    assert sizes.main([str(small), str(tmp_path / "gone")]) == 0
    assert sizes.main([str(small), str(large)]) == 1
    assert capsys.readouterr().err == f"{large}: 48.0 MiB, more than 48\n"


def test_no_tracked_file_is_too_large() -> None:
    if not (paths.ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    assert sizes.main([]) == 0
