"""nbgrader's settings for this course: run its commands in this folder, or copy the file, and
`guard.py` with it, into your own course."""

import csv
import html
import re
import sys
from pathlib import Path

from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import from_dict
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import CsvExportPlugin
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    Execute,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)

sys.path.insert(0, str(Path(__file__).resolve().parent))

import guard


class Mend(NbGraderPreprocessor):
    """Mends what `OverwriteCells` stops at: a cell copied within the notebook or from another
    assignment becomes a plain cell, a graded cell that is missing comes back."""

    def preprocess(self, nb, resources):
        """A submission in which every cell of nbgrader's is one of the assignment's, once."""
        nbgrader = resources["nbgrader"]
        transform = OverwriteCells(parent=self.parent).missing_cell_transform
        with Gradebook(nbgrader["db_url"]) as gradebook:
            source = gradebook.find_notebook(nbgrader["notebook"], nbgrader["assignment"])
            names = [cell.name for cell in source.source_cells]
            answers = {cell.name for cell in source.solution_cells}
            points = {cell.name: cell.max_score for cell in source.grade_cells}
            for cell in nb.cells:
                if "nbgrader" in cell.metadata and _name(cell) not in names:
                    del cell.metadata["nbgrader"]
            for k, original in enumerate(source.source_cells):
                there = [_name(cell) for cell in nb.cells]
                if original.name in points and original.name not in there:
                    self.log.warning("Graded cell '%s' is missing: put back", original.name)
                    before = [there.index(name) for name in names[:k] if name in there]
                    back = transform(original, points[original.name], original.name in answers)
                    nb.cells.insert(before[-1] + 1 if before else 0, from_dict(back))
        return nb, resources


def _name(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


class Guard(NbGraderPreprocessor):
    """Takes out, before anything runs, the cells of students that `guard.py` objects to."""

    def preprocess(self, nb, resources):
        """A submission that may be run; see `guard.prepared`."""
        nbgrader = resources["nbgrader"]
        with Gradebook(nbgrader["db_url"]) as gradebook:
            source = gradebook.find_notebook(nbgrader["notebook"], nbgrader["assignment"])
            locked = {cell.name: cell.source for cell in source.source_cells if cell.locked}
        return guard.prepared(nb, locked), resources


class NoMarkup(NbGraderPreprocessor):
    """Takes what a browser could run out of a graded notebook, which the teacher reads in formgrader
    and students get as feedback: of outputs text and pictures stay, of answers Markdown without HTML.
    """

    def preprocess_cell(self, cell, resources, cell_index):
        """A cell without markup of the student's."""
        meta = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code":
            for output in cell.outputs:
                if "data" in output:
                    kinds = ("text/plain", "image/png")
                    output.data = {kind: output.data[kind] for kind in kinds if kind in output.data}
                    output.metadata = {}
        elif meta.get("solution") or not meta.get("locked"):  # a student can lock an answer
            cell.cell_type = "markdown"  # a raw cell may hold HTML, too
            cell.pop("attachments", None)
            text = re.sub(r"<(?=[A-Za-z/!?])", "< ", cell.source)  # starts no tag any more
            text = re.sub(r"&(?=#?\w+;?)", "& ", text)  # no entity that spells one, or a link
            cell.source = re.sub(r"(?i)script(?=\s*:)", "script ", text)  # no link that runs
        return cell, resources


class Grades(CsvExportPlugin):
    """nbgrader's `grades.csv` with two columns more: how many points still await a person, and
    whether a submission was graded at all."""

    def export(self, gradebook):
        """Write the file."""
        super().export(gradebook)
        path = Path(self.to or "grades.csv")
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        for row in rows:
            unread = self._unread(gradebook, row["student_id"], row["assignment"])
            row["points_awaiting_a_person"] = sum((g.max_score for g in unread), 0.0)
            row["state"] = self._state(row["student_id"], row["assignment"], unread)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0] if rows else [])
            writer.writeheader()
            writer.writerows(rows)

    def _unread(self, gradebook, student, assignment):
        try:
            notebooks = gradebook.find_submission(assignment, student).notebooks
        except MissingEntry:
            return []
        return [g for notebook in notebooks for g in notebook.grades if g.needs_manual_grade]

    def _state(self, student, assignment, unread):
        folders = self.parent.coursedir
        if not Path(folders.format_path("submitted", student, assignment)).exists():
            return "not handed in"
        graded = list(Path(folders.format_path("autograded", student, assignment)).glob("*.ipynb"))
        if not graded or any(g.cell.cell_type == "code" for g in unread):  # a test never waits
            return "NOT GRADED: autograde stopped"
        return "to be read" if unread else "done"


class MathML(IPythonRenderer):
    """Markdown to HTML whose formulas a browser shows without a script and without a network."""

    def inline_math(self, body):
        """`$…$`."""
        return _mathml(body, "inline")

    def block_math(self, body):
        """`$$…$$`."""
        return _mathml(body, "block")


class Feedback(HTMLExporter):
    """nbgrader's page of feedback, which loads nothing from a network."""

    @pass_context
    def markdown2html(self, context, source):
        """One cell of text; the name and the arguments are nbconvert's."""
        return MarkdownWithMath(renderer=MathML(escape=False)).render(source)

    def from_notebook_node(self, nb, resources=None, **more):
        """The page without its scripts: they would load MathJax."""
        page, resources = super().from_notebook_node(nb, resources, **more)
        return re.sub(r"(?s)<script.*?</script>", "", page), resources


def _mathml(formula, display):
    try:
        return re.sub(r'\s*\bhref="[^"]*"', "", convert(formula, display=display))  # no link that runs
    except Exception:  # a student's, perhaps: its source can be read
        return f"<code>{html.escape(formula)}</code>"


c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "contrastive-sentence-embeddings"
c.ExecutePreprocessor.timeout = 60  # seconds a cell
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
# `nbgrader zip_collect` takes files called <student>__<assignment>.ipynb from downloaded/<assignment>/archive/
c.FileNameCollectorPlugin.named_regexp = r".*[/\\](?P<student_id>[^/\\]+?)__(?P<file_id>[^/\\]+)$"
c.Execute.extra_arguments = [
    "--IPKernelApp.ignore_cwd=True",  # no torch.py handed in with a notebook
    "--InteractiveShell.xmode=Plain",  # an endless recursion is rendered in a second, not in minutes
]
c.OverwriteCells.add_missing_cells = True  # a test that a student deletes comes back
c.HTMLExporter.sanitize_html = True  # of outputs; `NoMarkup` cleans answers, too
c.GenerateFeedback.exporter_class = Feedback
c.ExportApp.plugin_class = Grades
c.Autograde.sanitize_preprocessors = [
    ClearOutput,
    DeduplicateIds,
    Mend,
    OverwriteKernelspec,
    OverwriteCells,
    CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    Guard,
    Execute,
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
    NoMarkup,
]
