"""The CPU's dropout against torch's own, and the models that draw with it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_bert, tiny_encoder
from transformers import AutoConfig, AutoModel, BertConfig, BertModel

from lib.encoder import Encoder
from lib.encoder.layers import ATTENTION, CheapDropout, cheap_dropout, speed_up

BERT = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "attn_implementation": "sdpa",
}
IDS = torch.arange(5, 29).view(2, 12)
MASK = torch.tensor([[1] * 12, [1] * 7 + [0] * 5])


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
    st.floats(0, 0.99),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_every_element_is_zero_or_scaled(shape, p, dtype):
    y = cheap_dropout(torch.full(shape, 2.0, dtype=dtype), p)
    assert list(y.shape) == shape and y.dtype == dtype
    kept = y[y != 0].float()
    assert torch.allclose(kept, torch.full_like(kept, 2 / (1 - p)), rtol=1e-2)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1e-9])
def test_share_mean_and_gradient(p):
    torch.manual_seed(0)
    x = torch.ones(1_000_000, requires_grad=True)
    y = cheap_dropout(x, p)
    assert (y == 0).float().mean().item() == pytest.approx(
        p, abs=4 * (p * (1 - p) / 1e6) ** 0.5 + 2**-17
    )
    assert y.mean().item() == pytest.approx(1, abs=4 * (p / (1 - p) / 1e6) ** 0.5 + 1e-9)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_neighbours_are_dropped_independently():
    torch.manual_seed(1)
    zero = (cheap_dropout(torch.ones(4_000_000), 0.5) == 0).float()
    for lag in (1, 2, 3, 4, 5, 8):
        together = (zero[:-lag] * zero[lag:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.0015)


def bert(**changes) -> BertModel:
    torch.manual_seed(0)
    return BertModel(BertConfig(**{**BERT, **changes}))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("mask", [MASK, torch.ones_like(MASK), None])
def test_without_dropout_the_model_is_the_same(training, mask):
    model = bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train(training)
    before = model(IDS, attention_mask=mask).last_hidden_state
    speed_up(model)
    assert model.config._attn_implementation == ATTENTION
    assert torch.equal(model(IDS, attention_mask=mask).last_hidden_state, before)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.06)])
def test_attention_with_a_vanishing_dropout_equals_torchs(dtype, tolerance):
    """It drops nothing but takes our own attention's path: padding is masked the same way."""
    model = bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=2**-18).eval().to(dtype)
    expected = model(IDS, attention_mask=MASK).last_hidden_state[MASK == 1].float()
    speed_up(model).train()
    found = model(IDS, attention_mask=MASK).last_hidden_state[MASK == 1].float()
    assert torch.allclose(found, expected, atol=tolerance)


def test_dropout_noise_has_the_size_of_torchs():
    """Mean and standard deviation over many copies of two sentences agree with nn.Dropout and
    torch's attention."""
    model = bert(initializer_range=0.3).train()

    @torch.no_grad()
    def statistics():
        ids, mask = IDS.repeat(600, 1), MASK.repeat(600, 1)
        z = model(ids, attention_mask=mask).last_hidden_state[:, 0].view(600, 2, -1)
        return z.mean(0), z.std(0)

    mean, std = statistics()
    speed_up(model)
    new_mean, new_std = statistics()
    assert (new_mean - mean).abs().max() < 6 * std.max() * (2 / 600) ** 0.5
    assert (new_std / std).mean().item() == pytest.approx(1, abs=0.03)


def test_other_architectures():
    torch.manual_seed(0)
    small = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1}
    for model_type in ("distilbert", "gpt2"):
        config = AutoConfig.for_model(model_type, **small, num_attention_heads=2)
        model = AutoModel.from_config(config)
        expected = model.eval()(IDS, attention_mask=MASK).last_hidden_state
        speed_up(model)
        assert torch.equal(model.eval()(IDS, attention_mask=MASK).last_hidden_state, expected)
        one, two = (model.train()(IDS, attention_mask=MASK).last_hidden_state for _ in range(2))
        assert not torch.allclose(one, two)


def test_the_encoder_uses_it_and_saves_a_plain_model(tmp_path):
    encoder = tiny_encoder(tmp_path / "model")
    assert any(isinstance(m, CheapDropout) for m in encoder.backbone.modules())
    encoder.save(tmp_path / "saved")
    written = (tmp_path / "saved" / "config.json").read_text()
    assert ATTENTION not in written


def gradients(folder, speedups, precision) -> tuple[float, torch.Tensor]:
    """Loss and gradient of a [CLS] forward pass in training, without dropout."""
    encoder = Encoder.load(folder, pooling="cls", dropout=0.0, speedups=speedups).train()
    assert speedups == any(isinstance(m, CheapDropout) for m in encoder.modules())
    ids = torch.randint(5, 40, (4, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(4, 7).long()
    mask[2, 4:] = 0
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = encoder(ids, mask).float().pow(2).sum()
    loss.backward()
    found = {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None}
    names = sorted(name for name in found if "pooler" not in name)
    return loss.item(), torch.cat([found[name].flatten() for name in names])


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-6), ("bf16", 0.03)])
def test_what_is_for_speed_changes_no_result(tmp_path, precision, tolerance):
    folder = tiny_bert(tmp_path)
    (fast, gradient), (slow, expected) = (
        gradients(folder, speedups, precision) for speedups in (True, False)
    )
    assert fast == pytest.approx(slow, rel=tolerance)
    atol = tolerance * float(expected.abs().max())
    assert torch.allclose(gradient, expected, atol=atol, rtol=tolerance)
