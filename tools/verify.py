"""Do the committed results still come out? Two rows drawn by date are trained again and compared.

Command line: `python -m tools.verify` (`make verify-results`), some minutes on a CPU; exit status 1
if a row misses.
"""

import argparse
import datetime
import json
import math
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lib import data, paths, results
from lib.augment import sda
from lib.checked import validated
from lib.encoder.device import resolve_precision
from lib.runs import Job, run_job
from lib.runs.baseline import UNTRAINED
from lib.runs.folder import RESULTS_VERSION, run_id
from lib.runs.job import RunSettings, portable_parameters
from lib.runs.profiles import of_profile, profile_named
from lib.training.recipe import FIELDS, Recipe, default_of

METRIC = "sts7_test_avg_best"


def is_trained(row: Mapping[str, Any]) -> bool:
    """Whether a committed row is of a recipe, not of a method without training."""
    return str(row["recipe"]).partition("_")[2] not in UNTRAINED


def recipe_of(row: Mapping[str, Any]) -> Recipe:
    """The recipe that a committed row was trained with, from the row alone."""
    values: dict[str, Any] = {"name": row["recipe"], "source": "results"}
    for name in FIELDS:
        value, kind = row.get(name), Recipe.model_fields[name].annotation
        if value is None or value != value:  # a field that is younger than the row
            values[name] = "" if kind is str and name in row else default_of(name)
        elif kind is bool:
            values[name] = str(value) in ("True", "1.0", "1")
        else:
            values[name] = kind(value)  # type: ignore[misc]
    return validated(Recipe, values, "a recipe")


def id_of(row: Mapping[str, Any]) -> str:
    """The id that follows from a committed row: its settings and the hashes of its data."""
    used = replace(profile_named(str(row["profile"])), corpus=row["corpus"], dev=row["dev"])
    params = of_profile(replace(used, test=row["test"]), int(row["n_sentences"]))
    if is_trained(row):
        steps = None if math.isnan(row["max_steps"]) else int(row["max_steps"])
        params |= {"max_steps": steps, "precision": row["precision"], "scoring": row["scoring"]}
        params |= portable_parameters(recipe_of(row))
        if str(row.get("compile")) in ("True", "1.0"):
            params["compile"] = True
    elif isinstance(row.get("vectors"), str):
        params["vectors"] = row["vectors"]
    identity = {"params": params, "data": json.loads(row["data"])}
    return run_id(str(row["recipe"]), identity, int(row["seed"]))


def job_of(row: Mapping[str, Any], data_dir: str | None = None, output: str | None = None) -> Job:
    """The job that trains a committed row again, on the CPU of this machine."""
    n = int(row["n_sentences"]) or None
    if n == len(data.corpus(row["corpus"], data_dir)):
        n = None  # all of a corpus in its order, not a draw of all its sentences
    used = replace(profile_named(str(row["profile"])), corpus=row["corpus"], n_sentences=n)
    own = {"seed": int(row["seed"]), "scoring": row["scoring"], "device": "cpu"}
    settings = validated(RunSettings, {**own, "data_dir": data_dir, "output_dir": output}, "a run")
    return Job(str(row["notebook"]), used, recipe_of(row), int(row["max_steps"]), settings)


def is_of_today(row: Mapping[str, Any]) -> bool:
    """Whether today's code writes the texts that a row was trained on: not so for other rules of
    SDA, nor for WordNet's edits of results version 1, whose files were not recorded."""
    rules = row.get("rules")
    if rules is not None and rules == rules and int(rules) != sda.VERSION:
        return False
    return row.get("results_version") == RESULTS_VERSION or row.get("synonyms") != "wordnet"


def draw(day: datetime.date, n: int = 2, data_dir: str | None = None) -> pd.DataFrame:
    """`n` committed trainings, drawn by the date among those whose training text is here, each with
    the sd of its condition's scores over seeds in the column `seed sd`."""
    table = results.every_run()
    table = table[[bool(is_trained(row)) for row in table.to_dict("records")]]
    table = table[(table["max_steps"] > 0) & table[METRIC].notna()]
    condition = table["run_id"].str.rpartition("-")[0]
    spread = table.groupby(condition)[METRIC].transform("std").rename("seed sd")
    table = pd.concat([table, spread], axis=1)
    enough = table.groupby(condition)[METRIC].transform("size") >= 3
    table = table[enough & (table["seed sd"] > 0)]
    here = {name: _is_at_hand(name, data_dir) for name in table["corpus"].unique()}
    keep = [is_of_today(row) and here[row["corpus"]] for row in table.to_dict("records")]
    table = table[keep]
    chosen = np.random.default_rng(day.toordinal()).choice(
        len(table), size=min(n, len(table)), replace=False
    )
    return table.iloc[chosen]


def _is_at_hand(corpus: str, data_dir: str | None) -> bool:
    try:
        return bool(data.corpus_files(corpus, data_dir))
    except FileNotFoundError:
        return False


def rerun(day: datetime.date, n: int = 2, data_dir: str | None = None) -> pd.DataFrame:
    """Train `n` rows again on the CPU, in a folder of their own, and compare: one line a row.

    They are trained in the precision that this processor has units for, which may be another than
    the row's.

    Returns:
        run_id; `same id`, False where the data or the encoder has changed since; the precisions of
        both; recorded, again, seed sd, and `within`: whether they differ by no more than it.
    """
    lines = []
    for row in draw(day, n, data_dir).to_dict("records"):
        with tempfile.TemporaryDirectory() as folder:
            job = job_of(row, data_dir, folder)
            recorded = replace(
                job, settings=job.settings.model_copy(update={"precision": row["precision"]})
            )
            id_today = recorded.record().id
            value = float((run_job(job).metrics or {})[METRIC])
        lines.append(
            {
                "run_id": row["run_id"],
                "same id": id_today == row["run_id"],
                "precision": f"{row['precision']}, {resolve_precision('auto', 'cpu')}",
                "recorded": row[METRIC],
                "again": value,
                "seed sd": row["seed sd"],
                "within": abs(value - row[METRIC]) <= row["seed sd"],
            }
        )
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison; exit 1 if a row has another id by now, or is not within its seed sd."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.verify", description="Train committed rows again."
    )
    add = parser.add_argument
    day, today = datetime.date.fromisoformat, datetime.date.today()
    add("--date", type=day, default=today, help="by which the rows are drawn (default: today)")
    add("--rows", type=int, default=2, help="how many (default: 2)")
    add("--data-dir", help="where the real data is")
    options = parser.parse_args(arguments)
    try:
        table = rerun(options.date, options.rows, options.data_dir)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    if not len(table):
        sys.exit(
            f"nothing to verify: no condition has three seeds in {paths.RESULTS} and its training"
            " text here (`python -m lib data fetch`)"
        )
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    sys.exit(
        0 if (table["within"] & table["same id"]).all() else "a row does not come out as recorded"
    )


if __name__ == "__main__":
    main()
