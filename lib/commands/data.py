"""`python -m lib data fetch`: the real data, fetched or counted."""

from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch or count the real data; exit status 1 if a count differs."""
    from lib.data import fetch

    parser = verb_parser("data", "The real data.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    bring = verbs.add_parser("fetch", help=f"bring {fetch.TAR} and {fetch.WIKI1M}, count them")
    bring.add_argument("--target", type=Path, help="folder to write to (default: data/)")
    bring.add_argument("--source", type=Path, help="a folder that has both files, not the Hub")
    bring.add_argument("--only", choices=("senteval", "wiki1m"), default="", help="one of the two")
    check = verbs.add_parser("check", help="count every set; exit status 1 on a difference")
    check.add_argument("directory", type=Path)
    options = parser.parse_args(arguments)
    if options.verb == "fetch":
        names = tuple(n for n in (fetch.TAR, fetch.WIKI1M) if n.startswith(options.only))
        for path in fetch.fetch(options.target, options.source, names):
            print(f"{path} is there")
        return 0
    if not options.directory.is_dir():
        raise FileNotFoundError(f"no folder {options.directory}")
    rows = fetch.check(options.directory)
    for name, expected, found in rows:
        print(f"{name:<16}{expected:>10} expected, found {found}")
    return int(bool(fetch.differences(rows)))
