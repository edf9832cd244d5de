"""Token ids of a corpus, and the batches drawn from them.

A corpus is one long array of token ids plus row boundaries: two bytes a token for a vocabulary of
at most 65,535 pieces, about 50 MB for a million sentences.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tqdm import tqdm


class TokenRows:
    """Ragged rows of token ids: `ids[offsets[i]:offsets[i + 1]]` is sentence i, special tokens included.

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


def tokenise(sentences: Sequence[str], tokenizer, max_length: int = 32, progress: bool = True) -> TokenRows:
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
    for start in tqdm(range(0, len(sentences), chunk), desc="tokenise", unit="×10k", disable=not progress):
        batch = list(sentences[start : start + chunk])
        rows = tokenizer(batch, truncation=True, max_length=max_length, **lean)["input_ids"]
        lengths.extend(len(r) for r in rows)
        parts.append(np.fromiter((i for r in rows for i in r), dtype))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return TokenRows(np.concatenate(parts), offsets, pad_id)


class BucketBatches:
    """Seeded batches of row numbers; with `bucket`, rows of similar length share a batch.

    Every epoch is a fresh permutation. It is cut into pools of `pool` batches, each pool is sorted by
    length and cut into batches, and the batches are shuffled: little padding, and every sentence once an
    epoch. Batch i of epoch e depends on (seed, e, i) alone, so a resumed run sees the same batches.

    Args:
        lengths: length of every row, (n,).
        batch_size: rows in a batch.
        drop_last: leave out the rows that do not fill a batch (contrastive losses depend on the batch
            size); else they make one batch more, at the end of the epoch, with `bucket` anywhere.

    Example:
        >>> batches = BucketBatches(np.array([3, 9, 3, 9]), batch_size=2, seed=0)
        >>> sorted(sorted(b.tolist()) for b in batches.epoch(0))
        [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_size: int,
        seed: int = 0,
        bucket: bool = True,
        drop_last: bool = True,
        pool: int = 50,
    ):
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if not len(lengths):
            raise ValueError("no sentences to make batches of")
        if len(lengths) < batch_size and drop_last:
            raise ValueError(f"{len(lengths)} sentences do not fill one batch of {batch_size}: lower batch_size")
        self.lengths, self.batch_size, self.seed = np.asarray(lengths), batch_size, seed
        self.bucket, self.drop_last, self.pool = bucket, drop_last, pool

    @property
    def rows(self) -> int:
        """Rows in one epoch."""
        return len(self) * self.batch_size if self.drop_last else len(self.lengths)

    @property
    def sizes(self) -> set[int]:
        """Rows in the batches of an epoch: `batch_size`, and the rest if that is not left out."""
        full, rest = divmod(len(self.lengths), self.batch_size)
        return ({self.batch_size} if full else set()) | ({rest} if rest and not self.drop_last else set())

    def __len__(self) -> int:
        """Batches in one epoch."""
        full, rest = divmod(len(self.lengths), self.batch_size)
        return full if self.drop_last or not rest else full + 1

    def epoch(self, number: int) -> list[np.ndarray]:
        """All batches of epoch `number`, in training order."""
        rng = np.random.default_rng((self.seed, number))
        order = rng.permutation(len(self.lengths))
        order = order[: self.rows]
        if self.bucket:
            size = self.pool * self.batch_size
            pools = [order[i : i + size] for i in range(0, len(order), size)]
            order = np.concatenate([p[np.argsort(self.lengths[p], kind="stable")] for p in pools])
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))] if self.bucket else batches

    def from_step(self, step: int) -> Iterator[tuple[int, np.ndarray]]:
        """Endless `(step, rows)` pairs, beginning at any step without going through the earlier ones."""
        while True:
            number, first = divmod(step, len(self))
            for rows in self.epoch(number)[first:]:
                yield step, rows
                step += 1
