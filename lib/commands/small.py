"""The verbs that are a few lines each: `run`, `data`, `recipes`, `export` and `search`.

What a verb needs is imported after its words were read: `--help` waits for no torch.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting


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
    from lib.data import fetch as real

    parser = _parser("data", "Fetch and check the real data.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetch = verbs.add_parser("fetch", help=f"bring {real.TAR} and {real.WIKI1M}, count them")
    fetch.add_argument("--target", type=Path, help="folder to write to (default: data/)")
    fetch.add_argument("--source", type=Path, help="a folder that has both files, not the Hub")
    fetch.add_argument(
        "--only", choices=("senteval", "wiki1m"), default="", help="only one of the two"
    )
    check = verbs.add_parser("check", help="count every set; exit status 1 on a difference")
    check.add_argument("directory", type=Path)
    options = parser.parse_args(words)
    if options.verb == "fetch":
        names = tuple(n for n in (real.TAR, real.WIKI1M) if n.startswith(options.only))
        for path in real.fetch(options.target, options.source, names):
            print(f"{path} is there")
        return 0
    if not options.directory.is_dir():
        raise FileNotFoundError(f"no folder {options.directory}")
    rows = real.check(options.directory)
    for name, expected, found in rows:
        print(f"{name:<16}{expected:>10} expected, found {found}")
    return int(bool(real.differences(rows)))


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
        for name, one in known.recipes().items():
            if options.part in name:
                print(f"{name:29}{one.source}")
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
    from lib.runs.export import export as write

    print(f"wrote {write(options.run, options.target)}")
    return 0


@reporting
def search(words: Sequence[str] | None = None) -> int:
    """Print each query, then cosines and lines."""
    parser = _parser("search", "Search a file by meaning.")
    parser.add_argument("model", help="a folder or a Hugging Face id")
    parser.add_argument("file", type=Path, help="sentences, one a line")
    parser.add_argument("query", nargs="+")
    parser.add_argument("-n", type=int, default=5, help="lines for each query")
    parser.add_argument("--pooling", help="cls, mean, … (default: as saved, else what fits)")
    options = parser.parse_args(words)
    from lib.data import read_lines
    from lib.encoder import Encoder
    from lib.evaluate.neighbours import top_k

    sentences = list(dict.fromkeys(read_lines(options.file)))
    if not sentences:
        raise ValueError(f"{options.file} holds no sentence")
    if options.n < 1:
        raise ValueError(f"-n must be at least 1, got {options.n}")
    encode = Encoder.load(options.model, pooling=options.pooling).encode
    places, cosines = top_k(encode(options.query), encode(sentences), options.n)
    for query, found, near in zip(options.query, places, cosines, strict=True):
        print(query)
        for place, cosine in zip(found, near, strict=True):
            print(f"  {cosine:.3f}  {sentences[place]}")
    return 0
