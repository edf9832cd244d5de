"""The benchmark scripts run, do the same work on both sides and write their tables. No timing is asserted."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch
from transformers import BertConfig

from lib import data, paths


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
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".md"], "one table, no temporary file left"
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


def test_train_speed(module, tmp_path):
    content, page = smoke(module("train_speed"), tmp_path)
    fp32, bf16 = sentences(content, "fp32"), sentences(content, "bf16")
    assert len(fp32) == len(bf16) == 3
    assert set(fp32.values()) == {3 * 64}
    assert len(set(bf16.values())) == 1
    for row in content["ratios"]:
        assert f"| {row['what']} | **{row['ratio']:.2f}×**" in page


def test_score_speed(module, tmp_path):
    content, page = smoke(module("score_speed"), tmp_path)
    pairs = 6 * sum(map(len, data.STS_SUBSETS.values())) + 2 * 12
    assert set(sentences(content, "").values()) == {2 * pairs}
    assert {row["encoded"] for row in content["rows"]} == {2 * pairs}, "all made-up sentences differ"
    ours = next(row for row in content["scores"] if row["side"] == "lib fp32")
    theirs = next(row for row in content["scores"] if row["side"].startswith("sentence-transformers"))
    assert theirs["largest_difference_to_lib_fp32"] < 0.05
    assert ours["STS12"] == pytest.approx(theirs["STS12"], abs=0.05)
    assert "## Scores" in page


def test_gpu_smoke(module, tmp_path):
    content, page = smoke(module("gpu"), tmp_path)
    assert set(sentences(content, "").values()) == {3 * 64}
    *parts, together = content["floor"]
    assert together["ms"] == pytest.approx(sum(part["ms"] for part in parts), abs=1e-3)
    assert "## Floor" in page


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_says_that_there_is_none(module, tmp_path, capsys):
    assert module("gpu").main(["--results", str(tmp_path)]) == 1
    assert "sees no GPU" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_step_flops(module):
    config = BertConfig(hidden_size=2, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1)
    weights, attention = 4 * 2 * 2 + 2 * 2 * 4, 2 * 2 * 5 * 2  # QKᵀ and the weighted sum over 5 tokens, 2 wide
    assert module("gpu").step_flops(config, sequences=3, tokens=5.0) == 3 * (3 * 5) * (2 * weights + attention)


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
