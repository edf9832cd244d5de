"""`python -m lib search my-model sentences.txt "a query"`: the lines of a file nearest to a
query."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lib import data
from lib.commands import reporting
from lib.encoder import Encoder
from lib.share import search


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
    options = parser.parse_args(arguments)
    sentences = data.read_lines(options.file)
    if not sentences:
        raise ValueError(f"{options.file} holds no sentence to search")
    encoder = Encoder.load(options.model)
    for query in options.query:
        print(query)
        for cosine, sentence in search(encoder.encode, sentences, query, options.n):
            print(f"  {cosine:.3f}  {sentence}")
    return 0
