"""`python -m lib augment METHOD IN.txt OUT.txt`: augment a text file line by line."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from lib import paths
from lib.augment import AUGMENTATIONS, NEED_SYNONYMS, augment, eda
from lib.augment.generate import CHAINS, Generator
from lib.augment.output import Change, write_aligned
from lib.augment.sda import RULES, parse, rules_digest
from lib.augment.tfidf import TfidfModel
from lib.augment.una import UNA
from lib.commands import reporting
from lib.data import read_aligned
from lib.device import resolve_device
from lib.files import sha256

UNRECORDED = {"source", "target", "quiet", "force", "device", "workers", "batch_tokens"}
UNRECORDED |= {"fit_on", "parses"}
EDA = ("replace_synonyms", "insert_synonyms", "swap", "delete")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lib augment",
        description=(
            "Augment a text file: line i of OUT belongs to line i of IN. OUT appears only when"
            " complete; interrupted, the same command goes on."
        ),
    )
    verbs = parser.add_subparsers(dest="method", required=True, metavar="METHOD")
    for name in ("una", "sda", "eda", *AUGMENTATIONS, *CHAINS):
        verb = verbs.add_parser(name)
        verb.add_argument("source", type=Path, metavar="IN")
        verb.add_argument("target", type=Path, metavar="OUT")
        verb.add_argument("--seed", type=int, default=0)
        verb.add_argument("--quiet", action="store_true", help="no progress bar")
        verb.add_argument("--force", action="store_true", help="replace OUT, whatever made it")
        _add_options(verb, name)
    return parser.parse_args(argv)


def _add_options(verb: argparse.ArgumentParser, name: str) -> None:
    """What one method takes beside text, seed and output."""
    if name == "una":
        verb.add_argument("--beta", type=float, default=0.5, help="β: mean share of terms replaced")
        verb.add_argument(
            "--radius", type=int, default=4000, help="r: terms on either side (about 1%% of all)"
        )
        verb.add_argument(
            "--fit-on", type=Path, metavar="CORPUS", help="text to count (default: IN)"
        )
        verb.add_argument("--workers", type=int, default=1, help="processes that count")
    elif name == "sda":
        verb.add_argument("--rule", choices=RULES, default="ensemble")
        verb.add_argument("--model", default="", help="spaCy pipeline (default: the shipped one)")
        verb.add_argument(
            "--share", type=float, default=1.0, help="share of sentences that are tried"
        )
        verb.add_argument(
            "--nouns", action="store_true", help='double negation may put "no" before a noun'
        )
        verb.add_argument(
            "--parses", type=Path, metavar="FOLDER", help="keep parses here, for other rules"
        )
        verb.add_argument("--workers", type=int, default=1, help="processes that parse")
    elif name in CHAINS:
        verb.add_argument(
            "--model", action="append", help="id or folder in place of the usual one, once per step"
        )
        verb.add_argument("--beams", type=int)
        verb.add_argument("--device", default="auto")
        verb.add_argument("--batch-tokens", type=int, default=4096)
    else:
        verb.add_argument("--rate", type=float, default=0.1, help="share of the words concerned")
        if name in ("eda", *NEED_SYNONYMS):
            verb.add_argument(
                "--synonyms", default="wordnet", help="'wordnet' or a tab-separated file"
            )


def change_of(options: argparse.Namespace, lines: list[str], device: torch.device) -> Change:
    """The function that `options` ask for; `device` is where models generate."""
    if options.method == "una":
        fit_on = read_aligned(options.fit_on) if options.fit_on else lines
        model = TfidfModel.fit(
            [line for line in fit_on if line], options.workers, not options.quiet
        )
        una = UNA(model, options.beta, options.radius, seed=options.seed)
        return lambda part, first: model.strings(
            una(model.encode(part), range(first, first + len(part)))
        )
    if options.method in CHAINS:
        return _generator(options, device)
    if options.method == "sda":
        return _sda(options)
    if options.method == "eda":
        eda.load_synonyms(options.synonyms)
        return lambda part, first: _any_of_eda(part, first, options)
    source = getattr(options, "synonyms", "wordnet")
    if options.method in NEED_SYNONYMS:
        eda.load_synonyms(source)
    return lambda part, first: augment(
        options.method, part, options.rate, options.seed, source, range(first, first + len(part))
    )


def _any_of_eda(part: list[str], first: int, options: argparse.Namespace) -> list[str]:
    """One of EDA's four operations on each line, in turn over the lines' numbers."""
    result = list(part)
    for turn, name in enumerate(EDA):
        rows = [i for i in range(len(part)) if (first + i) % len(EDA) == turn]
        lines, numbers = [part[i] for i in rows], [first + i for i in rows]
        changed = augment(name, lines, options.rate, options.seed, options.synonyms, numbers)
        for i, line in zip(rows, changed, strict=True):
            result[i] = line
    return result


def _sda(options: argparse.Namespace) -> Change:
    parse.load(options.model)

    def change(part: list[str], first: int) -> list[str]:
        settings = {"model": options.model, "folder": options.parses, "workers": options.workers}
        settings |= {"first": first, "nouns": options.nouns}
        return parse.rewrite(part, options.rule, options.seed, options.share, **settings)[
            options.rule
        ]

    return change


def _generator(options: argparse.Namespace, device: torch.device) -> Change:
    steps = CHAINS[options.method]
    models = options.model or [s.model for s in steps]
    if len(models) != len(steps):
        raise ValueError(
            f"{options.method} has {len(steps)} step(s): name --model as often, got {len(models)}"
        )
    beams = {"beams": options.beams} if options.beams else {}
    steps = tuple(replace(s, model=m, **beams) for s, m in zip(steps, models, strict=True))
    generator = Generator(steps, device, options.batch_tokens)
    return lambda part, first: generator(part)


def check(options: argparse.Namespace) -> None:
    """Ranges of the options that a method does not check itself.

    Raises:
        ValueError: an option is out of its range; the message names it.
    """
    for name, least in (("seed", 0), ("workers", 1), ("beams", 1), ("batch_tokens", 1)):
        value: float | None = getattr(options, name, None)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} must be at least {least}, got {value}")
    for name, most in (("rate", 1), ("share", 1), ("beta", 1e9)):
        share: float = getattr(options, name, 0)
        if not 0 <= share <= most:
            raise ValueError(f"{name} must be in [0, {most:g}], got {share}")


def _digest(path: str | Path | None) -> list[str]:
    """sha256 of a file, or of the weights in a folder; nothing for a name that is neither."""
    resolved = Path(path) if path and Path(path).exists() else paths.ROOT / (path or "none")
    files = sorted(resolved.glob("*.safetensors")) if resolved.is_dir() and path else [resolved]
    return [sha256(file) for file in files if file.is_file()]


def identity_of(options: argparse.Namespace) -> dict[str, object]:
    """What OUT depends on besides the lines of IN."""
    identity = {k: v for k, v in vars(options).items() if k not in UNRECORDED}
    models = (getattr(options, "model", None) or ()) if options.method in CHAINS else ()
    for path in (getattr(options, "fit_on", None), getattr(options, "synonyms", None), *models):
        identity[f"files of {path}"] = _digest(path)
    if options.method == "sda":
        digest = parse.pipeline_digest(parse.load(options.model))
        identity |= {"pipeline": digest, "rules": rules_digest()}
    return identity


def run(options: argparse.Namespace) -> None:
    """Write OUT, or say that it is finished."""
    check(options)
    lines = read_aligned(options.source)
    if not any(lines):
        raise ValueError(f"{options.source} holds no sentence")
    device = resolve_device(getattr(options, "device", "cpu"))
    inputs = (options.source, getattr(options, "fit_on", None), getattr(options, "synonyms", None))
    written = write_aligned(
        lines,
        options.target,
        lambda: change_of(options, lines, device),
        identity_of(options),
        200 if options.method in CHAINS else 10_000 * getattr(options, "workers", 1),
        not options.quiet,
        [Path(path) for path in inputs if path],
        options.force,
    )
    if not written:
        print(f"{options.target} is finished already: nothing to do")
    elif options.method == "sda":
        print(changed_share(lines, read_aligned(options.target)))


def changed_share(before: list[str], after: list[str]) -> str:
    """How many sentences a method changed, as a sentence.

    Example:
        >>> changed_share(["Stop.", "", "Go."], ["Stop!", "", "Go."])
        '1 of 2 sentences changed (50.00 %)'
    """
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a]
    changed = sum(a != b for a, b in pairs)
    return f"{changed:,} of {len(pairs):,} sentences changed ({100 * changed / len(pairs):.2f} %)"


@reporting
def main(argv: Sequence[str] | None = None) -> int:
    """Write OUT, line by line."""
    run(arguments(argv))
    return 0
