"""Notebook 07 as a report: what it holds, what it leaves out, and its PDF."""

import re
from html.parser import HTMLParser

import nbformat
import pytest

from lib.results import claims
from tools import report


@pytest.fixture(scope="module")
def page() -> str:
    return report.html(nbformat.read(report.NOTEBOOK, as_version=4))


class Text(HTMLParser):
    """The words of a page, and what its links lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def read(page: str) -> Text:
    text = Text()
    text.feed(page[page.index("<body") :])
    return text


def test_every_paper_has_a_line_and_the_counts_of_verdicts_are_in_the_report(page):
    words = " ".join(read(page).words)
    for paper in ("SimCSE :", "ConSERT, extended :", "UNA :", "SDA :", "Slides :"):
        assert paper in words
    judged = claims.judged(claims.read()).query("paper != 'backbones'")
    counts = [str((judged["verdict"] == name).sum()) for name in claims.VERDICTS]
    assert "All " + " ".join(counts) in words


def test_it_has_no_code_no_folds_and_no_links_to_files(page):
    text = read(page)
    assert "import" not in text.words and "<details" not in page
    assert 'class="highlight' not in page[page.index("<body") :]
    assert all(re.match(r"https?:|#", link) for link in text.links), text.links


def test_it_says_how_to_cite_it_and_shows_the_figures(page):
    notebook = nbformat.read(report.NOTEBOOK, as_version=4)
    shown = report.abridged(notebook)
    figures = [
        o for c in shown.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})
    ]
    words = " ".join(read(page).words)
    assert "To cite:" in words and "Sections have the numbers of the notebook" in words
    assert page.count("data:image/png;base64") >= len(figures) >= 3


def test_cells_of_the_run_and_for_the_reader_alone_stay_out():
    notebook = nbformat.read(report.NOTEBOOK, as_version=4)
    kept = {cell.id for cell in report.abridged(notebook).cells}
    assert kept.isdisjoint({"learn", "imports", "parameters", "run", "exercises", "search"})
    assert {"title", "sheet", "references"} <= kept


@pytest.mark.browser
def test_the_pdf_has_numbered_pages(tmp_path, page):
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    made = report.pdf(tmp_path / "report.html")
    assert made.startswith(b"%PDF") and 4 <= len(re.findall(rb"/Type\s*/Page\b", made)) <= 20
