"""The training loop: against a hand-written step, and killed at every moment."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import tiny_bert, tiny_recipe, tiny_sentences

from lib import losses, train
from lib.augment.embeddings import feature_cutoff, shuffle
from lib.distributed import Group
from lib.encoder import Encoder
from lib.losses import in_batch_accuracy, info_nce
from lib.tokens import BucketBatches, TokenRows, tokenise
from lib.train import encode_views, fit, learning_rate, make_optimizer, make_views

SENTENCES = tiny_sentences(64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def load(folder, recipe, dropout=None) -> Encoder:
    return Encoder.load(
        folder,
        pooling=recipe.pooling,
        head=recipe.head,
        eval_pooling=recipe.eval_pooling,
        dropout=recipe.dropout if dropout is None else dropout,
    )


def quick(folder, *, steps=8, seed=42, recipe=None, **options):
    """Train a tiny encoder; returns it and the result."""
    recipe = recipe or tiny_recipe()
    encoder = load(folder, recipe)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    options.setdefault("device", "cpu")
    options.setdefault("precision", "fp32")
    return encoder, fit(encoder, views, recipe, seed=seed, max_steps=steps, **options)


def weights(encoder) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in encoder.state_dict().items()}


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_loss_falls_on_toy_data(folder):
    changes = {"pooling": "mean", "head": "none", "positive": "crop", "positive_rate": 0.2, "dropout": 0.0}
    recipe = tiny_recipe(schedule="constant", lr=3e-3, **changes)
    encoder = load(folder, recipe)
    before = weights(encoder)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
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
        assert set(h) - {"dev_score"} == {"step", "loss", "in_batch_accuracy", "lr"}
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
        grad_clip=clip, dropout=0.0, temperature=0.3, weight_decay=0.1, positive="crop", positive_rate=0.3
    )
    mine = load(folder, recipe)
    views = make_views(SENTENCES, recipe, mine.tokenizer)
    result = fit(mine, views, recipe, seed=7, max_steps=2, device="cpu", precision="fp32")

    hand = load(folder, recipe).train()
    decay = [p for p in hand.parameters() if p.ndim > 1]
    plain = [p for p in hand.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=recipe.lr, foreach=False
    )
    lengths = np.maximum(views[0].lengths, views[1].lengths)
    for step, rows in zip(range(2), BucketBatches(lengths, 8, 7).epoch(0), strict=False):
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
        assert result.history[step]["in_batch_accuracy"] == pytest.approx(in_batch_accuracy(z1, z2).item())
    for name, value in hand.state_dict().items():
        if not name.endswith("key.bias"):  # its gradient is zero but for rounding: softmax ignores it
            assert torch.allclose(mine.state_dict()[name], value, atol=3e-5), name


def test_biases_and_norms_are_not_decayed(folder):
    encoder = load(folder, tiny_recipe())
    decayed, plain = make_optimizer(encoder, tiny_recipe(weight_decay=0.1)).param_groups
    assert decayed["weight_decay"] == 0.1 and plain["weight_decay"] == 0.0
    names = {id(p): n for n, p in encoder.named_parameters()}
    assert {names[id(p)] for p in plain["params"]} == {n for n in names.values() if n.endswith("bias") or "Norm" in n}
    assert len(decayed["params"]) + len(plain["params"]) == len(names)


def test_views_are_encoded_in_one_forward(folder):
    recipe = tiny_recipe(positive="delete", positive_rate=0.3, dropout=0.0)
    encoder = load(folder, recipe)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    calls = []
    encoder.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs[0])))
    rows = np.arange(5)
    z1, z2 = encode_views(encoder, views, rows, torch.device("cpu"))
    assert calls == [10]
    for z, view in ((z1, views[0]), (z2, views[1])):
        assert torch.allclose(z, encoder(*view[rows]), atol=1e-6)


def test_make_views(folder, tmp_path):
    tokenizer = load(folder, tiny_recipe()).tokenizer
    first, second = make_views(SENTENCES, tiny_recipe(), tokenizer)
    assert first is second and len(first) == 64
    assert len(make_views(SENTENCES, tiny_recipe(positive="identical"), tokenizer)) == 1
    recipe = tiny_recipe(positive="delete", positive_rate=0.5)
    text, changed = make_views(SENTENCES, recipe, tokenizer, seed=1, cache=tmp_path)
    assert len(text) == len(changed) == 64 and changed.lengths.sum() < 0.8 * text.lengths.sum()
    assert isinstance(changed.ids, np.memmap)
    other = make_views(SENTENCES, recipe, tokenizer, seed=2, cache=tmp_path)[1]
    assert not np.array_equal(other.lengths, changed.lengths)
    assert np.array_equal(make_views(SENTENCES, recipe, tokenizer, seed=1)[1].ids, changed.ids)


def test_the_mask_view_uses_the_tokenizers_own_mask(folder):
    tokenizer = load(folder, tiny_recipe()).tokenizer
    recipe = tiny_recipe(positive="mask", positive_rate=1.0)
    assert set(make_views(["a dog"], recipe, tokenizer)[1].ids[1:-1].tolist()) == {tokenizer.mask_token_id}
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    assert set(make_views(["a dog"], recipe, tokenizer)[1].ids[1:-1].tolist()) == {tokenizer.mask_token_id}


def test_dropout_is_the_only_difference_between_the_views(folder):
    with_dropout = quick(folder, steps=1, recipe=tiny_recipe(dropout=0.2))[1].history[0]
    encoder = load(folder, tiny_recipe(dropout=0.0))
    views = make_views(SENTENCES, tiny_recipe(), encoder.tokenizer)
    z1, z2 = encode_views(encoder.train(), views, np.arange(8), torch.device("cpu"))
    assert torch.allclose(z1, z2, atol=1e-6)
    without = quick(folder, steps=1, recipe=tiny_recipe(dropout=0.0))[1].history[0]
    assert with_dropout["loss"] > without["loss"]


def test_identical_positives_have_one_encoding(folder):
    recipe = tiny_recipe(positive="identical", dropout=0.3)
    encoder = load(folder, recipe).train()
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    z1, z2 = encode_views(encoder, views, np.arange(4), torch.device("cpu"))
    assert z1 is z2
    _, result = quick(folder, steps=3, recipe=recipe)
    assert result.steps == 3 and all(h["in_batch_accuracy"] == 1.0 for h in result.history)


def test_nt_xent_is_the_loss_the_recipe_names(folder):
    recipe = tiny_recipe(loss="nt_xent", dropout=0.0, positive="delete", positive_rate=0.4)
    encoder = load(folder, recipe)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    rows = BucketBatches(np.maximum(views[0].lengths, views[1].lengths), 8, 42).epoch(0)[0]
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
    assert [learning_rate(tiny_recipe(lr=1.0, schedule="constant"), s, 3) for s in range(3)] == [1.0] * 3
    with pytest.raises(ValueError, match="schedule must be"):
        learning_rate(tiny_recipe(schedule="cosine"), 0, 3)


def test_the_optimiser_uses_the_schedule(folder):
    still, _ = quick(folder, steps=4, recipe=tiny_recipe(lr=0.0))
    assert same(weights(still), weights(load(folder, tiny_recipe())))


def scripted(scores):
    """A dev function that returns one score after the other."""
    remaining = iter(scores)
    return lambda encoder: next(remaining)


def test_patience_stops_after_scores_without_a_new_best(folder):
    recipe = tiny_recipe(patience=2)
    _, result = quick(folder, steps=60, recipe=recipe, dev=scripted([1.0, 3.0, 2.0, 3.0, 9.0]), eval_every=3)
    assert result.stopped_early and result.steps == 12
    assert result.best_step == 6 and result.best_score == 3.0
    _, patient = quick(folder, steps=12, recipe=tiny_recipe(), dev=scripted([4.0, 3.0, 2.0, 1.0]), eval_every=3)
    assert not patient.stopped_early and patient.steps == 12


def test_best_and_last_weights_are_both_kept(folder, tmp_path):
    seen = []

    def dev(encoder):
        assert not any(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())
        seen.append(weights(encoder))
        return [1.0, 5.0, 2.0, 5.0][len(seen) - 1]

    encoder, result = quick(folder, steps=12, dev=dev, eval_every=3, out=tmp_path / "run")
    assert result.best_step == 6 and result.best_score == 5.0 and len(seen) == 4
    assert same(result.best_state, seen[1]) and same(weights(encoder), seen[3]) and not same(seen[1], seen[3])
    assert same(weights(Encoder.load(tmp_path / "run" / "best")), seen[1])
    assert same(weights(Encoder.load(tmp_path / "run" / "last")), seen[3])
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["best", "checkpoint.safetensors", "last"]


def test_a_score_that_is_not_a_number_is_no_best(folder):
    _, result = quick(folder, steps=6, dev=scripted([math.nan, 2.0]), eval_every=3)
    assert result.best_step == 6 and result.best_score == 2.0


def test_the_dev_score_does_not_change_the_training(folder):
    plain, a = quick(folder, steps=7)
    scored, b = quick(folder, steps=7, dev=lambda e: float(e.encode(SENTENCES[:4]).sum()), eval_every=2)
    assert same(weights(plain), weights(scored))
    assert [h["loss"] for h in a.history] == [h["loss"] for h in b.history]


def test_the_seed_decides_everything(folder):
    first, again = (quick(folder, steps=4)[0] for _ in range(2))
    other = quick(folder, steps=4, seed=1)[0]
    assert same(weights(first), weights(again)) and not same(weights(first), weights(other))


def test_buckets_can_be_switched_off(folder):
    plain = quick(folder, steps=3, bucket=False)[1]
    assert plain.steps == 3 and [h["loss"] for h in plain.history] != [
        h["loss"] for h in quick(folder, steps=3)[1].history
    ]


@pytest.mark.parametrize("at", [1, 13])
def test_a_loss_that_is_not_finite_ends_the_run(folder, monkeypatch, at):
    count = []

    def objective(z1, z2, temperature):
        count.append(0)
        return info_nce(z1, z2, temperature) * (math.nan if len(count) == at else 1.0)

    monkeypatch.setitem(train.LOSSES, "info_nce", objective)
    with pytest.raises(FloatingPointError, match=rf"the loss is nan at step {at} .*lower the learning rate"):
        quick(folder, steps=30, recipe=tiny_recipe(eval_every=100))
    assert len(count) < at + train.FLUSH_EVERY + 1


def test_poisoned_weights_never_reach_a_checkpoint(folder, tmp_path):
    recipe = tiny_recipe()
    encoder = load(folder, recipe)
    with torch.no_grad():
        encoder.backbone.embeddings.word_embeddings.weight[:] = math.nan
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    with pytest.raises(FloatingPointError):
        fit(
            encoder, views, recipe, max_steps=9, dev=lambda e: 0.0, out=tmp_path / "run", device="cpu", precision="fp32"
        )
    assert list((tmp_path / "run").iterdir()) == []


def test_bf16_trains_close_to_fp32(folder):
    fp32, bf16 = (quick(folder, steps=5, precision=p)[1].history for p in ("fp32", "bf16"))
    assert [h["loss"] for h in fp32] != [h["loss"] for h in bf16]
    assert np.allclose([h["loss"] for h in fp32], [h["loss"] for h in bf16], atol=0.15)


def test_errors_say_what_is_wrong(folder):
    recipe = tiny_recipe()
    encoder = load(folder, recipe)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    short = tokenise(SENTENCES[:9], encoder.tokenizer, 16, progress=False)
    with pytest.raises(ValueError, match="aligned row by row"):
        fit(encoder, [views[0], short], recipe, max_steps=1)
    with pytest.raises(ValueError, match=r"loss must be .* got 'triplet'"):
        fit(encoder, views, tiny_recipe(loss="triplet"), max_steps=1)
    with pytest.raises(ValueError, match="lower batch_size"):
        fit(encoder, [short], tiny_recipe(batch_size=10), max_steps=1)


# --- interruption -----------------------------------------------------------------------------------------------------


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

    try:
        return quick(folder, dev=dev, eval_every=3, out=out, **options)
    except Interrupted:
        return None


def test_an_interrupted_run_continues_bit_for_bit(folder, tmp_path):
    whole, expected = interrupted(folder, tmp_path / "whole", 99, steps=20)
    assert interrupted(folder, tmp_path / "cut", 3, steps=20) is None
    assert (tmp_path / "cut" / "checkpoint.safetensors").exists()
    assert interrupted(folder, tmp_path / "cut", 2, steps=20) is None
    again, result = interrupted(folder, tmp_path / "cut", 99, steps=20)
    assert result.history == expected.history and len(result.history) == 20
    assert (result.best_step, result.best_score, result.steps) == (expected.best_step, expected.best_score, 20)
    assert same(weights(again), weights(whole)) and same(result.best_state, expected.best_state)


def test_resume_false_starts_again(folder, tmp_path):
    interrupted(folder, tmp_path / "cut", 2, steps=12)
    _, result = interrupted(folder, tmp_path / "cut", 99, steps=12, resume=False, seed=5)
    assert result.history == interrupted(folder, tmp_path / "new", 99, steps=12, seed=5)[1].history


@pytest.mark.parametrize(
    ("change", "named"),
    [({"steps": 13}, "steps: 12 there, 13 here"), ({"seed": 1}, "seed: 42"), ({"recipe": tiny_recipe(lr=0.5)}, "lr: ")],
)
def test_a_checkpoint_of_another_training_is_refused(folder, tmp_path, change, named):
    interrupted(folder, tmp_path / "cut", 2, steps=12)
    with pytest.raises(ValueError, match=f"another training .*{named}.*resume=False"):
        interrupted(folder, tmp_path / "cut", 99, **{"steps": 12, **change})


def test_patience_survives_an_interruption(folder, tmp_path, monkeypatch):
    recipe = tiny_recipe(patience=2)

    def run(out):
        return quick(folder, steps=30, recipe=recipe, dev=scripted([3.0, 2.0, 1.0]), eval_every=3, out=tmp_path / out)

    expected = run("whole")[1]
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "save", lambda self, path: None if path.name == "best" else interrupt())

        def interrupt():
            raise Interrupted

        with pytest.raises(Interrupted):
            run("cut")
    (tmp_path / "cut" / "best").mkdir()
    Encoder.load(tmp_path / "whole" / "best").save(tmp_path / "cut" / "best")
    result = run("cut")[1]
    assert result.stopped_early and result.steps == expected.steps == 9
    assert result.history == expected.history


def test_a_checkpoint_is_complete_or_absent(folder, tmp_path, monkeypatch):
    written = []

    def half(tensors, path, metadata=None):
        Path(path).write_bytes(b"half")
        written.append(path)
        raise Interrupted

    monkeypatch.setattr(train, "save_file", half)
    with pytest.raises(Interrupted):
        quick(folder, steps=9, eval_every=3, out=tmp_path / "run")
    assert len(written) == 1 and not (tmp_path / "run" / "checkpoint.safetensors").exists()
    monkeypatch.undo()
    _, result = quick(folder, steps=9, eval_every=3, out=tmp_path / "run")
    assert result.steps == len(result.history) == 9
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["checkpoint.safetensors", "last"]


def test_a_finished_training_comes_back_until_its_checkpoint_is_discarded(folder, tmp_path):
    first, expected = interrupted(folder, tmp_path / "run", 99, steps=9)
    again, result = interrupted(folder, tmp_path / "run", 0, steps=9)  # no dev score is asked for again
    assert result.history == expected.history and same(weights(again), weights(first))
    train.discard_checkpoint(tmp_path / "run")
    assert interrupted(folder, tmp_path / "run", 0, steps=9) is None


KILLS = """
import json, os, random, signal, sys, threading, time
from pathlib import Path
import numpy as np, torch
from safetensors.torch import save_file
from tqdm import tqdm
from tiny import tiny_bert, tiny_recipe, tiny_sentences
from lib import encoder as encoders, train
from lib.encoder import Encoder
from lib.train import fit, make_views

torch.set_num_threads(1)
tqdm.set_lock(threading.RLock())  # its own lock is shared by forked processes: one killed would block the others
tqdm.monitor_interval = 0  # no thread that could hold the lock at a fork
base, steps = Path(sys.argv[1]), 9
tiny_bert(base / "bert")
sentences, recipe = tiny_sentences(48), tiny_recipe(lr=3e-3)

def dev(encoder):
    return float(encoder.encode(sentences[:6]).std())

def run(out):
    encoder = Encoder.load(base / "bert", pooling="cls", head="tanh", eval_pooling="mean")
    views = make_views(sentences, recipe, encoder.tokenizer)
    result = fit(encoder, views, recipe, max_steps=steps, dev=dev, out=out, device="cpu", precision="fp32")
    save_file({f"last.{k}": v for k, v in encoder.state_dict().items()}
              | {f"best.{k}": v for k, v in result.best_state.items()}, out / "weights.safetensors")
    state = [result.history, result.best_step, result.best_score, result.steps, result.stopped_early]
    (out / "result.json").write_text(json.dumps(state))

def child(out, prepare=lambda: None):
    pid = os.fork()
    if pid == 0:
        prepare()
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
    # SIGKILL at the number-th file operation: before it, half-way through it, or after it
    count = [0]
    def wrap(owner, name, partial=None):
        original = getattr(owner, name)
        def wrapped(*args, **kwargs):
            for when in ("before", "half", "after"):
                count[0] += 1
                if count[0] == number:
                    if when == "half" and partial:
                        partial(*args)
                    if when == "after":
                        original(*args, **kwargs)
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)
        setattr(owner, name, wrapped)
    def prepare():
        wrap(Path, "rename")
        wrap(os, "replace")
        wrap(train, "save_file", lambda tensors, path, *_: Path(path).write_bytes(b"half"))
        wrap(encoders, "save_file", lambda tensors, path, *_: Path(path).write_bytes(b"half"))
    return prepare

assert not killed(child(base / "whole"))
started = time.perf_counter()
assert not killed(child(base / "timed"))
seconds = time.perf_counter() - started

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
rng = random.Random(0)
for i in range(int(sys.argv[3])):
    out = base / f"moment-{i}"
    for _ in range(3):
        pid = child(out)
        time.sleep(rng.uniform(0.1, 0.9) * seconds)
        os.kill(pid, signal.SIGKILL)
        if not killed(pid):
            break
        kills += 1
    else:
        finish(out)
print(kills)
"""


def test_a_killed_process_ends_with_the_same_bits(tmp_path):
    """SIGKILL at file operations (before, half-way, after) and at random moments; then resumed to the end."""
    here = Path(__file__).parent
    script = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\n" + KILLS
    command = [sys.executable, "-c", script, str(tmp_path), "4", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) >= 8
    expected = (tmp_path / "whole" / "result.json").read_text()
    bits = (tmp_path / "whole" / "weights.safetensors").read_bytes()
    assert len(json.loads(expected)[0]) == 9
    found = [p for p in tmp_path.iterdir() if p.name.startswith(("operation", "moment", "timed"))]
    assert len(found) >= 8
    for out in found:
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


# --- hard negatives and augmented embeddings ---------------------------------------------------------------


def with_negatives(folder, steps=1, **changes):
    """`fit` without dropout and learning on UNA negatives; the losses and which steps asked for negatives."""
    recipe = tiny_recipe(
        negative="una", radius=5, dropout=0.0, lr=0.0, temperature=0.3, positive="delete", positive_rate=0.3, **changes
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    negatives = train.make_negatives(SENTENCES, recipe, encoder.tokenizer, seed=1)
    asked = []

    def counted(rows, step):
        asked.append((step, rows))
        return negatives(rows, step)

    result = fit(encoder, views, recipe, negatives=counted, max_steps=steps, device="cpu", precision="fp32")
    return encoder.train(), views, negatives, asked, [h["loss"] for h in result.history]


@pytest.mark.parametrize("objective", ["info_nce", "nt_xent"])
@pytest.mark.parametrize("mode", ["doubled", "extra"])
def test_negatives_enter_the_loss_as_the_mode_says(folder, mode, objective):
    encoder, views, negatives, asked, found = with_negatives(folder, negative_mode=mode, loss=objective)
    ((step, rows),) = asked
    z1, z2 = train.encode_views(encoder, views, rows, torch.device("cpu"))
    text = negatives.strings(rows, step)
    assert all(a != b for a, b in zip(text, [SENTENCES[i] for i in rows], strict=True))
    batch = encoder.tokenizer(text, padding=True, truncation=True, max_length=16, return_tensors="pt")
    zn = encoder(batch["input_ids"], batch["attention_mask"])
    function = train.LOSSES[objective]
    if mode == "doubled":  # without dropout a negative's two encodings are equal
        expected = function(torch.cat([z1, zn]), torch.cat([z2, zn]), 0.3)
    else:
        expected = function(z1, z2, 0.3, zn)
    assert found[0] == pytest.approx(expected.item(), abs=1e-5)


def test_every_names_the_steps(folder):
    assert [s for s, _ in with_negatives(folder, 11, every=5)[3]] == [0, 5, 10]
    assert [s for s, _ in with_negatives(folder, 4, every=1)[3]] == [0, 1, 2, 3]


def test_negatives_are_drawn_afresh(folder):
    negatives = with_negatives(folder)[2]
    rows = np.arange(8)
    assert negatives.strings(rows, 0) == negatives.strings(rows, 0) != negatives.strings(rows, 5)


def test_a_recipe_and_its_negatives_must_agree(folder):
    encoder = Encoder.load(folder)
    recipe = tiny_recipe(negative="una", radius=5)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    with pytest.raises(ValueError, match="pass negatives="):
        fit(encoder, views, recipe, max_steps=1)
    with pytest.raises(ValueError, match="negative must be 'none', 'una' or 'sda'"):
        train.make_negatives(SENTENCES, tiny_recipe(negative="unna"), encoder.tokenizer)
    with pytest.raises(ValueError, match="negative_mode must be"):
        fit(encoder, views, tiny_recipe(negative_mode="twice"), max_steps=1)
    with pytest.raises(ValueError, match="representation must be"):
        fit(encoder, views, tiny_recipe(representation="blur"), max_steps=1)


def test_negations_are_relaxed_negatives_of_their_own_sentence(folder):
    recipe = tiny_recipe(
        positive="sda", negative="sda", negative_mode="margin", every=1, delta=0.4, lr=0.0, temperature=0.3, dropout=0.0
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    aligned, negated = [s.replace(".", "today .") for s in SENTENCES], ["not " + s for s in SENTENCES]
    views = make_views(SENTENCES, recipe, encoder.tokenizer, aligned=aligned)
    negatives = train.make_negatives(SENTENCES, recipe, encoder.tokenizer, negated=negated)
    result = fit(encoder, views, recipe, negatives=negatives, max_steps=1, device="cpu", precision="fp32")
    rows = next(iter(train.BucketBatches(np.maximum(*(v.lengths for v in views)), recipe.batch_size, 42).epoch(0)))
    texts = [[text[i] for i in rows] for text in (SENTENCES, aligned, negated)]
    encoder.train()
    z1, z2, zn = (
        encoder(*make_views(text, tiny_recipe(), encoder.tokenizer)[0][np.arange(len(text))]) for text in texts
    )
    cosine = torch.cosine_similarity(z1[:, None], z2[None], dim=2) / 0.3
    own = (torch.cosine_similarity(z1, zn) - 0.4) / 0.3
    expected = (torch.cat([cosine, own[:, None]], 1).logsumexp(1) - cosine.diagonal()).mean()
    assert result.history[0]["loss"] == pytest.approx(expected.item(), abs=1e-5)


def test_negations_must_be_aligned_and_fit_the_loss(folder):
    encoder, recipe = Encoder.load(folder), tiny_recipe(negative="sda", negative_mode="margin")
    for wrong in (None, SENTENCES[1:]):
        with pytest.raises(ValueError, match="one negation for each"):
            train.make_negatives(SENTENCES, recipe, encoder.tokenizer, negated=wrong)
    with pytest.raises(ValueError, match="form of the loss 'info_nce'"):
        recipe.changed(loss="nt_xent")


@pytest.mark.parametrize("radius", [7, 0.0089, 0.5])
def test_a_radius_below_one_is_a_share_of_the_vocabulary(folder, radius):
    tokenizer = Encoder.load(folder).tokenizer
    negatives = train.make_negatives(SENTENCES, tiny_recipe(negative="una", radius=radius), tokenizer)
    assert negatives.una.radius == (radius if radius >= 1 else math.ceil(radius * len(negatives.model.terms)))


def test_augmented_embeddings_enter_the_loss(folder):
    recipe = tiny_recipe(
        representation="extrapolate", representation_strength=0.5, dropout=0.0, lr=0.0, temperature=0.3
    )
    encoder = Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean", dropout=0.0)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)
    loss = fit(encoder, views, recipe, max_steps=1, device="cpu", precision="fp32").history[0]["loss"]
    rows = next(iter(train.BucketBatches(views[0].lengths, recipe.batch_size, 42).epoch(0)))
    z, _ = train.encode_views(encoder.train(), views, rows, torch.device("cpu"))
    assert loss == pytest.approx(losses.info_nce(z, z + 0.5 * (z - z.mean(0)), 0.3).item(), abs=1e-5)


def test_positives_of_a_file_must_be_aligned(folder):
    encoder, recipe = Encoder.load(folder), tiny_recipe(positive="file")
    first, second = make_views(SENTENCES, recipe, encoder.tokenizer, aligned=SENTENCES[::-1])
    assert first[[0]][0].tolist() == second[[len(SENTENCES) - 1]][0].tolist()
    for wrong in (None, SENTENCES[1:]):
        with pytest.raises(ValueError, match="one line for each of"):
            make_views(SENTENCES, recipe, encoder.tokenizer, aligned=wrong)


def test_noise_on_embeddings_depends_on_the_seed_and_the_step(folder):
    recipe = tiny_recipe(representation="add_gaussian")
    encoder = load(folder, recipe)
    views = make_views(SENTENCES, recipe, encoder.tokenizer)

    def draws(seed: int, step: int, rank: int = 0) -> list[float]:
        loop = train._Loop(encoder, views, recipe, Group(torch.device("cpu")), seed, True, 1, False)
        return torch.rand(3, generator=loop.generator(step, rank)).tolist()

    assert draws(42, 7) == draws(42, 7)
    assert len({tuple(draws(*key)) for key in [(42, 7), (43, 7), (42, 8), (42, 7, 1), (0, 7)]}) == 5


# --- views in embedding space ------------------------------------------------------------------------

VIEWS = {"dropout": 0.0, "view1": "feature_cutoff", "rate1": 0.3, "view2": "shuffle"}


def test_the_first_step_with_views_by_hand(folder):
    recipe = tiny_recipe(lr=0.0, **VIEWS)
    _, result = quick(folder, steps=1, recipe=recipe)
    encoder = load(folder, recipe).train()
    rows_of = make_views(SENTENCES, recipe, encoder.tokenizer)[0]
    ids, mask = rows_of[next(iter(BucketBatches(rows_of.lengths, 8, 42).epoch(0)))]
    generator = torch.Generator().manual_seed(int(np.random.SeedSequence([42, 0, 0]).generate_state(1)[0]))
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
    assert result.history[0]["loss"] == pytest.approx(info_nce(z1, z2, recipe.temperature).item(), rel=1e-4)


def test_views_in_embedding_space_are_drawn_by_seed_and_step(folder):
    first, second, other = (quick(folder, steps=3, seed=s, recipe=tiny_recipe(**VIEWS))[0] for s in (1, 1, 2))
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
    _, scaled = quick(folder, steps=2, recipe=tiny_recipe(**changes, loss="nt_xent_sum", loss_weight=0.15))
    for a, b in zip(one.history, scaled.history, strict=True):
        assert b["loss"] == pytest.approx(0.3 * a["loss"], rel=1e-5)


def test_simsiam_trains_without_negatives(folder):
    recipe = tiny_recipe(head="simsiam:24:16", loss="simsiam", pooling="mean", lr=3e-3, schedule="constant")
    _, result = quick(folder, steps=30, recipe=recipe)
    found = [h["loss"] for h in result.history]
    assert min(found) >= -1 and np.mean(found[-5:]) < np.mean(found[:5])
    with pytest.raises(ValueError, match="need each other"):
        quick(folder, steps=1, recipe=tiny_recipe(head="simsiam"))
    with pytest.raises(ValueError, match="has no negatives"):
        quick(folder, steps=1, recipe=tiny_recipe(head="simsiam", loss="simsiam", negative="una"), negatives=print)


def test_scores_at_the_ends_of_epochs(folder):
    recipe = tiny_recipe(eval_at_epoch_ends=True)
    _, result = quick(folder, steps=18, recipe=recipe, dev=lambda e: 1.0, eval_every=5)
    assert [h["step"] for h in result.history if "dev_score" in h] == [5, 8, 10, 15, 16, 18]


def test_one_encoding_has_no_two_views(folder):
    with pytest.raises(ValueError, match="positive='identical' encodes once"):
        quick(folder, steps=1, recipe=tiny_recipe(positive="identical", view2="shuffle"))
