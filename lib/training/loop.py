"""The training loop: batch → embeddings → loss → step → dev score → best and last weights."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from lib.checked import Checked, setting, validated
from lib.encoder import Encoder
from lib.encoder.device import resolve_device, resolve_precision
from lib.training import losses
from lib.training.batches import Feed, prefetched
from lib.training.forward import Forward, ProcessGroup
from lib.training.losses import Objective
from lib.training.recipe import Recipe
from lib.training.state import Dev, Result, State

FLUSH_EVERY = 20
MOST_STEPS = 10_000_000


class Options(Checked):
    """How long a training takes and where it runs.

    Attributes:
        max_steps: optimiser steps; None is the recipe's epochs.
        eval_every: steps between dev scores; None: the recipe's.
        device, precision: as `lib.encoder.device`.
        compile: `torch.compile`, on a GPU with CUDA graphs.
        checkpoint_minutes: at least so long between checkpoints, each of which follows a dev
            score; 0 writes one after every dev score.
        progress: whether a bar is shown.
    """

    max_steps: int | None = setting(None, ge=0, le=MOST_STEPS)
    eval_every: int | None = setting(None, ge=1)
    device: str = setting("auto")
    precision: str = setting("auto")
    compile: bool = setting(False)
    checkpoint_minutes: float = setting(0.0, ge=0)
    progress: bool = setting(False)


def fit(
    encoder: Encoder, feed: Feed, *, dev: Dev | None = None, out: Path | None = None, **options
) -> Result:
    """Train `encoder` on `feed` as its recipe says; on return it holds the **last** weights.

    With `out` a training can be stopped at any time, by Ctrl-C too, and goes on from the checkpoint
    there; in one process on a CPU the result equals an uninterrupted run's bit for bit. Whatever
    decides the numbers must be the same: text, hard negatives, initial weights, recipe, seed,
    precision. A finished training is not done again: its result comes back, until
    `out / checkpoint.NAME` is deleted.

    Args:
        feed: text, recipe and seed of the training.
        dev: score of an encoder, higher is better; called in evaluation mode, every `eval_every`
            steps and at the end.
        out: folder for the checkpoint, and at the end for `best/` and `last/`; None keeps all in
            memory.
        options: as `Options`.

    Raises:
        FloatingPointError: the loss is not finite; the message names the step.
        ValueError: a recipe field without meaning here, a batch that does not divide among the
            processes, or a checkpoint of another training; the message names what differs.

    Source: the loop of SimCSE (Gao et al. 2021); checkpoint selection by dev score as in their
        appendix A.
    """
    chosen = validated(Options, options, "a training")
    recipe = feed.recipe
    total = recipe.epochs * len(feed) if chosen.max_steps is None else chosen.max_steps
    eval_every = chosen.eval_every or recipe.eval_every
    group = ProcessGroup(resolve_device(chosen.device))
    group.check(feed.order.sizes)
    precision = resolve_precision(chosen.precision, group.device)
    objective = Objective(recipe, feed.seed)
    forward = Forward(encoder, recipe, group, feed.seed, precision, chosen.compile)
    with forward:
        optimizer = make_optimizer(encoder, recipe)
        state = State(forward, optimizer, feed, out, steps=total, eval_every=eval_every)
        state.restore()
        encoder.train()
        monitor = Monitor(state.result, total, chosen.progress and group.is_main)
        done = state.result.steps
        end = done if state.result.stopped_early else total
        for step, batch in prefetched(feed.steps(done, end, group.share, forward.widths)):
            lr = learning_rate(recipe, step, total)
            for parameters in optimizer.param_groups:
                parameters["lr"] = lr
            z = forward(batch, step)  # role → (N, d): every process sees the rows of all
            loss = objective(z, step)
            loss.backward()
            if recipe.grad_clip:
                torch.nn.utils.clip_grad_norm_(encoder.parameters(), recipe.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            monitor.add(step, loss, objective.compared(z), lr)
            if evaluates_after(step + 1, total, len(feed), recipe, eval_every):
                with monitor.paused():
                    state.score(dev)
                    ends = state.result.stopped_early or step + 1 == total
                    state.save(0 if ends else chosen.checkpoint_minutes)
                if ends:
                    break
        monitor.close(feed)
    encoder.eval()
    state.write_models()
    group.wait()
    return state.result


def evaluates_after(
    steps: int, total: int, epoch_steps: int, recipe: Recipe, eval_every: int
) -> bool:
    """Whether a dev score follows when `steps` of `total` steps have been taken, `epoch_steps` of
    them in an epoch.

    Example:
        >>> from lib.training.recipe import recipe
        >>> [s for s in range(1, 8) if evaluates_after(s, 7, 100, recipe("mini_simcse"), 3)]
        [3, 6, 7]
    """
    counted = (steps - 1) % epoch_steps + 1 if recipe.eval_restarts else steps
    epoch_ends = recipe.eval_at_epoch_ends and steps % epoch_steps == 0
    return counted % eval_every == 0 or epoch_ends or steps == total


def learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """Learning rate of step `step` (from 0) of `total`: warm-up, then linear decay to 0 or
    constant.

    The warm-up takes the first w = ⌈`warmup` · total⌉ steps. Step s < w has the learning rate
    lr · (s + 1) / w, with `warmup_from_zero` lr · s / w, as
    `transformers.get_linear_schedule_with_warmup` gives it.

    Example:
        >>> from lib.training.recipe import recipe
        >>> [round(learning_rate(recipe("mini_simcse", lr=1.0), s, 4), 2) for s in range(4)]
        [1.0, 0.75, 0.5, 0.25]
    """
    warm = math.ceil(recipe.warmup * total)
    if step < warm:
        return recipe.lr * (step if recipe.warmup_from_zero else step + 1) / warm
    if recipe.schedule == "constant":
        return recipe.lr
    return recipe.lr * (total - step) / max(1, total - warm)


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW as the recipe says; biases and the weights of normalisations are not decayed."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if recipe.bias_correction:
        return torch.optim.AdamW(groups, lr=recipe.lr, eps=recipe.adam_eps, fused=True)
    return UncorrectedAdamW(groups, lr=recipe.lr, eps=recipe.adam_eps)


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW whose moments, which begin at 0, are taken as they are: its first steps are longer.

    m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
    p ← p − lr · m / (√v + ε),   then  p ← p − lr · weight_decay · p

    Args:
        groups: of parameters, each with its `weight_decay`.
        settings: lr, betas and eps, the symbols above, as of `torch.optim.AdamW`.

    Relations:
        `torch.optim.AdamW` divides m by 1 − β₁ᵗ and v by 1 − β₂ᵗ at step t: a first step of lr,
        where this one takes 0.1 / √0.001 = 3.2 times as much. Here it counts from a t at which both
        are 1, and decays nothing itself.

    Example:
        >>> p = nn.Parameter(torch.zeros(1))
        >>> p.grad = torch.ones(1)
        >>> UncorrectedAdamW([{"params": [p], "weight_decay": 0.0}], lr=1.0).step()
        >>> round(p.item(), 3)
        -3.162

    Source: the optimiser of BERT (Devlin et al. 2019); `correct_bias=False` in ConSERT's code.
    """

    def __init__(self, groups: list[dict], **settings: Any):
        self.decays = [group["weight_decay"] for group in groups]
        super().__init__([{**g, "weight_decay": 0.0} for g in groups], foreach=True, **settings)
        for p in [p for group in groups for p in group["params"]]:
            moments = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
            self.state[p] = {"step": torch.tensor(1e6), **moments}  # 0.999^1e6 is 0

    @torch.no_grad()
    def step(self, closure=None) -> None:  # type: ignore[override]
        """One step for every parameter that has a gradient."""
        super().step()
        for group, decay in zip(self.param_groups, self.decays, strict=True):
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                torch._foreach_mul_(parameters, 1 - group["lr"] * decay)


class Monitor:
    """History, clock and progress bar of a training; losses are fetched from the device twenty
    steps at a time."""

    def __init__(self, result: Result, total: int, progress: bool):
        self.result = result
        self.pending: list[tuple[int, list[str], Tensor, float]] = []
        self.bar = tqdm(initial=result.steps, total=total, disable=not progress, unit="step")
        self.clock = time.perf_counter()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While open the clock stands, and every loss so far is in the history."""
        self._fetch()
        start = time.perf_counter()
        self.result.seconds += start - self.clock
        yield
        self.clock = time.perf_counter()
        self.result.dev_seconds += self.clock - start

    def add(self, step: int, loss: Tensor, z: dict[str, Tensor], lr: float) -> None:
        """A step was taken."""
        pair = z["anchor"], z.get("positive", z["anchor"])
        measured = {"loss": loss.detach()} | losses.batch_measures(*pair, z.get("negative"))
        self.pending.append((step + 1, list(measured), torch.stack(list(measured.values())), lr))
        self.result.steps = step + 1
        self.bar.update()
        if len(self.pending) >= FLUSH_EVERY:
            self._fetch()

    def _fetch(self) -> None:
        for step, names, numbers, lr in self.pending:
            measured = dict(zip(names, numbers.tolist(), strict=True))
            if not math.isfinite(loss := measured["loss"]):
                raise FloatingPointError(f"loss is {loss} at step {step} of lr {lr:.1e}: lower it")
            self.result.history.append({"step": step, **measured, "lr": lr})
            self.bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self.pending = []

    def close(self, feed: Feed) -> None:
        """The end of the training: the bar goes, the speed is known."""
        self.bar.close()
        sentences = self.result.steps * feed.order.rows / len(feed)
        self.result.sentences_per_second = sentences / max(self.result.seconds, 1e-9)
