"""The processor cores that there are for a process."""

import os


def available_cores() -> list[int]:
    """Numbers of the processor cores that this process may use; where the system does not tell, all
    of them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
