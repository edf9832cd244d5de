"""What each technique of `tools.pretrain` is worth: the plain recipe and one change at a time.

    CSE_DATA=… python -m tools.pretrain_ablation ROWS OUT --tokens 8000000 plain muon zero_init

Each run is pre-trained, in bf16, then trained by SimCSE as the profile `light` does (60 steps); a finished
one is not done again. `OUT/ablation.csv` has a line a run.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lib.data import files
from lib.runs.experiment import run as simcse
from tools.pretrain import Plan, export, train

TECHNIQUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "muon": {"optimizer": "muon"},
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
SCORES = ("stsb_dev_spearman_best", "sts7_test_avg_best")


def scores(plan: Plan, rows: Path, out: Path) -> dict[str, Any]:
    """Scores of a plan before and after SimCSE."""
    done = train(plan, rows, out)
    found: dict[str, Any] = {n: done.state[n] for n in ("step", "tokens", "seconds")}
    found |= export(done, out / "model")
    own = {"model": str(out / "model"), "seed": plan.seed, "output_dir": str(out)}
    metrics = simcse("02_simcse", "simcse", "light", **own).metrics or {}
    return found | {f"simcse_{name}": metrics[name] for name in SCORES}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.pretrain_ablation", description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("techniques", nargs="+", choices=TECHNIQUES)
    parser.add_argument("--size", default="4x256")
    parser.add_argument("--tokens", type=int, required=True, help="of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args(arguments)
    plain, lines = Plan(options.size, options.tokens, precision="bf16"), []
    for seed in options.seeds:
        for name in options.techniques:
            folder = options.out / f"{name}-{seed}"
            if not (folder / "scores.json").exists():
                plan = replace(plain, seed=seed, **TECHNIQUES[name])
                files.write_json(folder / "scores.json", scores(plan, options.rows, folder))
            line = json.loads((folder / "scores.json").read_text())
            lines.append({"technique": name, "seed": seed, **line})
            with open(options.out / "ablation.csv", "w", newline="") as file:
                writer = csv.DictWriter(file, lines[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)


if __name__ == "__main__":
    main()
