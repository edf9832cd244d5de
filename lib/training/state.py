"""What a training carries from step to step, kept in its checkpoint and taken up from it bit for
bit."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from lib.encoder import Encoder
from lib.training import checkpoint
from lib.training.batches import Feed
from lib.training.checkpoint import fingerprint
from lib.training.forward import Forward
from lib.training.seeds import dropout_seed

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
        result.stopped_early = self.group.broadcast(0 < self.patience <= stale)
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
        checkpoint.write(self.out, state)
        self.saved = monotonic()

    def restore(self) -> None:
        """Take up the checkpoint if there is one.

        Raises:
            ValueError: it is damaged, or of another training; the message names what differs.
        """
        if self.out is None:
            return
        state = checkpoint.read(self.out)
        self.group.wait()  # every process has read it
        if state is None:
            return
        there, here = state["identity"], self.identity
        if other := ", ".join(name for name in here if there.get(name) != here[name]):
            path = self.out / checkpoint.NAME
            raise ValueError(f"{path} is of a training with other {other}: delete it")
        self.encoder.load_trained_state(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.memory is not None:
            self.memory.load(state["memory"])
        vars(self.result).update(state["result"])
        torch.set_rng_state(state["random"])
        if self.group.device.type == "cuda":
            torch.cuda.set_rng_state(state["random on the GPU"], self.group.device)
        self._reseed()

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


def is_better(score: float, best: float) -> bool:
    """Whether a dev score is a new best; a score that is no number, of a collapsed encoder, never
    is.

    Example:
        >>> is_better(2.0, 1.0), is_better(1.0, math.nan), is_better(math.nan, math.nan)
        (True, True, False)
    """
    return score > best or (math.isnan(best) and not math.isnan(score))


def _copy(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in state.items()}
