"""README and glossary as pages beside the executed notebooks."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from lib import documents, glossary, pages, paths

LINK = re.compile(r'href="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"')


@pytest.fixture
def written(tmp_path: Path) -> dict[str, str]:
    """The pages by their names."""
    return {page.name: page.read_text() for page in documents.write_documents(tmp_path)}


def test_every_term_of_the_glossary_can_be_linked_to(written: dict[str, str]) -> None:
    page = written["glossary.html"]
    terms = glossary.read(glossary.PAGE.read_text(encoding="utf-8"))
    addresses = [glossary.address(name) for term in terms for name in term.names]
    assert re.findall(r'<dt id="([^"]+)"', page) == addresses and len(addresses) > 50
    assert "{term}" not in page and "{glossary}" not in page
    asked = {anchor for file, anchor in LINK.findall(page) if not file and "term-" in anchor}
    assert asked and asked <= set(addresses)


def test_links_of_the_readme_lead_to_pages_and_files(
    written: dict[str, str], tmp_path: Path
) -> None:
    files = {unquote(file) for file, _ in LINK.findall(written["readme.html"]) if file}
    assert {"glossary.html", "07_results/07_results.html"} <= files
    made = {"index.html", *pages.DOCUMENTS.values()}
    executed = {f"{path.stem}/{path.stem}.html" for path in paths.NOTEBOOKS.glob("*.ipynb")}
    assert all((tmp_path / file).exists() for file in files - made - executed)


def test_a_notebook_links_to_the_pages(tmp_path: Path) -> None:
    text = '<a href="../book/glossary.md#term-anchor">a</a> <a href="../README.md">b</a>'
    moved = pages.linked(text, tmp_path / "01_infonce" / "01_infonce.html")
    assert LINK.findall(moved) == [("../glossary.html", "term-anchor"), ("../readme.html", "")]
