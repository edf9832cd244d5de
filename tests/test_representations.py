"""Augmentations of embeddings against closed forms and their moments."""

import math

import numpy as np
import pytest
import torch

from lib.augment import representations
from lib.augment.representations import REPRESENTATIONS

Z = torch.randn(
    40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64
) * torch.arange(1, 7)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_strength_zero_is_the_identity_and_seeds_decide(name):
    change = REPRESENTATIONS[name]
    assert torch.allclose(change(Z, 0.0, None), Z)
    one, two, other = (change(Z, 0.3, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, two) and one.shape == Z.shape and one.dtype == Z.dtype
    assert torch.equal(one, other) == (name in ("interpolate", "extrapolate"))


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_the_gradient_reaches_every_embedding(name):
    z = Z.clone().requires_grad_()
    REPRESENTATIONS[name](z, 0.3, torch.Generator().manual_seed(0)).square().sum().backward()
    assert (z.grad.abs().sum(1) > 0).all()


def test_interpolation_goes_towards_the_nearest_other_sample():
    moved = representations.interpolate(Z, 0.25)
    for i, z in enumerate(Z):
        others = [j for j in range(len(Z)) if j != i]
        q = Z[max(others, key=lambda j: torch.cosine_similarity(z, Z[j], 0).item())]
        assert torch.allclose(moved[i], 0.75 * z + 0.25 * q)
    assert representations.interpolate(Z[:1], 0.1).equal(Z[:1])


def test_extrapolation_stretches_about_the_centre():
    moved, centre = representations.extrapolate(Z, 0.5), Z.mean(0)
    assert torch.allclose(moved - centre, 1.5 * (Z - centre))


def test_linear_sampling_adds_a_difference_of_two_samples():
    seeded = lambda: torch.Generator().manual_seed(0)  # noqa: E731
    shift = representations.sample_linearly(Z, 1.0, seeded()) - Z
    differences = Z[:, None] - Z[None]
    assert all((differences - s).abs().amax(-1).min() < 1e-9 for s in shift)
    assert torch.allclose(representations.sample_linearly(Z, 0.25, seeded()) - Z, 0.25 * shift)
    many, variance = Z.repeat(500, 1), Z.var(0, correction=0)
    shifts = representations.sample_linearly(many, 1.0, seeded()) - many
    # Two samples, drawn apart from each other and from the sample itself.
    assert torch.allclose(shifts.square().mean(0), 2 * variance, rtol=0.05)
    assert (((many - Z.mean(0)) * shifts).mean(0).abs() < 0.05 * variance).all()


def test_gaussian_noise_has_each_features_size():
    noise = torch.randn(Z.shape, generator=torch.Generator().manual_seed(5), dtype=Z.dtype)
    moved = representations.add_gaussian(Z, 0.2, torch.Generator().manual_seed(5))
    for i, j in np.ndindex(*Z.shape):
        sigma = math.sqrt(sum((v - Z[:, j].mean()).item() ** 2 for v in Z[:, j]) / len(Z))
        expected = Z[i, j].item() + 0.2 * noise[i, j].item() * sigma
        assert moved[i, j].item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["add_gaussian", "jitter_pca"])
def test_noise_is_a_constant_of_the_step(name):
    """Its size follows from the batch, but no gradient goes through that."""
    z = Z.clone().requires_grad_()
    (REPRESENTATIONS[name](z, 0.3, torch.Generator().manual_seed(0)) * Z).sum().backward()
    assert torch.allclose(z.grad, Z)


def test_noise_of_sentences_is_distributed_as_noise_along_the_axes():
    """What a GPU draws, here on a CPU: the same covariance, and every direction it has."""
    centred = Z - Z.mean(0)
    covariance = centred.T @ centred / len(Z)
    random = torch.Generator().manual_seed(0)
    for along in (representations._along_axes, representations._along_sentences):
        noise = torch.cat([along(centred.float(), random) for _ in range(400)]).double()
        found = noise.T @ noise / len(noise)
        assert torch.allclose(found, covariance, atol=0.03 * float(covariance.diagonal().max()))
        assert noise.mean(0).abs().max() < 0.1
