"""Sentences whose numbers are computed by the cell that shows them."""

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
