"""What a training carries from step to step, kept in one file, its checkpoint, and taken up from it
bit for bit."""

import hashlib
import io
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from lib.data import files
from lib.encoder import Encoder
from lib.training.batches import Feed
from lib.training.forward import Forward

NAME = "checkpoint.pt"
DAMAGED = "checkpoint.damaged"
Dev = Callable[[Encoder], float]


@dataclass
class Result:
    """What a training left behind.

    Attributes:
        history: one dict a step: `step`, `loss` (nats, times the recipe's `loss_weight`),
            `losses.batch_measures`, `lr`, and on evaluated steps `dev_score`.
        best_step, best_score: where the dev score was highest; None without `dev`.
        best_state: what the training had changed by that step (`Encoder.trained_state`); the
            encoder itself is left at the last step.
        steps, seconds, sentences_per_second: totals; the seconds are those of the steps, with
            their batches and, where it is asked for, compilation.
        dev_seconds: dev scores and checkpoints.
        stopped_early: True if patience ran out.
    """

    history: list[dict] = field(default_factory=list)
    best_step: int | None = None
    best_score: float | None = None
    best_state: dict[str, Tensor] | None = None
    steps: int = 0
    seconds: float = 0.0
    dev_seconds: float = 0.0
    sentences_per_second: float = 0.0
    stopped_early: bool = False


class State:
    """Encoder, optimiser, queue, random numbers, history and the best weights so far.

    Args:
        forward: encoder, processes and queue of the training; the encoder is on its device.
        optimizer: of the encoder.
        feed: text, recipe and seed.
        out: folder of the checkpoint and the finished models; None keeps all in memory.
        settings: what else decides the numbers, such as the number of steps.
    """

    def __init__(
        self, forward: Forward, optimizer: Optimizer, feed: Feed, out: Path | None, **settings: int
    ):
        self.encoder, self.group, self.memory = forward.encoder, forward.group, forward.memory
        self.optimizer, self.out = optimizer, out
        self.seed, self.patience = feed.seed, feed.recipe.patience
        self.result = Result()
        self.saved = monotonic()
        torch.manual_seed(dropout_seed(feed.seed, self.group.rank))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            settings |= {"processes": self.group.size, "compile": forward.compiled}
            machine = {"device": self.group.device.type, "precision": forward.precision}
            self.identity = identity_of(self.encoder, feed) | settings | machine

    def score(self, dev: Dev | None) -> None:
        """Score on dev, keep the weights if they are the best, and see whether patience has run
        out."""
        result = self.result
        if dev is not None and self.group.is_main:
            self.encoder.eval()
            score = float(dev(self.encoder))
            self.encoder.train()
            result.history[-1]["dev_score"] = score
            if result.best_score is None or is_better(score, result.best_score):
                result.best_score, result.best_step = score, result.steps
                result.best_state = _copy(self.encoder.trained_state())
        stale = sum("dev_score" in row for row in result.history[result.best_step :])
        result.stopped_early = self.group.agree(0 < self.patience <= stale)
        self._reseed()

    def save(self, minutes: float = 0.0) -> None:
        """Write the checkpoint, unless the last one is younger; only the main process does."""
        young = monotonic() - self.saved < 60 * minutes
        if self.out is None or not self.group.is_main or young:
            return
        state: dict[str, Any] = {"identity": self.identity, "result": vars(self.result)}
        state["model"] = self.encoder.trained_state()
        state["optimizer"] = self.optimizer.state_dict()
        state["memory"] = self.memory and self.memory.state()
        state["random"] = torch.get_rng_state()
        if self.group.device.type == "cuda":
            state["random on the GPU"] = torch.cuda.get_rng_state(self.group.device)
        write(self.out, state)
        self.saved = monotonic()

    def restore(self) -> None:
        """Take up the checkpoint if there is one; a damaged one is set aside.

        Raises:
            ValueError: it is of another training; the message names what differs.
        """
        if self.out is None or (state := self._found(self.out)) is None:
            return
        there, here = state["identity"], self.identity
        if other := ", ".join(name for name in here if there.get(name) != here[name]):
            raise ValueError(f"{self.out / NAME} is of a training with other {other}: delete it")
        self.encoder.load_trained_state(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.memory is not None:
            self.memory.load(state["memory"])
        vars(self.result).update(state["result"])
        torch.set_rng_state(state["random"])
        if self.group.device.type == "cuda":
            torch.cuda.set_rng_state(state["random on the GPU"], self.group.device)
        self._reseed()

    def _found(self, out: Path) -> dict[str, Any] | None:
        state, damage = None, None
        try:
            state = read(out)
        except ValueError as error:
            damage = error
        self.group.wait()  # every process has read it
        if damage is not None and self.group.is_main:
            os.replace(out / NAME, out / DAMAGED)
            warnings.warn(f"{damage}: set aside, the training starts at step 0", stacklevel=2)
        return state

    def _reseed(self) -> None:
        """In processes that write no checkpoint, make dropout from here on a function of the step
        alone."""
        if not self.group.is_main:
            torch.manual_seed(dropout_seed(self.seed, self.group.rank, self.result.steps))

    def write_models(self) -> None:
        """Write the folders `last` and, with a dev score, `best`; the encoder keeps its last
        weights."""
        if self.out is None or not self.group.is_main:
            return
        self.encoder.save(self.out / "last")
        if self.result.best_state is not None:
            last = _copy(self.encoder.trained_state())
            self.encoder.load_trained_state(self.result.best_state)
            self.encoder.save(self.out / "best")
            self.encoder.load_trained_state(last)


def identity_of(encoder: Encoder, feed: Feed) -> dict[str, object]:
    """What decides the numbers of a training: a checkpoint of another one is not continued."""
    text = [part for view in feed.views for part in (view.ids, view.offsets, str(view.pad_id))]
    weights = [part for pair in sorted(encoder.state_dict().items()) for part in pair]
    some = np.arange(min(256, len(feed.views[0])))
    return {
        **feed.recipe.values(),
        "seed": feed.seed,
        "text": fingerprint(text),
        "hard negatives": fingerprint(feed.negatives(some, 0) if feed.negatives else []),
        "initial weights": fingerprint(weights),
        "encoder": dict(encoder.settings),
    }


def fingerprint(parts: Iterable[Tensor | np.ndarray | str]) -> str:
    """16 hexadecimal digits that change with any bit of any part.

    Example:
        >>> fingerprint(["a", torch.zeros(2)]) == fingerprint(["a", torch.tensor([0.0, 1e-9])])
        False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            part = part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).data)
    return digest.hexdigest()[:16]


def write(folder: Path, state: Mapping[str, Any]) -> None:
    """Write `folder`'s checkpoint after its SHA-256: complete, or the older one stays."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()  # no copy: a large model's has gigabytes
    with files.written(folder / NAME) as temporary, open(temporary, "wb") as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)


def read(folder: Path) -> dict[str, Any] | None:
    """What `write` wrote, on the CPU; None if there is no checkpoint.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / NAME
    if not path.exists():
        return None
    content = memoryview(path.read_bytes())  # slices of it are no copies
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError(f"{path} is damaged")
    return torch.load(io.BytesIO(content[32:]), "cpu", weights_only=True)


def discard(folder: Path) -> None:
    """Remove the checkpoint and what killed writers left of it."""
    files.sweep(folder / NAME)
    for name in (NAME, DAMAGED):
        (folder / name).unlink(missing_ok=True)


def is_better(score: float, best: float) -> bool:
    """Whether a dev score is a new best; a score that is no number, of a collapsed encoder, never
    is.

    Example:
        >>> is_better(2.0, 1.0), is_better(1.0, math.nan), is_better(math.nan, math.nan)
        (True, True, False)
    """
    return score > best or (math.isnan(best) and not math.isnan(score))


def dropout_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a process's dropout from `step` on: the run's own in the main process.

    Those of the other processes are independent of it, of each other and of other runs'.

    Example:
        >>> dropout_seed(42, 0), dropout_seed(42, 1) == dropout_seed(43, 0)
        (42, False)
    """
    if rank == 0:
        return seed
    return int(np.random.SeedSequence([seed, rank, step], spawn_key=(1,)).generate_state(1)[0])


def _copy(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in state.items()}
