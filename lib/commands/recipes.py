"""`python -m lib recipes list [PART]` prints names and sources, `python -m lib recipes show NAME`
the fields in use."""

import argparse
from collections.abc import Sequence

from lib import recipes
from lib.commands import reporting
from lib.recipes import FIELDS, PARTS, RECIPES


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m lib recipes", description="The hyper-parameters of the papers."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="names and sources").add_argument(
        "part", nargs="?", default="", help="of the name"
    )
    verbs.add_parser("show", help="the fields of one").add_argument("name")
    options = parser.parse_args(arguments)
    if options.verb == "list":
        matching = [r for r in RECIPES.values() if options.part in r.name]
        nothing = f"no recipe has {options.part!r} in its name"
        print("\n".join(f"{r.name:<29}{r.source}" for r in matching) or nothing)
        return 0
    recipe = recipes.recipe(options.name)
    print(f"{recipe.name}: {recipe.source}")
    used = recipe.in_use()
    for part in PARTS:
        if shown := [name for name in used if FIELDS[name].part == part]:
            print(f"{part}:")
            print("\n".join(f"  {name:<25}{used[name]}" for name in shown))
    return 0
