"""Token ids of a text.

A text is one long array of token ids plus row boundaries: two bytes a token for a vocabulary of
at most 65,535 pieces, about 50 MB for a million sentences.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
import torch

from lib.data.files import Arrays, cached, digest, load_arrays, save_arrays

CHUNK = 10_000  # sentences tokenised at once
_ONE_AT_A_TIME = Lock()  # a tokenizer keeps the length it cuts at, which all threads share


class TokenRows:
    """Ragged rows of token ids: `ids[offsets[i]:offsets[i + 1]]` is sentence i, special tokens
    included.

    Args:
        ids: all rows end to end, uint16 or uint32.
        offsets: row boundaries, int64 (n + 1,).
        pad_id: id that `__getitem__` fills short rows with.

    Example:
        >>> rows = TokenRows(np.array([5, 6, 7], np.uint16), np.array([0, 1, 3]), pad_id=0)
        >>> rows[[1, 0]][0].tolist()
        [[6, 7], [5, 0]]
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray, pad_id: int):
        self.ids, self.offsets, self.pad_id = ids, np.asarray(offsets, np.int64), pad_id
        self.lengths = np.diff(self.offsets).astype(np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: Sequence[int] | np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return padded ids `(n, t)` int64 and mask `(n, t)` int64 of the rows asked for."""
        rows = np.asarray(rows)
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max(initial=0))
        mask = columns < lengths[:, None]  # (n, t)
        where = np.minimum(self.offsets[rows][:, None] + columns, max(len(self.ids) - 1, 0))
        ids = np.where(mask, self.ids[where].astype(np.int64), self.pad_id)
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def tokenise_once(
    sentences: Sequence[str], tokenizer, max_length: int, cache: Path | None
) -> TokenRows:
    """`tokenise`, kept in the folder `cache` for other runs on the same text.

    Nothing is kept without a folder, or of a tokenizer that cannot be written down.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if cache is None or backend is None:
        return tokenise(sentences, tokenizer, max_length)

    def arrays() -> Arrays:
        rows = tokenise(sentences, tokenizer, max_length)
        return {"ids": rows.ids, "offsets": rows.offsets, "pad_id": np.array(rows.pad_id)}

    parts = json.loads(backend.to_str())
    del parts["truncation"], parts["padding"]  # what the last call asked for
    key = digest(json.dumps(parts), type(tokenizer).__name__, str(max_length), sentences)
    load = partial(load_arrays, names=("ids", "offsets", "pad_id"))
    found = cached(cache / f"tokens-{key}.npz", arrays, save_arrays, load)
    return TokenRows(found["ids"], found["offsets"], int(found["pad_id"]))


def tokenise(sentences: Sequence[str], tokenizer, max_length: int = 32) -> TokenRows:
    """Token ids of `sentences`, cut at `max_length` tokens with the special tokens counted.

    Raises:
        ValueError: there is no sentence.
    """
    if not len(sentences):
        raise ValueError("no sentences to tokenise")
    dtype = np.uint16 if len(tokenizer) <= np.iinfo(np.uint16).max else np.uint32
    options = {"truncation": True, "max_length": max_length}
    options |= {"return_attention_mask": False, "return_token_type_ids": False}
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    for start in range(0, len(sentences), CHUNK):
        with _ONE_AT_A_TIME:
            rows = tokenizer(list(sentences[start : start + CHUNK]), **options)["input_ids"]
        lengths.extend(map(len, rows))
        parts.append(np.fromiter((i for row in rows for i in row), dtype))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pad_id = tokenizer.pad_token_id
    pad_id = tokenizer.eos_token_id if pad_id is None else pad_id
    return TokenRows(np.concatenate(parts), offsets, pad_id)
