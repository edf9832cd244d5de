"""The training loop: against a hand-written step, and killed at every moment."""

import itertools
import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from tiny import begin, embedded, same, tiny_bert, tiny_recipe, tiny_sentences, weights
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from lib.augment.vectors import feature_cutoff, shuffle
from lib.encoder import Encoder
from lib.training import checkpoint, state
from lib.training import loop as train
from lib.training.batches import BucketBatches
from lib.training.forward import Forward, ProcessGroup
from lib.training.loop import learning_rate, make_optimizer
from lib.training.losses import LOSSES, in_batch_accuracy, info_nce
from lib.training.seeds import step_generator
from lib.training.views import Text, make_negatives, make_views

SENTENCES = tiny_sentences(64)
STILL = {"dropout": 0.0, "lr": 0.0, "temperature": 0.3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def trained(folder):
    """A short training; returns the encoder and the result."""

    def short(recipe=None, text=SENTENCES, *, steps=8, **options):
        return tiny.trained(folder, recipe or tiny_recipe(), text, max_steps=steps, **options)

    return short


@pytest.fixture
def tokenizer(folder):
    return Encoder.load(folder).tokenizer


def losses_of(result) -> list[float]:
    return [row["loss"] for row in result.history]


def scripted(scores):
    """A dev function that returns one score after the other."""
    remaining = iter(scores)
    return lambda encoder: next(remaining)


# --- a step ---------------------------------------------------------------------------------------


def test_history_has_every_step(trained):
    _, result = trained(steps=7, dev=lambda e: 1.0, eval_every=3)
    measured = {"step", "loss", "in_batch_accuracy", "lr", "positive_cosine", "other_cosine"}
    assert [row["step"] for row in result.history] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["step"] for row in result.history if "dev_score" in row] == [3, 6, 7]
    for row in result.history:
        assert set(row) - {"dev_score"} == measured
        assert row["lr"] == learning_rate(tiny_recipe(), row["step"] - 1, 7)
    assert result.sentences_per_second == pytest.approx(7 * 8 / result.seconds)
    json.dumps(result.history)


def test_the_time_of_dev_scores_is_not_that_of_the_steps(trained, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(train, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def dev(encoder):
        now[0] += 100
        return 0.0

    _, result = trained(steps=6, dev=dev, eval_every=3)
    assert (result.seconds, result.dev_seconds) == (0.0, 200.0)


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_two_steps_of_the_loop_are_two_steps_by_hand(folder, trained, clip):
    changes = {"dropout": 0.0, "temperature": 0.3, "positive": "crop", "positive_rate": 0.3}
    recipe = tiny_recipe(grad_clip=clip, weight_decay=0.1, adam_eps=1e-3, **changes)
    mine, result = trained(recipe, steps=2, seed=7)
    hand, feed = begin(folder, recipe, SENTENCES, seed=7)
    decay = [p for p in hand.train().parameters() if p.ndim > 1]
    plain = [p for p in hand.parameters() if p.ndim == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.lr, eps=1e-3, foreach=False)
    for step, row in enumerate(result.history):
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * (1 - step / 2)
        z1, z2 = embedded(hand, feed, step)
        loss = info_nce(z1, z2, 0.3)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(hand.parameters(), clip)
        optimizer.step()
        assert row["loss"] == pytest.approx(loss.item(), abs=1e-5)
        assert row["in_batch_accuracy"] == pytest.approx(in_batch_accuracy(z1, z2).item())
    for name, value in hand.state_dict().items():
        # Softmax ignores a key's bias: its gradient is zero but for rounding.
        if not name.endswith("key.bias"):
            assert torch.allclose(mine.state_dict()[name], value, atol=3e-5), name


def test_identical_positives_have_one_encoding(trained):
    _, result = trained(tiny_recipe(positive="identical", dropout=0.3), steps=3)
    assert all(row["in_batch_accuracy"] == 1.0 for row in result.history)
    assert all(row["positive_cosine"] == pytest.approx(1) for row in result.history)


@pytest.mark.parametrize("bucket", [False, True])
def test_batches_are_those_of_the_recipe(folder, trained, bucket):
    """Of both views' lengths the larger one counts."""
    aligned = [" ".join([sentence, *["dog"] * (i % 5)]) for i, sentence in enumerate(SENTENCES)]
    recipe, text = tiny_recipe(bucket=bucket, positive="file", **STILL), Text(SENTENCES, aligned)
    _, result = trained(recipe, text, steps=3)
    encoder, feed = begin(folder, recipe, text)
    lengths = np.maximum(feed.views[0].lengths, feed.views[1].lengths)
    batches = BucketBatches(lengths, 8, 42, bucket).epoch(0)[:3]
    for rows, found in zip(batches, losses_of(result), strict=True):
        z1, z2 = (encoder.train()(*view[rows]) for view in feed.views)
        assert found == pytest.approx(info_nce(z1, z2, 0.3).item(), abs=1e-5)


@pytest.mark.parametrize(("sentences", "steps"), [(64, 8), (61, 8), (5, 1)])
def test_the_last_batch_may_be_smaller(folder, sentences, steps):
    recipe = tiny_recipe(drop_last=False, epochs=2, negative="una", radius=5, every=1)
    encoder, feed = begin(folder, recipe, SENTENCES[:sentences])
    asked, negatives = [], feed.negatives
    feed.negatives = lambda rows, step: asked.append(rows) or negatives(rows, step)
    result = train.fit(encoder, feed, device="cpu", precision="fp32")
    assert result.steps == 2 * steps == len(asked)
    for epoch in (asked[:steps], asked[steps:]):
        assert sorted(np.concatenate(epoch)) == list(range(sentences))
    assert result.sentences_per_second == pytest.approx(2 * sentences / result.seconds)


def test_a_batch_of_one_sentence_is_an_error(trained):
    with pytest.raises(ValueError, match="a batch of one sentence"):
        trained(tiny_recipe(batch_size=8, drop_last=False), SENTENCES[:57], steps=1)


def test_the_weight_scales_the_loss(trained):
    changes = {**STILL, "positive": "crop", "positive_rate": 0.3}
    _, one = trained(tiny_recipe(**changes, loss="nt_xent"), steps=2)
    _, scaled = trained(tiny_recipe(**changes, loss="nt_xent_sum", loss_weight=0.15), steps=2)
    assert losses_of(scaled) == pytest.approx([0.3 * loss for loss in losses_of(one)], rel=1e-5)


@pytest.mark.parametrize("at", [1, 13])
def test_a_loss_that_is_not_finite_ends_the_run(trained, monkeypatch, tmp_path, at):
    """And nothing of it reaches a checkpoint."""
    count = []

    def objective(z1, z2, temperature):
        count.append(0)
        return info_nce(z1, z2, temperature) * (math.nan if len(count) == at else 1.0)

    monkeypatch.setitem(LOSSES, "info_nce", objective)
    with pytest.raises(FloatingPointError, match=f"nan at step {at} "):
        trained(steps=30, eval_every=15, dev=lambda e: 0.0, out=tmp_path)
    assert len(count) < at + train.FLUSH_EVERY + 1
    assert list(tmp_path.iterdir()) == []


# --- views and negatives of the recipe ------------------------------------------------------------


def test_make_views(tokenizer):
    first, second = make_views(Text(SENTENCES), tiny_recipe(), tokenizer)
    assert first is second and len(first) == 64
    assert len(make_views(Text(SENTENCES), tiny_recipe(positive="identical"), tokenizer)) == 1
    recipe = tiny_recipe(positive="delete", positive_rate=0.5)
    text, changed = make_views(Text(SENTENCES), recipe, tokenizer, seed=1)
    assert len(text) == len(changed) == 64 and changed.lengths.sum() < 0.8 * text.lengths.sum()
    again, other = (make_views(Text(SENTENCES), recipe, tokenizer, seed=s)[1] for s in (1, 2))
    assert np.array_equal(again.ids, changed.ids)
    assert not np.array_equal(other.lengths, changed.lengths)
    short = make_views(Text(SENTENCES), recipe.changed(max_length=6), tokenizer)
    assert [view.lengths.max() for view in short] == [6, 6]


def test_the_mask_view_uses_the_tokenizers_own_mask(tokenizer):
    recipe = tiny_recipe(positive="mask", positive_rate=1.0)
    for name in ("[MASK]", "<mask>"):
        tokenizer.add_special_tokens({"mask_token": name})
        masked = make_views(Text(["a dog"]), recipe, tokenizer)[1]
        assert set(masked.ids[1:-1].tolist()) == {tokenizer.mask_token_id}
    tokenizer.mask_token = None
    with pytest.raises(ValueError, match="positive='mask' needs a tokenizer with a mask token"):
        make_views(Text(SENTENCES), recipe, tokenizer)


@pytest.mark.parametrize("lines", [None, SENTENCES[1:]])
def test_lines_of_another_text_are_refused(tokenizer, lines):
    with pytest.raises(ValueError, match="one line for each of"):
        make_views(Text(SENTENCES, aligned=lines), tiny_recipe(positive="file"), tokenizer)
    with pytest.raises(ValueError, match="one line for each of"):
        make_negatives(Text(SENTENCES, negated=lines), tiny_recipe(negative="sda"), tokenizer)


@pytest.mark.parametrize("loss", ["info_nce", "nt_xent"])
@pytest.mark.parametrize("mode", ["doubled", "extra"])
def test_negatives_enter_the_loss_as_the_mode_says(folder, trained, mode, loss):
    changes = {"negative": "una", "radius": 5, "negative_mode": mode, "loss": loss}
    recipe = tiny_recipe(**changes, positive="delete", positive_rate=0.3, **STILL)
    _, result = trained(recipe, steps=1)
    encoder, feed = begin(folder, recipe, SENTENCES)
    _, rows = next(feed.order.from_step(0))
    z1, z2 = embedded(encoder.train(), feed)
    zn, function = encoder(*feed.negatives(rows, 0)), LOSSES[loss]
    if mode == "doubled":  # without dropout a negative's two encodings are equal
        expected = function(torch.cat([z1, zn]), torch.cat([z2, zn]), 0.3)
    else:
        expected = function(z1, z2, 0.3, zn)
    assert losses_of(result)[0] == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize(("every", "steps"), [(5, [0, 5, 10]), (1, list(range(11)))])
def test_every_names_the_steps(folder, every, steps):
    _, feed = begin(folder, tiny_recipe(negative="una", radius=5, every=every), SENTENCES)
    assert [step for step, batch in feed.steps(0, 11) if "negative" in batch.sizes] == steps


def test_negations_are_relaxed_negatives_of_their_own_sentence(folder, trained):
    changes = {"positive": "sda", "negative": "sda", "negative_mode": "margin", "every": 1}
    recipe = tiny_recipe(delta=0.4, loss_weight=3.0, **changes, **STILL)
    aligned = [sentence.replace(".", "today .") for sentence in SENTENCES]
    text = Text(SENTENCES, aligned, ["not " + sentence for sentence in SENTENCES])
    _, result = trained(recipe, text, steps=1)
    encoder, feed = begin(folder, recipe, text)
    _, rows = next(feed.order.from_step(0))
    z1, z2 = embedded(encoder.train(), feed)
    zn = encoder(*make_views(Text(text.negated), tiny_recipe(), encoder.tokenizer)[0][rows])
    cosine = torch.cosine_similarity(z1[:, None], z2[None], dim=2) / 0.3
    own = (torch.cosine_similarity(z1, zn) - 0.4) / 0.3
    expected = 3 * (torch.cat([cosine, own[:, None]], 1).logsumexp(1) - cosine.diagonal()).mean()
    assert losses_of(result)[0] == pytest.approx(expected.item(), abs=1e-5)


def test_augmented_embeddings_enter_the_loss(folder, trained):
    recipe = tiny_recipe(representation="extrapolate", representation_strength=0.5, **STILL)
    _, result = trained(recipe, steps=1)
    encoder, feed = begin(folder, recipe, SENTENCES)
    z, _ = embedded(encoder.train(), feed)
    expected = info_nce(z, z + 0.5 * (z - z.mean(0)), 0.3).item()
    assert losses_of(result)[0] == pytest.approx(expected, abs=1e-5)


def test_the_first_step_with_views_by_hand(folder, trained):
    changes = {"view1": "shuffle", "view2": "feature_cutoff", "rate2": 0.3}
    recipe = tiny_recipe(**changes, **STILL)
    encoder, feed = begin(folder, recipe, SENTENCES)
    (ids, mask), generator = feed.views[0][next(feed.order.from_step(0))[1]], step_generator(42, 0)
    words = encoder.train().backbone.embeddings
    positions = shuffle(torch.arange(ids.shape[1]).repeat(len(ids), 1), mask, generator)
    first = words(input_ids=ids, position_ids=positions)
    z = []
    for changed in (first, feature_cutoff(words(input_ids=ids).clone(), mask, 0.3, generator)):
        handle = words.register_forward_hook(lambda *_, changed=changed: changed)
        z.append(encoder(ids, mask))
        handle.remove()
    expected = info_nce(*z, 0.3).item()
    assert losses_of(trained(recipe, steps=1)[1])[0] == pytest.approx(expected, rel=1e-4)


def test_each_process_draws_views_of_its_own(folder):
    recipe = tiny_recipe(view1="feature_cutoff", rate1=0.3, view2="shuffle", **STILL)
    encoder, feed = begin(folder, recipe, SENTENCES)
    group, found = ProcessGroup(torch.device("cpu")), []
    with Forward(encoder.train(), recipe, group) as forward:
        for group.rank in (0, 0, 1):
            found.append(forward(feed.batch(0), 0))
    for role in ("anchor", "positive"):
        first, again, other = (z[role] for z in found)
        assert torch.equal(first, again) and not torch.allclose(first, other)


# --- schedule and optimiser -----------------------------------------------------------------------


def test_linear_and_constant_schedules_with_warm_up():
    linear, total = tiny_recipe(lr=2.0, warmup=0.1), 20
    found = [learning_rate(linear, s, total) for s in range(total)]
    assert found[:3] == [1.0, 2.0, 2.0] and found[-1] == pytest.approx(2 / 18)
    assert np.allclose(np.diff(found[2:]), -2 / 18)
    constant = tiny_recipe(lr=2.0, warmup=0.25, schedule="constant")
    assert [learning_rate(constant, s, 8) for s in range(8)] == [1.0, *[2.0] * 7]


@pytest.mark.parametrize(("warmup", "total"), [(0.0, 5), (0.1, 20), (0.33, 10)])
@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_a_warm_up_from_zero_is_that_of_transformers(warmup, total, schedule):
    recipe = tiny_recipe(lr=2e-4, warmup=warmup, schedule=schedule, warmup_from_zero=True)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2e-4)
    first = math.ceil(warmup * total)
    if schedule == "linear":
        theirs = get_linear_schedule_with_warmup(optimizer, first, total)
    else:
        theirs = get_constant_schedule_with_warmup(optimizer, first)
    for step in range(total):
        expected = optimizer.param_groups[0]["lr"]
        assert learning_rate(recipe, step, total) == pytest.approx(expected, rel=1e-12)
        optimizer.step()
        theirs.step()


def test_biases_and_norms_are_not_decayed(folder):
    encoder, _ = begin(folder, tiny_recipe(), SENTENCES)
    decayed, plain = make_optimizer(encoder, tiny_recipe(weight_decay=0.1)).param_groups
    assert decayed["weight_decay"] == 0.1 and plain["weight_decay"] == 0.0
    names = {id(p): name for name, p in encoder.named_parameters()}
    expected = {name for name in names.values() if name.endswith("bias") or "Norm" in name}
    assert {names[id(p)] for p in plain["params"]} == expected
    assert len(decayed["params"]) + len(plain["params"]) == len(names)


def uncorrected(p, gradients, lr, eps, decay, beta1=0.9, beta2=0.999):
    """AdamW without bias correction in plain numbers; the decay follows the step."""
    m = v = 0.0
    for g in gradients:
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p -= lr * m / (math.sqrt(v) + eps)
        p -= lr * decay * p
    return p


@pytest.mark.parametrize(("eps", "decay"), [(1e-6, 0.01), (0.3, 0.5)])
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


# --- dev scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "steps", "best"),
    [
        ([1.0, 3.0, 2.0, 3.0, 9.0], 12, (6, 3.0)),
        ([math.nan] * 9, 9, (3, pytest.approx(math.nan, nan_ok=True))),
        ([math.nan, 1.0, math.nan, 0.5], 12, (6, 1.0)),
    ],
)
def test_patience_stops_after_scores_without_a_new_best(trained, scores, steps, best):
    """A score that is no number, of a collapsed encoder, is no best."""
    recipe = tiny_recipe(patience=2, lr=0.0)
    _, result = trained(recipe, steps=60, dev=scripted(scores), eval_every=3)
    assert result.stopped_early and result.steps == steps
    assert (result.best_step, result.best_score) == best


def test_best_and_last_weights_are_both_kept(trained, tmp_path):
    seen = []

    def dev(encoder):
        seen.append(weights(encoder))
        return [1.0, 5.0, 2.0, 5.0][len(seen) - 1]

    encoder, result = trained(steps=12, dev=dev, eval_every=3, out=tmp_path)
    assert (result.best_step, result.best_score, result.stopped_early) == (6, 5.0, False)
    assert same(result.best_state, seen[1]) and same(weights(encoder), seen[3])
    assert same(weights(Encoder.load(tmp_path / "best")), seen[1])
    assert same(weights(Encoder.load(tmp_path / "last")), seen[3])
    assert {p.name for p in tmp_path.iterdir()} == {"best", "checkpoint.pt", "last"}


def test_a_dev_score_does_not_change_the_training(trained):
    """It is of an encoder without dropout and without views in its embedding layer."""
    views = {"view1": "feature_cutoff", "rate1": 0.3, "view2": "shuffle"}
    recipe, seen = tiny_recipe(dropout=0.2, lr=0.0, **views), []

    def dev(encoder):
        seen.append((encoder.training, encoder.encode(SENTENCES, precision="fp32")))
        return 1.0

    encoder, scored = trained(recipe, steps=5, dev=dev, eval_every=2)
    assert losses_of(scored) == losses_of(trained(recipe, steps=5)[1])
    plain = encoder.encode(SENTENCES, precision="fp32")
    assert [mode for mode, _ in seen] == [False] * 3
    assert all(np.array_equal(z, plain) for _, z in seen)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [4, 8, 12, 14]),
        ({"eval_restarts": True}, [4, 9, 14]),
        ({"eval_restarts": True, "eval_at_epoch_ends": True}, [4, 5, 9, 10, 14]),
        ({"eval_at_epoch_ends": True}, [4, 5, 8, 10, 12, 14]),
    ],
)
def test_when_dev_scores_come(changes, expected):
    """Epochs of five steps; the last step of all always has a score."""
    recipe = tiny_recipe(**changes)
    assert [s for s in range(1, 15) if train.evaluates_after(s, 14, 5, recipe, 4)] == expected


# --- the seed -------------------------------------------------------------------------------------


def test_the_seed_reaches_batches_and_dropout_each(trained):
    """Batches: a training without dropout; dropout: one whose sentences are all the same."""
    batches, dropout = set(), set()
    for seed in (0, 1, 42, 42):
        still = tiny_recipe(positive="file", **STILL)
        text = Text(SENTENCES, SENTENCES[::-1])
        batches.add(tuple(losses_of(trained(still, text, steps=3, seed=seed)[1])))
        noisy = tiny_recipe(lr=0.0, dropout=0.3)
        found = losses_of(trained(noisy, ["a dog sleeps ."] * 8, steps=3, seed=seed)[1])
        assert len(set(found)) == 3, "each step has masks of its own"
        dropout.add(tuple(found))
    assert len(batches) == len(dropout) == 3


# --- interruption ---------------------------------------------------------------------------------


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def interrupted(trained):
    """Trains into `out` until the dev function has been called `after` times; then it fails."""

    def run(out, after=99, recipe=None, text=SENTENCES, **options):
        calls = itertools.count()

        def dev(encoder):
            if next(calls) == after:
                raise Interrupted
            return float(encoder.encode(SENTENCES[:6]).std())

        try:
            return trained(recipe, text, **{"dev": dev, "out": out, "eval_every": 3, **options})
        except Interrupted:
            return None

    return run


VIEWS = {"dropout": 0.0, "view1": "feature_cutoff", "rate1": 0.3, "view2": "shuffle"}


@pytest.mark.parametrize("changes", [{}, VIEWS], ids=["dropout", "views"])
def test_an_interrupted_run_continues_bit_for_bit(interrupted, tmp_path, changes):
    recipe = tiny_recipe(**changes)
    whole, expected = interrupted(tmp_path / "whole", recipe=recipe, steps=20)
    for after in (3, 2):
        assert interrupted(tmp_path / "cut", after, recipe, steps=20) is None
    again, result = interrupted(tmp_path / "cut", recipe=recipe, steps=20)
    assert result.history == expected.history and len(result.history) == result.steps == 20
    assert (result.best_step, result.best_score) == (expected.best_step, expected.best_score)
    assert same(weights(again), weights(whole)) and same(result.best_state, expected.best_state)


def test_after_ctrl_c_a_training_goes_on_from_its_checkpoint(trained, monkeypatch, tmp_path):
    whole, expected = trained(steps=8, eval_every=1)
    count = itertools.count(1)

    def pressed(z1, z2, temperature):
        if next(count) == 5:
            raise KeyboardInterrupt
        return info_nce(z1, z2, temperature)

    monkeypatch.setitem(LOSSES, "info_nce", pressed)
    with pytest.raises(KeyboardInterrupt):
        trained(steps=8, eval_every=1, out=tmp_path, checkpoint_minutes=0.0)
    saved = checkpoint.read(tmp_path)
    machine = {"device": "cpu", "compile": False, "processes": 1, "seed": 42}
    assert saved["result"]["steps"] == 4 and machine.items() <= saved["identity"].items()
    again, result = trained(steps=8, eval_every=1, out=tmp_path)
    assert result.history == expected.history and same(weights(again), weights(whole))


def test_checkpoints_come_by_the_minute_and_at_the_end(trained, tmp_path, monkeypatch):
    clock, written, write = [0.0], [], checkpoint.write

    def noted(out, values):
        written.append(values["result"]["steps"])
        write(out, values)

    def dev(_: Encoder) -> float:
        clock[0] += 25.0
        return 1.0

    monkeypatch.setattr(state, "monotonic", lambda: clock[0])
    monkeypatch.setattr(checkpoint, "write", noted)
    trained(eval_every=1, dev=dev, out=tmp_path, checkpoint_minutes=1.0)
    assert written == [3, 6, 8]


def changed_text(number):
    return [*SENTENCES[:number], "a dog sleeps .", *SENTENCES[number + 1 :]]


@pytest.mark.parametrize(
    ("options", "fields", "lines", "named"),
    [
        ({"steps": 13}, {}, {}, "steps"),
        ({"head_seed": 1}, {}, {}, "initial weights"),
        ({}, {"lr": 0.5}, {}, "lr"),
        ({}, {}, {"aligned": changed_text(60)}, "text"),
        ({}, {}, {"negated": changed_text(60)}, "hard negatives"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(
    interrupted, tmp_path, options, fields, lines, named
):
    """The message names what differs and nothing else."""
    recipe = tiny_recipe(positive="file", negative="sda")
    text = {"sentences": SENTENCES, "aligned": SENTENCES, "negated": SENTENCES}
    assert interrupted(tmp_path, 2, recipe, Text(**text), steps=12) is None
    recipe, text = recipe.changed(**fields), Text(**{**text, **lines})
    with pytest.raises(ValueError, match=f"with other {named}: "):
        interrupted(tmp_path, 99, recipe, text, **{"steps": 12, **options})


HARMS = {
    "cut": lambda content: content[:-100],
    "no checkpoint": lambda content: b"version https://git-lfs.github.com/spec/v1",
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_checkpoint_is_named(interrupted, tmp_path, harm):
    assert interrupted(tmp_path, 1, steps=6) is None
    path = tmp_path / checkpoint.NAME
    path.write_bytes(HARMS[harm](path.read_bytes()))
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged: delete it"):
        interrupted(tmp_path, steps=6)
    path.unlink()
    assert interrupted(tmp_path, steps=6) is not None


def test_a_training_in_another_thread_is_the_same(trained):
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(trained).result()[1].history == trained()[1].history


def test_patience_survives_an_interruption(trained, tmp_path):
    run = partial(trained, tiny_recipe(patience=2), steps=30, eval_every=3)
    expected = run(dev=scripted([3.0, 2.0, 1.0]), out=tmp_path / "whole")[1]
    with pytest.raises(StopIteration):
        run(dev=scripted([3.0, 2.0]), out=tmp_path / "cut")
    for scores in ([1.0], []):  # a training that has stopped is not taken up again
        result = run(dev=scripted(scores), out=tmp_path / "cut")[1]
        assert result.stopped_early and result.steps == expected.steps == 9
        assert result.history == expected.history


def test_a_finished_training_comes_back_until_its_checkpoint_is_discarded(interrupted, tmp_path):
    first, expected = interrupted(tmp_path, steps=9)
    again, result = interrupted(tmp_path, 0, steps=9)  # no dev score is asked for again
    assert result.history == expected.history and same(weights(again), weights(first))
    assert result.seconds == expected.seconds > 0
    (tmp_path / checkpoint.NAME).unlink()
    assert interrupted(tmp_path, 0, steps=9) is None


KILLS = """
import json, os, signal, sys, threading, traceback
from pathlib import Path
import torch
from safetensors.torch import save_file
from tqdm import tqdm
from tiny import tiny_recipe, tiny_sentences, trained

torch.set_num_threads(1)
# Its own lock is shared by forked processes: a killed one would keep it.
tqdm.set_lock(threading.RLock())
tqdm.monitor_interval = 0  # no thread that could hold the lock at a fork
base, every, sentences = Path(sys.argv[1]), int(sys.argv[2]), tiny_sentences(48)
WRITES = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")

def run(out, kill_at=0):
    # SIGKILL before the kill_at-th time that a file is opened for writing, renamed or removed
    count = [0]

    def hook(event, arguments):
        if event not in WRITES or not str(arguments[0]).startswith(str(out / "run")):
            return
        if event != "open" or set(str(arguments[1])) & set("wxa+"):
            count[0] += 1
            if count[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    dev = lambda encoder: float(encoder.encode(sentences[:6], precision="fp32").std())
    options = {"max_steps": 6, "dev": dev, "out": out / "run"}
    encoder, result = trained(base / "bert", tiny_recipe(lr=3e-3), sentences, **options)
    found = {"last." + k: v for k, v in encoder.state_dict().items()}
    save_file(found | {"best." + k: v for k, v in result.best_state.items()}, out / "weights")
    (out / "result").write_text(json.dumps([result.history, result.best_step, result.best_score]))

def killed(name, kill_at=0):
    pid = os.fork()
    if pid == 0:
        try:
            (base / name).mkdir(exist_ok=True)
            run(base / name, kill_at)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)

assert not killed("whole")
number = 1
while killed(f"operation-{number}", number):
    assert not killed(f"operation-{number}")
    number += every
"""


def test_a_killed_process_ends_with_the_same_bits(folder, tmp_path):
    """SIGKILL at every third file operation; then resumed, and nothing is left over."""
    (tmp_path / "bert").symlink_to(folder)
    tiny.run_script(KILLS, tmp_path, 3)
    killed = list(tmp_path.glob("operation-*"))
    assert len(killed) >= 8
    for out in killed:
        for name in ("result", "weights"):
            expected = (tmp_path / "whole" / name).read_bytes()
            assert (out / name).read_bytes() == expected, out.name
        left = {p.name for p in (out / "run").iterdir()}
        assert left == {"best", "last", checkpoint.NAME}, out.name
