"""The annotated sentences of `parses.yaml`, as trees for the rules of SDA."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from lib.augment.sda import Tree


class Fixed:
    """A generator that always draws the same."""

    def __init__(self, choice: int = 0, chance: float = 0.9):
        self.choice, self.chance = choice, chance

    def integers(self, n: int) -> int:
        return self.choice % n

    def random(self, size: int | None = None):
        return self.chance if size is None else np.full(size, self.chance)


@dataclass(frozen=True)
class Sentence:
    """A sentence, its parses, and what the rules write."""

    text: str
    parse: str
    spacy: str = ""
    punctuation: str = ""
    modal_verbs: str = ""
    double_negation: str = ""
    negation: str = ""

    @property
    def tree(self) -> Tree:
        return tree(self.text, self.parse)

    def expected(self, *rules: str) -> tuple[str, ...]:
        return tuple(getattr(self, rule) or self.text for rule in rules)


def tree(text: str, annotation: str) -> Tree:
    """The annotated sentence; white space as in `text`."""
    rows, place = [], 0
    for token in annotation.split():
        word, tag, label, head, *lemma = token.split("/")
        assert text.startswith(word, place), (text, word)
        place += len(word)
        space = " " * (text[place : place + 1] == " ")
        place += len(space)
        number = int(head) - 1 if int(head) else len(rows)
        rows.append((word, space, tag, label, lemma[0] if lemma else word.lower(), number))
    assert place == len(text)
    return Tree(*zip(*rows, strict=True))


_read = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
PLAIN, HARD, CLAUSES, COMPLEMENTS = (
    {entry["text"]: Sentence(**entry) for entry in _read[group]}
    for group in ("plain", "hard", "clauses", "complements")
)
EVERY = PLAIN | CLAUSES
