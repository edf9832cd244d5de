"""`python -m lib data fetch` brings the real data from the Hub, `python -m lib data check DIR`
counts it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lib import paths
from lib.commands import reporting
from lib.data import WIKI1M
from lib.data.fetch import ABSENT, OPTIONAL, TAR, CheckRow, check, differences, fetch


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a count differs."""
    options = _options(arguments)
    if options.verb == "check":
        if not options.directory.is_dir():
            raise FileNotFoundError(f"no folder {options.directory}")
        rows = check(options.directory)
        print(_table(rows))
        return 1 if differences(rows) else 0
    names = {"senteval": (TAR,), "wiki1m": (WIKI1M,)}.get(options.only, (TAR, WIKI1M))
    for path in fetch(options.target, options.source, names):
        print(f"{path} is there")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib data", description="Fetch and check the real data."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetching = verbs.add_parser("fetch", help=f"bring {TAR} and {WIKI1M}, count them, unpack")
    fetching.add_argument(
        "--target", type=Path, default=paths.DATA, help="folder to write to (default: data/)"
    )
    fetching.add_argument(
        "--source", type=Path, help=f"take {TAR} and {WIKI1M} from this folder, not from the Hub"
    )
    fetching.add_argument("--only", choices=("senteval", "wiki1m"), help="only one of the two")
    checking = verbs.add_parser("check", help="count every set; exit status 1 on a difference")
    checking.add_argument("directory", type=Path)
    return parser.parse_args(arguments)


def _table(rows: list[CheckRow]) -> str:
    lines = [f"{'set':<16}{'expected':>10}{'found':>10}"]
    for name, expected, found in rows:
        is_count = isinstance(found, int) or found == ABSENT
        note = (
            " (optional)" if name in OPTIONAL and found == ABSENT else " <-" * (found != expected)
        )
        lines.append(f"{name:<16}{expected:>10}{found if is_count else 'error':>10}{note}")
    wrong = differences(rows)
    return "\n".join(
        [
            *lines,
            *wrong,
            f"{len(wrong)} of {len(rows)} sets differ" if wrong else "all sets as expected",
        ]
    )
