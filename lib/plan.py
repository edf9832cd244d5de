"""What will a grid take here, and what is missing? `python -m lib grid NAME --plan`.

Steps and sentences follow from recipe and profile. Minutes are those of five steps and some
sentences scored, which are done here and now, times their number in a run.
"""

import time
from collections.abc import Callable
from math import nan

import pandas as pd

from lib import data, experiment, inputs, train, untrained
from lib.batches import Feed
from lib.grids import Grid
from lib.profiles import Profile
from lib.recipes import Recipe

TRIED = 5
SAMPLE = 2_000
SCORED_HERE = 256
SCORED = {"mini": 3_600, "stsb": 3_000, "sts7": 29_000, "cnsd": 2_800}  # sentences of the sets
LENGTHS = {"wiki1m": 1_000_000, "wiki1m_head": 11_548, "sts_unlabelled": 89_192}
REPLACEABLE = {"corpus", "dev", "test", "transfer", "positive_file", "parser"}
Pace = tuple[float, float, str]
COLUMNS = ["row", "seed", "recipe", "sentences", "steps", "minutes", "stand_in", "missing"]


def plan(
    grid: Grid,
    data_dir: str | None = None,
    device: str = "auto",
    say: Callable[[str], object] = str,
) -> pd.DataFrame:
    """One line a run of a grid that trains.

    Where the training text is missing, the steps are timed on the shipped corpus in its place;
    where the encoder or a thesaurus is, the minutes are NaN. Neither the seven transfer tasks nor
    the parses and counts that precede the first step are timed.

    Args:
        say: is told what is being timed.

    Returns:
        row, seed, recipe, sentences, steps, minutes; `stand_in`, whether the shipped corpus was
        timed; `missing`, sentences joined by "; ", empty if the run can start.
    """
    paces: dict[object, Pace] = {}
    lines: list[list[object]] = []
    for cell, seed in grid.runs():
        if cell.set["method"] in untrained.METHODS:
            continue
        profile, recipe, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
        needed = inputs.of_cell(grid.profile, cell.set, data_dir)
        lacking = {one.name: said for one in needed if (said := one.missing())}
        text = "mini" if "corpus" in lacking else data.at_hand(profile.corpus, data_dir)
        length = _length(profile, "corpus" in lacking, data_dir)
        if steps is None and length is not None:
            steps = recipe.batches.steps(length)
        key = _what_costs(recipe, text) if lacking.keys() <= REPLACEABLE else None
        if key and key not in paces:
            say(f"timing {TRIED} steps of {cell.row}")
            paces[key] = _timed(recipe, text, data_dir, device)
        step, score, error = paces.get(key, (nan, nan, ""))
        minutes = nan if steps is None else _minutes(step, score, profile, recipe, steps)
        stand_in = text != profile.corpus and text == "mini" and minutes == minutes
        problems = "; ".join(filter(None, [*lacking.values(), error]))
        costs = [recipe.name, length, steps, minutes, stand_in, problems]
        lines.append([cell.row.format(seed=seed), seed, *costs])
    return pd.DataFrame(lines, columns=COLUMNS).astype({"sentences": "Int64", "steps": "Int64"})


def _length(profile: Profile, is_missing: bool, data_dir: str | None) -> int | None:
    """Sentences of the training text; None where nobody knows before it is here."""
    known = profile.n_sentences or LENGTHS.get(profile.corpus)
    if known or is_missing:
        return known
    return len(experiment.sentences_of(profile, data_dir))


def _what_costs(recipe: Recipe, text: str) -> object:
    """What a step's seconds depend on: runs that have it in common are timed once."""
    negative = recipe.negative
    encodings = recipe.positive.encodes_twice, negative.in_use, negative.mode, negative.every
    return text, recipe.encoder, recipe.batches, encodings, negative.queue, recipe.views.in_use


def _timed(recipe: Recipe, text: str, data_dir: str | None, device: str) -> Pace:
    """Seconds of a training's step and of scoring a sentence; what is wrong if they are NaN.

    Positives and negatives that are rewritten text are as long as the text itself, which stands in
    their place.
    """
    try:
        sentences = data.corpus(text, data_dir)[: max(SAMPLE, TRIED * recipe.batches.size)]
        encoder = experiment._new_encoder(recipe, seed=0)
        tokenizer = encoder.tokenizer
        feed = Feed.of(sentences, recipe, tokenizer, 0, aligned=sentences, negated=sentences)
        result = train.fit(encoder, feed, max_steps=TRIED, eval_every=TRIED, device=device)
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
    dev_scores = steps // recipe.evaluation.every + 1
    scored = dev_scores * SCORED[profile.dev] + 2 * SCORED[profile.test]
    return (steps * step + scored * score) / 60
