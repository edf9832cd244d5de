"""SDA's rules for Chinese: commas, modal words, 不 and 没, without spaces; on parses of a Chinese
spaCy pipeline.

Tags are the Chinese Treebank's (VV verb, VC 是, VE 有, VA predicative adjective). Of the authors'
words those that do not negate (令人惊讶的是) are left out of the negating openers, and so is their
English "not" behind an auxiliary. The negating openers here (并非, 并不是说, 不可能是) are our own:
none of the authors' four (绝对不可能, 这不应该, 这不可能, 这不会) is among them, and two of their
six that assert are. Clauses are found by ccomp, advcl and dep in place of the authors' acl, csubj,
relcl and xcomp; their quotation marks and their ten final marks are left out.

Source: Zhu et al. 2024 (SDA), §5.1 and Table 7, which print no list; words after the authors' code.
"""

from functools import partial
from typing import Any

import numpy as np

from lib.augment.sda.rules import Rule, choose, rule
from lib.augment.sda.trees import Augmented, Edit, Tree

unspaced = partial(rule, blank="")

MODALS = ("必须", "不得不", "不能不", "不会不", "应该", "应当", "可能", "也许")
OPENERS = ("不得不说，", "诚然，")
DENIALS = ("并非", "并不是说", "不可能是")
NEGATIVES = {"不", "没", "没有", "未", "别", "不是", "不会", "不能", "无法", "不可"}
_HAVE_MODALS = {
    *MODALS,
    *("能", "会", "能够", "可以", "要", "应", "该", "得", "需要", "需", "敢", "肯"),
}
_VERBS = ("VV", "VC", "VE", "VA")
_FINAL = {"。", "！", "？", "；", "，", ".", "!", "?", "…", "……"}


def _root(tree: Tree) -> int | None:
    root = tree.root
    return root if root is not None and tree.tags[root] in _VERBS else None


def _comma(tree: Tree, place: int) -> list[Edit]:
    fits = 0 < place < len(tree) and tree.is_word(place) and tree.is_word(place - 1)
    return [Edit(place, place, "，", "left")] if fits else []


@unspaced
def punctuation(tree: Tree, rng: np.random.Generator) -> list[Edit]:
    """PI: a comma before a subordinate clause, else after the subject, else "！" at the end.

    Example:
        >>> tree = Tree(
        ...     ["他", "喜欢", "书", "。"], [""] * 4, ["PN", "VV", "NN", "PU"],
        ...     ["nsubj", "ROOT", "dobj", "punct"], ["他", "喜欢", "书", "。"], [1, 1, 1, 1])
        >>> punctuation(tree).text
        '他，喜欢书。'
    """
    clauses = (i for i, label in enumerate(tree.deps) if label in ("ccomp", "advcl", "dep"))
    for i in clauses:
        if tree.tags[i] in _VERBS and (edits := _comma(tree, tree.span(i)[0])):
            return edits
    found = [i for i, label in enumerate(tree.deps) if label.startswith("nsubj")]
    subjects = [i for i in found if tree.heads[i] == tree.root] + found
    edits = _comma(tree, tree.span(subjects[0])[1] + 1) if subjects else []
    if edits or not tree.solid:
        return edits
    last = tree.solid[-1]
    if tree.words[last] in _FINAL - {"！"}:
        return [Edit(last, last + 1, "？！" if tree.words[last] in "？?" else "！")]
    return [Edit(last + 1, last + 1, "！", "left")] if tree.is_word(last) else []


@unspaced
def modal_verbs(tree: Tree, rng: np.random.Generator) -> list[Edit]:
    """MV: a modal word before the main verb; where there is one, or no verb, an opener like 诚然.

    Example:
        >>> tree = Tree(
        ...     ["他", "去", "北京"], [""] * 3, ["PN", "VV", "NR"],
        ...     ["nsubj", "ROOT", "dobj"], ["他", "去", "北京"], [1, 1, 1])
        >>> modal_verbs(tree, np.random.default_rng(0)).text
        '他可能去北京'
    """
    root, known = _root(tree), _HAVE_MODALS | NEGATIVES
    if root is not None and not any(tree.lower[i] in known for i in tree.children(root)):
        return [Edit(root, root, choose(MODALS, rng), subtree=(root,))]
    question = any(word in "？?" for word in tree.words[-2:] if word)
    return [] if question else _opened(tree, OPENERS, rng)


def _opened(tree: Tree, openers: tuple[str, ...], rng: np.random.Generator) -> list[Edit]:
    first = tree.first
    return [] if first is None else [Edit(first, first, choose(openers, rng), "right")]


def _negated(tree: Tree) -> list[Edit]:
    """The main verb without its 不 or 没, or with one: 没 for 有 and for what is over (了, 过), 不
    else."""
    root = _root(tree)
    if root is None:
        return []
    children = tree.children(root)
    negative = next((i for i in children if tree.words[i] in ("不", "没", "没有", "未")), None)
    if negative is not None:
        return [Edit(negative, negative + 1, "")]
    if tree.tags[root] == "VE" and tree.words[root] in ("没有", "没"):
        return [Edit(root, root + 1, "有")]
    aspects = [i for i in children if i == root + 1 and tree.words[i] in ("了", "过")]
    place = next((i for i in children if i < root and tree.words[i] in _HAVE_MODALS), root)
    over = tree.tags[root] == "VE" or bool(aspects)
    gone = [Edit(i, i + 1, "") for i in aspects if tree.words[i] == "了"]
    return [Edit(place, place, "没" if over and place == root else "不", subtree=(root,)), *gone]


@unspaced
def negation(tree: Tree, rng: np.random.Generator) -> list[Edit]:
    """NEG: the main verb negated, or its negation taken out; a sentence without a verb is denied as
    a whole.

    Example:
        >>> tree = Tree(
        ...     ["他", "去", "了", "北京"], [""] * 4, ["PN", "VV", "AS", "NR"],
        ...     ["nsubj", "ROOT", "aux:asp", "dobj"], ["他", "去", "了", "北京"], [1, 1, 1, 1])
        >>> negation(tree).text
        '他没去北京'
    """
    return _negated(tree) or _opened(tree, DENIALS, rng)


@unspaced
def double_negation(tree: Tree, rng: np.random.Generator) -> list[Edit]:
    """DN: the negation denied as a whole; a question, or a sentence without a verb, stays.

    Example:
        >>> tree = Tree(
        ...     ["他", "去", "了", "北京"], [""] * 4, ["PN", "VV", "AS", "NR"],
        ...     ["nsubj", "ROOT", "aux:asp", "dobj"], ["他", "去", "了", "北京"], [1, 1, 1, 1])
        >>> double_negation(tree, np.random.default_rng(1)).text
        '并不是说他没去北京'
    """
    edits = _negated(tree)
    question = any(word in ("？", "?", "吗", "呢") for word in tree.words[-2:])
    return [*_opened(tree, DENIALS, rng), *edits] if edits and not question else []


def ensemble(doc: Any, rng: np.random.Generator | None = None) -> Augmented:
    """One of the three positive rules, drawn for each sentence."""
    rng = np.random.default_rng() if rng is None else rng
    return (punctuation, modal_verbs, double_negation)[int(rng.integers(3))](doc, rng)


_ALL = (punctuation, modal_verbs, double_negation, negation, ensemble)
RULES: dict[str, Rule] = {function.__name__: function for function in _ALL}
