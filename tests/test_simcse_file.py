"""`simcse.py` trains as `lib` does, number by number, and refuses bad input in one sentence."""

import ast
import subprocess
import sys
from functools import partial

import pytest
import torch
from scipy.stats import spearmanr

import simcse
from lib import data, paths
from lib.batches import Feed
from lib.encoder import Encoder
from lib.evaluate import pairs_spearman
from lib.recipes import recipe
from lib.train import fit

STEPS = 4
FILE = paths.ROOT / "simcse.py"


def options(tmp_path, *more):
    """The defaults, but for few steps on small batches."""
    few = ["--batch-size", "32", "--steps", str(STEPS), "--out", str(tmp_path / "out")]
    return simcse.parse([*few, *more])


def test_the_first_losses_and_the_score_before_training_are_those_of_lib(tmp_path, monkeypatch):
    chosen = options(tmp_path)
    settings = recipe("mini_simcse", bucket=False, batch_size=32)
    theirs = Encoder.load(
        paths.MINI_BERT, "cls", "tanh", "mean", dropout=0.2, seed=chosen.seed, speedups=()
    )
    feed = Feed.of(data.corpus("mini"), settings, theirs.tokenizer, chosen.seed)
    order = [row for rows in feed.order.epoch(0) for row in rows.tolist()]
    monkeypatch.setattr(simcse, "shuffled", lambda n, seed, epoch: order)

    pairs, encode = simcse.read_pairs(chosen.dev), partial(theirs.encode, precision="fp32")
    ours = simcse.Encoder(chosen)
    score = pairs_spearman(encode, data.mini_pairs("dev"))
    assert simcse.evaluate(ours, pairs) == pytest.approx(score, abs=1e-4)
    losses = simcse.train(ours, simcse.read_lines(chosen.data), pairs[:100])
    result = fit(theirs, feed, max_steps=STEPS, device="cpu", precision="fp32")
    assert losses == pytest.approx([row["loss"] for row in result.history], abs=1e-6)


def test_it_is_one_short_file_that_needs_torch_and_transformers_alone():
    text = FILE.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names} | {n.module for n in froms}
    others = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert others == {"torch", "transformers"}
    assert len(text.splitlines()) <= 250


def test_what_it_saves_is_the_encoder_that_it_trained(tmp_path):
    dev = tmp_path / "dev.tsv"  # in the columns of the STS Benchmark, which has no header
    rows = simcse.read_pairs(options(tmp_path).dev)[:50]
    dev.write_text("".join(f"g\tf\ty\t1\t{score}\t{a}\t{b}\n" for a, b, score in rows))
    assert simcse.read_pairs(dev) == rows
    simcse.run(options(tmp_path, "--steps", "2", "--dev", str(dev)))
    saved = simcse.Encoder(options(tmp_path, "--model", str(tmp_path / "out")))
    other = Encoder.load(tmp_path / "out", pooling="mean").encode(
        ["A dog barks."], precision="fp32"
    )
    torch.testing.assert_close(simcse.embed(saved, ["A dog barks."]), torch.tensor(other))


def test_spearman_gives_equal_values_equal_ranks():
    torch.manual_seed(0)
    x, y = torch.randint(5, (50,)), torch.rand(50)
    assert simcse.spearman(x, y) == pytest.approx(100 * spearmanr(x, y).statistic)
    assert simcse.ranks(torch.tensor([0.3, 0.1, 0.3])).tolist() == [2.5, 1.0, 2.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere.txt"], "nowhere.txt is missing"),
        (["--data", str(FILE), "--batch-size", "999"], "sentences, --batch-size is 999"),
        (["--batch-size", "1"], "a batch needs at least two"),
        (["--dev", str(FILE)], "a line is not two sentences and a score"),
        (["--data", str(paths.MINI_BERT / "model.safetensors")], "not a text file in UTF-8"),
        (["--model", "nowhere"], "nowhere cannot be loaded"),
        (["--dropout", "2"], "dropout"),
        (["--eval-every", "0"], "--eval-every at least 1"),
        (["--temperature", "0"], "lower --lr or raise --temperature"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, message, tmp_path, monkeypatch):
    monkeypatch.setattr(simcse, "evaluate", lambda encoder, pairs: 0.0)  # which takes seconds
    with pytest.raises(ValueError, match=message):
        simcse.run(options(tmp_path, "--steps", "1", *arguments))


def test_an_error_is_one_line_on_the_command_line():
    command = [sys.executable, str(FILE), "--dev", "nowhere.tsv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "simcse.py: nowhere.tsv is missing: give the path of a text file\n"
