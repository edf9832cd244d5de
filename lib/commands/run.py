"""`python -m lib run 04_una -p beta 0.3`: papermill with an output path chosen for you.

Values are read by the type that the notebook's parameters cell declares.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.commands import reporting
from lib.course import CourseError, clock, execute, find_notebook, read_parameters, run_path


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if the notebook failed."""
    options = _options(arguments)
    notebook = find_notebook(options.name, options.notebooks)
    parameters = read_parameters(notebook, [(name, text) for name, text in options.parameter])
    lesson = not options.no_lesson
    target = _target(options.out, notebook, parameters, lesson)
    outcome = execute(notebook, target, parameters, lesson=lesson, stream=sys.stdout)
    if outcome.error:
        print(f"FAILED {outcome.name}, {outcome.error}", file=sys.stderr)
    print(f"Executed in {clock(outcome.seconds)}: {outcome.path}")
    return int(outcome.error is not None)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib run", description="Execute one notebook with parameters."
    )
    parser.add_argument("name", help="02_simcse, 02, or the path of a notebook")
    parser.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE")
    )
    parser.add_argument(
        "--no-lesson", action="store_true", help="drop the cells tagged `lesson` first"
    )
    parser.add_argument(
        "--out", type=Path, help="the executed notebook (default: chosen under outputs/)"
    )
    parser.add_argument("--notebooks", type=Path, help="folder of the notebooks")
    return parser.parse_args(arguments)


def _target(out: Path | None, notebook: Path, parameters: dict[str, Any], lesson: bool) -> Path:
    """Where the executed notebook goes."""
    if out is None:
        return run_path(notebook, parameters, lesson)
    if out.suffix != ".ipynb" or out.is_dir():
        raise CourseError(f"--out {out} must name a file that ends in .ipynb.")
    if out.resolve() == notebook.resolve():
        raise CourseError(f"--out {out} is the notebook itself: name another file.")
    return out.absolute()
