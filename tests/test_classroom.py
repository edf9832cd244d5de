"""The assignments: solved sources pass, released ones hold no solution, right answers win and wrong
ones lose."""

import contextlib
import io
import re
from functools import cache
from itertools import pairwise

import nbformat
import pytest

from assignments import guard
from tools import classroom

NAMES = classroom.names()
caught = cache(classroom.caught)
each = pytest.mark.parametrize("name", NAMES)
meta = classroom.meta


@each
def test_right_answers_get_all_points_and_wrong_ones_lose_some_in_their_function(name) -> None:
    solved = classroom.points(classroom.source(name))
    assert (solved["points"] == solved["of"]).all(), solved.to_string()
    found = caught(name)
    right, wrong = found[found["right"]], found[~found["right"]]
    assert len(right) >= 2 and len(wrong) >= 8
    assert (right["points"] == right["of"]).all(), right.to_string()
    assert (wrong["points"] < wrong["of"]).all(), wrong[wrong["points"] == wrong["of"]].to_string()
    owner, current = {}, ""
    for cell in classroom.source(name).cells:
        if cell.cell_type == "code":
            current = meta(cell)["grade_id"] if meta(cell)["solution"] else current
            owner[meta(cell)["grade_id"]] = current
    for line in wrong.itertuples():
        own = {owner[test] for test in line.failed.split(", ")}
        assert line.function in own or "rules_return_new_lists" in line.failed, line


@each
def test_the_form_of_an_assignment(name) -> None:
    cells = classroom.source(name).cells
    code = [c for c in cells if c.cell_type == "code"]
    solutions = [c for c in code if meta(c)["solution"]]
    assert len(solutions) == 3
    for cell in solutions:
        assert "### BEGIN SOLUTION" in cell.source and "### END SOLUTION" in cell.source
    hidden = "\n### BEGIN HIDDEN TESTS\ndef _hidden():\n"  # its variables are nobody's but its own
    assert all(hidden in cell.source for cell in code if meta(cell)["grade"])
    for question, answer in pairwise(cells):  # an answer's cell is emptied, its question stays
        if answer.cell_type == "markdown" and meta(answer)["solution"]:
            assert meta(question)["locked"] and not meta(question)["solution"]


@each
def test_the_experiment_prints_a_table_or_says_what_it_needs(name) -> None:
    """What the cells that a student sees print, without nbgrader and the guard."""
    for solved in (True, False):
        namespace: dict[str, object] = {"__name__": "assignment"}
        said = io.StringIO()
        for cell in classroom.source(name).cells:
            if cell.cell_type != "code" or (meta(cell)["grade"] and not solved):
                continue
            code = re.sub(r"(?s)### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", cell.source)
            if not solved:
                code = re.sub(
                    r"(?s)### BEGIN SOLUTION.*?### END SOLUTION", "raise NotImplementedError", code
                )
            with contextlib.redirect_stdout(said):
                exec(compile(code, meta(cell)["grade_id"], "exec"), namespace)
        assert ("The experiment needs" in said.getvalue()) != solved
        assert (said.getvalue().count("±") >= 4) >= solved


GIVEN = {"torch": "torch", "F": "torch.nn.functional", "math": "math", "Toy": ""}


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: torch.Tensor) -> float:\n    return F.normalize(x, dim=1).mean().item()",
        "import numpy as np\nfrom collections import Counter\nf = Counter([np.linalg.norm([1])])",
        "def f(encoder):\n    encoder.training = False\n    return type(encoder) is Toy",
        "class A(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self._x = 1\n    def forward(self, x):\n        return x + self._x",
        'def f():\n    """Calls __init__."""\n    return [i for i in range(3)]',
        "print(expected, '{:.2f}'.format(1))",
        "import torch\nimport torch.nn.functional as F",
        "import os, sys\nfrom pathlib import Path",  # nobody uses them
    ],
)
def test_honest_code_is_run(code) -> None:
    assert guard.refusals(code, GIVEN) == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("from lib.training.losses import info_nce", "imports lib.training.losses: write it"),
        ("def f():\n    import os\n    os.abort()", "imports os: not needed here"),
        ("from sklearn.metrics import f1_score as f\nf()", "imports sklearn.metrics"),
        ("from math import *", "imports math.*: not needed here"),
        ("from torch import sys\nsys.exit()", "imports torch.sys: not needed here"),
        ("torch.sys", "uses .sys"),
        ("t = torch\ndel t.allclose", "sets .allclose"),
        ("Toy.forward = None", "sets .forward"),
        ("exec('1')", "uses exec"),
        ("def f(): return get_ipython()", "uses get_ipython"),
        ("getattr(torch, 'sys')", "uses getattr"),
        ("import functools\nfunctools.wraps(Toy, assigned=())(torch)", "uses .wraps"),
        ("f = lambda: 0\nf.__globals__", "uses .__globals__"),
        ("x = '{0.__globals__}'", "holds a text with .__"),
        ("class A(float):\n    def __eq__(self, o): return True", "defines __eq__"),
        ("class A(float):\n    __eq__ = 1", "defines __eq__"),
        ("class A(float):\n    from math import isclose as __eq__", "defines __eq__"),
        ("def f(m): m.register_hook(1)", "hooks are not for this"),
        ("def all(x): return True", "gives all a new meaning"),
        ("def f():\n    global sum\n    sum = 0", "gives sum a new meaning"),
        ("Toy = 0", "gives Toy a new meaning"),
        ("from math import isclose as F", "gives F a new meaning"),
        ("def f(): return expected", "uses expected, which neither it nor the assignment defines"),
        ("_i7 = ''", "uses _i7"),
        ("def f(): return In", "uses In"),
        ("%timeit 1", "is no plain Python"),
    ],
)
def test_a_cell_that_is_not_run_says_why(code, why) -> None:
    cell = nbformat.v4.new_code_cell(code)
    setup = nbformat.v4.new_code_cell(
        "import math\nimport torch\nimport torch.nn.functional as F\nclass Toy: pass"
    )
    setup.metadata["nbgrader"] = {"grade_id": "setup", "grade": False}
    notebook = nbformat.v4.new_notebook(cells=[setup, cell])
    found = guard.refused(notebook, {"setup": setup.source})
    assert any(why in reason for reason in found.get(1, [])), found


DROPPER = next(a.code for a in classroom.answers("04_una") if a.what.startswith("asserts taken"))


def test_a_refused_cell_is_kept_as_a_comment_and_costs_its_own_tests() -> None:
    notebook = classroom.source("04_una")
    found = classroom.points(notebook, {"probabilities": DROPPER}).set_index("test")
    assert found.loc[["idf_values", "bm25_values"], "points"].tolist() == [1, 2]
    assert "the cell 'probabilities' was not run: it imports" in found.loc["p_values", "message"]
    handed_in = classroom.filled(notebook, {"probabilities": DROPPER})
    forged = nbformat.v4.new_code_cell("import sys")
    forged.metadata["nbgrader"] = {"grade_id": "imports", "locked": True, "grade": False}
    handed_in.cells.insert(0, forged)
    for cell in handed_in.cells:  # nbclient passes over such a cell, nbgrader gives it its points
        cell.metadata["tags"] = ["skip-execution"]
    prepared = guard.prepared(handed_in, classroom.locked(notebook)).cells
    assert not any("tags" in cell.metadata for cell in prepared if cell.cell_type == "code")
    assert "# import ast" in next(c.source for c in prepared if "probabilities" in c.source[:90])
    assert prepared[0].source == classroom.locked(notebook)["imports"]


def test_students_can_ask_beforehand(tmp_path, capsys) -> None:
    path = tmp_path / "04_una.ipynb"
    for code, status, said in (
        ({"probabilities": DROPPER}, 1, "the cell probabilities would not be run: it imports ast"),
        ({}, 0, "every cell would be run"),
    ):
        nbformat.write(classroom.filled(classroom.source("04_una"), code), path)
        assert guard.main([str(path)]) == status
        assert said in capsys.readouterr().out


def test_the_table_of_wrong_answers_is_up_to_date() -> None:
    page = (classroom.FOLDER / "README.md").read_text(encoding="utf-8")
    assert classroom.table({name: caught(name) for name in NAMES}) in page


def test_mistakes_of_a_teacher_are_one_clear_error(tmp_path, monkeypatch) -> None:
    with pytest.raises(ValueError, match="no assignment '08_none': there are 01_infonce"):
        classroom.hold_course(tmp_path / "new", ["08_none"])
    (tmp_path / "gradebook.db").write_text("a class's work")
    with pytest.raises(ValueError, match="holds no made-up course"):
        classroom.hold_course(tmp_path, ["04_una"])
    assert [p.name for p in tmp_path.iterdir()] == ["gradebook.db"]
    with pytest.raises(RuntimeError, match=r"all of it: .*nbgrader-autograde\.log"):
        classroom.nbgrader(tmp_path, "autograde", "08_none")
    monkeypatch.setattr(classroom, "_ANSWER", re.compile(r"(?m)^# %% (\w+): (.+?) \| (\w)\w*$"))
    with pytest.raises(ValueError, match="it asks for"):
        classroom.answers("01_infonce")


MARKUP = """It rises: 2 < 3 and a & b, $x_1 < \\tau$.
<script>alert("UNIQUE")</script> <img src=x onerror="UNIQUE()">
[here](javascript:UNIQUE()) [there](&#106;avascript:UNIQUE()) $\\href{javascript:UNIQUE()}{x}$

<div onclick="UNIQUE()">*strong*</div>
"""


def _copied(cells, named) -> None:  # with its metadata, as JupyterLab copies
    cells.insert(3, nbformat.from_dict(dict(named["idf"], id="copied")))
    other = nbformat.v4.new_code_cell("1 + 1")  # of another assignment
    other.metadata["nbgrader"] = dict(meta(named["idf_values"]), grade_id="loss_value")
    cells.append(other)


def _missing(cells, named) -> None:
    for name in ("idf_values", "idf_of_common_terms", "p_values", "prediction", "text-prediction"):
        cells.remove(named[name])


def _marked_up(cells, named) -> None:
    named["prediction"].source = named["explanation"].source = MARKUP
    meta(named["explanation"])["locked"] = True
    cells.append(nbformat.v4.new_markdown_cell(MARKUP))
    shown = "display({'text/html': '<script>UNIQUE()</script>'}, raw=True)"
    cells.append(nbformat.v4.new_code_cell(shown))


def _skipped(cells, named) -> None:
    for cell in cells:
        cell.metadata["tags"] = ["skip-execution"]


@pytest.mark.slow
def test_a_course_from_release_to_feedback(tmp_path) -> None:
    name = "04_una"
    dan = {"probabilities": DROPPER}
    eve = {"probabilities": "def probabilities(document, z, beta):\n    raise SystemExit"}
    classroom.hold_course(tmp_path, [name], more={"dan": dan, "eve": eve})
    released = nbformat.read(tmp_path / "release" / name / f"{name}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in released.cells)
    assert text.count("raise NotImplementedError()") == 3 and "YOUR ANSWER HERE" in text
    for secret in ("SOLUTION", "HIDDEN", "For the teacher", "One answer of many"):
        assert secret not in text

    answers = classroom.submissions(name)
    changes = {"ida": _copied, "jan": _missing, "kim": _marked_up, "fay": _skipped}
    for student, change in changes.items():
        handed_in = classroom.filled(released, {} if student == "fay" else answers["ada"])
        change(handed_in.cells, {meta(cell)["grade_id"]: cell for cell in handed_in.cells})
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        nbformat.write(handed_in, folder / f"{name}.ipynb")
        for module in ("guard", "lib", "random"):  # a student's own modules are not found
            (folder / f"{module}.py").write_text("raise ValueError")
        classroom.nbgrader(tmp_path, "autograde", name, f"--student={student}")
    classroom.nbgrader(tmp_path, "generate_feedback", name, "--student=kim")
    (tmp_path / "autograded" / "eve" / name / f"{name}.ipynb").unlink()  # as if it had stopped

    grades = classroom.grades(tmp_path).set_index("student")
    solved = classroom.points(classroom.source(name))["of"].sum()
    ben = classroom.points(classroom.source(name), answers["ben"])["points"].sum()
    assert 0 < ben < solved
    expected = {"ada": solved, "ben": ben, "cleo": 0, "dan": 0, "eve": 0}
    expected |= {"ida": solved, "jan": solved, "kim": solved, "fay": 0}
    assert grades["score"].to_dict() == expected
    assert grades.loc[["ada", "ben"], "points_awaiting_a_person"].tolist() == [5, 0]
    states = grades.loc[["ada", "ben", "eve"], "state"].tolist()
    assert states == ["to be read", "done", "NOT GRADED: autograde stopped"]

    order = [meta(cell)["grade_id"] for cell in _graded(tmp_path, "jan", name).cells]
    k = order.index("idf")
    assert order[k + 1 : k + 3] == ["idf_values", "idf_of_common_terms"]
    assert order.index("what_beta_means") < order.index("prediction") < order.index("experiment")
    outputs = [cell.get("outputs", "") for cell in _graded(tmp_path, "kim", name).cells]
    assert not any("text/html" in str(out) for out in outputs)
    pages = {s: tmp_path / "feedback" / s / name / f"{name}.html" for s in ("ada", "dan", "kim")}
    feedback = {s: page.read_text(encoding="utf-8") for s, page in pages.items()}
    for page in feedback.values():
        assert "Score:" in page and "<math" in page and "<script" not in page
    assert "was not run: it imports ast" in feedback["dan"] and "was not run" not in feedback["ada"]
    assert feedback["kim"].count("UNIQUE") >= 10 and "2 &lt; 3 and a &amp; b" in feedback["kim"]
    for tag in re.findall(r"<[A-Za-z][^>]*", feedback["kim"]):
        assert "UNIQUE" not in tag, tag


def _graded(course, student, name):
    path = course / "autograded" / student / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)
