"""Objectives of contrastive sentence embedding, each a small function of embedding matrices, and
what a recipe makes of them: one function of a batch's embeddings by role.

Every loss takes embeddings `z` that are **not** normalised and normalises them itself, so that
similarity is the cosine in [-1, 1]; `temperature` is the τ of the papers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from lib.augment.representations import REPRESENTATIONS, gaussian_negatives, gradient_ascent
from lib.checked import Registry
from lib.training.seeds import step_generator

if TYPE_CHECKING:
    from lib.training.recipe import Recipe

LOSSES = Registry()


def chance_loss(candidates: int) -> float:
    """Loss of a model that cannot tell `candidates` candidates apart: ln(candidates), in nats.

    Example:
        >>> round(chance_loss(64), 4)
        4.1589
    """
    return math.log(candidates)


def cosine_matrix(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of every row of `a` (n, d) with every row of `b` (m, d): a matrix (n, m) in [-1, 1].

    Example:
        >>> cosine_matrix(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        tensor([[1., 0.]])
    """
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T  # (n, m)


@LOSSES.register("info_nce")
def info_nce(
    z1: Tensor, z2: Tensor, temperature: float = 0.05, negatives: Tensor | None = None
) -> Tensor:
    """InfoNCE with in-batch negatives: one direction, n candidates for each anchor.

    ℓ_i = −log  exp(cos(z1_i, z2_i)/τ)
                / [ Σ_j exp(cos(z1_i, z2_j)/τ) + Σ_k exp(cos(z1_i, neg_k)/τ) ]

    Args:
        z1: anchors (n, d).
        z2: positives (n, d); row i belongs to anchor i, the other rows are its negatives.
        temperature: τ > 0, dimensionless.
        negatives: further candidates (m, d) for every anchor.

    Returns:
        The mean over the n anchors, in nats. A model at chance scores ln(n + m).

    Raises:
        ValueError: τ is not positive, shapes do not fit, or the batch is empty.

    Relations:
        Equals sentence-transformers' `MultipleNegativesRankingLoss(scale=1/τ)`. `nt_xent` is the
        symmetric form in which a view also sees its own side as negatives.

    Example:
        >>> z = torch.eye(3)
        >>> round(info_nce(z, z, temperature=1.0).item(), 4)
        0.5514

    Source: Gao et al. 2021 (SimCSE), Eq. 1 and 5.
    """
    _check(z1, z2, temperature)
    logits = _widened(cosine_matrix(z1, z2) / temperature, z1, negatives, temperature)
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


@LOSSES.register("nt_xent")
def nt_xent(
    z1: Tensor,
    z2: Tensor,
    temperature: float = 0.1,
    negatives: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Normalised temperature-scaled cross-entropy: both views are anchors, 2n − 1 candidates each.

    With u = [z1; z2] and p(i) the other view of u_i:
    ℓ_i = −log  exp(cos(u_i, u_p(i))/τ)
                / [ Σ_{j≠i} exp(cos(u_i, u_j)/τ) + Σ_k exp(cos(u_i, neg_k)/τ) ]

    Args:
        z1, z2: the two views (n, d).
        temperature: τ > 0.
        negatives: further candidates (m, d) that are anchors of nothing.
        reduction: "mean" over the 2n rows; "sum" adds the means of the two directions (ConSERT's
            code).

    Returns:
        A scalar in nats. n equal sentences give ln(2n − 1) with "mean" and twice that with "sum".

    Raises:
        ValueError: as `info_nce`.

    Example:
        >>> z = torch.ones(4, 2)
        >>> round(nt_xent(z, z).item(), 4) == round(math.log(7), 4)
        True

    Source: Chen et al. 2020 (SimCLR), Eq. 1; Yan et al. 2021 (ConSERT), Eq. 1.
    """
    _check(z1, z2, temperature)
    n = len(z1)
    both = torch.cat([z1, z2])  # (2n, d)
    logits = cosine_matrix(both, both) / temperature  # (2n, 2n)
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z1.device), -math.inf)
    logits = _widened(logits, both, negatives, temperature)
    target = torch.arange(2 * n, device=z1.device).roll(n)
    loss = F.cross_entropy(logits, target)
    return 2 * loss if reduction == "sum" else loss


LOSSES.register("nt_xent_sum")(partial(nt_xent, reduction="sum"))


@LOSSES.register("arccon")
def arccon(
    z1: Tensor,
    z2: Tensor,
    temperature: float = 0.05,
    negatives: Tensor | None = None,
    margin: float = 10.0,
) -> Tensor:
    """InfoNCE in which a pair's angle θ_ii counts as larger by a margin.

    ℓ_i = −log  exp(cos(θ_ii + m)/τ)
                / [ exp(cos(θ_ii + m)/τ) + Σ_{j≠i} exp(cos θ_ij/τ) + Σ_k exp(cos(z1_i, neg_k)/τ) ]

    with θ_ij the angle between z1_i and z2_j, and cos(θ + m) = cos θ cos m − sin θ sin m. Beyond
    θ = 180° − m the formula's cosine rises again; nothing is done about it.

    Args:
        z1, z2: anchors and positives (n, d).
        temperature: τ > 0.
        negatives: further candidates (m, d), without a margin.
        margin: m in degrees, in [0, 90].

    Raises:
        ValueError: as `info_nce`.

    Relations:
        m = 0 gives `info_nce(z1, z2, τ, negatives)`. ArcCSE's second loss, on triplets of sentences
        with nested masks, is not here.

    Example:
        >>> z = torch.eye(2)
        >>> round(arccon(z, z, 1.0, margin=90.0).item(), 4)  # a pair as far apart as any other
        0.6931

    Source: Zhang et al. 2022 (ArcCSE), its ArcCon loss, as the code of Li et al. 2024
        (UnderstandingCSE, isotropy/models.py lines 240-249) restates it.
    """
    _check(z1, z2, temperature)
    logits = cosine_matrix(z1, z2)  # (n, n)
    cos, m = logits.diagonal(), math.radians(margin)
    sin = (1 - cos.square()).clamp_min(1e-12).sqrt()
    logits = torch.diagonal_scatter(logits, cos * math.cos(m) - sin * math.sin(m)) / temperature
    logits = _widened(logits, z1, negatives, temperature)
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


def margin_info_nce(
    z1: Tensor, z2: Tensor, z_neg: Tensor, temperature: float = 0.05, delta: float = 0.5
) -> Tensor:
    """InfoNCE in which each anchor sees its own negation as a negative, relaxed by `delta`.

    ℓ_i = −log  exp(cos(z1_i, z2_i)/τ)
                / [ Σ_j exp(cos(z1_i, z2_j)/τ) + exp((cos(z1_i, z_neg_i) − δ)/τ) ]

    Args:
        z1, z2: anchors and positives (n, d).
        z_neg: the negation of each anchor (n, d); it is nobody else's negative.
        temperature: τ > 0.
        delta: δ, in units of cosine; 0 treats a negation as any other negative, 2 and more nearly
            removes it.

    Raises:
        ValueError: as `info_nce`; `z_neg` must have the shape of `z1`, too.

    Relations:
        δ → ∞ gives `info_nce(z1, z2)`. The printed Eq. 1 and 4 have lost their log.

    Example:
        >>> z = torch.eye(2)
        >>> bool(margin_info_nce(z, z, z, delta=50.0) == info_nce(z, z))
        True

    Source: Zhu et al. 2024 (SDA), Eq. 4.
    """
    _check(z1, z2, temperature)
    _check(z1, z_neg)
    logits = cosine_matrix(z1, z2) / temperature  # (n, n)
    own_negation = (F.cosine_similarity(z1, z_neg) - delta) / temperature  # (n,)
    logits = torch.cat([logits, own_negation[:, None]], dim=1)  # (n, n + 1)
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


@LOSSES.register("simsiam")
def simsiam(z1: Tensor, z2: Tensor, temperature: float = 0.0) -> Tensor:
    """Negative cosine of a prediction and the other view's projection, which gets no gradient.

    ℓ = −½ mean cos(p1, stop(h2)) − ½ mean cos(p2, stop(h1)),  in [-1, 1],

    with rows z = [h; p], projection and prediction side by side, as the head `simsiam` gives them.
    No negatives and no τ: nothing but the predictor and the stopped gradient keeps the embeddings
    apart.

    Args:
        z1, z2: the two views (n, 2·d).
        temperature: ignored; every registered loss takes it.

    Raises:
        ValueError: shapes differ or the batch is empty.

    Relations:
        The code of ConSERT's extension adds the two directions without the half: its loss is twice
        this one, which a recipe writes as `loss_weight=2`.

    Example:
        >>> z = torch.eye(2).repeat(1, 2)
        >>> simsiam(z, z).item()
        -1.0

    Source: Chen & He 2021 (SimSiam), Eq. 1 and 2.
    """
    _check(z1, z2)
    (h1, p1), (h2, p2) = z1.chunk(2, dim=1), z2.chunk(2, dim=1)
    first = F.cosine_similarity(p1, h2.detach()).mean()
    return -0.5 * (first + F.cosine_similarity(p2, h1.detach()).mean())


@LOSSES.register("scd")
def scd(
    z1: Tensor,
    z2: Tensor,
    temperature: float = 0.05,
    features: int = 0,
    decorrelation: float = 0.005225,
    off_diagonal: float = 0.012,
) -> Tensor:
    """Self-contrast and decorrelation: push a sentence's two vectors apart, and keep their features
    alike and independent of each other.

    ℓ = mean_i cos(h1_i, h2_i)/τ + β [ Σ_a (1 − C_aa)² + λ Σ_{a≠b} C_ab² ],  C = P1ᵀ P2 / n

    with rows z = [h; p] as the head `scd` gives them, and P the features p after a batch norm over
    the view: (p − mean)/√(var + 1e-5).

    Args:
        z1, z2: the two views (n, d + f), n ≥ 2.
        temperature: τ > 0.
        features: f, how many of the columns are p; 0: half of them.
        decorrelation: β ≥ 0.
        off_diagonal: λ ≥ 0.

    Raises:
        ValueError: as `info_nce`.

    Relations:
        Without its first term it is the loss of Barlow Twins (Zbontar et al. 2021), times β.

    Example:
        >>> h, p = torch.eye(4), torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
        >>> z = torch.cat([h, p], dim=1)  # features already independent, equal in both views
        >>> round(scd(z, z, temperature=1.0, features=2).item(), 4)
        1.0

    Source: Klein & Nabi 2022 (SCD); scd/models.py lines 257-274 of its code, with its α = 1.
    """
    _check(z1, z2, temperature)
    f = features or z1.shape[1] // 2
    widths = [z1.shape[1] - f, f]
    (h1, p1), (h2, p2) = z1.split(widths, dim=1), z2.split(widths, dim=1)
    correlation = _standardised(p1).T @ _standardised(p2) / len(z1)  # (f, f)
    own = correlation.diagonal()
    others = correlation.square().sum() - own.square().sum()
    apart = F.cosine_similarity(h1, h2).mean() / temperature
    return apart + decorrelation * ((1 - own).square().sum() + off_diagonal * others)


def _standardised(x: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1, as a batch norm without weights makes them."""
    return (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()


def in_batch_accuracy(z1: Tensor, z2: Tensor) -> Tensor:
    """Share of anchors whose own positive is their nearest candidate, in [0, 1]; ties count as
    misses.

    Beside the loss it tells a collapse (accuracy near 0) from an easy task (accuracy near 1).

    Example:
        >>> in_batch_accuracy(torch.eye(3), torch.eye(3)).item()
        1.0
    """
    return batch_measures(z1, z2)["in_batch_accuracy"]


@torch.no_grad()
def batch_measures(z1: Tensor, z2: Tensor, negatives: Tensor | None = None) -> dict[str, Tensor]:
    """What a loss sees of a batch: `in_batch_accuracy`, and mean cosines in [-1, 1], where the
    forces stand.

    Args:
        z1, z2: anchors and positives (n, d); negatives: a hard negative of each anchor (n, d).

    Returns:
        `in_batch_accuracy`; `positive_cosine`, of an anchor with its positive; `other_cosine`, with
        the positives of others (0 in a batch of one); `own_negative_cosine`, with its own hard
        negative, where there are any.

    Example:
        >>> z = torch.eye(2)
        >>> [round(value.item(), 2) for value in batch_measures(z, z, -z).values()]
        [1.0, 1.0, 0.0, -1.0]
    """
    _check(z1, z2)
    n = len(z1)
    sim = cosine_matrix(z1, z2)  # (n, n)
    others = sim.masked_fill(torch.eye(n, dtype=torch.bool, device=sim.device), -math.inf)
    own = sim.diagonal().sum()
    measures = {
        "in_batch_accuracy": (sim.diagonal() > others.amax(dim=1)).float().mean(),
        "positive_cosine": own / n,
        "other_cosine": (sim.sum() - own) / max(n * (n - 1), 1),
    }
    if negatives is not None:
        measures["own_negative_cosine"] = F.cosine_similarity(z1, negatives).mean()
    return measures


def _widened(logits: Tensor, z1: Tensor, negatives: Tensor | None, temperature: float) -> Tensor:
    """The logits (n, c) with further columns, one for each of the negatives (m, d)."""
    if negatives is None:
        return logits
    d = z1.shape[1]
    if negatives.ndim != 2 or negatives.shape[1] != d or not len(negatives):
        raise ValueError(f"negatives must be (m, {d}), not empty, got {tuple(negatives.shape)}")
    return torch.cat([logits, cosine_matrix(z1, negatives) / temperature], dim=1)


def _check(a: Tensor, b: Tensor, temperature: float = 1.0) -> None:
    if a.ndim != 2 or a.shape != b.shape or a.numel() == 0:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(f"embeddings must be of one shape (n, d), not empty, got {shapes}")
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")


def own_settings(recipe: Recipe) -> dict[str, float]:
    """What the recipe's loss takes beside two views, τ and negatives.

    Example:
        >>> from lib.training.recipe import recipe
        >>> own_settings(recipe("mini_simcse", loss="arccon")), own_settings(recipe("mini_simcse"))
        ({'margin': 10.0}, {})
    """
    if recipe.loss == "arccon":
        return {"margin": recipe.angular_margin}
    if recipe.loss == "scd":
        weights = {"decorrelation": recipe.decorrelation, "off_diagonal": recipe.off_diagonal}
        width = recipe.head.rpartition(":")[2] if ":" in recipe.head else 0
        return weights | {"features": int(width)}
    return {}


class Objective:
    """The recipe's loss; hard negatives enter it in the recipe's way.

    `doubled`: each hard negative is an anchor whose positive is its own second encoding, so it
    needs two. `extra`: a further candidate of every anchor. `margin`: a candidate of its own
    sentence only, relaxed by δ. The role `queue` and noise are further candidates of every anchor.

    Args:
        recipe: loss, τ, δ, weight, noise, and the augmentation of the positives' embeddings.
        seed: of noise and augmentation.

    Example:
        >>> from lib.training.recipe import recipe
        >>> objective = Objective(recipe("mini_simcse", temperature=1.0))
        >>> z = torch.eye(2)
        >>> round(objective({"anchor": z, "positive": z}).item(), 4)  # −ln(e / (e + 1))
        0.3133

    Source: SimCSE (Gao et al. 2021) eq. 1; UNA (Shu & Lampos 2024) §4; SDA (Zhu et al. 2024)
    eq. 4; queue and noise of ESimCSE (Wu et al. 2022) and DCLR (Zhou et al. 2022).
    """

    def __init__(self, recipe: Recipe, seed: int = 42):
        self.recipe, self.seed = recipe, seed
        self._loss = partial(LOSSES[recipe.loss], **own_settings(recipe))

    def __call__(self, z: Mapping[str, Tensor], step: int = 0) -> Tensor:
        """Loss, a scalar, of embeddings (n, d) of each role of `Batch.sizes`, and (m, d) of the
        `queue` if there is one."""
        recipe, anchor, positive = self.recipe, z["anchor"], z.get("positive", z["anchor"])
        draws = recipe.representation != "none" or recipe.noise > 0
        generator = step_generator(self.seed, step, anchor.device) if draws else None
        if recipe.representation != "none":
            change = REPRESENTATIONS[recipe.representation]
            positive = change(positive, recipe.representation_strength, generator)
        mode = recipe.negative_mode if "negative" in z else "none"
        if mode == "margin":
            pair = anchor, positive, z["negative"]
            return recipe.loss_weight * margin_info_nce(*pair, recipe.temperature, recipe.delta)
        if mode == "doubled":
            anchor = torch.cat([anchor, z["negative"]])
            positive = torch.cat([positive, z["negative_again"]])
        candidates = [z["queue"]] if len(z.get("queue", ())) else []
        if mode == "extra":
            candidates.append(z["negative"])
        if recipe.noise:
            candidates.append(self._noise(anchor.detach(), positive.detach(), generator))
        return recipe.loss_weight * self._contrast(anchor, positive, candidates)

    def _noise(self, anchor: Tensor, positive: Tensor, generator: torch.Generator | None) -> Tensor:
        """Random vectors, moved up the loss."""

        def loss(noise: Tensor) -> Tensor:
            return self._contrast(anchor, positive, [noise])

        start = gaussian_negatives(anchor, self.recipe.noise, generator)
        return gradient_ascent(start, loss, self.recipe.noise_steps, self.recipe.noise_rate)

    def _contrast(self, anchor: Tensor, positive: Tensor, candidates: list[Tensor]) -> Tensor:
        """The recipe's loss; the candidates are further negatives of every anchor."""
        negatives = {"negatives": torch.cat(candidates)} if candidates else {}
        return self._loss(anchor, positive, self.recipe.temperature, **negatives)

    def compared(self, z: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The columns whose cosines the loss is about: SCD's vectors without their features,
        SimSiam's projections without their predictions, of other losses all."""
        width = z["anchor"].shape[1]
        if self.recipe.loss == "scd":
            width -= self._loss.keywords["features"] or width // 2
        elif self.recipe.loss == "simsiam":
            width //= 2
        return {role: rows[:, :width] for role, rows in z.items()}
