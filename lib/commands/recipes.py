"""`python -m lib recipes show paper_una_bert`: the papers' hyper-parameters."""

from collections.abc import Sequence

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the recipes, or one."""
    parser = verb_parser("recipes", "Hyper-parameters and where they are from.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="recipes with their sources")
    listing.add_argument("part", nargs="?", default="", help="of the name")
    verbs.add_parser("show", help="every field that has an effect").add_argument("name")
    options = parser.parse_args(arguments)
    from lib.training.recipe import recipe, recipes

    if options.verb == "list":
        found = {name: r.source for name, r in recipes().items() if options.part in name}
        if not found:
            raise ValueError(f"no recipe has {options.part!r} in its name")
        print(*(f"{name:29}{source}" for name, source in found.items()), sep="\n")
        return 0
    chosen = recipe(options.name)
    print(f"{chosen.name}: {chosen.source}")
    for field, value in chosen.in_use().items():
        print(f"  {field:24} {value}")
    return 0
