"""`python -m lib runs collect NOTEBOOK`: finished runs on real data join `results/`."""

import argparse
from collections.abc import Sequence

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the file that was written."""
    parser = argparse.ArgumentParser(prog="python -m lib runs", description="Finished runs.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    collecting = verbs.add_parser(
        "collect", help="append the finished runs of a notebook, and of its shipped grids' rows"
    )
    collecting.add_argument("notebook")
    options = parser.parse_args(arguments)
    from lib.runs import committing

    print(f"wrote {committing.save(options.notebook)}")
    committing.add_members(committing.members_at_hand())
    return 0
