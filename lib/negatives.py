"""Where hard negatives come from: `NEGATIVES` maps a recipe's name to what makes them of a text.

A maker takes `(sentences, recipe, tokenizer, seed)` and, by name, what it needs of `more`,
`negated` and `cache`. It returns a function of the rows of a batch and the step, which gives ids
and mask (n, t), one negative for each row.
"""

import math
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from torch import Tensor

from lib.augment.tfidf import Terms, TfidfModel
from lib.augment.una import UNA
from lib.cache import digest, kept, load_arrays, save_arrays
from lib.recipes import Recipe
from lib.tokens import tokenise

Negatives = Callable[[np.ndarray, int], tuple[Tensor, Tensor]]


def make_negatives(
    sentences: Sequence[str],
    recipe: Recipe,
    tokenizer,
    seed: int = 0,
    more: Sequence[str] = (),
    negated: Sequence[str] | None = None,
    cache: Path | None = None,
) -> Negatives | None:
    """The hard negatives that `recipe` asks for, or None.

    Args:
        more: further text whose words UNA counts.
        negated: the negatives of `negative="sda"`, line i belonging to sentence i.
        cache: folder in which runs on the same text share what they count.

    Raises:
        ValueError: `negated` is missing or has another number of lines.
    """
    if not recipe.negative.in_use:
        return None
    maker = NEGATIVES[recipe.negative.kind]
    return maker(sentences, recipe, tokenizer, seed, more=more, negated=negated, cache=cache)


class UnaNegatives:
    """Hard negatives of a corpus as model input, drawn afresh for every step and cut into tokens by
    the tokenizer.

    Args:
        sentences: the training text, whose rows are asked for.
        recipe: β, r, the two ways to draw and `max_length`.
        seed: of the draws.
        more: further text that the TF-IDF model is fitted on, e.g. the paraphrases.
        cache: folder in which runs on the same text share the model.

    Source: Shu & Lampos 2024 (UNA), Algorithm 1.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        recipe: Recipe,
        tokenizer,
        seed: int = 0,
        more: Sequence[str] = (),
        cache: Path | None = None,
        **_: object,
    ):
        settings = recipe.negative
        self.model, self.terms = counted(sentences, more, cache)
        radius = settings.radius * len(self.model.terms) if settings.radius < 1 else settings.radius
        self.una = UNA(
            self.model,
            settings.beta,
            math.ceil(radius),
            select=settings.select,
            replace=settings.replace,
            include_self=getattr(settings, "include_self", False),
            seed=seed,
        )
        self.tokenizer = tokenizer
        self.max_length = recipe.batches.max_length

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


def negations(
    sentences: Sequence[str],
    recipe: Recipe,
    tokenizer,
    seed: int = 0,
    negated: Sequence[str] | None = None,
    **_: object,
) -> Negatives:
    """SDA's hard negatives: line i of `negated`, the same in every step.

    Raises:
        ValueError: `negated` is missing or has another number of lines.
    """
    if negated is None or len(negated) != len(sentences):
        raise ValueError(
            f"negative='sda' needs one negation for each of {len(sentences):,} sentences"
        )
    table = tokenise(negated, tokenizer, recipe.batches.max_length, progress=False)
    return lambda rows, step: table[rows]


NEGATIVES: dict[str, Callable[..., Negatives]] = {"una": UnaNegatives, "sda": negations}
