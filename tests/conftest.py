"""Settings of every test: an empty outputs folder, no hub, few threads, fixed seeds, real data on request."""

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

settings.register_profile("course", deadline=None)
settings.load_profile("course")

OUTPUTS = pytest.StashKey[str]()
REAL_DATA = "real_data"


def pytest_configure(config: pytest.Config) -> None:
    """Redirect outputs to an empty folder, whatever the caller has set, so that no earlier run can help a test."""
    processes = config.getoption("numprocesses", 0) or 1
    threads = str(max(1, min(2, os.cpu_count() or 1) // processes))
    for name, value in (("OMP_NUM_THREADS", threads), ("TOKENIZERS_PARALLELISM", "false"), ("HF_HUB_OFFLINE", "1")):
        os.environ.setdefault(name, value)
    folder = tempfile.mkdtemp(prefix="cse-outputs-")
    os.environ["CSE_OUTPUTS"] = folder
    config.stash[OUTPUTS] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the redirected outputs."""
    shutil.rmtree(config.stash[OUTPUTS], ignore_errors=True)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """nbval: outputs that differ from machine to machine are not compared."""
    if collector.path.suffix == ".ipynb" and hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr", "text/html", "image/png", "image/svg+xml")


def missing_data() -> str | None:
    """Why the real data cannot be used, or None."""
    folder = os.environ.get("CSE_DATA")
    if not folder:
        return "CSE_DATA is not set"
    return None if Path(folder).is_dir() else f"CSE_DATA names {folder}, which is not a folder"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks first, as they take longest; skip the tests on real data where there is none."""
    items.sort(key=lambda item: item.path.stem != "test_notebooks")
    if reason := missing_data():
        for item in items:
            if item.get_closest_marker(REAL_DATA):
                item.add_marker(pytest.mark.skip(reason=f"real data: {reason}"))


def pytest_terminal_summary(terminalreporter) -> None:
    """Say how many tests on real data ran and how many were skipped."""
    reports = terminalreporter.stats
    skipped = sum(REAL_DATA in report.keywords for report in reports.get("skipped", []))
    ran = sum(
        REAL_DATA in report.keywords and report.when == "call"
        for outcome in ("passed", "failed")
        for report in reports.get(outcome, [])
    )
    reason = missing_data()
    hint = f" ({reason}; set it to the folder of the sets)" if skipped and reason else ""
    terminalreporter.write_line(f"real_data tests: {ran} run, {skipped} skipped{hint}")


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


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An outputs folder of the test's own."""
    folder = tmp_path / "outputs"
    monkeypatch.setenv("CSE_OUTPUTS", str(folder))
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """The system's Chromium, or the one that `CHROMIUM` names, through Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("no Chromium: apt-get install chromium, or name one with CHROMIUM")
    with playwright.sync_playwright() as start:
        window = start.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield window
        window.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Folder of the project where pictures are kept to be looked at."""
    folder = paths.ROOT / "outputs" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
