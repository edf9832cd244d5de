"""Two processes on the CPU against one process with the whole batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lib.training.distributed import Group

HEADS = ["bn_mlp", "simclr:16:8", "simsiam:16:8", "linear", "none"]
SCRIPT = """
import json, os, sys
from pathlib import Path
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from tiny import tiny_recipe, tiny_sentences
from lib.training import losses
from lib.training.distributed import Group
from lib.encoder import Encoder
from tiny import encode_views, fit
from lib.training.positives import Text, make_views

torch.set_num_threads(1)
base, out = Path(sys.argv[1]), Path(sys.argv[2])
rank = int(os.environ.get("RANK", "0"))
sentences = tiny_sentences(48)
out.mkdir(parents=True, exist_ok=True)

def load(recipe):
    view = {"head_per_view": recipe.head_per_view}
    return Encoder.load(base, pooling="cls", head=recipe.head, eval_pooling="mean", dropout=0.0, **view)

def gradients(name, objective, **changes):
    recipe = tiny_recipe(dropout=0.0, **changes)
    encoder = load(recipe).train()
    views = make_views(Text(sentences), recipe, encoder.tokenizer)
    group = Group(torch.device("cpu"))
    model = group.prepare(encoder)
    z1, z2 = group.gather(encode_views(model, views, group.share(torch.arange(12).numpy()), group.device))
    assert len(z1) == len(z2) == 12, z1.shape
    loss = objective(z1, z2)
    group.backward(loss)
    found = {f"{name}.{k}": p.grad.clone() for k, p in encoder.named_parameters() if p.grad is not None}
    found |= {f"{name}.{k}": b.float() for k, b in encoder.head.named_buffers()}
    return {**found, f"{name}.loss": loss.detach()[None], f"{name}.size": torch.tensor([group.size])}

text = {"positive": "delete", "positive_rate": 0.4}
tensors = gradients("info_nce", lambda a, b: losses.info_nce(a, b, 0.3), **text)
tensors |= gradients("nt_xent", lambda a, b: losses.nt_xent(a, b, 0.3), **text)
tensors |= gradients("identical", lambda a, b: losses.info_nce(a, b, 0.3), positive="identical")
for head in HEADS:
    loss = losses.simsiam_of_both if head.startswith("simsiam") else lambda a, b: losses.info_nce(a, b, 0.3)
    both = {"loss": "simsiam"} if head.startswith("simsiam") else {}
    tensors |= gradients(head, loss, head=head, **both, **text)
    if head == "simclr:16:8":
        tensors |= gradients("per view", loss, head=head, head_per_view=True, **text)

recipe = tiny_recipe(dropout=0.0, temperature=0.3, grad_clip=0.5, patience=2, lr=1e-4, **text)
encoder = load(recipe)
scores = iter([3.0, 2.0, 1.0, 0.0])
calls = []
result = fit(encoder, make_views(Text(sentences), recipe, encoder.tokenizer), recipe, max_steps=20, eval_every=3,
             dev=lambda e: calls.append(0) or next(scores), out=out / "run", device="cpu", precision="fp32")
tensors |= {f"trained.{k}": v for k, v in encoder.state_dict().items()}
save_file({k: v.contiguous() for k, v in tensors.items()}, out / f"{rank}.safetensors")
(out / f"{rank}.json").write_text(json.dumps([result.history, result.steps, result.stopped_early, len(calls)]))

def refused(**changes):
    recipe = tiny_recipe(**changes)
    try:
        views = make_views(Text(sentences[:47]), recipe, encoder.tokenizer)
        fit(load(recipe), views, recipe, max_steps=1, device="cpu")
    except ValueError as error:
        return str(error)

notes = {"batch": refused(batch_size=7), "last": refused(batch_size=6, drop_last=False), "seed": torch.initial_seed()}
if dist.is_initialized():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    notes["hours"] = backend.options._timeout.total_seconds() / 3600
(out / f"notes-{rank}.json").write_text(json.dumps(notes))
if dist.is_initialized():
    dist.destroy_process_group()
"""

RESUMED = """
import os, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from tiny import tiny_recipe, tiny_sentences
from lib.encoder import Encoder
from tiny import fit
from lib.training.positives import Text, make_views

torch.set_num_threads(1)
base, out, killed_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
recipe = tiny_recipe(dropout=0.1, lr=1e-3)
encoder = Encoder.load(base, pooling="cls", head=recipe.head, eval_pooling="mean", dropout=recipe.dropout)
scored = []

def dev(encoder):
    scored.append(1)
    if len(scored) == killed_at:
        os.kill(os.getpid(), 9)
    return float(len(scored))

fit(encoder, make_views(Text(tiny_sentences(48)), recipe, encoder.tokenizer), recipe, max_steps=8, eval_every=2,
    dev=dev, out=out, device="cpu", precision="fp32")
weights = {k: v.contiguous() for k, v in encoder.state_dict().items()}
save_file(weights, out / f"weights-{os.environ['RANK']}.safetensors")
"""
TWO_PROCESSES = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with an encoder in `bert`."""
    from tiny import tiny_bert

    folder = tmp_path_factory.mktemp("distributed")
    tiny_bert(folder / "bert")
    return folder


def launched(
    text: str, base: Path, launcher: list[str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A script run on `base`'s encoder, with this folder and the repository on its path."""
    here = Path(__file__).parent
    script = base / "script.py"
    script.write_text(
        f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\nHEADS = {HEADS}\n{text}"
    )
    environment = {
        k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    environment.update(
        OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", ACCELERATE_MIXED_PRECISION="bf16"
    )
    command = [sys.executable, *launcher, str(script), str(base / "bert"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def outcome(base):
    """Folders written by one process and by two."""
    for name, launcher in (("one", []), ("two", TWO_PROCESSES)):
        done = launched(SCRIPT, base, launcher, str(base / name))
        assert done.returncode == 0, done.stderr[-3000:]
    return base


def tensors(folder: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    return load_file(folder / f"{rank}.safetensors")


@pytest.mark.parametrize("name", ["info_nce", "nt_xent", "identical", "per view", *HEADS])
def test_loss_and_gradients_are_those_of_the_whole_batch(outcome, name):
    """Also with batch norm over the batch, and whatever precision accelerate is set to."""
    one = tensors(outcome / "one")
    for rank in (0, 1):
        two = tensors(outcome / "two", rank)
        assert two[f"{name}.size"].item() == 2 and one[f"{name}.size"].item() == 1
        assert torch.allclose(one[f"{name}.loss"], two[f"{name}.loss"], atol=1e-6)
        compared = [
            k for k in one if k.startswith(f"{name}.") and not k.endswith((".loss", ".size"))
        ]
        assert len(compared) > 30 and max(float(one[k].abs().max()) for k in compared) > 1e-3
        for key in compared:
            assert torch.allclose(one[key], two[key], atol=2e-6, rtol=1e-4), key


def test_training_gives_the_same_weights_and_history(outcome):
    one, two = (json.loads((outcome / n / "0.json").read_text()) for n in ("one", "two"))
    assert one[1:] == two[1:] == [9, True, 3]
    assert [h["step"] for h in two[0]] == list(range(1, 10))
    for a, b in zip(one[0], two[0], strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-4)
        assert (
            a["in_batch_accuracy"] == pytest.approx(b["in_batch_accuracy"]) and a["lr"] == b["lr"]
        )
    single = tensors(outcome / "one")
    both = [tensors(outcome / "two", rank) for rank in (0, 1)]
    for key in (k for k in single if k.startswith("trained.")):
        assert torch.equal(both[0][key], both[1][key]), key
        if not key.endswith("key.bias"):
            assert torch.allclose(single[key], both[0][key], atol=1e-4), key


def test_only_the_first_process_scores_and_writes(outcome):
    second = json.loads((outcome / "two" / "1.json").read_text())
    assert second[1:] == [9, True, 0] and not any("dev_score" in h for h in second[0])
    assert sorted(p.name for p in (outcome / "two" / "run").iterdir()) == [
        "best",
        "checkpoint.safetensors",
        "last",
    ]


def notes(folder: Path, rank: int = 0) -> dict:
    return json.loads((folder / f"notes-{rank}.json").read_text())


def test_batches_that_do_not_divide_are_refused_before_the_first_step(outcome):
    one, *both = notes(outcome / "one"), notes(outcome / "two"), notes(outcome / "two", 1)
    assert one["batch"] is None and one["last"] is None
    for found in both:
        assert found["batch"] == "a batch of 7 does not divide among 2 processes"
        assert found["last"] == "a batch of 5 does not divide among 2 processes"


def test_processes_wait_for_a_long_evaluation_of_the_first(outcome):
    assert min(notes(outcome / "two", rank)["hours"] for rank in (0, 1)) >= 24


def test_each_process_has_a_seed_of_its_own(outcome):
    one, first, second = notes(outcome / "one"), notes(outcome / "two"), notes(outcome / "two", 1)
    assert one["seed"] == first["seed"] == 42
    assert abs(second["seed"] - 42) > 1000


@pytest.mark.slow
def test_two_processes_resume_bit_for_bit_with_their_dropout(base):
    """The first is killed while it scores; both go on with the masks that they would have drawn."""
    found = {}
    for name, kills in (("whole", [0]), ("resumed", [3, 0])):
        for killed_at in kills:
            done = launched(RESUMED, base, TWO_PROCESSES, str(base / name), str(killed_at))
            assert (done.returncode != 0) == bool(killed_at), done.stderr[-3000:]
        found[name] = [load_file(base / name / f"weights-{rank}.safetensors") for rank in (0, 1)]
    for rank in (0, 1):
        whole, resumed = found["whole"][rank], found["resumed"][rank]
        assert [k for k in whole if not torch.equal(whole[k], resumed[k])] == []


def test_alone_everything_is_the_identity(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    group = Group(torch.device("cpu"))
    model, z, rows = torch.nn.Linear(2, 2), torch.ones(3, 2), np.arange(3)
    assert (
        group.size == 1
        and group.rank == 0
        and group.is_main
        and group.device == torch.device("cpu")
    )
    assert group.prepare(model) is model and group.share(rows).tolist() == [0, 1, 2]
    assert group.gather([z])[0] is z
    group.wait()


def test_a_batch_that_does_not_divide_is_an_error(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    group = Group(torch.device("cpu"))
    group.size = 2
    assert group.share(np.arange(4)).tolist() == [0, 1]
    group.rank = 1
    assert group.share(np.arange(4)).tolist() == [2, 3]
    with pytest.raises(ValueError, match="a batch of 5 does not divide among 2 processes"):
        group.share(np.arange(5))


@pytest.mark.slow
def test_accelerate_launches_a_grid_in_two_processes(tmp_path):
    text = (
        "source: s\nnotebook: 04_una\nprofile: mini\nmetric: mini_test_spearman_last\nseeds: [3]\n"
    )
    text += "cells: [{row: a, set: {method: una, max_steps: 2, batch_size: 8}}]\n"
    (tmp_path / "tiny.yaml").write_text(text)
    environment = {
        k: v
        for k, v in os.environ.items()
        if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "CSE_DATA")
    }
    environment.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    accelerate = [
        str(Path(sys.executable).with_name("accelerate")),
        "launch",
        "--cpu",
        "--num_processes",
        "2",
    ]
    accelerate += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    metrics = {}
    for name, launcher in (("one", [sys.executable]), ("two", accelerate)):
        command = [*launcher, "-m", "lib", "grid", str(tmp_path / "tiny.yaml"), "--device", "cpu"]
        outputs = {"CSE_OUTPUTS": str(tmp_path / name)}
        here = Path(__file__).parent.parent
        done = subprocess.run(
            command,
            env=environment | outputs,
            capture_output=True,
            text=True,
            cwd=here,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("a, seed 3: mini_test_spearman_last") == 1
        (file,) = (tmp_path / name).glob("04_una/*/metrics.json")
        metrics[name] = json.loads(file.read_text())
    assert metrics["two"]["steps"] == metrics["one"]["steps"] == 2
    assert metrics["two"]["mini_test_spearman_last"] == pytest.approx(
        metrics["one"]["mini_test_spearman_last"], abs=2
    )
    assert metrics["two"]["loss_last"] == pytest.approx(metrics["one"]["loss_last"], abs=0.2)
