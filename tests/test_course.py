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
import papermill
import pytest

from lib import paths, runs
from lib.__main__ import main as cli
from lib.commands import course
from lib.runs import notebooks, pages
from tools import refresh

RUN = """
from lib import paths, runs
run = runs.Run("01_good", "simcse", seed, {"profile": profile, "temperature": temperature}, {})
run.start()
run.finish({"mini_dev_spearman_best": 61.5 + seed, "train_seconds": 2.0})
print("ran", profile, temperature, paths.ROOT.name)
"""
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
    last = 'profile: str = "x"\nbeta: float | None = 0.5'
    write(folder / "03_last.ipynb", code(last, "parameters"), code("print('last', profile, beta)"))
    return folder


def text_of(path: Path) -> str:
    node = nbformat.read(path, as_version=4)
    cells = [cell for cell in node.cells if cell.cell_type == "code"]
    return "".join(out.get("text", "") for cell in cells for out in cell.outputs)


@pytest.fixture(scope="module")
def executed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The three notebooks executed, two at a time: the outputs and what was printed."""
    outputs = tmp_path_factory.mktemp("executed")
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), "CSE_OUTPUTS": str(outputs)}
    script = "import sys; from pathlib import Path; from lib.commands.course import course\n"
    script += f"if __name__ == '__main__': sys.exit(course(Path({str(folder)!r}), 2))"
    (outputs / "two.py").write_text(script)
    command = [sys.executable, str(outputs / "two.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    return outputs, done.stdout


def test_the_course_runs_all_and_names_the_failure(executed: tuple[Path, str]) -> None:
    outputs, printed = executed
    assert "02_bad: FAILED, cell [3]: ValueError: no luck" in printed
    assert re.findall(r"^(\w+): \w+.* in \d+:\d\d$", printed, re.M)[-1] == "03_last"
    good = outputs / "01_good" / "01_good.ipynb"
    assert "ran mini 0.05" in text_of(good) and str(good) in printed
    assert not (outputs / "02_bad" / "02_bad.ipynb").exists()
    assert "no luck" in (outputs / "02_bad" / "02_bad.failed.ipynb").read_text()
    assert [p.name for p in outputs.rglob(".*.tmp-*")] == []


def test_pages_need_no_network_and_their_links_hold(executed: tuple[Path, str]) -> None:
    outputs, _ = executed
    page = outputs / "01_good" / "01_good.html"
    text = page.read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="([^"]*)', text)
    assert [url for url in loaded if not url.startswith("data:")] == []
    assert "<math" in text and "$$" not in text
    assert (
        'src="data:image/svg+xml;base64,PHN2' in text and 'href="../03_last/03_last.html"' in text
    )
    (answer,) = re.findall(r"<details\b.*?</details>", text, re.DOTALL)
    assert "<strong>two</strong>" in answer and "Go on" not in answer
    index = (outputs / "index.html").read_text(encoding="utf-8")
    for shown in ("01 · Good &amp; short", "What is the loss at chance?", "simcse 61.5", "no luck"):
        assert shown in index
    links = re.findall(r'(?:href|src)="([^"]+)"', index)
    assert len(links) == 4 and all((outputs / unquote(link)).is_file() for link in links)


def test_folded_cells_are_folded_on_the_page() -> None:
    cell = code("secret = 1")
    cell.metadata.jupyter = {"source_hidden": True, "outputs_hidden": True}
    cell.outputs = [nbformat.v4.new_output("stream", text="the answer")]
    text = pages.html(nbformat.v4.new_notebook(cells=[cell]), "01", paths.NOTEBOOKS)
    source, output = re.findall(r"<details\b.*?</details>", text, re.DOTALL)
    assert "secret" in source and "the answer" in output


def test_a_run_without_its_lesson_and_with_a_parameter(folder: Path, outputs: Path) -> None:
    notebook = folder / "01_good.ipynb"
    before = notebook.read_bytes()
    target = notebooks.run_path(notebook, {"temperature": 0.1}, lesson=False)
    outcome = notebooks.execute(notebook, target, {"temperature": 0.1}, lesson=False)
    assert outcome.error is None and outcome.path == target
    assert "no lesson" in text_of(target) and "ran small 0.1" in text_of(target)
    assert notebook.read_bytes() == before
    others = [({"temperature": 0.2}, False), ({}, False), ({"temperature": 0.1}, True)]
    assert len({target, *(notebooks.run_path(notebook, *other) for other in others)}) == 4


def test_success_replaces_an_earlier_failure(folder: Path, outputs: Path) -> None:
    target = outputs / "again.ipynb"
    failed = notebooks.execute(folder / "02_bad.ipynb", target)
    assert failed.error and failed.path.name == "again.failed.ipynb" and not target.exists()
    notebooks.execute(folder / "03_last.ipynb", target)
    assert target.exists() and not failed.path.exists()


def test_a_dying_kernel_is_a_failure_and_not_a_crash(tmp_path: Path, outputs: Path) -> None:
    notebook = write(tmp_path / "01_dies.ipynb", code("1 + 1"), code("import os\nos._exit(3)"))
    outcome = notebooks.execute(notebook, outputs / "dies.ipynb")
    assert outcome.error and outcome.error.startswith("cell [2]: ")


def test_a_kernel_that_does_not_start_is_started_once_more(
    folder: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, execute_notebook = [], papermill.execute_notebook

    def first_fails(*arguments, **options):
        starts.append(1)
        if len(starts) == 1:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return execute_notebook(*arguments, **options)

    monkeypatch.setattr(papermill, "execute_notebook", first_fails)
    outcome = notebooks.execute(folder / "03_last.ipynb", outputs / "x.ipynb")
    assert outcome.error is None and len(starts) == 2


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *(
            ("", text, v)
            for text, v in (("3", 3), ("1e-3", 1e-3), ("1:30", "1:30"), ("null", None))
        ),
        *(("str", text, text) for text in ("010", "1:30", "Question: what?", "None", "")),
        *(("str | None", text, text) for text in ("010", "no", "[dog]", "true", "{a: 1}", "")),
        *((f"Optional[{kind}]", "None", None) for kind in ("str", "int", "float", "bool")),
        *(("int", "010", 10), ("int | None", "-3", -3), ("float", "4000", 4000)),
        *(
            ("float", "1e-3", 0.001),
            ("Optional[float]", ".5", 0.5),
            ("bool | None", "false", False),
        ),
        *(("list[int]", "[0, 010]", [0, 10]), ("Optional[list[int]]", "[0]", [0])),
    ],
)
def test_a_value_is_read_by_its_declared_type(kind: str, text: str, value: object) -> None:
    found = notebooks.parse_value(text, kind)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("int", text) for text in ("1e2", "1.0", "1:30", "yes", "", "None", "[1]", "true")),
        *(("float | None", text) for text in ("0,1", "nan", ".inf", "1e999", "", "true", "[0.1]")),
        *(("bool | None", text) for text in ("yes", "1", "")),
        ("list", "1"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"is no "):
        notebooks.parse_value(text, kind)


def test_notebooks_are_found_by_name_number_or_path(folder: Path) -> None:
    for name in ("02_bad", "02", "02_bad.ipynb", str(folder / "02_bad.ipynb")):
        assert notebooks.find(name, folder) == folder / "02_bad.ipynb"
    with pytest.raises(ValueError, match="did you mean '02_bad'"):
        notebooks.find("02_bat", folder)
    with pytest.raises(ValueError, match="No notebook named like"):
        notebooks.find_all(folder.parent)


NO_NOTEBOOKS = {
    "text.ipynb": b"not JSON",
    "empty.ipynb": b"",
    "list.ipynb": b"[]",
    "other.ipynb": b'{"a": 1}',
    "bytes.ipynb": b"\xff\xfe\x00",
    "deep.ipynb": b"[" * 100_000,
}
WRONG = {
    "misspelt": (["01", "-p", "temprature", "0.1"], "did you mean 'temperature'"),
    "type": (["01", "-p", "temperature", "0,1"], "temperature must be float, got '0,1'."),
    "twice": (["01", "-p", "seed", "1", "-p", "seed", "2"], "parameter 'seed' is given twice"),
    "no Python": (["syntax.ipynb", "-p", "x", "1"], "the cell tagged `parameters` is no Python"),
    "none": (["nowhere.ipynb"], "No notebook 'nowhere.ipynb'"),
    "path": (["elsewhere/01_good.ipynb"], "No notebook 'elsewhere/01_good.ipynb'"),
    "folder": (["."], "No notebook '.'"),
    "out folder": (["01", "--out", "."], "must name a file that ends in .ipynb"),
    "out name": (["01", "--out", "x.txt"], "must name a file that ends in .ipynb"),
    "out in a file": (["01", "--out", "text.ipynb/a.ipynb"], "text.ipynb"),
    "out itself": (["syntax.ipynb", "--out", "syntax.ipynb"], "is the notebook itself"),
    **{name: ([name], f"{name} is no notebook: ") for name in NO_NOTEBOOKS},
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_one_sentence(
    folder, outputs, tmp_path, monkeypatch, capsys, arguments, message
) -> None:
    for name, content in NO_NOTEBOOKS.items():
        (tmp_path / name).write_bytes(content)
    write(tmp_path / "syntax.ipynb", code("x: int = = 3", "parameters"))
    monkeypatch.chdir(tmp_path)
    if "syntax.ipynb" in arguments and "--out" in arguments:
        write(tmp_path / "syntax.ipynb", code("x: int = 3", "parameters"))
    assert cli(["run", *arguments, "--notebooks", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def lib(*arguments: str, cwd: Path = paths.ROOT) -> subprocess.Popen:
    command = [sys.executable, "-m", "lib", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, **pipes)


def test_a_run_from_another_folder_prints_nothing_on_stderr(
    folder: Path, outputs: Path, tmp_path: Path
) -> None:
    options = ["-p", "beta", "0.1", "-p", "profile", "010", "--no-lesson"]
    process = lib("run", "03_last", "--notebooks", str(folder), *options, cwd=tmp_path)
    printed, error = process.communicate(timeout=120)
    parameters = {"beta": 0.1, "profile": "010"}
    target = notebooks.run_path(folder / "03_last.ipynb", parameters, lesson=False)
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
    _, error = process.communicate(timeout=60)
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


@pytest.mark.parametrize("verb", ["run", "course"])
def test_help_is_there_at_once(verb: str) -> None:
    """Nothing that takes seconds to import is imported for it."""
    heavy = "[m for m in ('torch', 'pandas', 'nbformat', 'papermill') if m in sys.modules]"
    script = f"import sys, atexit; atexit.register(lambda: print('heavy:', {heavy}))\n"
    script += f"from lib.__main__ import main; main([{verb!r}, '--help'])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert ("heavy: []" in done.stdout and "example" in done.stdout) or verb == "course"


def test_a_damaged_run_does_not_cost_the_index(outputs: Path, capsys) -> None:
    run = runs.Run("01_good", "simcse", 1, {"profile": "mini"}, {})
    run.start()
    run.finish({"mini_dev_spearman_best": 60.0})
    assert course._scores() == {"01_good": "simcse 60.0"}
    next(outputs.glob("*/*/metrics.json")).write_text('{"a"')
    assert course._scores() == {} and "No scores" in capsys.readouterr().out


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
    assert refresh.main(["--notebooks", str(tmp_path), "01"]) == 0
    text, node = path.read_text(), nbformat.read(path, 4)
    assert [cell.id for cell in node.cells] == ids
    assert [cell.execution_count for cell in node.cells] == [1, 2, 3]
    assert not any(word in text for word in ("papermill", 'execution":', pages.WIDGET, 'stderr"'))
    still, figure, data = node.cells[1].outputs
    assert still.data["image/png"].strip() == "aGk=" and figure.data["image/png"]
    assert data.text == "None\n" and os.environ["CSE_DATA"] == str(tmp_path)
    assert refresh.main(["--notebooks", str(tmp_path)]) == 0 and path.read_text() == text
    assert not list(outputs.rglob("*.ipynb"))


def test_refresh_leaves_a_failing_notebook_as_it_was(tmp_path: Path, outputs: Path) -> None:
    path = write(tmp_path / "01_a.ipynb", code("print('again')"), code("1 / 0"))
    before = path.read_text()
    assert refresh.main(["--notebooks", str(tmp_path), "01"]) == 1 and path.read_text() == before
