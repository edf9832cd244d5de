"""The assignments: solved sources pass, released ones hold no solution, right answers win and wrong
ones lose."""

import re
from functools import cache
from itertools import pairwise

import nbformat
import pytest

from tools import classroom

NAMES = classroom.names()
caught = cache(classroom.caught)
each = pytest.mark.parametrize("name", NAMES)


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
    assert (
        all("assert" in cell.source for cell in tests)
        and sum("### BEGIN HIDDEN TESTS" in c.source for c in tests) >= 3
    )
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


@pytest.mark.slow
def test_a_course_from_release_to_feedback(tmp_path) -> None:
    name = "04_una"
    grades = classroom.hold_course(tmp_path, [name], say=lambda _: None).set_index("student")
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
        and "Rubric" not in text
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
    assert grades["score"].to_dict() == {"ada": solved, "ben": ben, "cleo": 0} and 0 < ben < solved
    for student in grades.index:
        feedback = (tmp_path / "feedback" / student / name / f"{name}.html").read_text(
            encoding="utf-8"
        )
        assert "Score:" in feedback
