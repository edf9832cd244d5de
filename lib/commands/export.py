"""`python -m lib export RUN my-model`: a finished run as a sentence-transformers folder, with a
card."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the folder that was written."""
    parser = argparse.ArgumentParser(
        prog="python -m lib export", description="Use a trained encoder elsewhere."
    )
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("target", type=Path, help="folder to write")
    options = parser.parse_args(arguments)
    from lib.runs.export import export  # torch is imported only now: --help does not need it

    print(f"wrote {export(options.run, options.target)}")
    return 0
