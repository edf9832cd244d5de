"""Several runs at once on one machine: processes with a share of the cores each."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> list[int]:
    """Numbers of the processor cores that this process may use; where the system does not tell, all
    of them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def at_once(
    function: Callable[[T], R], items: Sequence[T], jobs: int, gpus: int = 0
) -> Iterator[tuple[T, R]]:
    """Each item and what `function` gives for it, in `jobs` processes, as they are done.

    A process keeps to its share of the cores, and with several GPUs to one of them. Whoever stops
    early, Ctrl-C included, ends the processes at once.

    Args:
        function: a function of a module; it must not raise.
        gpus: how many there are.

    Raises:
        RuntimeError: a process was killed, for want of memory as a rule.
    """
    context = multiprocessing.get_context("spawn")
    numbers = context.SimpleQueue()
    for number in range(jobs):
        numbers.put(number)
    threads = str(len(_cores(0, jobs)))
    own = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "0"}
    with patch.dict(os.environ, own):  # libraries read them when a new process imports them
        pool = ProcessPoolExecutor(jobs, context, _settle, (numbers, jobs, gpus))
        waiting = {pool.submit(function, item): item for item in items}
    try:
        for done in as_completed(waiting):
            yield waiting[done], done.result()
        pool.shutdown()
    except BrokenProcessPool as error:
        raise RuntimeError("a process was killed, for want of memory? Use fewer --jobs") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()


def _cores(number: int, jobs: int) -> list[int]:
    """The cores of process `number`: those that this one may use, dealt out like cards."""
    available = available_cores()
    return available[number % len(available) :: jobs] or available[:1]


def _settle(numbers: Any, jobs: int, gpus: int) -> None:
    """A new process takes its share, leaves Ctrl-C to the one that started it, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    own = numbers.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, _cores(own, jobs))
    if gpus > 1:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(gpus)))
        os.environ["CUDA_VISIBLE_DEVICES"] = seen.split(",")[own % gpus]


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
