"""What of a notebook's Markdown is prose: its passages, its words, its folds.

A reader of a cell sees prose, equations, tables and code. Patterns tell them apart, for Markdown
as courses are written in: headings with `#`, fences, tables with bars, `$…$`, `<details>`.
"""

import html
import re
from dataclasses import dataclass

import nbformat

COMMENT = re.compile(r"<!--.*?-->", re.S)
FENCE = re.compile(
    r"^[ >]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?^[ >]*(?P=fence)[`~]*[ ]*$|.*\Z)", re.M | re.S
)
CODE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>(?:(?!\n\s*\n).)+?)(?<!`)(?P=ticks)(?!`)", re.S
)
DISPLAY = re.compile(r"\$\$.*?\$\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.S)
INLINE = re.compile(r"(?<![\\$\w])\$(?![\s$])(?:(?!\n\s*\n)[^$\\]|\\.)+?\$(?!\d)", re.S)
HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*?)[ \t#]*$", re.M)
_BRACKETS = r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
LINK = re.compile(_BRACKETS + r"\((?P<target>[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
IMAGE = re.compile("!" + _BRACKETS + r"(?:\([^)]*\)|\[[^\]]*\])|<img\b[^>]*>")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:[^\n]*$", re.M)
TAG = re.compile(r"</?[a-zA-Z][^>]*>")
_HTML_TABLE = re.compile(r"<table\b.*?(?:</table>|\Z)", re.S | re.I)
_RULE = re.compile(r"^[ >]*\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*$")
_FOLD_TAG = re.compile(r"<(?P<end>/?)details\b[^>]*>", re.I)
_SUMMARY = re.compile(r"<summary\b.*?</summary>", re.S | re.I)
_MARKER = re.compile(r"^[ >]*(?:\d+[.)]|[-*+])[ \t]+", re.M)
_APART = re.compile(r"(?:[\d.]+\s*(?:·\s*)?)?(exercise|reference)s?", re.I)


@dataclass(frozen=True)
class Passage:
    """The part of a Markdown cell that stands under one heading.

    Args:
        cell: its cell's place in the notebook, from 0, code cells counted too.
        start: where in the cell's source it begins.
        text: its source, heading included.
        apart: "exercises" or "references" if that is its section, else "".
    """

    cell: int
    start: int
    text: str
    apart: str


def blank(text: str, *patterns: re.Pattern[str]) -> str:
    """`text` with spaces in place of what matches, line ends kept: every other character stays
    where it is.

    Example:
        >>> blank("a `b` c", CODE)
        'a     c'
    """
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    return text


def passages(notebook: nbformat.NotebookNode) -> list[Passage]:
    """A notebook's Markdown in order, cut at its headings.

    The sections *Exercises* and *References* (with a number or not) are set apart. They end, as
    every section does, with the next heading of their level or a higher one, if it stands in a
    later cell too. A heading in a fence or a fold is none.
    """
    found, apart, level = [], "", 0
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        hidden = without_folds(blank(cell.source, COMMENT, FENCE))
        headings = list(HEADING.finditer(hidden))
        starts = [0, *(heading.start() for heading in headings), len(hidden)]
        for i, heading in enumerate([None, *headings]):
            if heading:
                depth, section = len(heading["level"]), _APART.fullmatch(heading["title"].strip())
                if section:
                    apart, level = section[1].lower() + "s", depth
                elif depth <= level:
                    apart, level = "", 0
            if text := cell.source[starts[i] : starts[i + 1]]:
                found.append(Passage(place, starts[i], text, apart))
    return found


def folds(text: str) -> list[tuple[int, int]]:
    """Where each outermost `<details>` of a text begins and ends; one without an end goes on to the
    text's.

    Example:
        >>> folds("a <details>b</details> `<details>`")
        [(2, 22)]
    """
    found, depth, start = [], 0, 0
    for tag in _FOLD_TAG.finditer(blank(text, COMMENT, FENCE, CODE)):
        if not tag["end"]:
            start, depth = (start if depth else tag.start()), depth + 1
        elif depth:
            depth -= 1
            if not depth:
                found.append((start, tag.end()))
    return [*found, (start, len(text))] if depth else found


def without_folds(text: str) -> str:
    """`text` with spaces in place of its folds, their summaries included."""
    for start, end in folds(text):
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def answers(fold: str) -> bool:
    """Whether a fold, once open, shows a word below its summary.

    Example:
        >>> answers("<details><summary>Answer</summary>4</details>")
        True
        >>> answers("<details><summary>Answer</summary></details>")
        False
    """
    return words(_FOLD_TAG.sub("", _SUMMARY.sub("", fold))) > 0


def words(text: str) -> int:
    """How many words of prose Markdown shows without a click.

    A word is a piece between spaces that holds a letter or a digit. Headings count, and so does
    the text of links, quotations and lists; an equation within a line is one word, a code span as
    many as it has pieces. Not counted: display equations, tables, fenced code, a `<details>` with
    its summary, pictures with their descriptions, targets of links, tags, the numbers of lists.

    Example:
        >>> words("## 2 · Loss\\n\\n* The [loss](a.md) is $-\\\\log p$, from `f(a, b)`.")
        9
        >>> words("$$a = b$$\\n\\n| a |\\n|---|\\n| b |\\n\\n<details>c</details> ![d](e.png)")
        0
    """
    text = without_folds(blank(text, COMMENT, FENCE))
    text = CODE.sub(lambda match: re.sub(r"[^\w\s]", "_", match["code"]), text)
    text = _without_tables(blank(text, DISPLAY, _HTML_TABLE))
    text = blank(INLINE.sub("x", text), IMAGE, DEFINITION)
    text = TAG.sub(" ", LINK.sub(r"\g<text>", text))
    text = _MARKER.sub("", html.unescape(text))
    return sum(any(map(str.isalnum, piece)) for piece in text.split())


def _without_tables(text: str) -> str:
    lines = text.split("\n")
    inside = False
    for i, line in enumerate(lines):
        if "|" in line and _RULE.match(line) and i and "|" in lines[i - 1]:
            lines[i - 1], inside = "", True
        inside = inside and bool(line.strip(" >"))
        if inside:
            lines[i] = ""
    return "\n".join(lines)


def pictures(text: str) -> int:
    """Pictures that Markdown shows without a click: attached, of the repository or of the web.

    Example:
        >>> pictures('![a](attachment:a.png) <img src="b.svg"> `![c](c.png)`')
        2
    """
    return len(IMAGE.findall(without_folds(blank(text, COMMENT, FENCE, CODE))))
