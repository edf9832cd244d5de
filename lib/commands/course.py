"""`python -m lib course`: every notebook at the `mini` profile into `outputs/`, with pages."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lib.commands import reporting

if TYPE_CHECKING:
    from lib.runs.notebooks import Outcome

# begun first, so that no core is idle at the end
LONGEST = ("03_consert", "05_sda", "04_una", "02_simcse")
MEMORY_GIB = 3.5  # the largest notebook at mini needs 3.1; tools/check.py has it, too
SCORES = ("mini_dev_spearman_best", "stsb_dev_spearman_best")


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a notebook failed."""
    parser = argparse.ArgumentParser(
        prog="python -m lib course",
        description="Execute every notebook at the mini profile into outputs/, with an index page.",
    )
    parser.add_argument("--notebooks", type=Path, help="folder of the notebooks")
    parser.add_argument(
        "--jobs", type=int, default=1, help="notebooks at a time, as far as cores and memory allow"
    )
    options = parser.parse_args(arguments)
    return course(options.notebooks, affordable_jobs(options.jobs))


def course(folder: Path | None, jobs: int) -> int:
    """Execute the notebooks and write their pages: 0 if all succeeded, else 1."""
    from lib import paths
    from lib.runs import notebooks, pages

    outcomes = []
    for outcome in _executed(notebooks.find_all(folder), jobs):
        outcomes.append(outcome)
        state = f"FAILED, {outcome.error}" if outcome.error else "done"
        print(f"{outcome.name}: {state} in {notebooks.clock(outcome.seconds)}", flush=True)
    outcomes.sort(key=lambda outcome: outcome.name)
    for outcome in outcomes:
        if outcome.path.exists():
            pages.render(outcome.path, [one.name for one in outcomes if not one.error])
    index = pages.index(outcomes, _scores(), paths.outputs())
    print("", *(f"{one.name}: {one.error or one.path}" for one in outcomes), sep="\n")
    print(f"Pages: {index}")
    return int(any(outcome.error for outcome in outcomes))


def _executed(sources: list[Path], jobs: int) -> Iterator["Outcome"]:
    """The outcomes as they come; the last notebook, which reads what others left, is begun last."""
    from lib.runs.workers import at_once

    if jobs > 1 and len(sources) > 2:
        first = sorted(sources[:-1], key=_rank)
        for _, outcome in at_once(_execute, first, jobs):
            yield outcome
        sources = sources[-1:]
    yield from map(_execute, sources)


def _rank(notebook: Path) -> int:
    return LONGEST.index(notebook.stem) if notebook.stem in LONGEST else len(LONGEST)


def _execute(notebook: Path) -> "Outcome":
    from lib import paths
    from lib.runs import notebooks

    target = paths.outputs() / notebook.stem / notebook.name
    try:
        return notebooks.execute(notebook, target, {"profile": "mini"}, stream=sys.stdout)
    except ValueError as error:
        return notebooks.Outcome(notebook.stem, target, 0.0, str(error))


def _scores() -> dict[str, str]:
    """The mean dev score of each recipe that a notebook trained, as text, by notebook."""
    from lib import runs

    try:
        finished = runs.collect()
    except ValueError as error:
        print(f"No scores: {error}")
        return {}
    known = finished.reindex(columns=["notebook", "recipe", *SCORES])
    known["score"] = known[list(SCORES)].bfill(axis=1).iloc[:, 0].astype(float)
    means = known.groupby(["notebook", "recipe"])["score"].mean().dropna()
    texts: dict[str, str] = {}
    for (notebook, recipe), score in means.items():
        before = f"{texts[notebook]}, " if notebook in texts else ""
        texts[notebook] = f"{before}{recipe} {score:.1f}"
    return texts


def affordable_jobs(jobs: int, cores: int | None = None, gib: float | None = None) -> int:
    """How many notebooks at a time the cores and the free memory allow: from 1 to `jobs`.

    Args:
        cores, gib: cores, and free memory in GiB; measured if None.

    Example:
        >>> affordable_jobs(4, cores=2, gib=16.0), affordable_jobs(2, cores=8, gib=4.0)
        (2, 1)
    """
    import psutil

    from lib.runs.workers import available_cores

    cores = cores or len(available_cores())
    gib = psutil.virtual_memory().available / 2**30 if gib is None else gib
    return max(1, min(jobs, cores, int(gib / MEMORY_GIB)))
