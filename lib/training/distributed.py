"""One process or many: embeddings and batch-norm statistics gathered with their gradients.

Started by `torchrun` (or, on GPUs, by `accelerate launch`), every process takes its share of each
batch; embeddings are gathered so that all of them see all candidates. Alone, everything here is
the identity.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

LONGEST_WAIT = timedelta(days=7)


def is_main_process() -> bool:
    """True in the process that writes files: rank 0, or the only one."""
    return os.environ.get("RANK", "0") == "0"


class _Gather(torch.autograd.Function):
    """All-gather along the batch whose backward sums what all processes have to say about a row."""

    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        z = z.contiguous()
        parts = [torch.empty_like(z) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, z)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return _own_rows(total)


def _own_rows(whole: Tensor) -> Tensor:
    return whole.chunk(dist.get_world_size())[dist.get_rank()]


class WholeBatchNorm(nn.BatchNorm1d):
    """Batch norm whose statistics in training are those of all processes' rows together."""

    def forward(self, x: Tensor) -> Tensor:
        """Own rows (n / processes, d) of the normalised whole batch (n, d)."""
        if not self.training:
            return super().forward(x)
        return _own_rows(super().forward(_Gather.apply(x)))


class Group:
    """The processes that train together.

    The loss of the gathered batch is the same in every process, and each one back-propagates
    through its own rows. Their gradient is summed over the processes and DDP averages, which makes
    the average the gradient of the whole batch. While the main process evaluates, the others wait
    for it, for days if need be.
    """

    def __init__(self, device: torch.device):
        self.size, self.rank, self.device = self.processes(), 0, device
        self.is_main = is_main_process()
        if self.size == 1:
            return
        self.rank = int(os.environ["RANK"])
        on_gpu = device.type == "cuda"
        if on_gpu:
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(self.device)
        if not dist.is_initialized():
            dist.init_process_group("nccl" if on_gpu else "gloo", timeout=LONGEST_WAIT)

    @staticmethod
    def processes() -> int:
        """How many processes train together."""
        return int(os.environ.get("WORLD_SIZE", "1"))

    def prepare(self, model: nn.Module) -> nn.Module:
        """The model on this process's device.

        Among several, gradients are averaged and batch norm is synchronised.
        """
        model = model.to(self.device)
        if self.size == 1:
            return model
        for module in model.modules():
            if type(module) is nn.BatchNorm1d:
                module.__class__ = WholeBatchNorm
        return DistributedDataParallel(model, [self.device] if self.device.type == "cuda" else None)

    def check(self, sizes: Iterable[int]) -> None:
        """Refuse batches of these sizes if one does not divide among the processes.

        Raises:
            ValueError: one does not.
        """
        for rows in sizes:
            if rows % self.size:
                raise ValueError(f"a batch of {rows} does not divide among {self.size} processes")

    def share(self, rows: np.ndarray) -> np.ndarray:
        """This process's part of a batch."""
        part = len(rows) // self.size
        return rows[self.rank * part : (self.rank + 1) * part]

    def gather(self, views: Sequence[Tensor]) -> list[Tensor]:
        """The whole batch's embeddings (n, d) of each view, with gradients to this process's
        rows."""
        return list(views) if self.size == 1 else [_Gather.apply(z) for z in views]

    def agree(self, flag: bool) -> bool:
        """The main process's `flag`, in every process."""
        if self.size == 1:
            return flag
        sent = torch.tensor([int(flag)], device=self.device)
        dist.broadcast(sent, 0)
        return bool(sent.item())

    def wait(self) -> None:
        """Meet the other processes here."""
        if self.size > 1:
            dist.barrier()
