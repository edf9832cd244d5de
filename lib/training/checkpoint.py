"""The file of a checkpoint: written whole, read back whole or not at all."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.data import files

NAME = "checkpoint.pt"


def fingerprint(parts: Iterable[Tensor | np.ndarray | str]) -> str:
    """16 hexadecimal digits that change with any bit of any part.

    Example:
        >>> fingerprint(["a", torch.zeros(2)]) == fingerprint(["a", torch.tensor([0.0, 1e-9])])
        False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            part = part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).data)
    return digest.hexdigest()[:16]


def write(folder: Path, state: Mapping[str, Any]) -> None:
    """Write `folder`'s checkpoint: complete, or the older one stays."""
    with files.atomic_write(folder / NAME) as temporary:
        torch.save(state, temporary)


def read(folder: Path) -> dict[str, Any] | None:
    """What `write` wrote, on the CPU; None if there is no checkpoint.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        return torch.load(path, "cpu", weights_only=True)
    except (EOFError, RuntimeError, UnpicklingError) as error:
        raise ValueError(f"{path} is damaged: delete it, and the training starts anew") from error
