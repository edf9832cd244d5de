"""Random numbers of a training: each step's and each process's, from the seed alone."""

import numpy as np
import torch


def step_generator(
    seed: int, step: int, device: torch.device | str = "cpu", rank: int = 0
) -> torch.Generator:
    """Random numbers of one step, which do not depend on what was drawn before; torch reads 32 bits
    of a seed."""
    (state,) = np.random.SeedSequence([seed, rank, step]).generate_state(1)
    return torch.Generator(device).manual_seed(int(state))


def dropout_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a process's dropout from `step` on: the run's own in the main process.

    Those of the other processes are independent of it, of each other and of other runs'.

    Example:
        >>> dropout_seed(42, 0), dropout_seed(42, 1) == dropout_seed(43, 0)
        (42, False)
    """
    if rank == 0:
        return seed
    return int(np.random.SeedSequence([seed, rank, step], spawn_key=(1,)).generate_state(1)[0])
