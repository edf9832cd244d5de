"""Where hard negatives come from: one function or class a method, registered by its name.

A maker takes `(text, recipe, tokenizer, seed)` and returns a function of the rows of a batch and
the step, which gives ids and mask (n, t): one negative for each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from lib.augment.tfidf import Terms, TfidfModel
from lib.augment.una import UNA
from lib.data.files import digest, kept, load_arrays, save_arrays
from lib.encoder.tokens import tokenise
from lib.registry import Registry

if TYPE_CHECKING:
    from lib.training.positives import Text
    from lib.training.recipe import Recipe

Negatives = Callable[[np.ndarray, int], tuple[Tensor, Tensor]]
NEGATIVES = Registry()


def make_negatives(text: Text, recipe: Recipe, tokenizer, seed: int = 0) -> Negatives | None:
    """The hard negatives that `recipe` asks for, or None.

    Raises:
        ValueError: the text lacks the lines that they are made of.
    """
    if not recipe.has_hard:
        return None
    return NEGATIVES[recipe.negative](text, recipe, tokenizer, seed)


@NEGATIVES.register("una")
class UnaNegatives:
    """UNA: words replaced by others of similar TF-IDF weight, drawn afresh for every step.

    Args:
        text: the training text, whose rows are asked for; the words of its positives are counted,
            too.
        recipe: β, r, the two ways to draw and `max_length`.
        seed: of the draws.

    Source: Shu & Lampos 2024 (UNA), Algorithm 1.
    """

    def __init__(self, text: Text, recipe: Recipe, tokenizer, seed: int = 0):
        self.model, self.terms = counted(text.sentences, text.aligned or (), text.cache)
        radius = recipe.radius * len(self.model.terms) if recipe.radius < 1 else recipe.radius
        self.una = UNA(
            self.model,
            recipe.beta,
            math.ceil(radius),
            select=recipe.negative_select,
            replace=recipe.negative_replace,
            include_self=recipe.include_self,
            seed=seed,
        )
        self.tokenizer = tokenizer
        self.max_length = recipe.max_length

    def __call__(self, rows: np.ndarray, step: int) -> tuple[Tensor, Tensor]:
        """Ids and mask `(n, t)` of the negatives of the sentences `rows`, padded at the right."""
        text = self.strings(rows, step)
        return tokenise(text, self.tokenizer, self.max_length, progress=False)[np.arange(len(text))]

    def strings(self, rows: np.ndarray, step: int) -> list[str]:
        """The same negatives as text, terms joined by blanks."""
        return self.model.strings(self.una(self.terms[rows], rows, epoch=step))


def counted(
    sentences: Sequence[str], more: Sequence[str] = (), cache: Path | None = None
) -> tuple[TfidfModel, Terms]:
    """The TF-IDF model of two texts, and the first one's terms."""

    def fit() -> TfidfModel:
        return TfidfModel.fit(chain(sentences, more))

    if cache is None:
        model = fit()
        return model, model.encode(sentences)
    key = digest(sentences, more)
    model = kept(cache / f"tfidf-{key}.npz", fit, TfidfModel.save, TfidfModel.load)

    def encode() -> dict[str, np.ndarray]:
        terms = model.encode(sentences)
        return {"ids": terms.ids, "offsets": terms.offsets}

    def load(path: Path) -> dict[str, np.ndarray]:
        return load_arrays(path, ("ids", "offsets"))

    arrays = kept(cache / f"terms-{key}.npz", encode, save_arrays, load)
    return model, Terms(arrays["ids"], arrays["offsets"])


@NEGATIVES.register("sda")
def negations(text: Text, recipe: Recipe, tokenizer, seed: int = 0) -> Negatives:
    """SDA: the sentence negated, the same in every step.

    Raises:
        ValueError: the text has no negation for each of its sentences.

    Source: Zhu et al. 2024 (SDA), §4.4.
    """
    if text.negated is None or len(text.negated) != len(text.sentences):
        raise ValueError(
            f"negative='sda' needs one negation for each of {len(text.sentences):,} sentences"
        )
    table = tokenise(text.negated, tokenizer, recipe.max_length, progress=False)
    return lambda rows, step: table[rows]
