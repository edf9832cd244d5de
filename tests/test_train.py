"""The training loop: against a hand-written step, and killed at every moment."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tiny import encode_views, fit, tiny_bert, tiny_recipe, tiny_sentences
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from lib.augment.embeddings import feature_cutoff, shuffle, token_cutoff
from lib.augment.representations import REPRESENTATIONS
from lib.encoder import Encoder
from lib.encoder.tokens import TokenRows, tokenise
from lib.training import checkpoint, losses, state
from lib.training import loop as train
from lib.training.batches import BucketBatches, Feed
from lib.training.losses import in_batch_accuracy, info_nce
from lib.training.negatives import make_negatives
from lib.training.objective import LOSSES
from lib.training.optimizer import learning_rate, make_optimizer
from lib.training.positives import Text, make_views

SENTENCES = tiny_sentences(64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def load(folder, recipe, seed=0) -> Encoder:
    return Encoder.load(
        folder,
        pooling=recipe.pooling,
        head=recipe.head,
        eval_pooling=recipe.eval_pooling,
        dropout=recipe.dropout,
        seed=seed,
        lora_rank=recipe.lora_rank,
    )


def quick(
    folder, *, steps=8, seed=42, recipe=None, text=SENTENCES, aligned=None, head_seed=0, **options
):
    """Train a tiny encoder; returns it and the result."""
    recipe = recipe or tiny_recipe()
    encoder = load(folder, recipe, head_seed)
    views = make_views(Text(text, aligned=aligned), recipe, encoder.tokenizer)
    options.setdefault("device", "cpu")
    options.setdefault("precision", "fp32")
    return encoder, fit(encoder, views, recipe, seed=seed, max_steps=steps, **options)


def weights(encoder) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in encoder.state_dict().items()}


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_loss_falls_on_toy_data(folder):
    changes = {
        "pooling": "mean",
        "head": "none",
        "positive": "crop",
        "positive_rate": 0.2,
        "dropout": 0.0,
    }
    recipe = tiny_recipe(schedule="constant", lr=3e-3, **changes)
    encoder = load(folder, recipe)
    before = weights(encoder)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    result = fit(encoder, views, recipe, max_steps=60, device="cpu", precision="fp32")
    found = [h["loss"] for h in result.history]
    assert len(found) == result.steps == 60
    assert np.mean(found[-10:]) < 0.3 * np.mean(found[:10])
    assert not same(before, weights(encoder)) and not encoder.training


def test_history_has_every_step(folder):
    _, result = quick(folder, steps=7, dev=lambda e: 1.0, eval_every=3)
    assert [h["step"] for h in result.history] == [1, 2, 3, 4, 5, 6, 7]
    assert [h["step"] for h in result.history if "dev_score" in h] == [3, 6, 7]
    recipe = tiny_recipe()
    for h in result.history:
        assert set(h) - {"dev_score"} == {
            *("step", "loss", "in_batch_accuracy", "lr"),
            *("positive_cosine", "other_cosine"),
        }
        assert max(abs(h["other_cosine"]), abs(h["positive_cosine"])) <= 1
        assert 0 <= h["in_batch_accuracy"] <= 1 and math.isfinite(h["loss"])
        assert h["lr"] == learning_rate(recipe, h["step"] - 1, 7)
    assert result.steps == 7 and result.seconds > 0
    assert result.sentences_per_second == pytest.approx(7 * 8 / result.seconds)
    json.dumps(result.history)


def test_epochs_of_the_recipe_are_the_default_length(folder):
    _, result = quick(folder, steps=None, recipe=tiny_recipe(epochs=2))
    assert result.steps == len(result.history) == 2 * 64 // 8
    assert result.history[-1]["lr"] == pytest.approx(1e-3 / 16)


def test_no_step_leaves_the_weights(folder):
    encoder, result = quick(folder, steps=0)
    assert result.steps == 0 and result.history == []
    assert same(weights(encoder), weights(load(folder, tiny_recipe())))


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_two_steps_of_the_loop_are_two_steps_by_hand(folder, clip):
    recipe = tiny_recipe(
        grad_clip=clip,
        dropout=0.0,
        temperature=0.3,
        weight_decay=0.1,
        adam_eps=1e-3,
        positive="crop",
        positive_rate=0.3,
    )
    mine = load(folder, recipe)
    views = make_views(Text(SENTENCES), recipe, mine.tokenizer)
    result = fit(mine, views, recipe, seed=7, max_steps=2, device="cpu", precision="fp32")

    hand = load(folder, recipe).train()
    decay = [p for p in hand.parameters() if p.ndim > 1]
    plain = [p for p in hand.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=recipe.lr,
        eps=1e-3,
        foreach=False,
    )
    lengths = np.maximum(views[0].lengths, views[1].lengths)
    for step, rows in zip(
        range(2), BucketBatches(lengths, 8, 7, recipe.bucket).epoch(0), strict=False
    ):
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * (1 - step / 2)
        z1, z2 = (hand(*view[rows]) for view in views)
        loss = info_nce(z1, z2, 0.3)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(hand.parameters(), clip)
        optimizer.step()
        assert result.history[step]["loss"] == pytest.approx(loss.item(), abs=1e-5)
        assert result.history[step]["in_batch_accuracy"] == pytest.approx(
            in_batch_accuracy(z1, z2).item()
        )
    for name, value in hand.state_dict().items():
        if not name.endswith(
            "key.bias"
        ):  # its gradient is zero but for rounding: softmax ignores it
            assert torch.allclose(mine.state_dict()[name], value, atol=3e-5), name


def test_biases_and_norms_are_not_decayed(folder):
    encoder = load(folder, tiny_recipe())
    decayed, plain = make_optimizer(encoder, tiny_recipe(weight_decay=0.1)).param_groups
    assert decayed["weight_decay"] == 0.1 and plain["weight_decay"] == 0.0
    names = {id(p): n for n, p in encoder.named_parameters()}
    assert {names[id(p)] for p in plain["params"]} == {
        n for n in names.values() if n.endswith("bias") or "Norm" in n
    }
    assert len(decayed["params"]) + len(plain["params"]) == len(names)


def test_views_are_encoded_in_one_forward(folder):
    recipe = tiny_recipe(positive="delete", positive_rate=0.3, dropout=0.0)
    encoder = load(folder, recipe)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    calls = []
    encoder.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs[0])))
    rows = np.arange(5)
    z1, z2 = encode_views(encoder, views, rows, torch.device("cpu"))
    assert calls == [10]
    for z, view in ((z1, views[0]), (z2, views[1])):
        assert torch.allclose(z, encoder(*view[rows]), atol=1e-6)


def test_make_views(folder):
    tokenizer = load(folder, tiny_recipe()).tokenizer
    first, second = make_views(Text(SENTENCES), tiny_recipe(), tokenizer)
    assert first is second and len(first) == 64
    assert len(make_views(Text(SENTENCES), tiny_recipe(positive="identical"), tokenizer)) == 1
    recipe = tiny_recipe(positive="delete", positive_rate=0.5)
    text, changed = make_views(Text(SENTENCES), recipe, tokenizer, seed=1)
    assert len(text) == len(changed) == 64 and changed.lengths.sum() < 0.8 * text.lengths.sum()
    other = make_views(Text(SENTENCES), recipe, tokenizer, seed=2)[1]
    assert not np.array_equal(other.lengths, changed.lengths)
    assert np.array_equal(
        make_views(Text(SENTENCES), recipe, tokenizer, seed=1)[1].ids, changed.ids
    )
    short = make_views(Text(SENTENCES), recipe.changed(max_length=6), tokenizer)
    assert [view.lengths.max() for view in short] == [6, 6]


def test_the_mask_view_uses_the_tokenizers_own_mask(folder):
    tokenizer = load(folder, tiny_recipe()).tokenizer
    recipe = tiny_recipe(positive="mask", positive_rate=1.0)
    assert set(make_views(Text(["a dog"]), recipe, tokenizer)[1].ids[1:-1].tolist()) == {
        tokenizer.mask_token_id
    }
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    assert set(make_views(Text(["a dog"]), recipe, tokenizer)[1].ids[1:-1].tolist()) == {
        tokenizer.mask_token_id
    }


def test_the_mask_view_needs_a_mask_token(folder):
    tokenizer = load(folder, tiny_recipe()).tokenizer
    tokenizer.mask_token = None
    with pytest.raises(ValueError, match="positive='mask' needs a tokenizer with a mask token"):
        make_views(Text(SENTENCES), tiny_recipe(positive="mask", positive_rate=0.3), tokenizer)
    assert (
        len(
            make_views(
                Text(SENTENCES), tiny_recipe(positive="delete", positive_rate=0.3), tokenizer
            )
        )
        == 2
    )


def test_dropout_is_the_only_difference_between_the_views(folder):
    with_dropout = quick(folder, steps=1, recipe=tiny_recipe(dropout=0.2))[1].history[0]
    encoder = load(folder, tiny_recipe(dropout=0.0))
    views = make_views(Text(SENTENCES), tiny_recipe(), encoder.tokenizer)
    z1, z2 = encode_views(encoder.train(), views, np.arange(8), torch.device("cpu"))
    assert torch.allclose(z1, z2, atol=1e-6)
    without = quick(folder, steps=1, recipe=tiny_recipe(dropout=0.0))[1].history[0]
    assert with_dropout["loss"] > without["loss"]


def test_identical_positives_have_one_encoding(folder):
    recipe = tiny_recipe(positive="identical", dropout=0.3)
    encoder = load(folder, recipe).train()
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    z1, z2 = encode_views(encoder, views, np.arange(4), torch.device("cpu"))
    assert z1 is z2
    _, result = quick(folder, steps=3, recipe=recipe)
    assert result.steps == 3 and all(h["in_batch_accuracy"] == 1.0 for h in result.history)


def test_nt_xent_is_the_loss_the_recipe_names(folder):
    recipe = tiny_recipe(loss="nt_xent", dropout=0.0, positive="delete", positive_rate=0.4)
    encoder = load(folder, recipe)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    rows = BucketBatches(
        np.maximum(views[0].lengths, views[1].lengths), 8, 42, recipe.bucket
    ).epoch(0)[0]
    with torch.no_grad():
        z = encode_views(encoder.train(), views, rows, torch.device("cpu"))
        expected = losses.nt_xent(*z, recipe.temperature).item()
    result = fit(encoder, views, recipe, max_steps=1, device="cpu", precision="fp32")
    assert result.history[0]["loss"] == pytest.approx(expected, abs=1e-5)


def test_linear_and_constant_schedules_with_warm_up():
    linear, total = tiny_recipe(lr=2.0, warmup=0.1), 20
    found = [learning_rate(linear, s, total) for s in range(total)]
    assert found[:3] == [1.0, 2.0, 2.0] and found[-1] == pytest.approx(2 / 18)
    assert np.allclose(np.diff(found[2:]), -2 / 18)
    constant = tiny_recipe(lr=2.0, warmup=0.25, schedule="constant")
    assert [learning_rate(constant, s, 8) for s in range(8)] == [1.0, 2.0, *[2.0] * 6]
    assert [learning_rate(tiny_recipe(lr=1.0, schedule="constant"), s, 3) for s in range(3)] == [
        1.0
    ] * 3


@pytest.mark.parametrize(
    ("warmup", "total"), [(0.0, 5), (0.1, 20), (0.25, 8), (0.33, 10), (1.0, 4)]
)
def test_a_warm_up_from_zero_is_that_of_transformers(warmup, total):
    makers = {
        "linear": get_linear_schedule_with_warmup,
        "constant": get_constant_schedule_with_warmup,
    }
    for schedule, maker in makers.items():
        recipe = tiny_recipe(lr=2e-4, warmup=warmup, schedule=schedule, warmup_from_zero=True)
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2e-4)
        size = {"num_training_steps": total} if schedule == "linear" else {}
        theirs = maker(optimizer, num_warmup_steps=math.ceil(warmup * total), **size)
        for step in range(total):
            assert learning_rate(recipe, step, total) == pytest.approx(
                optimizer.param_groups[0]["lr"], rel=1e-12
            )
            optimizer.step()
            theirs.step()


def uncorrected(p, gradients, lr, eps, decay, beta1=0.9, beta2=0.999):
    """AdamW without bias correction in plain numbers; the decay follows the step."""
    m = v = 0.0
    for g in gradients:
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p -= lr * m / (math.sqrt(v) + eps)
        p -= lr * decay * p
    return p


@pytest.mark.parametrize(("eps", "decay"), [(1e-6, 0.01), (0.3, 0.0), (0.3, 0.5)])
def test_adamw_without_bias_correction_is_the_formula(eps, decay):
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(2, 3)), rng.normal(size=(7, 2, 3))
    model = torch.nn.Linear(3, 2).double()
    model.weight.data = torch.from_numpy(start.copy())
    bias = model.bias.detach().clone()
    recipe = tiny_recipe(lr=0.1, adam_eps=eps, weight_decay=decay, bias_correction=False)
    optimizer = make_optimizer(model, recipe)
    for gradient in gradients:
        model.weight.grad = torch.from_numpy(gradient)
        optimizer.step()
    for row, column in np.ndindex(2, 3):
        expected = uncorrected(start[row, column], gradients[:, row, column], 0.1, eps, decay)
        assert model.weight[row, column].item() == pytest.approx(expected, rel=1e-12)
    assert torch.equal(model.bias, bias), "a parameter without gradient stays"


def test_a_training_without_bias_correction_takes_longer_first_steps(folder):
    """Without decay and with a negligible ε the first step of either is lr times a constant."""
    start = weights(load(folder, tiny_recipe(dropout=0.0)))
    moved = {}
    for correction in (True, False):
        recipe = tiny_recipe(dropout=0.0, grad_clip=0.0, bias_correction=correction, adam_eps=1e-20)
        moved[correction] = weights(quick(folder, steps=1, recipe=recipe)[0])
    name = "backbone.encoder.layer.0.intermediate.dense.weight"
    ratio = (moved[False][name] - start[name]) / (moved[True][name] - start[name])
    assert torch.allclose(ratio, torch.tensor(0.1 / math.sqrt(0.001)), rtol=1e-2)


def test_the_optimiser_uses_the_schedule(folder):
    still, _ = quick(folder, steps=4, recipe=tiny_recipe(lr=0.0))
    assert same(weights(still), weights(load(folder, tiny_recipe())))


def scripted(scores):
    """A dev function that returns one score after the other."""
    remaining = iter(scores)
    return lambda encoder: next(remaining)


def test_patience_stops_after_scores_without_a_new_best(folder):
    recipe = tiny_recipe(patience=2)
    _, result = quick(
        folder, steps=60, recipe=recipe, dev=scripted([1.0, 3.0, 2.0, 3.0, 9.0]), eval_every=3
    )
    assert result.stopped_early and result.steps == 12
    assert result.best_step == 6 and result.best_score == 3.0
    _, patient = quick(
        folder, steps=12, recipe=tiny_recipe(), dev=scripted([4.0, 3.0, 2.0, 1.0]), eval_every=3
    )
    assert not patient.stopped_early and patient.steps == 12


def test_patience_runs_out_for_an_encoder_that_has_collapsed(folder):
    nan = float("nan")
    _, result = quick(
        folder, steps=30, recipe=tiny_recipe(patience=2), dev=scripted([nan] * 9), eval_every=3
    )
    assert result.stopped_early and (result.steps, result.best_step) == (9, 3)
    _, saved = quick(
        folder,
        steps=12,
        recipe=tiny_recipe(patience=2),
        dev=scripted([nan, 1.0, nan, 0.5]),
        eval_every=3,
    )
    assert (saved.best_step, saved.best_score, saved.stopped_early) == (6, 1.0, True)


def test_best_and_last_weights_are_both_kept(folder, tmp_path):
    seen = []

    def dev(encoder):
        assert not any(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())
        seen.append(weights(encoder))
        return [1.0, 5.0, 2.0, 5.0][len(seen) - 1]

    encoder, result = quick(folder, steps=12, dev=dev, eval_every=3, out=tmp_path / "run")
    assert result.best_step == 6 and result.best_score == 5.0 and len(seen) == 4
    assert (
        same(result.best_state, seen[1])
        and same(weights(encoder), seen[3])
        and not same(seen[1], seen[3])
    )
    assert same(weights(Encoder.load(tmp_path / "run" / "best")), seen[1])
    assert same(weights(Encoder.load(tmp_path / "run" / "last")), seen[3])
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "best",
        "checkpoint.safetensors",
        "last",
    ]


def test_a_score_that_is_not_a_number_is_no_best(folder):
    _, result = quick(folder, steps=9, dev=scripted([math.nan, 2.0, math.nan]), eval_every=3)
    assert result.best_step == 6 and result.best_score == 2.0


def test_dev_scores_are_of_an_encoder_in_evaluation_mode(folder):
    modes, losses_without = [], quick(folder, steps=5)[1].history
    _, result = quick(
        folder, steps=5, dev=lambda e: float(modes.append(e.training) or 0), eval_every=2
    )
    assert modes == [False] * 3
    assert [h["loss"] for h in result.history] == [h["loss"] for h in losses_without], (
        "dropout is on again"
    )


def test_the_dev_score_does_not_change_the_training(folder):
    plain, a = quick(folder, steps=7)
    scored, b = quick(
        folder, steps=7, dev=lambda e: float(e.encode(SENTENCES[:4]).sum()), eval_every=2
    )
    assert same(weights(plain), weights(scored))
    assert [h["loss"] for h in a.history] == [h["loss"] for h in b.history]


def test_the_seed_reaches_batches_and_dropout_each(folder):
    """Batches: a training without dropout; dropout: one whose sentences are all the same."""
    batches, dropout = {}, {}
    for seed in (0, 1, 42):
        still = tiny_recipe(lr=0.0, dropout=0.0, positive="crop", positive_rate=0.3)
        batches[seed] = tuple(
            h["loss"] for h in quick(folder, steps=3, seed=seed, recipe=still)[1].history
        )
        noisy = tiny_recipe(lr=0.0, dropout=0.3)
        found = quick(folder, steps=3, seed=seed, recipe=noisy, text=["a dog sleeps ."] * 8)[
            1
        ].history
        dropout[seed] = tuple(h["loss"] for h in found)
    assert len(set(batches.values())) == len(set(dropout.values())) == 3
    assert all(len(set(found)) == 3 for found in dropout.values()), "each step has masks of its own"


def test_processes_have_independent_dropout():
    seeds = [
        train.dropout_seed(seed, rank, step)
        for seed in range(5)
        for rank in range(1, 5)
        for step in (0, 9)
    ]
    assert len(set(seeds)) == len(seeds) and min(seeds) > 1000
    assert [train.dropout_seed(seed, 0) for seed in (0, 7)] == [0, 7]


def test_the_seed_decides_everything(folder):
    first, again = (quick(folder, steps=4)[0] for _ in range(2))
    other = quick(folder, steps=4, seed=1)[0]
    assert same(weights(first), weights(again)) and not same(weights(first), weights(other))


@pytest.mark.parametrize("bucket", [False, True])
def test_batches_are_those_of_the_recipe(folder, bucket):
    """Of both views' lengths the larger one counts."""
    recipe = tiny_recipe(bucket=bucket, dropout=0.0, lr=0.0, positive="file")
    aligned = [" ".join([sentence, *["dog"] * (i % 5)]) for i, sentence in enumerate(SENTENCES)]
    _, result = quick(folder, steps=3, recipe=recipe, aligned=aligned)
    encoder = load(folder, recipe).train()
    views = make_views(Text(SENTENCES, aligned=aligned), recipe, encoder.tokenizer)
    lengths = np.maximum(views[0].lengths, views[1].lengths)
    for rows, row in zip(
        BucketBatches(lengths, 8, 42, bucket).epoch(0), result.history, strict=False
    ):
        loss = info_nce(*(encoder(*view[rows]) for view in views), recipe.temperature)
        assert row["loss"] == pytest.approx(loss.item(), abs=1e-5)


@pytest.mark.parametrize(("sentences", "steps"), [(64, 8), (61, 8), (5, 1)])
def test_the_last_batch_may_be_smaller(folder, sentences, steps):
    recipe = tiny_recipe(drop_last=False, epochs=2, negative="una", radius=5, every=1)
    asked = []

    def recorded(rows, step, negatives=None):
        asked.append(rows)
        return make_views(Text([SENTENCES[i] for i in rows]), recipe, tokenizer)[0][
            np.arange(len(rows))
        ]

    tokenizer = load(folder, recipe).tokenizer
    _, result = quick(
        folder, steps=None, recipe=recipe, text=SENTENCES[:sentences], negatives=recorded
    )
    assert result.steps == 2 * steps == len(asked)
    for epoch in (asked[:steps], asked[steps:]):
        assert sorted(np.concatenate(epoch)) == list(range(sentences))
    assert result.sentences_per_second == pytest.approx(2 * sentences / result.seconds)


@pytest.mark.parametrize(("size", "sentences"), [(8, 57), (3, 64), (8, 1)])
def test_a_batch_of_one_sentence_is_an_error(folder, size, sentences):
    recipe = tiny_recipe(batch_size=size, drop_last=False)
    with pytest.raises(
        ValueError, match=f"a batch of one sentence .*batch_size={size} with {sentences}"
    ):
        quick(folder, steps=1, recipe=recipe, text=SENTENCES[:sentences])


@pytest.mark.parametrize("at", [1, 13])
def test_a_loss_that_is_not_finite_ends_the_run(folder, monkeypatch, at):
    count = []

    def objective(z1, z2, temperature):
        count.append(0)
        return info_nce(z1, z2, temperature) * (math.nan if len(count) == at else 1.0)

    monkeypatch.setitem(LOSSES, "info_nce", objective)
    with pytest.raises(
        FloatingPointError, match=rf"the loss is nan at step {at} .*lower the learning rate"
    ):
        quick(folder, steps=30, recipe=tiny_recipe(eval_every=100))
    assert len(count) < at + train.FLUSH_EVERY + 1


def test_poisoned_weights_never_reach_a_checkpoint(folder, tmp_path):
    recipe = tiny_recipe()
    encoder = load(folder, recipe)
    with torch.no_grad():
        encoder.backbone.embeddings.word_embeddings.weight[:] = math.nan
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    with pytest.raises(FloatingPointError):
        fit(
            encoder,
            views,
            recipe,
            max_steps=9,
            dev=lambda e: 0.0,
            out=tmp_path / "run",
            device="cpu",
            precision="fp32",
        )
    assert list((tmp_path / "run").iterdir()) == []


def test_bf16_trains_close_to_fp32(folder):
    fp32, bf16 = (quick(folder, steps=5, precision=p)[1].history for p in ("fp32", "bf16"))
    assert [h["loss"] for h in fp32] != [h["loss"] for h in bf16]
    assert np.allclose([h["loss"] for h in fp32], [h["loss"] for h in bf16], atol=0.15)


@pytest.mark.parametrize(
    ("argument", "value", "least"),
    [("steps", v, 0) for v in (-3, 0.5, True, "4")]
    + [("seed", v, 0) for v in (-1, 1.5, None)]
    + [("eval_every", v, 1) for v in (0, -1, 2.5)],
)
def test_numbers_that_count_nothing_are_errors(folder, argument, value, least):
    name = {"steps": "max_steps"}.get(argument, argument)
    with pytest.raises(ValueError, match=f"{name} must be"):
        quick(folder, **{"dev": lambda e: 0.0, argument: value})


def test_errors_say_what_is_wrong(folder):
    recipe = tiny_recipe()
    encoder = load(folder, recipe)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    short = tokenise(SENTENCES[:9], encoder.tokenizer, 16, progress=False)
    with pytest.raises(ValueError, match="aligned row by row"):
        fit(encoder, [views[0], short], recipe, max_steps=1)
    with pytest.raises(ValueError, match=r"loss must be .* got 'triplet'"):
        fit(encoder, views, tiny_recipe(loss="triplet"), max_steps=1)
    with pytest.raises(ValueError, match="lower batch_size"):
        fit(encoder, [short], tiny_recipe(batch_size=10), max_steps=1)


# --- interruption
# -----------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    pass


def interrupted(folder, out, after, **options):
    """Train into `out` until the dev function has been called `after` times, then fail."""
    calls = []

    def dev(encoder):
        if len(calls) == after:
            raise Interrupted
        calls.append(0)
        return float(encoder.encode(SENTENCES[:6]).std())

    options.setdefault("eval_every", 3)
    try:
        return quick(folder, dev=dev, out=out, **options)
    except Interrupted:
        return None


def test_an_interrupted_run_continues_bit_for_bit(folder, tmp_path):
    whole, expected = interrupted(folder, tmp_path / "whole", 99, steps=20)
    assert interrupted(folder, tmp_path / "cut", 3, steps=20) is None
    assert (tmp_path / "cut" / "checkpoint.safetensors").exists()
    assert interrupted(folder, tmp_path / "cut", 2, steps=20) is None
    again, result = interrupted(folder, tmp_path / "cut", 99, steps=20)
    assert result.history == expected.history and len(result.history) == 20
    assert (result.best_step, result.best_score, result.steps) == (
        expected.best_step,
        expected.best_score,
        20,
    )
    assert same(weights(again), weights(whole)) and same(result.best_state, expected.best_state)


def test_resume_false_starts_again(folder, tmp_path):
    interrupted(folder, tmp_path / "cut", 2, steps=12)
    _, result = interrupted(folder, tmp_path / "cut", 99, steps=12, resume=False, seed=5)
    assert result.history == interrupted(folder, tmp_path / "new", 99, steps=12, seed=5)[1].history


def changed_text(number):
    return [*SENTENCES[:number], "a dog sleeps .", *SENTENCES[number + 1 :]]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 13}, "steps: 12 there, 13 here"),
        ({"seed": 1}, "seed: 42 there, 1 here"),
        ({"lr": 0.5}, "lr: 0.001 there, 0.5 here"),
        ({"bucket": "other"}, "bucket: "),
        ({"drop_last": False}, "drop_last: True there, False here"),
        ({"precision": "bf16"}, "precision: fp32 there, bf16 here"),
        ({"eval_every": 4}, "eval_every: 3 there, 4 here"),
        ({"head_seed": 1}, "initial weights: "),
        ({"text": changed_text(60)}, "text: "),
        ({"aligned": changed_text(60)}, "text: "),
        ({"negatives": 1}, "hard negatives: "),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_checkpoint_of_another_training_is_refused(folder, tmp_path, change, named):
    """The message names what differs and nothing else."""
    recipe = tiny_recipe(positive="file", negative="una", radius=5)
    tokenizer = load(folder, recipe).tokenizer

    def run(after, change):
        options = {"steps": 12, "aligned": SENTENCES, "eval_every": 3, **change}
        fields = {
            name: options.pop(name)
            for name in list(options)
            if name in ("lr", "bucket", "drop_last")
        }
        if "bucket" in fields:
            fields["bucket"] = not recipe.bucket
        seed = options.pop("negatives", 0)
        options["negatives"] = make_negatives(Text(SENTENCES), recipe, tokenizer, seed)
        return interrupted(folder, tmp_path, after, recipe=recipe.changed(**fields), **options)

    assert run(2, {}) is None
    with pytest.raises(
        ValueError, match=f"another training \\({named}[^;]*\\): use resume=False or another"
    ):
        run(99, change)
    assert run(99, {})[1].steps == 12


def test_chunks_draw_other_masks_and_are_another_training(folder, tmp_path):
    losses = {}
    for dropout in (0.0, 0.2):
        for chunk in (0, 5):
            recipe = tiny_recipe(chunk_size=chunk, dropout=dropout)
            history = quick(folder, recipe=recipe, steps=3)[1].history
            losses[dropout, chunk] = [step["loss"] for step in history]
    assert np.allclose(losses[0.0, 0], losses[0.0, 5], atol=1e-5)
    assert not np.allclose(losses[0.2, 0], losses[0.2, 5], atol=1e-3)
    assert interrupted(folder, tmp_path, 2, steps=12) is None
    with pytest.raises(ValueError, match="another training \\(chunk_size"):
        interrupted(folder, tmp_path, 99, steps=12, recipe=tiny_recipe(chunk_size=5))


def test_the_name_of_a_recipe_may_change_on_the_way(folder, tmp_path):
    assert interrupted(folder, tmp_path, 2, steps=12) is None
    other = tiny_recipe().model_copy(update={"name": "another", "source": "elsewhere"})
    assert interrupted(folder, tmp_path, 99, steps=12, recipe=other)[1].steps == 12


class Unplugged(Exception):
    pass


CUT_AT: list[int] = []


def unplug(event: str, arguments: tuple) -> None:
    """An audit hook: a checkpoint gets no name when CUT_AT has counted down to 0."""
    if CUT_AT and event == "os.rename" and str(arguments[1]).endswith("checkpoint.safetensors"):
        CUT_AT[0] -= 1
        if CUT_AT[0] == 0:
            CUT_AT.clear()
            raise Unplugged


sys.addaudithook(unplug)


@pytest.mark.parametrize("lora_rank", [0, 2])
def test_the_best_score_and_the_best_weights_are_of_one_step(folder, tmp_path, lora_rank):
    """Cut off after a new best and before its checkpoint; repeated, the steps have other scores."""
    recipe = tiny_recipe(lora_rank=lora_rank)
    seen: dict[int, dict] = {}

    def run(scores):
        steps = itertools.count(len(seen) * 3, 3)

        def dev(encoder):
            step = next(steps) + 3
            seen[step] = {k: v.clone() for k, v in encoder.trained_state().items()}
            return scores[step]

        return quick(folder, steps=12, recipe=recipe, dev=dev, eval_every=3, out=tmp_path / "run")

    CUT_AT.append(2)
    with pytest.raises(Unplugged):
        run({3: 1.0, 6: 5.0})
    del seen[6]
    encoder, result = run({6: 0.5, 9: 0.75, 12: 0.25})
    assert (result.best_step, result.best_score) == (3, 1.0)
    assert same(result.best_state, seen[3]) and not same(seen[3], seen[12])
    at_best = load(folder, recipe)
    at_best.load_trained_state(seen[3])
    for name, expected in (("best", at_best), ("last", encoder)):
        found = Encoder.load(tmp_path / "run" / name).encode(SENTENCES, precision="fp32")
        assert np.allclose(found, expected.eval().encode(SENTENCES, precision="fp32"), atol=1e-5), (
            name
        )


def test_a_training_with_lora_goes_on_bit_for_bit(folder, tmp_path):
    """The best score lies before the interruption; frozen weights are not written."""
    options = {"steps": 12, "recipe": tiny_recipe(lora_rank=2, dropout=0.2), "eval_every": 3}
    whole, expected = quick(
        folder, dev=scripted([1.0, 5.0, 2.0, 3.0]), out=tmp_path / "whole", **options
    )
    with pytest.raises(StopIteration):
        quick(folder, dev=scripted([1.0, 5.0, 2.0]), out=tmp_path / "cut", **options)
    again, result = quick(folder, dev=scripted([3.0]), out=tmp_path / "cut", **options)
    assert result.history == expected.history and result.best_step == expected.best_step == 6
    assert same(weights(again), weights(whole)) and same(result.best_state, expected.best_state)
    for name in ("best", "last"):
        ours, theirs = (Encoder.load(tmp_path / side / name) for side in ("cut", "whole"))
        assert same(weights(ours), weights(theirs)), name
    with safe_open(tmp_path / "cut" / "checkpoint.safetensors", "pt") as file:
        names = list(file.keys())
    assert any("lora_A" in name for name in names) and not any(
        "word_embeddings" in name for name in names
    )


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes()[:50]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"version https://git-lfs.github.com/spec/v1"),
        lambda path: flip(path, 60),
        lambda path: flip(path, -1),
        lambda path: flip(path, -40_000),
        lambda path: save_file({"model.x": torch.zeros(1)}, path),
    ],
    ids=[
        "cut",
        "cut in the header",
        "empty",
        "no checkpoint",
        "header",
        "last byte",
        "a weight",
        "another file",
    ],
)
def test_a_damaged_checkpoint_is_set_aside_and_the_training_begins_anew(folder, tmp_path, harm):
    _, expected = interrupted(folder, tmp_path / "whole", 99, steps=6)
    assert interrupted(folder, tmp_path / "cut", 1, steps=6) is None
    path = tmp_path / "cut" / "checkpoint.safetensors"
    harm(path)
    harmed = path.read_bytes()
    with pytest.warns(
        UserWarning, match=r"checkpoint\.safetensors is damaged: .*starts again from step 0"
    ):
        _, result = interrupted(folder, tmp_path / "cut", 99, steps=6)
    assert result.history == expected.history and same(result.best_state, expected.best_state)
    assert (tmp_path / "cut" / "checkpoint.damaged").read_bytes() == harmed
    train.discard_checkpoint(tmp_path / "cut")
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == ["best", "last"]


def test_patience_survives_an_interruption(folder, tmp_path):
    options = {"steps": 30, "recipe": tiny_recipe(patience=2), "eval_every": 3}
    expected = quick(folder, dev=scripted([3.0, 2.0, 1.0]), out=tmp_path / "whole", **options)[1]
    with pytest.raises(StopIteration):
        quick(folder, dev=scripted([3.0, 2.0]), out=tmp_path / "cut", **options)
    result = quick(folder, dev=scripted([1.0]), out=tmp_path / "cut", **options)[1]
    assert result.stopped_early and result.steps == expected.steps == 9
    assert result.history == expected.history
    again = quick(folder, dev=scripted([]), out=tmp_path / "cut", **options)[1]
    assert again.stopped_early and again.history == expected.history


def test_a_checkpoint_is_complete_or_absent(folder, tmp_path, monkeypatch):
    written = []

    def half(tensors, path, metadata=None):
        Path(path).write_bytes(b"half")
        written.append(path)
        raise Interrupted

    monkeypatch.setattr(checkpoint, "save_file", half)
    with pytest.raises(Interrupted):
        quick(folder, steps=9, eval_every=3, out=tmp_path / "run")
    assert len(written) == 1 and list((tmp_path / "run").iterdir()) == []
    monkeypatch.undo()
    _, result = quick(folder, steps=9, eval_every=3, out=tmp_path / "run")
    assert result.steps == len(result.history) == 9
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "checkpoint.safetensors",
        "last",
    ]


def test_a_finished_training_comes_back_until_its_checkpoint_is_discarded(folder, tmp_path):
    first, expected = interrupted(folder, tmp_path / "run", 99, steps=9)
    again, result = interrupted(
        folder, tmp_path / "run", 0, steps=9
    )  # no dev score is asked for again
    assert result.history == expected.history and same(weights(again), weights(first))
    assert result.seconds == expected.seconds > 0
    train.discard_checkpoint(tmp_path / "run")
    assert interrupted(folder, tmp_path / "run", 0, steps=9) is None


KILLS = """
import json, os, signal, sys, threading
from pathlib import Path
import torch
from safetensors.torch import save_file
from tqdm import tqdm
from tiny import tiny_bert, tiny_recipe, tiny_sentences
from lib.encoder import Encoder
from tiny import fit
from lib.training.positives import Text, make_views

torch.set_num_threads(1)
tqdm.set_lock(threading.RLock())  # its own lock is shared by forked processes: one killed would block the others
tqdm.monitor_interval = 0  # no thread that could hold the lock at a fork
base, steps = Path(sys.argv[1]), 6
tiny_bert(base / "bert")
sentences, recipe = tiny_sentences(48), tiny_recipe(lr=3e-3)

def dev(encoder):
    return float(encoder.encode(sentences[:6], precision="fp32").std())

def run(out):
    encoder = Encoder.load(base / "bert", pooling="cls", head="tanh", eval_pooling="mean")
    views = make_views(Text(sentences), recipe, encoder.tokenizer)
    result = fit(encoder, views, recipe, max_steps=steps, dev=dev, out=out, device="cpu", precision="fp32")
    save_file({f"last.{k}": v for k, v in encoder.state_dict().items()}
              | {f"best.{k}": v for k, v in result.best_state.items()}, out / "weights.safetensors")
    state = [result.history, result.best_step, result.best_score, result.steps, result.stopped_early]
    (out / "result.json").write_text(json.dumps(state))

def child(out, prepare=lambda out: None):
    pid = os.fork()
    if pid == 0:
        prepare(out)
        try:
            run(out)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

def killed(pid):
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)

def kill_at(number):
    # SIGKILL before the number-th time that a file is opened for writing, renamed or removed
    def prepare(out):
        count = [0]
        def hook(event, arguments):
            if event not in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"):
                return
            if event == "open" and not set(str(arguments[1])) & set("wxa+"):
                return
            if str(out) in str(arguments[0]) and not str(arguments[0]).endswith(("result.json", "weights.safetensors")):
                count[0] += 1
                if count[0] == number:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
    return prepare

assert not killed(child(base / "whole"))
def finish(out):
    assert not killed(child(out))

kills, number = 0, 1
while True:
    out = base / f"operation-{number}"
    if not killed(child(out, kill_at(number))):
        break
    kills += 1
    finish(out)
    number += int(sys.argv[2])
print(kills)
"""


def test_a_killed_process_ends_with_the_same_bits(tmp_path):
    """SIGKILL at every third file operation; then resumed, and nothing is left over."""
    here = Path(__file__).parent
    script = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\n" + KILLS
    command = [sys.executable, "-c", script, str(tmp_path), "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) >= 8
    expected = (tmp_path / "whole" / "result.json").read_text()
    bits = (tmp_path / "whole" / "weights.safetensors").read_bytes()
    assert len(json.loads(expected)[0]) == 6
    for out in tmp_path.glob("operation-*"):
        assert (out / "result.json").read_text() == expected, out.name
        assert (out / "weights.safetensors").read_bytes() == bits, out.name
        names = {"best", "last", "checkpoint.safetensors", "result.json", "weights.safetensors"}
        assert {p.name for p in out.iterdir()} == names, out.name


def test_rows_of_unlike_width_share_a_batch(folder):
    recipe = tiny_recipe()
    encoder = load(folder, recipe)
    narrow = TokenRows(np.array([2, 6, 3] * 8, np.uint16), np.arange(9) * 3, 0)
    wide = TokenRows(np.array([2, 6, 7, 8, 3] * 8, np.uint16), np.arange(9) * 5, 0)
    z1, z2 = encode_views(encoder, [narrow, wide], np.arange(8), torch.device("cpu"))
    assert torch.allclose(z1, encoder(*narrow[np.arange(8)]), atol=1e-6)
    assert torch.allclose(z2, encoder(*wide[np.arange(8)]), atol=1e-6)


# --- hard negatives and augmented embeddings
# ---------------------------------------------------------------


def with_negatives(folder, steps=1, **changes):
    """`fit` without dropout and learning on UNA negatives; the losses and which steps asked for
    negatives."""
    recipe = tiny_recipe(
        negative="una",
        radius=5,
        dropout=0.0,
        lr=0.0,
        temperature=0.3,
        positive="delete",
        positive_rate=0.3,
        **changes,
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    negatives = make_negatives(Text(SENTENCES), recipe, encoder.tokenizer, seed=1)
    asked = []

    def counted(rows, step):
        asked.append((step, rows))
        return negatives(rows, step)

    result = fit(
        encoder, views, recipe, negatives=counted, max_steps=steps, device="cpu", precision="fp32"
    )
    return encoder.train(), views, negatives, asked, [h["loss"] for h in result.history]


@pytest.mark.parametrize("objective", ["info_nce", "nt_xent"])
@pytest.mark.parametrize("mode", ["doubled", "extra"])
def test_negatives_enter_the_loss_as_the_mode_says(folder, mode, objective):
    encoder, views, negatives, asked, found = with_negatives(
        folder, negative_mode=mode, loss=objective
    )
    ((step, rows),) = asked
    z1, z2 = encode_views(encoder, views, rows, torch.device("cpu"))
    text = negatives.strings(rows, step)
    assert all(a != b for a, b in zip(text, [SENTENCES[i] for i in rows], strict=True))
    batch = encoder.tokenizer(
        text, padding=True, truncation=True, max_length=16, return_tensors="pt"
    )
    zn = encoder(batch["input_ids"], batch["attention_mask"])
    function = LOSSES[objective]
    if mode == "doubled":  # without dropout a negative's two encodings are equal
        expected = function(torch.cat([z1, zn]), torch.cat([z2, zn]), 0.3)
    else:
        expected = function(z1, z2, 0.3, zn)
    assert found[0] == pytest.approx(expected.item(), abs=1e-5)


def test_every_names_the_steps(folder):
    assert [s for s, _ in with_negatives(folder, 11, every=5)[3]] == [0, 5, 10]
    assert [s for s, _ in with_negatives(folder, 4, every=1)[3]] == [0, 1, 2, 3]


def test_negatives_are_drawn_afresh_in_every_step_and_by_the_seed(folder):
    """What the training is given are the ids of the negatives' text, cut as the recipe says."""
    recipe = tiny_recipe(negative="una", radius=5, max_length=9)
    tokenizer, rows = load(folder, recipe).tokenizer, np.arange(8)
    drawn = {}
    for seed, step in ((0, 0), (0, 5), (1, 0)):
        negatives = make_negatives(Text(SENTENCES), recipe, tokenizer, seed)
        text = negatives.strings(rows, step)
        expected = tokenizer(text, padding=True, truncation=True, max_length=9, return_tensors="pt")
        for _ in range(2):
            ids, mask = negatives(rows, step)
            assert torch.equal(ids, expected["input_ids"]) and torch.equal(
                mask, expected["attention_mask"]
            )
        drawn[seed, step] = tuple(text)
    assert len(set(drawn.values())) == 3


@pytest.mark.parametrize(
    "change",
    [{"beta": 0.9}, {"radius": 40}, {"negative_select": "random"}, {"negative_replace": "uniform"}],
    ids=lambda change: next(iter(change)),
)
def test_each_field_of_the_recipe_reaches_the_negatives(folder, change):
    recipe, rows = tiny_recipe(negative="una", radius=5), np.arange(64)
    tokenizer = load(folder, recipe).tokenizer
    plain, other = (
        make_negatives(Text(SENTENCES), r, tokenizer) for r in (recipe, recipe.changed(**change))
    )
    assert plain.strings(rows, 0) != other.strings(rows, 0)


def test_further_text_is_counted_with_the_sentences(folder):
    recipe = tiny_recipe(negative="una", radius=5)
    tokenizer = load(folder, recipe).tokenizer
    terms = set(make_negatives(Text(SENTENCES), recipe, tokenizer).model.terms)
    more = set(
        make_negatives(Text(SENTENCES, aligned=["a zebra runs ."]), recipe, tokenizer).model.terms
    )
    assert more - terms == {"zebra"}


def test_a_recipe_and_its_negatives_must_agree(folder):
    encoder = Encoder.load(folder)
    recipe = tiny_recipe(negative="una", radius=5)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    with pytest.raises(ValueError, match="pass negatives="):
        fit(encoder, views, recipe, max_steps=1)
    with pytest.raises(ValueError, match="negative must be one of"):
        make_negatives(Text(SENTENCES), tiny_recipe(negative="unna"), encoder.tokenizer)
    with pytest.raises(ValueError, match="negative_mode must be"):
        fit(encoder, views, tiny_recipe(negative_mode="twice"), max_steps=1)
    with pytest.raises(ValueError, match="representation must be"):
        fit(encoder, views, tiny_recipe(representation="blur"), max_steps=1)


def test_negations_are_relaxed_negatives_of_their_own_sentence(folder):
    recipe = tiny_recipe(
        positive="sda",
        negative="sda",
        negative_mode="margin",
        every=1,
        delta=0.4,
        lr=0.0,
        temperature=0.3,
        dropout=0.0,
        loss_weight=3.0,
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    aligned, negated = (
        [s.replace(".", "today .") for s in SENTENCES],
        ["not " + s for s in SENTENCES],
    )
    views = make_views(Text(SENTENCES, aligned=aligned), recipe, encoder.tokenizer)
    negatives = make_negatives(Text(SENTENCES, negated=negated), recipe, encoder.tokenizer)
    result = fit(
        encoder, views, recipe, negatives=negatives, max_steps=1, device="cpu", precision="fp32"
    )
    rows = next(
        iter(
            BucketBatches(
                np.maximum(*(v.lengths for v in views)), recipe.batch_size, 42, recipe.bucket
            ).epoch(0)
        )
    )
    texts = [[text[i] for i in rows] for text in (SENTENCES, aligned, negated)]
    encoder.train()
    z1, z2, zn = (
        encoder(*make_views(Text(text), tiny_recipe(), encoder.tokenizer)[0][np.arange(len(text))])
        for text in texts
    )
    cosine = torch.cosine_similarity(z1[:, None], z2[None], dim=2) / 0.3
    own = (torch.cosine_similarity(z1, zn) - 0.4) / 0.3
    expected = 3 * (torch.cat([cosine, own[:, None]], 1).logsumexp(1) - cosine.diagonal()).mean()
    assert result.history[0]["loss"] == pytest.approx(expected.item(), abs=1e-5)


def test_negations_must_be_aligned_and_fit_the_loss(folder):
    encoder, recipe = Encoder.load(folder), tiny_recipe(negative="sda", negative_mode="margin")
    for wrong in (None, SENTENCES[1:]):
        with pytest.raises(ValueError, match="one negation for each"):
            make_negatives(Text(SENTENCES, negated=wrong), recipe, encoder.tokenizer)
    short = recipe.changed(max_length=5)
    negatives = make_negatives(Text(SENTENCES, negated=SENTENCES[::-1]), short, encoder.tokenizer)
    ids, mask = negatives(np.arange(64), 0)
    expected = encoder.tokenizer(SENTENCES[::-1], padding=True, truncation=True, max_length=5)
    assert ids.tolist() == expected["input_ids"] and mask.tolist() == expected["attention_mask"]
    with pytest.raises(ValueError, match="form of the loss 'info_nce'"):
        recipe.changed(loss="nt_xent")


@pytest.mark.parametrize("radius", [7, 0.0089, 0.5])
def test_a_radius_below_one_is_a_share_of_the_vocabulary(folder, radius):
    tokenizer = Encoder.load(folder).tokenizer
    negatives = make_negatives(
        Text(SENTENCES), tiny_recipe(negative="una", radius=radius), tokenizer
    )
    assert negatives.una.radius == (
        radius if radius >= 1 else math.ceil(radius * len(negatives.model.terms))
    )


def test_augmented_embeddings_enter_the_loss(folder):
    recipe = tiny_recipe(
        representation="extrapolate",
        representation_strength=0.5,
        dropout=0.0,
        lr=0.0,
        temperature=0.3,
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    views = make_views(Text(SENTENCES), recipe, encoder.tokenizer)
    loss = fit(encoder, views, recipe, max_steps=1, device="cpu", precision="fp32").history[0][
        "loss"
    ]
    rows = next(
        iter(BucketBatches(views[0].lengths, recipe.batch_size, 42, recipe.bucket).epoch(0))
    )
    z, _ = encode_views(encoder.train(), views, rows, torch.device("cpu"))
    assert loss == pytest.approx(
        losses.info_nce(z, z + 0.5 * (z - z.mean(0)), 0.3).item(), abs=1e-5
    )


def test_positives_of_a_file_must_be_aligned(folder):
    encoder, recipe = Encoder.load(folder), tiny_recipe(positive="file")
    first, second = make_views(Text(SENTENCES, aligned=SENTENCES[::-1]), recipe, encoder.tokenizer)
    assert first[[0]][0].tolist() == second[[len(SENTENCES) - 1]][0].tolist()
    for wrong in (None, SENTENCES[1:]):
        with pytest.raises(ValueError, match="one line for each of"):
            make_views(Text(SENTENCES, aligned=wrong), recipe, encoder.tokenizer)


def test_a_checkpoint_names_the_machine_and_the_schedule_that_decide_its_numbers(folder, tmp_path):
    quick(folder, steps=3, dev=lambda encoder: 1.0, eval_every=3, out=tmp_path)
    _, state = checkpoint.load(tmp_path)
    expected = {
        "device": "cpu",
        "precision": "fp32",
        "compile": False,
        "processes": 1,
        "steps": 3,
        "eval_every": 3,
    }
    assert {name: state["identity"][name] for name in expected} == expected and state["identity"][
        "seed"
    ] == 42


def test_noise_on_embeddings_depends_on_the_seed_and_the_step(folder, monkeypatch):
    drawn = []

    def recorder(z, strength, generator):
        drawn.append(tuple(torch.rand(3, generator=generator).tolist()))
        return z

    monkeypatch.setitem(REPRESENTATIONS, "add_gaussian", recorder)
    for seed in (42, 42, 43):
        quick(folder, steps=3, seed=seed, recipe=tiny_recipe(representation="add_gaussian"))
    assert drawn[:3] == drawn[3:6] and len(set(drawn)) == 6


# --- views in embedding space
# ------------------------------------------------------------------------

VIEWS = {"dropout": 0.0, "view1": "feature_cutoff", "rate1": 0.3, "view2": "shuffle"}


def test_the_first_step_with_views_by_hand(folder):
    recipe = tiny_recipe(lr=0.0, **VIEWS)
    _, result = quick(folder, steps=1, recipe=recipe)
    encoder = load(folder, recipe).train()
    rows_of = make_views(Text(SENTENCES), recipe, encoder.tokenizer)[0]
    ids, mask = rows_of[next(iter(BucketBatches(rows_of.lengths, 8, 42, recipe.bucket).epoch(0)))]
    generator = torch.Generator().manual_seed(
        int(np.random.SeedSequence([42, 0, 0]).generate_state(1)[0])
    )
    positions = torch.arange(ids.shape[1]).repeat(len(ids), 1)
    shuffled = shuffle(positions, mask, generator)
    words = encoder.backbone.embeddings(input_ids=ids)
    first = feature_cutoff(words.clone(), mask, 0.3, generator)
    handle = encoder.backbone.embeddings.register_forward_hook(lambda *_: first)
    z1 = encoder(ids, mask)
    handle.remove()
    second = encoder.backbone.embeddings(input_ids=ids, position_ids=shuffled)
    handle = encoder.backbone.embeddings.register_forward_hook(lambda *_: second)
    z2 = encoder(ids, mask)
    handle.remove()
    assert result.history[0]["loss"] == pytest.approx(
        info_nce(z1, z2, recipe.temperature).item(), rel=1e-4
    )


def test_each_view_has_its_own_rate(folder):
    recipe = tiny_recipe(
        lr=0.0, dropout=0.0, view1="token_cutoff", rate1=0.2, view2="feature_cutoff", rate2=0.6
    )
    _, result = quick(folder, steps=1, recipe=recipe)
    encoder = load(folder, recipe).train()
    rows_of = make_views(Text(SENTENCES), recipe, encoder.tokenizer)[0]
    ids, mask = rows_of[next(iter(BucketBatches(rows_of.lengths, 8, 42, recipe.bucket).epoch(0)))]
    generator = torch.Generator().manual_seed(
        int(np.random.SeedSequence([42, 0, 0]).generate_state(1)[0])
    )
    words, z = encoder.backbone.embeddings(input_ids=ids), []
    for view, rate in ((token_cutoff, 0.2), (feature_cutoff, 0.6)):
        changed = view(words.clone(), mask, rate, generator)
        handle = encoder.backbone.embeddings.register_forward_hook(
            lambda *_, changed=changed: changed
        )
        z.append(encoder(ids, mask))
        handle.remove()
    assert result.history[0]["loss"] == pytest.approx(
        info_nce(*z, recipe.temperature).item(), rel=1e-4
    )


def test_views_in_embedding_space_are_drawn_by_seed_and_step(folder):
    first, second, other = (
        quick(folder, steps=3, seed=s, recipe=tiny_recipe(**VIEWS))[0] for s in (1, 1, 2)
    )
    assert same(weights(first), weights(second)) and not same(weights(first), weights(other))
    assert not first.backbone.embeddings._forward_pre_hooks


def test_views_go_on_bit_for_bit_after_an_interruption(folder, tmp_path):
    options = {"steps": 9, "recipe": tiny_recipe(**VIEWS)}
    whole, _ = interrupted(folder, tmp_path / "whole", 99, **options)
    assert interrupted(folder, tmp_path / "cut", 1, **options) is None
    assert same(weights(whole), weights(interrupted(folder, tmp_path / "cut", 99, **options)[0]))


def test_dev_scores_see_no_views(folder):
    seen = []

    def dev(encoder):
        seen.append(encoder.encode(SENTENCES, precision="fp32"))
        return 0.0

    quick(folder, steps=2, recipe=tiny_recipe(**{**VIEWS, "lr": 0.0}), dev=dev, eval_every=1)
    plain = load(folder, tiny_recipe()).encode(SENTENCES, precision="fp32")
    assert len(seen) == 2 and all(np.array_equal(z, plain) for z in seen)


def test_the_weight_scales_the_loss(folder):
    changes = {"dropout": 0.0, "lr": 0.0, "positive": "crop", "positive_rate": 0.3}
    _, one = quick(folder, steps=2, recipe=tiny_recipe(**changes, loss="nt_xent"))
    _, scaled = quick(
        folder, steps=2, recipe=tiny_recipe(**changes, loss="nt_xent_sum", loss_weight=0.15)
    )
    for a, b in zip(one.history, scaled.history, strict=True):
        assert b["loss"] == pytest.approx(0.3 * a["loss"], rel=1e-5)


def test_simsiam_trains_without_negatives(folder):
    recipe = tiny_recipe(
        head="simsiam:24:16", loss="simsiam", pooling="mean", lr=3e-3, schedule="constant"
    )
    _, result = quick(folder, steps=30, recipe=recipe)
    found = [h["loss"] for h in result.history]
    assert min(found) >= -1 and np.mean(found[-5:]) < np.mean(found[:5])
    with pytest.raises(ValueError, match="need each other"):
        quick(folder, steps=1, recipe=tiny_recipe(head="simsiam"))
    with pytest.raises(ValueError, match="has no negatives"):
        quick(
            folder,
            steps=1,
            recipe=tiny_recipe(head="simsiam", loss="simsiam", negative="una"),
            negatives=print,
        )


def test_scores_at_the_ends_of_epochs(folder):
    recipe = tiny_recipe(eval_at_epoch_ends=True)
    _, result = quick(folder, steps=18, recipe=recipe, dev=lambda e: 1.0, eval_every=5)
    assert [h["step"] for h in result.history if "dev_score" in h] == [5, 8, 10, 15, 16, 18]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [4, 8, 12, 14]),
        ({"eval_restarts": True}, [4, 9, 14]),
        ({"eval_restarts": True, "eval_at_epoch_ends": True}, [4, 5, 9, 10, 14]),
        ({"eval_at_epoch_ends": True}, [4, 5, 8, 10, 12, 14]),
    ],
)
def test_steps_to_the_next_dev_score_may_be_counted_anew_in_each_epoch(folder, changes, expected):
    """Epochs of five steps; the last step of all always has a score."""
    options = {"steps": 14, "text": SENTENCES[:40], "dev": lambda e: 1.0, "eval_every": 4}
    _, result = quick(folder, recipe=tiny_recipe(**changes), **options)
    assert [h["step"] for h in result.history if "dev_score" in h] == expected


def test_one_encoding_has_no_two_views(folder):
    with pytest.raises(ValueError, match="positive='identical' encodes once"):
        quick(folder, steps=1, recipe=tiny_recipe(positive="identical", view2="shuffle"))


def test_checkpoints_come_by_the_minute_and_at_the_end(folder, tmp_path, monkeypatch):
    """A training cut off between two of them goes on from the earlier one, to the same end."""
    clock = [0.0]
    monkeypatch.setattr(state, "monotonic", lambda: clock[0])
    recipe, written = tiny_recipe(batch_size=8), []
    save = checkpoint.save
    monkeypatch.setattr(
        checkpoint,
        "save",
        lambda out, tensors, s: written.append(s["steps"]) or save(out, tensors, s),
    )

    def train_to(out, stop):
        encoder = load(folder, recipe)
        feed = Feed.of(tiny_sentences(64), recipe, encoder.tokenizer, 1)

        def dev(_: Encoder) -> float:
            clock[0] += 25.0
            if clock[0] == stop:
                raise KeyboardInterrupt
            return 1.0

        options = {"device": "cpu", "precision": "fp32", "checkpoint_minutes": 1.0}
        result = train.fit(encoder, feed, max_steps=8, eval_every=1, dev=dev, out=out, **options)
        return result.history, weights(encoder)

    whole = train_to(tmp_path / "whole", stop=None)
    assert written == [3, 6, 8]
    written.clear()
    clock[0] = 0.0
    with pytest.raises(KeyboardInterrupt):
        train_to(tmp_path / "cut", stop=125.0)
    assert written == [3]
    again = train_to(tmp_path / "cut", stop=None)
    assert again[0] == whole[0] and same(again[1], whole[1]) and written == [3, 6, 8]
