"""The text of a pre-training, once for all: memory-mapped rows of token ids, word vectors to start
from and graded pairs to be scored on.

    CSE_DATA=… python -m tools.pretrain_text ROWS
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from transformers import AutoTokenizer

from lib import data, paths
from lib.data import files
from lib.encoder.tokens import tokenise
from tools.pretrain import CLS, MASK, PAD, SEP, UNK

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LONGEST = 64  # tokens of a sentence
HELD_OUT = 2_000  # sentences that are never trained on


def prepare(folder: Path, sentences: Sequence[str], dev: data.Pairs, **options: Any) -> None:
    """Write a folder of all that a training reads; it appears complete or not at all.

    Args:
        dev: graded pairs for the curve, as `lib.data.stsb` reads them.
        options: `tokenizer`, a folder whose special tokens have the ids 0 to 4; `width` of a row;
            `dims` of the word vectors; `held_out` sentences.

    Raises:
        ValueError: a tokenizer of another kind.
    """
    tokenizer = AutoTokenizer.from_pretrained(options["tokenizer"])
    if tokenizer.convert_tokens_to_ids(SPECIAL) != [PAD, UNK, CLS, SEP, MASK]:
        raise ValueError(f"{options['tokenizer']}: the ids of {SPECIAL} must be 0 to 4")
    width, vocab = options.get("width", 128), len(tokenizer)
    text = tokenise(list(dict.fromkeys(sentences)), tokenizer, LONGEST)
    lists = np.split(text.ids, text.offsets[1:-1])
    order = np.random.default_rng(0).permutation(len(lists))
    away, kept = np.split(order, [options.get("held_out", HELD_OUT)])
    rows, held_out = (pack([lists[i] for i in sorted(part)], width) for part in (kept, away))
    with files.atomic_write(folder) as temporary:
        temporary.mkdir()
        tokenizer.save_pretrained(temporary)
        np.save(temporary / "rows.npy", rows)
        np.save(temporary / "held_out.npy", held_out)
        vectors = word_vectors(rows, vocab, options.get("dims", 384)).astype(np.float16)
        counts = np.bincount(rows.ravel(), minlength=vocab)
        np.savez(temporary / "start.npz", vectors=vectors, counts=counts)
        both = tokenise([*dev.sentence1, *dev.sentence2], tokenizer, LONGEST)
        ids = both[range(len(both))][0].numpy().astype(np.uint16)
        np.savez(temporary / "dev.npz", ids=ids, gold=dev.scores)
        about: dict[str, Any] = {"sentences": len(kept), "held_out": len(away), "vocabulary": vocab}
        about |= {"tokens": int((rows != PAD).sum()), "filled": float((rows != PAD).mean())}
        about["sha256"] = files.sha256(temporary / "rows.npy")
        files.write_json(temporary / "about.json", about)


def pack(lists: Sequence[np.ndarray], width: int) -> np.ndarray:
    """Rows (n, width) of whole sentences, uint16, padded at their ends: the longest that fits comes
    next."""
    waiting: list[list[int]] = [[] for _ in range(width + 1)]
    for i in reversed(range(len(lists))):
        waiting[len(lists[i])].append(i)
    rows: list[np.ndarray] = []
    longest = width
    while longest := next((n for n in range(longest, 0, -1) if waiting[n]), 0):
        row, space = [], width
        while length := next((n for n in range(min(space, longest), 0, -1) if waiting[n]), 0):
            row.append(lists[waiting[length].pop()])
            space -= length
        rows.append(np.concatenate([*row, np.zeros(space, np.uint16)]))
    return np.stack(rows)


def word_vectors(rows: np.ndarray, vocab: int, dims: int, window: int = 5) -> np.ndarray:
    """Word vectors (vocab, dims) from co-occurrences within `window` tokens of a sentence.

    Counts at distance k weigh 1/k; contexts are smoothed with exponent 0.75; vectors are U·sqrt(S)
    of the truncated SVD of the positive pointwise mutual information, largest first (Levy, Goldberg
    & Dagan 2015).
    """
    counts = sparse.csr_matrix((vocab, vocab), dtype=np.float32)
    for part in np.array_split(rows, max(1, len(rows) // 50_000)):
        sentence = (part == CLS).cumsum(1)
        for k in range(1, window + 1):
            same = (sentence[:, :-k] == sentence[:, k:]) & (part[:, k:] > MASK)
            pair = part[:, :-k][same].astype(np.int32), part[:, k:][same].astype(np.int32)
            ones = np.full(len(pair[0]), 1 / k, np.float32)
            counts = counts + sparse.csr_matrix((ones, pair), shape=counts.shape)
    found = (counts + counts.T).tocoo()
    total, word = found.sum(), np.asarray(found.sum(1)).ravel() + 1e-9
    context = word**0.75 / (word**0.75).sum()
    pmi = np.log(found.data / total / (word[found.row] / total) / context[found.col])
    keep = (pmi > 0) & (found.row > MASK) & (found.col > MASK)
    ppmi = sparse.csr_matrix((pmi[keep], (found.row[keep], found.col[keep])), shape=found.shape)
    start = np.random.default_rng(0).standard_normal(vocab).astype(np.float32)
    u, s, _ = svds(ppmi.astype(np.float32), k=dims, v0=start)
    return (u * np.sqrt(s))[:, ::-1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.pretrain_text", description=__doc__)
    parser.add_argument("rows", type=Path, help="folder to write")
    parser.add_argument("--data-dir", help="folder with corpus/pretrain (default: CSE_DATA)")
    parser.add_argument("--tokenizer", default=paths.MIDI_BERT, help="a folder")
    options = parser.parse_args(arguments)
    folders = [base / "corpus" / "pretrain" for base in paths.data_dirs(options.data_dir)]
    texts = [path for folder in folders for path in sorted(folder.glob("*.txt.xz"))]
    sentences = [sentence for path in texts for sentence in data.read_lines(path)]
    dev = data.stsb("dev", options.data_dir)
    prepare(options.rows, sentences, dev, tokenizer=options.tokenizer)


if __name__ == "__main__":
    main()
