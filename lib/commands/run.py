"""`python -m lib run 04_una -p beta 0.3`: one notebook with parameters of your own."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if the notebook failed."""
    options = _options(arguments)
    from lib import notebooks  # a second or more, which `--help` does not need

    notebook = notebooks.find(options.name, options.notebooks)
    parameters = notebooks.read_parameters(notebook, list(map(tuple, options.parameter)))
    lesson = not options.no_lesson
    target = notebooks.run_path(notebook, parameters, lesson)
    if options.out:
        target = _checked(options.out, notebook)
    outcome = notebooks.execute(notebook, target, parameters, lesson, stream=sys.stdout)
    if outcome.error:
        print(f"FAILED {outcome.name}, {outcome.error}", file=sys.stderr)
    print(f"Executed in {notebooks.clock(outcome.seconds)}: {outcome.path}")
    return int(outcome.error is not None)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib run",
        description="Execute one notebook with parameters of your own; the notebook itself stays.",
        epilog="example: python -m lib run 04_una -p beta 0.3 -p seed 1 --no-lesson",
    )
    parser.add_argument("name", help="02_simcse, 02, or the path of a notebook")
    parser.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter of the notebook and its value, such as -p beta 0.3; once for each"
        " parameter. The notebook's parameters cell lists them with their types and defaults.",
    )
    parser.add_argument(
        "--no-lesson", action="store_true", help="leave out the lesson: only the run is executed"
    )
    parser.add_argument(
        "--out", type=Path, help="the executed notebook (default: chosen under outputs/)"
    )
    parser.add_argument("--notebooks", type=Path, help="folder of the notebooks")
    return parser.parse_args(arguments)


def _checked(out: Path, notebook: Path) -> Path:
    if out.suffix != ".ipynb" or out.is_dir():
        raise ValueError(f"--out {out} must name a file that ends in .ipynb.")
    if out.resolve() == notebook.resolve():
        raise ValueError(f"--out {out} is the notebook itself: name another file.")
    return out.absolute()
