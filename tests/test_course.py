"""Executing notebooks: the course, one notebook with parameters, pages, in-place refresh."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from tiny import hear_interrupts

from lib import paths
from lib.__main__ import main as cli
from lib.runs import notebooks
from tools import course, pages, refresh

RUN = 'from lib import paths\nprint("ran", profile, temperature, paths.ROOT)'
QUESTION = "# 01 · Good & *short*\n\n[Previous](x.ipynb)\n\nWhat is the **loss** at chance? More."
EQUATION = "![one [CLS]](pictures/one.svg)\n\n$$\\mathcal{L} = -\\log x$$ [last](03_last.ipynb)"
FOLD = "<details><summary>Answer</summary>\n\nIt is **two**.\n</details>\n\nGo on."


def markdown(text: str):
    return nbformat.v4.new_markdown_cell(text)


def code(text: str, *tags: str):
    return nbformat.v4.new_code_cell(text.strip(), metadata={"tags": list(tags)})


def write(path: Path, *cells) -> Path:
    node = nbformat.v4.new_notebook(cells=list(cells))
    node.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(node, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three notebooks; the second fails in its second cell of code."""
    folder = tmp_path_factory.mktemp("course") / "note books {x}"
    parameters = 'profile: str = "small"  # scale\nseed: int = 0\ntemperature: float = 0.05'
    lesson = "print('lesson seen' if 'from_lesson' in globals() else 'no lesson')"
    write(
        folder / "01_good.ipynb",
        *(markdown(text) for text in (QUESTION, EQUATION, FOLD)),
        code(parameters, "parameters"),
        code("from_lesson = 1", "lesson"),
        code(lesson),
        code(RUN),
        code("import ipywidgets\nipywidgets.IntSlider(description='beta')"),
    )
    (folder / "pictures").mkdir()
    (folder / "pictures" / "one.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    profile = code('profile: str = "mini"', "parameters")
    write(folder / "02_bad.ipynb", profile, code('raise ValueError("no luck")'), code("'never'"))
    last = 'from typing import Optional\nprofile: str = "x"\nbeta: Optional[float] = 0.5'
    write(folder / "03_last.ipynb", code(last, "parameters"), code("print('last', profile, beta)"))
    return folder


def text_of(path: Path) -> str:
    node = nbformat.read(path, as_version=4)
    cells = [cell for cell in node.cells if cell.cell_type == "code"]
    return "".join(out.get("text", "") for cell in cells for out in cell.outputs)


@pytest.fixture(scope="module")
def executed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of the three notebooks, executed two at a time."""
    outputs = tmp_path_factory.mktemp("executed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CSE_OUTPUTS", str(outputs))
        assert course.course(sorted(folder.glob("*.ipynb")), 2) == 1
    return outputs


def test_the_course_runs_all_and_keeps_the_failure(executed: Path) -> None:
    good = executed / "01_good" / "01_good.ipynb"
    assert f"ran mini 0.05 {paths.ROOT}" in text_of(good)
    assert "last mini" in text_of(executed / "03_last" / "03_last.ipynb")
    assert not (executed / "02_bad" / "02_bad.ipynb").exists()
    assert "no luck" in (executed / "02_bad" / "02_bad.failed.ipynb").read_text()
    assert [p.name for p in executed.rglob(".*.tmp-*")] == []


def test_pages_need_no_network_and_their_links_hold(executed: Path) -> None:
    text = (executed / "01_good" / "01_good.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="([^"]*)', text)
    assert [url for url in loaded if not url.startswith("data:")] == []
    assert "<math" in text and "$$" not in text
    assert 'src="data:image/svg+xml;base64,PHN2' in text
    assert 'href="../03_last/03_last.html"' in text
    (answer,) = re.findall(r"<details\b.*?</details>", text, re.DOTALL)
    assert "<strong>two</strong>" in answer and "Go on" not in answer
    index = (executed / "index.html").read_text(encoding="utf-8")
    for shown in ("01 · Good &amp; short", "What is the loss at chance?", "ValueError: no luck"):
        assert shown in index
    links = re.findall(r'href="([^"]+)"', index)
    assert len(links) == 3 and all((executed / unquote(link)).is_file() for link in links)
    assert re.findall(r'src="(.{30})', index) == ["data:image/svg+xml;base64,PHN2"]


def test_folded_cells_are_folded_on_the_page() -> None:
    cell = code("secret = 1")
    cell.metadata.jupyter = {"source_hidden": True, "outputs_hidden": True}
    cell.outputs = [nbformat.v4.new_output("stream", text="the answer")]
    text = pages.html(nbformat.v4.new_notebook(cells=[cell]), "01", paths.NOTEBOOKS)
    source, output = re.findall(r"<details\b.*?</details>", text, re.DOTALL)
    assert "secret" in source and "the answer" in output


def test_a_run_without_its_lesson_and_with_a_parameter(folder: Path, outputs: Path) -> None:
    notebook = folder / "01_good.ipynb"
    before, target = notebook.read_bytes(), outputs / "new" / "out.ipynb"
    outcome = notebooks.execute(notebook, target, {"temperature": 0.1}, lesson=False)
    assert outcome.error is None and outcome.path == target
    assert "no lesson" in text_of(target) and "ran small 0.1" in text_of(target)
    assert notebook.read_bytes() == before
    links = re.findall(r"\]\((\S+?)\)", nbformat.read(target, 4).cells[1].source)
    assert len(links) == 2 and all((target.parent / unquote(link)).is_file() for link in links)
    arguments = [({"temperature": 0.2}, False), ({}, False), ({"temperature": 0.2}, True)]
    assert len({notebooks.run_path(notebook, *one) for one in arguments}) == 3


def test_success_replaces_an_earlier_failure(folder: Path, outputs: Path) -> None:
    target = outputs / "again.ipynb"
    failed = notebooks.execute(folder / "02_bad.ipynb", target)
    assert failed.error and failed.path.name == "again.failed.ipynb" and not target.exists()
    notebooks.execute(folder / "03_last.ipynb", target)
    assert target.exists() and not failed.path.exists()


def test_a_dying_kernel_is_a_failure_and_not_a_crash(tmp_path: Path, outputs: Path) -> None:
    notebook = write(tmp_path / "01_dies.ipynb", code("1 + 1"), code("import os\nos._exit(3)"))
    outcome = notebooks.execute(notebook, outputs / "dies.ipynb")
    assert outcome.error and "Dead" in outcome.error


def test_a_value_is_read_as_python_writes_it() -> None:
    texts = ("3", "1e-3", ".5", "-3", "False", "None", "[0, 10]", '"3"')
    assert [notebooks.parse_value(text) for text in texts] == [
        *(3, 0.001, 0.5, -3),
        *(False, None, [0, 10], "3"),
    ]
    for text in ("010", "no", "1:30", "data/mini-bert", "Question: what?", "{a}", ""):
        assert notebooks.parse_value(text) == text


def test_notebooks_are_found_by_name_number_or_path() -> None:
    una = paths.NOTEBOOKS / "04_una.ipynb"
    for name in ("04_una", "04", "04_una.ipynb", str(una)):
        assert notebooks.find(name) == una


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["good.ipynb", "-p", "temprature", "0.1"], "'temperature'"),
        (["good.ipynb", "-p", "seed", "1", "-p", "seed", "2"], "twice"),
        (["04_unna"], "'04_una'"),
        (["nowhere.ipynb"], "nowhere"),
        (["good.ipynb", "--out", "x.txt"], "must be another file"),
        (["good.ipynb", "--out", "good.ipynb"], "must be another file"),
        (["text.ipynb"], "is no notebook"),
    ],
)
def test_a_wrong_request_is_one_sentence(outputs, tmp_path, monkeypatch, capsys, arguments, word):
    monkeypatch.chdir(tmp_path)
    write(Path("good.ipynb"), code("seed: int = 1\ntemperature: float = 0.1", "parameters"))
    Path("text.ipynb").write_text("not JSON")
    assert cli(["run", *arguments]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1


def lib(*arguments: str, cwd: Path = paths.ROOT) -> subprocess.Popen:
    command = [sys.executable, "-m", "lib", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        command, cwd=cwd, env=environment, text=True, preexec_fn=hear_interrupts, **pipes
    )


def test_a_run_from_another_folder_prints_nothing_on_stderr(
    folder: Path, outputs: Path, tmp_path: Path
) -> None:
    options = ["-p", "beta", "0.1", "-p", "profile", "010", "--no-lesson"]
    process = lib("run", str(folder / "03_last.ipynb"), *options, cwd=tmp_path)
    printed, error = process.communicate(timeout=120)
    (target,) = (outputs / "03_last").glob("*.ipynb")
    assert process.returncode == 0 and error == "" and str(target) in printed
    assert "last 010 0.1" in text_of(target)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_an_interrupted_run_prints_one_line(tmp_path: Path, outputs: Path) -> None:
    sleeps = "import os, time\nopen(os.environ['CSE_OUTPUTS'] + '/here', 'w')\ntime.sleep(60)"
    notebook = write(tmp_path / "01_sleeps.ipynb", code(sleeps))
    process = lib("run", str(notebook))
    while not (outputs / "here").exists():
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=240)
    assert process.returncode == 130
    assert error.startswith("interrupted") and error.count("\n") == 1
    assert list((outputs / "01_sleeps").iterdir()) == []


def test_what_a_killed_execution_left_goes_with_the_next(tmp_path: Path, outputs: Path) -> None:
    kills = "import os, psutil\npsutil.Process(os.getppid()).kill()\nos._exit(1)"
    notebook = write(tmp_path / "01_kills.ipynb", code("n: int = 1", "parameters"), code(kills))
    process = lib("run", str(notebook), "-p", "n", "2")
    process.communicate()
    assert process.returncode == -9 and list((outputs / "01_kills").glob(".*"))
    good = write(tmp_path / "01_kills.ipynb", code("n: int = 1", "parameters"), code("n"))
    assert notebooks.execute(good, notebooks.run_path(good, {})).error is None
    assert [p.suffix for p in (outputs / "01_kills").iterdir()] == [".ipynb"]


# --- notebooks executed in place, for a commit ------------------------------------------------

NOISY = """
import os, sys, matplotlib.pyplot as plt, ipywidgets
from IPython.display import display
print("to stderr", file=sys.stderr)
slider = ipywidgets.IntSlider()
display(slider)
display(slider._repr_mimebundle_() | {"image/png": "aGk="}, raw=True)
plt.plot(range(5))
plt.show()
print(os.environ.get("CSE_DATA"))
"""


def test_refresh_executes_in_place_and_leaves_out_what_differs(
    tmp_path: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    path = write(tmp_path / "01_a.ipynb", code("x: int = 3", "parameters"), code(NOISY), code("x"))
    ids = [cell.id for cell in nbformat.read(path, 4).cells]
    assert refresh.main([str(path)]) == 0
    text, node = path.read_text(), nbformat.read(path, 4)
    assert [cell.id for cell in node.cells] == ids
    assert [cell.execution_count for cell in node.cells] == [1, 2, 3]
    assert not any(word in text for word in ("papermill", 'execution":', pages.WIDGET, 'stderr"'))
    still, figure, data = node.cells[1].outputs
    assert still.data["image/png"].strip() == "aGk=" and figure.data["image/png"]
    assert data.text == "None\n" and os.environ["CSE_DATA"] == str(tmp_path)
    assert refresh.main([str(path)]) == 0 and path.read_text() == text
    assert not list(outputs.rglob("*.ipynb"))
