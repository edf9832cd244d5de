"""A training step never makes the host wait for the GPU: seen without one, on tensors without
numbers."""

import pytest
import torch
from synchronisations import GPU, watched

from lib.augment import embeddings, representations

N, T, D = 4, 12, 512


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings and a mask without numbers."""
    return torch.empty(N, T, D, device=GPU), torch.ones(N, T, dtype=torch.long, device=GPU)


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        (lambda x: bool((x > 0).all()), "aten._local_scalar_dense"),
        (lambda x: (x > 0).nonzero(), "aten.nonzero"),
        (lambda x: x.cpu(), "aten._to_copy"),
        (lambda x: torch.linalg.svd(x), "aten._linalg_svd"),
        (lambda x: x + torch.tensor([1.0]).to(GPU), "aten._to_copy"),
    ],
)
def test_what_waits_is_seen(what, seen):
    with watched() as found:
        try:
            what(torch.empty(4, 4, device=GPU))
        except (RuntimeError, NotImplementedError):  # such tensors have no answer to give
            pass
    assert found.seen == [seen]


def test_a_copy_that_does_not_wait_is_none():
    with watched() as found:
        torch.empty(3).to(GPU, non_blocking=True)
    assert found.seen == []


@pytest.mark.parametrize("name", embeddings.OUTPUT_VIEWS)
def test_no_view_waits(name):
    with watched() as found:
        x, mask = batch()
        assert embeddings.OUTPUT_VIEWS[name](x, mask, 0.3, None).device == GPU
    assert found.seen == []


def test_neither_order_nor_tokens_wait():
    with watched() as found:
        _, mask = batch()
        embeddings.shuffle(torch.zeros_like(mask), mask, None)
        embeddings.keep_span(torch.zeros_like(mask), mask, 0.3, None, 0)
    assert found.seen == []


@pytest.mark.parametrize("name", representations.REPRESENTATIONS)
def test_no_change_of_vectors_waits(name):
    with watched() as found:
        representations.REPRESENTATIONS[name](torch.empty(N, D, device=GPU), 0.1, None)
    assert found.seen == []
