"""Notebook 07 as a report: what it leaves out, and its PDF."""

import re

import nbformat
import pytest

from tools import report


@pytest.fixture(scope="module")
def page() -> str:
    return report.html(nbformat.read(report.NOTEBOOK, as_version=4))


def test_it_has_no_code_no_folds_no_links_to_files_and_its_figures(page):
    body = page[page.index("<body") :]
    assert 'class="highlight' not in body and "<details" not in page
    assert all(re.match(r"https?:|#", link) for link in re.findall(r'<a [^>]*href="([^"]*)', body))
    assert body.count("data:image/png;base64") >= 3


@pytest.mark.browser
def test_the_pdf_has_numbered_pages(tmp_path, page):
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    made = report.pdf(tmp_path / "report.html")
    assert made.startswith(b"%PDF") and 4 <= len(re.findall(rb"/Type\s*/Page\b", made)) <= 20
