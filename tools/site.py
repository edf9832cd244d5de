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

from lib import paths
from lib.data.files import atomic_write, is_foreign, remove
from lib.runs import grids, notebooks
from tools import pages
from tools.density import is_folded, told

_LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"[^>]*>")


def cards() -> str:
    """The notebooks with picture, title and question of each, as Markdown for a page in `book/`."""
    parts = ['<div class="cards">']
    for path in notebooks.find_all():
        shown = pages.summary(path)
        picture = [f'<img alt="" src="{shown.picture}">'] if shown.picture else []
        link = f"**[{shown.title}](../notebooks/{path.name})**"
        parts += ['<div class="card">', *picture, link, shown.question, f"*{shown.time}*", "</div>"]
    return "\n\n".join([*parts, "</div>"])


_TITLE = re.compile(r"(.*?(?:Table|Figure) .*?)(?:[:;] (.*))?")


def results() -> str:
    """Every table of the papers as printed, with the command that runs it, as Markdown."""
    parts = []
    for path in sorted(paths.GRIDS.glob("*.yaml")):
        grid = grids.read(path)
        if not grid.table:
            continue
        title, rest = _title(grid.source)
        printed = pd.read_csv(
            paths.PAPERS / f"{grid.table}.csv", dtype=str, keep_default_na=False
        ).drop(columns=["paper", "table"])
        run = f"{rest}`python -m lib grid {grid.name}` runs it."
        parts += [f"## {title}", run, _html(printed, index=False)]
    return "\n\n".join(parts)


def _title(source: str) -> tuple[str, str]:
    """A source as a heading, and what it says after it as a sentence.

    Example:
        >>> _title("Zhu et al. 2024 (SDA), Table 7: Chinese STS-B")
        ('Zhu et al. 2024 (SDA), Table 7', 'Chinese STS-B. ')
    """
    found = _TITLE.fullmatch(source)
    title, rest = (found[1], found[2]) if found else (source, None)
    return title, f"{rest[0].upper()}{rest[1:]}. " if rest else ""


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
        hidden = cell.metadata.get("jupyter", {})
        for key, tag in (("source_hidden", "hide-input"), ("outputs_hidden", "hide-output")):
            if hidden.get(key):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), tag]
    node.cells = _under_one_bar(node.cells)
    return node


_BUTTON = {"code_prompt_show": "Show the output", "code_prompt_hide": "Hide the output"}


def _under_one_bar(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Cells in which a folded function stands with the folded cell that calls it, and what a cell
    says has no bar; a folded solution has a bar of its own, which is named so."""
    joined: list[nbformat.NotebookNode] = []
    for cell in cells:
        if joined and _is_silent(joined[-1]) and is_folded(cell):
            cell.source = f"{joined.pop().source}\n\n\n{cell.source}"
        elif _only_speaks(cell):
            tags = set(cell.metadata.get("tags", [])) - {"hide-input"}
            cell.metadata["tags"] = [*sorted(tags), "remove-input"]
            cell.metadata["mystnb"] = _BUTTON
        joined.append(cell)
    return joined


def _is_silent(cell: nbformat.NotebookNode) -> bool:
    """Whether a page shows nothing of a cell but a bar without a name."""
    return is_folded(cell) and not cell.outputs and "mystnb" not in cell.metadata


def _only_speaks(cell: nbformat.NotebookNode) -> bool:
    """Whether all that a folded cell does is to show sentences, which a page shows like the text
    around them."""
    return is_folded(cell) and 0 < len(cell.outputs) == len(told(cell))


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
    with atomic_write(html) as temporary:
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
