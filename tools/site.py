"""The course as a web site: a page a notebook, the tables of results, a glossary, a search; nothing
from a network.

Command line: `python -m tools.site` (`make book`) writes `outputs/book/html/index.html`. Needs the
    extra `book`.
"""

import argparse
import base64
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import nbformat
import pandas as pd

from lib import pages, papers, paths
from lib.files import is_foreign, remove, write_bytes, write_text, written

SOURCE = paths.ROOT / "book"
PAGES = {
    "walk": SOURCE / "walk.md",
    "readme": paths.ROOT / "README.md",
    "assignments": paths.ROOT / "assignments" / "README.md",
    "data": paths.DATA / "README.md",
    "papers": paths.PAPERS / "README.md",
    "contributing": paths.ROOT / "CONTRIBUTING.md",
    "licences": paths.ROOT / "LICENSES.md",
    "timings": paths.BENCHMARKS / "README.md",
}
_LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"[^>]*>")
_LINK = re.compile(r"(!?\[[^\]\n]*\]\()([^)\s]+)(\))")


def results_page(results: pd.DataFrame) -> str:
    """Every table of the papers beside our runs, at each profile that has any, as Markdown."""
    cell = (
        "A cell is *the paper's | ours, mean ± sd over seeds (n)*, Spearman × 100; – where there is"
        " none yet."
    )
    parts = ["# Results", cell]
    covered = papers.coverage(results)
    parts += ["## Coverage", _html(covered, index=False)]
    for name, grid in papers.papers_grids().items():
        parts += [f"## {name}", grid.source + "."]
        for profile in papers.PROFILES:
            table = papers.side_by_side(papers.sized(grid, profile), results)
            if profile == "full" or table["n"].any():
                parts += [f"Profile `{profile}`:", _html(papers.page(table))]
    return "\n\n".join(parts) + "\n"


def _html(table: pd.DataFrame, index: bool = True) -> str:
    return (
        f'<div class="table-wrapper">{table.to_html(index=index, border=0, classes="table")}</div>'
    )


def fill(folder: Path, results: pd.DataFrame) -> None:
    """Write Sphinx's source: the committed notebooks, the results and the project's own pages,
    their links turned."""
    shutil.copy(SOURCE / "conf.py", folder)
    shutil.copy(SOURCE / "glossary.md", folder)
    shutil.copytree(SOURCE / "_static", folder / "_static")
    notebooks = sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    page_of = {path.resolve(): f"{path.name}" for path in notebooks} | {
        path.resolve(): f"{name}.md" for name, path in PAGES.items()
    }
    cards = []
    for path in notebooks:
        node = nbformat.read(path, as_version=4)
        for cell in node.cells:
            if cell.cell_type == "markdown":
                cell.source = _attached(
                    _turned(cell.source, path.parent, folder, page_of), cell, folder
                )
        write_text(folder / path.name, nbformat.writes(node))
        title, question = pages.summary(path)
        cards.append(f"* [{title}]({path.name})\\\n  {question}")
    for name, path in PAGES.items():
        write_text(
            folder / f"{name}.md",
            _turned(path.read_text(encoding="utf-8"), path.parent, folder, page_of),
        )
    front = (SOURCE / "index.md").read_text(encoding="utf-8").replace("{{cards}}", "\n".join(cards))
    write_text(
        folder / "index.md",
        front.replace("{{notebooks}}", "\n".join(path.stem for path in notebooks)),
    )
    write_text(folder / "results.md", results_page(results))


def _turned(text: str, base: Path, folder: Path, page_of: dict[Path, str]) -> str:
    """Links to pages of the site lead there, to data and pictures to copies; of the others the
    words are left."""

    def turn(match: re.Match) -> str:
        target, _, anchor = match[2].partition("#")
        if not target:
            return f"{match[1]}#{anchor.lower()}{match[3]}"
        if urlparse(target).scheme:
            return match[0]
        path = (base / target).resolve()
        if path in page_of:
            return f"{match[1]}{page_of[path]}{'#' + anchor if anchor else ''}{match[3]}"
        if not path.is_file() or path.suffix in (".md", ".ipynb"):
            return match[1][:-1].lstrip("!").strip("[]")
        copy = folder / "files" / path.relative_to(paths.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
        return f"{match[1]}files/{path.relative_to(paths.ROOT).as_posix()}{match[3]}"

    return _LINK.sub(turn, text)


def _attached(text: str, cell: nbformat.NotebookNode, folder: Path) -> str:
    """Pictures inside a notebook's cell become files."""
    for name, content in cell.get("attachments", {}).items():
        picture = next(iter(content.values()))
        file = f"files/{cell.id}-{name}"
        write_bytes(folder / file, base64.b64decode(picture))
        text = text.replace(f"attachment:{name}", file)
    return text


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
        elsewhere |= {f"{page.name}: {tag}" for tag in loaded}
    for page, parser in parsers.items():
        for target in parser.targets:
            parts = urlparse(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists():
                missing.append(f"{page.name}: {target} is not there")
            elif (
                parts.fragment
                and path in parsers
                and unquote(parts.fragment) not in parsers[path].anchors
            ):
                missing.append(f"{page.name}: {target} has no such anchor")
    return sorted(set(missing)) + sorted(elsewhere)


def build(folder: Path) -> Path:
    """Build the site in `folder`: `source/` and `html/`.

    Returns:
        `html/index.html`.

    Raises:
        ValueError: `source/` or `html/` is there and not of this making.
        RuntimeError: Sphinx warns or fails, or a link is broken; the message lists them.
    """
    source, html = folder / "source", folder / "html"
    for path, mark in ((source, "conf.py"), (html, "searchindex.js")):
        if is_foreign(path, mark):
            raise ValueError(
                f"{path} holds something else than the site: name another folder with --out"
            )
        remove(path)
    with written(source) as temporary:
        temporary.mkdir()
        fill(temporary, papers.finished(folder / "no-outputs"))
    with written(html) as temporary:
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            str(source),
        ]
        done = subprocess.run(
            [*command, str(temporary)], capture_output=True, text=True, check=False
        )
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
    options = parser.parse_args(arguments)
    try:
        print(build(options.out))
    except (RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
