"""Words of English that the rules of SDA need: those of `words.yaml`, and forms of verbs."""

import re
from collections.abc import Container
from functools import cache
from pathlib import Path

import yaml

from lib import paths

WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text("utf-8"))
ADVERB_NEGATIVES, NEGATIVES = WORDS["adverb_negatives"], WORDS["negatives"]
PHRASES, PREFIXES = WORDS["phrases"], WORDS["prefixes"]
_NATIONS = re.compile(
    r"(?:[ai]an|ean|ese|ish)$|^(?:french|dutch|greek|swiss|czech|arab|german|roman)$"
)

# Base form, past tense, participle.
_VERBS = Path(__file__).with_name("irregular_verbs.txt").read_text("utf-8")
_FORMS = [line.split() for line in _VERBS.splitlines()]
_PASTS = {past for base, past, _ in _FORMS if base != past}
_AMBIGUOUS = {"found", "lay", "ground", "wound", "saw", "felt"}
_BASES = {form: base for base, *forms in _FORMS for form in forms if form not in _AMBIGUOUS}
_BASES |= dict.fromkeys(("is", "are", "am", "was", "were"), "be")
_BASES |= {"has": "have", "does": "do", "goes": "go"}
_PARTS = ("over", "under", "out", "re", "with", "fore", "mis", "up", "un")
_SILENT_E = re.compile(
    r"(?:[cuv]|[aeiou]s|[lnpr]s|[lrd]g|[aeu]ng|[^aeiou][aeiou][bdgkz]|[^aeiou][iuo]l"
    r"|[^aeiourl][lr]|(?<![aeo])at|[^aeiou]ot"
    r"|ut|(?<!o)[iu]r|[^aeo]in|ys|^[^aeiou]*[aiou][mnprt])$"
)


@cache
def verbs() -> frozenset[str]:
    """Infinitives that the shipped parser's treebank has (`data/mini-spacy/verbs.txt`), and the
    irregular ones."""
    listed = paths.MINI_SPACY / "verbs.txt"
    return frozenset(listed.read_text(encoding="utf-8").split()) | {base for base, _, _ in _FORMS}


def keeps_capital(word: str, tag: str) -> bool:
    """Whether a word is written with a capital inside a sentence too: names, "I", acronyms,
    adjectives of nations.

    Example:
        >>> keeps_capital("German", "JJ"), keeps_capital("The", "DT"), keeps_capital("IBM", "NN")
        (True, False, True)
    """
    nation = tag.startswith("JJ") and _NATIONS.search(word.lower())
    inside = any(c.isupper() for c in word[1:])
    return bool(tag.startswith("NNP") or word == "I" or inside or nation)


def is_past(word: str, tag: str) -> bool:
    """Whether a finite verb is in the past tense, also where a parser took it for an infinitive or
    the present.

    Example:
        >>> is_past("went", "VBP"), is_past("need", "VBP"), is_past("cut", "VBD")
        (True, False, True)
    """
    if tag in ("VBD", "VBN"):
        return True
    regular = word.endswith("ed") and word not in verbs()
    return tag in ("VB", "VBP") and (regular or _irregular(word, _PASTS) is not None)


def base_form(word: str, tag: str, lemma: str = "") -> str:
    """Infinitive of a verb form: from the tables, else by the rules of spelling; the parser's lemma
    if it is a verb.

    Example:
        >>> [base_form(word, "VBD") for word in ("took", "overthrew", "matured", "dubbed",
        ...     "portrayed")]
        ['take', 'overthrow', 'mature', 'dub', 'portray']
        >>> base_form("saw", "VBD", "see"), base_form("tries", "VBZ")
        ('see', 'try')
    """
    lemma = lemma.lower()
    if lemma in verbs() and lemma != word:
        return lemma
    if (found := _irregular(word, _BASES)) is not None:
        return found
    if tag in ("VB", "VBP") and not is_past(word, tag):
        return word
    candidates = [*_candidates(word), lemma or word]
    return next((c for c in candidates[:-1] if c in verbs()), candidates[0])


def _irregular(word: str, forms: Container[str]) -> str | None:
    """The base of an irregular form, or of one behind a prefix: overthrew, rewrote."""
    for part in ("", *_PARTS):
        rest = word.removeprefix(part)
        if (part == "" or rest != word) and rest in forms and rest in _BASES:
            return part + _BASES[rest]
    return None


def _candidates(word: str) -> list[str]:
    """Infinitives that a regular form may come from, the likeliest first."""
    if word.endswith(("ies", "ied")):
        return [word[:-3] + "y", word[:-1]] if len(word) > 4 else [word[:-1]]
    if word.endswith("eed"):
        return [word[:-1]]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return [word[:-2], word[:-1]]
    if word.endswith("s"):
        return [word[:-1]]
    if not word.endswith("ed"):
        return []
    stem = word[:-2]
    double = len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "aeiou"
    travelled = stem[-1:] == "l" and len(re.findall("[aeiouy]+", stem)) > 1
    if double and (stem[-1] not in "lsfz" or travelled):
        return [stem[:-1], stem]
    return [stem + "e", stem] if not double and _SILENT_E.search(stem) else [stem, stem + "e"]


def agreed(phrase: str, past: bool, third: bool) -> str:
    """A modal phrase whose *have*, *need* or *can* has the tense and person of the verb before
    which it stands.

    Example:
        >>> agreed("have to", False, True), agreed("cannot but", True, True), agreed("must",
        ...     True, False)
        ('has to', 'could not but', 'must')
    """
    first, _, rest = phrase.partition(" ")
    if first in WORDS["agreeing"]:
        first = WORDS["agreeing"][first][0 if past else 1 if third else 2]
    return f"{first} {rest}".strip()
