"""The benchmark scripts run, do the same work on both sides and write their tables. No timing is
asserted.

The scripts themselves are started by `make test-slow`; what they compare with, and how they count,
by `make test`.
"""

import argparse
import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy import stats
from tiny import tiny_sentences, tiny_tokenizer
from transformers import BertConfig

from lib import data, paths
from lib.augment import vectors
from lib.augment.una import UNA, TfidfModel, terms_of
from lib.data import sets
from lib.runs import Job, grids
from lib.training import recipe as recipes
from lib.training.batches import Text, UnaNegatives


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Import a module of benchmarks/, which is not installed; the number of threads is put back."""
    monkeypatch.syspath_prepend(str(paths.ROOT))
    threads = torch.get_num_threads()
    yield lambda name: importlib.import_module(f"benchmarks.{name}")
    torch.set_num_threads(threads)


def smoke(script: ModuleType, folder: Path) -> tuple[dict, str]:
    """Run a script at its smallest; its JSON content and its Markdown page."""
    assert script.main(["--smoke", "--threads", "1", "--results", str(folder)]) == 0
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".md"], (
        "one table, no temporary file left"
    )
    (table,) = folder.glob("*.json")
    content = json.loads(table.read_text())
    for key in ("cpu", "threads", "versions", "commit", "bf16_in_hardware", "load_average"):
        assert key in content["machine"]
    assert content["machine"]["threads"] == 1
    assert content["settings"]["repetitions"] == 1
    assert all(row["seconds"] and row["seconds"][0] > 0 for row in content["rows"])
    return content, table.with_suffix(".md").read_text()


def sentences(content: dict, precision: str) -> dict[str, int]:
    """Side → sentences it processed, of the sides at `precision`."""
    return {row["side"]: row["sentences"] for row in content["rows"] if precision in row["side"]}


@pytest.mark.slow
def test_train_speed(module, tmp_path):
    content, page = smoke(module("train_speed"), tmp_path)
    fp32, bf16 = sentences(content, "fp32"), sentences(content, "bf16")
    assert len(fp32) == len(bf16) == 3
    assert set(fp32.values()) == {3 * 64}
    assert len(set(bf16.values())) == 1
    for row in content["ratios"]:
        assert f"| {row['what']} | **{row['ratio']:.2f}×**" in page


@pytest.mark.slow
def test_score_speed(module, tmp_path):
    content, page = smoke(module("score_speed"), tmp_path)
    pairs = 6 * sum(map(len, data.STS_SUBSETS.values())) + 2 * 12
    assert set(sentences(content, "").values()) == {2 * pairs}
    assert {row["encoded"] for row in content["rows"]} == {2 * pairs}, (
        "all made-up sentences differ"
    )
    ours = next(row for row in content["scores"] if row["side"] == "lib fp32")
    theirs = next(
        row for row in content["scores"] if row["side"].startswith("sentence-transformers")
    )
    assert theirs["largest_difference_to_lib_fp32"] < 0.05
    assert ours["STS12"] == pytest.approx(theirs["STS12"], abs=0.05)
    assert "## Scores" in page


@pytest.mark.slow
def test_gpu_smoke(module, tmp_path):
    content, page = smoke(module("gpu"), tmp_path)
    assert set(sentences(content, "").values()) == {3 * 64}
    counted = {row["recipe"]: row for row in content["counts"]}
    assert all(row["synchronisations"] == 0 for row in counted.values())
    assert counted["SimCSE"]["operations"] < counted["UNA, at every step"]["operations"] < 1_500
    assert all(1 <= row["shapes_compiled"] <= 9 for row in counted.values())
    *parts, together = content["floor"]
    assert together["ms"] == pytest.approx(sum(part["ms"] for part in parts), abs=1e-3)
    assert "## Floor" in page


@pytest.mark.slow
def test_gpu_parts(module, tmp_path):
    content, page = smoke(module("gpu_parts"), tmp_path)
    assert {row["part"] for row in content["rows"]} == {"encode", "best"}
    assert set(content["settings"]) == {"encode", "best", "repetitions"}
    assert {row["met"] for row in content["targets"]} == {""}, "a smoke run meets no target"
    assert len({row["what"] for row in content["targets"]}) == 4
    assert not content["notes"] and "## Targets" in page


@pytest.mark.slow
def test_many_runs(module, tmp_path, monkeypatch):
    monkeypatch.setenv("CSE_OUTPUTS", str(tmp_path / "outputs"))
    content, page = smoke(module("many_runs"), tmp_path / "tables")
    assert {row["side"]: row["runs"] for row in content["rows"]} == {
        "one grid": 3,
        "bare processes": 3,
    }
    assert content["targets"][0]["met"] == "" and "≤ 150" in page
    assert not list((tmp_path / "outputs" / "benchmarks").iterdir()), "nothing is left behind"


def test_no_two_of_many_runs_are_the_same(module, tmp_path):
    many_runs = module("many_runs")
    options = many_runs.arguments(["--profile", "mini", "--results", str(tmp_path)])
    grid = many_runs.choose(options)
    grids.check(grid)
    jobs = [Job.of("", profile_name="mini", **cell.set) for cell in grid.cells]
    assert len({str(job) for job in jobs}) == len(list(grid.runs())) == 41
    assert "sda" in {job.recipe.positive for job in jobs}
    assert "una" in {job.recipe.negative for job in jobs}
    written = many_runs.write_grid(grid, grid.cells, tmp_path / "grid.yaml")
    assert [cell.set for cell in grids.read(written).cells] == [cell.set for cell in grid.cells]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ((data.WIKI1M,), True),
        (("corpus/wiki_slice.txt",), True),
        (sets.CORPUS_FILES["wikipedia"], False),
        ((), False),
    ],
    ids=["wiki1m", "its beginning", "Wikipedia dumps", "nothing"],
)
def test_many_runs_looks_for_the_text_of_small(module, tmp_path, monkeypatch, text, found):
    many_runs = module("many_runs")
    for scored in ("stsb", "sts_tasks"):
        monkeypatch.setattr(data, scored, lambda *_: None)
    for name in text:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert many_runs.has_real_data(str(tmp_path)) is found


def test_target(module):
    target = module("common").target
    assert target("tokens/s", 9e5, "≥", 1_000_000)["met"] == "no"
    assert target("share", 4.9, "<", 5)["met"] == "yes"
    assert target("seconds", 1.0, "≤", 4, counts=False) == {
        "what": "seconds",
        "measured": 1.0,
        "target": "≤ 4",
        "met": "",
    }


@pytest.mark.slow
def test_una_speed(module, tmp_path):
    content, page = smoke(module("una_speed"), tmp_path)
    done = sentences(content, "")
    assert [n for side, n in done.items() if side.startswith("mini_simcse")] == [5 * 64] * 3
    assert (
        done["lib, to strings, batches of 128"] == 400
        and done["Algorithm 1 in Python, to ids"] == 200
    )
    assert done["lib, to ids, batches of 64"] == 200
    assert [row["sentences"] for row in content["counting"]] == [100, 200, 400]
    assert all("GiB_together" in row for row in content["counting"])
    assert {row["met"] for row in content["targets"]} <= {"yes", "no", ""}
    assert "## Counting" in page and "## Targets" in page


SMALL = [*tiny_sentences(60), "a cat sat on a cat", "a a", "dog"]


def test_the_reference_has_our_probabilities(module):
    model = TfidfModel.fit(SMALL)
    terms = model.encode(SMALL)
    for beta in (0.2, 0.5, 3.0):
        plain = module("una_speed").Plain(model, beta, radius=3)
        expected = [p for s in SMALL for p in plain.probabilities(terms_of(s))]
        assert UNA(model, beta).probabilities(terms) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_speedups(module, tmp_path):
    content, page = smoke(module("speedups"), tmp_path)
    assert [row["side"] for row in content["rows"]][:2] == ["fp32, with", "fp32, without"]
    assert {r["what"] for r in content["ratios"]} == {"fp32: speedups", "bf16: speedups"}
    assert "bf16, without" in page


@pytest.mark.parametrize("radius", [1, 4, 1000])
def test_the_reference_has_our_windows(module, radius):
    model = TfidfModel.fit(SMALL)
    plain, una = module("una_speed").Plain(model, 0.5, radius), UNA(model, radius=radius)
    for number, word in enumerate(model.terms):
        candidates, p = una.window(number)
        words, weights = plain.window(word)
        assert words == [model.terms[i] for i in candidates]
        assert np.array(weights) / sum(weights) == pytest.approx(p)


@pytest.mark.parametrize("draw", ["by_prefix", "by_choices"])
def test_the_reference_draws_from_its_window(module, draw):
    """Chi-square against the exact distribution for the first, a middle and the last term in the
    order of s."""
    model = TfidfModel.fit(SMALL)
    plain, una = module("una_speed").Plain(model, 0.5, radius=4), UNA(model, radius=4)
    for place in (0, len(model.terms) // 2, len(model.terms) - 1):
        term = int(model.order[place])
        candidates, p = una.window(term)
        drawn = [model.index[getattr(plain, draw)(model.terms[term])] for _ in range(4000)]
        observed = np.bincount(drawn, minlength=len(model.terms))
        assert observed[candidates[p > 0]].sum() == 4000
        assert stats.chisquare(observed[candidates[p > 0]], 4000 * p[p > 0]).pvalue > 1e-4


def test_the_reference_keeps_the_length_and_always_changes_a_word(module):
    model = TfidfModel.fit(SMALL)
    plain = module("una_speed").Plain(model, 0.5, radius=5)
    for words in map(terms_of, SMALL):
        changed = plain(words, plain.by_prefix).split()
        assert len(changed) == len(words) and changed != words
    assert plain([], plain.by_prefix) == ""


def test_the_timed_negatives_are_those_of_training(module, tmp_path):
    tokenizer, recipe = (
        tiny_tokenizer(tmp_path),
        recipes.recipe("mini_una", max_length=12, radius=7),
    )
    theirs = UnaNegatives(Text(SMALL), recipe, tokenizer)
    una = UNA(theirs.model, recipe.beta, 7)
    source = module("una_speed").Source(theirs.terms, una, tokenizer, 12)
    rows = np.array([40, 3, 3, 62])
    for ours, expected in zip(source(rows, 9), theirs(rows, 9), strict=True):
        assert torch.equal(ours, expected)
    assert source.seconds > 0


@pytest.mark.parametrize("name", ["gpu", "gpu_parts", "many_runs"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_says_that_there_is_none(module, tmp_path, capsys, name):
    assert module(name).main(["--results", str(tmp_path)]) == 1
    assert "sees no GPU" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reason", ["Triton is not installed", None])
@pytest.mark.parametrize("asked", [True, False])
def test_compilation_is_left_out_where_nothing_compiles(module, monkeypatch, asked, reason):
    common, options = module("common"), argparse.Namespace(compile=asked)
    monkeypatch.setattr(common, "no_compiler", lambda: reason)
    left_out = asked and reason is not None
    notes = ["Compilation: left out, as Triton is not installed."] if left_out else []
    assert common.leave_out_compilation(options) == notes
    assert options.compile is (asked and not left_out)


def test_a_benchmark_that_measures_nothing_says_why(module, tmp_path, capsys):
    run_on_gpu = module("common").run_on_gpu
    options = argparse.Namespace(smoke=True, results=tmp_path)

    def fail(*_):
        raise FileNotFoundError("no such folder")

    assert run_on_gpu("gpu", options, fail, failures=(FileNotFoundError,)) == 1
    assert capsys.readouterr().err == "gpu: no such folder\n"
    with pytest.raises(FileNotFoundError):
        run_on_gpu("gpu", options, fail)
    empty = {"rows": [], "notes": ["encode: left out", "best: left out"]}
    assert run_on_gpu("gpu_parts", options, lambda *_: empty) == 1
    assert capsys.readouterr().err == "encode: left out\nbest: left out\n"
    assert not list(tmp_path.iterdir())


def test_step_flops(module):
    config = BertConfig(
        hidden_size=2, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1
    )
    weights, attention = (
        4 * 2 * 2 + 2 * 2 * 4,
        2 * 2 * 5 * 2,
    )  # QKᵀ and the weighted sum over 5 tokens, 2 wide
    assert module("gpu").step_flops(config, sequences=3, tokens=5.0) == 3 * (3 * 5) * (
        2 * weights + attention
    )


def test_ratio_is_of_medians(module):
    common = module("common")
    samples = {
        "a": [common.Sample(s, 12) for s in (1.0, 2.0, 4.0)],
        "b": [common.Sample(s, 12) for s in (4.0, 4.0, 8.0)],
    }
    found = common.ratio("a to b", "a", "b", samples)
    assert (found["ratio"], found["lowest"], found["highest"]) == (2.0, 2.0, 4.0)
    assert common.rows(samples)[0]["spread_percent"] == 150.0


def test_interleave_turns_the_order(module):
    calls = []

    def side(name):
        return lambda i: calls.append((i, name)) or module("common").Sample(1.0, 1)

    module("common").interleave({"a": side("a"), "b": side("b")}, 2)
    assert calls == [(0, "a"), (0, "b"), (1, "b"), (1, "a")]


def test_odd_warmup_is_refused(module):
    with pytest.raises(SystemExit, match="even"):
        module("common").Task(Path("model"), [], warmup=3, steps=1)


def test_slug(module):
    slug = module("common").slug
    cpu = {"cpu": "Intel(R) Xeon(R) CPU E5 @ 2.50GHz", "threads": 2, "gpu": "NVIDIA X"}
    assert slug(cpu) == "intel-xeon-e5-2-50ghz-2-threads"
    assert slug(cpu, torch.device("cuda")) == "nvidia-x"


@pytest.mark.slow
def test_views_speed(module, tmp_path):
    content, page = smoke(module("views_speed"), tmp_path)
    assert {r["what"] for r in content["targets"]} >= {
        "token_cutoff",
        "shuffle",
        "time of a step, ConSERT / SimCSE",
    }
    assert "**" in page


@pytest.mark.parametrize("direction", ["rows", "columns", "elements", "span"])
def test_the_reference_zeroes_what_the_views_zero(module, direction):
    x, mask = torch.ones(3, 10, 4), torch.tensor([[1] * 10, [1] * 6 + [0] * 4, [1] * 3 + [0] * 7])
    y = module("views_speed").cutoff_by_sentence(x, mask, 0.4, direction)
    name = {
        "rows": "token_cutoff",
        "columns": "feature_cutoff",
        "elements": "dropout",
        "span": "span_cutoff",
    }[direction]
    ours = vectors.OUTPUT_VIEWS[name](x.clone(), mask, 0.4, torch.Generator().manual_seed(0))
    real = mask.bool()[:, :, None]
    assert ((y == 0) & real).sum((1, 2)).equal(((ours == 0) & real).sum((1, 2)))


@pytest.mark.slow
def test_sda_speed(module, tmp_path):
    script = module("sda_speed")
    content, page = smoke(script, tmp_path)
    assert {row["side"] for row in content["rows"] if row["sentences"] == 40} >= {
        script.LIB,
        script.ONE_BY_ONE,
    }
    assert "Targets" in page and len(content["targets"]) == 5
    text = ["They saw two birds.", "It was not cold."]
    lines = script.parse.rewrite(text, script.RULES)
    expected = [list(line) for line in zip(*(lines[rule] for rule in script.RULES), strict=True)]
    assert script.one_by_one(text) == script.by_rule(text) == expected
