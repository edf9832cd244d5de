"""The methods that UNA's and SDA's tables quote: their losses, negatives, views, and how an
interrupted training goes on."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import begin, same, tiny_bert, tiny_encoder, tiny_recipe, tiny_sentences, trained, weights
from torch import nn

from lib.augment import augment, edits
from lib.augment.representations import gaussian_negatives, gradient_ascent
from lib.encoder.layers import dropout_of
from lib.training import checkpoint
from lib.training.batches import Batch
from lib.training.forward import Forward, MomentumQueue, ProcessGroup
from lib.training.loop import learning_rate, make_optimizer
from lib.training.losses import Objective, arccon, info_nce, scd
from lib.training.recipe import recipe

SENTENCES = tiny_sentences(64)
CPU = torch.device("cpu")
LONG = "the quick brown fox jumps over the lazy dog"
QUEUE = {"queue": 2.5, "queue_momentum": 0.9, "positive": "repeat", "positive_rate": 0.32}
NOISE = {"noise": 1.5, "noise_rate": 0.1}
SCD = {"loss": "scd", "head": "scd:24:16", "dropout": 0.05, "dropout2": 0.3}
METHODS = {
    "esimcse": {**QUEUE, "lora_rank": 2},
    "arccse": {"loss": "arccon"},
    "dclr": NOISE,
    "scd": SCD,
    "queue and views": {**QUEUE, "view1": "token_cutoff", "rate1": 0.2, "view2": "shuffle"},
    "negatives": {"dropout2": 0.2, "negative": "una", "radius": 5, "every": 2},
    "mirror": {"positive": "mask_span", "positive_rate": 1.0, "loss": "nt_xent", "head": "none"},
}
each_method = pytest.mark.parametrize("changes", METHODS.values(), ids=METHODS)


def draw(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def fit(folder, changes, *, steps=9, text=SENTENCES, **options):
    recipe = tiny_recipe(**changes)
    return trained(folder, recipe, text, max_steps=steps, eval_every=3, **options)


# --- ArcCSE's angular margin ----------------------------------------------------------------------


def slow_arccon(z1, z2, tau, degrees, negatives=()) -> float:
    def angle(a, b):
        return math.acos((a @ b / a.norm() / b.norm()).clamp(-1, 1).item())

    total = 0.0
    for i, anchor in enumerate(z1):
        own = math.exp(math.cos(angle(anchor, z2[i]) + math.radians(degrees)) / tau)
        others = [z2[j] for j in range(len(z2)) if j != i] + list(negatives)
        rest = sum(math.exp(math.cos(angle(anchor, other)) / tau) for other in others)
        total -= math.log(own / (own + rest))
    return total / len(z1)


@given(
    n=st.integers(1, 5), m=st.sampled_from((0.0, 2.5, 10.0, 45.0, 90.0)), seed=st.integers(0, 99)
)
def test_arccon_is_the_double_loop(n, m, seed):
    z1, z2, more = draw(n, 4, seed=seed), draw(n, 4, seed=seed + 1), draw(3, 4, seed=seed + 2)
    assert arccon(z1, z2, 0.2, margin=m).item() == pytest.approx(slow_arccon(z1, z2, 0.2, m))
    expected = slow_arccon(z1, z2, 0.2, m, more)
    assert arccon(z1, z2, 0.2, more, m).item() == pytest.approx(expected)


def test_arccon_without_a_margin_is_info_nce_and_grows_with_it():
    z1, more = draw(6, 5), draw(4, 5, seed=2)
    z2 = z1 + 0.3 * draw(6, 5, seed=1)
    assert torch.equal(arccon(z1, z2, 0.05, margin=0.0), info_nce(z1, z2, 0.05))
    assert torch.equal(arccon(z1, z2, 0.05, more, 0.0), info_nce(z1, z2, 0.05, more))
    values = [arccon(z1, z2, 0.05, margin=m).item() for m in (0, 5, 10, 20)]
    assert values == sorted(values) and values[0] < values[-1]


def test_arccon_has_finite_gradients_even_between_equal_vectors():
    z = draw(4, 8, dtype=torch.float32).requires_grad_()
    arccon(z, z.detach().clone(), 0.05).backward()
    assert torch.isfinite(z.grad).all() and z.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "loss", [lambda a, b: arccon(a, b, 0.2), lambda a, b: scd(a, b, 0.2, 2, 0.7, 0.2)]
)
def test_gradients_agree_with_finite_differences(loss):
    inputs = [draw(4, 5).requires_grad_(), draw(4, 5, seed=1).requires_grad_()]
    assert torch.autograd.gradcheck(loss, inputs)


# --- SCD ------------------------------------------------------------------------------------------


def slow_scd(z1, z2, tau, f, beta, lam) -> float:
    n, d = len(z1), z1.shape[1] - f
    apart = sum(
        (a @ b / a.norm() / b.norm()).item() for a, b in zip(z1[:, :d], z2[:, :d], strict=True)
    )
    p1, p2 = z1[:, d:].tolist(), z2[:, d:].tolist()

    def standard(column):
        mean = sum(column) / n
        var = sum((x - mean) ** 2 for x in column) / n
        return [(x - mean) / math.sqrt(var + 1e-5) for x in column]

    first = [standard([row[a] for row in p1]) for a in range(f)]
    second = [standard([row[b] for row in p2]) for b in range(f)]
    total = 0.0
    for a in range(f):
        for b in range(f):
            c = sum(x * y for x, y in zip(first[a], second[b], strict=True)) / n
            total += (1 - c) ** 2 if a == b else lam * c**2
    return apart / n / tau + beta * total


@given(n=st.integers(2, 6), f=st.integers(1, 4), seed=st.integers(0, 99))
def test_scd_is_the_double_loop(n, f, seed):
    z1, z2 = draw(n, 3 + f, seed=seed), draw(n, 3 + f, seed=seed + 1)
    found = scd(z1, z2, 0.3, f, decorrelation=0.7, off_diagonal=0.2).item()
    assert found == pytest.approx(slow_scd(z1, z2, 0.3, f, 0.7, 0.2))


def test_scd_in_closed_form():
    h, p = draw(4, 4), torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64)
    z, opposite = torch.cat([h, p], 1), torch.cat([h, -p], 1)
    assert scd(z, z, 0.5, 2).item() == pytest.approx(2.0, abs=1e-6)  # cos 1, C = 1
    assert scd(z, opposite, 0.5, 2, 1.0, 9.0).item() == pytest.approx(2 + 2 * 4, abs=1e-3)
    twice = torch.cat([h, p[:, :1], p[:, :1]], 1)  # one feature twice: both pairs correlate
    assert scd(twice, twice, 0.5, 2, 1.0, 3.0).item() == pytest.approx(2 + 2 * 3, abs=1e-3)
    assert torch.equal(scd(z[:, :4], z[:, :4]), scd(z[:, :4], z[:, :4], features=2))


def test_the_recipe_reaches_the_weights_of_scd():
    own = {"loss": "scd", "head": "scd:24:4", "decorrelation": 0.7, "off_diagonal": 0.2}
    z1, z2 = draw(6, 10, seed=1), draw(6, 10, seed=2)
    found = Objective(tiny_recipe(temperature=0.3, **own))({"anchor": z1, "positive": z2}).item()
    assert found == pytest.approx(slow_scd(z1, z2, 0.3, 4, 0.7, 0.2))


def test_measures_are_of_the_vectors_that_the_loss_compares():
    z = {"anchor": draw(4, 10), "positive": draw(4, 10, seed=1)}
    widths = {"scd:6:4": 6, "scd": 5, "simsiam": 5, "none": 10}  # of ten columns
    for head, width in widths.items():
        loss = head.partition(":")[0] if head != "none" else "info_nce"
        found = Objective(recipe("mini_simcse", head=head, loss=loss)).compared(z)
        assert {role: rows.shape for role, rows in found.items()} == dict.fromkeys(z, (4, width))
        assert all(torch.equal(rows, z[role][:, :width]) for role, rows in found.items())


def test_a_dropout_holds_while_it_is_open_and_whatever_happens(folder):
    encoder = tiny_encoder(folder, dropout=0.3).train()
    batch = encoder.tokenizer(SENTENCES[:4], return_tensors="pt", padding=True)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    rates = [m.p for m in encoder.modules() if isinstance(m, nn.Dropout)]
    with dropout_of(encoder.backbone, 0.0):
        assert torch.equal(encoder(ids, mask), encoder(ids, mask))
    assert not torch.equal(encoder(ids, mask), encoder(ids, mask))
    with pytest.raises(ZeroDivisionError), dropout_of(encoder.backbone, 0.5):
        _ = 1 / 0
    assert [m.p for m in encoder.modules() if isinstance(m, nn.Dropout)] == rates
    with pytest.raises(ValueError, match="dropout must be in"), dropout_of(encoder.backbone, 1.0):
        pass


class Calls(nn.Module):
    """A module that calls dropout as a function, and one that has it as `nn.Dropout`."""

    def __init__(self):
        super().__init__()
        self.attention_dropout, self.training_steps, self.inner = 0.1, 3, nn.Dropout(0.2)


def test_a_dropout_reaches_modules_that_hold_a_number():
    module = Calls()
    with dropout_of(module, 0.5):
        assert (module.attention_dropout, module.training_steps, module.inner.p) == (0.5, 3, 0.5)
    assert (module.attention_dropout, module.inner.p) == (0.1, 0.2)


def test_each_view_has_its_own_dropout(folder):
    """At rates next to 0 and far from it, the anchors hardly vary and the positives do."""
    recipe = tiny_recipe(dropout=1e-5, dropout2=0.5)
    encoder, feed = begin(folder, recipe, SENTENCES)
    with Forward(encoder, recipe, ProcessGroup(CPU)) as forward:
        encoder.train()
        first, second = forward(feed.batch(0), 0), forward(feed.batch(0), 0)
    assert first.keys() == {"anchor", "positive"}
    assert torch.allclose(first["anchor"], second["anchor"], atol=1e-2)
    assert (first["positive"] - second["positive"]).abs().mean() > 0.05
    assert {m.p for m in encoder.backbone.modules() if isinstance(m, nn.Dropout)} == {1e-5}


# --- DCLR's noise ---------------------------------------------------------------------------------


def test_noise_goes_up_the_gradient_step_by_step():
    z1, z2, noise = draw(4, 5), draw(4, 5, seed=1), draw(6, 5, seed=2)
    slow = noise.clone()
    for _ in range(3):
        moved = slow.clone()
        for row in range(len(slow)):
            gradient = torch.zeros(5, dtype=torch.float64)
            for column in range(5):
                values = []
                for step in (1e-6, -1e-6):
                    changed = slow.clone()
                    changed[row, column] += step
                    values.append(info_nce(z1, z2, 0.2, changed))
                gradient[column] = (values[0] - values[1]) / 2e-6
            moved[row] += 0.05 * gradient / gradient.norm()
        slow = moved
    found = gradient_ascent(noise, lambda x: info_nce(z1, z2, 0.2, x), steps=3, rate=0.05)
    assert torch.allclose(found, slow, atol=1e-6) and not found.requires_grad
    assert info_nce(z1, z2, 0.2, found) > info_nce(z1, z2, 0.2, noise)


def test_each_step_has_its_length_if_there_is_a_gradient():
    noise = draw(3, 4)
    assert torch.equal(gradient_ascent(noise, lambda x: x.sum(), steps=0), noise)
    assert torch.equal(gradient_ascent(noise, lambda x: 0 * x.sum(), steps=2), noise)
    moved = gradient_ascent(noise, lambda x: 1e-20 * (x**2).sum(), steps=1, rate=0.5) - noise
    assert moved.norm(dim=1).tolist() == pytest.approx([0.5] * 3, rel=1e-5)


@pytest.mark.parametrize(("n", "k", "rows"), [(4, 1, 4), (4, 2.5, 10), (5, 0.5, 2), (2, 0.1, 1)])
def test_there_are_k_n_vectors_of_a_normal_distribution(n, k, rows):
    assert len(gaussian_negatives(torch.zeros(n, 2), k)) == rows
    x = gaussian_negatives(torch.zeros(200, 50), 2, torch.Generator().manual_seed(1))
    assert abs(x.mean().item()) < 0.03 and abs(x.std().item() - 1) < 0.03


def test_noise_is_a_negative_of_every_anchor_and_drawn_by_seed_and_step():
    z = {"anchor": draw(4, 5), "positive": draw(4, 5, seed=1)}
    values = {}
    for seed, step in ((1, 0), (1, 0), (1, 1), (2, 0)):
        values.setdefault((seed, step), []).append(Objective(recipe("mini_dclr"), seed)(z, step))
    assert torch.equal(*values[1, 0]) and len({v[0].item() for v in values.values()}) == 3
    assert values[1, 0][0] > Objective(recipe("mini_simcse"), 1)(z, 0)


# --- ESimCSE's queue ------------------------------------------------------------------------------


def ids_of(encoder, sentences) -> tuple[torch.Tensor, torch.Tensor]:
    batch = encoder.tokenizer(sentences, return_tensors="pt", padding=True)
    return batch["input_ids"], batch["attention_mask"]


def test_the_queue_draws_no_random_number(folder):
    encoder = tiny_encoder(folder, head="tanh", dropout=0.3).train()
    memory, state = MomentumQueue(encoder, 5), torch.get_rng_state()
    memory(*ids_of(encoder, SENTENCES[:4]))
    assert torch.equal(torch.get_rng_state(), state) and encoder.backbone.training


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_a_training_with_a_queue_by_hand(folder, momentum):
    changes = {"queue": 1.5, "queue_momentum": momentum, "dropout": 0.0, "temperature": 0.3}
    mine, result = fit(folder, changes, steps=4)
    recipe = tiny_recipe(**changes)
    encoder, feed = begin(folder, recipe, SENTENCES)
    slow, _ = begin(folder, recipe, SENTENCES)
    optimizer, queue = make_optimizer(encoder.train(), recipe), torch.zeros(0, 32)
    for step, row in enumerate(result.history):
        batch = feed.batch(step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step, 4)
        z1, z2 = encoder(batch.ids, batch.mask).split(8)
        loss = info_nce(z1, z2, 0.3, queue if len(queue) else None)
        assert row["loss"] == pytest.approx(loss.item(), abs=1e-5), step
        with torch.no_grad():
            for p, q in zip(slow.backbone.parameters(), encoder.backbone.parameters(), strict=True):
                p.copy_(momentum * p + (1 - momentum) * q)
            states = slow.backbone(batch.ids[:8], attention_mask=batch.mask[:8]).last_hidden_state
            queue = torch.cat([queue, encoder.head(states[:, 0])])[-12:]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), recipe.grad_clip)
        optimizer.step()
        optimizer.zero_grad()
    for name, weight in encoder.state_dict().items():  # a key's bias has no gradient but rounding
        if not name.endswith("key.bias"):
            assert torch.allclose(mine.state_dict()[name], weight, atol=1e-4), name


def test_hard_negatives_and_the_queue_are_both_candidates():
    z = {name: draw(4, 5, seed=i) for i, name in enumerate(("anchor", "positive", "negative"))}
    z |= {"queue": draw(7, 5, seed=5)}
    both = recipe("mini_una", negative_mode="extra", queue=2)
    expected = info_nce(z["anchor"], z["positive"], 0.05, torch.cat([z["queue"], z["negative"]]))
    assert torch.equal(Objective(both)(z), expected)


@pytest.mark.parametrize("name", ["queue", "dropout2"])
def test_several_processes_are_refused(folder, name, monkeypatch):
    group = ProcessGroup(CPU)
    monkeypatch.setattr(group, "size", 2)
    with pytest.raises(ValueError, match="several processes"):
        Forward(tiny_encoder(folder), tiny_recipe(**{name: 0.5}), group)


# --- Mirror-BERT's mask and ESimCSE's repetition --------------------------------------------------


@given(span=st.integers(1, 12), seed=st.integers(0, 200))
def test_one_span_of_characters_becomes_a_mask(span, seed):
    masked = edits.mask_span(LONG.split(), 1.0, np.random.default_rng(seed), span)
    left, right = (part.strip() for part in " ".join(masked).split("[MASK]"))
    starts = range(len(LONG) - span)
    assert any((LONG[:s].strip(), LONG[s + span :].strip()) == (left, right) for s in starts)


def test_a_mask_begins_everywhere_but_where_the_last_characters_are_a_span():
    found = {
        tuple(edits.mask_span(LONG.split(), 1.0, np.random.default_rng(s))) for s in range(3000)
    }
    every = {tuple(f"{LONG[:s]} [MASK] {LONG[s + 5 :]}".split()) for s in range(len(LONG) - 5)}
    assert found == every


@pytest.mark.parametrize(
    ("text", "span"), [("", 5), ("a", 5), ("of less than thirty signs", 5), (LONG, len(LONG))]
)
def test_short_sentences_have_no_mask(text, span):
    assert augment("mask_span", [text], 1.0, span=span) == [text]


def test_the_rate_of_a_span_is_a_share_of_the_sentences():
    changed = augment("mask_span", [LONG] * 2000, 0.3, seed=1)
    assert sum("[MASK]" in s for s in changed) / 2000 == pytest.approx(0.3, abs=0.03)


def test_the_span_reaches_the_tokens(folder):
    tokens = []
    for span in (3, 20):
        recipe = tiny_recipe(positive="mask_span", positive_rate=1.0, span=span, max_length=32)
        _, feed = begin(folder, recipe, [" ".join(["house"] * 12)] * 16)
        tokens.append(feed.views[1].ids)
    assert all((ids == 4).sum() == 16 for ids in tokens)  # [MASK]
    assert len(tokens[0]) > len(tokens[1])


# --- trained and interrupted ----------------------------------------------------------------------


class Unplugged(Exception):
    pass


def spread(encoder) -> float:
    """A dev score."""
    return float(encoder.encode(SENTENCES[:6]).std())


def once_there_is(path):
    """A dev score that fails as soon as a file is there."""

    def dev(encoder):
        if path.exists():
            raise Unplugged
        return spread(encoder)

    return dev


@each_method
def test_an_interrupted_training_goes_on_bit_for_bit(folder, tmp_path, changes):
    whole, expected = fit(folder, changes, dev=spread)
    with pytest.raises(Unplugged):
        fit(folder, changes, dev=once_there_is(tmp_path / checkpoint.NAME), out=tmp_path)
    again, result = fit(folder, changes, dev=spread, out=tmp_path)
    assert result.history == expected.history and len(result.history) == 9
    assert same(weights(again), weights(whole)) and same(result.best_state, expected.best_state)


@each_method
def test_short_sentences_and_empty_ones_train(folder, changes):
    text = ["", "dog", ".", " ", *tiny_sentences(12, shortest=1, longest=3)]
    _, result = fit(folder, {**changes, "batch_size": 4}, steps=4, text=text)
    assert all(np.isfinite(row["loss"]) for row in result.history)


def test_chunks_and_a_queue_are_the_whole_batch(folder):
    plain = {**QUEUE, "dropout": 0.0}
    whole, parts = (fit(folder, {**plain, "chunk_size": n}, steps=4)[1].history for n in (0, 3))
    losses = [row["loss"] for row in whole]
    assert losses == pytest.approx([row["loss"] for row in parts], abs=1e-4)


# --- recipes --------------------------------------------------------------------------------------


def test_batch_of_roles():
    parts = {name: (torch.full((2, 3), i), torch.ones(2, 3)) for i, name in enumerate("abc")}
    batch = Batch.of(parts, pad_id=0).of_roles({"c", "a"})
    assert batch.ids[:, 0].tolist() == [0, 0, 2, 2] and batch.sizes == {"a": 2, "c": 2}
