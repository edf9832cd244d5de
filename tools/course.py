"""The whole course at the `mini` profile: each notebook executed, a page each, and an index.

Command line: `python -m tools.course --jobs 2` (`make course`) writes `outputs/index.html`.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
import psutil
from jinja2 import Environment

from lib import paths
from lib.data.files import write_text
from lib.runs import notebooks
from lib.runs.notebooks import Outcome
from lib.runs.workers import at_once, available_cores
from tools import pages
from tools.check import MEMORY_GIB

# begun first, so that no core is idle at the end
LONGEST = ("03_consert", "05_sda", "04_una", "02_simcse")
LAST = "07_results"  # it reads what the others left
TEMPLATE = Path(__file__).with_name("course.html.j2")


def executed(sources: list[Path], jobs: int) -> Iterator[tuple[Path, Outcome]]:
    """Each notebook and what came of it, as they come; `LAST`, or the last of them, is begun when
    all others have ended."""
    *first, last = sorted(sources, key=lambda path: path.stem == LAST)
    longest_first = sorted(first, key=lambda path: path.stem not in LONGEST)
    for _, done in at_once(execute, longest_first, jobs):
        yield done
    yield execute(last)


def execute(notebook: Path) -> tuple[Path, Outcome]:
    """One notebook, executed into `outputs/<its name>/`."""
    target = paths.outputs() / notebook.stem / notebook.name
    try:
        done = notebooks.execute(notebook, target, {"profile": "mini"})
        if "kernel_info" in str(done.error):  # kernels that start at once may draw the same port
            done = notebooks.execute(notebook, target, {"profile": "mini"})
        return notebook, done
    except (OSError, ValueError) as error:
        return notebook, Outcome(target, 0.0, str(error))


def write_page(executed: Path, names: Iterable[str]) -> Path:
    """Write the page of an executed notebook beside it; links to notebooks lead to their pages.

    Args:
        names: the notebooks that have a page, each in a folder of its name.
    """
    text = pages.html(nbformat.read(executed, as_version=4), executed.stem, executed.parent)
    for name in names:
        text = re.sub(rf'href="[^"]*/{name}\.ipynb', f'href="../{name}/{name}.html', text)
    page = executed.with_suffix(".html")
    write_text(page, text)
    return page


def card(notebook: Path, done: Outcome, names: Iterable[str], folder: Path) -> dict[str, str]:
    """What the index in `folder` shows of a notebook, with its page written."""
    ran = (
        f"failed, {done.error}"
        if done.error
        else f"It ran in {notebooks.clock(done.seconds)} minutes."
    )
    return {
        **pages.summary(notebook)._asdict(),
        "link": write_page(done.path, names).relative_to(folder).as_posix(),
        "error": done.error or "",
        "ran": ran,
    }


def course(sources: list[Path], jobs: int) -> int:
    """Execute notebooks and write their pages: 0 if all succeeded, else 1."""
    outcomes, folder = {}, paths.outputs()
    for notebook, done in executed(sources, jobs):
        outcomes[notebook] = done
        state = f"FAILED, {done.error}" if done.error else "done"
        print(f"{notebook.stem}: {state} in {notebooks.clock(done.seconds)}", flush=True)
    there = {notebook: done for notebook, done in sorted(outcomes.items()) if done.path.exists()}
    names = [notebook.stem for notebook, done in there.items() if not done.error]
    cards = [card(notebook, done, names, folder) for notebook, done in there.items()]
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    write_text(folder / "index.html", template.render(cards=cards))
    print(f"Pages: {folder / 'index.html'}")
    return int(any(done.error for done in outcomes.values()))


def affordable_jobs(jobs: int) -> int:
    """How many notebooks at a time the cores and the free memory allow: from 1 to `jobs`."""
    gib = psutil.virtual_memory().available / 2**30
    return max(1, min(jobs, len(available_cores()), int(gib / MEMORY_GIB)))


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if a notebook failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.course", description="Execute every notebook at the mini profile."
    )
    what = "notebooks at a time, as far as cores and memory allow"
    parser.add_argument("--jobs", type=int, default=1, help=what)
    parser.add_argument("names", nargs="*", help="01, 02_simcse or a path (default: all)")
    options = parser.parse_args(arguments)
    sources = [notebooks.find(name) for name in options.names] or notebooks.find_all()
    return course(sources, affordable_jobs(options.jobs))


if __name__ == "__main__":
    sys.exit(main())
