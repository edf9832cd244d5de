"""Before anything starts: is the data of a grid here, are the models, is the memory enough, and how
long will it take?

`python -m lib grid NAME --plan` prints a line a run and what is missing.
"""

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pandas as pd
import psutil
import spacy
import torch
from huggingface_hub import constants
from transformers import AutoModel, PreTrainedConfig

from lib import data
from lib.augment import eda
from lib.encoder.device import resolve_device, resolve_precision
from lib.encoder.pretrained import explained, read_config, read_tokenizer
from lib.runs import baselines as untrained
from lib.runs import experiment
from lib.runs.grids import Grid
from lib.runs.profiles import Profile
from lib.training.recipe import Recipe

UTILISATION = 0.35
TEST_SENTENCES = {"mini": 2_000, "sts7": 29_000, "cnsd": 2_700}
DEV_SENTENCES = {"mini": 2_000, "stsb": 2_900, "cnsd": 2_900}
SAMPLE = 500


@dataclass(frozen=True)
class Cost:
    """What one run takes.

    Attributes:
        steps: optimiser steps; parameters: of the backbone.
        gib: memory of weights, gradients, AdamW's moments and one step's activations, in GiB.
        flops: floating point operations of training and evaluation.
    """

    steps: int
    parameters: int
    gib: float
    flops: float


def missing(
    profile: Profile, recipe: Recipe, steps: int | None, data_dir: str | None = None
) -> list[str]:
    """What a run needs and does not find, one sentence each; empty if it can start."""
    checks: list[Callable[[], object]] = [
        lambda: experiment.dev_pairs(profile, data_dir),
        lambda: data.sts_tasks(data_dir) if profile.test == "sts7" else None,
        lambda: (
            [data.transfer_task(name, data_dir) for name in data.TRANSFER_TASKS]
            if recipe.transfer_pooling
            else None
        ),
        lambda: _config(experiment.model_path(recipe.backbone)),
    ]
    if steps != 0:
        checks.append(lambda: _sentences(profile, data_dir))
        if recipe.positive == "file":
            checks.append(lambda: _file(experiment.model_path(recipe.positive_file)))
        if "sda" in (recipe.positive, recipe.negative):
            checks.append(lambda: _pipeline(experiment.model_path(recipe.parser)))
        if recipe.positive.endswith("_synonyms"):
            synonyms = experiment.model_path(recipe.synonyms)
            checks.append(lambda: eda.load_synonyms(synonyms))
    problems = []
    for check in checks:
        try:
            check()
        except (OSError, ValueError, ImportError, LookupError) as error:
            problems.append(str(error).split("\n")[0])
    return problems


def cost(profile: Profile, recipe: Recipe, steps: int | None, data_dir: str | None = None) -> Cost:
    """Steps, memory and operations of a run, from its configuration alone: nothing is trained.

    Batches hold sentences of similar length: memory is that of the longest, with hard negatives,
    time that of the mean. A training step costs 6 operations a parameter and token, an evaluation
    2; embeddings are looked up, not multiplied. With adapters the frozen weights have neither
    gradient nor moments, 4 bytes instead of 16, and take 4 operations instead of 6; with chunks
    only their activations are in memory, and a forward pass comes twice, 2 operations more.
    Activations are counted as 34 bytes a token, layer and dimension in bf16 (Korthikanti et al.
    2022, eq. 1, without the attention matrix), twice that in fp32, which is what is assumed here. A
    queue costs the copy's weights and its pass over the anchors, without gradient.
    """
    batches = recipe.batches
    model = experiment.model_path(recipe.backbone)
    config = _config(model)
    total, inner = parameters(model)
    sentences = _sentences(profile, data_dir) if steps != 0 else ()
    if steps is None:
        steps = batches.steps(len(sentences))
    lengths = _lengths(sentences[:SAMPLE], recipe, model)
    tokens = sum(lengths) / len(lengths)
    views = 2.0 if recipe.encodes_twice else 1.0
    most = views
    if recipe.has_hard:
        more = 2.0 if recipe.negative_mode == "doubled" else 1.0
        views, most = views + more / recipe.every, views + more
    evaluations = steps // recipe.eval_every + 1
    scored = evaluations * DEV_SENTENCES[profile.dev] + 2 * TEST_SENTENCES[profile.test]
    operations, kept = 6.0, batches.size * most
    weights = 16.0 * total
    if recipe.lora_rank:
        operations, weights = 4.0, 4.0 * total + 16.0 * adapters(model, recipe.lora_rank)
    if batches.chunk_size:
        operations, kept = operations + 2.0, min(kept, batches.chunk_size)
    if recipe.queue:
        weights, scored = weights + 4.0 * total, scored + steps * batches.size
    flops = inner * tokens * (operations * steps * batches.size * views + 2.0 * scored)
    activations = 68.0 * kept * max(lengths) * config.hidden_size * config.num_hidden_layers
    return Cost(steps, total, (weights + activations) / 2**30, flops)


def operations_per_second(device: str = "auto", seconds: float = 0.3) -> float:
    """Floating point operations a second of matrix products here, in the precision that training
    would use: those of the quickest product, so that other work on the machine does not count.

    Args:
        seconds: at least so long is tried.
    """
    where = resolve_device(device)
    dtype = torch.bfloat16 if resolve_precision("auto", where) == "bf16" else torch.float32
    a, b = (torch.ones(2048, 2048, dtype=dtype, device=where) for _ in range(2))
    taken: list[float] = []
    while len(taken) < 3 or sum(taken) < seconds:
        start = time.perf_counter()
        (a @ b)[0, 0].item()
        taken.append(time.perf_counter() - start)
    return 2 * 2048**3 / min(taken)


def memory_gib(device: str = "auto") -> float:
    """Memory that is free on the device, in GiB."""
    where = resolve_device(device)
    free = (
        torch.cuda.mem_get_info(where)[0]
        if where.type == "cuda"
        else psutil.virtual_memory().available
    )
    return free / 2**30


def plan(grid: Grid, data_dir: str | None = None, device: str = "auto") -> pd.DataFrame:
    """One line a run: row, seed, recipe, steps, GiB, minutes, and `missing`, which is empty if the
    run can start."""
    speed, free = UTILISATION * operations_per_second(device), memory_gib(device)
    lines: list[dict[str, object]] = []
    for cell, seed in grid.runs():
        if cell.set["method"] in untrained.METHODS:
            continue
        profile, recipe, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
        line: dict[str, object] = {
            "row": cell.row.format(seed=seed),
            "seed": seed,
            "recipe": recipe.name,
        }
        lacking = _lacking(profile, recipe, steps, data_dir)
        if not lacking:
            needed = cost(profile, recipe, steps, data_dir)
            line |= {"steps": needed.steps, "GiB": needed.gib, "minutes": needed.flops / speed / 60}
            if needed.gib > free:
                lacking = (
                    (
                        f"about {needed.gib:.0f} GiB of memory, {free:.0f} are free: a smaller"
                        " batch_size"
                    ),
                )
        lines.append({**line, "missing": "; ".join(lacking)})
    columns = ["row", "seed", "recipe", "steps", "GiB", "minutes", "missing"]
    return pd.DataFrame(lines, columns=columns)


@lru_cache(maxsize=64)
def _lacking(
    profile: Profile, recipe: Recipe, steps: int | None, data_dir: str | None
) -> tuple[str, ...]:
    return tuple(missing(profile, recipe, steps, data_dir))


@lru_cache(maxsize=4)
def _sentences(profile: Profile, data_dir: str | None) -> tuple[str, ...]:
    text = replace(profile, corpus=data.at_hand(profile.corpus, data_dir))
    return tuple(experiment.sentences_of(text, data_dir))


def _without_network(name: str) -> bool:
    return not Path(name).is_dir() and not _hub_answers()


@lru_cache(maxsize=1)
def _hub_answers() -> bool:
    """One short look: without a network, the Hub's library would try again for minutes, model after
    model."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        urllib.request.urlopen(
            urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=5
        ).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@lru_cache(maxsize=8)
def _config(name: str) -> PreTrainedConfig:
    return read_config(name, local_files_only=_without_network(name))


@lru_cache(maxsize=8)
def parameters(name: str) -> tuple[int, int]:
    """Parameters of a backbone by its configuration: all, and those a token meets, without
    embedding tables.

    A layer that an ALBERT uses several times is met as often.
    """
    config, model = _config(name), _skeleton(name)
    uses = config.num_hidden_layers // getattr(
        config, "num_hidden_groups", config.num_hidden_layers
    )
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    met = {
        name: n
        for name, n in sizes.items()
        if "embeddings." not in name and "embed_tokens" not in name
    }
    return sum(sizes.values()), sum(
        n * (uses if "albert_layer_groups" in name else 1) for name, n in met.items()
    )


def adapters(name: str, rank: int) -> int:
    """Parameters of LoRA's A and B on every linear layer of a backbone."""
    linear = (m for m in _skeleton(name).modules() if isinstance(m, torch.nn.Linear))
    return rank * sum(m.in_features + m.out_features for m in linear)


@lru_cache(maxsize=8)
def _skeleton(name: str) -> torch.nn.Module:
    config = _config(name)
    with explained(name), torch.device("meta"):
        return AutoModel.from_config(config, trust_remote_code=False)


def _lengths(sentences: Iterable[str], recipe: Recipe, model: str) -> list[int]:
    """Tokens of training sentences; the most there can be where there is no text."""
    texts = list(sentences)
    if not texts:
        return [recipe.max_length]
    tokenizer = read_tokenizer(model, local_files_only=_without_network(model))
    rows = tokenizer(texts, truncation=True, max_length=recipe.max_length)["input_ids"]
    return [len(row) for row in rows]


def _file(name: str) -> None:
    if not Path(name).is_file():
        raise FileNotFoundError(
            f"{name} is missing: `python -m lib augment paraphrase` writes such a file"
        )


def _pipeline(name: str) -> None:
    if not Path(name).is_dir() and not spacy.util.is_package(name):
        raise FileNotFoundError(
            f"no spaCy pipeline {name!r}: run `python -m spacy download {name}`"
        )
