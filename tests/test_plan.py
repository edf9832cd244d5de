"""The dry run of a grid: its runs, and what each lacks."""

import pytest

from lib import paths
from lib.__main__ import main as cli
from lib.runs import Job, grids, plan
from lib.runs.grids import Cell


def test_minutes_are_those_of_steps_and_scores(monkeypatch) -> None:
    grid = grids.read("una_light").at("mini", max_steps=3, batch_size=20)
    grid = grid.changed(cells=grid.cells[1:4], seeds=[42])
    for pace, minutes in (((1200.0, 0.0), 60.0), ((0.0, 1.0), (1 + 2) * 1_800 * 2 / 60)):
        monkeypatch.setattr(plan, "_pace", lambda job, pace=pace: pace)
        table = plan.plan(grid, {})
        assert table["minutes"].tolist() == pytest.approx([minutes] * 3)
        assert not table["missing"].any()


def test_recipes_and_texts_are_timed_each_once_for_all_rates(monkeypatch) -> None:
    grid = grids.read("simcse_light").at("mini", max_steps=3)
    cells = [
        Cell(row=row, set={"method": "simcse", "lr": lr, "batch_size": size, "n_sentences": n})
        for row, lr, size, n in (
            ("a", 1e-4, 8, 256),
            ("b", 3e-4, 8, 256),
            ("c", 1e-4, 16, 256),
            ("d", 1e-4, 8, 512),
        )
    ]
    timed: list[tuple[int, int]] = []

    def pace(job: Job) -> tuple[float, float]:
        timed.append((job.recipe.batch_size, len(job.sentences)))
        return 1.0, 0.0

    monkeypatch.setattr(plan, "_pace", pace)
    plan.plan(grid.changed(cells=cells, seeds=[1, 2]), {})
    assert timed == [(8, 256), (16, 256), (8, 512)]


@pytest.mark.parametrize("method", ["simcse", "sda"])
def test_five_steps_are_timed_here_and_now(method) -> None:
    step, score = plan._pace(Job.of("nb", method, "mini", batch_size=8, device="cpu"))
    assert 0 < step < 60 and 0 < score < 1
    step, score = plan._pace(Job.of("nb", method, "mini", max_steps=0, device="cpu"))
    assert step == 0 and 0 < score < 1


def test_what_is_missing_is_named_one_sentence_each(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert cli(["grid", "una_table_1", "--plan", "--seeds", "42"]) == 1
    printed = capsys.readouterr().out
    for name in ("'bert-base-uncased'", "'roberta-base'", "wiki1m_paraphrases.txt", "wiki1m_for"):
        assert name in printed
    sentences = [line for line in printed.splitlines() if line.startswith("missing: ")]
    assert len(sentences) == len(set(sentences)) and "bert-base" in "".join(sentences)


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
