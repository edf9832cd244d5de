"""A run's folder: parameters, metrics and environment, written atomically; and the table of all
runs."""

import hashlib
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import torch

from lib import paths
from lib.data import files
from lib.data.files import write_json, write_text

RESULTS_VERSION = 2
COMMIT = "commit.json"
CODE = ("lib", "workflow", "pyproject.toml", "constraints.txt")  # what decides a run's numbers
_PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "numpy",
    "scipy",
    "scikit-learn",
    "spacy",
    "nltk",
)


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
    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    device = torch.device(device)
    return {
        "python": platform.python_version(),
        "versions": versions,
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
        return _read(paths.ROOT / COMMIT)
    status = _git("status", "--porcelain", "--untracked-files=no", "--", *CODE)
    known = _git("rev-parse", "HEAD") or None
    return {"commit": known, "dirty": None if status is None else bool(status)}


def _git(*arguments: str) -> str | None:
    """What git says of the project; None where there is no git or no repository."""
    try:
        git = subprocess.run(
            ["git", *arguments], cwd=paths.ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return git.stdout.strip() if git.returncode == 0 else None


def cpu_name() -> str:
    """Model name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


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

    def with_seed(self, seed: int) -> "Run":
        """The run of the same parameters and data with another seed."""
        outputs = self.folder.parent.parent
        return Run(self.notebook, self.recipe, seed, self.params, self.data, outputs)

    @property
    def metrics(self) -> dict[str, float] | None:
        """What `finish` saved, or None while the run is not finished; a metric that is no number is
        NaN.

        Raises:
            ValueError: `metrics.json` is damaged.
        """
        path = self.folder / "metrics.json"
        return (
            {k: math.nan if v is None else v for k, v in _read(path).items()}
            if path.exists()
            else None
        )

    def start(
        self,
        device: str | torch.device = "cpu",
        anew: bool = False,
        resolved: Mapping[str, object] | None = None,
        **ran: object,
    ) -> None:
        """Write `params.json` and `env.json`.

        Args:
            device: as `environment`; ran: what else is recorded of how it runs.
            anew: the run may have been finished; from now on it is not, until `finish`.
            resolved: the whole recipe, fields without effect and defaults included.
        """
        if anew:
            (self.folder / "metrics.json").unlink(missing_ok=True)
        content = {
            "run_id": self.id,
            "recipe": self.recipe,
            "seed": self.seed,
            "results_version": RESULTS_VERSION,
        }
        content |= {**self.params, "resolved": dict(resolved or {}), "data": self.data}
        write_json(self.folder / "params.json", content)
        write_json(self.folder / "env.json", environment(device) | ran)

    def finish(self, metrics: Mapping[str, object], history: list[dict] | None = None) -> None:
        """Write `history.csv` and `metrics.json` (flat, the unit in the key; null for what is no
        number)."""
        if history is not None:
            write_text(self.folder / "history.csv", pd.DataFrame(history).to_csv(index=False))
        write_json(self.folder / "metrics.json", {k: _plain(v) for k, v in metrics.items()})

    def elsewhere(self) -> "Run | None":
        """The finished run of this id that another notebook has left beside this one's folder: the
        same id means the same parameters, data and seed, so training again would only repeat
        it."""
        found = sorted(self.folder.parent.parent.glob(f"*/{self.id}/metrics.json"))
        if not found:
            return None
        other = copy(self)
        other.folder = found[0].parent
        other.notebook = other.folder.parent.name
        return other

    def remains(self) -> bool:
        """Whether processes that were killed left something in the folder."""
        return bool(files.remains(self.folder))

    def sweep(self) -> None:
        """Remove what processes that were killed left in the folder."""
        files.sweep_folder(self.folder)

    def history(self) -> pd.DataFrame:
        """The steps of the training."""
        return pd.read_csv(self.folder / "history.csv")


def _plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(path: Path) -> dict:
    """A JSON object of a run's folder.

    Raises:
        ValueError: it is not there or damaged; the message names it.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): remove its folder, and that run is made again"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} is damaged (no JSON object): remove its folder, and that run is made again"
        )
    return content


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
        if path.parent.name in rows:
            continue
        params = _read(path.with_name("params.json"))
        if params.get("results_version") != RESULTS_VERSION:
            continue
        env = _read(path.with_name("env.json"))
        metrics = _read(path)
        hashes, resolved = params.pop("data", {}), params.pop("resolved", {})
        row = {"notebook": path.parent.parent.name, **resolved, **params}
        row |= {name: math.nan if value is None else value for name, value in metrics.items()}
        row["collapsed"] = " ".join(name for name, value in metrics.items() if value is None)
        row["machine"] = env.get("machine") or env.get("gpu") or env.get("cpu")
        row |= {name: env[name] for name in ("device", "threads", "commit", "dirty") if name in env}
        row["torch"] = (env.get("versions") or {}).get("torch")
        row["data"] = json.dumps(hashes, sort_keys=True)
        rows[path.parent.name] = row | (
            {"rules": int(hashes["rules"])} if "rules" in hashes else {}
        )
    return pd.DataFrame(list(rows.values()))
