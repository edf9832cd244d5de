"""One run from parameters to metrics, on data and an encoder of the test's own."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from tiny import tiny_bert, tiny_recipe, tiny_sentences

from lib import data, evaluate, paths, profiles, recipes, runs, train
from lib.data import Pairs
from lib.encoder import Encoder
from lib.profiles import PROFILES, Profile, profile
from lib.recipes import RECIPES, recipe
from workflow import experiment
from workflow.experiment import model_hash, model_path, resolve, run, text_hash


def pairs(name: str, seed: int, n: int = 40) -> Pairs:
    """Random pairs graded by the words they share."""
    first, second = tiny_sentences(n, seed), tiny_sentences(n, seed + 1)
    second[: n // 4] = first[: n // 4]
    shared = [len(set(a.split()) & set(b.split())) for a, b in zip(first, second, strict=True)]
    return Pairs(name, first, second, np.minimum(np.array(shared, float), 5.0))


@pytest.fixture
def tiny(tmp_path, monkeypatch, outputs):
    """A profile `tiny` with 64 sentences, 6 steps and a dev score every 3."""
    tiny_bert(tmp_path / "bert")
    monkeypatch.setitem(
        PROFILES, "tiny", Profile("tiny", "mini", str(tmp_path / "bert"), "mini", 64, 6, 3, "mini", "mini")
    )
    monkeypatch.setitem(RECIPES, "mini_simcse", tiny_recipe())
    monkeypatch.setattr(data, "corpus", lambda name, data_dir=None, n=None, seed=0: tiny_sentences(n))
    monkeypatch.setattr(data, "mini_pairs", lambda split: pairs(split, {"dev": 10, "test": 20}[split]))
    return outputs


@pytest.fixture
def trained(monkeypatch):
    """Counts the steps that are really taken."""
    steps = []
    step = train._Loop.step
    monkeypatch.setattr(train._Loop, "step", lambda self, *a: steps.append(a[0]) or step(self, *a))
    return steps


def test_end_to_end(tiny, trained):
    record = run("02_simcse", "simcse", "tiny", device="cpu", precision="fp32")
    assert trained == list(range(6))
    assert record.folder.parent == tiny.resolve() / "02_simcse" and record.id.endswith("-s42")
    metrics = record.metrics
    assert metrics["steps"] == 6 and metrics["best_step"] in (3, 6)
    history = record.history()
    assert history["step"].tolist() == [1, 2, 3, 4, 5, 6]
    scores = history["dev_score"].dropna().tolist()
    assert metrics["mini_dev_spearman_last"] == scores[-1] and metrics["mini_dev_spearman_best"] == max(scores)
    assert metrics["loss_last"] == pytest.approx(history["loss"].mean())
    assert metrics["train_seconds"] > 0 and metrics["sentences_per_second"] > 0 and metrics["peak_rss_gib"] > 0
    for which in ("best", "last"):
        encoder = Encoder.load(record.folder / which)
        expected = experiment.test_metrics(encoder, profile("tiny"), recipe("mini_simcse"), which, precision="fp32")
        assert expected["mini_test_spearman_" + which] == pytest.approx(metrics["mini_test_spearman_" + which])
        assert len(expected) > 3 and expected.keys() <= metrics.keys()
        for name in ("alignment", "uniformity", "effective_rank"):
            assert expected[f"dev_{name}_{which}"] == pytest.approx(metrics[f"dev_{name}_{which}"], rel=1e-5)
    params = json.loads((record.folder / "params.json").read_text())
    assert params["max_steps"] == 6 and params["lr"] == 1e-3 and params["n_sentences"] == 64
    assert params["eval_every"] == 3 and params["data"]["corpus"] == text_hash(tiny_sentences(64))
    table = runs.collect()
    assert table["mini_test_spearman_best"].tolist() == [metrics["mini_test_spearman_best"]]


def scripted_scores(monkeypatch, *values):
    left = iter(values)
    monkeypatch.setattr(experiment.evaluate, "pairs_spearman", lambda known, pairs: next(left))


def test_a_dev_score_keeps_the_embeddings_of_the_best_and_the_last(tiny, monkeypatch, auto_precision):
    dev = experiment.DevScore(profile("tiny"), recipe("mini_simcse"))
    encoder = Encoder.load(profile("tiny").model, eval_pooling="mean")
    weight = encoder.backbone.get_input_embeddings().weight
    scripted_scores(monkeypatch, 1.0, 3.0, 3.0, 2.0)
    geometries = []
    for _ in range(4):
        with torch.no_grad():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(len(geometries))))
        dev(encoder)
        geometries.append(experiment.evaluate.geometry(encoder.encode, dev.pairs))
    encoded = []
    monkeypatch.setattr(encoder, "encode", lambda *a, **k: encoded.append(1) or Encoder.encode(encoder, *a, **k))
    assert dev.geometry(encoder, "best", 3.0) == pytest.approx(geometries[1])  # the first of two equal scores
    assert dev.geometry(encoder, "last", 2.0) == pytest.approx(geometries[3]) and not encoded
    assert dev.geometry(encoder, "best", 5.0) == pytest.approx(geometries[3]) and encoded == [1]


def test_a_finished_run_is_not_done_again(tiny, trained):
    first = run("nb", "simcse", "tiny", device="cpu")
    assert len(trained) == 6
    assert run("nb", "simcse", "tiny", device="cpu").metrics == first.metrics and len(trained) == 6
    again = run("nb", "simcse", "tiny", device="cpu", force=True)
    assert len(trained) == 12 and again.id == first.id
    assert again.metrics["loss_last"] == first.metrics["loss_last"]
    assert run("nb", "simcse", "tiny", seed=1, device="cpu").id != first.id and len(trained) == 18
    assert run("nb", "simcse", "tiny", temperature=0.5, device="cpu").id != first.id and len(trained) == 24


def test_an_interrupted_run_is_taken_up(tiny, trained, monkeypatch, tmp_path):
    elsewhere = str(tmp_path / "whole")
    expected = run("nb", "simcse", "tiny", device="cpu", precision="fp32", output_dir=elsewhere)
    with monkeypatch.context() as patch:
        step = train._Loop.step

        def interrupted(self, number, rows):
            if number == 4:
                raise KeyboardInterrupt
            step(self, number, rows)

        patch.setattr(train._Loop, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("nb", "simcse", "tiny", device="cpu", precision="fp32")
    del trained[:]
    record = run("nb", "simcse", "tiny", device="cpu", precision="fp32")
    assert trained == [3, 4, 5]
    timed = {"train_seconds", "sentences_per_second", "peak_rss_gib"}
    assert {k: v for k, v in record.metrics.items() if k not in timed} == {
        k: v for k, v in expected.metrics.items() if k not in timed
    }


def test_no_steps_is_an_evaluation(tiny, trained):
    record = run("nb", "simcse", "tiny", max_steps=0, device="cpu", precision="fp32")
    encoder = Encoder.load(profile("tiny").model, eval_pooling="mean")
    expected = experiment.DevScore(profile("tiny"), recipe("mini_simcse"), precision="fp32")(encoder)
    assert trained == [] and record.metrics["steps"] == 0
    assert record.metrics["mini_dev_spearman_last"] == pytest.approx(expected)
    assert record.metrics["mini_test_spearman_last"] == record.metrics["mini_test_spearman_best"]
    assert not (record.folder / "last").exists()


def test_whitened_scores_are_those_of_vectors_whitened_by_hand(tiny):
    pairs, wanted = data.mini_pairs("test"), recipe("mini_simcse", whiten=True)
    encoder = Encoder.load(profile("tiny").model, eval_pooling="mean")
    distinct = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    x = encoder.encode(distinct, precision="fp32").astype(float)
    x = x - x.mean(0)
    inverse = np.linalg.pinv(np.cov(x.T, bias=True), rcond=1e-9, hermitian=True)
    one, two = (x[[distinct.index(s) for s in side]] for side in (pairs.sentence1, pairs.sentence2))
    products = [np.einsum("ni,ij,nj->n", a, inverse, b) for a, b in ((one, two), (one, one), (two, two))]
    cosines = products[0] / np.sqrt(products[1] * products[2])
    encode = experiment.encode_as(encoder, wanted, "fp32")
    assert evaluate.similarities(encode, pairs) == pytest.approx(cosines, abs=1e-6)
    record = run("06_backbones", "simcse", "tiny", max_steps=0, whiten=True, device="cpu", precision="fp32")
    assert record.metrics["mini_test_spearman_last"] == evaluate.pairs_spearman(encode, pairs)
    plain = run("06_backbones", "simcse", "tiny", max_steps=0, device="cpu", precision="fp32")
    assert plain.id != record.id and "whiten" not in json.loads((plain.folder / "params.json").read_text())


def test_a_parameter_given_explicitly_wins(tiny, trained, tmp_path):
    tiny_bert(tmp_path / "other", seed=9)
    changes = {"lr": 2e-3, "eval_every": 2, "batch_size": 4, "eval_pooling": "cls", "temperature": None}
    record = run("nb", "simcse", "tiny", max_steps=4, model=str(tmp_path / "other"), device="cpu", **changes)
    assert trained == [0, 1, 2, 3]
    history = record.history()
    assert history["lr"].tolist() == [2e-3, 1.5e-3, 1e-3, 5e-4]
    assert history["dev_score"].notna().tolist() == [False, True, False, True]
    params = json.loads((record.folder / "params.json").read_text())
    assert (
        params["backbone"] == str(tmp_path / "other")
        and params["temperature"] == recipes.recipe("mini_simcse").temperature
    )
    assert params["batch_size"] == 4 and Encoder.load(record.folder / "last").settings["eval_pooling"] == "cls"


def test_output_dir_is_honoured(tiny, tmp_path):
    record = run("nb", "simcse", "tiny", max_steps=1, output_dir=str(tmp_path / "mine"), device="cpu")
    assert record.folder.parent == tmp_path / "mine" / "nb" and record.metrics["steps"] == 1
    assert not tiny.exists()


def test_resolve_follows_the_profile_and_the_explicit_parameters():
    chosen, wanted, steps = resolve("mini", "simcse")
    assert (chosen.name, wanted.name, steps) == ("mini", "mini_simcse", PROFILES["mini"].max_steps)
    assert wanted.backbone == str(paths.MINI_BERT) and wanted.eval_every == PROFILES["mini"].eval_every
    assert resolve("mini", "simcse", max_steps=0)[2] == 0 and resolve("mini", "simcse", max_steps=7)[2] == 7
    assert resolve("mini", "simcse", eval_every=9)[1].eval_every == 9
    assert resolve("mini", "simcse", model="some/model")[1].backbone == "some/model"
    assert resolve("mini", "simcse", lr=None)[1].lr == recipe("mini_simcse").lr
    assert resolve("mini", "paper_simcse_bert")[1].temperature == 0.05
    with pytest.raises(ValueError, match="did you mean 'temperature'"):
        resolve("mini", "simcse", temprature=1.0)
    with pytest.raises(ValueError, match="unknown profile 'large'"):
        resolve("large", "simcse")
    with pytest.raises(ValueError, match="unknown recipe"):
        resolve("mini", "no_such")


@pytest.mark.parametrize(
    ("method", "model", "name", "backbone"),
    [
        ("simcse", None, "paper_simcse_bert", "bert-base-uncased"),
        ("simcse", "roberta-base", "paper_simcse_roberta", "roberta-base"),
        ("simcse_roberta_una", None, "paper_simcse_roberta_una", "roberta-base"),
        ("paper_simcse_roberta", None, "paper_simcse_roberta", "roberta-base"),
        ("mini_simcse", None, "mini_simcse", "data/mini-bert"),
    ],
)
def test_resolve_at_full_picks_the_papers_recipe(method, model, name, backbone):
    _, wanted, steps = resolve("full", method, model)
    assert (wanted.name, wanted.backbone, steps) == (name, backbone, None)
    assert wanted.eval_every == RECIPES[name].eval_every


def test_model_path_finds_the_projects_folders_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_path("data/papers") == str(paths.PAPERS)
    assert model_path("bert-base-uncased") == "bert-base-uncased"
    (tmp_path / "mine").mkdir()
    assert model_path("mine") == "mine"


def test_hashes_follow_the_content(tmp_path):
    assert text_hash(["a", "b"]) == text_hash(["a", "b"]) != text_hash(["ab", ""])
    assert text_hash(["a", "b"]) != text_hash(["b", "a"])
    first, copy = tiny_bert(tmp_path / "a"), tiny_bert(tmp_path / "b")
    other = tiny_bert(tmp_path / "c", seed=1)
    assert model_hash(str(first)) == model_hash(str(copy)) != model_hash(str(other))
    assert model_hash("org/name") == "org/name"


def test_every_profile_and_recipe_is_named_by_its_key():
    assert all(p.name == key and p.dev in ("mini", "stsb", "cnsd") for key, p in profiles.PROFILES.items())
    assert all(r.name == key and r.source for key, r in recipes.RECIPES.items())
    assert all(0 < r.temperature < 1 and r.loss in train.LOSSES for r in recipes.RECIPES.values())


def test_the_training_text_is_a_parameter(tiny, monkeypatch):
    asked = []
    monkeypatch.setattr(
        data, "corpus", lambda name, data_dir=None, n=None, seed=0: asked.append((name, n)) or tiny_sentences(64)
    )
    record = run("03_consert", "simcse", "tiny", corpus="sts_unlabelled")
    assert asked == [("sts_unlabelled", None)]
    params = json.loads((record.folder / "params.json").read_text())
    assert params["corpus"] == "sts_unlabelled" and params["n_sentences"] == 64
    assert resolve("tiny", "simcse", corpus="mini")[0] == profile("tiny")
    run("03_consert", "simcse", "tiny", n_sentences=32)
    assert asked[1][1] == 32


def test_a_second_pooling_is_tested_too(tiny):
    record = run("03_consert", "simcse", "tiny", also_pooling="last2_mean", precision="fp32")
    for which in ("best", "last"):
        encoder = Encoder.load(record.folder / which, eval_pooling="last2_mean")
        expected = experiment.test_metrics(encoder, profile("tiny"), recipe("mini_simcse"), which, precision="fp32")
        assert record.metrics[f"mini_test_spearman_last2_mean_{which}"] == pytest.approx(
            expected[f"mini_test_spearman_{which}"]
        )
    plain = run("03_consert", "simcse", "tiny", precision="fp32").metrics
    assert not [name for name in plain if "last2" in name]


def test_transfer_tasks_are_asked_of_the_best_checkpoint(tiny, monkeypatch):
    asked = []

    def transfer7(encode, data_dir=None):
        asked.append(encode(["one sentence"]))
        return {"MR": 50.0, "avg": 50.0}

    monkeypatch.setattr(experiment.transfer, "transfer7", transfer7)
    record = run("05_sda", "simcse", "tiny", transfer_pooling="last2_mean", precision="fp32")
    assert record.metrics["avg_transfer_best"] == record.metrics["MR_transfer_best"] == 50
    best = Encoder.load(record.folder / "best", eval_pooling="last2_mean")
    np.testing.assert_array_equal(asked[0], best.encode(["one sentence"], precision="fp32"))
    assert not [k for k in run("05_sda", "simcse", "tiny", precision="fp32").metrics if "transfer" in k]
    assert "transfer_pooling" not in recipe("mini_sda").parameters()


def test_chinese_pairs_of_an_untrained_encoder(tmp_path, outputs):
    for split in ("dev", "test"):
        rows = [f"2012-{i}||{'word ' * (i + 1)}||word||{i % 6}" for i in range(8)]
        (tmp_path / f"cnsd-sts-{split}.txt").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "own-sets").touch()
    model = str(paths.MINI_BERT)
    found = run("05_sda", "simcse", "chinese", model=model, max_steps=0, data_dir=str(tmp_path)).metrics
    assert found["cnsd_test_spearman_last"] == found["cnsd_test_spearman_best"]
    assert found["cnsd_dev_spearman_best"] == found["cnsd_dev_spearman_last"]
    assert resolve("chinese", "sda_negation")[1].parser == "zh_core_web_md"


def test_a_negation_is_not_both_positive_and_negative():
    with pytest.raises(ValueError, match="hard negatives"):
        experiment.rewritten(recipe("mini_sda_negation", rule="negation"), ["One sentence."])


def test_fields_of_later_methods_leave_old_runs_alone():
    assert (
        not {"view1", "rate2", "loss_weight", "also_pooling", "eval_at_epoch_ends"}
        & recipe("mini_simcse").parameters().keys()
    )
    used = recipe("mini_consert", view1="none").parameters()
    assert (used["view2"], used["loss_weight"], used["also_pooling"]) == ("shuffle", 0.15, "last2_mean")
    assert "view1" not in used


def test_two_processes_that_want_one_run_train_it_once(tmp_path) -> None:
    script = (
        "import sys; from workflow import experiment\n"
        "run = experiment.run('02_simcse', 'simcse', max_steps=2, batch_size=4, output_dir=sys.argv[1])\n"
        "print(run.metrics['train_seconds'])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT) for _ in range(2)]
    printed = [process.communicate(timeout=300)[0] for process in both]
    (folder,) = (tmp_path / "02_simcse").iterdir()
    assert printed[0] == printed[1] == f"{json.loads((folder / 'metrics.json').read_text())['train_seconds']}\n"
    assert not (folder / ".lock").exists()


def test_a_run_that_another_notebook_has_finished_is_copied(tiny, trained):
    first = run("02_simcse", "simcse", "tiny", device="cpu", precision="fp32")
    (first.folder / "my-export").mkdir()
    (tiny / "07_results" / first.id).mkdir(parents=True)
    (tiny / "07_results" / first.id / "checkpoint.safetensors").write_bytes(b"of an interrupted training")
    trained.clear()
    again = run("07_results", "simcse", "tiny", device="cpu", precision="fp32")
    assert trained == [] and again.folder == tiny.resolve() / "07_results" / first.id
    assert again.metrics == first.metrics and again.history().equals(first.history())
    files = {f.relative_to(first.folder) for f in first.folder.rglob("*") if f.is_file()}
    assert {f.relative_to(again.folder) for f in again.folder.rglob("*")} == {
        *files,
        *(f.relative_to(first.folder) for f in (first.folder / "best", first.folder / "last")),
    }
    assert all((again.folder / f).read_bytes() == (first.folder / f).read_bytes() for f in files)


def test_what_is_not_copied_from_another_notebook(tiny, trained):
    first = run("02_simcse", "simcse", "tiny", device="cpu", precision="fp32")
    trained.clear()
    run("03_consert", "simcse", "tiny", device="cpu", precision="fp32", seed=1)
    assert len(trained) == 6, "another seed is another run"
    run("04_una", "simcse", "tiny", device="cpu", precision="fp32", force=True)
    assert len(trained) == 12, "force trains"
    (tiny / "04_una" / first.id / "metrics.json").unlink()
    (first.folder / "metrics.json").unlink()
    run("05_sda", "simcse", "tiny", device="cpu", precision="fp32")
    assert len(trained) == 18, "an unfinished run is none"
