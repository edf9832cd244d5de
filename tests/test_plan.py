"""The dry run of a grid: its runs, and what each lacks."""

from lib import paths
from lib.__main__ import main as cli
from lib.runs import grids
from lib.runs.grids import Cell


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
