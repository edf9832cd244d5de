"""`python -m lib augment METHOD IN.txt OUT.txt`: augment a text file line by line."""

import argparse
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.augment import AUGMENTATIONS, NEED_SYNONYMS, augment, eda
from lib.augment.generate import CHAINS
from lib.augment.output import Change, write_aligned
from lib.augment.sda import RULES, rules_digest
from lib.commands import reporting
from lib.data import read_aligned
from lib.data.files import digest, sha256

_OF_NO_EFFECT = {
    "source",
    "target",
    "quiet",
    "force",
    "device",
    "workers",
    "batch_tokens",
    "parses",
}
EDA = ("replace_synonyms", "insert_synonyms", "swap", "delete")


def _summary(function: Callable) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


METHODS = {
    "una": "Hard negatives: replace heavy words by words of similar weight (TF-IDF).",
    "sda": "A rule on the syntax tree: punctuation, modal verb, negation, double negation.",
    "eda": f"One of EDA's operations on each line, in turn: {', '.join(EDA)}.",
    **{name: _summary(function) for name, function in AUGMENTATIONS.items()},
    **{
        name: f"Let {' and '.join(s.model for s in steps)} write." for name, steps in CHAINS.items()
    },
}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lib augment",
        description=(
            "Augment a text file: line i of OUT belongs to line i of IN. OUT appears only when"
            " complete; interrupted, the same command goes on."
        ),
    )
    verbs = parser.add_subparsers(dest="method", required=True, metavar="METHOD", title="methods")
    for name, summary in METHODS.items():
        verb = verbs.add_parser(name, help=summary, description=summary)
        verb.add_argument("source", type=Path, metavar="IN.txt")
        verb.add_argument("target", type=Path, metavar="OUT.txt")
        verb.add_argument("--seed", type=int, default=0)
        verb.add_argument("--quiet", action="store_true", help="no progress bar")
        verb.add_argument("--force", action="store_true", help="replace OUT, whatever made it")
        _add_options(verb.add_argument, name)
    return parser.parse_args(argv)


def _add_options(add: Callable, name: str) -> None:
    """What one method takes beside text, seed and output."""
    if name == "una":
        add("--beta", type=float, default=0.5, help="β: mean share of terms replaced")
        add("--radius", type=int, default=4000, help="r: terms on either side (about 1%% of all)")
        add("--fit-on", type=Path, metavar="CORPUS.txt", help="text to count (default: IN)")
    elif name == "sda":
        add("--rule", choices=RULES, default="ensemble")
        add("--model", default="", help="spaCy pipeline (default: the shipped one)")
        add("--share", type=float, default=1.0, help="share of sentences that are tried")
        add("--nouns", action="store_true", help='double negation may put "no" before a noun')
        add("--parses", type=Path, metavar="FOLDER", help="keep parses here, for other rules")
        add("--workers", type=int, default=1, help="processes that parse")
    elif name in CHAINS:
        add("--model", action="append", help="id or folder in place of the usual one, once a step")
        add("--device", default="auto")
        add("--batch-tokens", type=int, default=4096)
    else:
        add("--rate", type=float, default=0.1, help="share of the words concerned")
        if name in ("eda", *NEED_SYNONYMS):
            add("--synonyms", default="wordnet", help="'wordnet' or a tab-separated file")


def change_of(options: argparse.Namespace, lines: list[str]) -> Change:
    """The function that `options` ask for."""
    if options.method == "una":
        return _una(options, lines)
    if options.method == "sda":
        return _sda(options)
    if options.method in CHAINS:
        return _generated(options)
    synonyms = getattr(options, "synonyms", "wordnet")
    names = EDA if options.method == "eda" else (options.method,)
    if set(names) & set(NEED_SYNONYMS):
        eda.load_synonyms(synonyms)

    def change(part: list[str], first: int) -> list[str]:
        return [
            augment(names[i % len(names)], [line], options.rate, options.seed, synonyms, i)[0]
            for i, line in enumerate(part, first)
        ]

    return change


def _una(options: argparse.Namespace, lines: list[str]) -> Change:
    from lib.augment.tfidf import TfidfModel  # NLTK takes two seconds to import
    from lib.augment.una import UNA

    counted = read_aligned(options.fit_on) if options.fit_on else lines
    model = TfidfModel.fit(line for line in counted if line)
    una = UNA(model, options.beta, options.radius, seed=options.seed)

    def change(part: list[str], first: int) -> list[str]:
        return model.strings(una(model.encode(part), range(first, first + len(part))))

    return change


def _sda(options: argparse.Namespace) -> Change:
    from lib.augment.sda import parse

    def change(part: list[str], first: int) -> list[str]:
        settings = {"share": options.share, "model": options.model, "folder": options.parses}
        settings |= {"workers": options.workers, "first": first, "nouns": options.nouns}
        return parse.rewrite(part, options.rule, options.seed, **settings)[options.rule]

    return change


def _generated(options: argparse.Namespace) -> Change:
    from lib.augment.generate import Generator
    from lib.encoder.device import resolve_device

    steps = CHAINS[options.method]
    models = options.model or [step.model for step in steps]
    if len(models) != len(steps):
        raise ValueError(
            f"{options.method} has {len(steps)} step(s): name --model as often, got {len(models)}"
        )
    steps = tuple(replace(step, model=model) for step, model in zip(steps, models, strict=True))
    generator = Generator(steps, resolve_device(options.device), options.batch_tokens)
    return lambda part, first: generator(part)


def key_of(options: argparse.Namespace, lines: list[str]) -> str:
    """16 digits of all that OUT depends on."""
    settings = {k: str(v) for k, v in vars(options).items() if k not in _OF_NO_EFFECT}
    settings["files"] = str([sha256(file) for file in _read(options) if file.is_file()])
    if options.method == "sda":
        from lib.augment.sda import parse

        settings["rules"] = rules_digest() + parse.pipeline_digest(parse.load(options.model))
    return digest(json.dumps(settings), lines)


def _read(options: argparse.Namespace) -> list[Path]:
    named = (getattr(options, name, None) for name in ("source", "fit_on", "synonyms"))
    return [Path(name) for name in named if name]


def _check_target(options: argparse.Namespace) -> None:
    out = options.target
    if out.suffix != ".txt":
        raise ValueError(f"{out}: plain text is written, name a .txt file")
    if out.exists() and any(file.exists() and out.samefile(file) for file in _read(options)):
        raise ValueError(f"{out} is a file that is read: name another output")
    if out.exists() and not options.force:
        raise FileExistsError(f"{out} is there: name another output, or replace it with --force")


@reporting
def main(argv: Sequence[str] | None = None) -> int:
    """Write OUT, line by line."""
    options = arguments(argv)
    lines = read_aligned(options.source)
    if not any(lines):
        raise ValueError(f"{options.source} holds no sentence")
    _check_target(options)
    chunk = 200 if options.method in CHAINS else 10_000
    key, prepare = key_of(options, lines), partial(change_of, options, lines)
    write_aligned(lines, options.target.resolve(), prepare, key, chunk, not options.quiet)
    if options.method == "sda":
        print(changed_share(lines, read_aligned(options.target)))
    return 0


def changed_share(before: list[str], after: list[str]) -> str:
    """How many sentences a method changed, as a sentence.

    Example:
        >>> changed_share(["Stop.", "", "Go."], ["Stop!", "", "Go."])
        '1 of 2 sentences changed (50.00 %)'
    """
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a]
    changed = sum(a != b for a, b in pairs)
    return f"{changed:,} of {len(pairs):,} sentences changed ({100 * changed / len(pairs):.2f} %)"
