"""The training loop: batch → embeddings → loss → step → dev score → best and last weights."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from lib.checked import Checked, made, setting
from lib.encoder import Encoder
from lib.encoder.device import resolve_device, resolve_precision
from lib.training import checkpoint, losses
from lib.training.batches import Feed, prefetched
from lib.training.distributed import Group
from lib.training.forward import Forward, compiles
from lib.training.objective import Objective
from lib.training.optimizer import learning_rate, make_optimizer, set_learning_rate
from lib.training.recipe import Recipe
from lib.training.state import Dev, Result, State, dropout_seed, is_better

__all__ = ["Result", "discard_checkpoint", "dropout_seed", "evaluates_after", "fit", "is_better"]

FLUSH_EVERY = 20
MOST_STEPS = 10_000_000


class Options(Checked):
    """How long a training takes and where it runs.

    Attributes:
        max_steps: optimiser steps; None is the recipe's epochs.
        eval_every: steps between dev scores; None: the recipe's.
        resume: continue from the checkpoint in `out`.
        device, precision: as `lib.encoder.device`.
        compile: `torch.compile`, on a GPU with CUDA graphs; None: where it is quicker
            (`lib.training.forward.compiles`).
        checkpoint_minutes: at least so long between checkpoints, each of which follows a dev score
            (or an interruption from the keyboard); 0 writes one after every dev score.
        progress: whether a bar is shown.
    """

    max_steps: int | None = setting(None, ge=0, le=MOST_STEPS)
    eval_every: int | None = setting(None, ge=1)
    resume: bool = setting(True)
    device: str = setting("auto")
    precision: str = setting("auto")
    compile: bool | None = setting(False)
    checkpoint_minutes: float = setting(0.0, ge=0)
    progress: bool = setting(False)


def fit(
    encoder: Encoder, feed: Feed, *, dev: Dev | None = None, out: Path | None = None, **options
) -> Result:
    """Train `encoder` on `feed` as its recipe says; on return it holds the **last** weights.

    With `out` a training can be stopped at any time, by Ctrl-C too, and goes on from the checkpoint
    there; the result equals an uninterrupted run's bit for bit on a CPU. Whatever decides the
    numbers must be the same: text, hard negatives, initial weights, recipe, seed, precision. A
    damaged checkpoint is set aside with a warning, and the training begins anew. A finished
    training is not done again: its result comes back, until `discard_checkpoint(out)`.

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

    Source: the loop of SimCSE (Gao et al. 2021); checkpoint selection by dev score as in their §6.
    """
    own = made(Options, options, "a training")
    recipe = feed.recipe
    total = recipe.epochs * len(feed) if own.max_steps is None else own.max_steps
    eval_every = recipe.eval_every if own.eval_every is None else own.eval_every
    group = Group(resolve_device(own.device))
    group.check_shares(feed.order.sizes)
    precision = resolve_precision(own.precision, group.device)
    compile = compiles(own.compile, group.device, total, recipe, group.size)
    settings = dict(steps=total, eval_every=eval_every, precision=precision, compile=compile)
    objective = Objective(recipe, feed.seed)
    monitor = Monitor(recipe, total, own.progress and group.is_main)
    with (
        Forward(encoder, recipe, group, feed.seed, precision, compile) as forward,
        _interrupts() as interrupted,
    ):
        forward.say = monitor.say
        optimizer = make_optimizer(encoder, recipe)
        state = State(forward, optimizer, feed, out, own.checkpoint_minutes, **settings)
        if own.resume:
            state.restore()
        encoder.train()
        monitor.begin(state.result)
        done = state.result.steps
        end = done if state.result.stopped_early else total
        for step, batch in prefetched(feed.steps(done, end, group.share, forward.widths)):
            lr = set_learning_rate(optimizer, learning_rate(recipe, step, total))
            z = forward(batch, step)  # role → (N, d): every process sees the rows of all
            loss = objective(z, step)
            group.backward(loss)
            if recipe.grad_clip:
                torch.nn.utils.clip_grad_norm_(encoder.parameters(), recipe.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            monitor.add(step, loss, objective.compared(z), lr)
            if evaluates_after(step + 1, total, len(feed), recipe, eval_every):
                with monitor.paused():
                    state.score(dev)
                    ends = state.result.stopped_early or step + 1 == total
                    state.save(last=ends)
                if ends:
                    break
            if interrupted:
                with monitor.paused():
                    state.save()
                raise KeyboardInterrupt
        monitor.close(feed)
    encoder.eval()
    state.write_models()
    group.wait()
    return state.result


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that a first Ctrl-C fills, so that the step under way ends and is saved; a second one
    stops at once."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: object) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, usual)


def evaluates_after(steps: int, total: int, epoch: int, recipe: Recipe, eval_every: int) -> bool:
    """Whether a dev score follows when `steps` of `total` steps have been taken, `epoch` of them in
    an epoch.

    Example:
        >>> from lib.training.recipe import recipe
        >>> [s for s in range(1, 8) if evaluates_after(s, 7, 100, recipe("mini_simcse"), 3)]
        [3, 6, 7]
    """
    counted = (steps - 1) % epoch + 1 if recipe.eval_restarts else steps
    epoch_ends = recipe.eval_at_epoch_ends and steps % epoch == 0
    return counted % eval_every == 0 or epoch_ends or steps == total


def discard_checkpoint(out: Path) -> None:
    """Remove what `fit` needs to go on in `out`; `best/` and `last/` stay."""
    checkpoint.discard(out)


class Monitor:
    """History, clock and progress bar of a training; losses are fetched from the device twenty
    steps at a time."""

    def __init__(self, recipe: Recipe, total: int, progress: bool):
        self.recipe = recipe
        self.result = Result()
        self.pending: list[tuple[int, tuple[str, ...], Tensor, float]] = []
        self.bar = tqdm(total=total, disable=not progress, unit="step")
        self.clock = time.perf_counter()
        self.waiting = False

    def begin(self, result: Result) -> None:
        """The first step follows, or that at which an interrupted training is taken up."""
        self.result = result
        self.bar.update(result.steps)
        self.clock = time.perf_counter()

    def say(self, text: str) -> None:
        """Why the bar stands still; the next step takes it away."""
        self.waiting = True
        self.bar.set_description(text)

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
        self.pending.append((step, tuple(measured), torch.stack(list(measured.values())), lr))
        self.result.steps = step + 1
        if self.waiting:
            self.waiting = False
            self.bar.set_description("")
        self.bar.update()
        if len(self.pending) >= FLUSH_EVERY:
            self._fetch()

    def _fetch(self) -> None:
        if not self.pending:
            return
        numbers = iter(torch.cat([values for _, _, values, _ in self.pending]).tolist())
        for step, names, _, lr in self.pending:
            measured = {name: next(numbers) for name in names}
            loss = measured["loss"]
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} at step {step + 1} (lr {lr:.1e}, temperature"
                    f" {self.recipe.temperature}): lower the learning rate, raise the"
                    " temperature, or use precision='fp32'"
                )
            self.result.history.append({"step": step + 1, **measured, "lr": lr})
        self.pending = []
        self.bar.set_postfix(loss=f"{self.result.history[-1]['loss']:.3f}", refresh=False)

    def close(self, feed: Feed) -> None:
        """The end of the training: the bar goes, the speed is known."""
        self.bar.close()
        sentences = self.result.steps * feed.order.rows / len(feed)
        self.result.sentences_per_second = sentences / max(self.result.seconds, 1e-9)
