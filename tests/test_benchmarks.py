"""The benchmark scripts run, do the same work on both sides and write their tables. No timing is
asserted.

The scripts themselves are started by `make test-slow`; what they compare with by `make test`.
"""

import importlib
import json

import numpy as np
import pytest
import torch
from tiny import tiny_sentences

from lib import data, paths
from lib.augment.tfidf import TfidfModel, terms_of
from lib.augment.una import UNA
from lib.runs import Job, grids


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Import a module of benchmarks/, which is not installed; the number of threads is put back."""
    monkeypatch.syspath_prepend(str(paths.ROOT))
    threads = torch.get_num_threads()
    yield lambda name: importlib.import_module(f"benchmarks.{name}")
    torch.set_num_threads(threads)


PAIRS = 6 * sum(map(len, data.STS_SUBSETS.values())) + 2 * 12
SCRIPTS: dict[str, dict[str, set[int]]] = {  # sentences of the sides whose names have this word
    "train_speed": {"fp32": {3 * 64}},
    "score_speed": {"": {2 * PAIRS}},
    "gpu": {"": {3 * 64}},
    "gpu_parts": {},
    "many_runs": {},
    "una_speed": {"mini_simcse": {5 * 64}},
    "speedups": {},
    "views_speed": {},
    "sda_speed": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_at_its_smallest(module, tmp_path, monkeypatch, name):
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "outputs"))
    folder = tmp_path / "tables"
    assert module(name).main(["--smoke", "--threads", "1", "--results", str(folder)]) == 0
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".md"]
    (table,) = folder.glob("*.json")
    content = json.loads(table.read_text())
    assert content["machine"]["threads"] == content["settings"]["repetitions"] == 1
    assert all(row["seconds"] and row["seconds"][0] > 0 for row in content["rows"])
    for word, counts in SCRIPTS[name].items():
        assert {row["sentences"] for row in content["rows"] if word in row["side"]} == counts
    for score in content.get("scores", []):
        assert score["STS12"] == pytest.approx(content["scores"][0]["STS12"], abs=0.05)
    assert all(row["synchronisations"] == 0 for row in content.get("counts", []))


def test_no_two_of_many_runs_are_the_same(module, tmp_path):
    many_runs = module("many_runs")
    grid = many_runs.choose(many_runs.arguments(["--profile", "mini", "--results", str(tmp_path)]))
    grids.check(grid)
    jobs = [Job.of("", profile_name="mini", **cell.set) for cell in grid.cells]
    assert len({str(job) for job in jobs}) == len(list(grid.runs())) == 41


SMALL = [*tiny_sentences(60), "a cat sat on a cat", "a a", "dog"]


@pytest.mark.parametrize("radius", [1, 4, 1000])
def test_the_reference_has_our_probabilities_and_windows(module, radius):
    model = TfidfModel.fit(SMALL)
    terms = model.encode(SMALL)
    plain, una = module("una_speed").Plain(model, 0.5, radius), UNA(model, 0.5, radius=radius)
    expected = [p for s in SMALL for p in plain.probabilities(terms_of(s))]
    assert una.probabilities(terms) == pytest.approx(expected, abs=1e-9)
    for number, word in enumerate(model.terms):
        candidates, p = una.window(number)
        words, weights = plain.window(word)
        assert words == [model.terms[i] for i in candidates]
        assert np.array(weights) / sum(weights) == pytest.approx(p)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_says_that_there_is_none(module, tmp_path, capsys):
    assert module("gpu").main(["--results", str(tmp_path)]) == 1
    assert "sees no GPU" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_ratio_is_of_medians(module):
    common = module("common")
    samples = {
        "a": [common.Sample(s, 12) for s in (1.0, 2.0, 4.0)],
        "b": [common.Sample(s, 12) for s in (4.0, 4.0, 8.0)],
    }
    found = common.ratio("a to b", "a", "b", samples)
    assert (found["ratio"], found["lowest"], found["highest"]) == (2.0, 2.0, 4.0)
    assert common.rows(samples)[0]["spread_percent"] == 150.0
