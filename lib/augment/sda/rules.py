"""SDA, "simple discrete augmentation": rules on a parsed sentence that insert punctuation, modal
verbs and negations.

A rule takes a spaCy `Doc` (or a `Tree`) and returns an `Augmented`: the new text and the edits that
made it. Tags are the Penn Treebank's; dependency labels may be spaCy's English ones or those of
Universal Dependencies. Tokens are known by their index, never by their string; spacing and case
stay the sentence's own.

Source: Zhu et al. 2024 (SDA), §4 and Appendix A, Algorithms 1–3.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.augment.sda import english
from lib.augment.sda.english import (
    ADVERB_NEGATIVES,
    BE,
    CONTRACTED,
    DO,
    HAVE,
    MODALS,
    PREFIXES,
    WILL_LIKE,
)
from lib.augment.sda.trees import CLOSING, OPENING, QUOTES, Augmented, Edit, Tree, render

VERSION = (
    3  # raised when a rule writes other text, so that finished trainings are not taken for new ones
)
SUBJECTS = {"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"}
CLAUSES = {"acl", "advcl", "ccomp", "csubj", "csubjpass", "relcl", "xcomp"}
FINITE_CLAUSES = {"acl", "advcl", "ccomp", "conj", "csubj", "csubjpass", "parataxis", "relcl"}
CORE = {*SUBJECTS, "obj", "dobj", "iobj", "attr"}
ARGUMENTS = {"advmod", "nsubj", "nsubjpass", "obj", "dobj", "iobj", "attr", "obl", "pobj", "prep"}
AUXILIARIES = {"aux", "auxpass", "cop"}
FINAL = {".", "!", "?", ";", ":", ",", "…", "...", "?!", "..", "....", "-", "–", "—"}
MARKS = FINAL | CLOSING


@dataclass(frozen=True)
class _Clause:
    """Main clause: the finite token, the root, the subject (None: none), and what kind of word the
    finite one is."""

    finite: int
    root: int
    subject: int | None
    kind: str  # be, have, do, modal, verb, imperative
    negative: int | None
    asked: bool = False

    @property
    def command(self) -> bool:
        return self.kind == "imperative" or (self.kind == "do" and self.subject is None)

    @property
    def inverted(self) -> bool:
        """Whether the subject stands behind the finite word, as in questions; not in "Among them
        were three women"."""
        behind = (
            self.subject is not None
            and self.subject > self.finite
            and self.kind not in ("verb", "imperative")
        )
        return behind and (self.asked or self.subject < self.root)  # type: ignore[operator]


def _clause(tree: Tree, root: int | None = None) -> _Clause | None:
    """The clause whose predicate is token `root`, by default the main one; None if it is not
    finite."""
    root = tree.root if root is None else root
    if root is None:
        return None
    children = tree.children(root)
    to = next(
        (i for i in children if tree.lower[i] == "to" and tree.deps[i] in ("aux", "mark")),
        len(tree.words),
    )
    auxiliaries = [i for i in children if tree.deps[i] in AUXILIARIES and i < to]
    subject = next((i for i in children if tree.deps[i] in SUBJECTS and i not in auxiliaries), None)
    group = sorted({*auxiliaries, root})
    negative = next(
        (i for verb in group for i in tree.children(verb) if _negates_verb(tree, i)), None
    )
    words = (i for i in range(len(tree.words)) if tree.is_word(i))
    first = next(words, root)
    asked = any("?" in word for word in tree.words[-3:])
    for i in auxiliaries:
        if kind := _kind(tree, i):
            return _Clause(i, root, subject, kind, negative, asked or first == i)
    tag = tree.tags[root]
    if auxiliaries or to < len(tree.words) or tree.words[root][1:].isupper():
        return None
    if _kind(tree, root) == "be" and tag.startswith("VB"):
        return _Clause(root, root, subject, "be", negative, asked or first == root)
    if tag == "VB" and subject is None:
        return _Clause(root, root, None, "imperative", negative)
    if subject is not None and subject > root:  # "…", said John.
        return None
    finite = tag in ("VBZ", "VBP", "VBD") or (tag in ("VB", "VBN") and subject is not None)
    return _Clause(root, root, subject, "verb", negative) if finite else None


def _negates_verb(tree: Tree, i: int) -> bool:
    labels = ("neg", "advmod", "advcl", "dep", "det", "preconj")
    return tree.lower[i] in ADVERB_NEGATIVES and tree.deps[i] in labels


def _kind(tree: Tree, i: int) -> str:
    """be, have, do or modal, if the word is a finite form of one."""
    word, lemma = tree.lower[i].replace("’", "'"), tree.lemmas[i].lower()
    if word in ("'s", "'d"):
        if word == "'s":
            return "have" if lemma == "have" else "be"
        return "have" if lemma == "have" or tree.tags[i] == "VBD" else "modal"
    for kind, forms in (("be", BE), ("have", HAVE), ("do", DO), ("modal", MODALS)):
        if word in forms:
            return kind
    return ""


def _after_subject(tree: Tree, clause: _Clause) -> int:
    """Place of a word that follows the finite token, or the subject behind it."""
    if clause.inverted and clause.subject is not None:
        return max(tree.span(clause.subject)[1], clause.finite) + 1
    return clause.finite + 1


def punctuation(
    doc: Any, rng: np.random.Generator | None = None, order: str = "random"
) -> Augmented:
    """PI: a comma before a subordinate clause, or the subject quoted or followed by a comma, or
    another final mark.

    Args:
        doc: spaCy `Doc` or `Tree`.
        rng: needed by `order="random"`.
        order: "paper", Algorithm 1: clause, else a comma after the subject, else a final "!";
            "random", as the authors' code: clause or subject first by chance, the subject quoted or
            followed by a comma by chance, then half the time the whole sentence quoted, else one of
            `, . ; !` at the end. A question ends with "?!".

    Example:
        >>> tree = Tree(["He", "sleeps", "."], [" ", "", ""], ["PRP", "VBZ", "."], ["nsubj",
        ...     "root", "punct"],
        ...             ["he", "sleep", "."], [1, 1, 1])
        >>> punctuation(tree, order="paper").text
        'He, sleeps.'

    Source: Zhu et al. 2024, §4.1, Algorithm 1.
    """
    if order not in ("paper", "random"):
        raise ValueError(f"order must be 'paper' or 'random', got {order!r}")
    tree = Tree.of(doc)
    if order == "paper":
        return render(tree, _clause_comma(tree) or _subject_comma(tree) or _final(tree, "!"))
    rng = np.random.default_rng() if rng is None else rng
    first, quoted, whole = rng.random(3) < 0.5
    mark = ",.;!"[int(rng.integers(4))]

    def subject() -> list[Edit]:
        ways = (_subject_quotes, _subject_comma) if quoted else (_subject_comma, _subject_quotes)
        return ways[0](tree) or ways[1](tree)

    edits = (_clause_comma(tree) or subject()) if first else (subject() or _clause_comma(tree))
    return render(
        tree,
        edits or (_whole_quotes(tree) if whole else []) or _final(tree, mark) or _final(tree, "!"),
    )


def _clause_comma(tree: Tree) -> list[Edit]:
    for i, label in enumerate(tree.deps):
        if label in CLAUSES and (label != "xcomp" or _is_clause(tree, i)):
            first, last = tree.span(i)
            place = first if any(tree.is_word(j) for j in range(first)) else last + 1
            if edit := _comma(tree, place):
                return [Edit(edit.start, edit.stop, ",", "left", tuple(range(first, last + 1)))]
    return []


def _is_clause(tree: Tree, i: int) -> bool:
    """Whether a complement is a verb with words of its own; Universal Dependencies call "famous" an
    xcomp too."""
    return tree.tags[i].startswith("VB") and any(tree.is_word(j) for j in tree.children(i))


def _comma(tree: Tree, place: int) -> Edit | None:
    """A comma before token `place`, unless punctuation or an end of the sentence is there."""
    if not 0 < place < len(tree.words) or not tree.is_word(place) or not tree.is_word(place - 1):
        return None
    return Edit(place, place, ",", "left") if tree.spaces[place - 1] else None


def _subject(tree: Tree) -> int | None:
    """The main clause's noun subject, else the first of the sentence."""
    found = [
        i
        for i, label in enumerate(tree.deps)
        if label in ("nsubj", "nsubjpass") and tree.is_word(i)
    ]
    return next((i for i in found if tree.heads[i] == tree.root), found[0] if found else None)


def _subject_comma(tree: Tree) -> list[Edit]:
    if (i := _subject(tree)) is None:
        return []
    first, last = tree.span(i)
    edit = _comma(tree, last + 1)
    return [Edit(edit.start, edit.stop, ",", "left", tuple(range(first, last + 1)))] if edit else []


def _subject_quotes(tree: Tree) -> list[Edit]:
    if (i := _subject(tree)) is None:
        return []
    return _quotes(tree, *tree.span(i))


def _quotes(tree: Tree, first: int, last: int) -> list[Edit]:
    """Quotation marks around tokens, unless some are there, a bracket opens or closes within, or a
    word is cut."""
    inside = tree.words[max(first - 1, 0) : last + 2]
    brackets = "".join(
        c for word in tree.words[first : last + 1] for c in word if c in OPENING | CLOSING
    )
    cut = last + 1 < len(tree.words) and not tree.spaces[last] and tree.words[last + 1][0] in "'’-"
    if any(set(word) & (QUOTES - {"'"}) for word in inside) or len(brackets) % 2 or cut:
        return []
    if first and not tree.spaces[first - 1] and tree.is_word(first - 1):
        return []
    seen = tuple(range(first, last + 1))
    return [Edit(first, first, '"', "right", seen), Edit(last + 1, last + 1, '"', "left", seen)]


def _whole_quotes(tree: Tree) -> list[Edit]:
    words = [i for i in range(len(tree.words)) if tree.words[i].strip()]
    whole = not any(set(word) & (QUOTES - {"'"}) for word in tree.words)
    return _quotes(tree, words[0], words[-1]) if words and whole and tree.is_word(words[0]) else []


def _final(tree: Tree, mark: str) -> list[Edit]:
    """Another mark at the end, before closing quotes and brackets; nothing if it is there."""
    end = len(tree.words) - 1
    while end >= 0 and not tree.words[end].strip():
        end -= 1
    i = end
    while i >= 0 and (not tree.words[i].strip() or set(tree.words[i]) <= QUOTES | CLOSING):
        i -= 1
    if i < 0:
        return []
    if tree.is_word(i):
        i = end
    word = tree.words[i]
    if "?" in word and not tree.is_word(i):
        return [] if "!" in word else [Edit(i, i + 1, word + "!")]
    if word in FINAL:
        return [] if word == mark else [Edit(i, i + 1, mark)]
    closes = set(word) <= QUOTES | CLOSING
    return [Edit(i + 1, i + 1, mark, "left")] if tree.is_word(i) or closes else []


def modal_verbs(
    doc: Any, rng: np.random.Generator | None = None, perfect: bool = False, intensify: bool = False
) -> Augmented:
    """MV: a modal phrase before the main verb, which takes the form that English asks for.

    | clause | phrases |
    |---|---|
    | finite verb or *be* | all of `english.PHRASES`; *have*, *need* and *can* agree with the verb's
    tense and person |
    | *have* + participle, *do*, a question, a negated *be* | must, should: they take the finite
    word's place |
    | will, would, may, might | have to, need to, behind them |
    | another modal, no finite verb, an imperative | unchanged |

    Args:
        doc: spaCy `Doc` or `Tree`.
        rng: choice of the phrase.
        perfect: past tense becomes "must have travelled" (Table 1), not "must travel" (Algorithm
            2); only "must", as "should have" says that it did not happen.
        intensify: half the time an adverb of degree before every adjective instead, as the authors'
            code does. Their list has "especially", "absolutely" and "totally" and lacks "rather",
            and they draw one adverb for a sentence, where one is drawn for each adjective here.

    Example:
        >>> tree = Tree(["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."], ["nsubj",
        ...     "root", "punct"],
        ...             ["he", "sleep", "."], [1, 1, 1])
        >>> modal_verbs(tree, np.random.default_rng(5)).text
        'He had no choice but to sleep.'
        >>> modal_verbs(tree, np.random.default_rng(0), perfect=True).text
        'He must have slept.'

    Source: Zhu et al. 2024, §4.2, Algorithm 2.
    """
    tree = Tree.of(doc)
    rng = np.random.default_rng() if rng is None else rng
    if intensify and rng.random() < 0.5:
        return render(tree, _intensified(tree, rng))
    clause = _clause(tree)
    if clause is None or clause.command or (clause.kind == "verb" and clause.negative is not None):
        return Augmented(tree.text)
    if tree.lower[clause.finite] == "used" and any(
        tree.deps[i] == "xcomp" for i in tree.children(clause.root)
    ):
        return Augmented(tree.text)
    if clause.kind == "modal":
        return render(tree, _behind_modal(tree, clause, rng))
    if clause.kind == "verb" or (
        clause.kind == "be" and not clause.inverted and clause.negative is None
    ):
        return render(tree, _phrase_before(tree, clause, rng, perfect))
    modal = choose(("must", "should"), rng)
    edits = [Edit(clause.finite, clause.finite + 1, _cased(tree, clause.finite, modal))]
    if clause.kind != "do":
        after = _after_subject(tree, clause)
        if clause.negative is not None:
            after = max(after, clause.negative + 1)
        edits.append(Edit(after, after, clause.kind))
    return render(tree, edits)


def choose(options: Sequence[str], rng: np.random.Generator) -> str:
    """One of `options`, each as likely as the others."""
    return options[int(rng.integers(len(options)))]


def _cased(tree: Tree, i: int, text: str) -> str:
    first = next((j for j in range(len(tree.words)) if tree.is_word(j)), i)
    return text[0].upper() + text[1:] if i == first and tree.words[i][0].isupper() else text


def _phrase_before(
    tree: Tree, clause: _Clause, rng: np.random.Generator, perfect: bool
) -> list[Edit]:
    i = clause.finite
    past = english.is_past(tree.lower[i], tree.tags[i]) or tree.lower[i] in ("was", "were")
    third = tree.tags[i] == "VBZ" or tree.lower[i] in ("is", "'s")
    phrases: tuple[str, ...] = english.PHRASES
    if past and perfect:
        phrases = ("must",)
    elif any(_is_negative(tree, j) for j in range(len(tree.words))):
        phrases = english.MODAL_PHRASES
    elif clause.subject is not None and tree.deps[clause.subject] == "expl":
        phrases = english.PLAIN_PHRASES
    elif past and _shares_subject(tree, clause):
        phrases = english.AGREEING_PHRASES
    phrase = english.agreed(choose(phrases, rng), past, third)
    lemma = (
        "be"
        if clause.kind == "be"
        else english.base_form(tree.lower[i], tree.tags[i], tree.lemmas[i])
    )
    form = f"have {english.participle(tree.lower[i], lemma)}" if past and perfect else lemma
    return [Edit(i, i + 1, _cased(tree, i, f"{phrase} {form}"), subtree=(i,))]


def _shares_subject(tree: Tree, clause: _Clause) -> bool:
    """Whether a second verb in the past tense has the first one's subject: moved to Paris and
    became a painter."""
    others = (
        i for i in tree.children(clause.root) if tree.deps[i] == "conj" and tree.tags[i] == "VBD"
    )
    return any(all(tree.deps[c] not in SUBJECTS for c in tree.children(i)) for i in others)


def _behind_modal(tree: Tree, clause: _Clause, rng: np.random.Generator) -> list[Edit]:
    if clause.inverted or clause.negative is not None or tree.lower[clause.finite] not in WILL_LIKE:
        return []
    i = clause.finite + 1
    return [Edit(i, i, choose(("have to", "need to"), rng), subtree=(clause.finite,))]


def _intensified(tree: Tree, rng: np.random.Generator) -> list[Edit]:
    plain = [i for i, tag in enumerate(tree.tags) if tag == "JJ" and tree.is_word(i)]
    apart = [i for i in plain if i == 0 or tree.spaces[i - 1]]
    return [Edit(i, i, choose(english.INTENSIFIERS, rng)) for i in apart]


def negation(doc: Any, rng: np.random.Generator | None = None) -> Augmented:
    """NEG: one negative transformation; every sentence with a word gets one.

    In this order: a negative word of the main clause goes; "not" follows the auxiliary or *be*,
    or comes with do-support; "no" stands before a noun; a negating phrase opens the sentence.
    Contracted ("didn't") where the sentence contracts. "Without" and "none" stay: they do not
    negate the clause, or are no word to leave out.

    Example:
        >>> tree = Tree(["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."], ["nsubj",
        ...     "root", "punct"],
        ...             ["he", "sleep", "."], [1, 1, 1])
        >>> negation(tree).text
        'He did not sleep.'

    Source: Zhu et al. 2024, §4.4.
    """
    tree = Tree.of(doc)
    clause = _clause(tree)
    if negatives := _of_main_clause(tree, clause):
        return render(tree, _affirmed(tree, negatives[0]))
    return render(tree, _negated(tree, clause) or _no_noun(tree) or _prefix(tree, rng))


def double_negation(
    doc: Any, rng: np.random.Generator | None = None, nouns: bool = False, copulas: bool = True
) -> Augmented:
    """DN: two negative transformations; if there is but one, a negating phrase before the sentence.

    The words are walked in their order: "not" follows an auxiliary or *be* of any finite clause,
    or comes with do-support to the main verb; a clause that is negative loses its negative word
    instead. A clause is changed once, and the walk ends after two. Two in two clauses need not
    cancel ("The tower did not lean and the bridge was not closed"): Algorithm 3 and the authors'
    code write them all the same. If the main clause is negative, its negation goes behind a
    phrase; two words go only where they cancel ("did not say nothing"). A sentence without a
    place stays; so does a question or a command with one, before which no phrase can stand.

    Args:
        doc: spaCy `Doc` or `Tree`.
        rng: choice of the phrase.
        nouns: the main clause alone is walked, and the second place is "no" before its object or
            predicate, as the text of §4.3 has it: "He is not no teacher", to most readers one
            emphatic negation.
        copulas: *be* as the verb of a subordinate or coordinate clause counts as an auxiliary
            ("who was not a member"). This extends Algorithm 3 and the authors' code, which take
            auxiliaries and the verb of the main clause alone; False follows them.

    Example:
        >>> tree = Tree(["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."], ["nsubj",
        ...     "root", "punct"],
        ...             ["he", "sleep", "."], [1, 1, 1])
        >>> double_negation(tree, np.random.default_rng(0)).text
        'It is impossible that he did not sleep.'

    Source: Zhu et al. 2024, §4.3, Algorithm 3.
    """
    tree = Tree.of(doc)
    clause = _clause(tree)
    if negatives := _of_main_clause(tree, clause):
        chosen = _cancelling(tree, clause, negatives) or negatives[:1]
        main, sites = [], [_affirmed(tree, i) for i in chosen]
    else:
        main = _negated(tree, clause)
        sites = [e for e in (main, _no_noun(tree)) if e] if nouns else _walk(tree, main, copulas)
    if len(sites) > 1:
        return render(tree, list(dict.fromkeys([*sites[0], *sites[1]])))
    asked = any("?" in word for word in tree.words[-3:])
    if not sites or (clause and clause.command) or asked or not (negatives or nouns or main):
        return Augmented(tree.text)
    return render(tree, [*_prefix(tree, rng), *sites[0]])


def _walk(tree: Tree, main: list[Edit], copulas: bool) -> list[list[Edit]]:
    """The places of Algorithm 3, in the order of the words, at most one to a clause."""
    sites = [main] if main else []
    for i, label in enumerate(tree.deps):
        if label in FINITE_CLAUSES and i != tree.root:
            sites.append(_second_negation(tree, i, copulas))
    sites = sorted((edits for edits in sites if edits), key=lambda edits: edits[0].start)
    places = [edits[0].start for edits in sites]
    return [edits for n, edits in enumerate(sites) if places[n] not in places[:n]]


def _second_negation(tree: Tree, i: int, copulas: bool) -> list[Edit]:
    """What negates the finite clause of predicate i, or takes its only negation out; nothing
    without an auxiliary."""
    clause = _clause(tree, i)
    if clause is None:
        return []
    negatives = [
        j for j in range(len(tree.words)) if _is_negative(tree, j) and _owner(tree, j) == i
    ]
    if negatives:
        return _affirmed(tree, negatives[0]) if len(negatives) == 1 else []
    if not copulas and clause.kind == "be" and tree.deps[clause.finite] not in ("aux", "auxpass"):
        return []
    before, after = ("", *tree.lower, "")[clause.finite : clause.finite + 3 : 2]
    if clause.kind in ("verb", "imperative") or before in ("as", "than") or after in english.ONLY:
        return []
    return _negated(tree, clause)


def _owner(tree: Tree, i: int) -> int:
    """The predicate of the innermost clause around token i."""
    seen = {i}
    while tree.heads[i] not in seen and tree.deps[i] not in FINITE_CLAUSES | {"ROOT"}:
        i = tree.heads[i]
        seen.add(i)
    return i


def _cancelling(tree: Tree, clause: _Clause | None, negatives: list[int]) -> list[int]:
    """The negation of the main verb and a negative argument of the same verb: did *not* say
    *nothing*."""
    if clause is None or clause.negative not in negatives:
        return []
    for i in negatives:
        noun = tree.heads[i] if tree.deps[i] == "det" else i
        argument = tree.deps[noun] in CORE and tree.heads[noun] == clause.root
        predicate = noun == clause.root and tree.deps[i] == "det"
        if i != clause.negative and (argument or predicate):
            return sorted([clause.negative, i])
    return []


def _prefix(tree: Tree, rng: np.random.Generator | None) -> list[Edit]:
    rng = np.random.default_rng() if rng is None else rng
    first = next((i for i in range(len(tree.words)) if tree.is_word(i)), None)
    if first is None:
        return []
    phrase = choose(PREFIXES, rng)
    place = first
    while place and tree.words[place - 1] in QUOTES | OPENING:
        place -= 1
    linked = tree.deps[first] in ("cc", "discourse") and tree.lower[first] not in ("both", "either")
    if len(tree.words) > first + 2 and (linked or tree.lower[first] in english.LINKS):
        place = first + 1 + (tree.words[first + 1] == ",")
    small = place > first or tree.words[first][0].islower()
    return [Edit(place, place, phrase[0].lower() + phrase[1:] if small else phrase)]


def _of_main_clause(tree: Tree, clause: _Clause | None) -> list[int]:
    """Negative words of the main clause; of the whole sentence where it has none."""
    main = {tree.root, clause.finite if clause else tree.root}
    found = [i for i in range(len(tree.words)) if _is_negative(tree, i)]
    inside = [
        i
        for i in found
        if i in main or tree.heads[i] in main or _is_argument(tree, tree.heads[i], main)
    ]
    return inside if inside or clause else found


def _is_argument(tree: Tree, i: int, main: set[int | None]) -> bool:
    return tree.deps[i] in ARGUMENTS and tree.heads[i] in main


def _is_negative(tree: Tree, i: int) -> bool:
    """A negative word; but not "not only", "no matter", "No. 1", "No, …", a name such as "No
    Country"."""
    word, following = tree.lower[i], tree.lower[i + 1] if i + 1 < len(tree.words) else ""
    if word in ADVERB_NEGATIVES:
        return following not in english.ONLY
    other = tree.tags[i] != "DT" or following in (".", ",") or following[:1].isdigit()
    idle = word == "no" and (following == "matter" or (other and following != "longer"))
    return word in english.NEGATIVES and not idle and not tree.tags[i].startswith("NNP")


def _affirmed(tree: Tree, i: int) -> list[Edit]:
    """A negative word taken out, or its positive in its place; "ca", "wo" and "sha" become whole
    again."""
    new, stop = english.NEGATIVES.get(tree.lower[i], ""), i + 1
    if " ".join(tree.lower[i : i + 2]) in ("no longer", "no one"):
        new, stop = "still" if tree.lower[i + 1] == "longer" else "someone", i + 2
    elif tree.lower[i] in ADVERB_NEGATIVES and tree.lower[i + 1 : i + 2] == ["yet"]:
        new, stop = "already", i + 2
    edits = [Edit(i, stop, _cased(tree, i, new) if new else "")]
    pairs = {
        "neither": ("nor", "or"),
        "not": ("any", "some"),
        "n't": ("any", "some"),
        "never": ("any", "some"),
    }
    if wanted := pairs.get(tree.lower[i].replace("’", "'")):
        end = next(
            (j for j in range(stop, len(tree.words)) if _is_negative(tree, j)), len(tree.words)
        )
        later = (
            j
            for j in range(stop, end)
            if tree.lower[j] == wanted[0] and tree.tags[j] in ("DT", "CC")
        )
        edits += [Edit(j, j + 1, wanted[1]) for j in list(later)[:1]]
    if (
        i
        and tree.lower[i].replace("’", "'") == "n't"
        and (whole := CONTRACTED.get(tree.lower[i - 1]))
    ):
        edits.append(Edit(i - 1, i, _cased(tree, i - 1, whole)))
    return edits


def _negated(tree: Tree, clause: _Clause | None) -> list[Edit]:
    """A clause with "not"; nothing if it has none, or has a word beside which "not" is no
    English."""
    if clause is None or clause.negative is not None:
        return []
    if any(tree.lower[i] in english.HALF_NEGATIVES for i in tree.children(clause.root)):
        return []
    i = clause.finite
    if clause.kind in ("be", "have", "do", "modal"):
        place = _after_subject(tree, clause)
        return [Edit(place, place, "not", subtree=(i,))]
    if i and not tree.spaces[i - 1] and tree.words[i - 1][-1] in "-–":  # re-elected
        return []
    third, past = tree.tags[i] == "VBZ", english.is_past(tree.lower[i], tree.tags[i])
    do = "did" if past else "does" if third else "do"
    short = any(
        w in english.SHORT and not tree.spaces[j - 1] for j, w in enumerate(tree.lower) if j
    )
    lemma = english.base_form(tree.lower[i], tree.tags[i], tree.lemmas[i])
    return [
        Edit(
            i,
            i + 1,
            _cased(tree, i, f"{do}n't {lemma}" if short else f"{do} not {lemma}"),
            subtree=(i,),
        )
    ]


def _no_noun(tree: Tree) -> list[Edit]:
    """ "no" before the first object or predicate that is a bare plural, or for its "some", "any",
    "a"."""
    for i, tag in enumerate(tree.tags):
        copula = i == tree.root and any(tree.deps[c] == "cop" for c in tree.children(i))
        argument = tree.deps[i] in ("dobj", "obj", "attr") and tree.heads[i] == tree.root
        if tag not in ("NN", "NNS") or not (copula or argument):
            continue
        left = [
            c
            for c in tree.children(i)
            if c < i and tree.deps[c] not in ("det", "cop", "punct", *SUBJECTS, "aux")
        ]
        plain = all(tree.deps[c] in ("amod", "compound", "advmod", "mark") for c in left)
        if not plain or any(
            tree.lower[c] in english.QUANTITIES or tree.tags[c] == "CD" for c in left
        ):
            continue
        determiner = next((c for c in tree.children(i) if tree.deps[c] == "det"), None)
        if determiner is not None and tree.lower[determiner] in ("a", "an", "some", "any"):
            return [Edit(determiner, determiner + 1, _cased(tree, determiner, "no"), subtree=(i,))]
        left = [c for c in left if tree.deps[c] in ("amod", "compound")]
        first = min([i, *(tree.span(c)[0] for c in left)])
        if (
            tag == "NNS"
            and determiner is None
            and first
            and tree.spaces[first - 1]
            and tree.words[first] not in MARKS
        ):
            return [Edit(first, first, "no", subtree=(i,))]
    return []


def ensemble(doc: Any, rng: np.random.Generator | None = None, nouns: bool = False) -> Augmented:
    """One of the three positive rules, drawn for each sentence; `nouns` as in `double_negation`.

    Source: Zhu et al. 2024, §6.3.
    """
    rng = np.random.default_rng() if rng is None else rng
    rule = int(rng.integers(3))
    if rule == 2:
        return double_negation(doc, rng, nouns)
    return (punctuation, modal_verbs)[rule](doc, rng)


def by_name(*rules: Callable[..., Augmented]) -> dict[str, Callable[..., Augmented]]:
    """The functions of a language's rules by what they are called.

    Example:
        >>> list(by_name(punctuation, negation))
        ['punctuation', 'negation']
    """
    return {rule.__name__: rule for rule in rules}


RULES = by_name(punctuation, modal_verbs, double_negation, negation, ensemble)


WITH_NOUNS = ("double_negation", "ensemble")


def apply(
    rule: str,
    doc: Any,
    seed: int = 0,
    number: int = 0,
    rules: Mapping[str, Callable[..., Augmented]] = RULES,
    nouns: bool = False,
    **options: Any,
) -> Augmented:
    """A rule by name with the generator of sentence `number` under `seed`, as
    `python -m lib augment sda` does.

    Args:
        rules: of the language: these, or `lib.augment.sda.chinese.RULES`.
        nouns: as in `double_negation`; the other rules do not ask for it.
        options: of the rule.

    Raises:
        ValueError: unknown rule, or a negative seed or number.
    """
    if rule not in rules:
        raise ValueError(f"unknown rule {rule!r}: choose one of {', '.join(rules)}")
    if seed < 0 or number < 0:
        raise ValueError(f"seed and number must not be negative, got {seed} and {number}")
    if nouns and rule in WITH_NOUNS:
        options["nouns"] = True
    return rules[rule](doc, np.random.default_rng((seed, number)), **options)


def rules_digest() -> str:
    """Twelve digits for what the rules write: of `VERSION`, which a change of the rules or of
    their small lists raises, and of the lists of verbs, negatives and phrases.

    Example:
        >>> len(rules_digest())
        12
    """
    return hashlib.sha256(f"{VERSION} {english.digest()}".encode()).hexdigest()[:12]
