"""`python -m lib run 04_una -p beta 0.3`: execute one notebook with parameters."""

import sys
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Execute one notebook; exit status 1 if it failed."""
    example = "example: python -m lib run 04_una -p beta 0.3 -p seed 1 --no-lesson"
    parser = verb_parser("run", "Execute a notebook with parameters; it stays as it is.", example)
    add = parser.add_argument
    add("name", help="02_simcse, 02, or the path of a notebook")
    what = "a parameter of the notebook, as its parameters cell lists them; once for each"
    add("-p", "--parameter", nargs=2, action="append", metavar=("NAME", "VALUE"), help=what)
    add("--no-lesson", action="store_true", help="leave out the lesson: only the run is executed")
    add("--out", type=Path, help="the executed notebook (default: chosen under outputs/)")
    options = parser.parse_args(arguments)
    from lib.runs import notebooks

    notebook = notebooks.find(options.name)
    parameters = notebooks.read_parameters(notebook, options.parameter or [])
    lesson, out = not options.no_lesson, options.out
    if out and (out.suffix != ".ipynb" or out.is_dir() or out.resolve() == notebook.resolve()):
        raise ValueError(f"--out {out} must be another file that ends in .ipynb")
    target = out.absolute() if out else notebooks.run_path(notebook, parameters, lesson)
    done = notebooks.execute(notebook, target, parameters, lesson, sys.stderr.isatty())
    if done.error:
        print(f"FAILED {notebook.stem}, {done.error}", file=sys.stderr)
    print(f"Executed in {notebooks.clock(done.seconds)}: {done.path}")
    return int(done.error is not None)
