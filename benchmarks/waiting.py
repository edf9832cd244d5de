"""What would make the host wait for a GPU, seen without one.

Tensors on the device "meta" have shapes and no numbers: they go the way of any device that is no
CPU. Whatever asks for a number (`item`, `nonzero`, a tensor in a condition), copies between host
and device without saying `non_blocking`, or decomposes a matrix, whose success the host asks for,
is a synchronisation.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("meta")
ASKING = (
    "aten._local_scalar_dense",
    "aten.nonzero",
    "aten.masked_select",
    "aten.is_nonzero",
    "aten._linalg_svd",
    "aten._linalg_eigh",
    "aten.linalg_cholesky_ex",
    "aten.unique",
    "aten.equal",
)


# Operations that start nothing on a device: other looks at the same memory, and empty memory.
FREE = (
    *("alias", "as_strided", "detach", "expand", "lift_fresh", "permute", "select", "slice"),
    *("split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view"),
    *("_unsafe_view", "_reshape_alias", "empty", "empty_like", "empty_strided", "new_empty"),
)


class Synchronisations(TorchDispatchMode):
    """Collects the names of operations that wait, and counts all that start something.

    An operation starts one kernel or more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = str(func).rsplit(".", 1)[0]
        self.operations += name.removeprefix("aten.") not in FREE
        devices = {tensor.device for tensor in tensors(args, kwargs)}
        if name == "aten._to_copy" and kwargs.get("device") is not None:
            devices.add(torch.device(kwargs["device"]))
        waits = name in ASKING and GPU in devices
        if name in ("aten._to_copy", "aten.copy_") and GPU in devices and len(devices) > 1:
            patient = kwargs.get("non_blocking", False) or (len(args) > 2 and args[2])
            waits = not patient
        if waits:
            self.seen.append(name)
        return func(*args, **kwargs)


def tensors(*values: object) -> list[torch.Tensor]:
    """The tensors of at least one dimension, and those on the GPU, in nested arguments."""
    leaves = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return [leaf for leaf in leaves if leaf.ndim or leaf.device == GPU]


@contextmanager
def watched() -> Iterator[Synchronisations]:
    """A place where synchronisations are counted."""
    with Synchronisations() as found:
        yield found
