"""The grid files: complete against the papers' tables, valid for the notebook, and read back from
results."""

import statistics
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.feature_extraction.text import TfidfVectorizer

from lib import course, data, evaluate, experiment, grids, paths, results, runs, untrained
from lib.__main__ import main as cli
from lib.augment import sda
from lib.encoder import Encoder
from lib.evaluate.statistics import paired_differences

FILES = sorted(paths.GRIDS.glob("*.yaml"))
# Rows that other people trained, by methods or on encoders that the recipes lack.
ELSEWHERE: dict[str, set[str]] = {
    "una_table_2_step_3_random": {"ablation_row_1", "bert_una"},
    "una_table_d7": {"mean"},
}
ELSEWHERE |= {
    "sda_table_4": {
        *("is_bert", "ct_bert", "consert", "diffcse_bert"),
        *("declutr_roberta", "esimcse_roberta", "diffcse_roberta"),
    }
}
ELSEWHERE |= {"sda_table_5": {"arccse_bert", "diffcse_roberta"}}
ELSEWHERE |= {"consert_table_1": {"consert_sup"}, "consert_table_8": {"consert_sup"}}
OTHERS = ("scd", "mirror", "dclr", "augcse", "diffcse")
ELSEWHERE |= {
    "una_table_d8": {f"roberta_{name}" for name in OTHERS} | {"bert_augcse", "bert_diffcse"}
}

each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_the_tables_of_una() -> None:
    assert {f"una_table_{t}" for t in ("1", "2", "c3", "c4", "c5", "c6", "d7")} <= {
        path.stem for path in FILES
    }


@pytest.mark.parametrize(
    "path", [path for path in FILES if grids.read(path).table], ids=lambda path: path.stem
)
def test_every_row_of_the_paper_is_in_the_grid_and_no_other(path) -> None:
    grid = grids.read(path)
    printed = pd.read_csv(paths.PAPERS / f"{grid.table}.csv", dtype=str).set_index("row_id")
    rows = {cell.row.format(seed=seed) for cell in grid.cells for seed in grid.seeds}
    assert rows == set(printed.index) - ELSEWHERE.get(path.stem, set())
    computed = {"mean"} if path.stem == "backbones_table_1" else set()
    assert {cell.column for cell in grid.cells} <= set(printed.columns) | computed


@each
def test_every_cell_is_a_run_of_the_notebook(path) -> None:
    grid = grids.read(path)
    known = course.parameter_names(course.find_notebook(grid.notebook))
    for cell in grid.cells:
        given = {k: v for k, v in cell.set.items() if k != "method"}
        assert set(given) <= set(known), cell
        if cell.set["method"] not in untrained.METHODS:
            experiment.resolve(grid.profile, cell.set["method"], **given)


@each
def test_different_cells_are_different_runs(path) -> None:
    grid = grids.read(path)
    resolved = []
    for cell in grid.cells:
        if cell.set["method"] in untrained.METHODS:
            continue
        given = {k: v for k, v in cell.set.items() if k != "method"}
        profile, recipe, steps = experiment.resolve(grid.profile, cell.set["method"], **given)
        resolved.append((profile.corpus, steps, sorted(recipe.parameters().items(), key=str)))
    assert len({str(r) for r in resolved}) == len(resolved)


@each
@pytest.mark.parametrize("size", ["mini", "light", "small"])
def test_every_table_has_a_smaller_version(path, size) -> None:
    grid = grids.read(path)
    smaller = grid.at(size)
    if grid.profile == size:
        assert smaller == grid
        return
    if grid.profile == "chinese":
        assert smaller.cells == ()
        return
    known = course.parameter_names(course.find_notebook(grid.notebook))
    assert smaller.cells and {c.row for c in smaller.cells} <= {c.row for c in grid.cells}
    assert size != "mini" or len(smaller.cells) == sum(
        cell.smaller is not None for cell in grid.cells
    )
    for cell in smaller.cells:
        assert size != "mini" or not {"corpus", "transfer_pooling"} & set(cell.set), (
            "there is no such data"
        )
        if cell.set["method"] in untrained.METHODS:
            continue
        assert set(cell.set) <= set(known)
        profile, recipe, _ = experiment.resolve(size, **cell.set)
        shipped = {paths.MINI_BERT, paths.MIDI_BERT, *paths.SIBLINGS.values()}
        assert paths.ROOT / recipe.encoder.backbone in shipped or (
            grid.profile in ("light", "small") and "MiniLM" in recipe.encoder.backbone
        )
        assert recipe.name.startswith(f"{profile.recipes}_")
        assert (
            size != "mini"
            or not recipe.positive.file
            or (paths.ROOT / recipe.positive.file).is_file()
        )
        assert smaller.metric.startswith(
            (f"{profile.dev}_dev", f"{profile.test}_test", "avg_transfer")
        )


def test_a_smaller_table_changes_what_the_paper_changed() -> None:
    cells = {c.row: dict(c.set) for c in grids.read("una_table_c3").at("mini").cells}
    assert cells["pca_jittering"] == {"method": "simcse", "representation": "jitter_pca"}
    assert cells["back_translation"] == {"method": "paraphrase"}
    rates = [c.set["lr"] for c in grids.read("consert_table_10").at("mini").cells]
    assert rates == pytest.approx([40 * lr for lr in (1e-7, 3e-7, 5e-7, 9e-7, 2e-6, 5e-6, 8e-6)])
    assert "paraphrase" not in {
        c.set["method"] for c in grids.read("una_table_1").at("light").cells
    }
    untrained = grids.Cell("a", "", {"method": "paper_simcse_bert", "max_steps": 0})
    raw = grids.Grid("", "05_sda", "full", "sts7_test_avg_best", (1,), (untrained,))
    assert (
        raw.at("light").cells[0].set["max_steps"] == 0
        and raw.at("light", max_steps=7).cells[0].set["max_steps"] == 7
    )
    for size, baseline in (("light", "simcse"), ("small", "simcse_una")):
        assert grids.read("una_table_1").at(size).cells[0].set["method"] == baseline
    assert grids.read("una_table_1").at() == grids.read("una_table_1")
    assert grids.read("una_light").at("light", (7,), max_steps=1).seeds == (7,)


def test_backbones_keep_their_recipe_and_change_their_model() -> None:
    full = {
        c.row: experiment.resolve("full", **c.set)[1] for c in grids.read("backbones_table_1").cells
    }
    assert {r.optimiser.lr for r in full.values()} == {1e-5} and {
        r.objective.temperature for r in full.values()
    } == {0.05}
    assert {row for row, r in full.items() if r.batches.size == 512} == {
        "roberta_base",
        "roberta_large",
    }
    assert {row for row, r in full.items() if r.encoder.pooling == "last_token"} == {
        "gemma_7b",
        "llama2_7b",
    }
    small = {
        c.row: experiment.resolve("light", **c.set)[1]
        for c in grids.read("backbones_table_1").at("light").cells
    }
    assert set(small) == {"albert_base", "bert_base", "bert_large", "llama2_7b", "roberta_base"}
    assert {(r.optimiser.lr, r.batches.size, r.encoder.lora_rank) for r in small.values()} == {
        (0.000166667, 128, 0)
    }
    assert len({r.encoder.backbone for r in small.values()}) == 5


def test_an_untrained_encoder_has_no_seed() -> None:
    runs_of = [(cell.row, seed) for cell, seed in grids.read("backbones_light").runs()]
    assert (
        runs_of.count(("BERT, raw", 42)) == 1
        and ("BERT, raw", 0) not in runs_of
        and ("BERT", 0) in runs_of
    )


def test_a_row_without_a_printed_figure_has_ours_alone() -> None:
    grid = grids.read("backbones_table_1")
    table = grids.beside_paper(grid, recorded(grid, {"bert_base": {42: 75.0}})).set_index("row")
    assert table.loc["bert_base", "mean"] == 75.0 and table["paper"].isna().all()


def test_table_c4_sets_what_the_paper_varied() -> None:
    found = {(c.row, c.column): dict(c.set) for c in grids.read("una_table_c4").cells}
    assert found[("alpha_9", "UNA")] == {"method": "paper_una_bert", "every": 9}
    assert found[("alpha_0", "Paraphrasing & UNA")] == {"method": "paper_paraphrase_bert"}


def test_seeds_are_outermost_and_shared_runs_are_done_once() -> None:
    cells = tuple(
        grids.Cell(row, "", {"method": m})
        for row, m in (("a", "una"), ("b", "simcse"), ("c", "una"))
    )
    grid = grids.Grid("", "04_una", "light", "m", (1, 2), cells)
    assert [(cell.row, seed) for cell, seed in grid.runs()] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
    ]
    assert [seed for _, seed in grid.runs((7,))] == [7, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source: s\nnotebook: 04_una\nprofile: small\nmetric: m\nseeds: [1]\n", "'cells'"),
        ("source: s\nnotebook: n\nprofile: p\nmetric: m\nsead: 1\nseeds: [1]\ncells: []\n", "sead"),
        (
            (
                "source: s\nnotebook: n\nprofile: p\nmetric: m\nseeds: [1]\ncells: [{row: a}, {row:"
                " a}]\n"
            ),
            "stands twice",
        ),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, text, message) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        grids.read(tmp_path / "bad.yaml")


def test_an_unknown_grid_lists_those_there_are() -> None:
    with pytest.raises(FileNotFoundError, match="una_table_c5"):
        grids.read("una_tabel_c5")


def recorded(grid: grids.Grid, scores: dict[str, dict[int, float]]) -> pd.DataFrame:
    """A results table as `lib.runs` writes it, for some rows and seeds of a grid."""
    rows = []
    for cell in grid.cells:
        given = {k: v for k, v in cell.set.items() if k != "method"}
        profile, recipe, steps = experiment.resolve(grid.profile, cell.set["method"], **given)
        for seed, score in scores.get(cell.row, {}).items():
            row = {
                "recipe": recipe.name,
                "profile": profile.name,
                "max_steps": steps,
                "seed": seed,
                "corpus": profile.corpus,
            }
            row |= {
                **recipe.parameters(),
                "backbone": experiment.portable(recipe.encoder.backbone),
                grid.metric: score,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def test_runs_are_found_in_their_cells_after_a_round_trip(tmp_path) -> None:
    grid = grids.read("una_light")
    scores = {
        cell.row: {seed: 10.0 * i + j for j, seed in enumerate(grid.seeds)}
        for i, cell in enumerate(grid.cells)
    }
    recorded(grid, scores).to_csv(tmp_path / "r.csv", index=False)
    found = grids.collect(grid, pd.read_csv(tmp_path / "r.csv"))
    assert {(r.row, r.seed): r.sts7_test_avg_last for r in found.itertuples()} == {
        (row, seed): score for row, by_seed in scores.items() for seed, score in by_seed.items()
    }


def test_runs_on_another_training_text_stay_apart() -> None:
    cells = tuple(
        grids.Cell(c, "", {"method": "consert", "corpus": c})
        for c in ("sts_unlabelled", "stsb_train")
    )
    grid = grids.Grid("", "03_consert", "light", "m", (42,), cells)
    found = grids.collect(
        grid, recorded(grid, {"sts_unlabelled": {42: 1.0}, "stsb_train": {42: 2.0}})
    )
    assert found.set_index("row")["m"].to_dict() == {"sts_unlabelled": 1.0, "stsb_train": 2.0}


def test_beside_paper_is_the_mean_over_seeds_and_the_printed_figure() -> None:
    grid = grids.read("una_table_1")
    table = grids.beside_paper(grid, recorded(grid, {"bert_una": {42: 75.0}})).set_index("row")
    assert table.loc["bert_una", ["paper", "n", "collapsed", "mean"]].tolist() == [
        76.14,
        1,
        0,
        75.0,
    ]
    assert np.isnan(table.loc["bert_una", "sd"])
    assert table.loc["bert_simcse", "n"] == 0 and np.isnan(table.loc["bert_simcse", "mean"])


def test_the_sd_is_that_of_a_sample_and_the_paper_in_our_unit() -> None:
    grid = replace(grids.read("una_table_1").at(seeds=(42, 0, 1)), factor=10.0)
    table = grids.beside_paper(
        grid, recorded(grid, {"bert_una": {42: 70.0, 0: 72.0, 1: 77.0}})
    ).set_index("row")
    line = table.loc["bert_una"]
    assert (line["paper"], line["n"], line["mean"]) == (7.61, 3, 73.0)
    assert line["sd"] == pytest.approx(statistics.stdev([70.0, 72.0, 77.0]))


def test_a_collapsed_seed_is_counted_and_never_left_out_of_a_mean() -> None:
    grid = grids.read("una_table_1").at(seeds=(42, 0, 1))
    scores = {
        "bert_una": {42: 70.0, 0: 72.0, 1: np.nan},
        "bert_simcse": {42: 69.0, 0: 69.0, 1: 69.0},
    }
    results = recorded(grid, scores)
    results["collapsed"] = [
        "" if value == value else f"loss_last {grid.metric}" for value in results[grid.metric]
    ]
    line = grids.beside_paper(grid, results).set_index("row").loc["bert_una"]
    assert (line["n"], line["collapsed"]) == (3, 1) and np.isnan([line["mean"], line["sd"]]).all()
    found = paired_differences(grids.collect(grid, results), grid.metric, "bert_simcse")
    assert (
        found.loc["bert_una", "seeds"] == 3
        and np.isnan(found.loc["bert_una", ["mean", "95 % ±"]].tolist()).all()
    )
    without = results.assign(collapsed="")
    line = grids.beside_paper(grid, without).set_index("row").loc["bert_una"]
    assert (line["n"], line["collapsed"], line["mean"]) == (2, 0, 71.0), (
        "a run that has no such metric is no collapse"
    )
    alone = results[results["seed"] == 1].drop(columns=grid.metric)
    line = grids.beside_paper(grid, alone).set_index("row").loc["bert_una"]
    assert (line["n"], line["collapsed"]) == (1, 1)


def test_runs_of_two_versions_of_the_rules_are_not_mixed() -> None:
    grid = grids.read("sda_light")
    row = next(cell.row for cell in grid.cells if cell.set["method"] == "sda")
    old, new = (
        recorded(grid, {row: {seed: score for seed in seeds}})
        for seeds, score in (((42, 0), 1.0), ((42,), 2.0))
    )
    for frame, rules in ((old, sda.VERSION - 1), (new, sda.VERSION)):
        frame["rules"] = rules
    both = grids.collect(grid, pd.concat([new, old], ignore_index=True))
    assert both[grid.metric].tolist() == [2.0] and grids.note(both) == ""
    found = grids.collect(grid, old)
    assert set(found["seed"]) == {42, 0} and grids.note(found).startswith(
        "2 of these 2 runs were made under an older"
    )
    assert grids.note(found.drop(columns="rules")) == ""


def kinds(*found: tuple[dict[int, float], dict[str, object]]) -> list[float]:
    """Scores that `collect` finds of SimCSE's row, whatever the order of the rows."""
    grid = grids.read("una_light")
    tables = [recorded(grid, {"SimCSE": scores}).assign(**columns) for scores, columns in found]
    both = [
        grids.collect(grid, pd.concat(order, ignore_index=True))[grid.metric].tolist()
        for order in (tables, tables[::-1])
    ]
    assert both[0] == both[1]
    return both[0]


def test_a_row_holds_runs_of_one_kind_whatever_their_order() -> None:
    bf16, fp32 = {"precision": "bf16"}, {"precision": "fp32"}
    assert kinds(({42: 1.0, 0: 2.0}, bf16), ({42: 3.0}, fp32)) == [1.0, 2.0]
    assert kinds(({42: 1.0}, bf16), ({42: 3.0, 1: 4.0}, fp32)) == [3.0, 4.0]
    first, second = {"results_version": 1}, {"results_version": 2}
    assert kinds(({42: 1.0}, first), ({42: 2.0}, second)) == [2.0]
    assert kinds(({42: 1.0, 0: 1.0}, first), ({42: 2.0}, second)) == [1.0, 1.0]
    assert kinds(({42: 1.0}, {"compile": True}), ({0: 2.0, 1: 3.0}, {})) == [2.0, 3.0]


def test_two_runs_of_one_row_and_seed_are_refused_by_name() -> None:
    grid = grids.read("una_light")
    rows = recorded(grid, {"SimCSE": {42: 1.0, 0: 2.0}}).assign(run_id=["old-s42", "old-s0"])
    again = recorded(grid, {"SimCSE": {42: 3.0}}).assign(run_id="new-s42")
    with pytest.raises(ValueError, match=r"'SimCSE'.*: old-s42, new-s42. .*their data"):
        grids.collect(grid, pd.concat([rows, again], ignore_index=True))


def test_runs_on_less_text_are_not_those_of_the_profile() -> None:
    whole = {"n_sentences": experiment.resolve("light", "simcse")[0].n_sentences}
    assert kinds(({0: 1.0}, whole), ({42: 2.0, 1: 3.0}, {"n_sentences": 1000})) == [1.0]


def test_what_trains_nothing_is_found_at_any_seed_and_once() -> None:
    grid = grids.read("simcse_small").at(seeds=(42,))
    table = pd.DataFrame({"recipe": ["small_tfidf"], "seed": 0, grid.metric: 58.0})
    assert grids.collect(grid, table)["row"].tolist() == ["TF-IDF"]


def test_committed_rows_of_the_rules_say_their_version() -> None:
    results = pd.read_csv(paths.RESULTS / "05_sda.csv")
    found = grids.collect(grids.read("sda_light"), results)
    old = int((found["rules"] == 2).sum())
    expected = (
        f"{old} of these {len(found)} runs were made under an older version of SDA's rules (2;"
        " today's is "
    )
    assert old > 40 and grids.note(found) == f"{expected}{sda.VERSION})."


def test_beside_paper_without_any_result() -> None:
    empty = pd.DataFrame({"seed": [], "recipe": []})
    assert grids.beside_paper(grids.read("una_table_d7"), empty)["n"].sum() == 0


def test_table_d7_puts_each_seed_in_its_row() -> None:
    grid = grids.read("una_table_d7")
    results = recorded(grid, {"seed_{seed}": {42: 76.0, 0: 75.0}})
    table = grids.beside_paper(grid, results).set_index(["row", "column"])
    assert (
        table.loc[("seed_0", "SimCSE"), "mean"] == 75.0
        and table.loc[("seed_0", "SimCSE"), "paper"] == 75.26
    )
    assert table.loc[("seed_1", "SimCSE"), "n"] == 0


def test_rows_without_training_are_one_run_each() -> None:
    grid = grids.read("simcse_light")
    found = [(cell.row, seed) for cell, seed in grid.runs()]
    assert (
        found.count(("TF-IDF", 42)) == found.count(("as pre-trained", 42)) == 1
        and len(found) == 5 + 5 * 2
    )
    table = grids.collect(grid, pd.read_csv(paths.RESULTS / "02_simcse.csv"))
    assert table.groupby("row").size()[["TF-IDF", "SimCSE"]].tolist() == [1, 5]


def test_a_method_without_training_is_a_run_done_once(little) -> None:
    record = untrained.run("02_simcse", "tfidf", "mini")
    vectorizer = TfidfVectorizer().fit(data.corpus("mini"))
    for split in ("dev", "test"):
        expected = evaluate.pairs_spearman(
            evaluate.bag_of_words_encode(vectorizer), data.mini_pairs(split)
        )
        assert record.metrics[f"mini_{split}_spearman_last"] == pytest.approx(expected)
    before = record.folder.stat().st_mtime_ns
    assert (
        untrained.run("02_simcse", "tfidf", "mini").id == record.id
        and record.folder.stat().st_mtime_ns == before
    )
    vectors = untrained.run("02_simcse", "sif", "mini").metrics["mini_test_spearman_last"]
    assert (
        vectors
        != untrained.run("02_simcse", "word_vectors", "mini").metrics["mini_test_spearman_last"]
    )
    with pytest.raises(
        ValueError, match="unknown method without training 'tf': choose one of bag_of_words, tfidf"
    ):
        untrained.run("02_simcse", "tf", "mini")


def test_input_embeddings_are_those_of_the_encoder_that_a_cell_names(little) -> None:
    usual = untrained.run("06_backbones", "sif", "mini")
    assert untrained.record("06_backbones", "sif", "mini", model="data/mini-bert").id == usual.id
    other = untrained.run("06_backbones", "sif", "mini", model="data/mini-albert")
    written = str(paths.DATA / "mini-albert") + "/"
    assert untrained.record("06_backbones", "sif", "mini", model=written).id == other.id
    assert other.id != usual.id and other.params["vectors"] == "data/mini-albert"
    encoder = Encoder.load(paths.SIBLINGS["ALBERT"])
    matrix = encoder.backbone.get_input_embeddings().weight.detach().numpy()
    counts = evaluate.token_counts(data.corpus("mini"), encoder.tokenizer)
    encode = evaluate.word_vectors_encode(matrix, encoder.tokenizer, counts)
    expected = evaluate.pairs_spearman(encode, data.mini_pairs("test"))
    assert other.metrics["mini_test_spearman_last"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="tfidf takes no model"):
        untrained.run("06_backbones", "tfidf", "mini", model="data/mini-albert")


def test_rows_without_training_are_told_apart_by_their_encoder(little) -> None:
    chosen = ["midi-BERT, input embeddings", "ALBERT, input embeddings", "TF-IDF"]
    grid = grids.read("backbones_small").at("mini")
    grid = replace(grid, cells=tuple(cell for cell in grid.cells if cell.row in chosen))
    done, failed = grids.train(grid, {"data_dir": None, "device": "cpu"}, lambda line: None)
    assert len(done) == 3 and not failed
    found = grids.collect(grid, runs.collect(notebook="06_backbones"))
    by_row = found.set_index("row")
    assert set(by_row.index) == set(chosen) and by_row["run_id"].is_unique
    assert pd.isna(by_row.loc["midi-BERT, input embeddings", "vectors"])
    assert by_row.loc["ALBERT, input embeddings", "vectors"] == "data/mini-albert"
    known = grids.conditions_of(found)
    assert {grids.condition(grid, cell) for cell in grid.cells} == known and len(known) == 3


def test_list_prints_the_runs_and_trains_nothing(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path))
    cli(["grid", "una_table_c6", "--list"])
    assert len(capsys.readouterr().out.splitlines()) == 12 and not list(tmp_path.iterdir())
    assert cli(["grid", "una_table_c7"]) == 2 and "no grid" in capsys.readouterr().err


@pytest.fixture
def little(tmp_path, monkeypatch, outputs):
    """The mini profile on 60 sentences and 60 pairs; gives the outputs folder."""
    folder = tmp_path / "mini"
    folder.mkdir()
    for name in ("corpus.txt", "sts_dev.tsv", "sts_test.tsv"):
        lines = (paths.MINI / name).read_text(encoding="utf-8").splitlines()[:61]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(paths, "MINI", folder)
    return outputs


def tiny_grid(folder, name="tiny", **changes) -> str:
    """A grid file of two rows and one run."""
    cell = {"method": "una"}
    content = {
        "source": "s",
        "notebook": "04_una",
        "profile": "mini",
        "metric": "mini_test_spearman_last",
        "seeds": [3],
    }
    content |= {"common": {"max_steps": 1, "batch_size": 4}}
    content |= {"cells": [{"row": "a", "set": cell}, {"row": "b", "set": cell}]} | changes
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return str(folder / f"{name}.yaml")


def test_a_grid_trains_what_is_missing_and_writes_results(
    tmp_path, little, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(results, "save", lambda notebook, only: tmp_path / notebook)
    grid = tiny_grid(tmp_path)
    cli(["grid", grid])
    (finished,) = little.glob("04_una/*/metrics.json")
    before = finished.stat().st_mtime_ns
    cli(["grid", grid])
    assert finished.stat().st_mtime_ns == before
    cli(["grid", grid, "--rows", "b"])
    printed = capsys.readouterr().out
    assert (
        printed.count("a, seed 3: mini_test_spearman_last") == 2
        and printed.count("b, seed 3: mini_test") == 1
    )


def test_results_are_written_of_whole_runs_of_this_grid_alone(monkeypatch) -> None:
    saved = []
    monkeypatch.setattr(grids, "check", lambda grid: None)
    monkeypatch.setattr(grids, "on_text_at_hand", lambda grid, data_dir: grid)
    monkeypatch.setattr(grids, "train", lambda grid, options, say, jobs: ({"mini_una-1-s0"}, []))
    monkeypatch.setattr(results, "save", lambda notebook, only: saved.append((notebook, only)))
    for options in ([], ["--max-steps", "3"], ["--profile", "mini"]):
        assert cli(["grid", "una_light", *options]) == 0
    assert saved == [("04_una", {"mini_una-1-s0"})]


def test_every_failure_is_one_line_and_the_others_go_on(
    tmp_path, little, monkeypatch, capsys
) -> None:
    broken = {"row": "c", "set": {"method": "una", "model": "no/such"}}
    grid = tiny_grid(
        tmp_path,
        cells=[
            broken,
            {"row": "d", "set": {"method": "una"}},
            {"row": "e", "set": {"method": "simcse"}},
        ],
    )
    done = experiment.run

    def run(notebook, method, *arguments, **options):
        if method == "simcse":
            raise KeyError("inside\nsomething")
        return done(notebook, method, *arguments, **options)

    monkeypatch.setattr(experiment, "run", run)
    assert cli(["grid", grid]) == 1
    printed = capsys.readouterr()
    assert "2 of 3 runs failed" in printed.err
    lines = [line for line in printed.out.splitlines() if "seed 3" in line]
    assert lines[0].startswith("FAILED c, seed 3: cannot load the model 'no/such'")
    assert lines[1].startswith("d, seed 3: mini_test_spearman_last") and lines[2].startswith(
        "FAILED e, seed 3: KeyError: "
    )


def test_every_run_gets_its_seed_and_the_options(tmp_path, little, monkeypatch) -> None:
    asked = []

    def run(notebook, method, profile_name, **options):
        asked.append((notebook, method, profile_name, options))
        raise ValueError("enough")

    monkeypatch.setattr(experiment, "run", run)
    assert (
        cli(
            [
                "grid",
                tiny_grid(tmp_path),
                "--seeds",
                "5",
                "6",
                "--device",
                "cpu",
                "--data-dir",
                "here",
            ]
        )
        == 1
    )
    common = {"max_steps": 1, "batch_size": 4, "device": "cpu", "data_dir": "here"}
    assert asked == [("04_una", "una", "mini", {"seed": seed, **common}) for seed in (5, 6)]


def test_a_metric_that_no_run_has_is_told_before_the_training(tmp_path, outputs, capsys) -> None:
    assert cli(["grid", tiny_grid(tmp_path, metric="mini_tset_spearman_last")]) == 2
    message = "row 'a' has no metric 'mini_tset_spearman_last': did you mean 'mini_test_spe"
    assert message in capsys.readouterr().err
    assert not outputs.exists()
    for grid in map(grids.read, FILES):
        grids.check(grid)


def test_the_text_at_hand_is_that_of_the_grid(tmp_path, monkeypatch) -> None:
    grid = grids.read("consert_light")
    monkeypatch.setattr(
        data, "at_hand", lambda name, data_dir=None: "wiki1m" if name == "wikipedia" else name
    )
    with pytest.warns(UserWarning, match="wiki1m"):
        found = grids.on_text_at_hand(grid)
    texts = {cell.row: cell.set for cell in found.cells}
    assert texts["ConSERT-unsup, Wikipedia"]["corpus"] == "wiki1m"
    assert texts["ConSERT-unsup, Wikipedia"]["n_sentences"] == 50_000
    assert texts["ConSERT-unsup, STS sentences"]["corpus"] == "sts_unlabelled"
    assert "n_sentences" not in texts["ConSERT-unsup, STS sentences"]


def test_a_damaged_run_is_named_by_the_table(tmp_path, outputs, capsys) -> None:
    folder = outputs / "04_una" / "a-0-s1"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text("{}")
    assert cli(["grid", tiny_grid(tmp_path), "--table", str(tmp_path / "t.csv")]) == 2
    assert "a-0-s1/params.json is damaged" in capsys.readouterr().err


def test_a_table_names_the_rows_without_a_run(tmp_path, outputs, capsys) -> None:
    assert cli(["grid", tiny_grid(tmp_path), "--table", str(tmp_path / "t.csv")]) == 1
    assert capsys.readouterr().err.strip().endswith("of: a; b")
    assert cli(["grid", tiny_grid(tmp_path), "--table", str(tmp_path / "t.md")]) == 2
    assert "call the file t.csv" in capsys.readouterr().err
    assert (tmp_path / "t.csv").read_text().startswith("row,column,paper,n,collapsed,mean,sd\n")


def test_a_summary_of_rows_counts_a_collapsed_seed_and_not_a_metric_that_a_run_has_not() -> None:
    seeds = {"row": ["b", "b", "b", "a", "a"], "seed": [0, 1, 2, 0, 1]}
    runs_of = pd.DataFrame(
        {**seeds, "score": [70.0, np.nan, 74.0, 1.0, np.nan], "other": [1.0, 2.0, 6.0, 4.0, 8.0]}
    )
    runs_of["collapsed"] = ["", "loss score", "", "", "loss"]
    table = grids.summary(runs_of, {"STS": "score", "SICK": "other"})
    assert table.index.tolist() == ["b", "a"] and table.columns.tolist() == ["seeds", "STS", "SICK"]
    assert table.loc["b"].tolist() == [3, "– (1 of 3 collapsed)", "3.00 ± 2.65"]
    assert table.loc["a"].tolist() == [2, "1.00", "6.00 ± 2.83"]


@pytest.mark.parametrize(("name", "first"), [("quoted_{}", 0), ("una_{}_curves", 1)])
def test_a_light_grid_trains_the_rows_of_the_small_one(name, first):
    light, small = grids.read(name.format("light")), grids.read(name.format("small"))
    same = [[(c.row, dict(c.set)) for c in g.cells[first:]] for g in (light, small.at("light"))]
    assert same[0] == same[1] and light.cells[0].row == "SimCSE"
    assert light.seeds == small.seeds and light.common == grids.read("una_light").common


def test_the_controls_of_light_are_those_of_small_beside_the_rules_of_sda_light():
    light, small = (grids.read(f"sda_{size}_controls") for size in ("light", "small"))
    rules = {c.row: dict(c.set) for c in grids.read("sda_light").cells}
    edits = {c.row: dict(c.set) for c in small.at("light").cells}
    assert light.common == grids.read("sda_light").common and light.seeds == small.seeds
    for cell in light.cells:
        own = rules.get(cell.row) or {k: v for k, v in edits[cell.row].items() if k != "head"}
        assert dict(cell.set) == own, cell.row


def test_the_strengths_of_light_are_those_of_una_light_and_of_una_small():
    def vectors(name):
        sets = [c.set for c in grids.read(name).cells if "representation" in c.set]
        return {(s["representation"], s.get("representation_strength", 0.1)) for s in sets}

    assert vectors("una_light_strengths") == vectors("una_light") | vectors("una_small")
    assert grids.read("una_light_strengths").common == grids.read("una_light").common


def test_the_negations_of_light_are_sda_lights_at_deltas_of_the_small_curves():
    light, small = grids.read("sda_light_negation"), grids.read("sda_small_curves")
    known = [dict(c.set) for c in grids.read("sda_light").cells]
    deltas = {c.set.get("delta") for c in small.cells if c.set["method"] == "negation"}
    for cell in light.cells:
        turned = ("delta", "dropout")
        assert {k: v for k, v in cell.set.items() if k not in turned} in known, cell.row
        assert cell.set.get("delta", 0.5) in deltas and cell.set.get("dropout", 0.1) == 0.1
    shared = {c.row for c in light.cells if dict(c.set) in known}
    assert shared == {"SimCSE", "delta 0.5"}


def test_the_curves_of_light_turn_what_those_of_small_turn():
    light, small = (
        {name for cell in grids.read(f"simcse_{size}_curves").cells for name in cell.set}
        for size in ("light", "small")
    )
    assert light == small - {"positive", "dropout"}  # 1,000 steps with one mask and with none


def test_a_table_names_the_row_whose_encoder_is_not_here(little) -> None:
    grid = grids.read("backbones_small").at("mini", (7,))
    cells = [c for c in grid.cells if c.row in ("TF-IDF", "ALBERT, input embeddings")]
    lost = replace(cells[1], set={**cells[1].set, "model": "data/no-such-encoder"})
    options = {"data_dir": None, "device": "cpu"}
    table, said = grids.table_of(replace(grid, cells=(cells[0], lost)), options)
    assert said.startswith(f"FAILED {lost.row}, seed 7: ") and "no-such-encoder" in said
    assert table.set_index("row")["n"].to_dict() == {cells[0].row: 1, lost.row: 0}
