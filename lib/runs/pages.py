"""Executed notebooks as pages that need no network, and an index of them."""

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from mimetypes import guess_type
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
from jinja2 import Environment, pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.data import files
from lib.runs.notebooks import Outcome, clock

TEMPLATES = Path(__file__).parent / "templates"
WIDGET = "application/vnd.jupyter.widget-view+json"
PICTURE = re.compile(r"!\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


class MathRenderer(IPythonRenderer):
    """Markdown to HTML with equations as MathML, which browsers draw without a script."""

    def block_html(self, html: str) -> str:
        """HTML as it stands, so that a fold can hold Markdown."""
        return super().block_html(html) if "<img" in html else f"{html}\n"

    def _src_to_base64(self, src: str) -> str | None:
        """A picture as an address that holds it; nbconvert's own wants it in the page's folder."""
        file = Path(self.path) / unquote(src)
        if not file.is_file():
            return None
        content = b64encode(file.read_bytes()).decode()
        return f"data:{guess_type(file)[0]};base64,{content}"

    def inline_math(self, body: str) -> str:
        """`$…$` as inline MathML."""
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        """`$$…$$` as a MathML block."""
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        r"""`\begin{align}…\end{align}` as a MathML block."""
        name = re.sub(r"^(align|equation|gather)\*?$", "aligned", name)
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")


def mathml(latex: str, display: str) -> str:
    """An equation as MathML; the LaTeX itself where the converter cannot read it."""
    try:
        return convert(latex, display=display)
    except Exception:
        return f"<code>{escape(latex)}</code>"


class OfflinePage(HTMLExporter):
    """nbconvert's JupyterLab page, without what it would load from a network."""

    def __init__(self, **kwargs: Any) -> None:
        template = (TEMPLATES / "page.html.j2").read_text(encoding="utf-8")
        super().__init__(raw_template=template, embed_images=True, **kwargs)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """One Markdown cell; the name and the arguments are nbconvert's."""
        folder = context.get("resources", {}).get("metadata", {}).get("path", "")
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = MathRenderer(
            escape=False, attachments=attachments, embed_images=True, path=folder
        )
        return MarkdownWithMath(renderer=renderer).render(source)


def html(notebook: nbformat.NotebookNode, title: str, folder: Path, code: bool = True) -> str:
    """An executed notebook as the text of one HTML page.

    A widget needs a kernel, so its picture stands in its place.

    Args:
        title: of the browser's window.
        folder: where the notebook's links to pictures hold.
        code: False leaves out the code.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [still for out in cell.outputs if (still := without_widget(out))]
    exporter = OfflinePage(exclude_input=not code, exclude_output_prompt=not code)
    resources = {"metadata": {"name": title, "path": str(folder)}}
    return exporter.from_notebook_node(notebook, resources=resources)[0]


def without_widget(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """An output as it looks without a kernel: a widget's picture, None if it has no picture.

    Example:
        >>> slider = nbformat.v4.new_output("display_data", {WIDGET: {}, "image/png": "…"})
        >>> list(without_widget(slider).data)
        ['image/png']
    """
    content = output.get("data", {})
    if WIDGET not in content:
        return output
    if "image/png" not in content:
        return None
    still = {mime: shown for mime, shown in content.items() if mime != WIDGET}
    return nbformat.from_dict({**output, "data": still})


def render(executed: Path, names: Sequence[str]) -> Path:
    """Write the page of an executed notebook beside it; links to notebooks lead to their pages.

    Args:
        names: the notebooks that have a page, each in a folder of its name.
    """
    node = nbformat.read(executed, as_version=4)
    text = html(node, executed.stem, executed.parent)
    for name in names:
        text = re.sub(rf'href="[^"]*/{name}\.ipynb', f'href="../{name}/{name}.html', text)
    page = executed.with_suffix(".html")
    files.write_text(page, text)
    return page


def summary(path: Path) -> tuple[str, str, str]:
    """The title of a notebook, the question it asks, and its first picture ("" if it has none).

    The question is the first one below the title, or else the first sentence.
    """
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown"]
    text = "\n".join(cell.source for cell in cells)
    picture = PICTURE.search(text)
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`_]{1,2}", r"\1", text)
    title = re.search(r"^# (.*)$", plain, re.MULTILINE)
    opening = plain[title.end() :] if title else ""
    opening = re.split(r"^(?:Previous:|#)", opening, maxsplit=1, flags=re.MULTILINE)[0]
    sentences = re.split(r"(?<=[.?!])\s+", " ".join(opening.split()))
    question = next((s for s in sentences if s.endswith("?")), sentences[0])
    return title[1].strip() if title else path.stem, question, picture[1] if picture else ""


def index(outcomes: Sequence[Outcome], scores: Mapping[str, str], folder: Path) -> Path:
    """Write `index.html`: a card for each notebook with its picture, question and scores."""
    cards = []
    for outcome in outcomes:
        there = outcome.path.exists()
        title, question, picture = summary(outcome.path) if there else (outcome.name, "", "")
        page = outcome.path.with_suffix(".html")
        status = f"failed, {outcome.error}" if outcome.error else clock(outcome.seconds)
        cards.append(
            {
                "title": title,
                "question": question,
                "picture": _relative(outcome.path.parent / picture, folder) if picture else "",
                "link": _relative(page if page.exists() else outcome.path, folder),
                "status": status,
                "error": outcome.error,
                "score": scores.get(outcome.name, ""),
            }
        )
    template = (TEMPLATES / "index.html.j2").read_text(encoding="utf-8")
    text = Environment(autoescape=True).from_string(template).render(cards=cards)
    files.write_text(folder / "index.html", text)
    return folder / "index.html"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
