"""How much stands in the notebooks' cells: the rules of counting on small notebooks, and each
notebook of the course against its limits."""

import re
from functools import cache

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib import course, paths
from tools import density, prose

NAMES = tuple(density.LIMITS)

each = pytest.mark.parametrize("path", course.notebooks(), ids=lambda path: path.stem)


def notebook(*cells: str | nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook of these cells; a text is a Markdown cell."""
    made = [new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return new_notebook(cells=made)


def code(source: str, *mimes: str, **metadata) -> nbformat.NotebookNode:
    """A code cell with an output of each type."""
    outputs = [new_output("display_data", {mime: "…"}) for mime in mimes]
    return new_code_cell(source, outputs=outputs, metadata=metadata)


# --- words
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("One two, three.", 3),
        ("## 2 · A heading", 3),
        ("* one\n* two\n\n1. three\n2. four", 4),
        ("> **Predict.** Which one?", 3),
        ("Two – words, not – three × dashes", 5),
        ("it's self-made", 2),
        ("A [link of five](https://example.org/a_(b)) words", 5),
        ("A [[CLS]](../book/glossary.md#term-CLS) link, <https://example.org>", 3),
        ("[text][1]\n\n[1]: https://example.org", 1),
        ("loss of $-\\log p_{ii} + 1$ here", 4),
        ("costs \\$5 or \\$6 today", 5),
        ("see `F.cross_entropy(a, b)` now", 4),
        ("see `$a$ | <details>` now", 4),
        ("above\n\n$$a + b\n= c$$\n\nbelow", 2),
        ("above\n\n\\begin{align}a &= b\\end{align}\n\nbelow", 2),
        ("| a | b |\n|---|--:|\n| one | two |\n\nbelow", 1),
        ("a | b, no table", 4),
        ("<table><tr><td>one</td></tr></table> below", 1),
        ("```python\nx = 1\n```\nbelow", 1),
        ("* one\n  ~~~\n  x = 1\n  ~~~\n* two", 2),
        ("above <details><summary>Answer</summary>\n\none\n\n</details> below", 2),
        ("a <details>b <details>c</details> d</details> e", 2),
        ("a <details>b never ends", 1),
        ("![one two](a.png) three <img src='b.png' alt='four'>", 1),
        ("one<br>two&nbsp;three <!-- four -->", 3),
        ("", 0),
    ],
)
def test_words_are_those_of_visible_prose(text: str, words: int) -> None:
    assert prose.words(text) == words


def test_exercises_and_references_are_counted_apart_from_their_heading_on() -> None:
    made = notebook(
        "# 01 · Title\n\none two",
        "## Summary\n\none\n\n## 9 · Exercises\n\n1. one two\n\n### Hint\n\none",
        "in the next cell",
        "## References\n\n* one",
        "## The end\n\none",
    )
    assert density.words_of_cells(made) == {0: 4, 1: 2, 4: 3}
    assert density.count(made).words_apart == (2 + 2 + 1 + 1) + 4 + 2


def test_a_heading_in_a_fence_or_a_fold_begins_no_section() -> None:
    made = notebook("```\n# References\n```\n<details>\n\n# Exercises\n\n</details>\n\none", "two")
    assert density.words_of_cells(made) == {0: 1, 1: 1}


def test_cells_without_a_word_or_a_line_are_in_no_median() -> None:
    made = notebook("one two three", "![a](a.png)", "$$x$$", "one", code("x = 1"), code("# none"))
    counts = density.count(made)
    assert (counts.words_median, counts.words_longest, counts.markdown_cells) == (2, 3, 4)
    assert (counts.lines_median, counts.lines_longest, counts.code_cells) == (1, 1, 2)
    assert density.count(notebook("")).markdown_cells == 0


# --- lines, pictures
# -------------------------------------------------------------------------------------------------


def test_lines_are_neither_blank_nor_comments_alone() -> None:
    source = "# why\n\n%matplotlib inline\nx = 1  # one\n\n    # deeper\nprint(\n    x\n)"
    assert density.lines(source) == 5


def test_folded_cells_and_parameters_are_counted_apart() -> None:
    made = notebook(
        code("x = 1\nx = 2"),
        code("x = 1\n" * 10, tags=["parameters"]),
        code("x = 1\n" * 20, jupyter={"source_hidden": True}),
        code("x = 1\n" * 30, tags=["hide-input", "lesson"]),
    )
    counts = density.count(made)
    assert (counts.code_cells, counts.lines_longest, counts.lines_apart) == (4, 2, 60)


def test_pictures_are_drawn_by_code_or_shown_by_markdown() -> None:
    made = notebook(
        "![a](attachment:a.png) ![b](b.svg) <img src='c.png'> `![d](d.png)` [e](e.png)",
        "<details>![f](f.png)</details>",
        code("plot()", "image/png", "image/svg+xml", "text/html"),
        code("plot()", "image/png", jupyter={"source_hidden": True}),
    )
    assert density.count(made).pictures == 3 + 3


# --- predictions
# -------------------------------------------------------------------------------------------------

ANSWER = "<details><summary>Answer</summary>\n\nIt falls.\n\n</details>"


@pytest.mark.parametrize(
    ("cells", "unanswered"),
    [
        ([f"*Predict* the sign. {ANSWER}"], []),
        (["> **Predict.** Which?", "x", "x", ANSWER], []),
        (["*Predict: which?*", "x", "x", "x", ANSWER], [0]),
        (["Then *predict* it."], [0]),
        (["We predict it, and `*Predict*` it."], []),
        ([f"{ANSWER} *Predict* it."], [0]),
        (["*Predict* one. *Predict* two.", ANSWER], [0]),
        ([f"*Predict* one. {ANSWER} *Predict* two. {ANSWER}"], []),
        (["*Predict* one.", "*Predict* two.", ANSWER, ANSWER], []),
        (["<details><summary>*Predict* it.</summary>It falls.</details>"], []),
        (["*Predict* it. <details><summary>Answer</summary></details>"], [0]),
        (["*Predict* it.", f"## Exercises\n\n1. *Predict* it. {ANSWER}"], [0]),
    ],
)
def test_a_prediction_is_answered_by_a_fold_of_its_own(cells, unanswered) -> None:
    assert density.unanswered(notebook(*cells)) == unanswered


def test_code_cells_are_among_the_next_three() -> None:
    made = notebook("*Predict* it.", code("x"), code("y"), code("z"), ANSWER)
    assert density.unanswered(made) == [0]
    del made.cells[2]
    assert density.unanswered(made) == []
    assert (density.count(made).predictions, density.count(made).folds) == (1, 1)


# --- the course
# -------------------------------------------------------------------------------------------------


@cache
def read(path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@each
def test_a_notebook_keeps_to_its_limits(path) -> None:
    over = density.over(density.count(read(path)), density.LIMITS)
    assert over == {}, f"python -m tools.density {path.stem} says where"


@pytest.mark.parametrize("name", NAMES)
def test_one_more_than_allowed_is_over(name: str) -> None:
    counts = density.count(notebook("one", code("x = 1", "image/png", "image/png", "image/png")))
    assert density.over(counts, density.LIMITS) == {}
    allowed = {**density.LIMITS, name: getattr(counts, name) - 1}
    assert density.over(counts, allowed) == {name: getattr(counts, name)}
    few = density.count(notebook("one", code("x = 1", "image/png", "image/png")))
    assert density.over(few, density.LIMITS) == {"pictures": 2}


def test_the_yardstick_is_counts_of_one_commit_and_nothing_else() -> None:
    table = density.yardstick()
    counts = list(density.table({"": density.count(notebook())}))
    assert list(table) == ["repository", "commit", "path", *counts]
    assert len(table) == 2 and set(table["repository"]) == {"rasbt/LLMs-from-scratch"}
    [commit] = set(table["commit"])
    assert re.fullmatch(r"[0-9a-f]{40}", commit)
    assert all(table[name].dtype.kind in "if" for name in counts)
    within = table[["lines_median", "words_median"]] <= [
        density.LIMITS["lines_median"],
        density.LIMITS["words_median"],
    ]
    assert within.all(axis=None), "our limits on the median are no stricter than what they do"


def test_the_command_prints_the_table_and_what_there_is_to_mend(tmp_path, capsys) -> None:
    made = notebook("one " * 91 + "*Predict* it.", code("x = 1\n" * 26))
    path = tmp_path / "09_made.ipynb"
    nbformat.write(made, path)
    density.main([str(path)])
    printed = capsys.readouterr().out
    assert "09_made" in printed and "(ch03)" in printed and "(ch05)" in printed
    assert re.search(r"cell 0 \(\w+\): 93 words", printed)
    assert re.search(r"cell 0 \(\w+\): a prediction without an answer", printed)
    assert re.search(r"cell 1 \(\w+\): 26 lines", printed)
    density.main(["--csv", str(path)])
    head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("notebook,code_cells,") and line.startswith("09_made,1,1,26,26,0,93,93,")
    assert (paths.ROOT / "tools" / "yardstick.csv") == density.YARDSTICK
