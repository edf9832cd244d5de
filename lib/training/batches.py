"""From token rows to batches: which sentences share one, and who is who in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lib.encoder.device import copied_to
from lib.encoder.tokens import TokenRows
from lib.training.views import Negatives, Text, make_negatives, make_views

if TYPE_CHECKING:
    from lib.training.recipe import Recipe

PAIR_ROLES = ("anchor", "positive")
NEGATIVE_ROLES = ("negative", "negative_again")  # the second one where a negative is an anchor, too
POOL = 50  # batches whose rows are sorted by length together
Views = Sequence[TokenRows]
Share = Callable[[np.ndarray], np.ndarray]  # np.asarray: all rows
T = TypeVar("T")
_END: Any = object()


@dataclass(frozen=True)
class Batch:
    """Sentences of one step as model input: all roles padded to one width, encoded in one forward
    pass.

    Attributes:
        ids, mask: (rows, t) int64, the roles one after the other.
        sizes: rows of each role, in order: `anchor`; `positive`, unless one encoding serves as
            both; where there are hard negatives `negative`, and `negative_again`, their second
            encoding, if the objective asks for it.

    Example:
        >>> part = torch.tensor([[5, 6]]), torch.tensor([[1, 1]])
        >>> batch = Batch.of({"anchor": part, "positive": part}, pad_id=0)
        >>> batch.ids.shape, batch.sizes
        (torch.Size([2, 2]), {'anchor': 1, 'positive': 1})
    """

    ids: Tensor
    mask: Tensor
    sizes: dict[str, int]

    @classmethod
    def of(
        cls, parts: Mapping[str, tuple[Tensor, Tensor]], pad_id: int, widths: Sequence[int] = ()
    ) -> Batch:
        """Ids and masks (n, t) of each role, padded at the right to the widest.

        Args:
            widths: those that a batch may have, ascending; it gets the first that is enough. None
                are given: any.
        """
        width = max(ids.shape[1] for ids, _ in parts.values())
        width = next((allowed for allowed in widths if allowed >= width), width)
        ids = [F.pad(i, (0, width - i.shape[1]), value=pad_id) for i, _ in parts.values()]
        masks = [F.pad(m, (0, width - m.shape[1])) for _, m in parts.values()]
        sizes = {role: len(i) for role, (i, _) in parts.items()}
        return cls(torch.cat(ids), torch.cat(masks), sizes)

    def of_roles(self, roles: Collection[str]) -> Batch:
        """The rows of these roles alone, in their order."""
        sizes = list(self.sizes.values())
        parts = zip(self.sizes, self.ids.split(sizes), self.mask.split(sizes), strict=True)
        return Batch.of({role: (ids, mask) for role, ids, mask in parts if role in roles}, 0)

    def to(self, device: torch.device) -> Batch:
        """The batch on a device; the copy to a GPU does not wait for what runs there."""
        return Batch(copied_to(self.ids, device), copied_to(self.mask, device), self.sizes)


class Feed:
    """The batches of a training, seeded: batch i depends on the text, the recipe, the seed and i
    alone.

    Args:
        views: token rows of the anchors, and of the positives unless one encoding serves as both;
            as `make_views`.
        recipe: batch size, order, and on which steps there are hard negatives.
        negatives: as `make_negatives`.
        seed: of the order, a whole number from 0.

    Raises:
        ValueError: a batch of one sentence.

    Example:
        >>> from lib import data, paths
        >>> from lib.encoder.load import read_tokenizer
        >>> from lib.training.recipe import recipe
        >>> simcse = recipe("mini_simcse")
        >>> feed = Feed.of(data.corpus("mini", n=256), simcse, read_tokenizer(str(paths.MINI_BERT)))
        >>> feed.batch(0).sizes
        {'anchor': 128, 'positive': 128}
    """

    def __init__(
        self, views: Views, recipe: Recipe, negatives: Negatives | None = None, seed: int = 42
    ):
        self.views, self.recipe, self.negatives, self.seed = views, recipe, negatives, seed
        lengths = np.max([view.lengths for view in views], axis=0)
        size = recipe.batch_size
        self.order = BucketBatches(lengths, size, seed, recipe.bucket, recipe.drop_last)
        if 1 in self.order.sizes:
            raise ValueError(f"a batch of one sentence is left: change batch_size={size}")

    @classmethod
    def of(
        cls, sentences: Sequence[str] | Text, recipe: Recipe, tokenizer, seed: int = 42, **lines
    ) -> Feed:
        """The feed of a text: positives and hard negatives made as the recipe says.

        Args:
            sentences: the text, or a `Text` with what belongs to its lines.
            seed: of augmentations, hard negatives and the order.
            lines: what belongs to sentences that are no `Text`: its fields by name.

        Raises:
            ValueError: as `make_views`, `make_negatives` and `Feed`.
        """
        text = sentences if isinstance(sentences, Text) else Text(sentences, **lines)
        views = make_views(text, recipe, tokenizer, seed)
        return cls(views, recipe, make_negatives(text, recipe, tokenizer, seed), seed)

    def __len__(self) -> int:
        """Batches in one epoch."""
        return len(self.order)

    def batch(self, step: int, share: Share = np.asarray) -> Batch:
        """The batch of one step; `share` picks the rows of this process."""
        return next(self.steps(step, step + 1, share))[1]

    def steps(
        self, start: int, stop: int, share: Share = np.asarray, widths: Sequence[int] = ()
    ) -> Iterator[tuple[int, Batch]]:
        """The steps from `start` to `stop` and their batches, without going through the earlier
        ones; `widths` as `Batch.of`."""
        for step, rows in islice(self.order.from_step(start), max(stop - start, 0)):
            yield step, self._batch(step, share(rows), widths)

    def _batch(self, step: int, rows: np.ndarray, widths: Sequence[int]) -> Batch:
        parts = {role: view[rows] for role, view in zip(PAIR_ROLES, self.views, strict=False)}
        if self.negatives is not None and step % self.recipe.every == 0:
            roles = NEGATIVE_ROLES if self.recipe.negative_mode == "doubled" else NEGATIVE_ROLES[:1]
            parts |= dict.fromkeys(roles, self.negatives(rows, step))
        return Batch.of(parts, self.views[0].pad_id, widths)


@dataclass
class BucketBatches:
    """Seeded batches of row numbers; with `bucket`, rows of similar length share a batch.

    Every epoch is a fresh permutation. It is cut into pools of 50 batches, each pool is
    sorted by length and cut into batches, and the batches are shuffled: little padding, and every
    sentence once an epoch. Batch i of epoch e depends on (seed, e, i) alone, so a resumed run
    sees the same batches.

    Args:
        lengths: length of every row, (n,).
        batch_size: rows in a batch.
        drop_last: leave out the rows that do not fill a batch (contrastive losses depend on the
            batch size); else they make one batch more, at the end of the epoch, with `bucket`
            anywhere.

    Raises:
        ValueError: the rows do not fill one batch.

    Example:
        >>> batches = BucketBatches(np.array([3, 9, 3, 9]), batch_size=2, seed=0)
        >>> sorted(sorted(b.tolist()) for b in batches.epoch(0))
        [[0, 2], [1, 3]]
    """

    lengths: np.ndarray
    batch_size: int
    seed: int = 0
    bucket: bool = True
    drop_last: bool = True

    def __post_init__(self) -> None:
        n, size = len(self.lengths), self.batch_size
        if n < (size if self.drop_last else 1):
            raise ValueError(f"{n} sentences do not fill one batch of {size}: lower batch_size")
        self.rows = n - n % size if self.drop_last else n  # in one epoch
        self.sizes = {min(size, self.rows), self.rows % size} - {0}  # rows in a batch

    def __len__(self) -> int:
        """Batches in one epoch."""
        return -(-self.rows // self.batch_size)

    def epoch(self, number: int) -> list[np.ndarray]:
        """All batches of epoch `number`, in training order."""
        rng = np.random.default_rng((self.seed, number))
        order = rng.permutation(len(self.lengths))[: self.rows]
        if self.bucket:
            size = POOL * self.batch_size
            pools = [order[i : i + size] for i in range(0, len(order), size)]
            order = np.concatenate([p[np.argsort(self.lengths[p], kind="stable")] for p in pools])
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))] if self.bucket else batches

    def from_step(self, step: int) -> Iterator[tuple[int, np.ndarray]]:
        """Endless `(step, rows)` pairs, beginning at any step without going through the earlier
        ones."""
        while True:
            number, first = divmod(step, len(self))
            for rows in self.epoch(number)[first:]:
                yield step, rows
                step += 1


def prefetched(items: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The items in their order, `depth` of them made ahead in one other thread.

    An error in making an item is raised where that item is due. Whoever stops early stops the
    thread, too.

    Example:
        >>> list(prefetched(iter("abc")))
        ['a', 'b', 'c']
    """
    worker = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        waiting = deque(worker.submit(next, items, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(worker.submit(next, items, _END))
            yield item
    finally:
        worker.shutdown(cancel_futures=True)
