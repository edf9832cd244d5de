"""The dry run of a grid: what is missing, and what a run costs, against counts made by hand and by
training."""

import shutil

import pytest
import torch
from huggingface_hub import constants
from tiny import tiny_bert
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, LlamaConfig

from lib import paths, plan
from lib.__main__ import main as cli
from lib.encoder import Encoder
from lib.encoder.adapters import add_lora
from lib.runs import experiment, grids, profiles
from lib.training import recipe as recipes


def test_a_table_at_mini_can_start_and_one_at_full_says_what_is_missing(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("CSE_DATA", str(tmp_path))
    monkeypatch.setattr(paths, "DATA", tmp_path)

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    plan._config.cache_clear()
    assert cli(["grid", "una_table_2", "--plan", "--profile", "mini"]) == 0
    assert "3 of 3 runs can start" in capsys.readouterr().out
    assert cli(["grid", "una_table_1", "--plan"]) == 1
    text = capsys.readouterr().err
    assert (
        "python -m lib data fetch" in text
        and "'bert-base-uncased'" in text
        and "'roberta-base'" in text
    )
    assert "wiki1m_paraphrases.txt is missing" in text
    assert cli(["grid", "una_table_9", "--plan"]) == 2 and "no grid" in capsys.readouterr().err


def test_what_a_rule_needs_is_looked_for(tmp_path) -> None:
    profile, recipe, steps = experiment.resolve("mini", "sda", parser="en_core_web_none")
    assert plan.missing(profile, recipe, steps) == [
        "no spaCy pipeline 'en_core_web_none': run `python -m spacy download en_core_web_none`"
    ]
    profile, recipe, steps = experiment.resolve(
        "mini", "simcse", positive="replace_synonyms", positive_rate=0.1, synonyms="none.tsv"
    )
    assert "none.tsv" in plan.missing(profile, recipe, steps)[0]
    assert plan.missing(profile, recipe, 0) == []


def test_parameters_and_steps_are_counted() -> None:
    total, inner = plan.parameters(str(paths.MINI_BERT))
    model = AutoModel.from_pretrained(paths.MINI_BERT)
    assert total == sum(p.numel() for p in model.parameters())
    assert total - inner == sum(p.numel() for p in model.embeddings.parameters())
    profile, recipe, _ = experiment.resolve("mini", "simcse", batch_size=100)
    assert plan.cost(profile, recipe, None).steps == 24_015 // 100
    assert plan.cost(profile, recipe.changed(drop_last=False), None).steps == 24_015 // 100 + 1
    assert plan.cost(profile, recipe, 7).steps == 7


@pytest.mark.parametrize(
    "model", [paths.MINI_BERT, *paths.SIBLINGS.values()], ids=lambda folder: folder.name
)
def test_operations_of_a_training_step_are_those_of_a_counter(model) -> None:
    encoder = Encoder.load(model, pooling="mean").train()
    ids, mask = torch.full((8, 24), 7), torch.ones(8, 24, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        encoder(ids, mask).sum().backward()
    inner = plan.parameters(str(model))[1]
    assert counter.get_total_flops() == pytest.approx(6 * inner * 8 * 24, rel=0.25)


def test_adapters_and_chunks_are_counted() -> None:
    folder = str(paths.SIBLINGS["Llama"])
    profile, whole = (
        profiles.profile("mini"),
        recipes.recipe("mini_simcse", backbone=folder, pooling="last_token", batch_size=64),
    )
    thin = whole.changed(lora_rank=4, chunk_size=8)
    encoder = Encoder.load(folder, pooling="last_token")
    total = sum(p.numel() for p in encoder.backbone.parameters())
    add_lora(encoder.backbone, 4)
    trained = sum(p.numel() for p in encoder.backbone.parameters() if p.requires_grad)
    longest = max(plan._lengths(experiment.sentences_of(profile)[: plan.SAMPLE], thin, folder))
    by_hand = (4 * total + 16 * trained + 68 * 8 * longest * 192 * 4) / 2**30
    assert (
        plan.cost(profile, thin, 3).gib == pytest.approx(by_hand)
        and by_hand < plan.cost(profile, whole, 3).gib
    )
    assert plan.cost(profile, thin, 3).flops == pytest.approx(plan.cost(profile, whole, 3).flops)


def test_memory_of_a_large_model_is_that_of_its_weights_and_more(tmp_path) -> None:
    tiny_bert(tmp_path / "bert")
    profile, recipe = (
        profiles.profile("mini"),
        recipes.recipe("mini_simcse", backbone=str(tmp_path / "bert")),
    )
    small, large = (plan.cost(profile, recipe.changed(batch_size=n), 3) for n in (8, 800))
    assert large.gib > small.gib > 16 * small.parameters / 2**30 and large.flops > small.flops
    longest = max(
        plan._lengths(
            experiment.sentences_of(profile)[: plan.SAMPLE], recipe, recipe.backbone
        )
    )
    by_hand = (16 * small.parameters + 68 * 8 * 2 * longest * 32 * 2) / 2**30
    assert small.gib == pytest.approx(by_hand)
    grid = grids.read("una_table_2").at("mini", max_steps=3, batch_size=10**6)
    table = plan.plan(grid, device="cpu")
    assert table["missing"].str.contains("GiB of memory").all()


def test_a_llama_of_seven_billion_fits_a_card_of_80_gb_with_adapters(tmp_path) -> None:
    """Its configuration alone, with the tokenizer of our own small one."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.SIBLINGS["Llama"] / name, tmp_path)
    shape = {"num_hidden_layers": 32, "num_attention_heads": 32}
    sizes = {"vocab_size": 32_000, "hidden_size": 4_096, "intermediate_size": 11_008}
    LlamaConfig(**sizes, **shape).save_pretrained(tmp_path)
    adapted = recipes.recipe(
        "paper_simcse_bert", backbone=str(tmp_path), lora_rank=16, batch_size=64, max_length=32
    )
    cost = plan.cost(profiles.profile("mini"), adapted, 100)
    assert cost.parameters == pytest.approx(6.6e9, rel=0.02)
    assert 4 * cost.parameters / 2**30 < cost.gib < 80e9 / 2**30
    whole = plan.cost(profiles.profile("mini"), adapted.changed(lora_rank=0), 100)
    assert whole.gib > 100


GRID = """
source: one row
notebook: 02_simcse
profile: mini
metric: mini_dev_spearman_best
seeds: [42]
cells:
  - {{row: only, column: x, set: {{method: simcse, max_steps: 1, model: "{backbone}"}}}}
"""


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (None, [], "cannot load the model"),
        ("config.json", [], "config.json"),
        ("tokenizer.json", [], "its files are damaged"),
        ("", ["--device", "gpu"], "device must be 'auto'"),
        ("", ["--profile", "huge"], "huge"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, capsys, change, arguments, message) -> None:
    folder = tmp_path / "model"
    if change is not None:
        tiny_bert(folder)
    if change:
        (folder / change).write_text("{")
    (tmp_path / "grid.yaml").write_text(GRID.format(backbone=folder))
    plan._config.cache_clear()
    plan._lacking.cache_clear()
    capsys.readouterr()
    assert cli(["grid", str(tmp_path / "grid.yaml"), "--plan", *arguments]) in (1, 2)
    lines = [line for line in capsys.readouterr().err.splitlines() if line != "missing:"]
    assert len(lines) == 1 and message in lines[0]
