"""The dry run of a grid: what is missing, and how long the runs take, by five steps of them."""

import pytest
from tiny import tiny_bert

from lib import paths
from lib.__main__ import main as cli
from lib.runs import Job, grids
from lib.runs.grids import Cell


def test_minutes_are_those_of_steps_and_scores(monkeypatch) -> None:
    grid = grids.read("una_light").at("mini", max_steps=3, batch_size=20)
    grid = grid.changed(cells=grid.cells[1:4], seeds=[42])
    for pace, minutes in (((1200.0, 0.0), 60.0), ((0.0, 1.0), (1 + 2) * 1_800 * 2 / 60)):
        monkeypatch.setattr(grids, "_pace", lambda job, pace=pace: pace)
        table = grids.plan(grid, {}, str)
        assert table["minutes"].tolist() == pytest.approx([minutes] * 3)
        assert table["steps"].tolist() == [3] * 3 and not table["missing"].any()


@pytest.mark.parametrize("method", ["simcse", "una", "sda", "paraphrase"])
def test_five_steps_are_timed_here_and_now(method) -> None:
    step, score = grids._pace(Job.of("nb", method, "mini", batch_size=8, device="cpu"))
    assert 0 < step < 60 and 0 < score < 1


def test_what_is_missing_is_named_one_sentence_each(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert cli(["grid", "una_table_1", "--plan", "--seeds", "42"]) == 1
    printed = capsys.readouterr().out
    for name in ("'bert-base-uncased'", "'roberta-base'", "wiki1m_paraphrases.txt", "wiki1m_for"):
        assert name in printed


def test_what_a_rule_needs_is_looked_for() -> None:
    def lacking(**parameters) -> list[str]:
        grid = grids.read("simcse_light").at("mini")
        job = grids.job_of(grid, Cell(row="a", set=parameters), 42, {})
        return [said for one in job.inputs if (said := one.missing())]

    assert lacking(method="sda", parser="en_core_web_none") == [
        "no spaCy pipeline 'en_core_web_none': `python -m spacy download en_core_web_none`"
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
    ("damaged", "arguments", "message"),
    [
        ("config.json", [], "config.json"),
        ("tokenizer.json", [], "its files are damaged"),
        ("", ["--device", "gpu"], "device must be 'auto'"),
        ("", ["--profile", "huge"], "huge"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, capsys, damaged, arguments, message) -> None:
    folder = tiny_bert(tmp_path / "model")
    if damaged:
        (folder / damaged).write_text("{")
    (tmp_path / "grid.yaml").write_text(GRID.format(backbone=folder))
    capsys.readouterr()
    assert cli(["grid", str(tmp_path / "grid.yaml"), "--plan", *arguments]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "timing" not in line]
    assert len(lines) == 1 and message in lines[0]
