"""From text to token rows: where positives and hard negatives come from.

A maker of hard negatives is registered by its name. It takes `(text, recipe, tokenizer, seed)` and
returns a function of the rows of a batch and the step, which gives ids and mask (n, t): one
negative for each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from lib.augment import augment
from lib.augment.edits import MASK_TOKEN
from lib.augment.tfidf import Terms, TfidfModel
from lib.augment.una import UNA
from lib.checked import Registry
from lib.data.files import cached, digest
from lib.encoder.tokens import TokenRows, tokenise, tokenise_once

if TYPE_CHECKING:
    from lib.training.recipe import Recipe

Negatives = Callable[[np.ndarray, int], tuple[Tensor, Tensor]]
NEGATIVES = Registry()


@dataclass(frozen=True)
class Text:
    """A training text, with the lines that belong to it.

    Attributes:
        sentences: one a row.
        aligned: the positives of `positive="file"` and "sda", line i belonging to sentence i.
        negated: the hard negatives of `negative="sda"`, line i belonging to sentence i.
        cache: folder in which runs on the same text share its tokens and word counts.
    """

    sentences: Sequence[str]
    aligned: Sequence[str] | None = None
    negated: Sequence[str] | None = None
    cache: Path | None = None


def make_views(text: Text, recipe: Recipe, tokenizer, seed: int = 0) -> list[TokenRows]:
    """Token rows of the views that `recipe` asks for, aligned row by row.

    One entry for `positive="identical"` (one encoding serves as both views), else two; with dropout
    as the only augmentation both entries are the same rows.

    Raises:
        ValueError: the text has no positive for each sentence where the recipe needs one; or the
            positive is `mask` or `mask_span` and the tokenizer has no mask token.
    """
    name, sentences = recipe.positive, text.sentences
    masks = name in ("mask", "mask_span")
    if masks and tokenizer.mask_token is None:
        raise ValueError(f"positive={name!r} needs a tokenizer with a mask token: try 'delete'")
    first = tokenise_once(sentences, tokenizer, recipe.max_length, text.cache)
    if name in ("identical", "dropout"):
        return [first] if name == "identical" else [first, first]
    if name in ("file", "sda"):
        changed = _lines(text.aligned, sentences, f"positive={name!r}")
    else:
        more = {"span": recipe.span} if name == "mask_span" else {}
        changed = augment(name, sentences, recipe.positive_rate, seed, recipe.synonyms, **more)
    if masks:
        changed = [s.replace(MASK_TOKEN, tokenizer.mask_token) for s in changed]
    return [first, tokenise(changed, tokenizer, recipe.max_length)]


def make_negatives(text: Text, recipe: Recipe, tokenizer, seed: int = 0) -> Negatives | None:
    """The hard negatives that `recipe` asks for, or None.

    Raises:
        ValueError: the text lacks the lines that they are made of.
    """
    make = NEGATIVES.get(recipe.negative)  # there is none of the name "none"
    return make(text, recipe, tokenizer, seed) if make else None


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
        draws = recipe.include_self, recipe.negative_select, recipe.negative_replace
        self.una = UNA(self.model, recipe.beta, math.ceil(radius), *draws, seed)
        self.tokenizer, self.max_length = tokenizer, recipe.max_length

    def __call__(self, rows: np.ndarray, step: int) -> tuple[Tensor, Tensor]:
        """Ids and mask `(n, t)` of the negatives of the sentences `rows`, padded at the right."""
        text = self.strings(rows, step)
        return tokenise(text, self.tokenizer, self.max_length)[np.arange(len(text))]

    def strings(self, rows: np.ndarray, step: int) -> list[str]:
        """The same negatives as text, terms joined by blanks."""
        return self.model.strings(self.una(self.terms[rows], rows, epoch=step))


def counted(
    sentences: Sequence[str], more: Sequence[str] = (), cache: Path | None = None
) -> tuple[TfidfModel, Terms]:
    """The TF-IDF model of two texts, kept in `cache` if there is one, and the first one's terms."""
    fit = partial(TfidfModel.fit, chain(sentences, more))
    if cache is None:
        model = fit()
    else:
        path = cache / f"tfidf-{digest(sentences, more)}.npz"
        model = cached(path, fit, TfidfModel.save, TfidfModel.load)
    return model, model.encode(sentences)


def _lines(lines: Sequence[str] | None, sentences: Sequence[str], what: str) -> Sequence[str]:
    """The lines, if there is one for each sentence."""
    if lines is None or len(lines) != len(sentences):
        got = "none" if lines is None else len(lines)
        raise ValueError(f"{what} needs one line for each of {len(sentences):,} sentences: {got}")
    return lines


@NEGATIVES.register("sda", parses=True)
def negations(text: Text, recipe: Recipe, tokenizer, seed: int = 0) -> Negatives:
    """SDA: the sentence negated, the same in every step.

    Raises:
        ValueError: the text has no negation for each of its sentences.

    Source: Zhu et al. 2024 (SDA), §4.4.
    """
    lines = _lines(text.negated, text.sentences, "negative='sda'")
    table = tokenise(lines, tokenizer, recipe.max_length)
    return lambda rows, step: table[rows]
