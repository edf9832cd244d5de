"""The committed results, as they were measured, and the public runs of others.

`results/NOTEBOOK.csv` has one row a run with all of its settings, `results/grids.csv` the run ids
behind every row of a grid, `results/histories/` one row a step. Nothing of today's recipes is read
here: a default that changes leaves what was measured alone.
"""

from functools import lru_cache
from pathlib import Path

import pandas as pd

from lib import paths

MEMBERS = "grids.csv"
OF_A_STEP: tuple[str, ...] = ("loss", "in_batch_accuracy", "positive_cosine", "other_cosine")
OF_A_STEP += ("own_negative_cosine", "dev_score")


def every_run(results: Path = paths.RESULTS) -> pd.DataFrame:
    """The committed runs of all notebooks, one row a run; no row where nothing is committed."""
    found = [_read(path, path.stat().st_mtime_ns) for path in sorted(results.glob("[0-9]*.csv"))]
    nothing = pd.DataFrame(columns=["notebook", "run_id", "recipe", "seed", "profile"])
    return pd.concat(found, ignore_index=True) if found else nothing


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int) -> pd.DataFrame:
    """A file of runs as it stands since it was changed, read once: copy before you write."""
    return pd.read_csv(path, low_memory=False)


def members(results: Path = paths.RESULTS) -> pd.DataFrame:
    """Which runs stand behind which rows: `grid`, `row`, `column`, `run_id`."""
    path = results / MEMBERS
    if not path.exists():
        return pd.DataFrame(columns=["grid", "row", "column", "run_id"])
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def rows(grid: str, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The committed runs of a grid, one line a row and seed, with `row` and `column`.

    A run counts for every grid that asks for it, whichever notebook it was trained for: the SimCSE
    beside UNA, SDA and ConSERT is one and the same.

    Raises:
        ValueError: there is no such grid.

    Example:
        >>> found = rows("una_small")
        >>> {"UNA, doubled", "SimCSE"} <= set(found["row"])
        True
        >>> set(found["notebook"]) == {"02_simcse", "04_una"}
        True
    """
    known = members(results)
    own = known[known["grid"] == grid]
    if not len(own) and not (paths.GRIDS / f"{grid}.yaml").exists():
        there = ", ".join(sorted(set(known["grid"])))
        raise ValueError(f"there is no grid {grid!r}; committed are runs of {there}")
    found = own.drop(columns="grid").merge(every_run(results), on="run_id", how="left")
    return found[[*(name for name in found if name not in ("row", "column")), "row", "column"]]


def steps(grid: str, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The steps of the committed runs of a grid: `row`, `seed` and the columns of `histories`, one
    line a row, seed and step."""
    runs_of = rows(grid, results)[["row", "seed", "run_id", "notebook"]]
    taken = pd.concat([histories(name, results) for name in runs_of["notebook"].unique()])
    return runs_of.drop(columns="notebook").merge(taken, on="run_id")


def histories(notebook: str, results: Path = paths.RESULTS) -> pd.DataFrame:
    """The steps of the committed runs of a notebook: `run_id`, `step`, `OF_A_STEP`; empty where
    none were kept.

    `dev_score` stands in the steps that were scored alone; a cosine that a run did not measure is
    NaN.
    """
    path = history_path(notebook, results)
    if not path.exists():
        return pd.DataFrame(columns=["run_id", "step", *OF_A_STEP])
    return pd.read_csv(path)


def history_path(notebook: str, results: Path = paths.RESULTS) -> Path:
    """The file of a notebook's histories."""
    return results / "histories" / f"{notebook}.csv.xz"


def public_runs(name: str, folder: Path = paths.PUBLIC) -> pd.DataFrame:
    """The figures of one file of `data/public/`, one row a run or an evaluation.

    Scores are Spearman ×100, as in the tables of the papers, and `dev` is that of the STS-B dev set
    (of JSICK's in Japanese). `source` names the repository and its commit.

    | name | rows × columns | one row |
    |---|---|---|
    | `simple_simcse_runs` | 200 × 15 | an unsupervised SimCSE, 50 seeds for each of four encoders |
    | `simple_simcse_ja_unsup` | 1,152 × 12 | the mean of five runs in Japanese |
    | `eclda_runs` | 14 × 31 | one of two poolings of a run of ConSERT's extension |
    | `eclda_dev_curves` | 167 × 7 | a dev score during these runs |

    Raises:
        ValueError: there is no such file.

    Example:
        >>> found = public_runs("simple_simcse_runs").groupby("model")["mean"].agg(["mean", "std"])
        >>> found.loc["bert-base-uncased"].round(2).tolist()
        [75.11, 0.84]

    Source: hppRC/simple-simcse, hppRC/simple-simcse-ja and HanQingLi1228/ECLDA on GitHub.
    """
    known = sorted(path.stem for path in folder.glob("*.csv"))
    if name not in known:
        raise ValueError(f"there are no public runs {name!r}; there are {', '.join(known)}")
    return pd.read_csv(folder / f"{name}.csv")
