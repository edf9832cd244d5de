"""A parsed sentence as lists, edits of its tokens, and the sentence after them, with its own
spacing and case."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lib.augment.sda import english

_LABELS = {"acl:relcl": "relcl", "advcl:relcl": "advcl", "root": "ROOT"}
QUOTES, OPENING, CLOSING = set("\"“”„«»''`"), set("([{"), set(")]}")


@dataclass(frozen=True, slots=True)
class Edit:
    """Tokens `start … stop − 1` became `text`; with `start == stop` it was inserted before token
    `start`.

    `glue` says on which side inserted text touches its neighbour: "left", "right" or "" (a space on
    both sides).
    `subtree` holds the tokens that the rule looked at: the subject, the clause, the verb.
    """

    start: int
    stop: int
    text: str
    glue: str = ""
    subtree: tuple[int, ...] = ()


@dataclass(frozen=True)
class Augmented:
    """A sentence after a rule: no edits if and only if the text is the input."""

    text: str
    edits: tuple[Edit, ...] = ()


class Tree:
    """What the rules need of a parse, as lists of strings: words, spaces, tags, deps (one scheme),
    lemmas; and the heads' numbers.

    Example:
        >>> tree = Tree(
        ...     ["He", "sleeps", "."], [" ", "", ""], ["PRP", "VBZ", "."],
        ...     ["nsubj", "root", "punct"], ["he", "sleep", "."], [1, 1, 1])
        >>> tree.root, tree.children(1), tree.text
        (1, [0, 2], 'He sleeps.')
    """

    def __init__(self, words, spaces, tags, deps, lemmas, heads) -> None:
        self.words, self.spaces, self.tags = list(words), list(spaces), list(tags)
        self.deps = [_LABELS.get(d) or d.replace(":pass", "pass").split(":")[0] for d in deps]
        self.lemmas, self.heads = list(lemmas), list(heads)
        self.lower = [word.lower() for word in words]

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, doc: Any) -> "Tree":
        """The tree of a spaCy `Doc`; a tree is handed through."""
        if isinstance(doc, Tree):
            return doc
        rows = [(t.text, t.whitespace_, t.tag_, t.dep_, t.lemma_, t.head.i) for t in doc]
        return cls(*zip(*rows, strict=True)) if rows else cls([], [], [], [], [], [])

    @cached_property
    def text(self) -> str:
        """The sentence as it was given."""
        return "".join(word + space for word, space in zip(self.words, self.spaces, strict=True))

    def children(self, i: int) -> list[int]:
        """Dependents of token i, in their order."""
        return [child for child, head in enumerate(self.heads) if head == i != child]

    def span(self, i: int) -> tuple[int, int]:
        """First and last token of the unbroken part of i's subtree around i, without punctuation at
        its ends; a circle of heads is walked once."""
        inside, waiting, first, last = {i}, [i], i, i
        while waiting:
            new = [c for c in self.children(waiting.pop()) if c not in inside]
            inside.update(new)
            waiting += new
        while first - 1 in inside:
            first -= 1
        while last + 1 in inside:
            last += 1
        while first < i and not self.is_word(first):
            first += 1
        while last > i and not self.is_word(last):
            last -= 1
        return first, last

    @cached_property
    def root(self) -> int | None:
        """The first root that is no punctuation."""
        roots = (i for i, head in enumerate(self.heads) if head == i or self.deps[i] == "ROOT")
        return next((i for i in roots if self.is_word(i)), None)

    @cached_property
    def first(self) -> int | None:
        """The first word."""
        return next((i for i in range(len(self)) if self.is_word(i)), None)

    @cached_property
    def solid(self) -> list[int]:
        """The tokens that are no white space."""
        return [i for i, word in enumerate(self.words) if word.strip()]

    def is_word(self, i: int) -> bool:
        """Whether token i holds a letter or a digit."""
        return any(c.isalnum() for c in self.words[i])


def render(tree: Tree, edits: Sequence[Edit], blank: str = " ") -> Augmented:
    """The sentence with edits, which must not overlap; the capital of the first word moves along.

    `blank` stands between a word and a new one.

    Raises:
        ValueError: edits overlap or lie outside the sentence.
    """
    if not edits:
        return Augmented(tree.text)
    edits, size = _repaired_case(tree, edits), len(tree)
    touched = [i for edit in edits for i in range(edit.start, edit.stop)]
    outside = any(not 0 <= edit.start <= edit.stop <= size for edit in edits)
    if outside or len(touched) > len(set(touched)):
        raise ValueError(f"edits overlap, or lie outside a sentence of {size} tokens: {edits}")
    replaced = {edit.start: edit for edit in edits if edit.stop > edit.start}
    out, gap, i = "", "", 0
    while True:
        inserted = [edit for edit in edits if edit.start == edit.stop == i]
        following = tree.words[i] if i < size else ""
        for edit in sorted(inserted, key=lambda edit: edit.glue != "left"):
            out, gap = _with_inserted(out, gap, edit, following, blank)
        if i == size:
            break
        new = replaced.get(i)
        word, i = (following, i + 1) if new is None else (new.text, new.stop)
        space = tree.spaces[i - 1]
        if word:
            apart = new is not None and out[-1:].isalnum() and word[0].isalpha()
            out, gap = out + (gap or blank * apart) + word, space
        else:
            gap = space if out[-1:].isalnum() else gap and space
    text = out + gap if tree.text[:1].isspace() else (out + gap).lstrip()
    changed = sorted(edits, key=lambda e: (e.start, e.stop)) if text != tree.text else ()
    return Augmented(text, tuple(changed))


def _with_inserted(out: str, gap: str, edit: Edit, following: str, blank: str) -> tuple[str, str]:
    if edit.glue == "left":
        return out + edit.text, gap or (blank if following[:1].isalnum() else "")
    opens = following[:1].isalnum() or following[:1] in OPENING | QUOTES
    behind = blank if following.strip() and (gap or opens) and edit.glue != "right" else ""
    if not gap and (out[-1:].isalnum() or out[-1:] in CLOSING or out[-1:] in set(",;:.!?")):
        gap = blank
    return out + gap + edit.text, behind


def _repaired_case(tree: Tree, edits: Sequence[Edit]) -> list[Edit]:
    """The edits with a small letter for the first word behind new words, and a capital for the
    second in its place."""
    first, edits = tree.first, list(edits)
    if first is None or not tree.words[first][0].isupper():
        return edits
    at_first = next((e for e in edits if e.start <= first < e.stop), None)
    if any(e.start == e.stop == first and e.text[0].isalpha() for e in edits):
        if _keeps_capital(tree, first):
            return edits
        old = at_first or Edit(first, first + 1, tree.words[first])
        new = replace(old, text=old.text[:1].lower() + old.text[1:])
        return [*(e for e in edits if e is not at_first), new]
    if at_first is None or at_first.text:
        return edits
    second = next((i for i in range(at_first.stop, len(tree)) if tree.is_word(i)), None)
    if second is not None and not any(e.start <= second < e.stop for e in edits):
        word = tree.words[second]
        edits.append(Edit(second, second + 1, word[0].upper() + word[1:]))
    return edits


def _keeps_capital(tree: Tree, i: int) -> bool:
    """A name may be tagged as a noun; the capital of the word behind it tells: Rayo Vallecano."""
    following, tag = tree.words[i + 1 : i + 2], tree.tags[i]
    named = tag in ("NN", "FW") and any(word[0].isupper() for word in following)
    return named or english.keeps_capital(tree.words[i], tag)
