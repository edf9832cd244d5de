"""`python -m lib course`: every notebook at the mini profile into `outputs/`, with an index
page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting
from lib.course import affordable_jobs, course


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a notebook failed."""
    parser = argparse.ArgumentParser(
        prog="python -m lib course", description="Execute every notebook at mini."
    )
    parser.add_argument("--notebooks", type=Path, help="folder of the notebooks")
    parser.add_argument(
        "--jobs", type=int, default=1, help="notebooks at a time, as far as cores and memory allow"
    )
    options = parser.parse_args(arguments)
    jobs = affordable_jobs(options.jobs)
    return course(options.notebooks, sys.stdout, lambda text: print(text, flush=True), jobs)
