"""Objectives against slow double loops, closed forms and public implementations."""

import math
from functools import partial
from statistics import fmean

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.training.losses import (
    batch_measures,
    chance_loss,
    in_batch_accuracy,
    info_nce,
    margin_info_nce,
    nt_xent,
    simsiam,
)

TEMPERATURES = (0.03, 0.05, 0.1, 1.0)
few = settings(max_examples=40, deadline=None)
close = partial(pytest.approx, rel=1e-9, abs=1e-9)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    dot, aa, bb = (
        sum(x * y for x, y in zip(u.tolist(), v.tolist(), strict=True))
        for u, v in ((a, b), (a, a), (b, b))
    )
    return dot / math.sqrt(aa) / math.sqrt(bb)


def slow_loss(positive: float, others: list[tuple[float, float]], tau: float) -> float:
    """−log of the positive's share; `others` are (weight, cosine)."""
    top = math.exp(positive / tau)
    return -math.log(top / (top + sum(w * math.exp(c / tau) for w, c in others)))


def slow_info_nce(z1, z2, tau, extra=None) -> float:
    """`extra(i)` gives the (weight, cosine) of anchor i's further candidates."""
    total = 0.0
    for i in range(len(z1)):
        others = [(1.0, cosine(z1[i], z2[j])) for j in range(len(z2)) if j != i]
        total += slow_loss(cosine(z1[i], z2[i]), others + (extra(i) if extra else []), tau)
    return total / len(z1)


def slow_nt_xent(z1, z2, tau, negatives=()) -> tuple[float, float]:
    """Means of the two directions."""
    n, both = len(z1), [*z1, *z2]
    directions = []
    for start in (0, n):
        total = 0.0
        for i in range(start, start + n):
            own = (i + n) % (2 * n)
            others = [(1.0, cosine(both[i], both[j])) for j in range(2 * n) if j not in (i, own)]
            others += [(1.0, cosine(both[i], neg)) for neg in negatives]
            total += slow_loss(cosine(both[i], both[own]), others, tau)
        directions.append(total / n)
    return directions[0], directions[1]


@few
@given(
    n=st.integers(1, 6),
    m=st.integers(0, 5),
    d=st.integers(1, 5),
    tau=st.sampled_from(TEMPERATURES),
    seed=st.integers(0, 999),
)
def test_info_nce_and_nt_xent_are_the_double_loop(n, m, d, tau, seed):
    """Shared negatives are candidates of every anchor."""
    z1, z2, more = draw(n, d, seed=seed), draw(n, d, seed=seed + 1), draw(m, d, seed=seed + 2)
    given = (more,) if m else ()
    slow = slow_info_nce(z1, z2, tau, lambda i: [(1.0, cosine(z1[i], row)) for row in more])
    assert info_nce(z1, z2, tau, *given).item() == close(slow)
    first, second = slow_nt_xent(z1, z2, tau, list(more))
    assert nt_xent(z1, z2, tau, *given).item() == close((first + second) / 2)
    assert nt_xent(z1, z2, tau, *given, reduction="sum").item() == close(first + second)


@pytest.mark.parametrize("n", [1, 2, 5, 64])
@pytest.mark.parametrize("tau", TEMPERATURES)
def test_equal_sentences_score_chance(n, tau):
    z = draw(1, 7).expand(n, 7)
    assert info_nce(z, z, tau).item() == close(math.log(n))
    assert info_nce(z, z, tau, z[:1]).item() == close(chance_loss(n + 1))
    assert nt_xent(z, z, tau).item() == close(chance_loss(2 * n - 1))
    assert nt_xent(z, z, tau, reduction="sum").item() == close(2 * math.log(2 * n - 1))
    assert margin_info_nce(z, z, z, tau, delta=0.0).item() == close(chance_loss(n + 1))


def test_loss_does_not_depend_on_the_embeddings_length():
    z1, z2, negatives = draw(4, 3), draw(4, 3, seed=1), draw(4, 3, seed=2)
    scale = torch.tensor([[0.01], [1.0], [7.0], [300.0]], dtype=torch.float64)
    for loss in (
        lambda a, b, c: info_nce(a, b, 0.1, c),
        lambda a, b, c: nt_xent(a, b, 0.1, c),
        margin_info_nce,
    ):
        assert torch.allclose(
            loss(z1, z2, negatives), loss(scale * z1, z2 / scale, scale * negatives)
        )


def test_equals_multiple_negatives_ranking_loss():
    st_losses = pytest.importorskip("sentence_transformers.losses")
    z1, z2, negatives = (draw(6, 8, seed=s).float() for s in range(3))
    for tau in (0.05, 0.2):
        theirs = st_losses.MultipleNegativesRankingLoss(model=None, scale=1 / tau)
        compute = theirs.compute_loss_from_embeddings
        assert torch.allclose(info_nce(z1, z2, tau), compute([z1, z2], labels=None), atol=1e-5)
        assert torch.allclose(
            info_nce(z1, z2, tau, negatives), compute([z1, z2, negatives], labels=None), atol=1e-5
        )


@pytest.mark.parametrize(
    "loss",
    [
        lambda a, b, c: info_nce(a, b, 0.2),
        lambda a, b, c: info_nce(a, b, 0.2, c),
        lambda a, b, c: nt_xent(a, b, 0.2),
        lambda a, b, c: nt_xent(a, b, 0.2, c, "sum"),
        lambda a, b, c: margin_info_nce(a, b, c, 0.2, 0.3),
    ],
)
def test_gradients_agree_with_finite_differences(loss):
    inputs = [draw(3, 4, seed=s).requires_grad_() for s in range(3)]
    used = [torch.autograd.grad(loss(*inputs), x, allow_unused=True)[0] is not None for x in inputs]
    assert used[0] and used[1]
    assert torch.autograd.gradcheck(loss, inputs)


@few
@given(
    n=st.integers(1, 5),
    tau=st.sampled_from(TEMPERATURES),
    delta=st.sampled_from((0.0, 0.3, 0.5, 1.0)),
)
def test_margin_is_the_double_loop(n, tau, delta):
    z1, z2, negation = draw(n, 4, seed=n), draw(n, 4, seed=n + 1), draw(n, 4, seed=n + 2)
    slow = slow_info_nce(z1, z2, tau, lambda i: [(1.0, cosine(z1[i], negation[i]) - delta)])
    assert margin_info_nce(z1, z2, negation, tau, delta).item() == close(slow)


def test_simsiam_stops_the_gradient():
    h1, p1, h2, p2 = (draw(4, 3, seed=s).requires_grad_() for s in range(4))
    loss = simsiam(torch.cat([h1, p1], 1), torch.cat([h2, p2], 1))
    slow = -sum(cosine(p1[i], h2[i]) + cosine(p2[i], h1[i]) for i in range(4)) / 8
    assert loss.item() == pytest.approx(slow)
    loss.backward()
    assert not h1.grad.any() and not h2.grad.any()
    assert p1.grad.abs().sum() > 0 and p2.grad.abs().sum() > 0


def test_in_batch_accuracy_counts_and_ties():
    z1 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    z2 = torch.tensor([[5.0, 0.1], [2.0, 0.0], [1.0, 1.0]])
    assert in_batch_accuracy(z1, z2).item() == pytest.approx(1 / 3)
    assert in_batch_accuracy(torch.ones(9, 4), torch.ones(9, 4)).item() == 0.0
    pair = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert in_batch_accuracy(pair, pair).item() == pytest.approx(1 / 3)


def test_batch_measures_against_the_loop():
    z1, z2, negatives = draw(4, 3), draw(4, 3, seed=1), draw(4, 3, seed=2)
    found = batch_measures(z1.requires_grad_(), z2, negatives)
    others = [cosine(z1[i], z2[j]) for i in range(4) for j in range(4) if i != j]
    expected = {
        "in_batch_accuracy": in_batch_accuracy(z1, z2).item(),
        "positive_cosine": fmean([cosine(*pair) for pair in zip(z1, z2, strict=True)]),
        "other_cosine": fmean(others),
        "own_negative_cosine": fmean([cosine(*pair) for pair in zip(z1, negatives, strict=True)]),
    }
    assert {name: value.item() for name, value in found.items()} == pytest.approx(expected)
    assert not any(value.requires_grad for value in found.values())
    alone = batch_measures(z1[:1], z2[:1])
    assert alone["other_cosine"].item() == close(0)
    assert alone["positive_cosine"].item() == pytest.approx(cosine(z1[0], z2[0]))


z = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("word", "call"),
    [
        ("temperature", lambda: info_nce(z, z, 0.0)),
        ("temperature", lambda: nt_xent(z, z, math.nan)),
        ("of one shape", lambda: info_nce(z, z[:2])),
        ("of one shape", lambda: info_nce(z[0], z[0])),
        ("not empty", lambda: nt_xent(z[:0], z[:0])),
        ("of one shape", lambda: margin_info_nce(z, z, z[:2])),
        ("negatives", lambda: info_nce(z, z, negatives=z[:, :2])),
        ("negatives", lambda: nt_xent(z, z, negatives=z[:0])),
    ],
)
def test_what_is_no_batch_is_refused(word, call):
    with pytest.raises(ValueError, match=word):
        call()
