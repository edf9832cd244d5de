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
    """What the rules need of a parse, as lists: words, spaces, tags, deps (one scheme), lemmas,
    heads.

    Example:
        >>> tree = Tree(["He", "sleeps", "."], [" ", "", ""], ["PRP", "VBZ", "."], ["nsubj",
        ...     "root", "punct"],
        ...             ["he", "sleep", "."], [1, 1, 1])
        >>> tree.root, tree.children(1), tree.text
        (1, [0, 2], 'He sleeps.')
    """

    def __init__(
        self,
        words: Sequence[str],
        spaces: Sequence[str],
        tags: Sequence[str],
        deps: Sequence[str],
        lemmas: Sequence[str],
        heads: Sequence[int],
    ):
        lengths = {len(part) for part in (words, spaces, tags, deps, lemmas, heads)}
        if len(lengths) > 1:
            raise ValueError(
                "a tree needs as many spaces, tags, labels, lemmas and heads as words: got"
                f" {lengths}"
            )
        self.words, self.spaces, self.tags = list(words), list(spaces), list(tags)
        self.deps = [_LABELS.get(d) or d.replace(":pass", "pass").split(":")[0] for d in deps]
        self.lemmas, self.heads = list(lemmas), list(heads)
        self.lower = [word.lower() for word in words]

    def __repr__(self) -> str:
        rows = zip(self.words, self.spaces, self.tags, self.deps, self.heads, strict=True)
        return f"Tree({list(rows)})"

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

    @cached_property
    def _children(self) -> list[list[int]]:
        below: list[list[int]] = [[] for _ in self.words]
        for i, head in enumerate(self.heads):
            if head != i:
                below[head].append(i)
        return below

    def children(self, i: int) -> list[int]:
        """Dependents of token i, in their order."""
        return self._children[i]

    def subtree(self, i: int) -> list[int]:
        """Token i and all that depends on it, sorted; a circle of heads is walked once."""
        found, waiting = {i}, [i]
        while waiting:
            new = [c for c in self._children[waiting.pop()] if c not in found]
            found.update(new)
            waiting += new
        return sorted(found)

    def span(self, i: int) -> tuple[int, int]:
        """First and last token of the unbroken part of i's subtree around i, without punctuation at
        its ends."""
        inside = set(self.subtree(i))
        first = last = i
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
        roots = (
            i
            for i, head in enumerate(self.heads)
            if (head == i or self.deps[i] == "ROOT") and self.is_word(i)
        )
        return next(roots, None)

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
    edits = _repaired_case(tree, edits)
    replaced = {e.start: e for e in edits if e.stop > e.start}
    inserted: dict[int, list[Edit]] = {}
    for edit in edits:
        if not 0 <= edit.start <= edit.stop <= len(tree.words):
            raise ValueError(f"{edit} lies outside a sentence of {len(tree.words)} tokens")
        if edit.start == edit.stop:
            inserted.setdefault(edit.start, []).append(edit)
    if sum(e.stop - e.start for e in edits) > len(
        {i for e in edits for i in range(e.start, e.stop)}
    ):
        raise ValueError(f"edits overlap: {edits}")
    out, gap, i = "", "", 0
    while i <= len(tree.words):
        if i in inserted:
            for edit in sorted(inserted[i], key=lambda e: e.glue != "left"):
                out, gap = _with_inserted(
                    out, gap, edit, tree.words[i] if i < len(tree.words) else "", blank
                )
        if i == len(tree.words):
            break
        new = replaced.get(i)
        word, i = (tree.words[i], i + 1) if new is None else (new.text, new.stop)
        space = tree.spaces[i - 1]
        if word:
            apart = new is not None and out[-1:].isalnum() and word[0].isalpha()
            out, gap = out + (gap or blank * apart) + word, space
        elif out[-1:].isalnum():
            gap = space
        else:
            gap = gap and space
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
    first = next((i for i in range(len(tree.words)) if tree.is_word(i)), None)
    if first is None or not tree.words[first][0].isupper():
        return list(edits)
    at_first = next((e for e in edits if e.start <= first < e.stop), None)
    if any(e.start == e.stop == first and e.text[0].isalpha() for e in edits):
        if _keeps_capital(tree, first):
            return list(edits)
        old = at_first or Edit(first, first + 1, tree.words[first])
        new = replace(old, text=old.text[:1].lower() + old.text[1:])
        return [*(e for e in edits if e is not at_first), new]
    if at_first is None or at_first.text:
        return list(edits)
    follower = next((i for i in range(at_first.stop, len(tree.words)) if tree.is_word(i)), None)
    if follower is None or any(e.start <= follower < e.stop for e in edits):
        return list(edits)
    return [
        *edits,
        Edit(follower, follower + 1, tree.words[follower][0].upper() + tree.words[follower][1:]),
    ]


def _keeps_capital(tree: Tree, i: int) -> bool:
    """A name may be tagged as a noun; the capital of the word behind it tells: Rayo Vallecano."""
    named = (
        i + 1 < len(tree.words) and tree.words[i + 1][0].isupper() and tree.tags[i] in ("NN", "FW")
    )
    return named or english.keeps_capital(tree.words[i], tree.tags[i])
