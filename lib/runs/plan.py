"""The dry run of a grid: its runs, how long each takes here, and what each lacks."""

import math
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd

from lib.data.sets import graded_sets
from lib.runs import experiment
from lib.runs.grids import Grid, job_of
from lib.runs.job import Job
from lib.training.batches import Feed
from lib.training.loop import fit

TRIED = 5  # steps that are timed


def plan(grid: Grid, machine: Mapping[str, Any]) -> pd.DataFrame:
    """One line a run: row, column, seed, its other parameters, the minutes it takes here, and what
    it lacks, a list of sentences, empty if the run can start.

    For the minutes, NaN where something is lacking, five steps of each recipe are trained, once for
    all its learning rates, and some sentences scored. Parses and counts before the first step and
    transfer tasks are not timed.
    """
    paces: dict[str, tuple[float, float]] = {}
    lines = []
    for cell, seed in grid.runs():
        job = job_of(grid, cell, seed, machine)
        missing = [said for one in job.inputs if (said := one.missing())]
        place = {"row": cell.row.format(seed=seed), "column": cell.column, "seed": seed}
        minutes = math.nan
        if isinstance(job, Job) and not missing:
            job = job.with_text_at_hand()
            # a rate costs no time
            key = repr((job.recipe.changed(lr=0.0), job.profile, job.steps == 0))
            paces[key] = paces.get(key) or _pace(job)
            minutes = _minutes(job, *paces[key])
        lines.append({**place, "set": cell.set, "minutes": minutes, "missing": missing})
    return pd.DataFrame(lines)


def _pace(job: Job) -> tuple[float, float]:
    """Seconds of a training's step, and of a sentence that is scored; a positive or a negative that
    is rewritten text is as long as the text itself, which stands in its place."""
    text = job.sentences[: max(2_000, TRIED * job.recipe.batch_size)]
    encoder = experiment.new_encoder(job.recipe, seed=0).to(job.device)
    device, seconds = job.settings.device, 0.0
    if job.steps != 0:
        feed = Feed.of(text, job.recipe, encoder.tokenizer, 0, aligned=text, negated=text)
        seconds = fit(encoder, feed, max_steps=TRIED, eval_every=TRIED, device=device).seconds
    scored = graded_sets(job.profile.dev, "dev", job.settings.data_dir)["dev"].sentence1[:256]
    begun = time.perf_counter()
    encoder.encode(scored, precision=job.scoring)
    return seconds / TRIED, (time.perf_counter() - begun) / len(scored)


def _minutes(job: Job, step: float, score: float) -> float:
    """Minutes of a run: training, dev scores, test scores of the best and of the last step."""
    steps = job.recipe.steps(len(job.sentences)) if job.steps is None else job.steps
    data_dir = job.settings.data_dir
    dev = 2 * sum(map(len, graded_sets(job.profile.dev, "dev", data_dir).values()))
    test = 2 * sum(map(len, graded_sets(job.profile.test, "test", data_dir).values()))
    scored = (steps // job.recipe.eval_every + 1) * dev + 2 * test
    return (steps * step + scored * score) / 60
