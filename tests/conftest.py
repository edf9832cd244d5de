"""Settings of every test: an empty outputs folder, no hub, few threads, fixed seeds, a known
precision.

What a test needs beyond `make setup` (real data, WordNet, Chromium) is a marker; where it is
missing the test is skipped, and the last lines of the report count such tests and say what to do.

Generated examples are the same in every run; `--hypothesis-profile=search` looks for new ones.
"""

import importlib.util
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from lib import paths
from tools.browser import chromium

settings.register_profile("course", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("course")

OUTPUTS = pytest.StashKey[str]()
PRECISIONS = ("fp32", "bf16")


def pytest_configure(config: pytest.Config) -> None:
    """Redirect outputs to an empty folder, so that no earlier run can help a test; share the cores
    among processes."""
    if (wished := os.environ.get("CSE_AUTO_PRECISION", "fp32")) not in PRECISIONS:
        raise pytest.UsageError(
            f"CSE_AUTO_PRECISION (make: PRECISION) is {wished!r}: name fp32 or bf16"
        )
    processes = config.getoption("numprocesses", 0) or 1
    threads = str(max(1, min(2, os.cpu_count() or 1) // processes))
    for name, value in (
        ("OMP_NUM_THREADS", threads),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("HF_HUB_OFFLINE", "1"),
    ):
        os.environ.setdefault(name, value)
    folder = tempfile.mkdtemp(prefix="cse-outputs-")
    os.environ["CSE_OUTPUTS"] = folder
    config.stash[OUTPUTS] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the redirected outputs."""
    if OUTPUTS in config.stash:
        shutil.rmtree(config.stash[OUTPUTS], ignore_errors=True)


def pytest_report_header() -> str:
    """What `precision="auto"` means in these tests."""
    forced = os.environ.get("CSE_AUTO_PRECISION")
    return f"precision auto: {forced or 'bf16 if this processor has units for it, else fp32'}"


def pytest_collectstart(collector: pytest.Collector) -> None:
    """nbval: outputs that differ from machine to machine are not compared."""
    if collector.path.suffix == ".ipynb" and hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr", "text/html", "image/png", "image/svg+xml")


# --- what a machine may lack
# -------------------------------------------------------------------------------


def missing_data() -> str | None:
    """Why the real data cannot be used, or None."""
    folder = os.environ.get("CSE_DATA")
    if not folder:
        return "CSE_DATA is not set: set it to the folder of the sets"
    return None if Path(folder).is_dir() else f"CSE_DATA names {folder}, which is not a folder"


def missing_wordnet() -> str | None:
    """Why WordNet cannot be read, or None."""
    from lib.augment.edits import wordnet_folder

    try:
        wordnet_folder()
    except FileNotFoundError as error:
        return str(error)
    return None


def missing_browser() -> str | None:
    """Why no browser can be started, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: run `make setup`"
    return (
        None
        if chromium()
        else "no Chromium: install the system's chromium, or name one with CHROMIUM"
    )


def missing_gpu() -> str | None:
    """Why nothing can be computed on a GPU, or None."""
    import torch

    return None if torch.cuda.is_available() else "PyTorch sees no GPU here"


NEEDS = {
    "real_data": missing_data,
    "wordnet": missing_wordnet,
    "browser": missing_browser,
    "cuda": missing_gpu,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks first, as they take longest; skip what this machine has not got."""
    items.sort(key=lambda item: item.path.stem != "test_notebooks")
    for need, missing in NEEDS.items():
        own = [item for item in items if item.get_closest_marker(need)]
        if own and (reason := missing()):
            for item in own:
                item.add_marker(pytest.mark.skip(reason=f"{need}: {reason}"))


def pytest_terminal_summary(terminalreporter) -> None:
    """Say how many tests with a need ran, how many were skipped and why, and how many others were
    skipped."""
    reports = terminalreporter.stats
    skipped = reports.get("skipped", [])
    ran = [
        r for outcome in ("passed", "failed") for r in reports.get(outcome, []) if r.when == "call"
    ]
    for need, missing in NEEDS.items():
        without, done = (
            sum(need in report.keywords for report in group) for group in (skipped, ran)
        )
        if without or done:
            reason = f" ({missing()})" if without else ""
            terminalreporter.write_line(f"{need} tests: {done} run, {without} skipped{reason}")
    if others := sum(not any(need in report.keywords for need in NEEDS) for report in skipped):
        terminalreporter.write_line(f"other tests: {others} skipped (pytest -rs says why)")


# --- fixtures
# ----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """The same random numbers for a test whatever ran before it."""
    random.seed(0)
    np.random.seed(0)
    try:
        import torch
    except ImportError:
        yield
        return
    torch.manual_seed(0)
    yield


@pytest.fixture(params=PRECISIONS)
def auto_precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `precision="auto"` means, on any processor: fp32 in one run of the test and bf16 in
    another.

    Processes and kernels that the test starts inherit it.
    """
    monkeypatch.setenv("CSE_AUTO_PRECISION", request.param)
    return request.param


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An outputs folder of the test's own."""
    folder = tmp_path / "outputs"
    monkeypatch.setenv("CSE_OUTPUTS", str(folder))
    return folder


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mini profile on 60 sentences and 60 pairs; gives an outputs folder."""
    folder = tmp_path / "mini"
    folder.mkdir()
    for name in ("corpus.txt", "sts_dev.tsv", "sts_test.tsv", "thesaurus.tsv"):
        lines = (paths.MINI / name).read_text(encoding="utf-8").splitlines()[:61]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(paths, "MINI", folder)
    return tmp_path / "outputs"


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium, through Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as start:
        window = start.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield window
        window.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Folder of the project where pictures are kept to be looked at."""
    folder = paths.ROOT / "outputs" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
