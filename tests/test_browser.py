"""JupyterLab in a real browser: open a notebook, run it, move its slider. `make test-browser`, not
part of `make test`.

Chromium is the system's (`CHROMIUM` names another); screenshots go to `outputs/browser/`.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from lib import paths
from tools import lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]

MINUTES = 60_000
PROMPTS = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.textContent)"


@dataclass
class Server:
    """A running JupyterLab: its address, token, and the folder it serves."""

    url: str
    token: str
    folder: Path

    def sessions(self) -> list:
        """What runs there."""
        with urllib.request.urlopen(f"{self.url}api/sessions?token={self.token}") as answer:
            return json.load(answer)

    def wait_until_idle(self, name: str, seconds: int = 120) -> None:
        """Return when the notebook has a kernel that is not busy."""
        state = "not started"
        for _ in range(2 * seconds):
            for session in self.sessions():
                if session["path"] == f"{name}.ipynb":
                    state = session["kernel"]["execution_state"]
            if state == "idle":
                return
            time.sleep(0.5)
        raise TimeoutError(f"the kernel of {name} is {state}")


@contextmanager
def _lab(folder: Path, work: Path) -> Iterator[Server]:
    """JupyterLab on the loopback device with a token, started in `work`; its own files are kept in
    `folder`."""
    settings = folder / "settings"
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text(json.dumps({"windowingMode": "none"}))  # every cell is in the page
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab"]
    command += ["--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root"]
    command += [f"--ServerApp.root_dir={work}", f"--IdentityProvider.token={token}"]
    command += [f"--LabApp.user_settings_dir={settings}"]
    command += [f"--LabApp.workspaces_dir={folder / 'workspaces'}"]
    environment = {**os.environ, "JUPYTER_CONFIG_PATH": str(lab.CONFIGURATION)}
    environment["JUPYTER_RUNTIME_DIR"] = str(folder / "runtime")
    environment["CSE_OUTPUTS"] = str(folder / "outputs")
    environment.pop("CSE_DATA", None)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=work, env=environment, stdout=log, stderr=log)
    try:
        yield Server(_address(folder, process), token, work)
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("lab")
    work = folder / "work"
    shutil.copytree(paths.NOTEBOOKS, work)
    for path in work.glob("*.ipynb"):  # what is there afterwards was made here
        node = nbformat.read(path, as_version=4)
        for cell in node.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(node, path)
    with _lab(folder, work) as started:
        yield started


def _address(folder: Path, process: subprocess.Popen) -> str:
    for _ in range(120):
        found = re.search(r"http://127\.0\.0\.1:\d+/", (folder / "log").read_text())
        if found and list((folder / "runtime").glob("jpserver-*.json")):
            return found[0]
        assert process.poll() is None, (folder / "log").read_text()
        time.sleep(0.5)
    raise TimeoutError((folder / "log").read_text())


@pytest.fixture(scope="module")
def run_all(browser, server) -> Callable:
    """Open a notebook, run all its cells, save: its page and the saved notebook. Each notebook is
    run once.

    Each has a workspace of its own: JupyterLab would restore the other's tab beside it.
    """

    @cache
    def opened(name: str):
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        address = f"{server.url}lab/workspaces/{name}/tree/{name}.ipynb?token={server.token}"
        page.goto(address, timeout=2 * MINUTES)
        page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=2 * MINUTES)
        server.wait_until_idle(name)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.wait_for_function(f"() => {PROMPTS}.some(p => p.includes('*'))", timeout=MINUTES)
        for _ in range(3):  # between two cells the kernel is idle, too
            page.wait_for_function(
                f"() => !{PROMPTS}.some(p => p.includes('*'))", timeout=20 * MINUTES
            )
            server.wait_until_idle(name)
            time.sleep(2)
        page.keyboard.press("Control+s")
        page.locator(".jp-mod-dirty").first.wait_for(state="detached", timeout=MINUTES)
        time.sleep(2)
        return page, nbformat.read(server.folder / f"{name}.ipynb", as_version=4)

    return opened


@pytest.mark.parametrize("name", ["01_infonce", "04_una"])
def test_run_all_gives_figures_and_no_error(run_all, screenshots, name) -> None:
    page, saved = run_all(name)
    code = [cell for cell in saved.cells if cell.cell_type == "code"]
    errors = [out for cell in code for out in cell.outputs if out.output_type == "error"]
    assert not errors, errors
    assert all(cell.execution_count for cell in code), [c.id for c in code if not c.execution_count]
    figures = page.locator(".jp-OutputArea-output img")
    assert figures.count() >= 3 and page.locator("mjx-container").count() > 0
    assert page.locator(".widget-slider").count() >= 1
    assert page.get_by_text("Error displaying widget").count() == 0
    widget = page.locator("img.widget-image").first
    for place, shown in (("figure", figures.nth(2)), ("widget", widget)):
        shown.scroll_into_view_if_needed()
        page.screenshot(path=screenshots / f"{name}_{place}.png")
    own_size = "p => 0 < p.clientWidth && p.clientWidth <= p.naturalWidth"
    assert widget.evaluate(own_size), "the slider's picture is stretched"


def test_the_beta_slider_moves_the_picture(run_all, screenshots) -> None:
    page, _ = run_all("04_una")
    handle = page.locator(".widget-slider .noUi-handle").first
    readout = page.locator(".widget-slider .widget-readout").first
    handle.scroll_into_view_if_needed()
    before = page.locator("img.widget-image").first.get_attribute("src")
    shown = readout.inner_text()
    page.screenshot(path=screenshots / "04_una_slider_before.png")
    handle.focus()
    for _ in range(6):
        handle.press("ArrowRight")
    page.wait_for_function(
        "old => document.querySelector('img.widget-image').src !== old", arg=before, timeout=MINUTES
    )
    time.sleep(2)
    assert float(readout.inner_text()) > float(shown)
    page.screenshot(path=screenshots / "04_una_slider_after.png")


def test_a_link_to_the_glossary_opens_it_beside_the_notebook(browser, tmp_path) -> None:
    """Served is the project, as by `make lab`; JupyterLab has no way out of the folder it serves."""
    course = tmp_path / "course"
    shutil.copytree(paths.ROOT / "book", course / "book")
    link = new_markdown_cell("An [anchor](../book/glossary.md#term-anchor).")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    (course / "notebooks").mkdir()
    made = new_notebook(cells=[link], metadata={"kernelspec": kernel})
    nbformat.write(made, course / "notebooks" / "01_made.ipynb")
    (tmp_path / "lab").mkdir()
    with _lab(tmp_path / "lab", course) as server:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        address = f"{server.url}lab/tree/notebooks/01_made.ipynb?token={server.token}"
        page.goto(address, timeout=MINUTES)
        page.get_by_role("link", name="anchor", exact=True).click(timeout=MINUTES)
        page.locator(".jp-MarkdownViewer", has_text="Glossary").wait_for(timeout=MINUTES)
        server.wait_until_idle("notebooks/01_made")
        assert page.get_by_role("menuitem", name="Nbgrader", exact=True).count() == 0
        assert page.get_by_text("Jupyter news").count() == 0
        page.close()
