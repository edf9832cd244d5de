"""`python -m lib search my-model FILE 'it'`: the lines of a file nearest to a query."""

from collections.abc import Sequence
from pathlib import Path

from lib.commands import reporting, verb_parser
from lib.data import read_lines


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print each query, then cosines and lines."""
    parser = verb_parser("search", "Search a file by meaning.")
    add = parser.add_argument
    add("model", help="a folder or a Hugging Face id")
    add("file", type=Path, help="sentences, one a line")
    add("query", nargs="+")
    add("-n", type=int, default=5, help="lines for each query")
    add("--pooling", help="cls, mean, … (default: as saved, else what fits)")
    options = parser.parse_args(arguments)
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
