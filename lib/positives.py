"""Where positives come from: the token rows of both views of a text."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lib.augment import augment
from lib.augment.discrete import MASK_TOKEN
from lib.recipes import Recipe
from lib.tokens import TokenRows, tokenise, tokenise_once


def make_views(
    sentences: Sequence[str],
    recipe: Recipe,
    tokenizer,
    seed: int = 0,
    progress: bool = False,
    aligned: Sequence[str] | None = None,
    cache: Path | None = None,
) -> list[TokenRows]:
    """Token rows of the views that `recipe` asks for, aligned row by row.

    One entry for `positive="identical"` (one encoding serves as both views), else two; with dropout
    as the only augmentation both entries are the same rows.

    Args:
        aligned: the positives of `positive="file"` and "sda", line i belonging to sentence i.
        cache: folder in which runs on the same text share its tokens.

    Raises:
        ValueError: `aligned` is missing or has another number of lines; or the positive is
            `mask` or `mask_span` and the tokenizer has no mask token.
    """
    positive = recipe.positive
    masks = positive.kind in ("mask", "mask_span")
    if masks and tokenizer.mask_token is None:
        raise ValueError(
            f"positive={positive.kind!r} needs a tokenizer with a mask token, which this model's"
            " does not have: choose another augmentation, e.g. 'delete'"
        )
    length = recipe.batches.max_length
    rows_of = partial(tokenise, tokenizer=tokenizer, max_length=length, progress=progress)
    first = tokenise_once(sentences, tokenizer, length, progress, cache)
    if positive.kind == "identical":
        return [first]
    if positive.kind == "dropout":
        return [first, first]
    if positive.kind in ("file", "sda"):
        if aligned is None or len(aligned) != len(sentences):
            actual = "none was given" if aligned is None else f"{len(aligned):,} lines"
            raise ValueError(
                f"positive={positive.kind!r} needs one line for each of {len(sentences):,}"
                f" sentences: {actual}"
            )
        return [first, rows_of(aligned)]
    changed = augment(
        positive.kind, sentences, positive.rate, seed, positive.synonyms, span=positive.span
    )
    if masks:
        changed = [s.replace(MASK_TOKEN, tokenizer.mask_token) for s in changed]
    return [first, rows_of(changed)]
