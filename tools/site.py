"""The course as a web site: a page a notebook, the tables of results, a glossary, a search; nothing
from a network.

Command line: `python -m tools.site` (`make book`) writes `outputs/book/html/index.html`. Needs the
    extra `book`.
"""

import argparse
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import nbformat
import pandas as pd

from lib import pages, papers, paths
from lib.files import is_foreign, remove, written
from tools import paper_tables

_LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"[^>]*>")


def cards() -> str:
    """The notebooks with the question of each, as a Markdown list for a page in `book/`."""
    lines = []
    for path in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        title, question = pages.summary(path)
        lines.append(f"* [{title}](../notebooks/{path.name})\\\n  {question}")
    return "\n".join(lines)


NO_TEST = (
    "No encoder of ours stands under a RoBERTa's name. Differences between rows of one table are no"
    " test below `full`: two rows may differ in their loss or head, too. Notebook 07 compares rows"
    " that differ in nothing else."
)
COVERAGE = (
    "`printed`: rows of the paper's table; `in the grid`: how many of them our grid trains; `full`:"
    " of these, run in the paper's setting. `small` and `light`: distinct trainings with committed"
    " runs, of so many that the grid asks for there; rows that train the same count once, and a row"
    " whose columns are trainings of their own counts as several."
)
_TITLE = re.compile(r"(.*?(?:Table|Figure) .*?)(?:[:;] (.*))?")


def results() -> str:
    """Every table of the papers beside our committed runs, at each profile that has any, as
    Markdown: those with most runs first, figures last, then how many rows have any."""
    committed = papers.finished(paths.RESULTS)  # a folder that holds no runs of one's own
    tables: list[tuple[int, list[str]]] = []
    for name, grid in papers.papers_grids().items():
        title, rest = _title(grid.source)
        parts = [f"## {title}", f"{rest}`python -m lib grid {name}` runs it."]
        ours = 0
        for profile in sorted(paper_tables.PROFILES, key=lambda name: name == "full"):
            smaller = paper_tables.shown(grid, profile)
            if not smaller.cells:
                continue
            table = paper_tables.side_by_side(smaller, committed)
            if (profile == "full" and grid.table) or table["n"].any():
                parts += [f"Profile `{profile}`:", _html(paper_tables.page(table))]
                ours += int((table["n"] > 0).sum()) if grid.table else 0
        tables.append((ours, parts))
    tables.sort(key=lambda pair: -pair[0])
    coverage = ["## Coverage", COVERAGE, _coverage(papers.coverage(committed))]
    shown = [part for _, parts in tables for part in parts]
    return "\n\n".join([NO_TEST, *shown, *coverage])


def _title(source: str) -> tuple[str, str]:
    """A source as a heading, and what it says after it as a sentence.

    Example:
        >>> _title("Zhu et al. 2024 (SDA), Table 7: Chinese STS-B")
        ('Zhu et al. 2024 (SDA), Table 7', 'Chinese STS-B. ')
    """
    found = _TITLE.fullmatch(source)
    title, rest = (found[1], found[2]) if found else (source, None)
    return title, f"{rest[0].upper()}{rest[1:]}. " if rest else ""


def _coverage(table: pd.DataFrame) -> str:
    """`mini` has no committed runs, and a figure's rows are not printed."""
    printed = [f"{n:.0f}" if n == n else "a figure" for n in table["printed"]]
    return _html(table.assign(printed=printed).drop(columns=["mini", "of mini"]), index=False)


def _html(table: pd.DataFrame, index: bool = True) -> str:
    return (
        f'<div class="table-wrapper">{table.to_html(index=index, border=0, classes="table")}</div>'
    )


def read_notebook(text: str) -> nbformat.NotebookNode:
    """A notebook for Sphinx: pictures attached to a cell stand in the cell, as MyST-NB knows no
    attachments, and cells that JupyterLab folds have the tag that folds them there."""
    node = nbformat.reads(text, as_version=4)
    for cell in node.cells:
        for name, content in cell.get("attachments", {}).items():
            kind, picture = next(iter(content.items()))
            cell.source = cell.source.replace(f"attachment:{name}", f"data:{kind};base64,{picture}")
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
    return node


def anchor(heading: str) -> str:
    """A heading's anchor as JupyterLab makes it.

    Example:
        >>> anchor("The run")
        'The-run'
    """
    return heading.replace(" ", "-")


class _Links(HTMLParser):
    """Addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if value and (
                (name == "href" and tag in ("a", "link")) or (name == "src" and tag != "iframe")
            ):
                self.targets.append(value)


def _pages(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.relative_to(folder).parts
    ]


def broken(folder: Path) -> list[str]:
    """What a built site lacks: links and images without a file or anchor, and anything it would
    load from a network."""
    parsers, missing, elsewhere = {}, [], set()
    for page in _pages(folder):
        text = page.read_text(encoding="utf-8")
        parsers[page.resolve()] = parser = _Links()
        parser.feed(text)
        loaded = (tag for tag in _LOADED.findall(text) if 'rel="canonical"' not in tag)
        elsewhere |= {f"{page.relative_to(folder).as_posix()}: {tag}" for tag in loaded}
    for page, parser in parsers.items():
        name = page.relative_to(folder.resolve()).as_posix()
        for target in parser.targets:
            parts = urlparse(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists():
                missing.append(f"{name}: {target} is not there")
            elif (
                parts.fragment
                and path in parsers
                and unquote(parts.fragment) not in parsers[path].anchors
            ):
                missing.append(f"{name}: {target} has no such anchor")
    return sorted(set(missing)) + sorted(elsewhere)


def build(folder: Path) -> Path:
    """Build the site in `html/` of `folder`.

    Returns:
        `html/index.html`.

    Raises:
        ValueError: `html/` is there and not of this making.
        RuntimeError: Sphinx warns or fails, or a link is broken; the message lists them.
    """
    html = folder.resolve() / "html"
    if is_foreign(html, "searchindex.js"):
        raise ValueError(
            f"{html} holds something else than the site: name another folder with --out"
        )
    remove(html)
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    with written(html) as temporary:
        command = [*sphinx, "-c", "book", ".", str(temporary)]
        done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"sphinx: {done.stderr[-4000:]}")
        if missing := broken(temporary):
            raise RuntimeError("broken links:\n" + "\n".join(missing))
    return html / "index.html"


def main(arguments: list[str] | None = None) -> None:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.site", description="The course as a web site."
    )
    parser.add_argument("--out", type=Path, default=paths.outputs() / "book")
    chosen = parser.parse_args(arguments)
    try:
        print(build(chosen.out))
    except (RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
