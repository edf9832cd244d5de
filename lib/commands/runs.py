"""`python -m lib runs collect NOTEBOOK`: append finished runs on real data to
`results/NOTEBOOK.csv`; `python -m lib runs import ARCHIVE`: take runs from another machine."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib import intake, paths, results, standing
from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the file that was written, or what became of the runs; exit status 1 if one was
    refused."""
    parser = argparse.ArgumentParser(prog="python -m lib runs", description="Finished runs.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    collecting = verbs.add_parser("collect", help="append runs on real data to results/")
    collecting.add_argument("notebook")
    importing = verbs.add_parser("import", help="take the runs that a bundle's run.sh left")
    importing.add_argument("archive", type=Path)
    importing.add_argument("--data-dir")
    options = parser.parse_args(arguments)
    if options.verb == "import":
        return _print_arrivals(intake.take(options.archive, data_dir=options.data_dir))
    print(f"wrote {results.save(options.notebook)}")
    standing.write_pages()
    return 0


def _print_arrivals(arrivals: list[intake.Arrival]) -> int:
    states = (intake.IMPORTED, intake.HERE_ALREADY, intake.REFUSED)
    counts = [sum(one.state == state for one in arrivals) for state in states]
    for one in arrivals:
        if one.note:
            refused = one.state == intake.REFUSED
            print(f"{one.state}: {one.run}: {one.note}", file=sys.stderr if refused else sys.stdout)
    if unchecked := sorted({name for one in arrivals for name in one.unchecked}):
        print(f"not compared, as it is not here: {', '.join(unchecked)}")
    words = [f"{count} {state}" for count, state in zip(counts, states, strict=True)]
    print(f"{', '.join(words)}: {paths.outputs()}")
    return int(counts[-1] > 0)
