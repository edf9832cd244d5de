"""LoRA and chunked encoding: closed forms, gradients against the whole batch, and what is saved."""

import numpy as np
import pytest
import torch
from tiny import tiny_encoder, tiny_recipe, tiny_sentences, trained
from transformers import AutoModel

from lib.encoder import Encoder
from lib.encoder.layers import merged_state
from lib.training.batches import Feed
from lib.training.forward import encode_batch

SENTENCES = tiny_sentences(24)


def run(folder, recipe):
    """The encoder after four steps, and the result."""
    return trained(folder, recipe, SENTENCES, max_steps=4)


def test_a_fresh_difference_changes_nothing_and_is_all_that_is_trained(tmp_path) -> None:
    plain, lora = tiny_encoder(tmp_path / "bert"), tiny_encoder(tmp_path / "bert", lora_rank=2)
    assert np.allclose(plain.encode(SENTENCES), lora.encode(SENTENCES), atol=1e-5)
    linear = [m for m in plain.backbone.modules() if isinstance(m, torch.nn.Linear)]
    trainable = sum(p.numel() for p in lora.backbone.parameters() if p.requires_grad)
    assert len(linear) == 12 and trainable == sum(
        2 * (m.in_features + m.out_features) for m in linear
    )


def test_the_difference_is_the_formula(tmp_path) -> None:
    encoder = tiny_encoder(tmp_path / "bert", lora_rank=3)
    layer = encoder.backbone.encoder.layer[0].attention.self.query
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    torch.nn.init.normal_(b)
    expected = layer.base_layer.weight + 2 * b @ a
    assert torch.allclose(
        merged_state(encoder.backbone)["encoder.layer.0.attention.self.query.weight"], expected
    )
    assert set(merged_state(encoder.backbone)) == set(
        tiny_encoder(tmp_path / "bert").backbone.state_dict()
    )


def test_the_random_part_depends_on_the_seed_alone(tmp_path) -> None:
    found = []
    for around, seed in ((5, 1), (6, 1), (5, 2)):
        torch.manual_seed(around)
        state = tiny_encoder(tmp_path / "bert", lora_rank=2, seed=seed).trained_state()
        found.append(
            torch.cat([w.flatten() for name, w in sorted(state.items()) if "lora_A" in name])
        )
    one, again, other = found
    assert torch.equal(one, again) and not torch.isclose(one, other).any()


def test_training_moves_the_difference_alone_and_the_sum_is_saved(tmp_path) -> None:
    recipe = tiny_recipe(dropout=0.0, lora_rank=2)
    encoder, _ = run(tmp_path / "bert", recipe)
    before = tiny_encoder(tmp_path / "bert").backbone.state_dict()
    kept = {
        k.replace(".base_layer.", "."): v
        for k, v in encoder.backbone.state_dict().items()
        if ".lora_" not in k
    }
    assert all(torch.equal(kept[name], weight) for name, weight in before.items())
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert not any("lora" in name for name in again.backbone.state_dict())
    ours, loaded, base = (
        e.encode(SENTENCES, precision="fp32")
        for e in (encoder, again, tiny_encoder(tmp_path / "bert"))
    )
    assert np.allclose(ours, loaded, atol=1e-5) and np.abs(ours - base).max() > 1e-3
    assert AutoModel.from_pretrained(tmp_path / "saved").config.model_type == "bert"


@pytest.mark.parametrize("lora_rank", [0, 2])
def test_the_trained_state_is_all_that_a_fresh_encoder_needs(tmp_path, lora_rank) -> None:
    recipe = tiny_recipe(dropout=0.0, lora_rank=lora_rank, head="simclr")
    encoder, _ = run(tmp_path / "bert", recipe)
    state = {name: weight.clone() for name, weight in encoder.trained_state().items()}
    fresh = tiny_encoder(tmp_path / "bert", head="simclr", lora_rank=lora_rank, seed=7)
    weights = dict(fresh.named_parameters())
    fresh.load_trained_state(state)
    assert all(weights[name] is weight for name, weight in fresh.named_parameters()), (
        "an optimiser still holds them"
    )
    expected = encoder.state_dict()
    assert all(torch.equal(weight, expected[name]) for name, weight in fresh.state_dict().items())
    frozen = sum(p.numel() for p in encoder.parameters() if not p.requires_grad)
    kept = sum(v.numel() for k, v in state.items() if k.startswith("backbone."))
    assert kept + frozen == sum(p.numel() for p in encoder.backbone.parameters())


@pytest.mark.parametrize("chunk_size", [1, 3, 100])
def test_chunks_have_the_gradient_of_the_whole_batch(tmp_path, chunk_size) -> None:
    weights = []
    for size in (0, chunk_size):
        still = {"dropout": 0.0, "temperature": 0.3, "positive": "delete", "positive_rate": 0.3}
        recipe = tiny_recipe(chunk_size=size, **still)
        encoder, result = run(tmp_path / "bert", recipe)
        weights.append((encoder.state_dict(), [h["loss"] for h in result.history]))
    assert weights[0][1] == pytest.approx(weights[1][1], abs=1e-5)
    for name, weight in weights[0][0].items():
        if not name.endswith(
            "key.bias"
        ):  # their gradient is zero but for rounding, which Adam enlarges
            assert torch.allclose(weight, weights[1][0][name], atol=2e-5), name


def test_chunks_draw_their_dropout_once(tmp_path) -> None:
    """The gradient is that of the embeddings that the loss has seen: finite differences of one
    weight agree."""
    encoder = tiny_encoder(tmp_path / "bert", pooling="mean", dropout=0.3).train().double()
    batch = Feed.of(SENTENCES, tiny_recipe(), encoder.tokenizer).batch(0)
    weight = encoder.backbone.encoder.layer[0].intermediate.dense.weight

    def loss() -> torch.Tensor:
        torch.manual_seed(0)
        z = encode_batch(encoder, batch, chunk_size=3)
        return (z["anchor"] * z["positive"]).sum()

    loss().backward()
    analytic = float(weight.grad[0, 0])
    with torch.no_grad():
        values = []
        for shift in (1e-3, -2e-3):
            weight[0, 0] += shift
            values.append(float(loss()))
    assert analytic == pytest.approx((values[0] - values[1]) / 2e-3, rel=2e-2, abs=1e-3)
