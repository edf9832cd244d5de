"""Which pairs of SICK-R a pushed negation moves: `data/sda/sick.csv`, numbers without a sentence,
measured on the last checkpoints of the grid `sda_light_negation`.

Command line: `python -m tools.sda_sick`, after `python -m lib grid sda_light_negation`, with the
real data at hand.
"""

import sys
from functools import partial

import numpy as np
import pandas as pd

from lib import data, paths
from lib.data import Pairs
from lib.data.files import write_text
from lib.encoder import Encoder
from lib.evaluate.sts import Encode, spearman
from lib.runs import grids
from tools.inspection import rank_changes
from tools.sda_learnt import GRID
from tools.sda_overlap import is_negative

PATH = paths.DATA / "sda" / "sick.csv"
PLAIN = "SimCSE, p = 0.1"
TOP = 100


def moved(plain: Encode, pushed: Encode, pairs: Pairs) -> dict[str, float]:
    """What becomes of the pairs with a negative word on one side only, from one encoder to another.

    Returns:
        `pairs` and `one_sided`, how many; `moved`, mean change of the rank of a one-sided pair
        (below zero: ranked as less similar), rank 1 the least similar; `top`, percent of one-sided
        pairs among the `TOP` whose rank comes nearest to the gold rank's, as in the paper's
        Figure 4; and Spearman × 100 of both encoders over all pairs, over the one-sided, and over
        the others.
    """
    sides = zip(pairs.sentence1, pairs.sentence2, strict=True)
    one_sided = np.array([is_negative(a) != is_negative(b) for a, b in sides])
    table = rank_changes(plain, pushed, pairs)
    first = one_sided[table.index[:TOP]]
    table = table.sort_index()
    found: dict[str, float] = {"pairs": len(table), "one_sided": int(one_sided.sum())}
    found["moved"] = round(float((table["rank_b"] - table["rank_a"])[one_sided].mean()), 1)
    found["top"] = round(100 * float(first.mean()), 1)
    parts = {"all": one_sided | True, "one_sided": one_sided, "others": ~one_sided}
    for name, part in parts.items():
        gold = table["gold"][part]
        found[f"plain_{name}"] = round(spearman(gold, table["similarity_a"][part]), 2)
        found[f"pushed_{name}"] = round(spearman(gold, table["similarity_b"][part]), 2)
    return found


def table(data_dir: str | None = None) -> pd.DataFrame:
    """`moved` of every row and seed of the grid with dropout 0.1, against SimCSE of that seed.

    Raises:
        FileNotFoundError: SICK-R is not here, or no run of SimCSE is finished.
    """
    found = grids.collect(grids.read(GRID))
    simcse = found[found["row"] == PLAIN].set_index("seed")["run_id"]
    if simcse.empty:
        raise FileNotFoundError(f"no finished {PLAIN!r}: python -m lib grid {GRID} trains it")
    (pairs,) = data.sts_tasks(data_dir)["SICK-R"].values()
    lines = [
        {"row": run.row, "seed": run.seed}
        | moved(_encoder(run.notebook, simcse[run.seed]), _encoder(run.notebook, run.run_id), pairs)
        for run in found.itertuples()
        if run.row.startswith("delta") and run.row.endswith("p = 0.1") and run.seed in simcse.index
    ]
    return pd.DataFrame(lines)


def _encoder(notebook: str, run_id: str) -> Encode:
    folder = paths.outputs() / notebook / run_id / "last"
    return partial(Encoder.load(folder).encode, precision="fp32")


def main() -> int:
    """Write the table."""
    write_text(PATH, table().to_csv(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
