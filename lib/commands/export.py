"""`python -m lib export RUN my-model`: a run as a sentence-transformers folder."""

from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the folder that was written."""
    parser = verb_parser("export", "Use a trained encoder elsewhere.")
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("target", type=Path, help="folder to write")
    options = parser.parse_args(arguments)
    from lib.runs.export import export

    print(f"wrote {export(options.run, options.target)}")
    return 0
