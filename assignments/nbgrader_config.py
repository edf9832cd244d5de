"""nbgrader's settings for this course: run its commands in this folder, or copy the file, and
`guard.py` with it, into your own course."""

import os
import sys
from pathlib import Path

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader.api import Gradebook
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    Execute,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    SaveAutoGrades,
)

FOLDER = str(Path(__file__).resolve().parent)
sys.path.insert(0, FOLDER)
os.environ["PYTHONPATH"] = os.pathsep.join(  # kernels find guard.py too
    [FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])]
)

import guard  # noqa: E402


class Guard(NbGraderPreprocessor):
    """Reads students' cells before they run and puts the guard's calls around the tests."""

    def preprocess(self, nb, resources):
        """A submission that is safe to grade; see `guard.prepared`."""
        nbgrader = resources["nbgrader"]
        with Gradebook(nbgrader["db_url"]) as gradebook:
            source = gradebook.find_notebook(nbgrader["notebook"], nbgrader["assignment"])
            locked = {cell.name: cell.source for cell in source.source_cells if cell.locked}
        prepared = guard.prepared(nb, locked)
        prepared.cells.insert(0, guard.first_cell())
        return prepared, resources


c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "contrastive-sentence-embeddings"
c.ExecutePreprocessor.timeout = 180  # seconds a cell
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
# `nbgrader zip_collect` takes files called <student>__<assignment>.ipynb from downloaded/<assignment>/archive/
c.FileNameCollectorPlugin.named_regexp = r".*[/\\](?P<student_id>[^/\\]+?)__(?P<file_id>[^/\\]+)$"
c.Execute.extra_arguments = ["--IPKernelApp.ignore_cwd=True"]  # no torch.py handed in with a notebook
c.OverwriteCells.add_missing_cells = True  # a test that a student deletes comes back
c.Autograde.autograde_preprocessors = [
    Guard,
    Execute,
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
]
