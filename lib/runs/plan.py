"""What will a grid take here, and what is missing? `python -m lib grid NAME --plan`.

Steps and sentences follow from recipe and profile. Minutes are those of five steps and some
sentences scored, which are done here and now, times their number in a run.
"""

import time
from collections.abc import Callable, Mapping
from math import nan
from typing import Any

import pandas as pd

from lib import data
from lib.runs.experiment import new_encoder
from lib.runs.grids import Grid, job_of
from lib.runs.job import Job
from lib.runs.profiles import Profile
from lib.training.batches import Feed
from lib.training.loop import fit
from lib.training.recipe import Recipe

TRIED = 5
SAMPLE = 2_000
SCORED_HERE = 256
SCORED = {"mini": 3_600, "stsb": 3_000, "sts7": 29_000, "cnsd": 2_800}  # sentences of the sets
LENGTHS = {"wiki1m": 1_000_000, "wiki1m_head": 11_548, "sts_unlabelled": 89_192}
REPLACEABLE = {"corpus", "dev", "test", "transfer", "positive_file", "parser"}
Pace = tuple[float, float, str]
COLUMNS = ["row", "seed", "recipe", "sentences", "steps", "minutes", "stand_in", "missing"]


def plan(
    grid: Grid, machine: Mapping[str, Any], say: Callable[[str], object] = str
) -> pd.DataFrame:
    """One line a run of a grid that trains.

    Where the training text is missing, the steps are timed on the shipped corpus in its place;
    where the encoder or a thesaurus is, the minutes are NaN. Neither the seven transfer tasks nor
    the parses and counts that precede the first step are timed.

    Args:
        machine: data_dir, device.
        say: is told what is being timed.

    Returns:
        row, seed, recipe, sentences, steps, minutes; `stand_in`, whether the shipped corpus was
        timed; `missing`, sentences joined by "; ", empty if the run can start.
    """
    paces: dict[object, Pace] = {}
    lines: list[list[object]] = []
    for cell, seed in grid.runs():
        job = job_of(grid, cell, seed, machine)
        if not isinstance(job, Job):
            continue
        lacking = {one.name: said for one in job.inputs if (said := one.missing())}
        data_dir = job.settings.data_dir
        text = "mini" if "corpus" in lacking else data.at_hand(job.profile.corpus, data_dir)
        steps, length = job.steps, _length(job, "corpus" in lacking)
        if steps is None and length is not None:
            steps = job.recipe.steps(length)
        key = _what_costs(job.recipe, text) if lacking.keys() <= REPLACEABLE else None
        if key and key not in paces:
            say(f"timing {TRIED} steps of {cell.row}")
            paces[key] = _timed(job, text)
        step, score, error = paces.get(key, (nan, nan, ""))
        minutes = nan if steps is None else _minutes(step, score, job.profile, job.recipe, steps)
        stand_in = text != job.profile.corpus and text == "mini" and minutes == minutes
        problems = "; ".join(filter(None, [*lacking.values(), error]))
        costs = [job.recipe.name, length, steps, minutes, stand_in, problems]
        lines.append([cell.row.format(seed=seed), seed, *costs])
    return pd.DataFrame(lines, columns=COLUMNS).astype({"sentences": "Int64", "steps": "Int64"})


def _length(job: Job, is_missing: bool) -> int | None:
    """Sentences of the training text; None where nobody knows before it is here."""
    known = job.profile.n_sentences or LENGTHS.get(job.profile.corpus)
    return known if known or is_missing else len(job.with_text_at_hand().sentences)


def _what_costs(recipe: Recipe, text: str) -> object:
    """What a step's seconds depend on: runs that have it in common are timed once."""
    names = ["backbone", "pooling", "lora_rank", "dropout2", "batch_size", "max_length", "bucket"]
    names += ["chunk_size", "encodes_twice", "negative", "negative_mode", "every", "queue"]
    return text, *(getattr(recipe, name) for name in names), recipe.has_views


def _timed(job: Job, text: str) -> Pace:
    """Seconds of a training's step and of scoring a sentence; what is wrong if they are NaN.

    Positives and negatives that are rewritten text are as long as the text itself, which stands in
    their place.
    """
    recipe = job.recipe
    try:
        sentences = data.corpus(text, job.settings.data_dir)
        sentences = sentences[: max(SAMPLE, TRIED * recipe.batch_size)]
        encoder = new_encoder(recipe, seed=0)
        same = {"aligned": sentences, "negated": sentences}
        feed = Feed.of(sentences, recipe, encoder.tokenizer, 0, **same)
        device = job.settings.device
        result = fit(encoder, feed, max_steps=TRIED, eval_every=TRIED, device=device)
        begun = time.perf_counter()
        encoder.encode(sentences[:SCORED_HERE])
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        return nan, nan, str(error).split("\n")[0]
    return result.seconds / TRIED, (time.perf_counter() - begun) / SCORED_HERE, ""


def _minutes(step: float, score: float, profile: Profile, recipe: Recipe, steps: int) -> float:
    """Training, dev scores, and the test scores of the best and of the last step.

    Args:
        step: seconds of a step; score: of a sentence that is scored.
    """
    dev_scores = steps // recipe.eval_every + 1
    scored = dev_scores * SCORED[profile.dev] + 2 * SCORED[profile.test]
    return (steps * step + scored * score) / 60
