"""`python -m lib runs collect NOTEBOOK`: append finished runs on real data to
`results/NOTEBOOK.csv`."""

import argparse
from collections.abc import Sequence

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the file that was written."""
    parser = argparse.ArgumentParser(prog="python -m lib runs", description="Finished runs.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    collecting = verbs.add_parser("collect", help="append runs on real data to results/")
    collecting.add_argument("notebook")
    options = parser.parse_args(arguments)
    from lib import results

    print(f"wrote {results.save(options.notebook)}")
    return 0
