"""What the encoders of the grid `sda_light_negation` tell apart: `data/sda/learnt.csv`, numbers
measured on the checkpoints that its runs have left.

Command line: `python -m tools.sda_learnt`, after `python -m lib grid sda_light_negation`. A row
whose runs are not in the folder of outputs is left out.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from lib import data, paths
from lib.data import Triplets
from lib.data.files import write_text
from lib.encoder import Encoder
from lib.evaluate import margin_table, margins
from lib.runs import grids

GRID = "sda_light_negation"
PATH = paths.DATA / "sda" / "learnt.csv"
CHECKPOINTS = ("best", "last")


def table(grid: str = GRID) -> pd.DataFrame:
    """Margins of every finished run of a grid: `row`, `seed`, `checkpoint` and the triplets'
    `kind`; `margin`, mean of cos(anchor, paraphrase) − cos(anchor, changed sentence); and `nearer`,
    percent of the anchors whose paraphrase is the nearer of the two.

    Raises:
        FileNotFoundError: no run of the grid is finished.
    """
    found = grids.collect(grids.read(grid))
    if found.empty:
        raise FileNotFoundError(f"no finished run of {grid}: python -m lib grid {grid} trains them")
    triplets = data.mini_triplets()
    lines = [
        {"row": run.row, "seed": run.seed, "checkpoint": checkpoint, **line}
        for run in found.itertuples()
        for checkpoint in CHECKPOINTS
        for line in _learnt(paths.outputs() / run.notebook / run.run_id / checkpoint, triplets)
    ]
    return pd.DataFrame(lines)


def _learnt(folder: Path, triplets: Triplets) -> Iterator[dict[str, object]]:
    """A line a kind of one checkpoint."""
    encode = partial(Encoder.load(folder).encode, precision="fp32")
    for kind, found in margin_table(margins(encode, triplets)).iterrows():
        yield {
            "kind": kind,
            "margin": round(float(found["mean_margin"]), 4),
            "nearer": round(100 * float(found["share_above_0"]), 1),
        }


def main() -> int:
    """Write the table."""
    write_text(PATH, table().to_csv(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
