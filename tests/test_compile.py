"""Compiled trainings: few shapes, one program each, the same numbers. Programs are not optimised
here (`aot_eager`), so that no C++ compiler is needed; a slow test has one made."""

import shutil
import threading
from functools import partial

import pytest
import torch
from tiny import begin, tiny_recipe, tiny_sentences
from torch._dynamo.testing import CompileCounterWithBackend

from lib.training.batches import prefetched
from lib.training.forward import compiles, padded_widths
from lib.training.loop import fit

SENTENCES = tiny_sentences(64)
PLAIN = {"dropout": 0.0, "batch_size": 8, "max_length": 14, "bucket": True}
KINDS = {
    "SimCSE": {},
    "mean": {"pooling": "mean", "head": "none"},
    "negatives": {"negative": "una", "every": 2, "radius": 5},
    "one encoding": {"positive": "identical"},
    "views": {"view1": "token_cutoff", "rate1": 0.2, "view2": "shuffle"},
}


@pytest.fixture
def programs(monkeypatch):
    """Counts the programs that are made, without optimising them."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter))
    yield counter
    torch._dynamo.reset()


def run(tmp_path, *, compile: bool, **changes):
    """Losses of six steps, and the shapes of their batches."""
    recipe = tiny_recipe(**{**PLAIN, **changes})
    encoder, feed = begin(tmp_path, recipe, SENTENCES)
    result = fit(encoder, feed, max_steps=6, device="cpu", precision="fp32", compile=compile)
    widths = padded_widths(14) if compile else ()
    shapes = {tuple(batch.ids.shape) for _, batch in feed.steps(0, 6, widths=widths)}
    return [row["loss"] for row in result.history], shapes


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_steps_have_the_losses_of_plain_ones(tmp_path, programs, monkeypatch, kind):
    compiled, shapes = run(tmp_path, compile=True, **KINDS[kind])
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    of_the_same_width, _ = run(tmp_path, compile=True, **KINDS[kind])
    plain, _ = run(tmp_path, compile=False, **KINDS[kind])
    assert compiled == pytest.approx(of_the_same_width, rel=1e-4)
    if kind == "views":  # drawn for a batch of another width; the program is cut at them
        assert compiled != pytest.approx(plain, rel=1e-4)
        return
    assert compiled == pytest.approx(plain, rel=1e-4)
    assert programs.frame_count == len(shapes) <= 6


@pytest.mark.parametrize("width", [1, 8, 9, 14])
def test_padding_to_a_width_adds_nothing_but_padding(tmp_path, width):
    _, feed = begin(tmp_path, tiny_recipe(**PLAIN), SENTENCES)
    padded = feed.steps(0, 6, widths=(width, 20))
    for (_, narrow), (_, wide) in zip(feed.steps(0, 6), padded, strict=True):
        t = narrow.ids.shape[1]
        assert wide.ids.shape[1] == (width if t <= width else 20)
        assert torch.equal(wide.ids[:, :t], narrow.ids)
        assert torch.equal(wide.mask[:, :t], narrow.mask) and not wide.mask[:, t:].any()
        assert wide.sizes == narrow.sizes


def test_compilation_is_for_long_trainings_on_a_gpu():
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    simcse, views = tiny_recipe(), tiny_recipe(view1="shuffle")
    chunks = tiny_recipe(chunk_size=4)
    assert compiles(None, gpu, 10_000, simcse)
    assert not compiles(None, gpu, 300, simcse) and not compiles(None, cpu, 10_000, simcse)
    assert not compiles(None, gpu, 10_000, views) and not compiles(None, gpu, 10_000, chunks)
    assert not compiles(None, gpu, 10_000, simcse, processes=2)
    assert compiles(True, cpu, 1, views) and not compiles(False, gpu, 10_000, simcse)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_an_optimised_program_has_the_losses_of_plain_steps(tmp_path):
    compiled, _ = run(tmp_path, compile=True)
    plain, _ = run(tmp_path, compile=False)
    assert compiled == pytest.approx(plain, rel=1e-4)


# --- batches made ahead ---------------------------------------------------------------------------


def test_items_come_in_their_order_and_some_are_made_ahead():
    """And an error is raised where its item is due."""
    release = threading.Event()

    def items():
        for i in range(10):
            if i == 3:
                release.set()
            yield i
        raise ValueError("the eleventh")

    before = threading.active_count()
    found = prefetched(items(), depth=4)
    assert next(found) == 0
    assert release.wait(10)
    assert [next(found) for _ in range(9)] == list(range(1, 10))
    with pytest.raises(ValueError, match="the eleventh"):
        next(found)
    assert threading.active_count() == before
