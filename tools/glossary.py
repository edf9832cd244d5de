"""The glossary's terms, and whether a notebook introduces those that it uses.

A notebook introduces a term by a link to its entry, `[anchor](../book/glossary.md#term-anchor)`, or
on the spot, with the term alone in bold: "an **anchor** is …", "**Anchors**: …". The link leads to
the entry on the site; GitHub and JupyterLab, to which entries have no addresses, open the page.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import nbformat

from lib.glossary import PAGE, Term, address, read
from tools import prose

LINKED = re.compile(r"(?:.*/)?glossary\.md#(?P<address>.+)")
AHEAD = "**You will learn"
FORMS = {  # regular expressions; a blank is any space, and marks of emphasis beside it
    '"all" aggregation': ('["“]all["”]',),
    "chance": ("(?:at|above|below) chance", "chance (?:level|loss|accuracy)"),
    "collapse": ("collapse", "collapsed"),  # a plural would be a verb
    "head": ("projection heads?", "(?:an?|the|no|small|linear|ReLU|tanh|MLP|SimCLR) heads?"),
    "over-training": ("over-?train(?:ing|ed|s)?",),
    "seven STS tasks": ("seven (?:STS|similarity) (?:task|test|set)s",),
    "simultaneous interval": ("simultaneous (?:95(?: )?% )?intervals?",),
}

_BETWEEN = r"[\s*_-]+"
_BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<text>(?:(?!\n\s*\n).)+?)(?P=mark)", re.S)


@dataclass(frozen=True)
class Use:
    """Where a notebook uses a term before it introduces it: the cell, and the words there."""

    term: str
    cell: int
    found: str


@cache
def terms() -> tuple[Term, ...]:
    """The terms of the course."""
    return tuple(read(PAGE.read_text(encoding="utf-8")))


def order(name: str) -> str:
    """What names are sorted by: their letters and digits, nothing else.

    Example:
        >>> sorted(["InfoNCE", "in-batch accuracy", "[CLS]"], key=order)
        ['[CLS]', 'in-batch accuracy', 'InfoNCE']
    """
    return "".join(filter(str.isalnum, name.casefold()))


def uses(text: str, known: Sequence[Term]) -> Iterator[tuple[int, str, str]]:
    """Every use of a term in a text: where it ends, which one, and the words there.

    Terms are whole words in upper or lower case. Between their words any blanks, hyphens and marks
    of emphasis may stand, behind them a plural "s". Of two that begin at one place the longer is
    meant. Words that plain English has as well count in the forms that `FORMS` gives, and in no
    other: a loss *at chance*, no thing left to chance; *the head*, not the heads of attention.

    Example:
        >>> known = [Term(("negative",), ""), Term(("hard negative",), ""), Term(("chance",), "")]
        >>> list(uses("Hard-negatives or negatives? By chance!", known))
        [(14, 'hard negative', 'Hard-negatives'), (27, 'negative', 'negatives')]
    """
    pattern, owners = _searched(tuple(known))
    for match in pattern.finditer(text):
        yield match.end(), owners[(match.lastindex or 1) - 1], match.group()


def introduced(text: str, known: Sequence[Term]) -> Iterator[tuple[int, str]]:
    """Where a text links a term to its entry or has it alone in bold.

    Example:
        >>> known = [Term(("anchor",), ""), Term(("head",), "")]
        >>> list(introduced("An [a](../book/glossary.md#term-anchor) and **heads**: …", known))
        [(3, 'anchor'), (44, 'head')]
    """
    addresses = {address(name): term.name for term in known for name in term.names}
    for link in prose.LINK.finditer(text):
        to = LINKED.fullmatch(link["target"])
        if to and to["address"] in addresses:
            yield link.start(), addresses[to["address"]]
    for bold in _BOLD.finditer(text):
        alone = bold["text"].strip(" .,:;?!*_")
        for term in known:
            if any(
                re.fullmatch(_form(name).replace(" ", _BETWEEN), alone, re.I) for name in term.names
            ):
                yield bold.start(), term.name


def unintroduced(notebook: nbformat.NotebookNode, known: Sequence[Term] | None = None) -> list[Use]:
    """The terms whose first use in a notebook comes before their introduction, in order of use.

    Read is the prose of its Markdown, folds and tables included, after the cell that lists what one
    will learn: title and list name what is to come. Code, equations, headings, pictures and the
    list of references are passed over, and so is the text of a link to another page, which names
    that page.
    """
    known = terms() if known is None else known
    ahead = [passage.cell for passage in prose.passages(notebook) if AHEAD in passage.text]
    first: dict[str, Use] = {}
    ready: set[str] = set()
    for passage in prose.passages(notebook):
        if passage.apart == "references" or passage.cell <= max(ahead[:1], default=-1):
            continue
        text = prose.blank(
            passage.text,
            *(prose.COMMENT, prose.FENCE, prose.CODE, prose.DISPLAY, prose.INLINE, prose.HEADING),
            *(prose.IMAGE, prose.DEFINITION),
        )
        found = [(start, 0, name, "") for start, name in introduced(text, known)]
        found += [(end, 1, name, said) for end, name, said in uses(_without_targets(text), known)]
        for _, used, name, said in sorted(found):
            if not used:
                ready.add(name)
            elif name not in ready:
                first.setdefault(name, Use(name, passage.cell, " ".join(said.split())))
    return list(first.values())


def dead_links(notebook: nbformat.NotebookNode, known: Sequence[Term] | None = None) -> list[str]:
    """Targets of links to the glossary that lead to no entry."""
    known = terms() if known is None else known
    addresses = {address(name) for term in known for name in term.names}
    return [
        link["target"]
        for passage in prose.passages(notebook)
        for link in prose.LINK.finditer(prose.blank(passage.text, prose.FENCE, prose.CODE))
        if (to := LINKED.fullmatch(link["target"])) and to["address"] not in addresses
    ]


def _form(name: str) -> str:
    stem = name[:-1] if re.search(r"[a-rt-z]s$", name) else name
    return " ".join(re.escape(part) for part in re.split(r"[\s-]+", stem)) + "s?"


@cache
def _searched(known: tuple[Term, ...]) -> tuple[re.Pattern[str], list[str]]:
    """One expression with a group for each form of a term, and the name that each belongs to."""
    forms = [
        (form, term.name)
        for term in known
        for form in FORMS.get(term.name, tuple(map(_form, term.names)))
    ]
    forms.sort(key=lambda pair: -len(pair[0]))
    alternatives = "|".join(f"({form.replace(' ', _BETWEEN)})" for form, _ in forms)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.I), [name for _, name in forms]


def _without_targets(text: str) -> str:
    """`text` with spaces in place of tags, of links to other pages and of all targets."""

    def shown(link: re.Match[str]) -> str:
        if not LINKED.fullmatch(link["target"]):
            return re.sub(r"[^\n]", " ", link.group())
        before, after = link.start("text") - link.start(), link.end() - link.end("text")
        return " " * before + link["text"] + " " * after

    return prose.blank(prose.LINK.sub(shown, text), prose.TAG)
