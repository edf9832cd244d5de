"""The training loop: views → one forward pass → loss → step → dev score → best and last checkpoint."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recomputed
from tqdm import tqdm

from lib import checkpoint, losses
from lib.augment import augment
from lib.augment.discrete import MASK_TOKEN
from lib.augment.embeddings import EmbeddingViews
from lib.augment.representations import REPRESENTATIONS
from lib.augment.tfidf import TfidfModel
from lib.augment.una import UNA
from lib.batches import BucketBatches
from lib.device import resolve_device, resolve_precision
from lib.distributed import Group
from lib.encoder import Encoder
from lib.files import sweep
from lib.optimizer import learning_rate, make_optimizer
from lib.recipes import Recipe, check_whole_number
from lib.tokens import TokenRows, tokenise

Negative = Callable[[np.ndarray, int], tuple[Tensor, Tensor]]
LOSSES: dict[str, Callable[..., Tensor]] = {
    "info_nce": losses.info_nce,
    "nt_xent": losses.nt_xent,
    "nt_xent_sum": partial(losses.nt_xent, reduction="sum"),
    "simsiam": losses.simsiam_of_both,
}
FLUSH_EVERY = 10


@dataclass
class Result:
    """What a training left behind.

    Attributes:
        history: one dict a step: `step`, `loss` (nats, times the recipe's `loss_weight`),
            `in_batch_accuracy` in [0, 1], `lr`, and on
            evaluated steps `dev_score`.
        best_step, best_score: where the dev score was highest; None without `dev`.
        best_state: what the training had changed by that step (`Encoder.trained_state`), on the CPU;
            the encoder itself is left at the last step.
        steps, seconds, sentences_per_second: totals, evaluation not counted in the seconds.
        stopped_early: True if patience ran out.
    """

    history: list[dict] = field(default_factory=list)
    best_step: int | None = None
    best_score: float | None = None
    best_state: dict[str, Tensor] | None = None
    steps: int = 0
    seconds: float = 0.0
    sentences_per_second: float = 0.0
    stopped_early: bool = False


def make_views(
    sentences: Sequence[str],
    recipe: Recipe,
    tokenizer,
    seed: int = 0,
    progress: bool = False,
    aligned: Sequence[str] | None = None,
) -> list[TokenRows]:
    """Token rows of the views that `recipe` asks for, aligned row by row.

    One entry for `positive="identical"` (one encoding serves as both views), else two; with dropout as the
    only augmentation both entries are the same rows.

    Args:
        aligned: the positives of `positive="file"` and "sda", line i belonging to sentence i.

    Raises:
        ValueError: `aligned` is missing or has another number of lines; or `positive="mask"` and the
            tokenizer has no mask token.
    """
    if recipe.positive == "mask" and tokenizer.mask_token is None:
        raise ValueError(
            "positive='mask' needs a tokenizer with a mask token, which this model's does not have: "
            "choose another augmentation, e.g. 'delete'"
        )
    rows_of = partial(tokenise, tokenizer=tokenizer, max_length=recipe.max_length, progress=progress)
    first = rows_of(sentences)
    if recipe.positive == "identical":
        return [first]
    if recipe.positive == "dropout":
        return [first, first]
    if recipe.positive in ("file", "sda"):
        if aligned is None or len(aligned) != len(sentences):
            found = "none was given" if aligned is None else f"{len(aligned):,} lines"
            need = f"positive={recipe.positive!r} needs one line for each of {len(sentences):,} sentences"
            raise ValueError(f"{need}: {found}")
        return [first, rows_of(aligned)]
    changed = augment(recipe.positive, sentences, recipe.positive_rate, seed, recipe.synonyms)
    if recipe.positive == "mask":
        changed = [s.replace(MASK_TOKEN, tokenizer.mask_token) for s in changed]
    return [first, rows_of(changed)]


class Negatives:
    """Hard negatives of a corpus as model input, drawn afresh for every step and cut into tokens by the tokenizer.

    Args:
        sentences: the training text, whose rows are asked for.
        recipe: β, r, the two ways to draw and `max_length`.
        seed: of the draws.
        more: further text that the TF-IDF model is fitted on, e.g. the paraphrases.

    Source: Shu & Lampos 2024 (UNA), Algorithm 1.
    """

    def __init__(self, sentences: Sequence[str], recipe: Recipe, tokenizer, seed: int = 0, more: Sequence[str] = ()):
        self.model = TfidfModel.fit(chain(sentences, more))
        self.terms = self.model.encode(sentences)
        radius = recipe.radius * (len(self.model.terms) if 0 < recipe.radius < 1 else 1)
        self.una = UNA(
            self.model,
            recipe.beta,
            math.ceil(radius),
            select=recipe.negative_select,
            replace=recipe.negative_replace,
            seed=seed,
        )
        self.tokenizer, self.max_length = tokenizer, recipe.max_length

    def __call__(self, rows: np.ndarray, step: int) -> tuple[Tensor, Tensor]:
        """Ids and mask `(n, t)` of the negatives of the sentences `rows`, padded at the right."""
        text = self.strings(rows, step)
        return tokenise(text, self.tokenizer, self.max_length, progress=False)[np.arange(len(text))]

    def strings(self, rows: np.ndarray, step: int) -> list[str]:
        """The same negatives as text, terms joined by blanks."""
        return self.model.strings(self.una(self.terms[rows], rows, epoch=step))


def make_negatives(
    sentences: Sequence[str],
    recipe: Recipe,
    tokenizer,
    seed: int = 0,
    more: Sequence[str] = (),
    negated: Sequence[str] | None = None,
) -> Negative | None:
    """The hard negatives that `recipe` asks for, or None.

    Args:
        negated: the negatives of `negative="sda"`, line i belonging to sentence i.

    Raises:
        ValueError: `negated` is missing or has another number of lines.
    """
    if recipe.negative == "none":
        return None
    if recipe.negative == "una":
        return Negatives(sentences, recipe, tokenizer, seed, more)
    if negated is None or len(negated) != len(sentences):
        raise ValueError(f"negative='sda' needs one negation for each of {len(sentences):,} sentences")
    table = tokenise(negated, tokenizer, recipe.max_length, progress=False)
    return lambda rows, step: table[rows]


def encode_views(
    model,
    views: Sequence[TokenRows],
    rows: np.ndarray,
    device: torch.device,
    more: Sequence[tuple[Tensor, Tensor]] = (),
    embedding_views: EmbeddingViews | None = None,
    generator: torch.Generator | None = None,
    chunk_size: int = 0,
) -> list[Tensor]:
    """Embeddings `(n, d)` of each view, all in ONE forward pass; a single view is returned twice.

    Those of `more`, batches of ids and masks `(n, t)`, follow. `embedding_views` are drawn by `generator`. With a
    `chunk_size` the pass goes chunk by chunk: no activations are kept, the backward pass computes each chunk's again
    with the same dropout, and the gradient is that of the whole batch.

    Source: the chunks are Gao et al. 2021 (GradCache), by PyTorch's activation checkpoints.
    """
    batches, pad_id = [*(view[rows] for view in views), *more], views[0].pad_id
    width = max(ids.shape[1] for ids, _ in batches)
    ids = torch.cat([F.pad(i, (0, width - i.shape[1]), value=pad_id) for i, _ in batches])  # (v·n, t)
    mask = torch.cat([F.pad(m, (0, width - m.shape[1])) for _, m in batches])
    if device.type == "cuda":
        ids, mask = ids.pin_memory(), mask.pin_memory()
    ids, mask = ids.to(device, non_blocking=True), mask.to(device, non_blocking=True)
    sizes = [len(i) for i, _ in batches]
    with nullcontext() if embedding_views is None else embedding_views.drawn(mask, sizes, generator):
        if chunk_size:
            chunks = zip(ids.split(chunk_size), mask.split(chunk_size), strict=True)
            z = torch.cat([recomputed(model, *chunk, use_reentrant=False).float() for chunk in chunks])
        else:
            z = model(ids, mask, sizes).float()
    parts = list(z.split(sizes))
    return parts if len(views) > 1 else [parts[0], *parts]


def fit(
    encoder: Encoder,
    views: Sequence[TokenRows],
    recipe: Recipe,
    *,
    negatives: Negative | None = None,
    seed: int = 42,
    max_steps: int | None = None,
    dev: Callable[[Encoder], float] | None = None,
    eval_every: int | None = None,
    out: Path | None = None,
    resume: bool = True,
    device: str = "auto",
    precision: str = "auto",
    compile: bool = False,
    progress: bool = False,
) -> Result:
    """Train `encoder` on aligned `views` as `recipe` says; on return it holds the **last** weights.

    Args:
        views: as `make_views`.
        negatives: as `make_negatives`; called with the rows of a batch and the step, on every
            `recipe.every`-th.
        seed: of batches and dropout, a whole number from 0.
        max_steps: optimiser steps; None is the recipe's epochs.
        dev: score of an encoder, higher is better; called in evaluation mode, every `eval_every`
            steps (None: the recipe's) and at the end.
        out: folder for `checkpoint.safetensors`, written at every dev score, and at the end for
            `best/` and `last/`; None keeps all in memory.
        resume: continue from `out`'s checkpoint; the result equals an uninterrupted run's bit for
            bit on a CPU in one process. Whatever decides the numbers must be the same: text, hard
            negatives, initial weights, recipe, seed, precision. A damaged checkpoint is set aside
            with a warning, and the training begins anew. A finished training is not done again: its
            result comes back, until `discard_checkpoint(out)`.
        device, precision: as `lib.encoder`.
        compile: `torch.compile`.

    Raises:
        FloatingPointError: the loss is not finite; the message names the step.
        ValueError: views of different lengths, a recipe field without meaning here, a batch that
            holds one sentence or does not divide among the processes, or a checkpoint of another
            training; the message names what differs.

    Source: the loop of SimCSE (Gao et al. 2021); checkpoint selection by dev score as in their §6.
    """
    eval_every = recipe.eval_every if eval_every is None else eval_every
    _check(views, recipe, negatives)
    check_whole_number("seed", seed, 0)
    check_whole_number("eval_every", eval_every, 1)
    if max_steps is not None:
        check_whole_number("max_steps", max_steps, 0)
    group = Group(resolve_device(device))
    torch.manual_seed(dropout_seed(seed, group.rank))
    loop = _Loop(encoder, views, recipe, group, seed, max_steps, negatives)
    loop.precision = resolve_precision(precision, group.device)
    loop.dev, loop.eval_every = dev, eval_every
    if compile:
        loop.compile()
    try:
        if out is not None:
            loop.keep_in(out, resume)
        loop.run(progress)
    finally:
        loop.close()
    if out is not None and group.is_main:
        _write_models(encoder, loop.result, out)
    group.wait()
    return loop.result


def discard_checkpoint(out: Path) -> None:
    """Remove what `fit` needs to go on in `out`; `best/` and `last/` stay."""
    checkpoint.discard(out)


def is_better(score: float, best: float) -> bool:
    """Whether a dev score is a new best; a score that is no number, of a collapsed encoder, never is.

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


def _write_models(encoder: Encoder, result: Result, out: Path) -> None:
    encoder.save(out / "last")
    if result.best_state is None:
        return
    last = _on_cpu(encoder.trained_state())
    encoder.load_trained_state(result.best_state)
    try:
        encoder.save(out / "best")
    finally:
        encoder.load_trained_state(last)


def _on_cpu(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().to("cpu", copy=True) for name, weight in state.items()}


def _check(views: Sequence[TokenRows], recipe: Recipe, negatives: Negative | None) -> None:
    if len({len(v) for v in views}) != 1:
        raise ValueError(f"views must be aligned row by row, got {[len(v) for v in views]} rows")
    if (recipe.negative != "none") != (negatives is not None):
        raise ValueError(f"the recipe's negative is {recipe.negative!r}: pass negatives=make_negatives(…) accordingly")
    if recipe.chunk_size and Group.processes() > 1:
        raise ValueError("chunk_size works in one process only: set chunk_size=0")


class _Loop:
    """State of one training; `run` is the loop, `step` what happens to one batch."""

    dev: Callable[[Encoder], float] | None = None
    eval_every = 1
    precision = "fp32"
    compiled = False
    out: Path | None = None
    identity: dict | None = None

    def __init__(
        self,
        encoder: Encoder,
        views: Sequence[TokenRows],
        recipe: Recipe,
        group: Group,
        seed: int,
        max_steps: int | None,
        negatives: Negative | None,
    ):
        self.encoder, self.views, self.recipe = encoder, views, recipe
        self.group, self.seed, self.negatives = group, seed, negatives
        lengths = np.max([v.lengths for v in views], axis=0)
        self.batches = BucketBatches(lengths, recipe.batch_size, seed, recipe.bucket, recipe.drop_last)
        for size in self.batches.sizes:
            if size == 1:
                raise ValueError(
                    "a batch of one sentence has no other to be told from: "
                    f"batch_size={recipe.batch_size} with {len(lengths):,} sentences leaves one, change it or drop_last"
                )
            group.check_share(size)
        self.total = max_steps if max_steps is not None else recipe.epochs * len(self.batches)
        named = ((recipe.view1, recipe.rate1), (recipe.view2, recipe.rate2))
        in_use = any(name != "none" for name, _ in named)
        self.embedding_views = EmbeddingViews(encoder.backbone, named) if in_use else None
        self.model: Callable[..., Tensor] = group.prepare(encoder)
        self.optimizer = make_optimizer(encoder, recipe)
        self.objective = LOSSES[recipe.loss]
        self.result = Result()
        self.pending: list[tuple[int, Tensor, Tensor, float]] = []
        self.stale = 0

    def compile(self) -> None:
        """Let `torch.compile` make one program of the forward pass."""
        self.model, self.compiled = torch.compile(self.model, dynamic=True), True

    def close(self) -> None:
        """Take the views' hooks off the encoder."""
        if self.embedding_views is not None:
            self.embedding_views.remove()

    def run(self, progress: bool) -> None:
        """Take steps until the total is reached or patience runs out."""
        result = self.result
        self.encoder.train()
        bar = tqdm(total=self.total, initial=result.steps, disable=not progress or not self.group.is_main, unit="step")
        clock = time.perf_counter()
        for step, rows in self.batches.from_step(result.steps):
            if step >= self.total or result.stopped_early:
                break
            self.step(step, rows)
            result.steps = step + 1
            bar.update()
            if len(self.pending) >= FLUSH_EVERY:
                self.flush(bar)
            if self.evaluates_after(result.steps):
                self.flush(bar)
                result.seconds += time.perf_counter() - clock
                self.evaluate()
                clock = time.perf_counter()
        bar.close()
        sentences = result.steps * self.batches.rows / len(self.batches)
        result.sentences_per_second = sentences / max(result.seconds, 1e-9)
        self.encoder.eval()

    def evaluates_after(self, steps: int) -> bool:
        """Whether a dev score follows when `steps` steps have been taken."""
        recipe, epoch = self.recipe, len(self.batches)
        counted = (steps - 1) % epoch + 1 if recipe.eval_restarts else steps
        epoch_ends = recipe.eval_at_epoch_ends and steps % epoch == 0
        return counted % self.eval_every == 0 or epoch_ends or steps == self.total

    def step(self, step: int, rows: np.ndarray) -> None:
        """One optimiser step on the sentences `rows`, of which each process encodes its share."""
        lr = learning_rate(self.recipe, step, self.total)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = lr
        with torch.autocast(self.group.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            z1, z2, *negatives = self.group.gather(self.encode(step, self.group.share(rows)))  # (n, d) each
        loss = self.loss(step, z1, z2, negatives)
        self.group.backward(loss)
        if self.recipe.grad_clip:
            torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), self.recipe.grad_clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.pending.append((step, loss.detach(), losses.in_batch_accuracy(z1, z2), lr))

    def encode(self, step: int, rows: np.ndarray) -> list[Tensor]:
        """Embeddings of both views and, on every `every`-th step, of the hard negatives (twice for `doubled`)."""
        more: list[tuple[Tensor, Tensor]] = []
        if self.negatives is not None and step % self.recipe.every == 0:
            more = [self.negatives(rows, step)] * (2 if self.recipe.negative_mode == "doubled" else 1)
        generator = None if self.embedding_views is None else self.generator(step, self.group.rank)
        device, chunk_size = self.group.device, self.recipe.chunk_size
        return encode_views(self.model, self.views, rows, device, more, self.embedding_views, generator, chunk_size)

    def generator(self, step: int, rank: int = 0) -> torch.Generator:
        """Random numbers of one step, which do not depend on what was drawn before; torch reads 32 bits of a seed."""
        (seed,) = np.random.SeedSequence([self.seed, rank, step]).generate_state(1)
        return torch.Generator(self.group.device).manual_seed(int(seed))

    def loss(self, step: int, z1: Tensor, z2: Tensor, negatives: Sequence[Tensor]) -> Tensor:
        """The objective; `doubled` negatives are anchors with their second encoding as positive."""
        if self.recipe.representation != "none":
            strength = self.recipe.representation_strength
            z2 = REPRESENTATIONS[self.recipe.representation](z2, strength, self.generator(step))
        if len(negatives) == 2:
            z1, z2, negatives = torch.cat([z1, negatives[0]]), torch.cat([z2, negatives[1]]), ()
        if negatives and self.recipe.negative_mode == "margin":
            margin = losses.margin_info_nce(z1, z2, negatives[0], self.recipe.temperature, self.recipe.delta)
            return self.recipe.loss_weight * margin
        return self.recipe.loss_weight * self.objective(z1, z2, self.recipe.temperature, *negatives)

    def flush(self, bar: tqdm) -> None:
        """Move the steps' losses from the device into the history; a loss that is not finite ends the run."""
        for step, loss, accuracy, lr in self.pending:
            value = float(loss)
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the loss is {value} at step {step + 1} (lr {lr:.1e}, temperature {self.recipe.temperature}): "
                    "lower the learning rate, raise the temperature, or use precision='fp32'"
                )
            self.result.history.append(
                {"step": step + 1, "loss": value, "in_batch_accuracy": float(accuracy), "lr": lr}
            )
        self.pending = []
        if self.result.history:
            bar.set_postfix(loss=f"{self.result.history[-1]['loss']:.3f}", refresh=False)

    def evaluate(self) -> None:
        """Score on dev, keep the best weights, write the checkpoint."""
        result = self.result
        if self.dev is not None and self.group.is_main:
            self.encoder.eval()
            score = self.dev(self.encoder)
            self.encoder.train()
            result.history[-1]["dev_score"] = score
            if result.best_score is None or is_better(score, result.best_score):
                result.best_score, result.best_step, self.stale = score, result.steps, 0
                result.best_state = _on_cpu(self.encoder.trained_state())
            else:
                self.stale += 1
        result.stopped_early = self.group.agree(self.out_of_patience())
        if not self.group.is_main:
            self.reseed()
        elif self.out is not None:
            self.save(self.out)

    def out_of_patience(self) -> bool:
        """Whether the last `patience` dev scores were no new best."""
        return bool(self.recipe.patience) and self.stale >= self.recipe.patience

    def keep_in(self, out: Path, resume: bool) -> None:
        """Write checkpoints to the folder `out`; with `resume`, take up the one that is there."""
        out.mkdir(parents=True, exist_ok=True)
        self.out, self.identity = out, self.what_decides_the_numbers()
        if resume:
            self.restore(out)

    def what_decides_the_numbers(self) -> dict:
        """The identity of a training: a checkpoint of another one is not continued."""
        recipe = asdict(self.recipe)
        for name in ("name", "source", "chunk_size"):
            del recipe[name]
        text = [part for view in self.views for part in (view.ids, view.offsets, str(view.pad_id))]
        some = np.arange(min(256, len(self.views[0])))
        weights = [part for item in self.encoder.state_dict().items() for part in item]
        return {
            **recipe,
            "steps": self.total,
            "eval_every": self.eval_every,
            "seed": self.seed,
            "text": checkpoint.fingerprint(text),
            "hard negatives": checkpoint.fingerprint(self.negatives(some, 0) if self.negatives else []),
            "initial weights": checkpoint.fingerprint(weights),
            "encoder": dict(self.encoder.settings),
            "device": self.group.device.type,
            "precision": self.precision,
            "compile": self.compiled,
            "processes": self.group.size,
        }

    def save(self, out: Path) -> None:
        """Write one file: weights, optimiser, random state, history and the best weights so far."""
        result = self.result
        tensors = {f"model.{k}": v for k, v in self.encoder.trained_state().items()}
        if result.best_state is not None and result.best_step != result.steps:
            tensors |= {f"best.{k}": v for k, v in result.best_state.items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{key}": value for key, value in moments.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if self.group.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.group.device)
        kept = ("history", "best_step", "best_score", "steps", "seconds")
        state = {name: getattr(result, name) for name in kept}
        checkpoint.save(out, tensors, state | {"stale": self.stale, "identity": self.identity})

    def restore(self, out: Path) -> None:
        """Take up `out`'s checkpoint if there is one; a damaged one is set aside."""
        if self.group.is_main:
            for name in (checkpoint.NAME, "best", "last"):
                sweep(out / name)
        found, damage = None, None
        try:
            found = checkpoint.load(out)
        except ValueError as error:
            damage = error
        self.group.wait()
        if damage is not None and self.group.is_main:
            checkpoint.set_aside(out, damage)
        if found is None:
            return
        tensors, state = found
        assert self.identity is not None
        if different := checkpoint.differences(state.pop("identity"), self.identity):
            raise ValueError(
                f"{out / checkpoint.NAME} is of another training ({'; '.join(different)}): "
                "use resume=False or another folder"
            )
        self.encoder.load_trained_state(_part(tensors, "model."))
        optimizer = self.optimizer.state_dict()
        for key, value in _part(tensors, "optimizer.").items():
            index, name = key.split(".")
            optimizer["state"].setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict(optimizer)
        self.stale = state.pop("stale")
        for key, value in state.items():
            setattr(self.result, key, value)
        self.result.stopped_early = self.out_of_patience()
        if self.result.best_step is not None and self.group.is_main:
            at_best = self.result.best_step == self.result.steps
            self.result.best_state = _part(tensors, "model." if at_best else "best.")
        self.restore_random(tensors)

    def restore_random(self, tensors: Mapping[str, Tensor]) -> None:
        """Every process goes on with the dropout masks that it would have drawn."""
        if not self.group.is_main:
            return self.reseed()
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.group.device)

    def reseed(self) -> None:
        """Make dropout from here on a function of the step alone: for processes that write no checkpoint."""
        torch.manual_seed(dropout_seed(self.seed, self.group.rank, self.result.steps))


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
