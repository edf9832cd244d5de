"""Notebooks as pages that need no network: pictures in the page, equations as MathML."""

import re
from base64 import b64encode
from html import escape
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import nbformat
from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

TEMPLATE = Path(__file__).with_name("page.html.j2")
WIDGET = "application/vnd.jupyter.widget-view+json"
_FUNCTION = re.compile(r"<mi>(ln|log|exp)</mi>(?!<mo[^>]*>&#x00028;)")  # not before a bracket
PICTURE = re.compile(r"!\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


class Renderer(IPythonRenderer):
    """Markdown to HTML, with what nbconvert would leave to a script or to files beside the page."""

    def block_html(self, html: str) -> str:
        """HTML as it stands, so that a fold can hold Markdown."""
        return super().block_html(html) if "<img" in html else f"{html}\n"

    def _src_to_base64(self, src: str) -> str | None:
        """A picture as an address that holds it; nbconvert's own wants it below the page."""
        file = Path(self.path) / unquote(src)
        return embedded(file) if file.is_file() else None

    def inline_math(self, body: str) -> str:
        """`$…$` as MathML, which browsers draw without a script; LaTeX that it cannot say stays."""
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        """`$$…$$` as a MathML block."""
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        r"""`\begin{align}…\end{align}` as a MathML block."""
        name = re.sub(r"^(align|equation|gather)\*?$", "aligned", name)
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")


def embedded(picture: Path) -> str:
    """A picture as an address that holds it."""
    return f"data:{guess_type(picture)[0]};base64,{b64encode(picture.read_bytes()).decode()}"


def mathml(latex: str, display: str) -> str:
    """An equation as MathML; the LaTeX itself where the converter cannot read it.

    Example:
        >>> 'rspace="0.167em">ln</mo><mi>n</mi>' in mathml(r"\\ln n", "inline")
        True
    """
    try:
        return _FUNCTION.sub(
            r'<mo lspace="0.167em" rspace="0.167em">\1</mo>', convert(latex, display=display)
        )
    except Exception:
        return f"<code>{escape(latex)}</code>"


class Exporter(HTMLExporter):
    """nbconvert's JupyterLab page with `Renderer`."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """One Markdown cell; the name and the arguments are nbconvert's."""
        folder = context["resources"]["metadata"]["path"]
        attachments = context.get("cell", {}).get("attachments", {})
        own = Renderer(escape=False, attachments=attachments, embed_images=True, path=folder)
        return MarkdownWithMath(renderer=own).render(source)


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
    options = {"exclude_input": not code, "exclude_output_prompt": not code, "embed_images": True}
    exporter = Exporter(raw_template=TEMPLATE.read_text(encoding="utf-8"), **options)
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


class Summary(NamedTuple):
    """What a card shows of a notebook; what it lacks is "".

    The question is the text below the title up to the first question mark, or else its first
    sentence; `time` is the first sentence of *Time and hardware*; `picture` is an address that
    holds the first drawing, or else the first figure that is not hidden, or is tagged `card`.
    """

    title: str
    question: str
    time: str
    picture: str


def summary(path: Path) -> Summary:
    """The card of a notebook, from its text and its stored outputs."""
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`_]{1,2}", r"\1", text)
    title, _, below = plain.partition("\n")
    opening = re.split(r"^(?:Previous:|#)", below, maxsplit=1, flags=re.MULTILINE)[0]
    opening = " ".join(opening.split())
    question = re.match(r".*?\?(?=\s|$)", opening) or re.match(r"[^.]*\.?", opening)
    time = re.search(r"Time and hardware\.\s+([^.]*\.)", plain)
    drawing = PICTURE.search(text)
    picture = embedded(path.parent / drawing[1]) if drawing else _first_figure(cells)
    return Summary(
        title.removeprefix("# ").strip(),
        question[0] if question else "",
        time[1] if time else "",
        picture,
    )


def _is_hidden(cell: nbformat.NotebookNode) -> bool:
    return cell.metadata.get("jupyter", {}).get("outputs_hidden", False)


def _first_figure(cells: list[nbformat.NotebookNode]) -> str:
    shown = (
        output.data["image/png"]
        for cell in cells
        if "card" in cell.metadata.get("tags", []) or not _is_hidden(cell)
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    )
    figure = "".join(next(shown, "").split())
    return figure and f"data:image/png;base64,{figure}"
