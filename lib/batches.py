"""Which sentences make a batch."""

from collections.abc import Iterator

import numpy as np


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
