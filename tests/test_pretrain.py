"""Pre-training on a few hundred sentences."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import tiny_sentences, tiny_tokenizer
from transformers import AutoModel

from lib.data import Pairs
from lib.encoder import Encoder
from tools import pretrain
from tools.pretrain import CLS, MASK, NOT_ASKED, PAD, SEP, Batches, Plan, Training, masked, train
from tools.pretrain_text import pack, prepare, word_vectors

PLAN = Plan("1x32", tokens=6_000, micro=256, step_tokens=512, lr=5e-3, points=4)
WORDS, GOLD = tiny_sentences(600), np.arange(9.0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a text in which a verb is always followed by the same noun, and the text."""
    text = [f"{s[:-2]} {'sings song' if i % 2 else 'reads book'} ." for i, s in enumerate(WORDS)]
    folder, pairs = tmp_path_factory.mktemp("text"), Pairs("graded", WORDS[:9], WORDS[1:10], GOLD)
    tiny_tokenizer(folder / "tokenizer").save_pretrained(folder / "tokenizer")
    options = {"tokenizer": folder / "tokenizer", "width": 32, "dims": 32, "held_out": 50}
    prepare(folder / "rows", text, pairs, **options)
    return folder / "rows", text


def curve(folder):
    """Steps, losses and scores of a log."""
    with open(folder / "log.csv") as file:
        names = ("step", "loss", "held_out", "stsb_dev")
        return [tuple(line[name] for name in names) for line in csv.DictReader(file)]


def state(run: Training) -> list[torch.Tensor]:
    return [*run.weights.values(), *run.ema.values()]


def test_rows_are_the_sentences_as_the_tokenizer_has_them(rows, tmp_path):
    folder, text = rows
    packed = [np.load(folder / name, mmap_mode="r") for name in ("rows.npy", "held_out.npy")]
    assert isinstance(packed[0], np.memmap) and packed[0].dtype == np.uint16
    found = [
        tuple(sentence.tolist())
        for row in np.concatenate(packed)
        for sentence in np.split(row[row != PAD], np.flatnonzero(row == CLS)[1:])
    ]
    tokenizer = tiny_tokenizer(tmp_path)
    assert sorted(found) == sorted(tuple(ids) for ids in tokenizer(text)["input_ids"])
    about = json.loads((folder / "about.json").read_text())
    assert (about["sentences"], about["held_out"]) == (550, 50) and about["filled"] > 0.9


def test_the_longest_sentence_that_fits_comes_next():
    lists = [np.full(n, n, np.uint16) for n in (2, 5, 3, 6, 2)]
    assert pack(lists, 8).tolist() == [[6] * 6 + [2] * 2, [5] * 5 + [3] * 3, [2, 2] + [PAD] * 6]


def test_word_vectors_are_those_of_counted_pairs():
    rng = np.random.default_rng(0)
    size, rows = 20, np.zeros((40, 10), np.uint16)
    counts = np.zeros((size, size))
    for row in rows:
        lengths = rng.integers(2, 4, 2)
        sentences = [[CLS, *rng.integers(MASK + 1, size, n), SEP] for n in lengths]
        row[: lengths.sum() + 4] = np.concatenate(sentences)
        for words in sentences:
            for i, left in enumerate(words):
                for k, right in enumerate(words[i + 1 : i + 4], 1):
                    counts[left, right] += (right > MASK) / k
                    counts[right, left] += (right > MASK) / k
    smooth = counts.sum(0) ** 0.75 / (counts.sum(0) ** 0.75).sum()
    with np.errstate(divide="ignore"):
        pmi = np.log(counts / counts.sum(1, keepdims=True).clip(1e-9) / smooth.clip(1e-9))
    pmi[: MASK + 1], pmi[:, : MASK + 1] = 0, 0
    u, s, _ = np.linalg.svd(pmi.clip(0))
    found = word_vectors(rows, size, 6, window=3)
    assert np.allclose(found @ found.T, (u[:, :6] * s[:6]) @ u[:, :6].T, atol=1e-3)
    assert np.all(np.diff(np.linalg.norm(found, axis=0)) <= 1e-4), "the largest come first"


def test_an_epoch_has_every_row_once():
    text = np.arange(40, dtype=np.uint16).reshape(20, 2)
    one, again, other = (Batches(text, 8, seed) for seed in (0, 0, 1))
    first, second = ([one(i) for i in range(n, n + 5)] for n in (0, 5))
    assert sorted(np.concatenate(first)[:, 0]) == sorted(np.concatenate(second)[:, 0])
    assert not np.array_equal(first, second) and not np.array_equal(one(0), other(0))
    assert np.array_equal(again(7), one(7)) and np.array_equal(again(2), one(2))
    with pytest.raises(ValueError, match="fills no batch"):
        Batches(text, 80, 0)


@pytest.mark.parametrize(("rate", "replaced_by"), [(0.15, "bert"), (0.3, "bert"), (0.2, "mask")])
def test_masks(rate, replaced_by):
    torch.manual_seed(0)
    ids = torch.randint(MASK + 1, 100, (200, 64))
    ids[:, 0], ids[:, 30], ids[:, 60:] = CLS, SEP, PAD
    before = ids.clone()
    plan = replace(PLAN, mask=0.3, mask_end=0.15, replaced_by=replaced_by)
    inputs, positions, labels = masked(ids, rate, plan, 100)
    assert torch.equal(ids, before) and len(positions) == math.ceil(0.3 * ids.numel())
    asked = labels != NOT_ASKED
    assert asked.sum() == round(rate * int((ids > MASK).sum()))
    assert (
        torch.equal(ids.flatten()[positions[asked]], labels[asked]) and labels[asked].min() > MASK
    )
    rest = torch.ones(ids.numel(), dtype=torch.bool).index_fill(0, positions[asked], False)
    assert torch.equal(inputs.flatten()[rest], ids.flatten()[rest])
    there = inputs.flatten()[positions[asked]]
    shares = [float((there == value).float().mean()) for value in (MASK, labels[asked])]
    assert shares == pytest.approx([0.8, 0.1] if replaced_by == "bert" else [1, 0], abs=0.03)


def test_a_sentence_sees_itself_alone(rows):
    """In a row of several the states are those that each has alone."""
    model = Training(PLAN, rows[0]).scorer.model
    one, two = [CLS, 7, 8, 9, SEP], [CLS, 9, 12, SEP]
    row = torch.tensor([[*one, *two, PAD]])
    with torch.no_grad():
        mask = {"full_attention": pretrain.own_sentence(row), "sliding_attention": None}
        together = model(row, attention_mask=mask)[0][0]
        alone = [model(torch.tensor([ids]))[0][0] for ids in (one, two)]
    assert torch.allclose(together[:9], torch.cat(alone), atol=1e-5)


def test_schedules_end_with_the_budget_that_is_used_up_first():
    plan = replace(PLAN, tokens=1_000, minutes=1.0, warmup=0.1, decay=0.5)
    assert plan.share({"tokens": 250, "seconds": 6}) == 0.25
    assert plan.share({"tokens": 250, "seconds": 60}) == 1
    assert replace(plan, tokens=0).share({"tokens": 9_999, "seconds": 30}) == 0.5
    factors = [plan.lr_factor(share) for share in (0, 0.05, 0.1, 0.5, 0.75, 1, 1.1)]
    assert factors == pytest.approx([0, 0.5, 1, 1, 0.5, 0, 0])
    flat = replace(plan, warmup=0.0, decay=0.0)
    assert [flat.lr_factor(share) for share in (0, 0.5, 0.99, 1)] == [1, 1, 1, 0]
    plan = replace(plan, mask=0.3, mask_end=0.15, ramp_from=256, step_tokens=2560)
    assert [plan.mask_rate(share) for share in (0, 0.5, 1)] == pytest.approx([0.3, 0.225, 0.15])
    assert [plan.passes(share) for share in (0, 0.3, 0.6, 1)] == [1, 6, 10, 10]
    for wrong in ({"tokens": 0}, {"micro": 1024}):
        with pytest.raises(ValueError):
            replace(PLAN, **wrong)


def test_muon_gets_the_matrices_of_the_layers_alone(rows):
    run = Training(replace(PLAN, optimizer="muon", muon_lr=0.02, zero_init=True), rows[0])
    name_of = {id(weight): name for name, weight in run.weights.items()}
    adam, muon = (
        {name_of[id(w)] for group in optimizer.param_groups for w in group["params"]}
        for optimizer in run.optimizers
    )
    assert muon == {
        f"model.layers.0.{n}.weight" for n in ("attn.Wqkv", "attn.Wo", "mlp.Wi", "mlp.Wo")
    }
    assert adam | muon == set(run.weights) and not adam & muon and run.peaks == [PLAN.lr, 0.02]
    zero = {name for name, weight in run.weights.items() if not weight.any()}
    assert zero == {n for n in run.weights if n.endswith("Wo.weight")}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_killed_training_ends_with_the_same_weights(rows, tmp_path, monkeypatch, precision):
    plan = replace(PLAN, optimizer="muon", precision=precision, ema=0.9, ramp_from=256)
    whole = train(plan, rows[0], tmp_path / "whole")
    step = Training.step

    def killed(self, share):
        if self.state["step"] == 9:
            raise KeyboardInterrupt
        return step(self, share)

    monkeypatch.setattr(Training, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        train(plan, rows[0], tmp_path / "killed")
    (tmp_path / "killed" / "checkpoint.pt.tmp").write_bytes(b"half")
    monkeypatch.undo()
    resumed = train(plan, rows[0], tmp_path / "killed")
    assert all(torch.equal(a, b) for a, b in zip(state(whole), state(resumed), strict=True))
    one, two = (curve(tmp_path / name) for name in ("whole", "killed"))
    assert one == two and one[-1][0] == str(whole.state["step"])
    with pytest.raises(ValueError, match="another lr, precision"):
        train(replace(plan, precision="autocast", lr=1.0), rows[0], tmp_path / "killed")


def test_training_learns_is_extended_and_is_an_encoder(rows, tmp_path):
    plan = replace(PLAN, ema=0.5)
    start = Training(plan, rows[0])
    before = start.scores()["held_out"]
    train(plan, rows[0], tmp_path)
    run = train(replace(plan, tokens=9_000), rows[0], tmp_path)
    assert run.state["tokens"] >= 9_000 and run.state["step"] < 30
    found = pretrain.export(run, tmp_path / "model")
    assert found["held_out"] < before - 0.2 and abs(found["stsb_dev"]) <= 100
    text = ["a dog sings song .", "the old man"]
    encoder = Encoder.load(tmp_path / "model", pooling="mean")
    assert encoder.backbone.config.mlp_dropout == 0.1
    ids = [encoder.tokenizer(s, return_tensors="pt")["input_ids"] for s in text]
    with torch.no_grad():
        expected = [run.scorer.model(i)[0].mean(1)[0].numpy() for i in ids]
        again = AutoModel.from_pretrained(tmp_path / "model").float().eval()
        assert np.allclose(again(ids[0])[0].mean(1)[0].numpy(), expected[0], atol=2e-2)
    assert np.allclose(encoder.encode(text, precision="fp32"), expected, atol=2e-2)


def test_the_mean_of_weights_follows_them(rows):
    run = Training(replace(PLAN, ema=0.9), rows[0])
    name = "model.layers.0.attn.Wo.weight"
    mean = run.weights[name].detach().clone()
    for step in range(3):
        run.step(0.5)
        decay = min(0.9, (1 + step) / (10 + step))
        mean = decay * mean + (1 - decay) * run.weights[name].detach()
    assert torch.allclose(run.ema[name], mean, atol=1e-6)


@pytest.mark.slow
def test_smoke(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrain.socket.socket, "connect", None)
    pretrain.smoke(tmp_path)
    assert (tmp_path / "model" / "pretraining.json").exists()
