"""Batches prepared while the step before them is under way."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


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
