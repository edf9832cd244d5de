"""What is only true on a GPU: types, random numbers, graphs, waiting, memory."""

from itertools import pairwise

import pytest
import torch
from tiny import begin, same, tiny_bert, tiny_recipe, tiny_sentences, weights
from transformers import LlamaConfig, LlamaModel

from lib.encoder import Encoder
from lib.training import loop as train
from lib.training.forward import Forward, ProcessGroup
from lib.training.loop import make_optimizer
from lib.training.losses import Objective

pytestmark = pytest.mark.cuda
GPU = "cuda"
KINDS = {
    "SimCSE": {},
    "ConSERT": {"view1": "feature_cutoff", "rate1": 0.2, "view2": "shuffle"},
    "dropout view": {"view1": "dropout", "rate1": 0.2, "view2": "token_cutoff", "rate2": 0.2},
    "PCA jitter": {"representation": "jitter_pca"},
    "negatives": {"negative": "una", "every": 2, "radius": 5},
    "SimCLR's head": {"head": "bn_mlp:8:8", "loss": "nt_xent"},
}


def prepared(tmp_path, **changes):
    """A tiny encoder and the feed of a tiny text."""
    encoder, feed = begin(tmp_path, tiny_recipe(max_length=14, **changes), tiny_sentences(64), 1)
    return encoder.to(GPU), feed


def losses_of(tmp_path, steps=8, **options):
    """Losses of a short training on the GPU."""
    encoder, feed = prepared(tmp_path, **options.pop("changes", {}))
    result = train.fit(encoder, feed, max_steps=steps, device=GPU, **options)
    return [row["loss"] for row in result.history], encoder


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_repeats_and_goes_on_bit_for_bit(tmp_path, kind):
    class Stop(Exception):
        pass

    def dev(encoder):
        calls.append(1)
        if len(calls) == 3:
            raise Stop
        return float(len(calls))

    whole, calls = losses_of(tmp_path, changes=KINDS[kind]), []
    options = {"dev": dev, "eval_every": 2, "out": tmp_path / "cut", "changes": KINDS[kind]}
    with pytest.raises(Stop):
        losses_of(tmp_path, **options)
    resumed, encoder = losses_of(tmp_path, **options)
    assert resumed == whole[0] and same(weights(encoder), weights(whole[1]))


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 1e-2)])
@pytest.mark.parametrize("kind", ["SimCSE", "negatives", "SimCLR's head"])
def test_graphs_give_the_losses_of_plain_steps(tmp_path, kind, precision, tolerance):
    changes = {**KINDS[kind], "dropout": 0.0, "lr": 0.0}
    plain, _ = losses_of(tmp_path, changes=changes, precision=precision)
    graphs, _ = losses_of(tmp_path, changes=changes, precision=precision, compile=True)
    assert graphs == pytest.approx(plain, rel=tolerance, abs=tolerance * max(plain))


def test_graphs_draw_new_masks_in_every_step(tmp_path):
    encoder, feed = prepared(tmp_path, dropout=0.5, bucket=True)
    group = ProcessGroup(torch.device(GPU))
    with Forward(encoder.train(), feed.recipe, group, compiled=True) as forward:
        _, batch = next(feed.steps(0, 1, widths=forward.widths))
        drawn = []
        for step in range(6):
            z = forward(batch, step)
            Objective(feed.recipe)(z, step).backward()
            drawn.append(z["anchor"].detach().clone())
    assert all(not torch.equal(a, b) for a, b in pairwise(drawn))


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_waits_for_the_gpu(tmp_path, kind):
    encoder, feed = prepared(tmp_path, **KINDS[kind])
    group, recipe = ProcessGroup(torch.device(GPU)), feed.recipe
    optimizer, objective = make_optimizer(encoder.train(), recipe), Objective(recipe)
    with Forward(encoder, recipe, group, precision="bf16") as forward:
        for step, batch in feed.steps(0, 4):
            torch.cuda.set_sync_debug_mode("error" if step else "default")
            try:
                loss = objective(forward(batch, step), step)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            finally:
                torch.cuda.set_sync_debug_mode("default")


def test_types_under_bf16(tmp_path):
    encoder, feed = prepared(tmp_path)
    encoder.train()
    layer, seen = encoder.backbone.encoder.layer[0], {}

    def keep(name):
        return lambda module, inputs, output: seen.update({name: output.dtype})

    layer.attention.self.query.register_forward_hook(keep("product"))
    layer.output.LayerNorm.register_forward_hook(keep("normalisation"))
    batch = feed.batch(0).to(torch.device(GPU))
    with torch.autocast(GPU, torch.bfloat16):
        encoder(batch.ids, batch.mask)
    assert seen == {"product": torch.bfloat16, "normalisation": torch.float32}
    assert all(p.dtype == torch.float32 for p in encoder.parameters())


def test_encode_keeps_no_states_of_a_decoder(tmp_path):
    """The memory of one layer's activations, not of all layers' keys and values."""
    folder = tiny_bert(tmp_path / "bert")
    encoder = Encoder.load(folder, device=GPU)
    shape = {"hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4}
    peaks = []
    for layers in (2, 12):
        backbone = LlamaModel(LlamaConfig(vocab_size=99, num_hidden_layers=layers, **shape)).to(GPU)
        backbone.config.use_cache = False
        encoder.backbone = backbone.eval()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        encoder.encode(tiny_sentences(512), pooling="mean")
        peaks.append(torch.cuda.max_memory_allocated() - before)
    assert peaks[1] < 1.2 * peaks[0]
