"""What a recipe minimises, as one function of a batch's embeddings by role."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lib.augment.vectors import REPRESENTATIONS, climb, gaussian_negatives
from lib.training import losses
from lib.training.losses import LOSSES
from lib.training.recipe import Recipe


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
        own = {"decorrelation": recipe.decorrelation, "off_diagonal": recipe.off_diagonal}
        width = recipe.head.rpartition(":")[2] if ":" in recipe.head else 0
        return own | {"features": int(width)}
    return {}


def step_generator(
    seed: int, step: int, device: torch.device | str = "cpu", rank: int = 0
) -> torch.Generator:
    """Random numbers of one step, which do not depend on what was drawn before; torch reads 32 bits
    of a seed."""
    (state,) = np.random.SeedSequence([seed, rank, step]).generate_state(1)
    return torch.Generator(device).manual_seed(int(state))


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

    Source: SimCSE (Gao et al. 2021) eq. 1; UNA (Shu & Lampos 2024) §3.3; SDA (Zhu et al. 2024)
    eq. 4; queue and noise of ESimCSE (Wu et al. 2022) and DCLR (Zhou et al. 2022).
    """

    def __init__(self, recipe: Recipe, seed: int = 42):
        self.recipe, self.seed = recipe, seed
        self._loss = partial(LOSSES[recipe.loss], **own_settings(recipe))

    def __call__(self, z: Mapping[str, Tensor], step: int = 0) -> Tensor:
        """Loss, a scalar, of embeddings (n, d) of each role of `Batch.sizes`, and (m, d) of the
        `queue` if there is one."""
        own, anchor, positive = self.recipe, z["anchor"], z.get("positive", z["anchor"])
        draws = own.representation != "none" or own.noise
        generator = step_generator(self.seed, step, anchor.device) if draws else None
        if own.representation != "none":
            change = REPRESENTATIONS[own.representation]
            positive = change(positive, own.representation_strength, generator)
        further = [z["queue"]] if len(z.get("queue", ())) else []
        if "negative" in z and own.negative_mode == "margin":
            pair = anchor, positive, z["negative"]
            return own.loss_weight * losses.margin_info_nce(*pair, own.temperature, own.delta)
        if "negative" in z and own.negative_mode == "doubled":
            anchor = torch.cat([anchor, z["negative"]])
            positive = torch.cat([positive, z["negative_again"]])
        elif "negative" in z:
            further.append(z["negative"])
        if own.noise:
            noise = gaussian_negatives(anchor.detach(), own.noise, generator)
            loss = partial(self._loss, anchor.detach(), positive.detach(), own.temperature)
            further.append(climb(noise, loss, own.noise_steps, own.noise_rate))
        negatives = (torch.cat(further),) if further else ()
        return own.loss_weight * self._loss(anchor, positive, own.temperature, *negatives)

    def compared(self, z: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The columns whose cosines the loss is about: SCD's vectors without their features,
        SimSiam's projections without their predictions, of other losses all."""
        width = z["anchor"].shape[1]
        if self.recipe.loss == "scd":
            width -= self._loss.keywords["features"] or width // 2
        elif self.recipe.loss == "simsiam":
            width //= 2
        return {role: rows[:, :width] for role, rows in z.items()}
