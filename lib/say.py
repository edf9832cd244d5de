"""What a notebook says to its reader: sentences whose numbers the cell computes, and whether an
answer is right."""

from typing import Any

import numpy as np
from IPython.display import display


class Said(str):
    """Markdown that is its own plain text."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)


def say(text: str) -> None:
    """Show `text`, Markdown, as the output of a cell; line breaks inside a paragraph do not count.

    A sentence of a notebook that holds a measured number is written so, never typed: the cell
    computes the number, asserts what the words say of it (`assert gain > 0` for "SimCSE gains"),
    and nbval compares the output with the committed one.

    Example:
        >>> say(f"SimCSE gains {11.78:.1f} points.")
        SimCSE gains 11.8 points.
    """
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    display(Said("\n\n".join(part for part in paragraphs if part)))


def judge(yours: Any, wanted: Any, hint: str = "") -> str:
    """What there is to say of a reader's answer: `not written yet` for None, `right`, or `not yet`
    with a wrong shape, or else with the hint.

    A number or array is right if it has the wanted shape and lies within 0.05 % of the wanted
    values, or 1e-5 of zero, whatever its type; what is no number is not yet right.

    Example:
        >>> judge(None, 0.5), judge(0.50001, 0.5), judge(0.4, 0.5, "what of τ?")
        ('not written yet', 'right', 'not yet, what of τ?')
        >>> judge([[0.5]], [0.5])
        'not yet, shape (1, 1) where (1,) is wanted'
    """
    if yours is None:
        return "not written yet"
    try:
        answer, right = _numbers(yours), _numbers(wanted)
        same = answer.shape == right.shape
        if same and np.allclose(answer, right, rtol=5e-4, atol=1e-5):
            return "right"
        hint = hint if same else f"shape {answer.shape} where {right.shape} is wanted"
    except (TypeError, ValueError, RuntimeError):
        pass
    return f"not yet, {hint}" if hint else "not yet"


def _numbers(x: Any) -> np.ndarray:
    """A number, array or tensor as float64 on the CPU."""
    if hasattr(x, "detach"):
        x = x.detach().double().cpu()
    return np.asarray(x, float)
