"""Pooling, heads, encoding, saving and exporting, on encoders of a few thousand weights."""

import resource
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from tiny import WORDS, tiny_bert, tiny_encoder, tiny_sentences, word_tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, XLNetConfig, XLNetModel

from lib.encoder import Encoder, build_head, dropout_of, fitting_pooling, load, pool
from lib.encoder.device import resolve_device, resolve_precision
from lib.encoder.heads import HEADS, POOLINGS
from lib.encoder.layers import FIRST_TOKEN_ALONE

SENTENCES = ["a dog runs .", "the old woman reads one book behind the garden .", "no", "two cats"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def encoder(folder):
    return Encoder.load(folder)


def alone(encoder: Encoder, sentence: str, pooling: str) -> np.ndarray:
    """The definition of each pooling, for one sentence without padding."""
    batch = encoder.tokenizer(sentence, return_tensors="pt")
    with torch.no_grad():
        output = encoder.backbone(**batch, output_hidden_states=True)
    states = [h[0].numpy() for h in output.hidden_states]
    last = output.last_hidden_state[0].numpy()
    return {
        "cls": last[0],
        "last_token": last[-1],
        "mean": last.mean(0),
        "last2_mean": (states[-1] + states[-2]).mean(0) / 2,
        "first_last_mean_embeddings": (states[0] + last).mean(0) / 2,
        "first_last_mean_layer_1": (states[1] + last).mean(0) / 2,
    }[pooling]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_encode_is_the_sentence_alone_without_padding(encoder, pooling):
    expected = np.stack([alone(encoder, s, pooling) for s in SENTENCES])
    assert np.allclose(
        encoder.encode(SENTENCES, pooling=pooling, precision="fp32"), expected, atol=1e-5
    )


@pytest.mark.parametrize("pooling", POOLINGS[1:])
def test_padding_on_the_left_never_enters_a_pooling(pooling):
    lengths, width = [1, 3, 5], 5
    states = [torch.randn(3, width, 4) for _ in range(3)]
    mask = (torch.arange(width) >= width - torch.tensor(lengths)[:, None]).long()
    found = pool(states, mask, pooling)
    for i, length in enumerate(lengths):
        cut = [s[i : i + 1, width - length :] for s in states]
        expected = pool(cut, torch.ones(1, length), pooling)[0]
        assert torch.allclose(found[i], expected, atol=1e-6)


def test_unknown_names_are_errors(folder, encoder):
    states = [torch.zeros(1, 1, 2)]
    for call in (
        lambda: pool(states, torch.ones(1, 1), "max"),
        lambda: Encoder.load(folder, eval_pooling="max"),
        lambda: encoder.encode(["a dog"], pooling="max"),
        lambda: Encoder.load(folder, dropout=1.0),
    ):
        with pytest.raises(ValueError, match=r"one of|\[0, 1\)"):
            call()


def test_encode_keeps_the_order_and_encodes_each_distinct_sentence_once(encoder, monkeypatch):
    sentences = tiny_sentences(40)
    repeated = [sentences[i] for i in np.random.default_rng(0).integers(40, size=130)]
    seen = []
    forward = type(encoder.backbone).forward

    def watched(self, input_ids, **options):
        seen.append(tuple(input_ids.shape))
        return forward(self, input_ids=input_ids, **options)

    monkeypatch.setattr(type(encoder.backbone), "forward", watched)
    found = encoder.encode(repeated, batch_tokens=100, precision="fp32")
    assert sum(n for n, _ in seen) == len(set(repeated))
    assert len(seen) > 3 and all(n * t <= 100 for n, t in seen)
    assert found.shape == (130, 32) and found.dtype == np.float32
    for i in (0, 7, 129):
        assert np.allclose(found[i], alone(encoder, repeated[i], "cls"), atol=1e-5)


def test_encode_of_nothing_and_of_a_string(encoder):
    assert encoder.encode([]).shape == (0, 32) and encoder.encode([]).dtype == np.float32
    assert encoder.encode([""]).shape == (1, 32)
    assert encoder.encode(text for text in ["a dog", "a cat"]).shape == (2, 32)
    with pytest.raises(TypeError, match="list of strings"):
        encoder.encode("a dog")


def test_encode_draws_no_dropout_and_leaves_the_mode_alone(encoder):
    encoder.train()
    state = torch.get_rng_state()
    first = encoder.encode(SENTENCES)
    assert encoder.training and torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(first, encoder.eval().encode(SENTENCES)) and not encoder.training


def test_bf16_is_close_to_fp32(encoder):
    fp32, bf16 = (encoder.encode(SENTENCES, precision=p) for p in ("fp32", "bf16"))
    assert bf16.dtype == np.float32 and not np.array_equal(fp32, bf16)
    cosine = (fp32 * bf16).sum(1) / np.linalg.norm(fp32, axis=1) / np.linalg.norm(bf16, axis=1)
    assert cosine.min() > 0.999


def test_the_residual_stream_is_bf16_in_training_under_autocast_only(folder):
    encoder = Encoder.load(folder, pooling="mean")
    kinds = []
    encoder.backbone.encoder.layer[0].register_forward_pre_hook(
        lambda _, inputs: kinds.append(inputs[0].dtype)
    )
    batch = encoder.tokenizer(SENTENCES, return_tensors="pt", padding=True)
    for training in (True, False):
        for autocast in (True, False):
            encoder.train(training)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                encoder(batch["input_ids"], batch["attention_mask"])
    assert kinds == [torch.bfloat16, torch.float32, torch.float32, torch.float32]


def by_hand(head: nn.Module, kind: str, z: torch.Tensor) -> torch.Tensor:
    """What a fresh head gives in training, written out."""
    layers = [m for m in head.modules() if isinstance(m, nn.Linear)]

    def normalised(x):
        return (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()

    def mlp(x, first, second):
        return second(normalised(first(x)).relu())

    if kind == "simsiam":
        projected = normalised(mlp(z, *layers[:2]))
        return torch.cat([projected, mlp(projected, *layers[2:])], dim=1)
    if kind == "scd":
        return torch.cat([z, mlp(normalised(layers[0](z)).relu(), *layers[1:])], dim=1)
    if kind in ("simclr", "bn_mlp"):
        return mlp(z, *layers) if kind == "simclr" else normalised(mlp(z, *layers))
    z = layers[0](z) if layers else z
    return {"tanh": torch.tanh, "relu": torch.relu}.get(kind, lambda x: x)(z)


@pytest.mark.parametrize("head", HEADS)
def test_head_is_used_in_training_and_dropped_at_evaluation(folder, head):
    options = {"pooling": "mean", "head": head, "dropout": 0.0}
    encoder = Encoder.load(folder, **options, eval_pooling="cls")
    kept = Encoder.load(folder, **options, eval_head=True)
    batch = encoder.tokenizer(SENTENCES, return_tensors="pt", padding=True)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.no_grad():
        last = encoder.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        z = pool([last], mask, "mean")
        assert torch.allclose(kept(ids, mask), kept.head(z), atol=1e-5)
        assert torch.allclose(encoder(ids, mask), last[:, 0], atol=1e-5)
        expected = by_hand(encoder.head, head, z)
        assert torch.allclose(encoder.train()(ids, mask), expected, atol=1e-3)


def test_loading_leaves_the_random_numbers_of_all_gpus_alone(folder, monkeypatch):
    touched = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all"):
        monkeypatch.setattr(
            torch.cuda, name, lambda *a, name=name: touched.append(name) or torch.zeros(1)
        )
    Encoder.load(folder, head="tanh", lora_rank=2, device="cpu")
    assert touched == []


def test_the_head_of_diffcse_doubles_the_width_in_between():
    shapes = [tuple(p.shape) for p in build_head("bn_mlp", 32).parameters()]
    assert shapes == [(64, 32), (64,), (64,), (32, 64)], "no biases but the batch norm's"
    assert build_head("bn_mlp:12:7", 32)(torch.randn(5, 32)).shape == (5, 7)


@pytest.mark.parametrize("head", ["linear", "tanh", "relu", "scd"])
def test_a_single_layer_begins_like_berts_or_like_torchs(folder, head):
    """initializer_range is 0.3 here; torch draws from U(-1/√d, 1/√d), the bias too."""

    def layer(init: str) -> nn.Linear:
        modules = Encoder.load(folder, head=head, head_init=init, seed=1).head.modules()
        return next(m for m in modules if isinstance(m, nn.Linear))

    bert, own, bound = layer("bert"), layer("torch"), 32**-0.5
    assert bert.weight.std().item() == pytest.approx(0.3, rel=0.1) and not bert.bias.any()
    assert own.weight.abs().max() <= bound and own.bias.abs().max() <= bound
    assert own.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
    assert own.bias.std().item() > 0.3 * bound


@pytest.mark.parametrize("head", ["tanh", "simclr:8:5", "bn_mlp", "simsiam:8:5"])
def test_the_head_meets_each_view_by_itself(folder, head):
    """One pass of the backbone; batch statistics, running ones and gradients are those of separate
    calls."""
    sizes = (4, 3, 5)
    batch = Encoder.load(folder).tokenizer(tiny_sentences(12), return_tensors="pt", padding=True)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    options = {"pooling": "mean", "head": head, "dropout": 0.0}
    at_once = Encoder.load(folder, **options, head_per_view=True).train()
    one_by_one, together = (Encoder.load(folder, **options).train() for _ in range(2))
    found = at_once(ids, mask, sizes=sizes)
    views = zip(ids.split(sizes), mask.split(sizes), strict=True)
    expected = torch.cat([one_by_one(*view) for view in views])
    assert torch.allclose(found, expected, atol=1e-5)
    for z in (found, expected):
        z.square().sum().backward()
    for (name, p), q in zip(
        at_once.head.named_parameters(), one_by_one.head.parameters(), strict=True
    ):
        assert torch.allclose(p.grad, q.grad, atol=1e-4, rtol=1e-3), name
    for (name, p), q in zip(at_once.head.named_buffers(), one_by_one.head.buffers(), strict=True):
        assert torch.allclose(p.float(), q.float(), atol=1e-5), name
    has_batch_norm = head != "tanh"
    assert torch.allclose(together(ids, mask, sizes=sizes), found, atol=1e-3) != has_batch_norm


def test_head_weights_depend_on_the_seed_alone(folder):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = Encoder.load(folder, head="tanh", seed=1).head[0].weight
    torch.manual_seed(6)
    again, other = (Encoder.load(folder, head="tanh", seed=s).head[0].weight for s in (1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)
    torch.set_rng_state(state)
    build_head("none", 4)
    Encoder.load(folder, head="linear")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("head", HEADS)
def test_save_and_load_round_trip(folder, tmp_path, head):
    options = {"pooling": "mean", "head": head, "eval_pooling": "last2_mean"}
    options |= {"eval_head": head == "linear"}
    encoder = Encoder.load(folder, **options, seed=3)
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved", seed=99)
    assert again.settings == encoder.settings == options
    assert all(torch.equal(v, again.state_dict()[k]) for k, v in encoder.state_dict().items())
    assert encoder.state_dict().keys() == again.state_dict().keys()
    assert np.array_equal(encoder.encode(SENTENCES), again.encode(SENTENCES))
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_explicit_settings_win_over_the_saved_ones(folder, tmp_path):
    Encoder.load(folder, pooling="cls", head="tanh", eval_pooling="mean").save(tmp_path / "saved")
    changed = Encoder.load(tmp_path / "saved", eval_pooling="cls").settings
    assert changed == {"pooling": "cls", "head": "tanh", "eval_pooling": "cls", "eval_head": False}
    named = Encoder.load(tmp_path / "saved", pooling="last2_mean").settings
    assert named["eval_pooling"] == "last2_mean"
    other = Encoder.load(tmp_path / "saved", head="linear", seed=4)
    assert torch.equal(other.head.weight, Encoder.load(folder, head="linear", seed=4).head.weight)


@pytest.mark.parametrize("dropout", [0.0, 0.35])
def test_dropout_changes_every_dropout(folder, dropout):
    encoder = Encoder.load(folder, dropout=dropout)
    rates = [m.p for m in encoder.modules() if isinstance(m, nn.Dropout)]
    assert len(rates) >= 6 and set(rates) == {dropout}
    assert encoder.backbone.config.attention_probs_dropout_prob == dropout
    batch = encoder.tokenizer(SENTENCES, return_tensors="pt", padding=True)
    encoder.train()
    with torch.no_grad():
        twice = [encoder(batch["input_ids"], batch["attention_mask"]) for _ in range(2)]
    assert torch.equal(*twice) == (dropout == 0)


@pytest.mark.parametrize("name", ["nobody/no-such-model", "./here"])
def test_missing_model_is_one_clear_error(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="cannot load the model") as caught:
        Encoder.load(name)
    assert name in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("You are trying to access a gated repo.\nMake sure to have access.", PermissionError),
        ("no file in aggregated/model", FileNotFoundError),
    ],
)
def test_a_gated_model_names_its_licence_page(text, kind, monkeypatch):
    def refuse(*_, **__):
        raise OSError(text)

    monkeypatch.setattr(load, "snapshot_download", refuse)
    with pytest.raises(kind) as caught:
        Encoder.load("org/model")
    assert ("https://huggingface.co/org/model" in str(caught.value)) == (kind is PermissionError)


@pytest.mark.parametrize(
    "options", [{"pooling": "last2_mean"}, {"pooling": "cls", "head": "tanh", "eval_head": True}]
)
def test_export_refuses_what_has_no_counterpart(folder, tmp_path, options):
    with pytest.raises(ValueError, match="export with cls, mean or last_token"):
        Encoder.load(folder, **options).export_sentence_transformers(tmp_path / "export")
    assert not list(tmp_path.iterdir())


SIZES = {"vocab_size": 80, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 64}
GROUPED = {**SMALL, "num_key_value_heads": 2}
EXPORTED: dict[str, dict] = {
    "bert": SMALL,
    "roberta": {**SMALL, "pad_token_id": 1},
    "albert": {**SMALL, "embedding_size": 16},
    "distilbert": {"vocab_size": 80, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    "gpt2": {"vocab_size": 80, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "llama": GROUPED,
    "gemma": {**GROUPED, "head_dim": 16},
}


def of_type(model_type: str, folder, **changes):
    """A folder with a random model and a tokenizer; decoders have no padding token."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **(EXPORTED.get(model_type, SMALL) | changes))
    AutoModel.from_config(config).save_pretrained(folder)
    causal = fitting_pooling(config) == "last_token"
    word_tokenizer("<s>", "</s>", None if causal else "<pad>", 40).save_pretrained(folder)
    return folder


# Each reads 32 tokens.
FAMILIES: dict[str, dict] = {
    "roberta": {"max_position_embeddings": 34},
    "distilbert": {"max_position_embeddings": 32},
    "albert": {"max_position_embeddings": 32},
    "llama": {"max_position_embeddings": 32, "attention_dropout": 0.1},
    "gpt2": {"n_positions": 32},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_load_encode_and_change_dropout(family, tmp_path):
    folder = of_type(family, tmp_path / family, **FAMILIES[family])
    encoder = Encoder.load(folder)
    assert encoder.longest_input() == 32
    sentences = [*SENTENCES, " ".join(WORDS * 2)]
    for pooling in ("cls", "mean", "last2_mean", "first_last_mean_embeddings", "last_token"):
        found = encoder.encode(sentences, pooling=pooling, precision="fp32")
        expected = [alone(encoder, s, pooling) for s in SENTENCES]
        assert np.allclose(found[:4], expected, atol=1e-5) and np.isfinite(found).all()
    encoder.tokenizer.padding_side = "left"
    again = encoder.encode(sentences, pooling="last_token", precision="fp32")
    assert np.array_equal(again, found), "rows pad right"
    without = Encoder.load(folder, pooling="mean", dropout=0.0).train()
    batch = without.tokenizer(SENTENCES[1], return_tensors="pt")
    with torch.no_grad():
        twice = [without(batch["input_ids"], batch["attention_mask"]) for _ in range(2)]
    assert torch.equal(*twice)
    dropped = Encoder.load(folder, dropout=0.3).modules()
    assert {m.p for m in dropped if isinstance(m, nn.Dropout)} <= {0.3}
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved").encode(sentences)
    assert np.array_equal(again, encoder.encode(sentences))


CONFIGS: dict[str, dict] = {
    **{name: {} for name in (*FIRST_TOKEN_ALONE, "ernie", "deberta")},
    "longformer": {"attention_window": [4, 4]},
    "ibert": {},
    "canine": {"downsampling_rate": 2, "local_transformer_stride": 8},
    "mobilebert": {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    "mpnet": {},
}


@pytest.mark.parametrize("model_type", CONFIGS)
def test_cls_pooling_is_the_first_token_of_every_architecture(model_type):
    sizes = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 34}
    config = AutoConfig.for_model(model_type, **sizes, **CONFIGS[model_type])
    torch.manual_seed(0)
    encoder = Encoder(AutoModel.from_config(config), None, pooling="cls").eval()
    ids, mask = torch.randint(5, 80, (3, 9)), torch.ones(3, 9, dtype=torch.long)
    mask[1, 5:] = 0
    with torch.no_grad():
        expected = encoder.backbone(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        assert torch.allclose(encoder(ids, mask), expected, atol=1e-5)


def test_a_pass_that_fails_leaves_the_next_one_whole(encoder):
    """Out of memory in the last layer, say: vectors afterwards are of all tokens."""
    expected = encoder.encode(SENTENCES[1:2])

    def fail(*_):
        raise RuntimeError("no memory")

    failing = encoder.backbone.encoder.layer[-1].output.register_forward_pre_hook(fail)
    encoder.train()
    with pytest.raises(RuntimeError, match="no memory"):
        encoder.encode(SENTENCES, pooling="cls")
    failing.remove()
    assert encoder.training, "the mode is what it was"
    assert np.array_equal(encoder.encode(SENTENCES[1:2]), expected)


def test_a_model_without_a_table_of_positions_reads_any_length(tmp_path):
    sizes = {"vocab_size": 80, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 16}
    XLNetModel(XLNetConfig(**sizes)).save_pretrained(tmp_path)
    word_tokenizer("<s>", "</s>", "<pad>", 10**30).save_pretrained(tmp_path)
    encoder = Encoder.load(tmp_path, pooling="mean")
    assert encoder.longest_input() >= 10_000
    long = " ".join(WORDS * 3)
    assert not np.allclose(*encoder.encode([long, f"{long} dog"], precision="fp32"), atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("head", ["none", "simclr:8:5"])
def test_a_sentence_without_tokens_is_zero_alone_and_among_others(tmp_path, pooling, head):
    of_type("gpt2", tmp_path)
    word_tokenizer("<s>", "</s>", None, 32, special=False).save_pretrained(tmp_path)
    encoder = Encoder.load(tmp_path, pooling=pooling, head=head, eval_head=head != "none")
    width = 32 if head == "none" else 5
    assert encoder.encode([]).shape == (0, width)
    for sentences in ([""], ["a dog", "", "two cats"]):
        found = encoder.encode(sentences, precision="fp32")
        assert found.shape == (len(sentences), width)
        assert [bool(row.any()) for row in found] == [bool(s) for s in sentences]


def test_resolve_device(monkeypatch):
    def machine(gpus: int, mac: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mac)

    machine(gpus=0, mac=True)  # a Mac's GPU is used only if it is named
    assert resolve_device("auto") == resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("mps") == torch.device("mps")
    machine(gpus=2, mac=False)
    assert resolve_device("auto") == torch.device("cuda")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device("cpu") == torch.device("cpu")
    for absent in ("cuda:2", "mps", "gpu", "meta", 3.5):
        with pytest.raises(ValueError, match="device"):
            resolve_device(absent)


@pytest.mark.parametrize(
    ("amx", "avx", "expected"), [(0, 0, "fp32"), (1, 0, "bf16"), (0, 1, "bf16")]
)
def test_resolve_precision_on_a_cpu(monkeypatch, amx, avx, expected):
    monkeypatch.delenv("CSE_AUTO_PRECISION", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: bool(amx))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bool(avx))
    assert resolve_precision("auto") == expected
    assert resolve_precision("fp32") == "fp32" and resolve_precision("bf16") == "bf16"
    with pytest.raises(ValueError, match="fp16"):
        resolve_precision("fp16")
    for wished in ("fp32", "bf16"):
        monkeypatch.setenv("CSE_AUTO_PRECISION", wished)
        assert resolve_precision("auto") == wished and resolve_precision("fp32") == "fp32"
    monkeypatch.setenv("CSE_AUTO_PRECISION", "half")
    with pytest.raises(ValueError, match="CSE_AUTO_PRECISION"):
        resolve_precision("auto")


def test_resolve_precision_asks_the_gpu_that_is_named(monkeypatch):
    """The second GPU has bf16 units, the first, which is the current one, has none."""
    monkeypatch.delenv("CSE_AUTO_PRECISION", raising=False)
    capability = {"cuda": 7, "cuda:0": 7, "cuda:1": 9}
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda device: SimpleNamespace(major=capability[str(device)]),
    )
    for device, expected in (("cuda", "fp32"), ("cuda:1", "bf16")):
        assert resolve_precision("auto", torch.device(device)) == expected


@pytest.mark.parametrize("automatic", ["fp32", "bf16"])
@pytest.mark.parametrize("around", ["autocast", "accelerate"])
def test_a_precision_holds_whatever_stands_around(folder, monkeypatch, automatic, around):
    """Not the machine, not an autocast of the caller, not accelerate decides."""
    monkeypatch.setenv("CSE_AUTO_PRECISION", automatic)
    plain = Encoder.load(folder, head="tanh", eval_head=True)
    expected = {p: plain.encode(SENTENCES, precision=p) for p in ("fp32", "bf16", "auto")}
    encoder = Encoder.load(folder, head="tanh", eval_head=True)
    if around == "accelerate":
        accelerator = Accelerator(cpu=True, mixed_precision="bf16")
        encoder = accelerator.unwrap_model(accelerator.prepare_model(encoder))
    with torch.autocast("cpu", torch.bfloat16, enabled=around == "autocast"):
        found = {p: encoder.encode(SENTENCES, precision=p) for p in expected}
    assert all(np.array_equal(found[p], expected[p]) for p in expected)
    assert np.array_equal(found["auto"], found[automatic])
    assert not np.array_equal(found["fp32"], found["bf16"])


def test_a_saved_tokenizer_does_not_remember_the_last_call(tmp_path) -> None:
    encoder = tiny_encoder(tmp_path / "bert")
    encoder.save(tmp_path / "before")
    encoder.tokenizer(
        ["a dog sees a cat .", "a dog ."], truncation=True, max_length=4, padding=True
    )
    encoder.save(tmp_path / "after")
    before, after = (tmp_path / name / "tokenizer.json" for name in ("before", "after"))
    assert after.read_bytes() == before.read_bytes()


@pytest.mark.parametrize("model_type", EXPORTED)
def test_an_exported_model_has_its_vectors_in_sentence_transformers(model_type, tmp_path, capfd):
    st = pytest.importorskip("sentence_transformers")
    encoder = Encoder.load(of_type(model_type, tmp_path / "model"), device="cpu")
    encoder.export_sentence_transformers(tmp_path / "export")
    capfd.readouterr()
    theirs = st.SentenceTransformer(str(tmp_path / "export"), device="cpu").encode(SENTENCES)
    assert "newly initialized" not in capfd.readouterr().err
    ours = encoder.encode(SENTENCES, precision="fp32")
    assert np.allclose(theirs, ours, atol=1e-6 * abs(ours).max())
    assert np.ptp(ours, axis=0).max() > 0, "sentences differ"
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "export").glob("*.*")} == {0o644}


def test_cls_of_a_causal_model_is_said(tmp_path):
    folder = of_type("llama", tmp_path)
    for name in ("pooling", "eval_pooling"):
        with pytest.warns(UserWarning, match="sees itself alone"):
            Encoder.load(folder, **{name: "cls"})


def test_dropout_that_no_module_takes_is_refused(tmp_path):
    config = AutoConfig.for_model("mamba", vocab_size=80, hidden_size=32, num_hidden_layers=1)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    word_tokenizer("<s>", "</s>", None, 40).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no dropout"):
        Encoder.load(tmp_path, dropout=0.2)
    encoder = Encoder.load(tmp_path, dropout=0.0)
    with pytest.raises(ValueError, match="has no dropout"), dropout_of(encoder.backbone, 0.1):
        pass


def test_a_full_disk_is_one_sentence_and_leaves_nothing(folder, tmp_path):
    encoder = Encoder.load(folder, head="tanh", eval_pooling="mean")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for most in (100, 3_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
            for write in (encoder.save, encoder.export_sentence_transformers):
                with pytest.raises(OSError, match="cannot be written"):
                    write(tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
