"""A training's state as one file: written whole, and taken up only if no byte of it has changed."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lib.data import files

NAME = "checkpoint.safetensors"
DAMAGED = "checkpoint.damaged"
State = tuple[dict[str, Tensor], dict]


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


def save(folder: Path, tensors: Mapping[str, Tensor], state: Mapping) -> None:
    """Write `folder`'s checkpoint: complete, or the older one stays.

    Args:
        tensors: by name, on any device.
        state: whatever JSON holds, NaN included.
    """
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(state)
    metadata = {"state": text, "fingerprint": fingerprint([text, *_named(whole)])}
    with files.written(folder / NAME) as temporary:
        save_file(whole, temporary, metadata=metadata)


def load(folder: Path) -> State | None:
    """Tensors and state that `save` wrote; None if there is no checkpoint.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    text = metadata.get("state", "")
    if metadata.get("fingerprint") != fingerprint([text, *_named(tensors)]):
        raise ValueError(f"{path} is damaged: its bytes are not those that were written")
    return tensors, json.loads(text)


def set_aside(folder: Path, reason: Exception) -> None:
    """Give a damaged checkpoint another name, with a warning, so that the training begins anew."""
    os.replace(folder / NAME, folder / DAMAGED)
    warnings.warn(
        f"{reason}; it is now {folder / DAMAGED}, and the training starts again from step 0",
        stacklevel=2,
    )


def discard(folder: Path) -> None:
    """Remove the checkpoint and what killed or damaged ones left."""
    files.sweep(folder / NAME)
    for name in (NAME, DAMAGED):
        (folder / name).unlink(missing_ok=True)


def differences(there: Mapping, here: Mapping) -> list[str]:
    """What two identities do not agree in, each as `name: value there, value here`.

    Example:
        >>> differences({"seed": 1, "lr": 0.1}, {"seed": 2, "lr": 0.1})
        ['seed: 1 there, 2 here']
    """
    names = [name for name in here if there.get(name) != here[name]]
    return [f"{name}: {there.get(name)} there, {here[name]} here" for name in names]


def _named(tensors: Mapping[str, Tensor]) -> Iterable[Tensor | str]:
    for name in sorted(tensors):
        yield name
        yield tensors[name]
