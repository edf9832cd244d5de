"""The glossary's page: its terms, their definitions, and where each stands on the page."""

import re
import unicodedata
from dataclasses import dataclass

from lib import paths

PAGE = paths.ROOT / "book" / "glossary.md"
BLOCK = re.compile(r"^```\{glossary\}\n(?P<entries>.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Term:
    """An entry of the glossary: its names and its definition."""

    names: tuple[str, ...]
    definition: str

    @property
    def name(self) -> str:
        """The name that it is sorted by."""
        return self.names[0]


def read(text: str) -> list[Term]:
    """The terms of a page with Sphinx's directive `glossary`: lines with names, and below them the
    indented definition.

    Example:
        >>> read("```{glossary}\\nSTS-B\\nSTS benchmark\\n  A set.\\n  It is split.\\n```\\n")
        [Term(names=('STS-B', 'STS benchmark'), definition='A set. It is split.')]
    """
    block = BLOCK.search(text)
    found: list[Term] = []
    for line in block["entries"].splitlines() if block else []:
        if line[:1].isspace() and found:
            said = f"{found[-1].definition} {line.strip()}".strip()
            found[-1] = Term(found[-1].names, said)
        elif line.strip():  # a name straight after a name is another one of the same entry
            names = () if not found or found[-1].definition else found.pop().names
            found.append(Term((*names, line.strip()), ""))
    return found


def address(name: str) -> str:
    """Where a name stands on the glossary's page, as Sphinx calls it.

    Example:
        >>> address("Spearman's rank correlation"), address("[CLS]")
        ('term-Spearman-s-rank-correlation', 'term-CLS')
    """
    plain = unicodedata.normalize("NFKD", f"term-{name}").encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9._]+", "-", plain).strip("-")
