"""One run from parameters to metrics, on data and an encoder of the test's own."""

import json
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tiny import WORDS, tiny_bert, tiny_recipe, tiny_sentences, untimed

from lib import data, evaluate, paths, runs
from lib.augment import sda
from lib.augment.sda import parse
from lib.data import Pairs, sets
from lib.encoder import Encoder
from lib.runs import Job, experiment, inputs
from lib.runs.experiment import run
from lib.runs.folder import cpu_name
from lib.runs.inputs import model_hash, model_path, portable, text_hash
from lib.runs.profiles import PROFILES, Profile
from lib.training.forward import Forward
from lib.training.recipe import recipe, recipes


def pairs(name: str, seed: int, n: int = 40) -> Pairs:
    """Random pairs graded by the words they share."""
    first, second = tiny_sentences(n, seed), tiny_sentences(n, seed + 1)
    second[: n // 4] = [f"today {sentence}" for sentence in first[: n // 4]]
    shared = [len(set(a.split()) & set(b.split())) for a, b in zip(first, second, strict=True)]
    return Pairs(name, first, second, np.minimum(np.array(shared, float), 5.0))


@pytest.fixture
def tiny(tmp_path, monkeypatch, outputs):
    """A profile `tiny` with 64 sentences, 6 steps and a dev score every 3."""
    tiny_bert(tmp_path / "bert")
    monkeypatch.setitem(
        PROFILES,
        "tiny",
        Profile(
            name="tiny",
            recipe_prefix="mini",
            corpus="mini",
            dev="mini",
            test="mini",
            model=str(tmp_path / "bert"),
            max_steps=6,
            eval_every=3,
        ),
    )
    monkeypatch.setitem(recipes(), "mini_simcse", tiny_recipe())
    monkeypatch.setattr(paths, "MINI", tmp_path)
    (tmp_path / "corpus.txt").write_text("\n".join(tiny_sentences(64)) + "\n")
    for module in (data, sets):
        monkeypatch.setattr(
            module, "mini_pairs", lambda split: pairs(split, {"dev": 10, "test": 20}[split])
        )
    return outputs


@pytest.fixture
def trained(monkeypatch):
    """Counts the steps that are really taken."""
    steps = []
    forward = Forward.__call__
    monkeypatch.setattr(
        Forward,
        "__call__",
        lambda self, batch, step: steps.append(step) or forward(self, batch, step),
    )
    return steps


def dev_scores(monkeypatch, *values):
    """The dev set's scores are these, in their order; those of other sets stay as they are."""
    left, score = iter(values), evaluate.pairs_spearman
    scored = lambda encode, pairs: next(left) if pairs.name == "dev" else score(encode, pairs)  # noqa: E731
    monkeypatch.setattr(evaluate, "pairs_spearman", scored)


@pytest.mark.parametrize("best", [3, 6])
def test_end_to_end(tiny, trained, monkeypatch, best):
    dev_scores(monkeypatch, 50.0 + (best == 3), 50.5)
    record = run("02_simcse", "simcse", "tiny", device="cpu", precision="fp32")
    assert trained == list(range(6))
    assert record.folder.parent == tiny.resolve() / "02_simcse" and record.id.endswith("-s42")
    metrics = record.metrics
    assert metrics["steps"] == 6 and metrics["best_step"] == best
    history = record.history()
    assert history["step"].tolist() == [1, 2, 3, 4, 5, 6]
    scores = history["dev_score"].dropna().tolist()
    assert metrics["mini_dev_spearman_last"] == scores[-1] and metrics[
        "mini_dev_spearman_best"
    ] == max(scores)
    assert metrics["loss_last"] == pytest.approx(history["loss"].mean())
    assert all(metrics[n] > 0 for n in ("train_seconds", "sentences_per_second", "peak_rss_gib"))
    same = metrics["dev_uniformity_best"] == metrics["dev_uniformity_last"]
    assert (
        same == (best == 6)
        and metrics["mini_test_spearman_best"] != metrics["mini_dev_spearman_best"]
    )
    for which in ("best", "last"):
        encoder = Encoder.load(record.folder / which)
        encode = partial(encoder.encode, precision="fp32")
        expected = evaluate.pairs_spearman(encode, data.mini_pairs("test"))
        assert expected == pytest.approx(metrics["mini_test_spearman_" + which])
        geometry = evaluate.geometry(encode, data.mini_pairs("dev"))
        for name in ("alignment", "uniformity", "effective_rank"):
            assert geometry[name] == pytest.approx(metrics[f"dev_{name}_{which}"], rel=1e-5)
    params = json.loads((record.folder / "params.json").read_text())
    assert params["max_steps"] == 6 and params["lr"] == 1e-3 and params["n_sentences"] == 64
    assert params["eval_every"] == 3 and params["data"]["corpus"] == text_hash(tiny_sentences(64))
    table = runs.collect()
    assert table["mini_test_spearman_best"].tolist() == [metrics["mini_test_spearman_best"]]
    job = Job.of("nb", "simcse", "tiny")
    assert set(experiment.names_of_scores(job.profile, job.recipe)) <= set(metrics)
    assert params["resolved"]["beta"] == 0.5, "fields without effect are recorded, too"


def test_a_finished_run_is_not_done_again(tiny, trained):
    first = run("nb", "simcse", "tiny", device="cpu")
    assert len(trained) == 6
    assert run("nb", "simcse", "tiny", device="cpu").metrics == first.metrics and len(trained) == 6
    loss = first.metrics["loss_last"]
    shutil.rmtree(first.folder)
    again = run("nb", "simcse", "tiny", device="cpu")
    assert len(trained) == 12 and again.id == first.id
    assert again.metrics["loss_last"] == loss
    assert run("nb", "simcse", "tiny", seed=1, device="cpu").id != first.id and len(trained) == 18
    other = run("nb", "simcse", "tiny", temperature=0.5, device="cpu")
    assert other.id != first.id and len(trained) == 24


def test_an_interrupted_run_is_taken_up(tiny, trained, monkeypatch, tmp_path):
    elsewhere = str(tmp_path / "whole")
    expected = run("nb", "simcse", "tiny", device="cpu", precision="fp32", output_dir=elsewhere)
    with monkeypatch.context() as patch:
        forward = Forward.__call__

        def interrupted(self, batch, step):
            if step == 4:
                raise KeyboardInterrupt
            return forward(self, batch, step)

        patch.setattr(Forward, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("nb", "simcse", "tiny", device="cpu", precision="fp32", checkpoint_minutes=0)
    del trained[:]
    record = run("nb", "simcse", "tiny", device="cpu", precision="fp32", checkpoint_minutes=0)
    assert trained == [3, 4, 5]
    assert untimed(record.metrics) == untimed(expected.metrics)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_set_that_ranks_nothing_is_told_before_the_first_step(tiny, trained, monkeypatch, split):
    usual = data.mini_pairs
    odd = lambda name: replace(usual(name), scores=np.ones(40)) if name == split else usual(name)  # noqa: E731
    monkeypatch.setattr(sets, "mini_pairs", odd)
    with pytest.raises(ValueError, match=f"{split}: .*40 pairs"):
        run("nb", "simcse", "tiny", device="cpu")
    assert trained == []


def test_whitened_scores_are_those_of_whitened_vectors(tiny):
    pairs, whitened = data.mini_pairs("test"), recipe("mini_simcse", whiten=True)
    encoder = Encoder.load(PROFILES["tiny"].model, eval_pooling="mean")
    by_hand = evaluate.whitened_encode(partial(encoder.encode, precision="fp32"))
    encode = experiment.encode_of(encoder, whitened, "fp32")
    expected = evaluate.similarities(by_hand, pairs)
    assert evaluate.similarities(encode, pairs) == pytest.approx(expected, abs=1e-6)
    record = run(
        "06_backbones", "simcse", "tiny", max_steps=0, whiten=True, device="cpu", precision="fp32"
    )
    assert record.metrics["mini_test_spearman_last"] == evaluate.pairs_spearman(encode, pairs)
    plain = run("06_backbones", "simcse", "tiny", max_steps=0, device="cpu", precision="fp32")
    assert plain.id != record.id


def of(profile_name, method, model=None, **changes):
    """Profile, recipe and steps of a job."""
    job = Job.of("nb", method, profile_name, model=model, **changes)
    return job.profile, job.recipe, job.steps


def test_resolve_follows_the_profile_and_the_explicit_parameters():
    profile, used, steps = of("mini", "simcse")
    assert (profile.name, used.name, steps) == ("mini", "mini_simcse", PROFILES["mini"].max_steps)
    assert used.backbone == str(paths.MINI_BERT) and used.eval_every == PROFILES["mini"].eval_every
    assert of("mini", "simcse", max_steps=0)[2] == 0 and of("mini", "simcse", max_steps=7)[2] == 7
    assert of("mini", "simcse", eval_every=9)[1].eval_every == 9
    assert of("mini", "simcse", model="some/model")[1].backbone == "some/model"
    assert of("mini", "simcse", lr=None)[1].lr == recipe("mini_simcse").lr
    with pytest.raises(ValueError, match="unknown recipe"):
        of("mini", "no_such")


@pytest.mark.parametrize(
    ("method", "model", "name", "backbone"),
    [
        ("simcse", None, "paper_simcse_bert", "bert-base-uncased"),
        ("simcse", "roberta-base", "paper_simcse_roberta", "roberta-base"),
        ("simcse_roberta_una", None, "paper_simcse_roberta_una", "roberta-base"),
        ("mini_simcse", None, "mini_simcse", "data/mini-bert"),
    ],
)
def test_resolve_at_full_picks_the_papers_recipe(method, model, name, backbone):
    _, used, steps = of("full", method, model)
    assert (used.name, used.backbone, steps) == (name, backbone, None)
    assert used.eval_every == recipe(name).eval_every


def test_model_path_finds_the_projects_folders_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_path("data/papers") == str(paths.PAPERS)
    assert model_path("bert-base-uncased") == "bert-base-uncased"
    (tmp_path / "mine").mkdir()
    assert model_path("mine") == "mine"


def test_the_training_text_is_a_parameter(tiny, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("\n".join(tiny_sentences(48, seed=5)))
    record = run("03_consert", "simcse", "tiny", max_steps=1, corpus=str(other))
    params = json.loads((record.folder / "params.json").read_text())
    assert params["corpus"] == str(other) and params["n_sentences"] == 48
    assert params["data"]["corpus"] == text_hash(tiny_sentences(48, seed=5))
    assert of("tiny", "simcse", corpus="mini")[0] == PROFILES["tiny"]
    part = run("03_consert", "simcse", "tiny", max_steps=1, n_sentences=32)
    assert part.data["corpus"] == text_hash(data.corpus("mini", n=32, seed=0))


def test_a_text_that_was_edited_is_read_again(tiny, tmp_path):
    """Although its size stays the same."""
    path = tmp_path / "text.txt"
    first = tiny_sentences(40)
    path.write_text("\n".join(first))
    before = run("nb", "simcse", "tiny", max_steps=1, corpus=str(path))
    second = first[::-1]
    path.write_text("\n".join(second))
    after = run("nb", "simcse", "tiny", max_steps=1, corpus=str(path))
    assert after.id != before.id and after.data["corpus"] == text_hash(second)
    assert after.metrics["loss_last"] != before.metrics["loss_last"]


def test_the_text_that_takes_anothers_place_is_named(tiny, tmp_path, monkeypatch):
    (tmp_path / data.WIKI1M).write_text("\n".join(tiny_sentences(40)))
    (tmp_path / "own-sets").touch()
    with pytest.warns(UserWarning, match="'wikipedia' is not here: 'wiki1m' is read"):
        record = run(
            "nb", "simcse", "tiny", max_steps=1, corpus="wikipedia", data_dir=str(tmp_path)
        )
    assert runs.collect()["corpus"].tolist() == ["wiki1m"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = run("nb", "simcse", "tiny", max_steps=1, corpus="wiki1m", data_dir=str(tmp_path))
    assert named.id == record.id


TRANSFERRED = ["the old dog sees a red house", "a cat sleeps", "two birds"]


@pytest.fixture
def asked(monkeypatch):
    """The vectors that the transfer tasks, of three sentences in all, are given."""
    vectors = []

    def transfer7(encode, data_dir=None):
        vectors.append(encode(TRANSFERRED))
        return {"MR": 50.0, "avg": 50.0}

    monkeypatch.setattr(experiment.transfer, "transfer7", transfer7)
    task = data.TransferTask("MR", {"all": (TRANSFERRED, [0, 1, 0])})
    monkeypatch.setattr(data, "transfer_task", lambda name, data_dir=None: task)
    return vectors


def test_transfer_tasks_are_asked_of_the_best_checkpoint(tiny, asked):
    record = run("05_sda", "simcse", "tiny", transfer_pooling="last2_mean", precision="fp32")
    assert record.metrics["avg_transfer_best"] == record.metrics["MR_transfer_best"] == 50
    best = Encoder.load(record.folder / "best", eval_pooling="last2_mean")
    np.testing.assert_array_equal(asked[0], best.encode(TRANSFERRED, precision="fp32"))
    plain = run("05_sda", "simcse", "tiny", precision="fp32")
    assert not [name for name in plain.metrics if "transfer" in name]
    assert "transfer_pooling" not in recipe("mini_sda").parameters()


def test_transfer_vectors_are_cut_as_those_of_a_test_and_never_whitened(tiny, asked):
    own = {"transfer_pooling": "mean", "whiten": True, "test_max_length": 5}
    run("nb", "simcse", "tiny", max_steps=0, device="cpu", **own)
    plain = Encoder.load(PROFILES["tiny"].model, eval_pooling="mean").encode
    np.testing.assert_array_equal(asked[0], plain(TRANSFERRED, precision="fp32", max_length=5))


def test_each_profile_is_scored_on_its_own_dev_and_test_rows(tiny, tmp_path, monkeypatch):
    rows = {"dev": 30, "test": 35, "train": 40}
    monkeypatch.setattr(
        sets,
        "graded",
        lambda name, split, *_: pairs(f"{name} {split}", rows[split] + (name == "CNSD")),
    )
    sick = {"test": pairs("sick", 50)}
    parts = {name: {"part": pairs(name, 60 + i)} for i, name in enumerate(data.STS_SUBSETS)}
    tasks = {**parts, "STS-B": {"test": data.stsb("test")}, "SICK-R": sick}
    for module in (data, sets):
        monkeypatch.setattr(module, "sts_tasks", lambda data_dir=None: tasks)
    model = str(tmp_path / "bert")
    encode = partial(Encoder.load(model, eval_pooling="mean").encode, precision="fp32")
    common = {"model": model, "max_steps": 0, "device": "cpu"}
    small = run("02_simcse", "simcse", "small", scoring="fp32", **common).metrics
    expected = {
        task: evaluate.pairs_spearman(encode, part)
        for task, parts_of_it in tasks.items()
        for part in parts_of_it.values()
    }
    for which in ("best", "last"):
        assert small[f"stsb_dev_spearman_{which}"] == pytest.approx(
            evaluate.pairs_spearman(encode, data.stsb("dev"))
        )
        assert {task: small[f"{task}_test_spearman_{which}"] for task in tasks} == pytest.approx(
            expected
        )
        assert small[f"sts7_test_avg_{which}"] == pytest.approx(np.mean(list(expected.values())))
    chinese = run("05_sda", "simcse", "chinese", eval_pooling="mean", **common).metrics
    for split in ("dev", "test"):
        score = evaluate.pairs_spearman(encode, sets.graded("CNSD", split))
        assert chinese[f"cnsd_{split}_spearman_last"] == pytest.approx(score)


@pytest.mark.slow
def test_two_processes_that_want_one_run_train_it_once(tmp_path) -> None:
    script = (
        "import sys; from lib import runs\n"
        "few = {'max_steps': 2, 'batch_size': 4, 'n_sentences': 40}\n"
        "run = runs.run('02_simcse', 'simcse', output_dir=sys.argv[1], **few)\n"
        "print(run.metrics['train_seconds'])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT)
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=300)[0] for process in both]
    (folder,) = (path for path in (tmp_path / "02_simcse").iterdir() if path.is_dir())
    assert (
        printed[0]
        == printed[1]
        == f"{json.loads((folder / 'metrics.json').read_text())['train_seconds']}\n"
    )
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_run_that_another_notebook_has_finished_is_taken(tiny, trained):
    first = run("02_simcse", "simcse", "tiny", device="cpu", precision="fp32")
    trained.clear()
    again = run("07_results", "simcse", "tiny", device="cpu", precision="fp32")
    assert trained == [] and again.folder == first.folder and again.metrics == first.metrics
    assert again.history().equals(first.history()) and len(runs.collect()) == 1


def test_a_run_that_another_notebook_has_only_begun_is_trained(tiny):
    begun = run("02_simcse", "simcse", "tiny", max_steps=1, device="cpu")
    (begun.folder / "metrics.json").unlink()
    found = run("07_results", "simcse", "tiny", max_steps=1, device="cpu")
    assert found.id == begun.id and found.folder != begun.folder and found.metrics


# --- what reaches the training
# -------------------------------------------------------------------------------


class Given:
    """What `fit` was given instead of training."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def __call__(self, method="simcse", **parameters):
        def fit(encoder, feed, **options):
            self.encoder, self.views, self.recipe = encoder, feed.views, feed.recipe
            self.negatives, self.seed = feed.negatives, feed.seed
            self.__dict__ |= options
            raise InterruptedError

        with self.monkeypatch.context() as patch, pytest.raises(InterruptedError):
            patch.setattr(experiment, "fit", fit)
            run("nb", method, "tiny", device="cpu", **parameters)
        return self

    def text(self, view: int) -> list[str]:
        """The view's sentences, by the tokenizer."""
        rows = self.views[view]
        ids, _ = rows[np.arange(len(rows))]
        return self.encoder.tokenizer.batch_decode(ids, skip_special_tokens=True)


@pytest.fixture
def given(tiny, monkeypatch):
    return Given(monkeypatch)


def test_the_seed_reaches_batches_head_and_every_draw(given, monkeypatch):
    monkeypatch.setitem(recipes(), "mini_una", recipe("mini_una", batch_size=8, radius=5))
    for changes in ({"positive": "delete", "positive_rate": 0.3}, {"method": "una"}):
        found = []
        for seed in (1, 2, 1):
            new = given(**changes, seed=seed)
            drawn = new.negatives(np.arange(8), 0)[0] if new.negatives else torch.zeros(1)
            head = torch.cat([weight.flatten() for weight in new.encoder.head.parameters()])
            found.append((new.seed, new.text(0), new.text(1), drawn.tolist(), head.tolist()))
        assert found[0] == found[2] and found[0][0] == 1 and found[1][0] == 2
        assert found[0][1] == found[1][1], "the sample of the text is the same for every seed"
        assert (found[0][2] != found[1][2]) == ("positive" in changes)
        assert (found[0][3] != found[1][3]) == ("method" in changes)
        assert found[0][4] != found[1][4]


def test_the_seed_and_the_choices_of_the_rules_reach_them(given, monkeypatch):
    asked = []

    def rewrite(sentences, rules, seed, shares, nouns, model, folder, workers):
        asked.append((sentences, rules, seed, shares, model, nouns))
        word = {"negation": "dog", "double_negation": "cat"}
        return {rule: [f"{word[rule]} {s}" for s in sentences] for rule in rules}

    monkeypatch.setattr(parse, "rewrite", rewrite)
    monkeypatch.setattr(parse, "load", lambda name: name)
    monkeypatch.setattr(parse, "pipeline_digest", lambda name: str(name))
    monkeypatch.setitem(recipes(), "mini_sda_negation", recipe("mini_sda_negation", batch_size=8))
    choices = {"rule": "double_negation", "augmented_share": 0.5, "dn_nouns": True}
    new = given("sda_negation", seed=3, parser="data/other", **choices)
    shares = {"negation": 1.0, "double_negation": 0.5}
    ((sentences, rules, seed, given_shares, model, nouns),) = asked
    assert sentences == tiny_sentences(64) and set(rules) == set(shares) and given_shares == shares
    assert (seed, nouns) == (3, True) and model.endswith("data/other")
    assert new.text(1) == [f"cat {sentence}" for sentence in new.text(0)]
    negatives, _ = new.negatives(np.arange(4), 0)
    texts = new.encoder.tokenizer.batch_decode(negatives, skip_special_tokens=True)
    assert texts == [f"dog {sentence}" for sentence in new.text(0)[:4]]


def test_the_recipe_reaches_the_encoder_and_the_training(given, monkeypatch, auto_precision):
    fields = {"pooling": "mean", "eval_pooling": "last2_mean", "head": "relu", "eval_head": True}
    own = {"max_steps": 5, "eval_every": 2, "temperature": 0.5, "n_sentences": 40}
    new = given(**fields, **own, dropout=0.25)
    assert new.encoder.settings == fields
    assert new.encoder.backbone.config.hidden_dropout_prob == 0.25
    assert (new.max_steps, new.recipe.eval_every, new.recipe.temperature) == (5, 2, 0.5)
    assert len(new.views[0]) == 40 and new.precision == auto_precision
    assert new.out.name.startswith("mini_simcse-") and new.dev is not None
    loaded = {}
    monkeypatch.setattr(
        Encoder, "load", classmethod(lambda cls, name, **options: loaded.update(options) or 1 / 0)
    )
    with pytest.raises(ZeroDivisionError):
        run("nb", "simcse", "tiny", head="simclr:20:10", head_per_view=True, lora_rank=2, seed=9)
    assert (loaded["head_per_view"], loaded["lora_rank"], loaded["seed"]) == (True, 2, 9)
    with pytest.raises(ZeroDivisionError):
        run("nb", "simcse", "tiny", head="tanh", head_init="torch")
    assert loaded["head_init"] == "torch"


def numbered(path, n: int, name: str, blank=()) -> None:
    """Lines that name their number, some of them blank."""
    lines = [
        "" if i in blank else f"{name} " + " ".join(WORDS[int(d)] for d in f"{i:03d}")
        for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("n_sentences", [None, 20])
def test_each_sentence_has_its_own_positive(given, tmp_path, n_sentences):
    numbered(tmp_path / "corpus.txt", 60, "red", blank=(7, 11, 30, 41))
    numbered(tmp_path / "p.txt", 60, "blue", blank=(7, 11, 30, 41))
    new = given(positive="file", positive_file=str(tmp_path / "p.txt"), n_sentences=n_sentences)
    first, second = new.text(0), new.text(1)
    assert len(first) == (n_sentences or 56)
    assert [s.replace("red", "blue", 1) for s in first] == second


def test_dev_and_test_sentences_are_cut_as_the_recipe_says(tiny):
    encoder = Encoder.load(PROFILES["tiny"].model, eval_pooling="mean")

    def expected(split, length, pooling="mean"):
        """Of text cut by hand: a word is a token, and two are [CLS] and [SEP]."""
        whole = data.mini_pairs(split)
        cut = [
            [" ".join(s.split()[: length - 2]) for s in side]
            for side in (whole.sentence1, whole.sentence2)
        ]
        encode = partial(encoder.encode, precision="fp32", pooling=pooling)
        known = evaluate.remember(encode, cut[0] + cut[1])
        return pytest.approx(
            evaluate.pairs_spearman(known, Pairs(split, *cut, whole.scores)), abs=0.05
        )

    assert len({expected("dev", length).expected for length in (7, 9, 99)}) == 3
    for dev, test in ((7, 0), (0, 8), (9, 7)):
        lengths = {"dev_max_length": dev, "test_max_length": test}
        found = run(
            "nb", "simcse", "tiny", max_steps=0, device="cpu", also_pooling="cls", **lengths
        ).metrics
        assert found["mini_dev_spearman_last"] == expected("dev", dev or 99)
        assert found["mini_test_spearman_last"] == expected("test", test or 99)
        assert found["mini_test_spearman_cls_last"] == expected("test", test or 99, "cls")
    assert run("nb", "simcse", "tiny", max_steps=0, dev_max_length=5000).metrics[
        "mini_dev_spearman_last"
    ]


@pytest.mark.real_data
def test_unas_dev_score_is_cut_at_32_tokens():
    encoder = Encoder.load(paths.MINI_BERT, eval_pooling="cls")
    for length, score in ((32, 57.959), (0, 58.694)):
        job = Job.of("nb", "paper_una_bert", "small", dev_max_length=length, scoring="fp32")
        dev = experiment.DevScore(job)
        assert dev(encoder) == pytest.approx(score, abs=0.05)


# --- what a run is known by
# ----------------------------------------------------------------------------------


def ids(**changes) -> str:
    return run("nb", "simcse", "tiny", max_steps=0, device="cpu", **changes).id


def test_the_id_holds_what_changes_numbers(tiny, tmp_path, monkeypatch):
    first, folder = ids(), tmp_path / "bert"
    assert ids() == first
    for name, change in (
        ("tokenizer_config.json", lambda old: old.replace(b"{", b'{"added": 1,', 1)),
        ("config.json", lambda old: old.replace(b"{", b'{"added": 1,', 1)),
        ("model.safetensors", lambda old: old[:-4] + b"\0\0\0\1"),
    ):
        old = (folder / name).read_bytes()
        (folder / name).write_bytes(change(old))
        assert ids() != first, name
        (folder / name).write_bytes(old)
    assert ids() == first
    for split in ("dev", "test"):
        with monkeypatch.context() as patch:
            changed = lambda s, split=split: pairs(s, {"dev": 10, "test": 20}[s] + 7 * (s == split))  # noqa: E731
            patch.setattr(sets, "mini_pairs", changed)
            assert ids() != first, split
    assert ids(eval_pooling="cls") != first and ids(whiten=True) != first
    assert len({ids(scoring=name) for name in ("fp32", "bf16")}) == 2
    assert len({ids(precision=name) for name in ("fp32", "bf16")}) == 2


def test_weights_that_are_no_safetensors_count(tmp_path):
    folder = tiny_bert(tmp_path / "bin")
    (folder / "model.safetensors").unlink()
    hashes = set()
    for content in (b"one", b"two"):
        (folder / "pytorch_model.bin").write_bytes(content)
        hashes.add(model_hash(str(folder)))
    (folder / "README.md").write_text("words")
    assert len(hashes | {model_hash(str(folder))}) == 2


def test_the_commit_of_a_hub_model_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path), raising=False
    )
    found = []
    for commit in ("a" * 40, "b" * 40):
        snapshot = tmp_path / "models--org--name" / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text("{}")
        (tmp_path / "models--org--name" / "refs").mkdir(exist_ok=True)
        (tmp_path / "models--org--name" / "refs" / "main").write_text(commit)
        found.append(model_hash("org/name"))
    assert found == [f"org/name@{commit}" for commit in ("a" * 40, "b" * 40)]
    with pytest.raises(FileNotFoundError, match="cannot load the model 'org/other'"):
        model_hash("org/other")


def test_files_that_the_text_is_made_from_are_in_the_id(tiny, tmp_path, monkeypatch):
    def identity_of(**changes):
        return Job.of("nb", "simcse", "tiny", **changes).hashes()

    numbered(tmp_path / "p.txt", 64, "blue")
    (tmp_path / "t.tsv").write_text("cat\thound\n")
    file = {"positive": "file", "positive_file": str(tmp_path / "p.txt")}
    words = {
        "positive": "replace_synonyms",
        "positive_rate": 0.1,
        "synonyms": str(tmp_path / "t.tsv"),
    }
    before = identity_of(**file), identity_of(**words)
    numbered(tmp_path / "p.txt", 64, "red")
    (tmp_path / "t.tsv").write_text("cat\tbird\n")
    assert before[0] != identity_of(**file) and before[1] != identity_of(**words)
    rules = identity_of(positive="sda")
    assert rules["rules"] == str(sda.VERSION) and len(rules["english"]) == 64
    monkeypatch.setattr(inputs.english, "__file__", str(tmp_path / "english.py"))
    (tmp_path / "irregular_verbs.txt").write_text("go went gone\n")
    irregular = identity_of(positive="sda")["english"]
    monkeypatch.setattr(paths, "MINI_SPACY", tmp_path)
    (tmp_path / "verbs.txt").write_text("go\n")
    assert len({rules["english"], irregular, identity_of(positive="sda")["english"]}) == 3
    monkeypatch.setattr(inputs.sda, "VERSION", sda.VERSION + 1)
    assert identity_of(positive="sda")["rules"] != rules["rules"]
    folder = tmp_path / "wordnet"
    folder.mkdir()
    monkeypatch.setattr("lib.augment.edits.wordnet_folder", lambda: folder)
    hashes = []
    for content in ("one", "two"):
        (folder / "data.noun").write_text(content)
        hashes.append(identity_of(**words | {"synonyms": "wordnet"})["synonyms"])
    assert hashes[0] != hashes[1]


def test_what_changes_no_number_is_not_in_the_id(tiny, trained):
    first = run("nb", "simcse", "tiny", max_steps=2, device="cpu", precision="fp32")
    assert run("nb", "simcse", "tiny", max_steps=2, precision="fp32", progress=True).id == first.id
    inside = f"{paths.MINI_BERT.parent.name}/{paths.MINI_BERT.name}"
    names = [inside, f"./{inside}", f"{inside}/", str(paths.MINI_BERT)]
    assert {portable(name) for name in names} == {inside}
    others = ["", "bert-base-uncased", "someone/bert", str(paths.ROOT.parent / "bert")]
    assert [portable(name) for name in others] == others
    assert trained == [0, 1]
    chunks = run("nb", "simcse", "tiny", max_steps=2, precision="fp32", chunk_size=4)
    assert chunks.id != first.id and trained == [0, 1, 0, 1]


def test_auto_is_recorded_as_what_it_was(tiny, auto_precision):
    record = run("nb", "simcse", "tiny", max_steps=1, device="cpu")
    assert (
        run("nb", "simcse", "tiny", max_steps=1, device="cpu", precision=auto_precision).id
        == record.id
    )
    (row,) = runs.collect().to_dict("records")
    assert (row["precision"], row["scoring"], row["device"]) == (auto_precision, "fp32", "cpu")
    env = json.loads((record.folder / "env.json").read_text())
    assert (env["precision"], env["device"], env["machine"]) == (auto_precision, "cpu", cpu_name())


# --- interrupted, repeated, damaged
# --------------------------------------------------------------------------


def test_damaged_metrics_are_named(tiny):
    record = run("nb", "simcse", "tiny", max_steps=1, device="cpu")
    (record.folder / "metrics.json").write_text('{"a": ')
    for read in (runs.collect, partial(run, "nb", "simcse", "tiny", max_steps=1, device="cpu")):
        with pytest.raises(ValueError, match=r"metrics\.json is no JSON .*: remove it"):
            read()
    (record.folder / "metrics.json").unlink()
    assert run("nb", "simcse", "tiny", max_steps=1, device="cpu").metrics["steps"] == 1


def test_a_collapsed_encoder_is_recorded_as_one(tiny, monkeypatch):
    encode = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda *a, **k: np.ones_like(encode(*a, **k)))
    record = run("nb", "simcse", "tiny", max_steps=0, device="cpu")
    assert np.isnan(record.metrics["mini_test_spearman_last"])
    assert "NaN" not in (record.folder / "metrics.json").read_text()
    (row,) = runs.collect().to_dict("records")
    assert "mini_test_spearman_last" in row["collapsed"].split() and np.isnan(
        row["mini_test_spearman_last"]
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_steps": "abc"}, "max_steps must be .* got 'abc'"),
        ({"n_sentences": 65}, "65 sentences asked for, .* 64"),
        ({"seed": -1}, "seed must be"),
        ({"corpus": "nowhere.txt"}, "no corpus 'nowhere.txt'"),
        ({"model": "no/such-model"}, "cannot load the model 'no/such-model'"),
        ({"temprature": 1.0}, "did you mean 'temperature'"),
        ({"backbone": "x"}, "backbone is no parameter: .* model"),
        ({"precision": "fp16"}, "precision .*fp16"),
        ({"positive": "file", "positive_file": "nowhere.txt"}, "no positive_file 'nowhere.txt'"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_one_sentence(tiny, parameters, message):
    given = {"method": "simcse", "profile_name": "tiny", "device": "cpu"} | parameters
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        run("nb", **given)
    assert "\n" not in str(error.value)
    assert not list(tiny.glob("*/*/params.json")), "nothing was begun"


@pytest.mark.parametrize(
    ("model", "asked", "expected"),
    [
        ("data/mini-llama", {}, ("last_token", "mean")),
        ("data/mini-llama", {"pooling": "cls"}, ("cls", "mean")),
        ("data/mini-roberta", {}, ("cls", "mean")),
        ("no/such-model", {}, ("cls", "mean")),
    ],
)
def test_a_causal_model_is_pooled_at_its_last_token(model, asked, expected):
    used = Job.of("nb", "simcse", "mini", model=model, **asked).recipe
    assert (used.pooling, used.eval_pooling) == expected
