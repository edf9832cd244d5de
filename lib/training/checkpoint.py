"""The file of a checkpoint: written whole, read back whole or not at all."""

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.data import files

NAME = "checkpoint.pt"
DAMAGED = "checkpoint.damaged"


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
    """Write `folder`'s checkpoint after its SHA-256: complete, or the older one stays."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()  # no copy: a large model's has gigabytes
    with files.atomic_write(folder / NAME) as temporary, open(temporary, "wb") as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)


def read(folder: Path) -> dict[str, Any] | None:
    """What `write` wrote, on the CPU; None if there is no checkpoint.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / NAME
    if not path.exists():
        return None
    content = memoryview(path.read_bytes())  # slices of it are no copies
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError(f"{path} is damaged")
    return torch.load(io.BytesIO(content[32:]), "cpu", weights_only=True)


def discard(folder: Path) -> None:
    """Remove the checkpoint and what killed writers left of it."""
    files.sweep(folder / NAME)
    for name in (NAME, DAMAGED):
        (folder / name).unlink(missing_ok=True)
