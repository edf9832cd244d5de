"""Notebook 07 as a report to read and to cite: text, tables and figures without code, on one HTML
page and as a PDF.

Command line: `python -m tools.report` (`make report`) writes `outputs/report/report.html` and
`report.pdf`. The PDF needs the extra `browser` and a Chromium.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
import yaml

from lib import paths, runs
from lib.data.files import write_bytes, write_text
from tools import pages
from tools.browser import chromium

NOTEBOOK = paths.NOTEBOOKS / "07_results.ipynb"
STYLE = Path(__file__).with_name("report.css")
LOCAL_LINK = re.compile(r"(?<!!)\[((?:[^][]|\[[^][]*\])+)\]\((?!https?:)[^)\s]+\)")
ANSWER = re.compile(r"<details>\s*<summary>Answer</summary>(.*?)</details>", re.S)
FOLD = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.S)
NAVIGATION = re.compile(r"^\*Previous:\*.*$", re.M)
FOOTER = """<div style="width: 100%; font-size: 8px; text-align: center; font-family: sans-serif">
<span class="pageNumber"></span> / <span class="totalPages"></span></div>"""


def abridged(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cells of a notebook that say what was found: the title, the lesson before the run, and
    the references.

    Links to files of the course become their words, folds and hidden outputs are opened, and how
    to cite the report stands below its title.
    """
    shown = [cell for cell in notebook.cells if _tells(cell)]
    for cell in shown:
        cell.metadata.get("jupyter", {}).pop("outputs_hidden", None)
        if cell.cell_type == "markdown":
            cell.source = unfolded(cell.source)
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            if "text/markdown" in data:
                data["text/markdown"] = unfolded(data["text/markdown"])
    shown[0].source = NAVIGATION.sub(_cite(), shown[0].source)
    return nbformat.v4.new_notebook(cells=shown, metadata=notebook.metadata)


def _tells(cell: nbformat.NotebookNode) -> bool:
    is_lesson = "lesson" in cell.metadata.get("tags", [])
    for_the_reader = cell.id.startswith(("search", "learn", "my-"))
    return (is_lesson and not for_the_reader) or cell.id in ("title", "references")


def unfolded(text: str) -> str:
    """Markdown without folds and without links to files.

    Example:
        >>> unfolded("See [07](07_results.ipynb) and [it](https://example.org).")
        'See 07 and [it](https://example.org).'
        >>> unfolded("The state of [[CLS]](glossary.md#term-CLS)")
        'The state of [CLS]'
        >>> unfolded("<details><summary>Answer</summary>No.</details>")
        '**Answer.** No.'
    """
    text = ANSWER.sub(lambda fold: f"**Answer.** {fold[1].strip()}", text)
    text = FOLD.sub(lambda fold: f"**{fold[1].strip()}.** {fold[2].strip()}", text)
    return LOCAL_LINK.sub(r"\1", text)


def _cite() -> str:
    about = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = ", ".join(author["name"] for author in about["authors"])
    commit = str(runs.folder.commit()["commit"])[:7]
    return (
        f"*To cite:* {authors}. *{about['title']}*, notebook 07, version {about['version']},"
        f" commit {commit}.\n\nSections have the numbers of the notebook;"
        " its setup, run and exercises are left out."
    )


def html(notebook: nbformat.NotebookNode) -> str:
    """The report as one page that loads nothing."""
    page = pages.html(abridged(notebook), "Reproduction report", paths.NOTEBOOKS, code=False)
    style = f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>"
    return page.replace("</head>", style, 1)


def pdf(page: Path) -> bytes:
    """A page of `html` as A4 sheets with their numbers.

    Raises:
        RuntimeError: there is no playwright or no Chromium.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("playwright is not installed: run `make setup`") from error
    if not chromium():
        raise RuntimeError("no Chromium: install the system's chromium, or name one with CHROMIUM")
    with sync_playwright() as start:
        window = start.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        sheet = window.new_page()
        sheet.goto(page.resolve().as_uri())
        made = sheet.pdf(
            format="A4",
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            margin={"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
            print_background=True,
        )
        window.close()
    return made


def main(arguments: list[str] | None = None) -> None:
    """Write the page, then the PDF, and say where they are."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.report", description="Notebook 07 as a report, without code."
    )
    parser.add_argument("--out", type=Path, default=paths.outputs() / "report")
    folder = parser.parse_args(arguments).out
    page = folder / "report.html"
    write_text(page, html(nbformat.read(NOTEBOOK, as_version=4)))
    print(page)
    try:
        write_bytes(folder / "report.pdf", pdf(page))
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    print(folder / "report.pdf")


if __name__ == "__main__":
    main()
