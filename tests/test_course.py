"""lib.course on small notebooks made here: execution, failures, parameters, pages, command line."""

import io
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from lib import course, pages, paths
from lib.runs import workers
from lib.__main__ import main as cli
from lib.documents import write_documents
from tools import refresh

RUN = """
from lib import runs
run = runs.Run("01_good", "simcse", seed, {"profile": profile, "temperature": temperature}, {})
run.start()
run.finish({"mini_dev_spearman_best": 61.5 + seed, "train_seconds": 2.0})
print("ran", profile, temperature, os.getcwd())
"""


def markdown(text: str):
    return nbformat.v4.new_markdown_cell(text)


def code(text: str, *tags: str):
    cell = nbformat.v4.new_code_cell(text.strip())
    cell.metadata.tags = list(tags)
    return cell


def write(path: Path, *cells) -> Path:
    node = nbformat.v4.new_notebook(cells=list(cells))
    node.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(node, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three notebooks: the first and the third succeed, the second fails in its second code
    cell."""
    folder = tmp_path_factory.mktemp("course") / "note books {x}"
    parameters = 'profile: str = "small"  # scale\nseed: int = 0\ntemperature: float = 0.05'
    write(
        folder / "01_good.ipynb",
        markdown(
            "# 01 · Good & *short*\n\n[Previous](x.ipynb) · next\n\nWhat is the **loss** at chance?"
            " More."
        ),
        markdown(
            "Inline $\\tau < 1$.\n\n$$\\mathcal{L} = -\\log \\frac{e^{s/\\tau}}{\\sum_j"
            " e^{s_j/\\tau}}$$"
        ),
        code(parameters, "parameters"),
        code("import os, sys\nprint('interpreter', sys.executable)"),
        code("from_lesson = 1", "lesson"),
        code("print('lesson seen' if 'from_lesson' in globals() else 'no lesson')"),
        code(RUN),
        code("import ipywidgets\nipywidgets.IntSlider(description='beta')"),
    )
    write(
        folder / "02_bad.ipynb",
        markdown("# 02 · Bad\n\nFails."),
        code('profile: str = "mini"', "parameters"),
        code('raise ValueError("no luck")'),
        code("print('never')"),
    )
    write(
        folder / "03_last.ipynb",
        markdown("# 03 · Last\n\nRuns."),
        code('profile: str = "x"\nbeta: float | None = 0.5', "parameters"),
        code("from lib import paths\nprint('last', profile, beta, paths.ROOT.name)"),
    )
    return folder


@pytest.fixture(scope="module")
def executed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """The course executed once: outputs folder, exit status, progress, log."""
    outputs = tmp_path_factory.mktemp("executed")
    progress, lines = io.StringIO(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CSE_OUTPUTS", str(outputs))
        status = course.course(folder, progress, lines.append)
    return outputs, status, progress.getvalue(), "\n".join(lines)


def text_of(path: Path) -> str:
    node = nbformat.read(path, as_version=4)
    return "".join(
        out.get("text", "") for c in node.cells if c.cell_type == "code" for out in c.outputs
    )


class Loads(HTMLParser):
    """What a browser would fetch by itself: sources of scripts, images, frames, and style
    sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.urls += [given[k] or "" for k in ("src", "data-main", "srcset") if k in given]
        if tag == "link":
            self.urls.append(given.get("href") or "")


def loads(page: Path) -> Loads:
    parser = Loads()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_course_runs_all_and_names_the_failure(executed: tuple[Path, int, str, str]) -> None:
    outputs, status, progress, text = executed
    assert status == 1
    assert "FAILED 02_bad, cell [3]: ValueError: no luck" in text
    assert re.search(r"\[3/3\] 03_last: done in \d+:\d\d", text)
    assert "[1/3] 01_good: 7 cells" in progress
    good = outputs / "01_good" / "01_good.ipynb"
    assert "ran mini 0.05" in text_of(good)
    assert f"interpreter {sys.executable}" in text_of(good)
    assert str(good) in text and str(outputs / "index.html") in text
    assert "61.50" in text and "simcse" in text
    assert not (outputs / "02_bad" / "02_bad.ipynb").exists()
    assert "no luck" in (outputs / "02_bad" / "02_bad.failed.ipynb").read_text()
    assert [p.name for p in outputs.rglob(".*")] == []


@pytest.mark.slow
def test_two_notebooks_at_a_time_and_the_last_one_after_them(tmp_path: Path) -> None:
    waits = (
        "import os, time, pathlib\nhere = pathlib.Path(os.environ['CSE_OUTPUTS'])\n(here /"
        " {!r}).touch()\n"
    )
    waits += (
        "end = time.monotonic() + 60\nwhile not (here / {!r}).exists():\n    assert"
        " time.monotonic() < end\n"
    )
    waits += "    time.sleep(0.05)\nprint('threads', os.environ['OMP_NUM_THREADS'])"
    parameters = code('profile: str = "mini"', "parameters")
    folder = tmp_path / "notebooks"
    write(
        folder / "01_first.ipynb",
        markdown("# 01 · First"),
        parameters,
        code(waits.format("first", "second")),
    )
    write(
        folder / "02_second.ipynb",
        markdown("# 02 · Second"),
        parameters,
        code(waits.format("second", "first")),
    )
    both = (
        "import os, pathlib\nprint(sorted(p.name for p in"
        " pathlib.Path(os.environ['CSE_OUTPUTS']).glob('*/*.html')))"
    )
    write(folder / "03_last.ipynb", markdown("# 03 · Last"), parameters, code(both))
    (tmp_path / "two.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom lib.course import course\nif __name__ =="
        f" '__main__':\n    sys.exit(course(Path({str(folder)!r}), sys.stdout, print, 2))\n"
    )
    outputs = tmp_path / "outputs"
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), "CSE_OUTPUTS": str(outputs)}
    environment.pop("OMP_NUM_THREADS", None)
    command = [sys.executable, str(tmp_path / "two.py")]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    share = len(workers._cores(0, 2))
    assert f"threads {share}" in text_of(outputs / "01_first" / "01_first.ipynb")
    assert "['01_first.html', '02_second.html']" in text_of(outputs / "03_last" / "03_last.ipynb")
    finished = re.findall(r"^\[(\d)/3\] \w+: done in", done.stdout, re.MULTILINE)
    assert (
        sorted(finished[:2]) == ["1", "2"]
        and finished[2:] == ["3"]
        and "[2/3] 02_second: 3 cells" in done.stdout
    )


def test_the_longest_notebooks_begin_first() -> None:
    labelled = [(notebook, notebook.stem) for notebook in course.notebooks()]
    begun = [stem for _, stem in sorted(labelled, key=course._rank)]
    assert begun[: len(course.LONGEST)] == list(course.LONGEST)
    assert begun[len(course.LONGEST) :] == ["01_infonce", "06_backbones", "07_results"]


def test_pages_need_no_network(executed: tuple[Path, int, str, str]) -> None:
    outputs = executed[0]
    page = outputs / "01_good" / "01_good.html"
    html = page.read_text(encoding="utf-8")
    found = loads(page)
    assert [url for url in found.urls if not url.startswith("data:")] == []
    assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", html)
    assert found.tags.count("math") == 2 and "$$" not in html
    assert "[interactive: open the notebook in JupyterLab]" in html
    index = (outputs / "index.html").read_text(encoding="utf-8")
    assert loads(outputs / "index.html").urls == []
    assert (
        "01 · Good &amp; short" in index
        and "What is the loss at chance?" in index
        and "More." not in index
    )
    links = re.findall(r'href="([^"]+)"', index)
    documents = list(pages.DOCUMENTS.values())
    assert [link for link in links if link in documents] == ["glossary.html", "readme.html"]
    assert [link for link in links if link not in documents] == [
        "01_good/01_good.html",
        "02_bad/02_bad.failed.html",
        "03_last/03_last.html",
    ]
    assert all((outputs / link).is_file() for link in links)
    assert "failed, cell [3]: ValueError: no luck" in index


def test_without_lesson_and_parameters(folder: Path, outputs: Path) -> None:
    notebook = folder / "01_good.ipynb"
    before = notebook.read_bytes()
    target = course.run_path(notebook, {"temperature": 0.1}, lesson=False)
    outcome = course.execute(notebook, target, {"temperature": 0.1}, lesson=False)
    assert outcome.error is None and outcome.path == target
    assert "no lesson" in text_of(target) and "ran small 0.1" in text_of(target)
    assert notebook.read_bytes() == before
    assert re.fullmatch(r"01_good-[0-9a-f]{8}\.ipynb", target.name)
    other = [
        course.run_path(notebook, {"temperature": 0.2}, lesson=False),
        course.run_path(notebook, {}, lesson=False),
    ]
    assert len({target, *other, course.run_path(notebook, {"temperature": 0.1})}) == 4


def test_an_executed_notebook_brings_its_pictures(tmp_path: Path, outputs: Path) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><title>One</title></svg>'
    text = "# 01 · A\n\n![one [CLS] of two](pictures/one.svg) and ![two](pictures/two.svg)"
    notebook = write(tmp_path / "01_a.ipynb", markdown(text), code("1"))
    (tmp_path / "pictures").mkdir()
    for name in ("one", "other"):
        (tmp_path / "pictures" / f"{name}.svg").write_text(drawing)
    outcome = course.execute(notebook, outputs / "01" / "01_a.ipynb")
    assert outcome.error is None
    assert [p.name for p in (outputs / "01" / "pictures").iterdir()] == ["one.svg"]
    pages.render(outcome.path, outputs / "page.html", assets=outcome.path.parent)
    assert "data:image/svg+xml;base64," in (outputs / "page.html").read_text()
    assert pages.bring_pictures(nbformat.read(notebook, 4), tmp_path, tmp_path) is None


def test_a_page_folds_answers_and_cells(tmp_path: Path) -> None:
    answer = "<details><summary>Answer</summary>\n\nIt is **two**.\n</details>\n\nGo on."
    folded = code("secret = 1")
    folded.metadata.jupyter = {"source_hidden": True}
    notebook = write(tmp_path / "01_a.ipynb", markdown("# 01 · A"), markdown(answer), folded)
    pages.render(notebook, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    first, second = re.findall(r"<details\b.*?</details>", page, re.DOTALL)
    assert "<strong>two</strong>" in first and "Go on" not in first
    assert "<summary>code</summary>" in second and "secret" in second


def test_success_replaces_an_earlier_failure(folder: Path, outputs: Path) -> None:
    target = outputs / "again.ipynb"
    failed = course.execute(folder / "02_bad.ipynb", target)
    assert failed.error and failed.path.name == "again.failed.ipynb" and not target.exists()
    course.execute(folder / "03_last.ipynb", target)
    assert target.exists() and not failed.path.exists()


def test_a_dying_kernel_is_a_failure_and_not_a_crash(tmp_path: Path, outputs: Path) -> None:
    notebook = write(tmp_path / "01_dies.ipynb", code("1 + 1"), code("import os\nos._exit(3)"))
    outcome = course.execute(notebook, outputs / "dies.ipynb")
    assert outcome.error and outcome.error.startswith("cell [2]: ")


def test_unknown_parameter_is_refused_before_execution(folder: Path, outputs: Path) -> None:
    with pytest.raises(course.CourseError, match="did you mean 'temperature'") as caught:
        course.execute(folder / "01_good.ipynb", outputs / "x.ipynb", {"temprature": 0.1})
    assert "profile, seed, temperature" in str(caught.value)
    assert not outputs.exists()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        ("-2.5E+2", -250.0),
        ("False", False),
        ("null", None),
        ("", None),
        ("{a: 1}", {"a": 1}),
        ("a: b: c", "a: b: c"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3e4", "1.2.3e4"),
        ("data/x", "data/x"),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("010", 10),
    ],
)
def test_values(text: str, value: object) -> None:
    assert course.parse_value(text) == value and type(course.parse_value(text)) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *(
            ("str", text, text)
            for text in ("010", "1:30", "yes", "Question: what?", "[dog]", "1e-3", "None", "")
        ),
        *(
            ("str | None", text, text)
            for text in ("010", "1:30", "no", "[dog]", "true", "{a: 1}", "")
        ),
        *(
            (f"{kind} | None", text, None)
            for kind in ("str", "int", "float", "bool")
            for text in ("None", "null")
        ),
        ("int", "010", 10),
        ("int | None", "-3", -3),
        ("float", "1e-3", 0.001),
        ("float | None", ".5", 0.5),
        ("Optional[float]", ".5", 0.5),
        ("Optional[str]", "010", "010"),
        ("Optional[list[int]]", "[0]", [0]),
        *((f"Optional[{kind}]", "None", None) for kind in ("str", "int", "float", "bool")),
        ("float", "4000", 4000),
        ("bool", "True", True),
        ("bool | None", "false", False),
        ("list[int]", "[0, 010]", [0, 10]),
    ],
)
def test_a_value_is_read_by_its_declared_type(kind: str, text: str, value: object) -> None:
    found = course.parse_value(text, kind)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            ("int", text)
            for text in ("1e2", "1.0", "1:30", "yes", "", "1_000", "0x1f", "None", "[1]", "true")
        ),
        *(
            ("float | None", text)
            for text in ("0,1", "nan", ".inf", "1e999", "yes", "", "abc", "true", "[0.1]")
        ),
        ("Optional[float]", "yes"),
        *(("bool | None", text) for text in ("yes", "on", "1", "0", "nein", "")),
        ("list", "1"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"is no "):
        course.parse_value(text, kind)


def test_notebooks_are_found_by_name_number_or_path(folder: Path) -> None:
    expected = folder / "02_bad.ipynb"
    for name in ("02_bad", "02", "02_bad.ipynb", str(expected)):
        assert course.find_notebook(name, folder) == expected
    with pytest.raises(course.CourseError, match="did you mean '02_bad'"):
        course.find_notebook("02_bat", folder)
    with pytest.raises(course.CourseError, match="No notebook named like"):
        course.notebooks(folder.parent)


def test_results_are_averaged_over_seeds(outputs: Path) -> None:
    from lib import runs

    def finish(notebook: str, seed: int, lr: float, **metrics: float) -> None:
        run = runs.Run(notebook, "simcse", seed, {"profile": "mini", "lr": lr}, {})
        run.start()
        run.finish(metrics)

    for seed, score in ((0, 60.0), (1, 62.0)):
        finish(
            "01_good",
            seed,
            1.0,
            mini_dev_spearman_best=score,
            mini_test_spearman_best=50.0,
            loss_last=2 - seed,
        )
    for seed, score in ((0, 60.0), (1, float("nan")), (2, 61.0)):
        finish("01_good", seed, 2.0, mini_dev_spearman_best=score, mini_test_spearman_best=40.0)
    finish("09_other", 0, 1.0, mini_dev_spearman_best=1.0)
    table = pages.results_table(["01_good"]).sort_values("seeds", ignore_index=True)
    assert len(table) == 2
    assert table.loc[0, ["notebook", "method", "profile", "seeds"]].tolist() == [
        *("01_good", "simcse, lr 1", "mini", "2")
    ]
    assert table.loc[0, ["dev", "test", "loss"]].tolist() == ["61.00 ± 1.41", "50.00 ± 0.00", 1.5]
    assert table.loc[1, ["method", "seeds", "dev", "test"]].tolist() == [
        *("simcse, lr 2", "3, 1 collapsed", "– (1 of 3 collapsed)", "40.00 ± 0.00")
    ]
    page = pages.index_page([], table, outputs).read_text()
    assert "3, 1 collapsed" in page and "60.50" not in page and "nan" not in page.lower()
    assert all(f"<b>{column}</b>" in page for column in pages.RESULT_COLUMNS)
    assert pages.results_table([]).empty


def test_a_run_that_notebooks_share_stands_in_one_line(outputs: Path) -> None:
    from lib import runs

    for notebook in ("01_good", "02_bad"):
        for seed in (0, 1):
            run = runs.Run(notebook, "simcse", seed, {"profile": "mini"}, {})
            run.start()
            run.finish({"mini_dev_spearman_best": 60.0 + seed})
    table = pages.results_table(["01_good", "02_bad"])
    assert table[["notebook", "seeds", "dev"]].values.tolist() == [["01, 02", "2", "60.50 ± 0.71"]]


def test_a_damaged_run_does_not_cost_the_pages(
    folder: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = outputs / "01_good" / "a-0-s1" / "metrics.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text('{"a"')
    monkeypatch.setattr(course, "_all", lambda *_: iter(()))
    lines: list[str] = []
    assert course.course(folder, None, lines.append) == 0 and (outputs / "index.html").exists()
    assert f"No table of results: {damaged.with_name('params.json')} is damaged" in "\n".join(lines)


def test_empty_outputs_give_an_empty_table(outputs: Path) -> None:
    page = pages.index_page([], pages.results_table(["01_good"]), outputs)
    assert "No results yet." in page.read_text()
    assert isinstance(pages.results_table([]), pd.DataFrame)


def test_command_line_from_another_folder(folder: Path, outputs: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
    command = [sys.executable, "-m", "lib", "run", "03_last", "--notebooks", str(folder)]
    arguments = ["-p", "beta", "0.1", "-p", "profile", "010", "--no-lesson"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    target = course.run_path(
        folder / "03_last.ipynb", {"beta": 0.1, "profile": "010"}, lesson=False
    )
    assert f"last 010 0.1 {paths.ROOT.name}" in text_of(target)
    assert str(target) in done.stdout


def test_exit_status_of_a_notebook_that_fails(
    folder: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["run", "02", "--notebooks", str(folder)]) == 1
    assert "FAILED 02_bad, cell [2]: ValueError: no luck" in capsys.readouterr().err


NO_NOTEBOOKS = {
    "text.ipynb": b"not JSON",
    "empty.ipynb": b"",
    "list.ipynb": b"[]",
    "other.ipynb": b'{"a": 1}',
    "half.ipynb": (
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}'
    ),
    "bytes.ipynb": b"\xff\xfe\x00",
    "deep.ipynb": b"[" * 100_000,
}
WRONG = {
    "misspelt": (["run", "01", "-p", "temprature", "0.1"], "did you mean 'temperature'"),
    "type": (
        ["run", "01", "-p", "temperature", "0,1"],
        "01_good: temperature must be float, got '0,1'.",
    ),
    "twice": (
        ["run", "01", "-p", "seed", "1", "-p", "seed", "2"],
        "parameter 'seed' is given twice",
    ),
    "none": (["run", "nowhere.ipynb"], "No notebook 'nowhere.ipynb'"),
    "path": (["run", "elsewhere/01_good.ipynb"], "No notebook 'elsewhere/01_good.ipynb'"),
    "folder": (["run", "."], "No notebook '.'"),
    "out folder": (["run", "01", "--out", "."], "must name a file that ends in .ipynb"),
    "out name": (["run", "01", "--out", "x.txt"], "must name a file that ends in .ipynb"),
    "out in a file": (["run", "01", "--out", "text.ipynb/a.ipynb"], "text.ipynb"),
    **{name: (["run", name], f"{name} is no notebook: ") for name in NO_NOTEBOOKS},
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_one_sentence(
    folder, outputs, tmp_path, monkeypatch, capsys, arguments, message
) -> None:
    for name, content in NO_NOTEBOOKS.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert cli([*arguments, "--notebooks", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_notebook_is_never_executed_into_itself(folder: Path, outputs: Path, capsys) -> None:
    notebook = folder / "03_last.ipynb"
    before = notebook.read_bytes()
    assert cli(["run", "03", "--out", str(notebook), "--notebooks", str(folder)]) == 2
    assert "is the notebook itself" in capsys.readouterr().err and notebook.read_bytes() == before
    assert cli(["course", "--notebooks", str(folder.parent)]) == 2


def test_parameters_that_are_no_python_are_named(tmp_path: Path, outputs: Path, capsys) -> None:
    notebook = write(tmp_path / "01_a.ipynb", code("x: int = = 3", "parameters"))
    assert cli(["run", str(notebook), "-p", "x", "1"]) == 2
    assert "the cell tagged `parameters` is no Python" in capsys.readouterr().err


def test_what_a_killed_execution_left_goes_with_the_next(tmp_path: Path, outputs: Path) -> None:
    kills = "import os, signal, psutil\npsutil.Process(os.getppid()).kill()\nos._exit(1)"
    notebook = write(tmp_path / "01_kills.ipynb", code("n: int = 1", "parameters"), code(kills))
    command = [sys.executable, "-m", "lib", "run", str(notebook), "-p", "n", "2"]
    assert (
        subprocess.run(command, cwd=paths.ROOT, capture_output=True, check=False).returncode == -9
    )
    folder = outputs / "01_kills"
    assert [p for p in folder.iterdir() if p.name.startswith(".")]
    good = write(tmp_path / "01_kills.ipynb", code("n: int = 1", "parameters"), code("n"))
    assert course.execute(good, course.run_path(good, {})).error is None
    assert [p.suffix for p in folder.iterdir()] == [".ipynb"]


def test_progress_on_a_terminal_is_one_line() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with course.Progress("02_simcse", 12, stream) as progress:
        progress(nbformat.v4.new_code_cell("1"), 0)
        assert progress.line() == "02_simcse: cell 1 of 12, 0:00"
    assert "\n" not in stream.getvalue() and stream.getvalue().endswith("\r\x1b[2K")


NOISY = """
import sys, matplotlib.pyplot as plt, ipywidgets
from IPython.display import display
print("to stderr", file=sys.stderr)
slider = ipywidgets.IntSlider()
display(slider)
display(slider._repr_mimebundle_() | {"image/png": "aGk="}, raw=True)
plt.plot(range(5))
plt.show()
"""


def test_refresh_executes_in_place_and_leaves_out_what_differs(
    tmp_path: Path, outputs: Path
) -> None:
    path = write(
        tmp_path / "01_a.ipynb",
        markdown("# 01 · A"),
        code("x: int = 3", "parameters"),
        code(NOISY),
        code("x"),
    )
    ids = [cell.id for cell in nbformat.read(path, 4).cells]
    assert refresh.main(["--notebooks", str(tmp_path), "01"]) == 0
    once = path.read_text()
    node = nbformat.read(path, 4)
    assert [cell.id for cell in node.cells] == ids
    assert (
        "papermill" not in once
        and 'execution":' not in once
        and pages.WIDGET not in once
        and '"name": "stderr"' not in once
    )
    assert [cell.execution_count for cell in node.cells if cell.cell_type == "code"] == [1, 2, 3]
    still, figure = node.cells[2].outputs
    assert still.data["image/png"] == "aGk=\n" or still.data["image/png"] == "aGk="
    assert figure.data["image/png"] and node.cells[3].outputs[0].data["text/plain"] == "3"
    assert refresh.main(["--notebooks", str(tmp_path)]) == 0
    assert path.read_text() == once
    assert not list(outputs.rglob("*.ipynb"))


def test_refresh_shows_shipped_data_alone(
    tmp_path: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    shown = code("import os\nprint(os.environ.get('CSE_DATA'))")
    path = write(tmp_path / "01_a.ipynb", markdown("# 01 · A"), shown)
    assert refresh.main(["--notebooks", str(tmp_path)]) == 0
    assert nbformat.read(path, as_version=4).cells[1].outputs[0].text == "None\n"
    assert os.environ["CSE_DATA"] == str(tmp_path)


def test_refresh_leaves_a_failing_notebook_as_it_was(tmp_path: Path, outputs: Path) -> None:
    path = write(
        tmp_path / "01_a.ipynb", markdown("# 01 · A"), code("print('again')"), code("1 / 0")
    )
    before = path.read_text()
    assert refresh.main(["--notebooks", str(tmp_path), "01"]) == 1
    assert path.read_text() == before


def test_links_of_a_page_lead_somewhere(tmp_path) -> None:
    def made(name):
        return tmp_path / "outputs" / name / f"{name}.html"

    names = [path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")]
    for name in names:
        made(name).parent.mkdir(parents=True)
        made(name).touch()
    source = paths.NOTEBOOKS / f"{names[0]}.ipynb"
    pages.render(source, made(names[0]))
    text = made(names[0]).read_text(encoding="utf-8")
    links = [link for link, _ in pages.LINK.findall(text)]
    write_documents(tmp_path / "outputs")
    assert any(link.endswith("glossary.html") for link in links)
    assert f"../{names[1]}/{names[1]}.html" in pages.linked(
        f'href="{names[1]}.ipynb"', made(names[0])
    )
    assert [link for link in links if not (made(names[0]).parent / link).exists()] == []
