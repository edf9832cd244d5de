"""SDA, "simple discrete augmentation": rules on a parsed sentence that insert punctuation, modal
verbs and negations.

A rule takes a spaCy `Doc` (or a `Tree`) and a generator (None: a fresh one), and returns an
`Augmented`: the new text and the edits that made it. Tags are the Penn Treebank's; dependency
labels may be spaCy's English ones or those of Universal Dependencies. Tokens are known by their
index, never by their string; spacing and case stay the sentence's own.

Source: Zhu et al. 2024 (SDA), §4 and Appendix A, Algorithms 1–3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from lib.augment.sda import english
from lib.augment.sda.english import ADVERB_NEGATIVES, NEGATIVES, PHRASES, WORDS
from lib.augment.sda.trees import CLOSING, OPENING, QUOTES, Augmented, Edit, Tree, render

Rng = np.random.Generator
Rule = Callable[..., Augmented]
VERSION = 3  # raised when a rule writes other text: finished trainings are then not taken for new
SUBJECTS = {"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"}
CLAUSES = {"acl", "advcl", "ccomp", "csubj", "csubjpass", "relcl", "xcomp"}
FINITE_CLAUSES = {"acl", "advcl", "ccomp", "conj", "csubj", "csubjpass", "parataxis", "relcl"}
CORE = {*SUBJECTS, "obj", "dobj", "iobj", "attr"}
ARGUMENTS = {"advmod", "nsubj", "nsubjpass", "obj", "dobj", "iobj", "attr", "obl", "pobj", "prep"}
AUXILIARIES = {"aux", "auxpass", "cop"}
FINAL = {".", "!", "?", ";", ":", ",", "…", "...", "?!", "..", "....", "-", "–", "—"}
MARKS = FINAL | CLOSING
_BESIDE_A_NOUN = {*SUBJECTS, "det", "cop", "punct", "aux"}


_COMMANDS = ("verb", "imperative")
_PAIRS = {"neither": ("nor", "or"), **dict.fromkeys(("not", "n't", "never"), ("any", "some"))}


def rule(edits: Callable[..., Sequence[Edit]], blank: str = " ") -> Rule:
    """A rule from a function `(tree, generator, options) → edits`; `blank` as in `render`."""

    @wraps(edits)
    def ruled(doc: Any, rng: Rng | None = None, **options: Any) -> Augmented:
        tree = Tree.of(doc)
        rng = np.random.default_rng() if rng is None else rng
        return render(tree, edits(tree, rng, **options), blank)

    return ruled


@dataclass(frozen=True)
class _Clause:
    """Main clause: the finite token, the root, the subject (None: none), and what kind of word the
    finite one is."""

    finite: int
    root: int
    subject: int | None
    kind: str  # be, have, do, modal, verb, imperative
    negative: int | None
    asked: bool

    @property
    def command(self) -> bool:
        return self.kind == "imperative" or (self.kind == "do" and self.subject is None)

    @property
    def inverted(self) -> bool:
        """Whether the subject stands behind the finite word, as in questions; not in "Among them
        were three women"."""
        if self.subject is None or self.subject <= self.finite or self.kind in _COMMANDS:
            return False
        return self.asked or self.subject < self.root


def _clause(tree: Tree, root: int | None = None) -> _Clause | None:
    """The clause whose predicate is token `root`, by default the main one; None if it is not
    finite."""
    root = tree.root if root is None else root
    if root is None:
        return None
    children, tag, deps = tree.children(root), tree.tags[root], tree.deps
    marks = (i for i in children if tree.lower[i] == "to" and deps[i] in ("aux", "mark"))
    to = next(marks, len(tree))
    auxiliaries = [i for i in children if deps[i] in AUXILIARIES and i < to]
    subject = next((i for i in children if deps[i] in SUBJECTS and i not in auxiliaries), None)
    near = (i for verb in sorted({*auxiliaries, root}) for i in tree.children(verb))
    negative = next((i for i in near if _negates_verb(tree, i)), None)

    def of(finite: int, kind: str) -> _Clause:
        asked = _asks(tree) or tree.first == finite
        return _Clause(finite, root, subject, kind, negative, asked)

    for i in auxiliaries:
        if kind := _kind(tree, i):
            return of(i, kind)
    if auxiliaries or to < len(tree) or tree.words[root][1:].isupper():
        return None
    if _kind(tree, root) == "be" and tag.startswith("VB"):
        return of(root, "be")
    if tag == "VB" and subject is None:
        return of(root, "imperative")
    if subject is not None and subject > root:  # "…", said John.
        return None
    finite = tag in ("VBZ", "VBP", "VBD") or (tag in ("VB", "VBN") and subject is not None)
    return of(root, "verb") if finite else None


def _asks(tree: Tree) -> bool:
    return any("?" in word for word in tree.words[-3:])


def _negates_verb(tree: Tree, i: int) -> bool:
    labels = ("neg", "advmod", "advcl", "dep", "det", "preconj")
    return tree.lower[i] in ADVERB_NEGATIVES and tree.deps[i] in labels


def _kind(tree: Tree, i: int) -> str:
    """be, have, do or modal, if the word is a finite form of one."""
    word, has = tree.lower[i].replace("’", "'"), tree.lemmas[i].lower() == "have"
    if word == "'s":
        return "have" if has else "be"
    if word == "'d":
        return "have" if has or tree.tags[i] == "VBD" else "modal"
    return next((kind for kind, forms in WORDS["kinds"].items() if word in forms), "")


def _after_subject(tree: Tree, clause: _Clause) -> int:
    """Place of a word that follows the finite token, or the subject behind it."""
    if clause.inverted and clause.subject is not None:
        return max(tree.span(clause.subject)[1], clause.finite) + 1
    return clause.finite + 1


@rule
def punctuation(tree: Tree, rng: Rng, order: str = "random") -> list[Edit]:
    """PI: a comma before a subordinate clause, or the subject quoted or followed by a comma, or
    another final mark.

    Args:
        order: "paper", Algorithm 1: clause, else a comma after the subject, else a final "!";
            "random", as the authors' code: clause or subject first by chance, the subject quoted or
            followed by a comma by chance, then half the time the whole sentence quoted, else one of
            `, . ; !` at the end. A question ends with "?!".

    Example:
        >>> tree = Tree(
        ...     ["He", "sleeps", "."], [" ", "", ""], ["PRP", "VBZ", "."],
        ...     ["nsubj", "root", "punct"], ["he", "sleep", "."], [1, 1, 1])
        >>> punctuation(tree, order="paper").text
        'He, sleeps.'

    Source: Zhu et al. 2024, §4.1, Algorithm 1.
    """
    if order == "paper":
        return _clause_comma(tree) or _subject_comma(tree) or _final(tree, "!")
    first, quoted, whole = rng.random(3) < 0.5
    mark = ",.;!"[int(rng.integers(4))]
    ways = [_subject_quotes, _subject_comma] if quoted else [_subject_comma, _subject_quotes]
    ways.insert(0 if first else 2, _clause_comma)
    for way in ways:
        if edits := way(tree):
            return edits
    return (_whole_quotes(tree) if whole else []) or _final(tree, mark) or _final(tree, "!")


def _clause_comma(tree: Tree) -> list[Edit]:
    for i, label in enumerate(tree.deps):
        if label in CLAUSES and (label != "xcomp" or _is_clause(tree, i)):
            first, last = tree.span(i)
            behind = tree.first is None or tree.first >= first
            if edits := _comma(tree, last + 1 if behind else first, (first, last)):
                return edits
    return []


def _is_clause(tree: Tree, i: int) -> bool:
    """Whether a complement is a verb with words of its own; Universal Dependencies call "famous" an
    xcomp too."""
    return tree.tags[i].startswith("VB") and any(tree.is_word(j) for j in tree.children(i))


def _comma(tree: Tree, place: int, span: tuple[int, int]) -> list[Edit]:
    """A comma before token `place`, because of the tokens of `span`; none where punctuation or an
    end of the sentence is."""
    if not 0 < place < len(tree) or not tree.is_word(place) or not tree.is_word(place - 1):
        return []
    seen = tuple(range(span[0], span[1] + 1))
    return [Edit(place, place, ",", "left", seen)] if tree.spaces[place - 1] else []


def _subject(tree: Tree) -> tuple[int, int] | None:
    """The main clause's noun subject, else the first of the sentence: its span."""
    labels = ("nsubj", "nsubjpass")
    found = [i for i, label in enumerate(tree.deps) if label in labels and tree.is_word(i)]
    of_root = [i for i in found if tree.heads[i] == tree.root]
    return tree.span((of_root + found)[0]) if found else None


def _subject_comma(tree: Tree) -> list[Edit]:
    span = _subject(tree)
    return _comma(tree, span[1] + 1, span) if span else []


def _subject_quotes(tree: Tree) -> list[Edit]:
    span = _subject(tree)
    return _quotes(tree, *span) if span else []


def _quotes(tree: Tree, first: int, last: int) -> list[Edit]:
    """Quotation marks around tokens, unless some are there, a bracket opens or closes within, or a
    word is cut."""
    inside, following = tree.words[max(first - 1, 0) : last + 2], tree.words[last + 1 : last + 2]
    brackets = [c for word in tree.words[first : last + 1] for c in word if c in OPENING | CLOSING]
    cut = not tree.spaces[last] and any(word[0] in "'’-" for word in following)
    if any(set(word) & (QUOTES - {"'"}) for word in inside) or len(brackets) % 2 or cut:
        return []
    if first and not tree.spaces[first - 1] and tree.is_word(first - 1):
        return []
    seen = tuple(range(first, last + 1))
    return [Edit(first, first, '"', "right", seen), Edit(last + 1, last + 1, '"', "left", seen)]


def _whole_quotes(tree: Tree) -> list[Edit]:
    solid = tree.solid
    return _quotes(tree, solid[0], solid[-1]) if solid and tree.is_word(solid[0]) else []


def _final(tree: Tree, mark: str) -> list[Edit]:
    """Another mark at the end, before closing quotes and brackets; nothing if it is there."""
    inner = [i for i in tree.solid if not set(tree.words[i]) <= QUOTES | CLOSING]
    if not inner:
        return []
    i = tree.solid[-1] if tree.is_word(inner[-1]) else inner[-1]
    word = tree.words[i]
    if "?" in word and not tree.is_word(i):
        return [] if "!" in word else [Edit(i, i + 1, word + "!")]
    if word in FINAL:
        return [] if word == mark else [Edit(i, i + 1, mark)]
    closes = set(word) <= QUOTES | CLOSING
    return [Edit(i + 1, i + 1, mark, "left")] if tree.is_word(i) or closes else []


@rule
def modal_verbs(tree: Tree, rng: Rng) -> list[Edit]:
    """MV: a modal phrase before the main verb, which takes the form that English asks for.

    | clause | phrases |
    |---|---|
    | finite verb or *be* | all of `words.yaml`; *have*, *need*, *can* agree in tense and person |
    | *have* + participle, *do*, a question, a negated *be* | must, should replace the finite word |
    | will, would, may, might | have to, need to, behind them |
    | another modal, no finite verb, an imperative | unchanged |

    As in Algorithm 2 and the authors' code: "must travel", where the paper's Table 1 prints "must
    have travelled".

    Example:
        >>> tree = Tree(
        ...     ["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."],
        ...     ["nsubj", "root", "punct"], ["he", "sleep", "."], [1, 1, 1])
        >>> modal_verbs(tree, np.random.default_rng(5)).text
        'He had no choice but to sleep.'

    Source: Zhu et al. 2024, §4.2, Algorithm 2.
    """
    clause = _clause(tree)
    if clause is None or clause.command or (clause.kind == "verb" and clause.negative is not None):
        return []
    labels = [tree.deps[i] for i in tree.children(clause.root)]
    if tree.lower[clause.finite] == "used" and "xcomp" in labels:
        return []
    if clause.kind == "modal":
        return _behind_modal(tree, clause, rng)
    plain = clause.kind == "be" and not clause.inverted and clause.negative is None
    if clause.kind == "verb" or plain:
        return _phrase_before(tree, clause, rng)
    modal = choose(("must", "should"), rng)
    edits = [Edit(clause.finite, clause.finite + 1, _cased(tree, clause.finite, modal))]
    if clause.kind != "do":
        behind = -1 if clause.negative is None else clause.negative
        after = max(_after_subject(tree, clause), behind + 1)
        edits.append(Edit(after, after, clause.kind))
    return edits


def choose(options: Sequence[str], rng: Rng) -> str:
    """One of `options`, each as likely as the others."""
    return options[int(rng.integers(len(options)))]


def _cased(tree: Tree, i: int, text: str) -> str:
    first = i if tree.first is None else tree.first
    return text[0].upper() + text[1:] if i == first and tree.words[i][0].isupper() else text


def _phrase_before(tree: Tree, clause: _Clause, rng: Rng) -> list[Edit]:
    i = clause.finite
    word, tag = tree.lower[i], tree.tags[i]
    past = english.is_past(word, tag) or word in ("was", "were")
    phrases = PHRASES["every"]
    if _negatives(tree):
        phrases = PHRASES["modal"]
    elif clause.subject is not None and tree.deps[clause.subject] == "expl":
        phrases = PHRASES["plain"]
    elif past and _shares_subject(tree, clause):
        phrases = PHRASES["agreeing"]
    phrase = english.agreed(choose(phrases, rng), past, tag == "VBZ" or word in ("is", "'s"))
    lemma = "be" if clause.kind == "be" else english.base_form(word, tag, tree.lemmas[i])
    return [Edit(i, i + 1, _cased(tree, i, f"{phrase} {lemma}"), subtree=(i,))]


def _shares_subject(tree: Tree, clause: _Clause) -> bool:
    """Whether a second verb in the past tense has the first one's subject: moved to Paris and
    became a painter."""
    children = tree.children(clause.root)
    others = [i for i in children if tree.deps[i] == "conj" and tree.tags[i] == "VBD"]
    return any(all(tree.deps[c] not in SUBJECTS for c in tree.children(i)) for i in others)


def _behind_modal(tree: Tree, clause: _Clause, rng: Rng) -> list[Edit]:
    i, willing = clause.finite, tree.lower[clause.finite] in WORDS["will_like"]
    if clause.inverted or clause.negative is not None or not willing:
        return []
    return [Edit(i + 1, i + 1, choose(("have to", "need to"), rng), subtree=(i,))]


def modal_verbs_or_adverbs(doc: Any, rng: Rng | None = None) -> Augmented:
    """MV as the authors' code has it: half the time `modal_verbs`, else an adverb of degree before
    every adjective.

    Their list has "especially", "absolutely" and "totally" and lacks "rather", and they draw one
    adverb for a sentence, where one is drawn for each adjective here.
    """
    rng = np.random.default_rng() if rng is None else rng
    return (_intensified if rng.random() < 0.5 else modal_verbs)(doc, rng)


@rule
def _intensified(tree: Tree, rng: Rng) -> list[Edit]:
    plain = [i for i, tag in enumerate(tree.tags) if tag == "JJ" and tree.is_word(i)]
    apart = [i for i in plain if i == 0 or tree.spaces[i - 1]]
    return [Edit(i, i, choose(WORDS["intensifiers"], rng)) for i in apart]


@rule
def negation(tree: Tree, rng: Rng) -> list[Edit]:
    """NEG: one negative transformation; every sentence with a word gets one.

    In this order: a negative word of the main clause goes; "not" follows the auxiliary or *be*,
    or comes with do-support; "no" stands before a noun; a negating phrase opens the sentence.
    Contracted ("didn't") where the sentence contracts. "Without" and "none" stay: they do not
    negate the clause, or are no word to leave out.

    Example:
        >>> tree = Tree(
        ...     ["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."],
        ...     ["nsubj", "root", "punct"], ["he", "sleep", "."], [1, 1, 1])
        >>> negation(tree).text
        'He did not sleep.'

    Source: Zhu et al. 2024, §4.4.
    """
    clause = _clause(tree)
    negatives = _of_main_clause(tree, clause)
    if negatives and sum(map(tree.is_word, range(len(tree)))) > 1:
        return _affirmed(tree, negatives[0])
    return _negated(tree, clause) or _no_noun(tree) or _prefix(tree, rng)


@rule
def double_negation(tree: Tree, rng: Rng, nouns: bool = False) -> list[Edit]:
    """DN: two negative transformations; if there is but one, a negating phrase before the sentence.

    The words are walked in their order: "not" follows an auxiliary or *be* of any finite clause,
    or comes with do-support to the main verb; a clause that is negative loses its negative word
    instead. A clause is changed once, and the walk ends after two. Two in two clauses need not
    cancel ("The tower did not lean and the bridge was not closed"): Algorithm 3 and the authors'
    code write them all the same. If the main clause is negative, its negation goes behind a
    phrase; two words go only where they cancel ("did not say nothing"). A sentence without a
    place stays; so does a question or a command with one, before which no phrase can stand. *Be*
    of a subordinate or coordinate clause counts as an auxiliary ("who was not a member"), which
    extends Algorithm 3 and the authors' code.

    Args:
        nouns: the main clause alone is walked, and the second place is "no" before its object or
            predicate, as the text of §4.3 has it: "He is not no teacher", to most readers one
            emphatic negation.

    Example:
        >>> tree = Tree(
        ...     ["He", "slept", "."], [" ", "", ""], ["PRP", "VBD", "."],
        ...     ["nsubj", "root", "punct"], ["he", "sleep", "."], [1, 1, 1])
        >>> double_negation(tree, np.random.default_rng(0)).text
        'It is impossible that he did not sleep.'

    Source: Zhu et al. 2024, §4.3, Algorithm 3.
    """
    clause = _clause(tree)
    if negatives := _of_main_clause(tree, clause):
        chosen = _cancelling(tree, clause, negatives) or negatives[:1]
        main, sites = [], [_affirmed(tree, i) for i in chosen]
    else:
        main = _negated(tree, clause)
        sites = [e for e in (main, _no_noun(tree)) if e] if nouns else _walk(tree, main)
    if len(sites) > 1:
        return list(dict.fromkeys([*sites[0], *sites[1]]))
    command = clause is not None and clause.command
    if not sites or command or _asks(tree) or not (negatives or nouns or main):
        return []
    return [*_prefix(tree, rng), *sites[0]]


def _walk(tree: Tree, main: list[Edit]) -> list[list[Edit]]:
    """The places of Algorithm 3, in the order of the words, at most one to a clause."""
    others = [i for i, d in enumerate(tree.deps) if d in FINITE_CLAUSES and i != tree.root]
    found = [main, *(_second_negation(tree, i) for i in others)]
    sites = sorted((edits for edits in found if edits), key=lambda edits: edits[0].start)
    places = [edits[0].start for edits in sites]
    return [edits for n, edits in enumerate(sites) if places[n] not in places[:n]]


def _second_negation(tree: Tree, i: int) -> list[Edit]:
    """What negates the finite clause of predicate i, or takes its only negation out; nothing
    without an auxiliary."""
    clause = _clause(tree, i)
    if clause is None:
        return []
    negatives = [j for j in _negatives(tree) if _owner(tree, j) == i]
    if negatives:
        return _affirmed(tree, negatives[0]) if len(negatives) == 1 else []
    before, after = ("", *tree.lower, "")[clause.finite : clause.finite + 3 : 2]
    if clause.kind in ("verb", "imperative") or before in ("as", "than") or after in WORDS["only"]:
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


def _prefix(tree: Tree, rng: Rng) -> list[Edit]:
    first = tree.first
    if first is None:
        return []
    phrase, place, word = choose(english.PREFIXES, rng), first, tree.lower[first]
    while place and tree.words[place - 1] in QUOTES | OPENING:
        place -= 1
    linked = tree.deps[first] in ("cc", "discourse") and word not in ("both", "either")
    if len(tree) > first + 2 and (linked or word in WORDS["links"]):
        place = first + 1 + (tree.words[first + 1] == ",")
    small = place > first or tree.words[first][0].islower()
    return [Edit(place, place, phrase[0].lower() + phrase[1:] if small else phrase)]


def _of_main_clause(tree: Tree, clause: _Clause | None) -> list[int]:
    """Negative words of the main clause; of the whole sentence where it has none."""
    main, found = {tree.root, clause.finite if clause else tree.root}, _negatives(tree)
    inside = [i for i in found if {i, tree.heads[i]} & main or _argues(tree, tree.heads[i], main)]
    return inside if inside or clause else found


def _argues(tree: Tree, i: int, main: set[int | None]) -> bool:
    return tree.deps[i] in ARGUMENTS and tree.heads[i] in main


def _negatives(tree: Tree) -> list[int]:
    return [i for i in range(len(tree)) if _is_negative(tree, i)]


def _is_negative(tree: Tree, i: int) -> bool:
    """A negative word; but not "not only", "no matter", "No. 1", "No, …", a name such as "No
    Country"."""
    word, following = tree.lower[i], tree.lower[i + 1] if i + 1 < len(tree) else ""
    if word in ADVERB_NEGATIVES:
        return following not in WORDS["only"]
    other = tree.tags[i] != "DT" or following in (".", ",") or following[:1].isdigit()
    idle = word == "no" and (following == "matter" or (other and following != "longer"))
    return word in NEGATIVES and not idle and not tree.tags[i].startswith("NNP")


def _affirmed(tree: Tree, i: int) -> list[Edit]:
    """A negative word taken out, or its positive in its place; "ca", "wo" and "sha" become whole
    again."""
    new, stop, word = NEGATIVES.get(tree.lower[i], ""), i + 1, tree.lower[i]
    following = tree.lower[i + 1] if stop < len(tree) else ""
    if word == "no" and following in ("longer", "one"):
        new, stop = "still" if following == "longer" else "someone", i + 2
    elif word in ADVERB_NEGATIVES and following == "yet":
        new, stop = "already", i + 2
    word, edits = word.replace("’", "'"), [Edit(i, stop, _cased(tree, i, new) if new else "")]
    if word in _PAIRS:
        old, other = _PAIRS[word]
        end = next((j for j in range(stop, len(tree)) if _is_negative(tree, j)), len(tree))
        later = [j for j in range(stop, end) if tree.lower[j] == old]
        later = [j for j in later if tree.tags[j] in ("DT", "CC")]
        edits += [Edit(j, j + 1, other) for j in later[:1]]
    if i and word == "n't" and (whole := WORDS["contracted"].get(tree.lower[i - 1])):
        edits.append(Edit(i - 1, i, _cased(tree, i - 1, whole)))
    return edits


def _negated(tree: Tree, clause: _Clause | None) -> list[Edit]:
    """A clause with "not"; nothing if it has none, or has a word beside which "not" is no
    English."""
    if clause is None or clause.negative is not None:
        return []
    if any(tree.lower[i] in WORDS["half_negatives"] for i in tree.children(clause.root)):
        return []
    i, lower, spaces = clause.finite, tree.lower, tree.spaces
    if clause.kind not in _COMMANDS:
        place = _after_subject(tree, clause)
        return [Edit(place, place, "not", subtree=(i,))]
    if i and not spaces[i - 1] and tree.words[i - 1][-1] in "-–":  # re-elected
        return []
    present = "does" if tree.tags[i] == "VBZ" else "do"
    do = "did" if english.is_past(lower[i], tree.tags[i]) else present
    short = any(lower[j] in WORDS["short"] and not spaces[j - 1] for j in range(1, len(tree)))
    lemma = english.base_form(lower[i], tree.tags[i], tree.lemmas[i])
    new = f"{do}n't {lemma}" if short else f"{do} not {lemma}"
    return [Edit(i, i + 1, _cased(tree, i, new), subtree=(i,))]


def _no_noun(tree: Tree) -> list[Edit]:
    """ "no" before the first object or predicate that is a bare plural, or for its "some", "any",
    "a"."""
    deps = tree.deps
    for i, tag in enumerate(tree.tags):
        children = tree.children(i)
        copula = i == tree.root and any(deps[c] == "cop" for c in children)
        argument = deps[i] in ("dobj", "obj", "attr") and tree.heads[i] == tree.root
        left = [c for c in children if c < i and deps[c] not in _BESIDE_A_NOUN]
        if tag in ("NN", "NNS") and (copula or argument) and _is_plain(tree, left):
            determiner = next((c for c in children if deps[c] == "det"), None)
            if determiner is not None and tree.lower[determiner] in ("a", "an", "some", "any"):
                no = _cased(tree, determiner, "no")
                return [Edit(determiner, determiner + 1, no, subtree=(i,))]
            left = [c for c in left if deps[c] in ("amod", "compound")]
            first = min([i, *(tree.span(c)[0] for c in left)])
            apart = first and tree.spaces[first - 1] and tree.words[first] not in MARKS
            if tag == "NNS" and determiner is None and apart:
                return [Edit(first, first, "no", subtree=(i,))]
    return []


def _is_plain(tree: Tree, left: list[int]) -> bool:
    """Whether the words before a noun only describe it, and say no quantity."""
    plain = all(tree.deps[c] in ("amod", "compound", "advmod", "mark") for c in left)
    return plain and not any(
        tree.lower[c] in WORDS["quantities"] or tree.tags[c] == "CD" for c in left
    )


def ensemble(doc: Any, rng: Rng | None = None, nouns: bool = False) -> Augmented:
    """One of the three positive rules, drawn for each sentence; `nouns` as in `double_negation`.

    Source: Zhu et al. 2024, §6.1.
    """
    rng = np.random.default_rng() if rng is None else rng
    number = int(rng.integers(3))
    if number == 2:
        return double_negation(doc, rng, nouns=nouns)
    return (punctuation, modal_verbs)[number](doc, rng)


_ALL = (punctuation, modal_verbs, modal_verbs_or_adverbs, double_negation, negation, ensemble)
RULES: dict[str, Rule] = {function.__name__: function for function in _ALL}


def apply(name: str, doc: Any, seed=0, number=0, rules=RULES, **options: Any) -> Augmented:
    """A rule by name with the generator of sentence `number` under `seed`, as
    `python -m lib augment sda` does.

    Args:
        rules: of the language: these, or `lib.augment.sda.chinese.RULES`.
        options: of the rule; `nouns`, as in `double_negation`, does not reach those that take none.

    Raises:
        ValueError: unknown rule, or a negative seed or number.
    """
    if name not in rules:
        raise ValueError(f"unknown rule {name!r}: choose one of {', '.join(rules)}")
    if seed < 0 or number < 0:
        raise ValueError(f"seed and number must not be negative, got {seed} and {number}")
    if name not in ("double_negation", "ensemble") or not options.get("nouns"):
        options.pop("nouns", None)
    return rules[name](doc, np.random.default_rng((seed, number)), **options)
