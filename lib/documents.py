"""README and glossary as pages beside the executed notebooks, whose links lead to them."""

import re
from html import escape
from pathlib import Path

from lib import glossary, paths
from lib.data import files
from lib.pages import DOCUMENTS, filled, linked, markdown_html

REFERENCE = re.compile(r"\{term\}`(?:(?P<shown>[^`<]+?)\s*<(?P<to>[^`>]+)>|(?P<name>[^`]+))`")


def write_documents(outputs: Path) -> list[Path]:
    """Write `DOCUMENTS` as HTML pages into `outputs`."""
    pages = []
    for name, page_name in DOCUMENTS.items():
        source, page = paths.ROOT / name, outputs / page_name
        body = linked(document(source), page, outputs, source)
        files.write_text(page, filled("document.html.j2", title=page.stem, body=body))
        pages.append(page)
    return pages


def document(source: Path) -> str:
    """A Markdown file of the project as HTML, the glossary's entries as a list of definitions that
    can be linked to."""
    text = source.read_text(encoding="utf-8")
    block = glossary.BLOCK.search(text)
    if block is None:
        return markdown_html(text, source.parent)
    entries = "\n".join(_entry(term) for term in glossary.read(text))
    before, after = (
        markdown_html(part, source.parent) for part in (text[: block.start()], text[block.end() :])
    )
    return f"{before}<dl>\n{entries}\n</dl>\n{after}"


def _entry(term: glossary.Term) -> str:
    names = "\n".join(
        f'<dt id="{glossary.address(name)}">{escape(name)}</dt>' for name in term.names
    )
    return f"{names}\n<dd>{markdown_html(REFERENCE.sub(_link, term.definition), paths.ROOT)}</dd>"


def _link(reference: re.Match[str]) -> str:
    name = reference["to"] or reference["name"]
    return f"[{reference['shown'] or name}](#{glossary.address(name)})"
