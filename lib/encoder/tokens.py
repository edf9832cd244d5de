"""Token ids of a text.

A text is one long array of token ids plus row boundaries: two bytes a token for a vocabulary of
at most 65,535 pieces, about 50 MB for a million sentences.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from tqdm import tqdm

from lib.data.files import digest, kept, load_arrays, save_arrays

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
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise ValueError(f"offsets must run from 0 to {len(ids)}, the number of ids")
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
    sentences: Sequence[str], tokenizer, max_length: int, progress: bool, cache: Path | None
) -> TokenRows:
    """`tokenise`, kept in the folder `cache` for other runs on the same text.

    Nothing is kept without a folder, or of a tokenizer that cannot be written down.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if cache is None or backend is None:
        return tokenise(sentences, tokenizer, max_length, progress)

    def make() -> TokenRows:
        return tokenise(sentences, tokenizer, max_length, progress)

    def save(rows: TokenRows, path: Path) -> None:
        pad_id = np.array(rows.pad_id)
        save_arrays({"ids": rows.ids, "offsets": rows.offsets, "pad_id": pad_id}, path)

    def load(path: Path) -> TokenRows:
        arrays = load_arrays(path, ("ids", "offsets", "pad_id"))
        return TokenRows(arrays["ids"], arrays["offsets"], int(arrays["pad_id"]))

    parts = json.loads(backend.to_str())
    del parts["truncation"], parts["padding"]  # what the last call asked for
    key = digest(json.dumps(parts), type(tokenizer).__name__, str(max_length), sentences)
    return kept(cache / f"tokens-{key}.npz", make, save, load)


def tokenise(
    sentences: Sequence[str], tokenizer, max_length: int = 32, progress: bool = True
) -> TokenRows:
    """Token ids of `sentences`, cut at `max_length` tokens with the special tokens counted.

    Raises:
        ValueError: there is no sentence.
    """
    if not len(sentences):
        raise ValueError("no sentences to tokenise")
    dtype = np.uint16 if len(tokenizer) <= np.iinfo(np.uint16).max else np.uint32
    lean = {"return_attention_mask": False, "return_token_type_ids": False}
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    chunk = 10_000
    for start in tqdm(
        range(0, len(sentences), chunk), desc="tokenise", unit="×10k", disable=not progress
    ):
        batch = list(sentences[start : start + chunk])
        with _ONE_AT_A_TIME:
            rows = tokenizer(batch, truncation=True, max_length=max_length, **lean)["input_ids"]
        lengths.extend(len(r) for r in rows)
        parts.append(np.fromiter((i for r in rows for i in r), dtype))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pad_id = (
        tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    )
    return TokenRows(np.concatenate(parts), offsets, pad_id)
