"""Training runs that other people made public, at the size of the papers: `data/public/`."""

from pathlib import Path

import pandas as pd

from lib import paths


def runs(name: str, folder: Path = paths.PUBLIC) -> pd.DataFrame:
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
        >>> found = runs("simple_simcse_runs").groupby("model")["mean"].agg(["mean", "std"])
        >>> found.loc["bert-base-uncased"].round(2).tolist()
        [75.11, 0.84]

    Source: hppRC/simple-simcse, hppRC/simple-simcse-ja and HanQingLi1228/ECLDA on GitHub.
    """
    known = sorted(path.stem for path in folder.glob("*.csv"))
    if name not in known:
        raise ValueError(f"there are no public runs {name!r}; there are {', '.join(known)}")
    return pd.read_csv(folder / f"{name}.csv")
