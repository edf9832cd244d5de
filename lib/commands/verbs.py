"""Every verb of `python -m lib` but `grid`, one function each.

What a verb needs is imported after its words were read: `--help` waits for no torch.
"""

import argparse
import inspect
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lib.augment import AUGMENTATIONS, NEED_SYNONYMS
from lib.augment import augment as operation
from lib.augment.sda import RULES
from lib.commands import reporting
from lib.data import read_aligned, read_lines
from lib.data.files import write_json, write_text

EDA = ("replace_synonyms", "insert_synonyms", "swap", "delete")
METHODS = {
    "una": "Hard negatives: replace heavy words by words of similar weight (TF-IDF).",
    "sda": "A rule on the syntax tree: punctuation, modal verb, negation, double negation.",
    "eda": f"One of EDA's operations on each line, in turn: {', '.join(EDA)}.",
    **{name: str(inspect.getdoc(f)).split("\n\n")[0] for name, f in AUGMENTATIONS.items()},
}


def _parser(verb: str, what: str, example: str = "") -> argparse.ArgumentParser:
    return argparse.ArgumentParser(f"python -m lib {verb}", description=what, epilog=example)


@reporting
def run(words: Sequence[str] | None = None) -> int:
    """Execute one notebook; exit status 1 if it failed."""
    example = "example: python -m lib run 04_una -p beta 0.3 -p seed 1 --no-lesson"
    parser = _parser("run", "Execute a notebook with parameters; it stays as it is.", example)
    add = parser.add_argument
    add("name", help="02_simcse, 02, or the path of a notebook")
    what = "a parameter of the notebook, as its parameters cell lists them; once for each"
    add("-p", "--parameter", nargs=2, action="append", metavar=("NAME", "VALUE"), help=what)
    add("--no-lesson", action="store_true", help="leave out the lesson: only the run is executed")
    add("--out", type=Path, help="the executed notebook (default: chosen under outputs/)")
    options = parser.parse_args(words)
    from lib.runs import notebooks

    notebook = notebooks.find(options.name)
    parameters = notebooks.read_parameters(notebook, options.parameter or [])
    lesson, out = not options.no_lesson, options.out
    if out and (out.suffix != ".ipynb" or out.is_dir() or out.resolve() == notebook.resolve()):
        raise ValueError(f"--out {out} must be another file that ends in .ipynb")
    target = out.absolute() if out else notebooks.run_path(notebook, parameters, lesson)
    done = notebooks.execute(notebook, target, parameters, lesson, sys.stderr.isatty())
    if done.error:
        print(f"FAILED {notebook.stem}, {done.error}", file=sys.stderr)
    print(f"Executed in {notebooks.clock(done.seconds)}: {done.path}")
    return int(done.error is not None)


@reporting
def data(words: Sequence[str] | None = None) -> int:
    """Fetch or count the real data; exit status 1 if a count differs."""
    from lib.data import fetch

    verbs = (parser := _parser("data", "The real data.")).add_subparsers(dest="verb", required=True)
    bring = verbs.add_parser("fetch", help=f"bring {fetch.TAR} and {fetch.WIKI1M}, count them")
    bring.add_argument("--target", type=Path, help="folder to write to (default: data/)")
    bring.add_argument("--source", type=Path, help="a folder that has both files, not the Hub")
    bring.add_argument("--only", choices=("senteval", "wiki1m"), default="", help="one of the two")
    check = verbs.add_parser("check", help="count every set; exit status 1 on a difference")
    check.add_argument("directory", type=Path)
    options = parser.parse_args(words)
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


@reporting
def augment(words: Sequence[str] | None = None) -> int:
    """Write OUT, complete or not at all, and print how many lines changed."""
    options = _augment_options(words)
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


def _augment_options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser("augment", "Line i of OUT belongs to line i of IN.")
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
    return parser.parse_args(words)


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
    versions = [operation(name, lines, options.rate, **settings) for name in names]
    return [versions[i % len(names)][i] for i in range(len(lines))]


@reporting
def evaluate(words: Sequence[str] | None = None) -> int:
    """Print one line a task."""
    about = "Spearman's correlation × 100 of cosine similarities and gold scores."
    add = (parser := _parser("evaluate", about)).add_argument
    add("model", metavar="MODEL", help="a folder or a Hugging Face id")
    add("--suite", choices=("sts", "mini"), default="sts", help="seven STS sets, or shipped pairs")
    add("--pooling", help="cls, mean, pooler, … (default: as it was saved, else what fits it)")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    add("--device", default="auto", help="cpu, cuda or mps (default: the best there is)")
    add("--data-dir", type=Path, help="default: CSE_DATA, then data/")
    add("--json", type=Path, help="also write the scores to this file")
    options = parser.parse_args(words)
    if options.json and options.json.is_dir():
        raise ValueError(f"--json {options.json} is a folder: name a file")
    from lib.encoder import Encoder
    from lib.encoder.device import resolve_device, resolve_precision
    from lib.runs import model_path

    device = resolve_device(options.device)
    encoder = Encoder.load(model_path(options.model), pooling=options.pooling, device=str(device))
    precision = resolve_precision(options.precision, device)
    pooling, head = encoder.settings["eval_pooling"], encoder.settings["eval_head"]
    scores = _scores(encoder, precision, options)
    print(f"pooling {pooling}{' and head' if head else ''}, {precision} on {device}")
    print(*(f"{task:<10}{score:7.2f}" for task, score in scores.items()), sep="\n")
    if any(map(math.isnan, scores.values())):
        print("nan: all similarities of a task are equal; the embeddings have collapsed")
    if options.json:
        known = {task: None if math.isnan(score) else score for task, score in scores.items()}
        how = {"model": options.model, "suite": options.suite, "pooling": pooling, "head": head}
        write_json(options.json, how | {"precision": precision, "spearman": known})
    return 0


def _scores(encoder: Any, precision: str, options: argparse.Namespace) -> dict[str, float]:
    """Name → Spearman × 100 of a suite."""
    from lib import data, evaluate

    encode = partial(encoder.encode, precision=precision, progress=sys.stderr.isatty())
    if options.suite == "sts":
        return evaluate.sts7(encode, options.data_dir)
    sets = [data.mini_pairs(split) for split in ("dev", "test")]
    return {pairs.name: evaluate.pairs_spearman(encode, pairs) for pairs in sets}


@reporting
def recipes(words: Sequence[str] | None = None) -> int:
    """Print the recipes, or one."""
    parser = _parser("recipes", "Hyper-parameters and where they are from.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="recipes with their sources")
    listing.add_argument("part", nargs="?", default="", help="of the name")
    verbs.add_parser("show", help="every field that has an effect").add_argument("name")
    options = parser.parse_args(words)
    from lib.training import recipe as known

    if options.verb == "list":
        found = {n: one.source for n, one in known.recipes().items() if options.part in n}
        if not found:
            raise ValueError(f"no recipe has {options.part!r} in its name")
        print(*(f"{name:29}{source}" for name, source in found.items()), sep="\n")
        return 0
    chosen = known.recipe(options.name)
    print(f"{chosen.name}: {chosen.source}")
    for field, value in chosen.in_use().items():
        print(f"  {field:24} {value}")
    return 0


@reporting
def export(words: Sequence[str] | None = None) -> int:
    """Print the folder that was written."""
    parser = _parser("export", "Use a trained encoder elsewhere.")
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("target", type=Path, help="folder to write")
    options = parser.parse_args(words)
    from lib.runs.export import export as exported

    print(f"wrote {exported(options.run, options.target)}")
    return 0


@reporting
def search(words: Sequence[str] | None = None) -> int:
    """Print each query, then cosines and lines."""
    add = (parser := _parser("search", "Search a file by meaning.")).add_argument
    add("model", help="a folder or a Hugging Face id")
    add("file", type=Path, help="sentences, one a line")
    add("query", nargs="+")
    add("-n", type=int, default=5, help="lines for each query")
    add("--pooling", help="cls, mean, … (default: as saved, else what fits)")
    options = parser.parse_args(words)
    from lib.encoder import Encoder
    from lib.evaluate.neighbours import top_k
    from lib.runs import model_path

    sentences = list(dict.fromkeys(read_lines(options.file)))
    if not sentences:
        raise ValueError(f"{options.file} holds no sentence")
    if options.n < 1:
        raise ValueError(f"-n must be at least 1, got {options.n}")
    encode = Encoder.load(model_path(options.model), pooling=options.pooling).encode
    places, cosines = top_k(encode(options.query), encode(sentences), options.n)
    for query, found, near in zip(options.query, places, cosines, strict=True):
        print(query)
        for place, cosine in zip(found, near, strict=True):
            print(f"  {cosine:.3f}  {sentences[place]}")
    return 0
