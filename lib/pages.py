"""Executed notebooks as pages that need no network, an index of them, and the table of their
results."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import nbformat
import pandas as pd
from jinja2 import Environment, pass_context
from latex2mathml.converter import convert as latex_to_mathml
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib import paths, runs
from lib.data import files
from lib.results.statistics import mean_sd
from lib.training.recipe import FIELDS

RESULT_COLUMNS = {
    "dev": ("mini_dev_spearman_best", "stsb_dev_spearman_best"),
    "test": ("mini_test_spearman_best", "sts7_test_avg_best"),
    "loss": ("loss_last",),
    "seconds": ("train_seconds",),
}
PICTURE = re.compile(r"!\[(?:[^\[\]]|\[[^\]]*\])*\]\((pictures/[^)\s]+)\)")
LINK = re.compile(r'href="(?![a-z]+:|#)([^"#]+)(#[^"]*)?"')
NAMED_FUNCTION = re.compile(r"(<mi>(?:ln|log)</mi>)(?=<m)")
THIN_SPACE = r'\1<mspace width="0.17em"></mspace>'
WIDGET = "application/vnd.jupyter.widget-view+json"
PARAMETERS = (*FIELDS, "max_steps", "corpus")
TEMPLATES = Path(__file__).parent / "templates"
# Files that have a page of their own beside the executed notebooks.
DOCUMENTS = {"README.md": "readme.html", "book/glossary.md": "glossary.html"}


@dataclass(frozen=True)
class Outcome:
    """One executed notebook: where it is, how long it took (seconds), and what stopped it, if
    anything."""

    name: str
    path: Path
    seconds: float
    cells: int
    error: str | None = None


class MathRenderer(IPythonRenderer):
    """Markdown to HTML with equations as MathML, which browsers draw without a script, and with
    folds."""

    def block_html(self, html: str) -> str:
        """HTML as it stands, so that a fold can hold Markdown; pictures in it are embedded."""
        return super().block_html(html) if "<img" in html else f"{html}\n"

    def inline_math(self, body: str) -> str:
        """`$…$` as inline MathML."""
        return _mathml(body, "inline")

    def block_math(self, body: str) -> str:
        """`$$…$$` as a MathML block."""
        return _mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        r"""`\begin{align}…\end{align}` as a MathML block."""
        name = {"align": "aligned", "equation": "aligned", "gather": "aligned"}.get(
            name.rstrip("*"), name
        )
        return _mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")


class OfflinePage(HTMLExporter):
    """nbconvert's JupyterLab page, self-contained: nothing is loaded from a network."""

    def __init__(self, **kwargs: Any) -> None:
        template = (TEMPLATES / "page.html.j2").read_text(encoding="utf-8")
        super().__init__(raw_template=template, embed_images=True, **kwargs)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """Render one markdown cell; the name and signature are nbconvert's filter."""
        attachments = context.get("cell", {}).get("attachments", {})
        folder = context.get("resources", {}).get("metadata", {}).get("path", "")
        return markdown_html(source, folder, attachments)


def markdown_html(text: str, folder: str | Path, attachments: dict | None = None) -> str:
    """Markdown with equations and folds as HTML in which pictures are embedded.

    Args:
        folder: against which the pictures' links are resolved; attachments: a notebook cell's.
    """
    renderer = MathRenderer(
        escape=False, attachments=attachments, embed_images=True, path=str(folder)
    )
    return MarkdownWithMath(renderer=renderer).render(text)


def render(executed: Path, page: Path, assets: Path | None = None) -> None:
    """Write an executed notebook as one self-contained HTML file.

    Widgets need a kernel, so their picture stands in for them, or a note where there is none. Links
    to another notebook lead to its page, links to a file of the project to that file.

    Args:
        executed: the notebook.
        page: the HTML file, written atomically.
        assets: folder against which the notebook's image links are resolved.
    """
    node = nbformat.read(executed, as_version=4)
    files.write_text(page, linked(html(node, executed.stem, assets or paths.NOTEBOOKS), page))


def linked(text: str, page: Path, outputs: Path | None = None, source: Path | None = None) -> str:
    """A page's links, which are relative to its source, relative to the page; those to a notebook
    or to one of `DOCUMENTS` lead to its page.

    Args:
        outputs: where the pages are, as `make course` writes them: notebooks as `NAME/NAME.html`,
            documents beside them. None: two folders up from `page`.
        source: the file that the links are relative to; None: a notebook.
    """
    outputs = (outputs or page.parent.parent).resolve()
    folder = source.parent if source else paths.NOTEBOOKS

    def moved(link: re.Match[str]) -> str:
        target = (folder / unquote(link[1])).resolve()
        if not target.exists():
            return link[0]
        inside = target.relative_to(paths.ROOT).as_posix() if paths.ROOT in target.parents else ""
        if target.suffix == ".ipynb" and target.parent == paths.NOTEBOOKS:
            target = outputs / target.stem / f"{target.stem}.html"
        elif inside in DOCUMENTS:
            target = outputs / DOCUMENTS[inside]
        try:
            path = Path(os.path.relpath(target, page.parent.resolve())).as_posix()
        except ValueError:  # another drive, on Windows
            path = target.as_uri()
        return f'href="{quote(path, safe=":/.")}{link[2] or ""}"'

    return LINK.sub(moved, text)


def html(notebook: nbformat.NotebookNode, title: str, assets: Path, code: bool = True) -> str:
    """An executed notebook as the text of one HTML page, with or without its code.

    Args:
        title: of the browser's window.
        assets: folder against which the notebook's image links are resolved.
    """
    note = nbformat.v4.new_output("stream", text="[interactive: open the notebook in JupyterLab]\n")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            widget_alone = "search.search_box(" in cell.source and not cell.outputs
            cell.outputs = [without_widget(out) or note for out in cell.outputs]
            cell.outputs += [note] * widget_alone
    resources = {"metadata": {"name": title, "path": str(assets)}}
    exporter = OfflinePage(exclude_input=not code, exclude_output_prompt=not code)
    return exporter.from_notebook_node(notebook, resources=resources)[0]


def without_widget(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """An output as it looks without a kernel: a widget's picture, None for one that has no picture.

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


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    """The pictures that a notebook's text shows, relative to its folder."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return list(dict.fromkeys(PICTURE.findall("\n".join(prose))))


def bring_pictures(notebook: nbformat.NotebookNode, source: Path, target: Path) -> None:
    """Put the pictures of a notebook beside a copy of it in another folder, so that it shows them.

    Args:
        source: the notebook's folder; a picture that is missing there is left out.
        target: the copy's folder.
    """
    if source.resolve() == target.resolve():
        return
    for name in pictures(notebook):
        if (source / name).is_file():
            files.write_bytes(target / name, (source / name).read_bytes())


def summary(executed: Path) -> tuple[str, str]:
    """Title of a notebook and the question it asks, the first one under the title, as plain text;
    the first sentence where there is none."""
    node = nbformat.read(executed, as_version=4)
    text = "\n".join(cell.source for cell in node.cells if cell.cell_type == "markdown")
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`_]{1,2}", r"\1", text)
    title = re.search(r"^# (.*)$", plain, re.MULTILINE)
    if title is None:
        return executed.stem, ""
    opening = re.split(r"^(?:Previous:|#)", plain[title.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    sentences = re.split(r"(?<=[.?!])\s+", " ".join(opening.split()))
    sentences = [s for s in sentences if s != "The question."]
    asked = (sentence for sentence in sentences if sentence.endswith("?"))
    return title[1].strip(), next(asked, sentences[0] if sentences else "")


def index_page(outcomes: Sequence[Outcome], results: pd.DataFrame, folder: Path) -> Path:
    """Write `index.html`: a card per notebook and the table of results."""
    cards = []
    for outcome in outcomes:
        title, sentence = summary(outcome.path) if outcome.path.exists() else (outcome.name, "")
        page = outcome.path.with_suffix(".html")
        link = Path(os.path.relpath(page if page.exists() else outcome.path, folder)).as_posix()
        status = (
            f"failed, {outcome.error}"
            if outcome.error
            else f"{outcome.cells} cells, {outcome.seconds:.0f} s"
        )
        cards.append(
            {
                "title": title,
                "sentence": sentence,
                "link": link,
                "status": status,
                "error": outcome.error,
            }
        )
    table = (
        "<p>No results yet.</p>"
        if results.empty
        else results.to_html(index=False, border=0, float_format=two_decimals, na_rep="")
    )
    text = filled("index.html.j2", cards=cards, table=table, documents=DOCUMENTS)
    files.write_text(folder / "index.html", text)
    return folder / "index.html"


def filled(template: str, **values: object) -> str:
    """One of `TEMPLATES` with its values; text is escaped unless the template calls it safe."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return Environment(autoescape=True).from_string(text).render(**values)


def results_table(names: Sequence[str]) -> pd.DataFrame:
    """Finished runs of these notebooks, one row for each set of parameters, over its seeds.

    A run that several notebooks share stands in one line, which names them by their numbers.

    Returns:
        Columns notebook, method (`methods` says how it is named), profile, seeds (how many, and how
        many of them collapsed), then those of `RESULT_COLUMNS` that any run has: scores as
        `mean ± sd`, Spearman × 100 of the best checkpoint, loss and seconds as means. Over a seed
        that collapsed, so that its score is no number, there is no mean.
    """
    finished = runs.collect()
    if finished.empty:
        return finished
    finished = finished[finished["notebook"].isin(names)].reset_index(drop=True)
    finished["method"] = methods(finished)
    shown = {
        column: finished[[metric for metric in metrics if metric in finished]]
        for column, metrics in RESULT_COLUMNS.items()
    }
    values = {
        column: metrics.bfill(axis=1).iloc[:, 0].astype(float)
        for column, metrics in shown.items()
        if len(metrics.columns)
    }
    measured = {metric for metrics in shown.values() for metric in metrics}
    lost = pd.Series([bool(measured & set(text.split())) for text in finished["collapsed"]])
    keys = [name for name in ("method", "profile") if name in finished]
    same = finished["run_id"].str.replace(r"-s\d+$", "", regex=True)
    lines = []
    for _, group in finished.groupby([*(finished[key] for key in keys), same], sort=False):
        owners = group["notebook"].unique()
        group = group.drop_duplicates("run_id")
        owner = owners[0] if len(owners) == 1 else ", ".join(name[:2] for name in owners)
        line = {"notebook": owner} | dict(zip(keys, group[keys].iloc[0], strict=True))
        collapsed = int(lost[group.index].sum())
        line["seeds"] = str(len(group)) + (f", {collapsed} collapsed" if collapsed else "")
        lines.append(line | {name: _shown(name, v[group.index]) for name, v in values.items()})
    return pd.DataFrame(lines, columns=["notebook", *keys, "seeds", *values])


def methods(finished: pd.DataFrame) -> list[str]:
    """What each run is: its recipe, and the parameters by which it differs from other runs of that
    recipe here.

    Example:
        >>> table = pd.DataFrame({"recipe": ["una", "una", "sda"], "beta": [0.5, 0.3, None]})
        >>> methods(table)
        ['una, beta 0.5', 'una, beta 0.3', 'sda']
    """
    known = [name for name in finished if name in PARAMETERS]
    told = finished["recipe"].astype(str).copy()
    for _, group in finished.groupby("recipe", sort=False):
        for name in known:
            if group[name].nunique(dropna=False) > 1:
                words = group[name].map(lambda value, name=name: _said(name, value))
                told[group.index] += words
    return told.to_list()


def _said(name: str, value: object) -> str:
    if value is None or value != value:
        return ""
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f", {name.replace('_', ' ')} {number}"


def _shown(column: str, values: pd.Series) -> str | float:
    return mean_sd(values) if column in ("dev", "test") else float(values.mean(skipna=False))


def _mathml(latex: str, display: str) -> str:
    try:
        return NAMED_FUNCTION.sub(THIN_SPACE, latex_to_mathml(latex, display=display))
    except Exception:
        return f"<code>{escape(latex)}</code>"


def two_decimals(value: float) -> str:
    """Two decimals, nothing for a missing value."""
    return "" if pd.isna(value) else f"{value:.2f}"
