"""What a recipe minimises, as one function of a batch's embeddings by role."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lib import losses
from lib.augment.representations import REPRESENTATIONS
from lib.recipes import Recipe

LOSSES: dict[str, Callable[..., Tensor]] = {
    "info_nce": losses.info_nce,
    "nt_xent": losses.nt_xent,
    "nt_xent_sum": partial(losses.nt_xent, reduction="sum"),
    "simsiam": losses.simsiam_of_both,
}


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
    sentence only, relaxed by δ.

    Args:
        recipe: loss, τ, δ, weight, and the augmentation of the positives' embeddings.
        seed: of that augmentation.

    Example:
        >>> from lib.recipes import recipe
        >>> objective = Objective(recipe("mini_simcse", temperature=1.0))
        >>> z = torch.eye(2)
        >>> round(objective({"anchor": z, "positive": z}).item(), 4)  # −ln(e / (e + 1))
        0.3133

    Source: SimCSE (Gao et al. 2021) eq. 1; UNA (Shu & Lampos 2024) §3.3; SDA (Zhu et al. 2024)
    eq. 4.
    """

    def __init__(self, recipe: Recipe, seed: int = 42):
        self.objective = recipe.objective
        self.negative = recipe.negative
        self.views = recipe.views
        self.seed = seed
        self.negative_encodings = 2 if recipe.negative.mode == "doubled" else 1
        self._loss = LOSSES[recipe.objective.loss]

    def __call__(self, z: Mapping[str, Tensor], step: int = 0) -> Tensor:
        """Loss, a scalar, of embeddings (n, d) of each role of `Batch.sizes`."""
        temperature = self.objective.temperature
        anchor = z["anchor"]
        positive = self._augmented(z.get("positive", anchor), step)
        if "negative" not in z:
            loss = self._loss(anchor, positive, temperature)
        elif self.negative.mode == "doubled":
            anchors = torch.cat([anchor, z["negative"]])
            positives = torch.cat([positive, z["negative_again"]])
            loss = self._loss(anchors, positives, temperature)
        elif self.negative.mode == "margin":
            delta = self.negative.delta
            loss = losses.margin_info_nce(anchor, positive, z["negative"], temperature, delta)
        else:
            loss = self._loss(anchor, positive, temperature, z["negative"])
        return self.objective.weight * loss

    def _augmented(self, positive: Tensor, step: int) -> Tensor:
        if self.views.representation == "none":
            return positive
        change = REPRESENTATIONS[self.views.representation]
        generator = step_generator(self.seed, step, positive.device)
        return change(positive, self.views.strength, generator)
