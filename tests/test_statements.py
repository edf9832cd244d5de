"""The numbers of the notebooks' prose are those of their tables."""

import importlib
import re

import nbformat
import pytest
import statements
from statements import Statement, agrees, in_code, numbers, one_line, prose, shown

from lib import paths

ALL = [
    (notebook, statement)
    for notebook in statements.modules()
    for statement in importlib.import_module(f"statements.s{notebook}").STATEMENTS
]


@pytest.mark.parametrize(
    ("notebook", "statement"), ALL, ids=[f"{n[:2]}-{s.text[:40]}" for n, s in ALL]
)
def test_a_statement_stands_in_the_notebook(notebook: str, statement: Statement) -> None:
    assert statement.filled() in prose(notebook)


def before_the_exercises(node: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    prose = [cell for cell in node.cells if cell.cell_type == "markdown"]
    heads = [bool(re.match(r"#+ [\d· .]*(Exercise|Reference)", cell.source)) for cell in prose]
    return prose[: heads.index(True)]


@pytest.mark.parametrize("notebook", statements.modules())
def test_every_number_of_the_prose_is_shown_or_stated(notebook: str) -> None:
    stated = " ".join(s.filled() for n, s in ALL if n == notebook)
    known = "\n".join([shown(notebook), stated])
    node = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    code = {n for cell in node.cells if cell.cell_type == "code" for n in in_code(cell.source)}
    lost = {
        (cell.id, number)
        for cell in before_the_exercises(node)
        for number in numbers(cell.source)
        if not agrees(number, known) and number.removesuffix("%").strip() not in code
    }
    assert lost == set(), "say where these numbers come from: a cell's output, or a statement"


def test_what_counts_as_a_number() -> None:
    text = "SimCSE has 65.8 ± 0.19, or 12 % of `0.5` and $1.5$; see [A](x/4.5.md), v2.13.0."
    assert numbers(text) == ["65.8", "0.19", "12 %"]
    assert one_line("a **b**\n  [c [CLS]](d.md#e)") == "a b c [CLS]"


@pytest.mark.parametrize(
    ("number", "text", "found"),
    [
        ("65.8", "avg 65.7961", True),
        ("65.8", "avg 65.74", False),
        ("0.20", "cos -0.2012", True),
        ("12 %", "share 0.1204", True),
        ("12", "share 0.1204", False),
        ("76.14", "una,.7614,", False),
        ("12", "share 0.1304", False),
        ("50", "0.5 of it", False),
    ],
)
def test_a_number_agrees_with_what_it_was_rounded_from(number: str, text: str, found: bool) -> None:
    assert agrees(number, text) is found


def test_a_statement_with_another_number_is_not_in_the_notebook() -> None:
    wrong = Statement("SimCSE ends at {:.1f}", lambda: (12.3456,))
    assert wrong.filled() == "SimCSE ends at 12.3"
    assert wrong.filled() not in prose("02_simcse")
