"""Where a run computes and how exactly: `auto` is resolved here and nowhere else."""

import os

import torch
from torch import Tensor


def resolve_device(device: str = "auto") -> torch.device:
    """`"auto"` is the first CUDA GPU if there is one, else the CPU; any other name is taken as it
    is.

    A Mac's GPU is used only if it is named: `"mps"`.

    Raises:
        ValueError: no device is called so, or PyTorch sees none of that kind here.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return torch.device("cuda" if gpus else "cpu")
    present = {"cpu": 1, "cuda": gpus, "mps": int(torch.backends.mps.is_available())}
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError):
        resolved = None
    if resolved is None or (resolved.index or 0) >= present.get(resolved.type, 0):
        allowed = "'auto' or one available here, such as 'cpu'"
        raise ValueError(f"device must be {allowed}, got {device!r}")
    return resolved


def resolve_precision(precision: str = "auto", device: str | torch.device = "cpu") -> str:
    """`"auto"` is bf16 autocast where the device multiplies bf16 matrices in hardware, else fp32.

    That means: GPUs that have bf16 units (compute capability 8 or more, or AMD's), and CPUs with
    AMX tiles or AVX512-BF16. On other CPUs bf16 is emulated and several times slower than fp32.
    The environment variable `CSE_AUTO_PRECISION`, fp32 or bf16, says what "auto" means in its
    place; a precision that is named is not touched.

    Raises:
        ValueError: `precision`, or the variable, is not one of auto, fp32, bf16.
    """
    if precision == "auto":
        precision = os.environ.get("CSE_AUTO_PRECISION") or "auto"
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision (CSE_AUTO_PRECISION): auto, fp32 or bf16, not {precision!r}")
    if precision != "auto":
        return precision
    if torch.device(device).type == "cuda":
        fast = bool(torch.version.hip) or torch.cuda.get_device_properties(device).major >= 8
    else:
        fast = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return "bf16" if fast else "fp32"


def copied_to(x: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; the copy to a GPU does not wait for what runs there."""
    x = x.pin_memory() if device.type == "cuda" else x
    return x.to(device, non_blocking=device.type not in ("cpu", "mps"))
