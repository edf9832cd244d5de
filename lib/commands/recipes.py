"""`python -m lib recipes list` and `recipes show NAME`: hyper-parameters and their sources."""

import argparse
from collections.abc import Sequence

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the recipes, or one."""
    parser = argparse.ArgumentParser(prog="python -m lib recipes", description="Recipes.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="recipes with their sources")
    listing.add_argument("part", nargs="?", default="", help="of the name")
    verbs.add_parser("show", help="every field that has an effect").add_argument("name")
    options = parser.parse_args(arguments)
    from lib.training.recipe import recipe, recipes

    if options.verb == "list":
        found = {name: one for name, one in recipes().items() if options.part in name}
        for name, one in found.items():
            print(f"{name:29}{one.source}")
        if not found:
            print(f"no recipe has {options.part!r} in its name")
        return 0
    one = recipe(options.name)
    print(f"{one.name}: {one.source}")
    for field, value in one.in_use().items():
        print(f"  {field:24} {value}")
    return 0
