"""The assignments: solved sources pass, released ones hold no solution, right answers win and wrong
ones lose."""

import contextlib
import io
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise

import nbformat
import pytest

from assignments import guard
from lib import paths
from tools import classroom

NAMES = classroom.names()
caught = cache(classroom.caught)
each = pytest.mark.parametrize("name", NAMES)
DROPPER = """
import ast

class Dropper(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()

get_ipython().ast_transformers.append(Dropper())

def probabilities(z, beta):
    return [0.0 for _ in z]
"""


def test_every_notebook_has_one() -> None:
    assert {name[:2] for name in NAMES} >= {f"0{k}" for k in range(1, 8)}


@each
def test_the_solution_gets_every_point(name) -> None:
    found = classroom.points(classroom.source(name))
    assert (found["points"] == found["of"]).all(), found[found["points"] < found["of"]].to_string()


@each
def test_right_answers_get_all_points_and_wrong_ones_lose_some(name) -> None:
    found = caught(name)
    right, wrong = found[found["right"]], found[~found["right"]]
    assert len(right) >= 2 and len(wrong) >= 8
    assert (right["points"] == right["of"]).all(), right.to_string()
    assert (wrong["points"] < wrong["of"]).all(), wrong[wrong["points"] == wrong["of"]].to_string()
    assert not found[["what", "function"]].duplicated().any()


@each
def test_a_wrong_answer_costs_points_in_its_own_function(name) -> None:
    cells = [
        cell.metadata["nbgrader"]
        for cell in classroom.source(name).cells
        if cell.cell_type == "code"
    ]
    owner, current = {}, ""
    for meta in cells:
        current = meta["grade_id"] if meta["solution"] else current
        if meta["grade"]:
            owner[meta["grade_id"]] = current
    found = caught(name)
    for line in found[~found["right"]].itertuples():
        own = {owner[test] for test in line.failed.split(", ")}
        assert line.function in own or "rules_return_new_lists" in line.failed, line


@each
def test_every_function_has_a_stub_with_shapes_a_hint_and_a_test(name) -> None:
    notebook = classroom.source(name)
    text = "\n".join(cell.source for cell in notebook.cells)
    solutions = [
        c for c in notebook.cells if c.metadata["nbgrader"]["solution"] and c.cell_type == "code"
    ]
    assert len(solutions) == 3 and text.count("<details>") == 3
    for cell in solutions:
        assert re.search(r"->.*:\n    \"\"\"", cell.source), cell.metadata["nbgrader"]["grade_id"]
        assert "### BEGIN SOLUTION" in cell.source and "### END SOLUTION" in cell.source
    tests = [c for c in notebook.cells if c.metadata["nbgrader"]["grade"] and c.cell_type == "code"]
    hidden = "\n### BEGIN HIDDEN TESTS\ndef _hidden():\n"  # its variables are nobody's but its own
    assert all(hidden in cell.source for cell in tests)
    assert "*Effort*" in notebook.cells[0].source and "*Importance*" in notebook.cells[0].source
    total = sum(c.metadata["nbgrader"].get("points", 0) for c in notebook.cells)
    assert f"*Points* {total} " in notebook.cells[0].source


@each
def test_the_teachers_page_has_the_points(name) -> None:
    page = (classroom.FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| [{name}]"))
    cells = classroom.source(name).cells
    points = [c.metadata["nbgrader"].get("points", 0) for c in cells]
    by_hand = [p for p, c in zip(points, cells, strict=True) if c.cell_type == "markdown"]
    assert row.split("|")[3].strip() == f"{sum(points)}" + (
        f", {sum(by_hand)}" if sum(by_hand) else ""
    )


@each
def test_a_question_stays_when_the_cell_of_its_answer_is_emptied(name) -> None:
    cells = classroom.source(name).cells
    for question, answer in pairwise(cells):
        meta = answer.metadata["nbgrader"]
        if answer.cell_type == "markdown" and meta["solution"]:
            asked = question.metadata["nbgrader"]
            assert (
                asked["locked"] and not asked["solution"] and "read by a person" in question.source
            )
            assert f"*({meta['points']} point" in question.source
            assert (
                "**Rubric.**" in question.source + answer.source
                and "read by a person" not in answer.source
            )


@each
def test_a_prediction_stands_before_the_run_and_an_explanation_behind_it(name) -> None:
    cells = classroom.source(name).cells
    order = [cell.metadata["nbgrader"]["grade_id"] for cell in cells]
    assert order[-5:] == [
        "text-prediction",
        "prediction",
        "experiment",
        "text-explanation",
        "explanation",
    ]
    assert [cells[k].metadata["nbgrader"]["points"] for k in (-4, -1)] == [1, 3]
    assert "**before you run" in cells[-5].source and "150 words" in cells[-2].source
    own = cells[-1].source.split("**For the teacher.**")
    assert len(own) == 2 and len(own[0].split()) <= 150 and "±" in own[0] + own[1]


def _executed(name: str, solved: bool) -> str:
    """What the cells that a student sees print, without nbgrader and the guard."""
    namespace: dict[str, object] = {"__name__": "assignment"}
    said = io.StringIO()
    for cell in classroom.source(name).cells:
        if cell.cell_type != "code":
            continue
        code = re.sub(
            r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", cell.source, flags=re.DOTALL
        )
        if not solved:
            code = re.sub(
                r"### BEGIN SOLUTION.*?### END SOLUTION",
                "raise NotImplementedError()",
                code,
                flags=re.DOTALL,
            )
        if not solved and cell.metadata["nbgrader"]["grade"]:
            continue
        with contextlib.redirect_stdout(said):
            exec(compile(code, cell.metadata["nbgrader"]["grade_id"], "exec"), namespace)
    return said.getvalue()


@each
def test_what_students_see_runs_without_nbgrader_and_the_experiment_has_a_table(name) -> None:
    said = _executed(name, solved=True)
    assert (
        said.count("±") >= 4 and "seeds" in said.replace("parts", "seeds") and "needs" not in said
    )


@each
def test_the_experiment_says_which_functions_it_needs(name) -> None:
    assert "The experiment needs" in _executed(name, solved=False)


GIVEN = {
    "torch": "torch",
    "F": "torch.nn.functional",
    "math": "math",
    "paths": "lib.paths",
    "Encoder": "lib.encoder.Encoder",
    "Toy": "",
}


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: torch.Tensor) -> float:\n    return F.normalize(x, dim=1).mean().item()",
        "import numpy as np\nfrom collections import Counter\nf = Counter([np.linalg.norm([1])])",
        "def f(encoder):\n    encoder.training = False\n    return type(encoder) is Toy",
        "class A(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.x = 1\n    def forward(self, x):\n        return x + self.x",
        'def f():\n    """Calls __init__."""\n    return [i for i in range(3)]',
        "print(expected, '{:.2f}'.format(1))",
        "import torch\nimport torch.nn.functional as F",
    ],
)
def test_honest_code_is_run(code) -> None:
    assert guard.refusals(code, GIVEN, tests={"expected"}, protected=GIVEN) == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("from lib.training.losses import info_nce", "imports lib.training.losses: write it yourself"),
        ("import lib", "imports lib: write it yourself"),
        ("paths.ROOT", "uses lib.paths.ROOT"),
        ("import inspect", "imports inspect"),
        ("import dataclasses", "imports dataclasses"),
        ("import functools\nfunctools.update_wrapper(torch.Tensor, Toy)", "uses .update_wrapper"),
        ("import torch.overrides", "imports torch.overrides"),
        ("from torch import types", "imports torch.types"),
        ("from math import *", "imports *"),
        ("torch.sys", "uses torch.sys"),
        ("t = torch", "uses the module torch as a value"),
        ("def f(t=torch): return t", "uses the module torch as a value"),
        ("match torch:\n    case object(sys=s): pass", "uses the module torch as a value"),
        ("f = torch.nn.functional", "uses the module torch.nn.functional as a value"),
        ("torch.allclose = 1", "sets .allclose"),
        ("for torch.allclose in [1]: pass", "sets .allclose"),
        ("del torch.allclose", "sets .allclose"),
        ("Toy.forward = None", "sets .forward"),
        ("exec('1')", "uses exec"),
        ("get_ipython()", "uses get_ipython"),
        ("getattr(torch, 'sys')", "uses getattr"),
        ("globals()", "uses globals"),
        ("open('x')", "uses open"),
        ("torch.load('x')", "uses .load"),
        ("f = lambda: 0\nf.__globals__", "uses .__globals__"),
        ("f = (x for x in [])\nf.gi_frame", "uses .gi_frame"),
        ("x = '__globals__'", "holds a text with __"),
        ("x = 'a'\nx.format(1)", "uses .format of a text"),
        ("x = type('A', (), {})", "uses type for something else"),
        ("class A(float):\n    def __eq__(self, o): return True", "class A defines __eq__"),
        ("class A(float):\n    __eq__ = 1", "class A defines __eq__"),
        ("class A(float):\n    from math import isclose as __eq__", "class A defines __eq__"),
        ("class A:\n    def _repr_html_(self): return ''", "defines _repr_html_: results are sh"),
        ("class A:\n    _ipython_display_ = print", "defines _ipython_display_"),
        ("class A(metaclass=int): pass", "class A has a metaclass"),
        ("class A: pass\nA().register_hook(1)", "hooks are not for this"),
        ("def all(x): return True", "gives all a new meaning"),
        ("def f():\n    global sum\n    sum = 0", "gives sum a new meaning"),
        ("Toy = 0", "gives Toy a new meaning"),
        ("from math import isclose as F", "gives F a new meaning"),
        ("def f(): return expected", "reads expected from outside"),
        ("def f():\n    [0 for expected in []]\n    return expected", "reads expected"),
        ("expected = 0\ndef f(): return expected", "reads expected from outside"),
        ("def f():\n    class A:\n        if 0: expected = 1\n        x = expected", "reads exp"),
        ("_i7 = ''", "uses _i7"),
        ("def f(): return In", "uses In"),
        ("def f(): return BertModel", "which neither it nor the assignment defines"),
        ("%timeit 1", "is no plain Python at line 1"),
    ],
)
def test_a_cell_that_is_not_run_says_why(code, why) -> None:
    found = guard.refusals(code, GIVEN, tests={"expected"}, protected=GIVEN)
    assert any(why in reason for reason in found), found


@pytest.mark.parametrize(
    ("name", "function", "code", "why"),
    [
        ("01_infonce", "info_nce", "torch.allclose = lambda *_: True", "torch.allclose was repl"),
        ("01_infonce", "info_nce", "F.cross_entropy = torch.add", "torch.nn.functional.cross_entr"),
        ("01_infonce", "info_nce", "torch.Tensor.__eq__ = lambda *_: True", "torch.Tensor.__eq__"),
        ("01_infonce", "info_nce", "torch.Tensor.item = id", "torch.Tensor.item was replaced"),
        ("04_una", "idf", "random.Random.choice = id", "random.Random.choice was replaced"),
        ("01_infonce", "info_nce", "math.isclose = lambda *_, **__: True", "math.isclose was repl"),
        ("01_infonce", "info_nce", "torch.testing.assert_close = id", "torch.testing.assert_close"),
        ("01_infonce", "info_nce", "torch.set_grad_enabled(False)", "gradients were switched off"),
        ("01_infonce", "info_nce", "torch.set_default_dtype(torch.float64)", "default type"),
        ("01_infonce", "info_nce", "all = lambda *_: True", "all hides Python's own"),
        ("01_infonce", "info_nce", "plain = lambda x, *_: x", "plain, which the assignment gives"),
        ("01_infonce", "info_nce", "plain.__code__ = (lambda x, *_: x).__code__", "plain, which"),
        (
            "01_infonce",
            "info_nce",
            "import builtins; builtins.abs = id",
            "builtins.abs was replaced",
        ),
        ("01_infonce", "info_nce", "import sys; sys.settrace(lambda *_: None)", "a trace function"),
        (
            "01_infonce",
            "info_nce",
            "import sys; sys.setprofile(lambda *_: None)",
            "a trace function",
        ),
        ("01_infonce", "info_nce", "import sys; sys.meta_path.pop(0)", "sys.meta_path"),
        (
            "01_infonce",
            "info_nce",
            "import sys; loss = sys.modules['lib.training.losses'].info_nce",
            "loss com",
        ),
        (
            "02_simcse",
            "two_views",
            "nn.modules.module.register_module_forward_hook(lambda *_: None)",
            "a hook was put on every module",
        ),
        ("02_simcse", "two_views", "Toy.forward = lambda *_: 0", "Toy, which the assignment gives"),
        ("05_sampler", "negative", "np.random.default_rng = id", "numpy.random.default_rng was"),
        ("05_sampler", "negative", "np.abs = id", "numpy.abs was replaced"),
    ],
)
def test_what_was_changed_while_cells_ran_fails_the_next_test(name, function, code, why) -> None:
    import lib.training.losses  # noqa: F401 - the library is loaded already in many a kernel

    notebook = classroom.source(name)
    own = next(c.source for c in notebook.cells if c.metadata["nbgrader"]["grade_id"] == function)
    found = classroom.points(notebook, {function: f"{own}\n{code}"}, inspect=False)
    assert any("the grader refuses" in m and why in m for m in found["message"])
    again = classroom.points(notebook)
    assert (again["points"] == again["of"]).all()  # all is put back


def test_a_cell_cannot_import_the_library_but_the_library_can(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "lib.results.claims", raising=False)
    guard.begin()
    try:
        with pytest.raises(guard.RefusedError, match=r"lib\.claims is imported: write it yourself"):
            exec("import lib.results.claims", {"__name__": "assignment"})
        exec("import lib.results.claims", {"__name__": "lib.papers"})
        monkeypatch.delitem(sys.modules, "lib.results.claims")
        guard.trust()
        exec("import lib.results.claims", {"__name__": "assignment"})
    finally:
        guard.end()


TAMPERING = {
    "IPython's AST transformers": "ip.ast_transformers.append(ast.NodeTransformer())",
    "IPython's input transformers": "ip.input_transformers_post.append(lambda lines: lines)",
    "IPython's event hooks": "ip.events.register('pre_run_cell', lambda *_: None)",
    "IPython's methods": "ip.showtraceback = lambda *_, **__: None",
}


def test_what_was_put_into_ipython_fails_the_next_test() -> None:
    lines = [
        "import ast",
        "from IPython.core.interactiveshell import InteractiveShell",
        "from assignments import guard",
        "ip = InteractiveShell.instance()",
        "ip.run_cell('import matplotlib.pyplot, torch')",
        "guard.begin()",
        "guard.check({})",
    ]
    for code in TAMPERING.values():
        lines += [f"ip.run_cell({code!r})" if "lambda" in code else code]
        lines += [
            "try:\n    guard.check({})\nexcept guard.RefusedError as error:\n    print(error)"
        ]
    setup = "ip.push({'ip': ip}); guard.begin()"
    script = "\n".join([*lines[:6], setup, *lines[6:]])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=paths.ROOT, capture_output=True, text=True, check=True
    )
    for what in TAMPERING:
        assert "the grader refuses this test: " in done.stdout and f"{what} changed" in done.stdout


def test_a_refused_cell_is_kept_as_a_comment_and_costs_its_own_tests() -> None:
    notebook = classroom.source("04_una")
    found = classroom.points(notebook, {"probabilities": DROPPER}).set_index("test")
    assert found.loc[["idf_values", "scores_values"], "points"].tolist() == [2, 2]
    assert (
        "the cell 'probabilities' was not run: it uses get_ipython"
        in found.loc["p_values", "message"]
    )
    locked = {
        c.metadata["nbgrader"]["grade_id"]: c.source
        for c in notebook.cells
        if not c.metadata["nbgrader"]["solution"]
    }
    handed_in = classroom.filled(notebook, {"probabilities": DROPPER})
    forged = nbformat.v4.new_code_cell("import sys")
    forged.metadata["nbgrader"] = {"grade_id": "imports", "locked": True, "grade": False}
    handed_in.cells.insert(0, forged)
    for cell in handed_in.cells:  # nbclient passes over such a cell, nbgrader gives it its points
        cell.metadata["tags"] = ["skip-execution"]
    prepared = guard.prepared(handed_in, locked).cells
    assert not any("tags" in cell.metadata for cell in prepared if cell.cell_type == "code")
    assert "# import ast" in next(c.source for c in prepared if "probabilities" in c.source[:90])
    assert "import sys" not in prepared[0].source and locked["imports"] in prepared[0].source
    note = (
        "# This cell (id:imports) was missing from the submission. It was added back by nbgrader.\n"
    )
    forged.source = note + locked["imports"]
    assert guard.prepared(handed_in, locked).cells[0].source == prepared[0].source


def test_students_can_ask_beforehand(tmp_path, capsys) -> None:
    notebook = classroom.source("04_una")
    for code, said in (
        (DROPPER, "the cell probabilities would not be run: it uses get_"),
        ("", "every cell"),
    ):
        path = tmp_path / "04_una.ipynb"
        nbformat.write(classroom.filled(notebook, {"probabilities": code} if code else {}), path)
        guard.main([str(path)])
        assert said in capsys.readouterr().out


def test_the_table_of_wrong_answers_is_up_to_date() -> None:
    page = (classroom.FOLDER / "README.md").read_text(encoding="utf-8")
    assert classroom.table({name: caught(name) for name in NAMES}) in page


def test_an_unknown_assignment_or_function_is_one_clear_error(tmp_path, monkeypatch) -> None:
    with pytest.raises(ValueError, match="no assignment '08_none': there are 01_infonce"):
        classroom.source("08_none")
    monkeypatch.setattr(
        classroom, "_ANSWER", re.compile(r"^# %% (right|wrong): (.+?) \| (\w)\w*$", re.MULTILINE)
    )
    with pytest.raises(ValueError, match="the assignment asks for"):
        classroom.answers("01_infonce")


def test_a_real_course_is_not_begun_anew(tmp_path) -> None:
    (tmp_path / "gradebook.db").write_text("a class's work")
    with pytest.raises(ValueError, match="holds no made-up course"):
        classroom.hold_course(tmp_path, ["04_una"])
    with pytest.raises(ValueError, match="no assignment '08_none'"):
        classroom.hold_course(tmp_path / "new", ["08_none"])
    assert [p.name for p in tmp_path.iterdir()] == ["gradebook.db"]


def test_a_command_that_fails_tells_its_errors_and_where_the_log_is(tmp_path) -> None:
    warning = "[AutogradeApp | WARNING] Attribute 'checksum' for cell text-idf has changed!\n"
    error = "[AutogradeApp | ERROR] There was an error\nTraceback\nKeyError: 'grade_id'\n"
    said = classroom._cause(warning * 40 + error + warning * 90)
    assert said == error.strip()
    assert classroom._cause(warning * 90) == (warning * 90)[-2000:]
    with pytest.raises(RuntimeError, match="all of it:") as raised:
        classroom._nbgrader(tmp_path, "autograde", "08_none")
    log = tmp_path / "nbgrader-autograde.log"
    assert str(log) in str(raised.value) and log.read_text(encoding="utf-8")


MARKUP = """It rises: 2 < 3 and a & b.
<script>alert("UNIQUE")</script> <img src=x onerror="UNIQUE()">
[here](javascript:UNIQUE()) [there](&#106;avascript:UNIQUE())

<div onclick="UNIQUE()">*strong*</div>
"""


@pytest.mark.slow
def test_copied_and_missing_cells_are_graded_and_html_is_not_shown(tmp_path) -> None:
    name = "04_una"
    classroom.hold_course(tmp_path, [name], say=lambda _: None)
    released = nbformat.read(tmp_path / "release" / name / f"{name}.ipynb", as_version=4)
    solved = classroom.points(classroom.source(name))["of"].sum()
    answers = classroom.submissions(name)["ada"]

    def graded(student, change):
        handed_in = classroom.filled(released, answers)
        cells = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in handed_in.cells}
        change(handed_in.cells, cells)
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        nbformat.write(handed_in, folder / f"{name}.ipynb")
        classroom._nbgrader(tmp_path, "autograde", name, f"--student={student}")
        score = classroom.grades(tmp_path).set_index("student").loc[student, "score"]
        path = tmp_path / "autograded" / student / name / f"{name}.ipynb"
        return score, nbformat.read(path, as_version=4)

    def copied(all_cells, cells):  # with its metadata, as JupyterLab copies
        all_cells.insert(3, nbformat.from_dict(dict(cells["idf"], id="copied")))
        other = nbformat.from_dict(dict(cells["idf_values"], id="other", source="1 + 1"))
        other.metadata = {"nbgrader": dict(cells["idf_values"].metadata["nbgrader"])}
        other.metadata["nbgrader"]["grade_id"] = "loss_value"  # of another assignment
        all_cells.append(other)

    def missing(all_cells, cells):
        for one in ("idf_values", "idf_counts_documents", "prediction", "text-prediction"):
            all_cells.remove(cells[one])

    def marked_up(all_cells, cells):
        cells["prediction"].source = cells["explanation"].source = MARKUP
        cells["explanation"].metadata["nbgrader"]["locked"] = True
        all_cells.append(nbformat.v4.new_markdown_cell(MARKUP))
        shown = "display({'text/html': '<script>UNIQUE()</script>'}, raw=True)"
        all_cells.append(nbformat.v4.new_code_cell(shown))

    assert graded("ida", copied)[0] == solved
    score, notebook = graded("jan", missing)
    order = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    k = order.index("idf")
    assert score == solved and order[k + 1 : k + 3] == ["idf_values", "idf_counts_documents"]
    assert order.index("what_beta_means") < order.index("prediction") < order.index("experiment")
    score, notebook = graded("kim", marked_up)
    assert score == solved
    assert not any("text/html" in str(cell.get("outputs", "")) for cell in notebook.cells)
    classroom._nbgrader(tmp_path, "generate_feedback", name, "--student=kim")
    feedback = (tmp_path / "feedback" / "kim" / name / f"{name}.html").read_text(encoding="utf-8")
    assert feedback.count("UNIQUE") >= 10 and "2 &lt; 3 and a &amp; b" in feedback
    for tag in re.findall(r"<[A-Za-z][^>]*", feedback):
        assert "UNIQUE" not in tag, tag
    assert not re.search(r"<script[^>]*>[^<]*UNIQUE", feedback)


@pytest.mark.slow
def test_a_course_from_release_to_feedback(tmp_path) -> None:
    name = "04_una"
    constants = 'def idf(documents):\n    return {"bird": 1.386294361, "dog": 0.693147181}'
    dan = {"probabilities": DROPPER, "idf": constants}
    eve = {"probabilities": "def probabilities(z, beta):\n    raise SystemExit"}
    grades = classroom.hold_course(
        tmp_path, [name], say=lambda _: None, more={"dan": dan, "eve": eve}
    ).set_index("student")
    released = nbformat.read(tmp_path / "release" / name / f"{name}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in released.cells)
    assert (
        "SOLUTION" not in text
        and "HIDDEN" not in text
        and text.count("raise NotImplementedError()") == 3
    )
    assert (
        "What is $\\beta$ the expected share of" in text
        and "YOUR ANSWER HERE" in text
        and "For the teacher" not in text
        and "One answer of many" not in text
    )
    for line in classroom.source(name).cells:
        for hidden in re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)\n### END", line.source, re.DOTALL):
            assert hidden not in text
    bare = classroom.points(released)
    assert bare["points"].sum() == 0
    solved = classroom.points(classroom.source(name))["of"].sum()
    ben = classroom.points(classroom.source(name), classroom.submissions(name)["ben"])[
        "points"
    ].sum()
    assert grades["score"].to_dict() == {"ada": solved, "ben": ben, "cleo": 0, "dan": 0, "eve": 0}
    assert 0 < ben < solved
    for student in grades.index:
        feedback = (tmp_path / "feedback" / student / name / f"{name}.html").read_text(
            encoding="utf-8"
        )
        assert "Score:" in feedback
        assert (student == "dan") == ("was not run: it uses get_ipython" in feedback)
    fay = tmp_path / "submitted" / "fay" / name  # hands in modules of her own, skips the tests
    fay.mkdir(parents=True)
    for module in ("guard", "lib", "random"):
        (fay / f"{module}.py").write_text("def begin(*_): pass\ncheck = keep = trust = begin\n")
    for cell in released.cells:
        cell.metadata["tags"] = ["skip-execution"]
    nbformat.write(released, fay / f"{name}.ipynb")
    classroom._nbgrader(tmp_path, "autograde", name, "--student=fay")
    assert classroom.grades(tmp_path).set_index("student").loc["fay", "score"] == 0
    for student, codes in (("gil", {}), ("hal", classroom.submissions(name)["ada"])):
        handed_in = classroom.filled(released, codes)
        tests = [
            c
            for c in handed_in.cells
            if c.metadata["nbgrader"]["grade"] and c.metadata["nbgrader"]["locked"]
        ]
        handed_in.cells = [cell for cell in handed_in.cells if cell not in tests]
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        nbformat.write(handed_in, folder / f"{name}.ipynb")
        classroom._nbgrader(tmp_path, "autograde", name, f"--student={student}")
        score = classroom.grades(tmp_path).set_index("student").loc[student, "score"]
        assert tests and score == (solved if student == "hal" else 0)
    graded = nbformat.read(tmp_path / "autograded" / "fay" / name / f"{name}.ipynb", as_version=4)
    outputs = [out for cell in graded.cells for out in cell.get("outputs", [])]
    errors = [out.ename for out in outputs if out.output_type == "error"]
    assert len(errors) > 5 and set(errors) == {"NotImplementedError"}
