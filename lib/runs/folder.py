"""A run's folder: parameters, metrics and environment, written atomically; and the table of all
runs."""

import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from copy import copy
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import torch

from lib import paths
from lib.data.files import read_json, write_json, write_text

RESULTS_VERSION = 2
COMMIT = "commit.json"
CODE = ("lib", "workflow", "pyproject.toml", "constraints.txt")  # what decides a run's numbers
PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "scikit-learn")


def run_id(recipe: str, identity: Mapping[str, object], seed: int) -> str:
    """`<recipe>-<8 hex>-s<seed>`; the digits hash `identity` (parameters and data hashes) and
    `RESULTS_VERSION`.

    Example:
        >>> run_id("mini_simcse", {"lr": 3e-4}, 1) == run_id("mini_simcse", {"lr": 3e-4}, 1)
        True
    """
    text = json.dumps([RESULTS_VERSION, dict(identity)], sort_keys=True, default=str)
    return f"{recipe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}-s{seed}"


def environment(device: str | torch.device = "cpu") -> dict[str, object]:
    """Versions, processor, GPU and git commit of this process, and the device that it computes on.

    Args:
        device: as PyTorch names it, e.g. `cuda:1`; its own name stands under `machine`.
    """
    device = torch.device(device)
    return {
        "python": platform.python_version(),
        "versions": {package: version(package) for package in (*PACKAGES, "spacy", "nltk")},
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "device": str(device),
        "machine": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name(),
        **commit(),
    }


def commit() -> dict[str, object]:
    """The git commit of the project's code, and whether files that git knows differ from it.

    Code that a bundle brought to a machine has the file `commit.json` in place of a repository.
    """
    if (paths.ROOT / COMMIT).is_file():
        return read_json(paths.ROOT / COMMIT)
    status = _git("status", "--porcelain", "--untracked-files=no", "--", *CODE)
    known = _git("rev-parse", "HEAD") or None
    return {"commit": known, "dirty": None if status is None else bool(status)}


def _git(*words: str) -> str | None:
    """What git says of the project; None where there is no git or no repository."""
    command = ["git", "-C", str(paths.ROOT), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cpu_name() -> str:
    """Model name of the processor, as far as the system tells."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:(.+)", file.read_text() if file.exists() else "", re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def peak_rss_gib() -> float:
    """Largest resident memory of this process so far, in GiB."""
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset / 2**30
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


class Run:
    """The folder `<outputs>/<notebook>/<run_id>/` of ONE training.

    `params.json` and `env.json` are written at the start and, last of all, `metrics.json` at the
    end: a run is finished exactly if `metrics.json` exists.

    Args:
        notebook: name of the notebook or of the command that trains.
        recipe: the recipe's name; seed: the run's seed.
        params: everything the result depends on but the data and the seed, JSON values.
        data: name → sha256 of the files the result depends on.
        folder: outputs folder (default `paths.outputs()`).
    """

    def __init__(
        self, notebook: str, recipe: str, seed: int, params: Mapping, data: Mapping, folder=None
    ):
        self.notebook, self.recipe, self.seed = notebook, recipe, seed
        self.params, self.data = dict(params), dict(data)
        self.id = run_id(recipe, {"params": self.params, "data": self.data}, seed)
        self.folder = Path(folder or paths.outputs()) / notebook / self.id

    @property
    def metrics(self) -> dict[str, float] | None:
        """What `finish` saved, or None while the run is not finished; a metric that is no number is
        NaN.

        Raises:
            ValueError: `metrics.json` is damaged.
        """
        path = self.folder / "metrics.json"
        return _with_nan(read_json(path)) if path.exists() else None

    def start(self, device="cpu", resolved: Mapping | None = None, **ran: object) -> None:
        """Write `params.json` and `env.json`.

        Args:
            device: as `environment`; ran: what else is recorded of how it runs.
            resolved: the whole recipe, fields without effect and defaults included.
        """
        content = {"run_id": self.id, "recipe": self.recipe, "seed": self.seed}
        content |= {"results_version": RESULTS_VERSION, **self.params}
        content |= {"resolved": dict(resolved or {}), "data": self.data}
        write_json(self.folder / "params.json", content)
        write_json(self.folder / "env.json", environment(device) | ran)

    def finish(self, metrics: Mapping[str, object], history: list[dict] | None = None) -> None:
        """Write `history.csv` and `metrics.json` (flat, the unit in the key; null for what is no
        number)."""
        if history is not None:
            write_text(self.folder / "history.csv", pd.DataFrame(history).to_csv(index=False))
        write_json(self.folder / "metrics.json", {k: _plain(v) for k, v in metrics.items()})

    def finished(self) -> "Run | None":
        """This run if it is finished, else the one of its id that another notebook has left: the
        same id means the same parameters, data and seed, so training again would only repeat
        it."""
        if self.metrics is not None:
            return self
        for path in sorted(self.folder.parent.parent.glob(f"*/{self.id}/metrics.json")):
            other = copy(self)
            other.folder, other.notebook = path.parent, path.parent.parent.name
            return other
        return None

    def history(self) -> pd.DataFrame:
        """The steps of the training."""
        return pd.read_csv(self.folder / "history.csv")


def _plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _with_nan(metrics: dict) -> dict:
    return {name: math.nan if value is None else value for name, value in metrics.items()}


def collect(folder: Path | None = None, notebook: str = "*") -> pd.DataFrame:
    """One row for each finished run under `folder` (default `paths.outputs()`), of one notebook or
    of all: its whole recipe, metrics, machine. A run that several notebooks have comes once.

    Unfinished runs are left out, and those of an older `RESULTS_VERSION`, whose ids say less than
    today's; an empty folder gives an empty table. `collapsed` names the
    metrics of a run that are no numbers, as those of an encoder that gives all sentences one
    vector; `machine` is the processor or GPU that it ran on, `rules` the version of SDA's rules if
    it used them.

    Raises:
        ValueError: a file of a finished run is missing or damaged.
    """
    rows: dict[str, dict[str, object]] = {}
    for path in sorted(Path(folder or paths.outputs()).glob(f"{notebook}/*/metrics.json")):
        params = read_json(path.with_name("params.json"))
        if path.parent.name in rows or params.get("results_version") != RESULTS_VERSION:
            continue
        env, metrics = read_json(path.with_name("env.json")), read_json(path)
        hashes, resolved = params.pop("data", {}), params.pop("resolved", {})
        row = {"notebook": path.parent.parent.name, **resolved, **params, **_with_nan(metrics)}
        row["collapsed"] = " ".join(name for name, value in metrics.items() if value is None)
        row |= {k: env.get(k) for k in ("machine", "device", "threads", "commit", "dirty")}
        row |= {"torch": env.get("versions", {}).get("torch")}
        row |= {"data": json.dumps(hashes, sort_keys=True)}
        rows[path.parent.name] = row | {n: int(v) for n, v in hashes.items() if n == "rules"}
    return pd.DataFrame(list(rows.values()))
