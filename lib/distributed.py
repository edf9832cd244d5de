"""One process or many: negatives gathered across processes, with gradients.

Started by `torchrun` (or, on GPUs, by `accelerate launch`), every process takes its share of each batch; embeddings
are gathered so that all of them see all candidates. Alone, everything here is the identity.
"""

import os
from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import Tensor, nn


def is_main_process() -> bool:
    """True in the process that writes files: rank 0, or the only one."""
    return os.environ.get("RANK", "0") == "0"


class _Gather(torch.autograd.Function):
    """All-gather along the batch whose backward hands every process the gradient of its own rows."""

    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        ctx.rows = len(z)
        parts = [torch.empty_like(z) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, z.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        start = dist.get_rank() * ctx.rows
        return gradients[0][start : start + ctx.rows]


class Group:
    """The processes that train together.

    The loss of the gathered batch is the same in every process. Each one back-propagates through its own rows;
    DDP averages, so the loss is scaled by the number of processes, which makes the average the gradient of the
    whole batch.
    """

    def __init__(self, device: torch.device):
        self.size = self.processes()
        self.accelerator = Accelerator(cpu=device.type == "cpu") if self.size > 1 else None
        self.rank = self.accelerator.process_index if self.accelerator else 0
        self.device = self.accelerator.device if self.accelerator else device

    @staticmethod
    def processes() -> int:
        """How many processes train together."""
        return int(os.environ.get("WORLD_SIZE", "1"))

    @property
    def is_main(self) -> bool:
        """True in the process that writes files."""
        return self.rank == 0

    def prepare(self, model: nn.Module) -> nn.Module:
        """The model on this process's device, wrapped for gradient averaging where there are several."""
        if self.accelerator is None:
            return model.to(self.device)
        return self.accelerator.prepare_model(model)

    def share(self, rows: np.ndarray) -> np.ndarray:
        """This process's part of a batch.

        Raises:
            ValueError: the batch does not divide among the processes.
        """
        if len(rows) % self.size:
            raise ValueError(f"a batch of {len(rows)} does not divide among {self.size} processes")
        part = len(rows) // self.size
        return rows[self.rank * part : (self.rank + 1) * part]

    def gather(self, views: Sequence[Tensor]) -> list[Tensor]:
        """The whole batch's embeddings (n, d) of each view, with gradients to this process's rows."""
        return list(views) if self.accelerator is None else [_Gather.apply(z) for z in views]

    def backward(self, loss: Tensor) -> None:
        """Back-propagate so that the averaged gradient is the gradient of `loss` over the whole batch."""
        (loss * self.size).backward()

    def wait(self) -> None:
        """Meet the other processes here."""
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()
