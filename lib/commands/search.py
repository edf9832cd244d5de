"""`python -m lib search my-model sentences.txt "a query"`: the lines of a file nearest to a
query."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print each query, then cosines and lines."""
    parser = argparse.ArgumentParser(
        prog="python -m lib search", description="Search a file by meaning."
    )
    parser.add_argument("model", help="a folder or a Hugging Face id")
    parser.add_argument("file", type=Path, help="sentences, one a line")
    parser.add_argument("query", nargs="+")
    parser.add_argument("-n", type=int, default=5, help="lines for each query")
    parser.add_argument(
        "--pooling", help="cls, mean, … (default: what the model was saved with, else what fits it)"
    )
    options = parser.parse_args(arguments)
    from lib import data  # torch is imported only now: --help does not need it
    from lib.encoder import Encoder
    from lib.runs.export import search

    sentences = data.read_lines(options.file)
    if not sentences:
        raise ValueError(f"{options.file} holds no sentence to search")
    encoder = Encoder.load(options.model, pooling=options.pooling)
    for query in options.query:
        print(query)
        for cosine, sentence in search(encoder.encode, sentences, query, options.n):
            print(f"  {cosine:.3f}  {sentence}")
    return 0
