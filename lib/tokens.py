"""Token ids of a text.

A text is one long array of token ids plus row boundaries: two bytes a token for a vocabulary of
at most 65,535 pieces, about 50 MB for a million sentences.
"""

from collections.abc import Sequence

import numpy as np
import torch
from tqdm import tqdm


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
        rows = tokenizer(batch, truncation=True, max_length=max_length, **lean)["input_ids"]
        lengths.extend(len(r) for r in rows)
        parts.append(np.fromiter((i for r in rows for i in r), dtype))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pad_id = (
        tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    )
    return TokenRows(np.concatenate(parts), offsets, pad_id)
