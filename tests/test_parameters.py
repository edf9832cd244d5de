"""The cell after a notebook's parameters: names and values are checked before anything runs."""

from functools import partial
from typing import Optional

import nbformat
import papermill
import pytest

from lib import paths, runs
from lib.runs import departures, parameters

DECLARED = {"profile": str, "seed": int, "method": str, "beta": float | None, "bucket": bool}
USUAL = {"profile": "mini", "seed": 42, "method": "una", "beta": None, "bucket": True}


def namespace(injected: str = "", **values: object) -> dict[str, object]:
    history = ["", "profile: str = 'mini'", injected, "given = parameters(globals())"]
    return {"__annotations__": DECLARED, "In": history, **USUAL, **values}


def test_parameters_are_those_of_the_cell_as_they_stand_now() -> None:
    assert parameters(namespace(beta=0.3, other=1)) == {**USUAL, "beta": 0.3}
    assert parameters(namespace("# Parameters\nbeta = 0.3\n", beta=0.3))["beta"] == 0.3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": "lots"}, "beta must be a number"),
        ({"beta": 7}, "beta must be less than or equal to 1"),
        ({"method": "unaa"}, "unknown recipe 'mini_unaa': did you mean 'mini_una'"),
        ({"profile": "midi"}, "unknown profile 'midi': did you mean 'mini'"),
    ],
)
def test_a_wrong_value_stops_the_notebook_at_once(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameters(namespace(**values))


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match="no field 'bata': did you mean 'beta'"):
        parameters(namespace("# Parameters\nbata = 0.3\n"))
    with pytest.raises(ValueError, match="after the parameters cell"):
        parameters({"beta": 0.3})


@pytest.mark.parametrize(
    "path", sorted(paths.NOTEBOOKS.glob("0[2-7]_*.ipynb")), ids=lambda p: p.stem
)
@pytest.mark.parametrize(
    "changed", [{}, {"seed": 7}, {"model": "data/mini-bert-30m", "max_steps": 3}]
)
def test_every_notebook_says_how_its_run_differs(path, changed: dict, capsys) -> None:
    cells = {c.id: c.source for c in nbformat.read(path, as_version=4).cells}
    namespace = {"Optional": Optional, "runs": runs, "paths": paths}
    exec(cells["parameters"], namespace)
    namespace |= changed
    exec(cells["derived"], namespace)
    said = {one.split(" = ")[0] for one in namespace["departures"]}
    assert said - {"pooling"} == {"backbone" if name == "model" else name for name in changed}
    assert ("nothing differs from the default" in capsys.readouterr().out) == (not changed)


def test_a_run_differs_in_its_text_and_its_method() -> None:
    given = {"profile": "light", "method": "simcse"}
    said = departures(given, {"corpus": "stsb_train", "bucket": None}, "una")
    assert "profile = light (default mini)" in said
    assert "corpus = stsb_train (default wikipedia)" in said
    assert any(one.startswith("negative = ") for one in said)


def test_a_real_papermill_execution(tmp_path) -> None:
    cell = nbformat.v4.new_code_cell("beta: float = 0.5", metadata={"tags": ["parameters"]})
    check = nbformat.v4.new_code_cell(
        f"import sys; sys.path.insert(0, {str(paths.ROOT)!r})\n"
        "from lib import runs\nprint(runs.parameters(globals()))"
    )
    book = nbformat.v4.new_notebook(cells=[cell, check])
    book.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "P"}
    nbformat.write(book, tmp_path / "in.ipynb")
    run = partial(papermill.execute_notebook, tmp_path / "in.ipynb", tmp_path / "out.ipynb")
    assert "0.3" in str(run({"beta": 0.3}, progress_bar=False).cells[-1].outputs)
    with pytest.raises(papermill.PapermillExecutionError, match="did you mean 'beta'"):
        run({"bata": 0.3}, progress_bar=False)
