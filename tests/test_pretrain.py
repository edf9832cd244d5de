"""Masked-language-model pre-training on a corpus of a few hundred sentences."""

import json
import lzma
import math
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import WORDS, tiny_sentences
from torch._dynamo.testing import CompileCounterWithBackend
from transformers import BertConfig, BertForMaskedLM

from lib import data
from lib.encoder import Encoder
from tools import pretrain
from tools.pretrain import CLS, MASK, SEP, Batches, Plan, learning_rate, ppmi_svd, stack, train

PLAN = Plan(
    tokens=9_000,
    grow_at=3_000,
    vocab_size=120,
    hidden=16,
    layers=2,
    heads=2,
    intermediate=24,
    max_length=14,
    tokens_per_batch=256,
    warmup_tokens=500,
    lr=5e-3,
)


def write_corpus(folder: Path) -> Path:
    """A corpus in which a verb is always followed by the same noun."""
    target = folder / "corpus" / "pretrain"
    target.mkdir(parents=True)
    lines = [
        f"{s[:-2]} sings song ." if i % 2 else f"{s[:-2]} reads book ."
        for i, s in enumerate(tiny_sentences(900))
    ]
    with lzma.open(target / "a.txt.xz", "wt") as f:
        f.write("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrain") / "run"
    return out, train(PLAN, out, str(corpus), progress=False)


def rows(n=400, seed=0, shortest=3, longest=12, vocabulary=100):
    """Random rows [CLS] … [SEP] and their boundaries."""
    rng = np.random.default_rng(seed)
    lists = [
        [CLS, *rng.integers(MASK + 1, vocabulary, rng.integers(shortest, longest)), SEP]
        for _ in range(n)
    ]
    return np.concatenate(lists).astype(np.uint16), np.concatenate(
        [[0], np.cumsum([len(r) for r in lists])]
    )


def test_a_batch_is_a_function_of_seed_and_step():
    ids, offsets = rows()
    plan = replace(PLAN, vocab_size=100)
    one, two = Batches(ids, offsets, plan), Batches(ids, offsets, plan)
    for step in (5, 0, 3, 5 + len(one.batches)):
        for a, b in zip(one(step), two(step), strict=True):
            assert torch.equal(a, b)
    again, other = one(2), Batches(ids, offsets, replace(plan, seed=1))(2)
    assert again[0].shape != other[0].shape or not torch.equal(again[0], other[0])
    later = one(2 + len(one.batches))
    assert again[0].shape == later[0].shape and not torch.equal(again[1], later[1])


def test_batches_have_one_length_and_no_padding():
    ids, offsets = rows()
    batches = Batches(ids, offsets, PLAN)
    for step in range(len(batches.batches)):
        inputs, positions, labels = batches(step)
        assert (inputs[:, 0] == CLS).all() and (inputs[:, -1] == SEP).all()
        assert 256 - inputs.shape[1] < inputs.numel() <= 256
        restored = inputs.flatten().clone()
        restored[positions] = labels
        original = {tuple(ids[a:b].tolist()) for a, b in pairwise(offsets)}
        assert all(tuple(r) in original for r in restored.view(inputs.shape).tolist())
        assert not set(labels.tolist()) & set(range(MASK + 1))
    assert len({int(r) for b in batches.batches for r in b}) == sum(len(b) for b in batches.batches)


def test_masking_shares():
    ids, offsets = rows(4_000)
    batches = Batches(ids, offsets, replace(PLAN, vocab_size=100, tokens_per_batch=2_000))
    masked = kept = changed = words = 0
    for step in range(len(batches.batches)):
        inputs, positions, labels = batches(step)
        found = inputs.flatten()[positions]
        masked += int((found == MASK).sum())
        kept += int((found == labels).sum())
        changed += int(((found != MASK) & (found != labels)).sum())
        words += inputs.numel() - 2 * len(inputs)
    chosen = masked + kept + changed
    assert chosen / words == pytest.approx(0.15, abs=0.002)
    assert masked / chosen == pytest.approx(0.8, abs=0.03)
    assert kept / chosen == pytest.approx(0.1, abs=0.02) and changed / chosen == pytest.approx(
        0.1, abs=0.02
    )


def test_a_corpus_too_small_for_a_batch_is_an_error():
    ids, offsets = rows(3)
    with pytest.raises(ValueError, match="fills no batch"):
        Batches(ids, offsets, PLAN)


def slow_ppmi(lists: list[list[int]], window: int) -> dict[tuple[int, int], float]:
    """PPMI by dictionaries: distance k weighs 1/k, contexts smoothed with exponent 0.75."""
    counts: Counter = Counter()
    for row in lists:
        for i, word in enumerate(row):
            for k in range(1, window + 1):
                if i + k < len(row):
                    counts[word, row[i + k]] += 1 / k
                    counts[row[i + k], word] += 1 / k
    total = sum(counts.values())
    word: Counter = Counter()
    for (w, _), count in counts.items():
        word[w] += count
    smooth = sum(v**0.75 for v in word.values())
    found = {}
    for (w, c), count in counts.items():
        value = (
            math.log(count / total) - math.log(word[w] / total) - math.log(word[c] ** 0.75 / smooth)
        )
        if value > 0 and min(w, c) > MASK:
            found[w, c] = value
    return found


def test_ppmi_against_dictionaries(monkeypatch):
    rng = np.random.default_rng(0)
    size, window = 20, 3
    lists = [
        [CLS, *rng.integers(MASK + 1, size, rng.integers(2, 9)).tolist(), SEP] for _ in range(30)
    ]
    seen = {}
    svds = pretrain.svds
    monkeypatch.setattr(
        pretrain, "svds", lambda m, **k: seen.setdefault("m", m) is not None and svds(m, **k)
    )
    vectors = ppmi_svd(np.concatenate(lists).astype(np.uint16), size, 6, window)
    expected = np.zeros((size, size))
    for (w, c), value in slow_ppmi(lists, window).items():
        expected[w, c] = value
    assert (expected > 0).sum() > 50
    assert np.allclose(seen["m"].toarray(), expected, atol=1e-4)
    u, s, _ = np.linalg.svd(expected)
    assert np.allclose(vectors @ vectors.T, (u[:, :6] * s[:6]) @ u[:, :6].T, atol=1e-3)
    assert vectors.shape == (size, 6) and vectors.dtype == np.float32


def test_stack_copies_the_layers_on_top_of_themselves():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    shallow = BertForMaskedLM(config)
    deep = stack(shallow)
    assert deep.config.num_hidden_layers == 4 and shallow.config.num_hidden_layers == 2
    layers = deep.bert.encoder.layer
    for number, layer in enumerate(layers):
        source = shallow.bert.encoder.layer[number % 2].state_dict()
        assert all(torch.equal(v, source[k]) for k, v in layer.state_dict().items())
    ids = torch.randint(5, 30, (2, 6))
    with torch.no_grad():
        layers[2], layers[3] = torch.nn.Identity(), torch.nn.Identity()
        deep.bert.encoder.layer = layers[:2]
        assert torch.allclose(deep.eval()(ids).logits, shallow.eval()(ids).logits, atol=1e-5)
    first = layers[0].attention.self.query.weight
    assert first.data_ptr() != shallow.bert.encoder.layer[0].attention.self.query.weight.data_ptr()


def test_learning_rate_warms_up_stays_and_decays():
    plan = replace(PLAN, tokens=1_000, grow_at=0, warmup_tokens=100, decay_fraction=0.4, lr=1.0)
    found = [learning_rate(plan, seen) for seen in (0, 49, 99, 100, 600, 800, 1_000)]
    assert found == pytest.approx([0.01, 0.5, 1.0, 1.0, 1.0, 0.5, 0.0])


@pytest.mark.parametrize("changes", [{"layers": 3}, {"grow_at": 9_000}])
def test_a_plan_that_cannot_grow_is_an_error(changes):
    with pytest.raises(ValueError, match="grow_at"):
        replace(PLAN, **changes)


def test_training_learns_and_grows(trained, corpus):
    out, model = trained
    state = pretrain.checkpoint_state(out)
    assert state["seen"] >= PLAN.tokens and state["layers"] == model.config.num_hidden_layers == 2
    assert 30 <= state["step"] <= 50
    ids, offsets, vectors = pretrain.prepare(PLAN, out, None, progress=False)
    assert ids.dtype == np.uint16 and offsets[-1] == len(ids) and vectors.shape == (120, 16)
    batches = Batches(ids, offsets, replace(PLAN, seed=99))
    fresh = pretrain.initial_model(PLAN, vectors, np.bincount(ids, minlength=120), 2)
    with torch.no_grad():
        before, after = (
            np.mean([pretrain.loss_of(PLAN)(m, *batches(i)).item() for i in range(8)])
            for m in (fresh, model)
        )
    assert after < before - 0.1 and before < math.log(120)
    # trained rows are distinct sentences
    assert len({ids[a:b].tobytes() for a, b in pairwise(offsets)}) == len(offsets) - 1


def test_export_is_an_encoder(trained, tmp_path):
    out, model = trained
    expected = model.bert.float()
    pretrain.export(model, out / "tokenizer", tmp_path / "export", dropout=0.2)
    encoder = Encoder.load(tmp_path / "export", pooling="mean")
    assert encoder.backbone.config.hidden_dropout_prob == 0.2
    found = encoder.encode(["a dog sings song .", WORDS[3]])
    assert (
        found.shape == (2, 16) and np.isfinite(found).all() and not np.allclose(found[0], found[1])
    )
    ids = encoder.tokenizer("a dog sings song .", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        z = expected.float().eval()(ids).last_hidden_state.mean(1)[0].numpy()
    assert np.allclose(found[0], z, atol=1e-2)
    assert encoder.tokenizer("A DOG")["input_ids"] == encoder.tokenizer("a dog")["input_ids"]


RESUME = """
import json, os, signal, sys
from pathlib import Path
import torch
from test_pretrain import PLAN
from lib.data import files
from tools import pretrain

torch.set_num_threads(1)
out, data, stops = Path(sys.argv[1]), sys.argv[2], [int(s) for s in sys.argv[3].split(",") if s]
save = pretrain.save_checkpoint

def train_until(stop):
    pid = os.fork()
    if pid == 0:
        def counted(folder, model, optimizer, state):
            # at the step `stop` the process dies with half a checkpoint on disk
            if state["step"] == stop:
                files.temporary_name(folder / "checkpoint.safetensors").write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)
            save(folder, model, optimizer, state)
        pretrain.save_checkpoint = counted
        model = pretrain.train(PLAN, out, data, every_seconds=0.0, progress=False)
        torch.save(model.state_dict(), out / "final.pt")
        os._exit(0)
    return os.waitpid(pid, 0)[1]

assert [train_until(s) for s in stops] == [signal.SIGKILL] * len(stops)
assert train_until(-1) == 0
"""


@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_weights(trained, corpus, tmp_path):
    """Killed in the shallow phase, right after the growth, and in the deep phase."""
    here = Path(__file__).parent
    script = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\n" + RESUME
    final = []
    for name, stops in (("whole", ""), ("killed", "5,13,30")):
        (tmp_path / name).mkdir()
        shutil.copy(trained[0] / "rows.npz", tmp_path / name)
        command = [sys.executable, "-c", script, str(tmp_path / name), str(corpus), stops]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        final.append(torch.load(tmp_path / name / "final.pt", weights_only=True))
    whole, killed = final
    assert whole.keys() == killed.keys() and all(
        torch.equal(v, killed[k]) for k, v in whole.items()
    )


@pytest.mark.slow
def test_the_vocabulary_repeats(corpus, tmp_path):
    """Two processes with different hash seeds train the same vocabulary, ties between merges
    included."""
    script = (
        "import sys; from pathlib import Path; from tools import pretrain\n"
        "corpus = pretrain.pretrain_corpus(sys.argv[1], progress=False)\n"
        "pretrain.train_tokenizer(list(corpus), Path(sys.argv[2]), 110)"
    )
    for name in "ab":
        command = [sys.executable, "-c", script, str(corpus), str(tmp_path / name)]
        subprocess.run(command, check=True, cwd=Path(__file__).parent.parent)
    a, b = ((tmp_path / name / "vocab.txt").read_text() for name in "ab")
    assert a == b and len(a.split()) == 110
    assert set(pretrain.SPECIAL) <= set(a.split())


def test_main_reads_every_field_of_the_plan(corpus, tmp_path, capsys):
    arguments = [
        "--out",
        str(tmp_path / "run"),
        "--data-dir",
        str(corpus),
        "--export",
        str(tmp_path / "export"),
    ]
    small = {**vars(PLAN), "tokens": 600, "grow_at": 0, "layers": 1}
    for name, value in small.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    pretrain.main(arguments)
    assert "wrote" in capsys.readouterr().out
    assert json.loads((tmp_path / "export" / "config.json").read_text())["num_hidden_layers"] == 1
    assert Encoder.load(tmp_path / "export").encode(["a dog"]).shape == (1, 16)


def test_a_loss_that_is_not_finite_ends_the_run(corpus, tmp_path, monkeypatch):
    nan = lambda model, *_: model.bert.embeddings.word_embeddings.weight.sum() * math.nan  # noqa: E731
    monkeypatch.setattr(pretrain, "loss_of", lambda plan: nan)
    with pytest.raises(FloatingPointError, match="loss is nan at step 0"):
        train(PLAN, tmp_path / "run", str(corpus), progress=False)
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


SIBLING = replace(PLAN, grow_at=0)


@pytest.mark.parametrize(
    "changes", [{"architecture": "albert", "embedding": 8}, {"architecture": "llama"}]
)
def test_a_sibling_learns_resumes_and_is_an_encoder(corpus, trained, tmp_path, changes):
    plan = replace(SIBLING, **changes)
    out = tmp_path / "run"
    model = train(plan, out, str(corpus), progress=False)
    state = pretrain.checkpoint_state(out)
    again = train(replace(plan, tokens=state["seen"]), out, progress=False)
    weights = pretrain._untied(again)
    assert all(torch.equal(v, weights[k]) for k, v in pretrain._untied(model).items())
    ids, offsets, vectors = pretrain.prepare(plan, out, None, progress=False)
    fresh = pretrain.initial_model(
        plan, vectors, np.bincount(ids, minlength=plan.vocab_size), plan.layers
    )
    batches, loss = Batches(ids, offsets, replace(plan, seed=99)), pretrain.loss_of(plan)
    with torch.no_grad():
        before, after = (
            np.mean([loss(m.eval(), *batches(i)).item() for i in range(8)]) for m in (fresh, model)
        )
    assert after < before - 0.05
    pretrain.export(model, out / "tokenizer", tmp_path / "export")
    encoder = Encoder.load(tmp_path / "export", pooling="mean")
    assert encoder.backbone.config.model_type == changes["architecture"]
    found = encoder.encode(["a dog sings song .", "a dog sings song . a dog", WORDS[3]])
    assert (
        found.shape == (3, 16) and np.isfinite(found).all() and not np.allclose(found[0], found[2])
    )


def test_a_causal_batch_asks_for_the_next_token():
    ids, offsets = rows()
    plan = replace(PLAN, vocab_size=100, grow_at=0, architecture="llama")
    inputs, positions, labels = Batches(ids, offsets, plan)(0)
    assert torch.equal(inputs.flatten()[positions + 1], labels)
    assert len(labels) == inputs.numel() - len(inputs) and (labels[-1] == SEP).all()


def test_a_causal_loss_is_that_of_transformers():
    plan = replace(PLAN, vocab_size=100, grow_at=0, architecture="llama", dropout=0.0)
    ids, offsets = rows()
    model = pretrain.initial_model(
        plan, np.random.default_rng(0).normal(size=(100, 16)).astype("f"), np.ones(100), 2
    )
    inputs, positions, labels = Batches(ids, offsets, plan)(0)
    with torch.no_grad():
        expected = model.eval()(inputs, labels=inputs).loss
        assert torch.allclose(
            pretrain.loss_of(plan)(model, inputs, positions, labels), expected, atol=1e-5
        )


def test_a_byte_level_sibling(corpus, tmp_path):
    plan = replace(SIBLING, architecture="roberta", vocab_size=400)
    model = train(plan, tmp_path / "run", str(corpus), progress=False)
    pretrain.export(model, tmp_path / "run" / "tokenizer", tmp_path / "export")
    encoder = Encoder.load(tmp_path / "export", pooling="mean")
    tokenizer = encoder.tokenizer
    assert [tokenizer.convert_tokens_to_ids(t) for t in pretrain.ROBERTA_SPECIAL] == [0, 1, 2, 3, 4]
    ids = tokenizer("A dog sings ☃.")["input_ids"]
    assert ids[0] == CLS and ids[-1] == SEP and tokenizer.decode(ids[1:-1]) == "A dog sings ☃."
    alone, beside = (
        encoder.encode(["a dog"])[0],
        encoder.encode(["a dog", "a dog sings song . a dog"])[0],
    )
    assert np.allclose(alone, beside, atol=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "gpt"},
        {"architecture": "albert", "grow_at": 3_000},
        {"grow_at": 0, "embedding": 8},
    ],
)
def test_a_plan_of_no_architecture_is_an_error(changes):
    with pytest.raises(ValueError, match=r"architecture|grow_at=0|embedding=0"):
        replace(PLAN, **changes)


def test_the_loss_of_a_causal_model_and_its_gradients_are_those_of_cross_entropy() -> None:
    torch.manual_seed(0)
    hidden, weight = (
        torch.randn(70, 12, requires_grad=True),
        torch.randn(40, 12, requires_grad=True),
    )
    labels = torch.randint(40, (70,))
    expected = torch.nn.functional.cross_entropy(hidden @ weight.T, labels)
    loss = pretrain.LinearCrossEntropy.apply(hidden, weight, labels, 16)
    assert torch.allclose(loss, expected, rtol=1e-5)
    one = torch.autograd.grad(3 * expected, (hidden, weight))
    two = torch.autograd.grad(3 * loss, (hidden, weight))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(one, two, strict=True))


# --- padded batches, compilation, going on ----------------------------------------------------------


PADDED = replace(PLAN, width_step=4, grow_at=0)


def test_padded_batches_have_few_shapes_and_the_same_text():
    ids, offsets = rows()
    plain, padded = (Batches(ids, offsets, plan) for plan in (PLAN, PADDED))
    shapes = {tuple(part.shape for part in padded(i)) for i in range(len(padded.batches))}
    assert sorted(shape[0][1] for shape in shapes) == [8, 12, 14]
    held = np.concatenate(padded.batches)
    assert len(set(held)) == len(held) and (padded.lengths[held] >= 5).all()
    assert abs(len(held) - len(np.concatenate(plain.batches))) < 300


def test_padding_is_no_text_and_is_not_asked_for():
    ids, offsets = rows()
    batches = Batches(ids, offsets, PADDED)
    for i in range(len(batches.batches)):
        inputs, positions, labels = batches(i)
        lengths = torch.from_numpy(batches.lengths[batches.batches[batches.order[i]]])
        real = torch.arange(inputs.shape[1]) < lengths[:, None]
        assert ((inputs != pretrain.PAD) == real).all()
        asked = labels != pretrain.NOT_ASKED
        assert real.flatten()[positions[asked]].all()
        assert len(positions) == int(PADDED.mask_rate * inputs.numel()) + 1
        tokens, batch = next(batches.from_step(i))
        assert tokens == int(lengths.sum()) and torch.equal(batch[0], inputs)


def test_the_loss_of_a_padded_batch_is_that_of_its_rows(trained):
    _, model = trained
    model.eval()
    ids, offsets = rows(vocabulary=100)
    inputs, positions, labels = Batches(ids, offsets, PADDED)(0)
    total, count = 0.0, 0
    width = inputs.shape[1]
    with torch.no_grad():
        found = pretrain.loss_of(PADDED)(model, inputs, positions, labels)
        for row in range(len(inputs)):
            own = (positions // width == row) & (labels != pretrain.NOT_ASKED)
            if own.any():
                alone = inputs[row][inputs[row] != pretrain.PAD][None]
                at = positions[own] - row * width
                total += pretrain.loss_of(PLAN)(model, alone, at, labels[own]).item() * int(
                    own.sum()
                )
                count += int(own.sum())
    assert found.item() == pytest.approx(total / count, rel=1e-4)


def test_compiled_shapes_are_few_and_the_losses_the_same(corpus, tmp_path, monkeypatch):
    plan = replace(PADDED, tokens=4_000, dropout=0.0)
    train(plan, tmp_path / "plain", str(corpus), progress=False)
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter))
    train(plan, tmp_path / "compiled", str(corpus), progress=False, compile=True)
    losses = [
        json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[-1])["loss"]
        for name in ("plain", "compiled")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert 1 <= counter.frame_count <= 3


def test_a_causal_model_is_not_padded():
    with pytest.raises(ValueError, match="width_step=1"):
        replace(PLAN, architecture="llama", grow_at=0, width_step=8)


def test_a_finished_run_goes_on_with_more_tokens(corpus, tmp_path):
    short = replace(PADDED, tokens=2_000)
    train(short, tmp_path / "run", str(corpus), progress=False)
    steps = pretrain.checkpoint_state(tmp_path / "run")["step"]
    train(replace(short, tokens=4_000, lr=1e-3), tmp_path / "run", str(corpus), progress=False)
    state = pretrain.checkpoint_state(tmp_path / "run")
    assert state["seen"] >= 4_000 and state["step"] > steps
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [steps, state["step"]]
    with pytest.raises(ValueError, match=r"hidden: 16 there, 32 here.*choose another --out"):
        train(replace(short, hidden=32), tmp_path / "run", str(corpus), progress=False)


def test_stsb_dev_is_scored_where_it_is_at_hand(corpus, tmp_path, monkeypatch):
    pairs = data.mini_pairs("dev")
    monkeypatch.setattr(pretrain, "stsb", lambda part, folder: pairs)
    train(replace(PADDED, tokens=2_000), tmp_path / "run", str(corpus), progress=False)
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert -100 <= last["stsb_dev_spearman"] <= 100


def test_pretrain_corpus_reads_all_files_in_order(tmp_path):
    folder = tmp_path / "corpus/pretrain"
    folder.mkdir(parents=True)
    for name, text in (("b", "three\n\nfour\n"), ("a", "one\n two \n")):
        (folder / f"{name}.txt.xz").write_bytes(lzma.compress(text.encode()))
    found = pretrain.pretrain_corpus(tmp_path, progress=False)
    assert list(found) == ["one", "two", "three", "four"]
