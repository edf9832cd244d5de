"""What each technique of `tools.pretrain` is worth: the plain recipe with one change at a time.

    CSE_DATA=… python -m tools.pretrain_ablation ROWS OUT plain muon zero_init --tokens 8000000

Each run is pre-trained in bf16 (`--precision`), then trained by SimCSE as the profile `light` does,
in 60 steps, at a learning rate that an encoder of so few tokens survives (`results/LOG.md`).
"""

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from lib.runs.experiment import run as simcse
from tools.pretrain import Plan, export, train

LR = 3e-5  # of SimCSE
SCORES = ("stsb_dev_spearman_best", "sts7_test_avg_best")
TECHNIQUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "muon": {"optimizer": "muon"},
    "muon_5e-3": {"optimizer": "muon", "muon_lr": 5e-3},
    "muon_2e-2": {"optimizer": "muon", "muon_lr": 2e-2},
    "zero_init": {"zero_init": True},
    "no_dropout": {"dropout": 0.0},
    "mask_30_15": {"mask": 0.3, "mask_end": 0.15},
    "all_mask": {"replaced_by": "mask"},
    "late_decay": {"decay": 0.35},
    "ema": {"ema": 0.998},
    "ramp": {"ramp_from": 4096, "step_tokens": 16_384},
    "fp32": {"precision": "fp32"},
    "random_start": {"svd": False},
}
TECHNIQUES["together"] = (
    TECHNIQUES["muon_5e-3"] | TECHNIQUES["no_dropout"] | TECHNIQUES["mask_30_15"]
)
TECHNIQUES["together_late"] = TECHNIQUES["together"] | TECHNIQUES["late_decay"]


def main(arguments: list[str] | None = None) -> None:
    """Write a line a run into `OUT/ablation.csv`; a finished run is read, not done again."""
    parser = argparse.ArgumentParser(prog="python -m tools.pretrain_ablation", description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("techniques", nargs="+", choices=TECHNIQUES)
    parser.add_argument("--size", default="4x256")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--tokens", type=int, required=True, help="of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args(arguments)
    lines = []
    for seed, name in product(options.seeds, options.techniques):
        out, plain = options.out / f"{name}-{seed}", {"precision": options.precision, "seed": seed}
        plan = Plan(options.size, options.tokens, **(plain | TECHNIQUES[name]))
        done = train(plan, options.rows, out)
        row: dict[str, Any] = {"technique": name, "seed": seed, "seconds": done.state["seconds"]}
        row |= export(done, out / "model")
        own = {"model": str(out / "model"), "seed": seed, "lr": LR, "output_dir": str(out)}
        metrics = simcse("02_simcse", "simcse", "light", **own).metrics or {}
        lines.append(row | {f"simcse_{score}": metrics[score] for score in SCORES})
        pd.DataFrame(lines).to_csv(options.out / "ablation.csv", index=False)


if __name__ == "__main__":
    main()
