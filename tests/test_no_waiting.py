"""A training step never makes the host wait for the GPU: seen without one, on tensors without
numbers."""

from contextlib import suppress

import pytest
import torch
from tiny import tiny_encoder, tiny_recipe, tiny_sentences

from benchmarks.waiting import GPU, watched
from lib.augment import vectors
from lib.augment.representations import REPRESENTATIONS
from lib.augment.vectors import EmbeddingViews
from lib.training import losses
from lib.training.batches import Feed
from lib.training.forward import encode_batch
from lib.training.losses import Objective, batch_measures

N, T, D = 4, 12, 512


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings and a mask without numbers."""
    return torch.empty(N, T, D, device=GPU), torch.ones(N, T, dtype=torch.long, device=GPU)


def test_neither_views_nor_changes_of_vectors_wait():
    with watched() as found:
        x, mask = batch()
        for view in vectors.OUTPUT_VIEWS.values():
            assert view(x, mask, 0.3, None).device == GPU
        vectors.shuffle(torch.zeros_like(mask), mask, None)
        vectors.keep_span(torch.zeros_like(mask), mask, 0.3, None, 0)
        for change in REPRESENTATIONS.values():
            change(torch.empty(N, D, device=GPU), 0.1, None)
    assert found.seen == []


KINDS = {
    "SimCSE": {},
    "mean": {"pooling": "mean"},
    "SimCLR's head": {"head": "bn_mlp:8:8", "loss": "nt_xent"},
    "ConSERT": {"view1": "feature_cutoff", "rate1": 0.2, "view2": "shuffle"},
    "dropout view": {"view1": "dropout", "rate1": 0.2, "view2": "token_cutoff", "rate2": 0.2},
    "PCA jitter": {"representation": "jitter_pca"},
    "interpolation": {"representation": "interpolate"},
    "negatives": {"negative": "una", "every": 1, "radius": 5},
    "ArcCSE": {"loss": "arccon"},
    "DCLR": {"noise": 1.5},
    "SCD": {"loss": "scd", "head": "scd:8:8"},
    "margin": {"negative": "una", "negative_mode": "margin", "every": 1, "radius": 5},
}


def step_of(tmp_path, speedups=True, **changes) -> list[str]:
    """What waits in one whole step, from the batch on the host to the clipped gradients."""
    recipe = tiny_recipe(**changes)
    options = {"pooling": recipe.pooling, "head": recipe.head, "speedups": speedups}
    encoder = tiny_encoder(tmp_path, **options)
    batch = Feed.of(tiny_sentences(16), recipe, encoder.tokenizer, 1).batch(0)
    encoder.train().to(GPU)
    loss_of = Objective(recipe)
    with suppress(RuntimeError), watched() as found:
        views = EmbeddingViews(encoder.backbone, recipe.views) if recipe.has_views else None
        z = encode_batch(encoder, batch.to(GPU), 0, views)
        loss = loss_of(z, 0)
        batch_measures(z["anchor"], z.get("positive", z["anchor"]), z.get("negative"))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        found.seen.append("the end")
    return found.seen


@pytest.fixture(autouse=True)
def torchs_own_random_numbers(monkeypatch):
    """There is no generator for tensors without numbers."""
    monkeypatch.setattr(losses, "step_generator", lambda *_: None)


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_waits(tmp_path, kind):
    assert step_of(tmp_path, **KINDS[kind]) == ["the end"]


def test_a_step_without_our_attention_waits(tmp_path):
    assert step_of(tmp_path, speedups=False) == ["aten._local_scalar_dense"]
