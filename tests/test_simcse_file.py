"""`simcse.py` trains as `lib` does, number by number, and refuses bad input in one sentence."""

import ast
import math
import re
import subprocess
import sys
from functools import partial
from itertools import islice

import pytest
import torch
from scipy.stats import spearmanr

import simcse
from lib import data, paths
from lib.encoder import Encoder
from lib.evaluate import pairs_spearman
from lib.training import losses
from lib.training.batches import Feed
from lib.training.loop import fit
from lib.training.recipe import recipe

STEPS = 4
FILE = paths.ROOT / "simcse.py"


def options(tmp_path, *more):
    """The defaults, but for few steps on small batches."""
    few = ["--batch-size", "32", "--steps", str(STEPS), "--out", str(tmp_path / "out")]
    return simcse.parse([*few, *more])


def test_the_first_losses_and_the_score_before_training_are_those_of_lib(tmp_path, monkeypatch):
    settings = recipe("mini_simcse", bucket=False, batch_size=32)
    values = {
        "--lr": settings.lr,
        "--temperature": settings.temperature,
        "--dropout": settings.dropout,
        "--max-length": settings.max_length,
    }
    chosen = options(tmp_path, *(str(part) for pair in values.items() for part in pair))
    theirs = Encoder.load(
        paths.MINI_BERT,
        pooling=settings.pooling,
        head=settings.head,
        eval_pooling=settings.eval_pooling,
        dropout=settings.dropout,
        seed=chosen.seed,
        speedups=(),  # whose dropout draws other numbers
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


def test_an_epoch_has_every_full_batch_and_an_order_of_its_own():
    taken = list(islice(simcse.batches(list("abcdefgh"), 4, seed=0), 4))
    first, second = taken[0] + taken[1], taken[2] + taken[3]
    assert sorted(first) == sorted(second) == list("abcdefgh") and first != second


def test_it_is_one_short_file_that_needs_torch_and_transformers_alone():
    text = FILE.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names} | {n.module for n in froms}
    others = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert others == {"torch", "transformers"}


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


def test_where_no_step_scores_better_the_first_weights_stay(tmp_path):
    chosen = options(tmp_path, "--steps", "2", "--eval-every", "1", "--lr", "0.05")
    encoder, pairs = simcse.Encoder(chosen), simcse.read_pairs(chosen.dev)[:60]
    before = simcse.evaluate(encoder, pairs)
    simcse.train(encoder, simcse.read_lines(chosen.data)[:400], pairs)
    assert simcse.evaluate(encoder, pairs) == before


def test_the_weights_of_the_best_step_come_back(tmp_path, monkeypatch):
    chosen = options(tmp_path, "--batch-size", "8", "--steps", "3", "--eval-every", "1")
    encoder, scores, seen = simcse.Encoder(chosen), iter([0.0, 2.0, 1.0, 0.5]), []

    def evaluate(encoder, pairs):
        seen.append(encoder.head[0].weight.detach().clone())
        return next(scores)

    monkeypatch.setattr(simcse, "evaluate", evaluate)
    simcse.train(encoder, simcse.read_lines(chosen.data), [])
    assert torch.equal(encoder.head[0].weight, seen[1]) and not torch.equal(seen[1], seen[3])


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
        (["--dev", str(FILE)], "a line is not two sentences and a score"),
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


@pytest.fixture(scope="module")
def page():
    """The three programs of the book's page, each as what it defines, by its first word."""
    text = (paths.ROOT / "book/one_file.md").read_text(encoding="utf-8")
    programs = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        names = {"__name__": "page"}
        exec(compile(block, "book/one_file.md", "exec"), names)
        programs[block[3:].split()[0]] = names
    return programs


class Equal(torch.nn.Module):
    """An encoder for which all sentences are one and the same."""

    def __init__(self, options):
        super().__init__()
        self.options, self.backbone = options, torch.nn.Module()
        self.backbone.embeddings = torch.nn.Identity()

    def forward(self, sentences):
        return torch.ones(len(sentences), 2)


def method(page, name, sentences):
    """The loss of a program, ready for a text."""
    return page["UNA"]["Una"](sentences) if name == "UNA" else page[name][f"{name.lower()}_loss"]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("ConSERT", math.log(15), math.log(15)),
        ("UNA", math.log(16), math.log(8)),
        ("SDA", math.log(8 + math.exp(-10)), math.log(8 + math.exp(-10))),
    ],
)
def test_a_change_to_it_trains_and_costs_what_guessing_costs(
    page, name, first, second, tmp_path, monkeypatch
):
    monkeypatch.setattr(simcse, "evaluate", lambda encoder, pairs: 0.0)
    chosen = options(tmp_path, "--batch-size", "8", "--steps", "2")
    sentences = simcse.read_lines(chosen.data)
    loss = method(page, name, sentences)
    equal = [loss(Equal(chosen), sentences[:8]).item() for _ in range(2)]
    assert equal == pytest.approx([first, second], abs=1e-5)
    trained = simcse.run(chosen, method(page, name, sentences))
    assert len(trained) == 2
    assert all(0 < value < limit + 3 for value, limit in zip(trained, equal, strict=True))


def test_its_losses_are_those_of_lib(page):
    z1, z2, z3 = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0))
    ours = [
        simcse.info_nce(z1, z2, 0.05),
        simcse.info_nce(z1, torch.cat([z2, z3]), 0.05),
        page["ConSERT"]["nt_xent"](z1, z2, 0.1),
        page["SDA"]["margin_info_nce"](z1, z2, z3, 0.05, 0.3),
    ]
    theirs = [
        losses.info_nce(z1, z2, 0.05),
        losses.info_nce(z1, z2, 0.05, negatives=z3),
        losses.nt_xent(z1, z2, 0.1),
        losses.margin_info_nce(z1, z2, z3, 0.05, 0.3),
    ]
    torch.testing.assert_close(torch.stack(ours), torch.stack(theirs))


def test_cutoffs_take_away_exactly_their_share(page):
    torch.manual_seed(0)
    mask = torch.arange(9) < torch.tensor([[9], [6], [2]])
    tokens = page["ConSERT"]["token_cutoff"](torch.ones(3, 9, 10), mask, rate=0.4) == 0
    gone = tokens.all(2)
    assert torch.equal(gone, tokens.any(2)) and not (gone & ~mask).any()
    assert gone.sum(1).tolist() == [3, 2, 0]
    features = page["ConSERT"]["feature_cutoff"](torch.ones(3, 9, 10), mask, rate=0.25) == 0
    assert torch.equal(features.all(1), features.any(1))
    assert features.all(1).sum(1).tolist() == [2, 2, 2]


@pytest.mark.parametrize(("beta", "others"), [(0.0, "none"), (1e9, "all")])
def test_una_replaces_the_heaviest_word_and_as_many_others_as_beta_says(page, beta, others):
    sentences = data.corpus("mini")[:500]
    una = page["UNA"]["Una"](sentences, beta=beta)
    for sentence in sentences:
        words, new = page["UNA"]["words_of"](sentence), una.negative(sentence).split()
        changed = [word != other for word, other in zip(words, new, strict=True)]
        weights = una.weights(words)
        if others == "none":
            assert sum(changed) == 1 and weights[words[changed.index(True)]] == max(
                weights.values()
            )
        else:  # but the lightest, of which no word lies above
            assert changed == [weights[word] > min(weights.values()) for word in words]


@pytest.mark.parametrize(
    ("sentence", "positive", "negative"),
    [
        ("The river is the border.", '"The river" is the border.', "The river is not the border."),
        ("He can't swim.", "He can't swim!", "It is not true that he can't swim."),
    ],
)
def test_sda_rewrites_by_rule(page, sentence, positive, negative):
    doc = page["SDA"]["parse"](sentence)
    assert page["SDA"]["punctuated"](doc, choose=lambda both: both[0]) == positive
    assert page["SDA"]["negated"](doc) == negative
