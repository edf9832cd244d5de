"""Where positives come from: the token rows of both views of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lib.augment import augment
from lib.augment.edits import MASK_TOKEN
from lib.encoder.tokens import TokenRows, tokenise, tokenise_once

if TYPE_CHECKING:
    from lib.training.recipe import Recipe


@dataclass(frozen=True)
class Text:
    """A training text, with the lines that belong to it.

    Attributes:
        sentences: one a row.
        aligned: the positives of `positive="file"` and "sda", line i belonging to sentence i.
        negated: the hard negatives of `negative="sda"`, line i belonging to sentence i.
        cache: folder in which runs on the same text share its tokens and word counts.
        progress: whether a bar is shown while it is cut into tokens.
    """

    sentences: Sequence[str]
    aligned: Sequence[str] | None = None
    negated: Sequence[str] | None = None
    cache: Path | None = None
    progress: bool = False


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
        raise ValueError(
            f"positive={name!r} needs a tokenizer with a mask token, which this model's does not"
            " have: choose another augmentation, e.g. 'delete'"
        )
    rows_of = partial(
        tokenise, tokenizer=tokenizer, max_length=recipe.max_length, progress=text.progress
    )
    first = tokenise_once(sentences, tokenizer, recipe.max_length, text.progress, text.cache)
    if name == "identical":
        return [first]
    if name == "dropout":
        return [first, first]
    if name in ("file", "sda"):
        if text.aligned is None or len(text.aligned) != len(sentences):
            actual = "none was given" if text.aligned is None else f"{len(text.aligned):,} lines"
            raise ValueError(
                f"positive={name!r} needs one line for each of {len(sentences):,} sentences:"
                f" {actual}"
            )
        return [first, rows_of(text.aligned)]
    more = {"span": recipe.span} if name == "mask_span" else {}
    changed = augment(name, sentences, recipe.positive_rate, seed, recipe.synonyms, **more)
    if masks:
        changed = [s.replace(MASK_TOKEN, tokenizer.mask_token) for s in changed]
    return [first, rows_of(changed)]
