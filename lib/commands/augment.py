"""`python -m lib augment una IN.txt OUT.txt`: rewrite a text file line by line."""

import argparse
import inspect
from collections.abc import Sequence
from pathlib import Path

from lib.augment import AUGMENTATIONS, NEED_SYNONYMS, augment
from lib.augment.sda import RULES
from lib.commands import reporting, verb_parser
from lib.data import read_aligned
from lib.data.files import write_text

EDA = ("replace_synonyms", "insert_synonyms", "swap", "delete")
METHODS = {
    "una": "Hard negatives: replace heavy words by words of similar weight (TF-IDF).",
    "sda": "A rule on the syntax tree: punctuation, modal verb, negation, double negation.",
    "eda": f"One of EDA's operations on each line, in turn: {', '.join(EDA)}.",
    **{name: str(inspect.getdoc(f)).split("\n\n")[0] for name, f in AUGMENTATIONS.items()},
}


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Write OUT, complete or not at all, and print how many lines changed."""
    options = _options(arguments)
    lines, out = read_aligned(options.source), options.target
    if not any(lines):
        raise ValueError(f"{options.source} holds no sentence")
    read = (getattr(options, name, None) for name in ("source", "fit_on", "synonyms"))
    if out.suffix != ".txt":
        raise ValueError(f"{out}: plain text is written, name a .txt file")
    if out.exists() and any(out.samefile(file) for file in read if file and Path(file).exists()):
        raise ValueError(f"{out} is a file that is read: name another output")
    if out.exists() and not options.force:
        raise FileExistsError(f"{out} is there: name another output, or replace it with --force")
    new = _augmented(lines, options)
    write_text(out.resolve(), "".join(f"{line}\n" for line in new))
    changed = sum(old != line for old, line in zip(lines, new, strict=True))
    print(f"{changed:,} of {sum(map(bool, lines)):,} sentences changed")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = verb_parser("augment", "Line i of OUT belongs to line i of IN.")
    verbs = parser.add_subparsers(dest="method", required=True, metavar="METHOD", title="methods")
    for name, summary in METHODS.items():
        add = verbs.add_parser(name, help=summary, description=summary).add_argument
        add("source", type=Path, metavar="IN.txt")
        add("target", type=Path, metavar="OUT.txt")
        add("--seed", type=int, default=0)
        add("--force", action="store_true", help="replace OUT, whatever made it")
        if name == "una":
            add("--beta", type=float, default=0.5, help="β: mean share of terms replaced")
            add("--radius", type=int, default=4000, help="r: terms on either side")
            add("--fit-on", type=Path, metavar="CORPUS.txt", help="text to count (default: IN)")
        elif name == "sda":
            add("--rule", choices=RULES, default="ensemble")
            add("--model", default="", help="spaCy pipeline (default: the shipped one)")
            add("--share", type=float, default=1.0, help="share of sentences that are tried")
            add("--nouns", action="store_true", help='double negation: "no" before a noun, too')
            add("--workers", type=int, default=1, help="processes that parse")
        else:
            add("--rate", type=float, default=0.1, help="share of the words concerned")
            if name in {"eda", *NEED_SYNONYMS}:
                add("--synonyms", default="wordnet", help="wordnet, or a tab-separated file")
    return parser.parse_args(arguments)


def _augmented(lines: list[str], options: argparse.Namespace) -> list[str]:
    """The lines after the method that `options` ask for."""
    if options.method == "una":
        from lib.augment.tfidf import TfidfModel  # NLTK takes two seconds to import
        from lib.augment.una import UNA

        counted = read_aligned(options.fit_on) if options.fit_on else lines
        model = TfidfModel.fit(line for line in counted if line)
        una = UNA(model, options.beta, options.radius, seed=options.seed)
        return model.strings(una(model.encode(lines)))
    if options.method == "sda":
        from lib.augment.sda import parse

        settings = {"model": options.model, "workers": options.workers, "nouns": options.nouns}
        texts = parse.rewrite(lines, options.rule, options.seed, options.share, **settings)
        return texts[options.rule]
    names = EDA if options.method == "eda" else (options.method,)
    settings = {"seed": options.seed, "synonyms": getattr(options, "synonyms", "wordnet")}
    versions = [augment(name, lines, options.rate, **settings) for name in names]
    return [versions[i % len(names)][i] for i in range(len(lines))]
