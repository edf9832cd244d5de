"""Two processes on the CPU against one process with the whole batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import tiny_bert

TEXT = {"positive": "delete", "positive_rate": 0.4}
OBJECTIVES = {
    "info_nce": TEXT,
    "identical": {"positive": "identical"},
    "per view": {"head": "simclr:16:8", "head_per_view": True, **TEXT},
    "bn_mlp": {"head": "bn_mlp", "loss": "nt_xent", **TEXT},
    "simsiam": {"head": "simsiam:16:8", "loss": "simsiam", **TEXT},
    "none": {"head": "none", **TEXT},
}
START = """
import json, os, sys
from pathlib import Path
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from tiny import begin, tiny_encoder, tiny_recipe, tiny_sentences, trained
from lib.training.batches import Feed
from lib.training.forward import ProcessGroup
from lib.training.forward import Forward
from lib.training.losses import Objective

torch.set_num_threads(1)
base, out, rank = Path(sys.argv[1]), Path(sys.argv[2]), int(os.environ.get("RANK", "0"))
sentences = tiny_sentences(48)
out.mkdir(parents=True, exist_ok=True)

def save(tensors, name):
    save_file({k: v.contiguous() for k, v in tensors.items()}, out / f"{name}-{rank}.safetensors")
"""
SCRIPT = """
def gradients(name, changes):
    recipe = tiny_recipe(dropout=0.0, temperature=0.3, batch_size=12, **changes)
    options = {"head": recipe.head, "head_per_view": recipe.head_per_view}
    encoder = tiny_encoder(base, pooling="cls", dropout=0.0, **options)
    feed, group = Feed.of(sentences, recipe, encoder.tokenizer), ProcessGroup(torch.device("cpu"))
    with Forward(encoder.train(), recipe, group) as forward:
        z = forward(feed.batch(0, group.share), 0)
        assert all(len(rows) == 12 for rows in z.values())
        loss = Objective(recipe)(z)
        loss.backward()
    found = {k: p.grad for k, p in encoder.named_parameters() if p.grad is not None}
    found |= {k: b.float() for k, b in encoder.head.named_buffers()}
    found |= {"loss": loss.detach()[None], "size": torch.tensor([group.size])}
    save(found, name)

for name, changes in OBJECTIVES.items():
    gradients(name, changes)

def refused(size, **changes):
    try:
        trained(base, tiny_recipe(batch_size=size, **changes), sentences[:47], max_steps=1)
    except ValueError as error:
        return str(error)

still = {"dropout": 0.0, "temperature": 0.3, **OBJECTIVES["info_nce"]}
recipe = tiny_recipe(grad_clip=0.5, patience=2, lr=1e-4, **still)
scores, calls = iter([3.0, 2.0, 1.0, 0.0]), []
encoder, result = trained(base, recipe, sentences, max_steps=20, eval_every=3, out=out / "run",
                          dev=lambda e: calls.append(0) or next(scores))
save(encoder.state_dict(), "trained")
notes = {
    "history": result.history,
    "end": [result.steps, result.stopped_early, len(calls)],
    "seed": torch.initial_seed(),
    "batch": refused(7),
    "last": refused(6, drop_last=False),
}
if dist.is_initialized():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    notes["hours"] = backend.options._timeout.total_seconds() / 3600
(out / f"notes-{rank}.json").write_text(json.dumps(notes))
if dist.is_initialized():
    dist.destroy_process_group()
"""
RESUMED = """
killed_at, scored = int(sys.argv[3]), []

def dev(encoder):
    scored.append(1)
    if len(scored) == killed_at:
        os.kill(os.getpid(), 9)
    return float(len(scored))

options = {"max_steps": 8, "eval_every": 2, "dev": dev, "out": out}
encoder, _ = trained(base, tiny_recipe(dropout=0.1), sentences, **options)
save(encoder.state_dict(), "weights")
"""
TWO_PROCESSES = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
OF_A_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
ALONE = {name: value for name, value in os.environ.items() if name not in OF_A_LAUNCHER}
ALONE |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with an encoder in `bert`."""
    folder = tmp_path_factory.mktemp("distributed")
    tiny_bert(folder / "bert")
    return folder


def launched(text: str, base: Path, launcher: list[str], *arguments: object):
    """A script run on `base`'s encoder, with this folder and the repository on its path."""
    here, script = Path(__file__).parent, base / "script.py"
    path = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\n"
    script.write_text(f"{path}{START}\nOBJECTIVES = {OBJECTIVES}\n{text}")
    command = [sys.executable, *launcher, script, base / "bert", *arguments]
    environment = ALONE | {"ACCELERATE_MIXED_PRECISION": "bf16"}
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def outcome(base):
    """Folders written by one process and by two."""
    for name, launcher in (("one", []), ("two", TWO_PROCESSES)):
        done = launched(SCRIPT, base, launcher, base / name)
        assert done.returncode == 0, done.stderr[-3000:]
    return base


def notes(folder: Path, rank: int = 0) -> dict:
    return json.loads((folder / f"notes-{rank}.json").read_text())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss_and_gradients_are_those_of_the_whole_batch(outcome, name):
    """Also with batch norm over the batch, and whatever precision accelerate is set to."""
    one = load_file(outcome / "one" / f"{name}-0.safetensors")
    assert one.pop("size").item() == 1 and len(one) > 30
    assert max(float(x.abs().max()) for x in one.values()) > 1e-3
    for rank in (0, 1):
        two = load_file(outcome / "two" / f"{name}-{rank}.safetensors")
        assert two.pop("size").item() == 2 and two.keys() == one.keys()
        for key, expected in one.items():
            assert torch.allclose(expected, two[key], atol=1e-5, rtol=1e-4), key


def test_training_gives_the_same_weights_and_history(outcome):
    one, two = notes(outcome / "one"), notes(outcome / "two")
    assert one["end"] == two["end"] == [9, True, 3]
    for a, b in zip(one["history"], two["history"], strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-4) and a["lr"] == b["lr"]
        assert a["in_batch_accuracy"] == pytest.approx(b["in_batch_accuracy"])
    places = (("one", 0), ("two", 0), ("two", 1))
    single, first, second = (
        load_file(outcome / name / f"trained-{rank}.safetensors") for name, rank in places
    )
    for key, expected in single.items():
        assert torch.equal(first[key], second[key]), key
        if not key.endswith("key.bias"):
            assert torch.allclose(expected, first[key], atol=1e-4), key


def test_only_the_first_process_scores_and_writes(outcome):
    second = notes(outcome / "two", 1)
    assert second["end"] == [9, True, 0]
    assert not any("dev_score" in row for row in second["history"])
    written = {p.name for p in (outcome / "two" / "run").iterdir()}
    assert written == {"best", "checkpoint.pt", "last"}


def test_what_processes_know_of_each_other(outcome):
    """Batches must divide among them, each has a seed, and they wait for long dev scores."""
    one, first, second = notes(outcome / "one"), notes(outcome / "two"), notes(outcome / "two", 1)
    assert one["batch"] is None and one["last"] is None
    for found in (first, second):
        assert found["batch"] == "a batch of 7 does not divide among 2 processes"
        assert found["last"] == "a batch of 5 does not divide among 2 processes"
        assert found["hours"] >= 24
    assert one["seed"] == first["seed"] == 42 and abs(second["seed"] - 42) > 1000


@pytest.mark.slow
def test_two_processes_resume_bit_for_bit_with_their_dropout(base):
    """The first is killed while it scores; both go on with the masks that they would have drawn."""
    for name, kills in (("whole", [0]), ("resumed", [3, 0])):
        for killed_at in kills:
            done = launched(RESUMED, base, TWO_PROCESSES, base / name, killed_at)
            assert (done.returncode != 0) == bool(killed_at), done.stderr[-3000:]
    for rank in (0, 1):
        whole, resumed = (
            load_file(base / name / f"weights-{rank}.safetensors") for name in ("whole", "resumed")
        )
        assert [k for k in whole if not torch.equal(whole[k], resumed[k])] == []


@pytest.mark.slow
def test_accelerate_launches_a_grid_in_two_processes(tmp_path):
    text = "source: s\nnotebook: 04_una\nprofile: mini\nmetric: mini_test_spearman_last\n"
    text += "seeds: [3]\n"
    text += "cells: [{row: a, set: {method: una, max_steps: 2, batch_size: 8}}]\n"
    (tmp_path / "tiny.yaml").write_text(text)
    accelerate = f"{Path(sys.executable).with_name('accelerate')} launch --cpu --num_processes 2"
    accelerate += " --num_machines 1 --mixed_precision no --dynamo_backend no"
    metrics = {}
    for name, launcher in (("one", [sys.executable]), ("two", accelerate.split())):
        command = [*launcher, "-m", "lib", "grid", str(tmp_path / "tiny.yaml"), "--device", "cpu"]
        environment = {k: v for k, v in ALONE.items() if k != "CSE_DATA"}
        environment["CSE_OUTPUTS"] = str(tmp_path / name)
        here = Path(__file__).parent.parent
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=here, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("a, seed 3: mini_test_spearman_last") == 1
        (file,) = (tmp_path / name).glob("04_una/*/metrics.json")
        metrics[name] = json.loads(file.read_text())
    assert metrics["two"]["steps"] == metrics["one"]["steps"] == 2
    for metric, distance in (("mini_test_spearman_last", 2), ("loss_last", 0.2)):
        assert metrics["two"][metric] == pytest.approx(metrics["one"][metric], abs=distance)
