"""The dry run of a grid: what is missing, and how long the runs take, by five steps of them."""

from dataclasses import replace

import pytest
from tiny import tiny_bert

from lib import paths
from lib.__main__ import main as cli
from lib.runs import Job, grids, plan
from lib.runs.grids import Cell


@pytest.fixture
def nothing_here(tmp_path, monkeypatch) -> None:
    """No real data and no cache of the Hub."""
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def test_minutes_are_those_of_steps_and_scores(monkeypatch, capsys) -> None:
    monkeypatch.setattr(plan, "_timed", lambda job, text: (60 * job.recipe.batch_size, 0.0, ""))
    grid = grids.read("una_light").at("mini", max_steps=3, batch_size=20)
    grid = replace(grid, cells=grid.cells[1:4], seeds=(42,))
    table = plan.plan(grid, {})
    assert table["minutes"].tolist() == [60.0] * 3 and table["steps"].tolist() == [3] * 3
    assert table["sentences"].tolist() == [24_015] * 3 and not table["missing"].any()
    monkeypatch.setattr(plan, "_timed", lambda *_: (0.0, 1.0, ""))
    assert plan.plan(grid, {})["minutes"][0] == (1 + 2) * plan.SCORED["mini"] / 60


@pytest.mark.parametrize("method", ["simcse", "una", "sda", "paraphrase"])
def test_five_steps_are_timed_here_and_now(method) -> None:
    job = Job.of("nb", method, "mini", batch_size=8, device="cpu")
    step, score, error = plan._timed(job, "mini")
    assert 0 < step < 60 and 0 < score < 1 and error == ""


def test_without_data_costs_are_named_and_one_command_suffices(
    nothing_here, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(plan, "_timed", lambda *_: (1.0, 0.0, ""))
    assert cli(["grid", "simcse_light", "--plan", "--rows", "SimCSE"]) == 1
    printed = capsys.readouterr()
    assert "  50000     60      1.0" in printed.out
    assert "about 5 minutes" in printed.out and "timed on the shipped corpus" in printed.out
    assert "wiki1m_for_simcse.txt is missing" in printed.err
    assert printed.err.endswith("`python -m lib data fetch` brings all of it\n")


def test_without_an_encoder_the_time_is_unknown(nothing_here, capsys) -> None:
    assert cli(["grid", "una_table_1", "--plan", "--seeds", "42"]) == 1
    printed = capsys.readouterr()
    assert "0 of" in printed.out and "is unknown before their encoder" in printed.out
    assert "1000000  15625" in printed.out
    assert "'bert-base-uncased'" in printed.err and "'roberta-base'" in printed.err
    assert "wiki1m_paraphrases.txt" in printed.err


def test_what_a_rule_needs_is_looked_for() -> None:
    def lacking(**parameters) -> list[str]:
        grid = grids.read("simcse_light").at("mini")
        job = grids.job_of(grid, Cell("a", "", parameters), 42, {})
        return [said for one in job.inputs if (said := one.missing())]

    assert lacking(method="sda", parser="en_core_web_none") == [
        "no spaCy pipeline 'en_core_web_none': run `python -m spacy download en_core_web_none`"
    ]
    thesaurus = {"positive": "replace_synonyms", "positive_rate": 0.1, "synonyms": "none.tsv"}
    assert "none.tsv" in lacking(method="simcse", **thesaurus)[0]
    assert lacking(method="simcse", max_steps=0, **thesaurus) == []
    assert lacking(method="tfidf") == lacking(method="sif") == []


GRID = """
source: one row
notebook: 02_simcse
profile: mini
metric: mini_dev_spearman_best
seeds: [42]
cells:
  - {{row: only, column: x, set: {{method: simcse, max_steps: 1, model: "{backbone}"}}}}
"""


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (None, [], "is no folder and not in the Hub's cache"),
        ("config.json", [], "config.json"),
        ("tokenizer.json", [], "its files are damaged"),
        ("", ["--device", "gpu"], "device must be 'auto'"),
        ("", ["--profile", "huge"], "huge"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, capsys, change, arguments, message) -> None:
    folder = tmp_path / "model"
    if change is not None:
        tiny_bert(folder)
    if change:
        (folder / change).write_text("{")
    (tmp_path / "grid.yaml").write_text(GRID.format(backbone=folder))
    capsys.readouterr()
    assert cli(["grid", str(tmp_path / "grid.yaml"), "--plan", *arguments]) in (1, 2)
    told = [line for line in capsys.readouterr().err.splitlines() if "timing" not in line]
    lines = [line for line in told if line != "missing:"]
    assert len(lines) == 1 and message in lines[0]
