"""The training loop: views → one forward pass → loss → step → dev score → best and last checkpoint."""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from tqdm import tqdm

from lib import losses
from lib.augment import augment
from lib.augment.discrete import MASK_TOKEN
from lib.augment.embeddings import EmbeddingViews
from lib.augment.representations import REPRESENTATIONS
from lib.augment.tfidf import TfidfModel
from lib.augment.una import UNA
from lib.distributed import Group
from lib.encoder import Encoder, resolve_device, resolve_precision
from lib.files import sweep
from lib.recipes import Recipe
from lib.tokens import BucketBatches, TokenRows, tokenise

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
        best_state: the encoder's weights at that step, on the CPU; the encoder itself is left at the last step.
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
    cache: Path | None = None,
    progress: bool = False,
    aligned: Sequence[str] | None = None,
) -> list[TokenRows]:
    """Token rows of the views that `recipe` asks for, aligned row by row.

    One entry for `positive="identical"` (one encoding serves as both views), else two; with dropout as the
    only augmentation both entries are the same rows.

    Args:
        aligned: the positives of `positive="file"` and "sda", line i belonging to sentence i.

    Raises:
        ValueError: `aligned` is missing or has another number of lines.
    """

    def rows_of(text: Sequence[str], name: str) -> TokenRows:
        folder = None if cache is None else cache / f"{name}-{recipe.max_length}"
        return tokenise(text, tokenizer, recipe.max_length, folder, progress)

    first = rows_of(sentences, "text")
    if recipe.positive == "identical":
        return [first]
    if recipe.positive == "dropout":
        return [first, first]
    if recipe.positive in ("file", "sda"):
        if aligned is None or len(aligned) != len(sentences):
            found = "none was given" if aligned is None else f"{len(aligned):,} lines"
            need = f"positive={recipe.positive!r} needs one line for each of {len(sentences):,} sentences"
            raise ValueError(f"{need}: {found}")
        return [first, rows_of(aligned, "positives")]
    changed = augment(recipe.positive, sentences, recipe.positive_rate, seed, recipe.synonyms)
    if tokenizer.mask_token not in (None, MASK_TOKEN):
        changed = [s.replace(MASK_TOKEN, tokenizer.mask_token) for s in changed]
    return [first, rows_of(changed, f"{recipe.positive}-{recipe.positive_rate}-s{seed}")]


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
) -> Callable[[np.ndarray, int], tuple[Tensor, Tensor]] | None:
    """The hard negatives that `recipe` asks for, or None.

    Args:
        negated: the negatives of `negative="sda"`, line i belonging to sentence i.

    Raises:
        ValueError: unknown kind of negative, or `negated` is missing or has another number of lines.
    """
    if recipe.negative == "none":
        return None
    if recipe.negative == "una":
        return Negatives(sentences, recipe, tokenizer, seed, more)
    if recipe.negative != "sda":
        raise ValueError(f"negative must be 'none', 'una' or 'sda', got {recipe.negative!r}")
    if negated is None or len(negated) != len(sentences):
        raise ValueError(f"negative='sda' needs one negation for each of {len(sentences):,} sentences")
    table = tokenise(negated, tokenizer, recipe.max_length, progress=False)
    return lambda rows, step: table[rows]


def learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """Learning rate of step `step` (from 0) of `total`: linear warm-up, then linear decay to 0 or constant.

    Example:
        >>> from lib.recipes import recipe
        >>> [round(learning_rate(recipe("mini_simcse", lr=1.0), s, 4), 2) for s in range(4)]
        [1.0, 0.75, 0.5, 0.25]
    """
    warm = math.ceil(recipe.warmup * total)
    if step < warm:
        return recipe.lr * (step + 1) / warm
    if recipe.schedule == "constant":
        return recipe.lr
    if recipe.schedule != "linear":
        raise ValueError(f"schedule must be 'linear' or 'constant', got {recipe.schedule!r}")
    return recipe.lr * (total - step) / max(1, total - warm)


def make_optimizer(model: torch.nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Fused AdamW; biases and LayerNorm weights are not decayed."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.lr, eps=recipe.adam_eps, fused=True)


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
            z = torch.cat([checkpoint(model, *chunk, use_reentrant=False).float() for chunk in chunks])
        else:
            z = model(ids, mask, sizes).float()
    parts = list(z.split(sizes))
    return parts if len(views) > 1 else [parts[0], *parts]


def fit(
    encoder: Encoder,
    views: Sequence[TokenRows],
    recipe: Recipe,
    *,
    negatives: Callable[[np.ndarray, int], tuple[Tensor, Tensor]] | None = None,
    seed: int = 42,
    max_steps: int | None = None,
    dev: Callable[[Encoder], float] | None = None,
    eval_every: int | None = None,
    out: Path | None = None,
    resume: bool = True,
    device: str = "auto",
    precision: str = "auto",
    bucket: bool = True,
    compile: bool = False,
    progress: bool = False,
) -> Result:
    """Train `encoder` on aligned `views` as `recipe` says; on return it holds the **last** weights.

    Args:
        views: as `make_views`.
        negatives: as `make_negatives`; called with the rows of a batch and the step, on every `recipe.every`-th.
        seed: of batches and dropout.
        max_steps: optimiser steps; None is the recipe's epochs.
        dev: score of an encoder, higher is better; called every `eval_every` steps and at the end.
        out: folder for `checkpoint.safetensors`, `best/` and `last/`; None keeps all in memory.
        resume: continue from `out`'s checkpoint; the result equals an uninterrupted run's bit for bit on a CPU. A
            finished training is not done again: its result comes back, until `discard_checkpoint(out)`.
        device, precision: as `lib.encoder`; bucket: batches of similar length; compile: `torch.compile`.

    Raises:
        FloatingPointError: the loss is not finite; the message names the step.
        ValueError: views of different lengths, or a recipe field without meaning here.

    Source: the loop of SimCSE (Gao et al. 2021); checkpoint selection by dev score as in their §6.
    """
    _check(views, recipe, negatives)
    group = Group(resolve_device(device))
    torch.manual_seed(seed + group.rank)
    loop = _Loop(encoder, views, recipe, group, seed, bucket, max_steps, compile)
    loop.bf16 = resolve_precision(precision, group.device) == "bf16"
    loop.negatives = negatives
    loop.dev, loop.eval_every = dev, eval_every or recipe.eval_every
    loop.out = out
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            if resume:
                loop.restore()
        loop.run(progress)
    finally:
        if loop.embedding_views is not None:
            loop.embedding_views.remove()
    if out is not None and group.is_main:
        encoder.save(out / "last")
    group.wait()
    return loop.result


def discard_checkpoint(out: Path) -> None:
    """Remove what `fit` needs to go on in `out`; `best/` and `last/` stay."""
    (out / "checkpoint.safetensors").unlink(missing_ok=True)


def _check(views: Sequence[TokenRows], recipe: Recipe, negatives) -> None:
    if len({len(v) for v in views}) != 1:
        raise ValueError(f"views must be aligned row by row, got {[len(v) for v in views]} rows")
    if recipe.loss not in LOSSES:
        raise ValueError(f"unknown loss {recipe.loss!r}: choose one of {', '.join(LOSSES)}")
    if recipe.head.startswith("simsiam") != (recipe.loss == "simsiam"):
        raise ValueError(f"head and loss 'simsiam' need each other, got head {recipe.head!r} and loss {recipe.loss!r}")
    if recipe.loss == "simsiam" and negatives is not None:
        raise ValueError("the loss 'simsiam' has no negatives: set negative='none'")
    if recipe.positive == "identical" and (recipe.view1, recipe.view2) != ("none", "none"):
        raise ValueError(
            "positive='identical' encodes once: views in embedding space need 'dropout', which encodes twice"
        )
    if (recipe.negative != "none") != (negatives is not None):
        raise ValueError(f"the recipe's negative is {recipe.negative!r}: pass negatives=make_negatives(…) accordingly")
    if recipe.negative_mode not in ("doubled", "extra", "margin"):
        raise ValueError(f"negative_mode must be 'doubled', 'extra' or 'margin', got {recipe.negative_mode!r}")
    if recipe.negative != "none" and recipe.negative_mode == "margin" and recipe.loss != "info_nce":
        raise ValueError(f"negative_mode='margin' is a form of the loss 'info_nce', got {recipe.loss!r}")
    if recipe.chunk_size and ((recipe.view1, recipe.view2) != ("none", "none") or Group.processes() > 1):
        raise ValueError("chunk_size works in one process and without view1 and view2: set chunk_size=0")
    if recipe.chunk_size and recipe.head.partition(":")[0] in ("bn_mlp", "simclr", "simsiam"):
        raise ValueError(f"the batch norm of head {recipe.head!r} would see a chunk and not the batch: chunk_size=0")
    if recipe.representation not in ("none", *REPRESENTATIONS):
        known = ", ".join(REPRESENTATIONS)
        raise ValueError(f"representation must be none or one of {known}, got {recipe.representation!r}")


class _Loop:
    """State of one training; `run` is the loop."""

    dev: Callable[[Encoder], float] | None = None
    negatives: Callable[[np.ndarray, int], tuple[Tensor, Tensor]] | None = None
    out: Path | None = None
    eval_every = 0
    bf16 = False

    def __init__(self, encoder, views, recipe, group, seed, bucket, max_steps, compile):
        self.encoder, self.views, self.recipe, self.group, self.seed = encoder, views, recipe, group, seed
        lengths = np.max([v.lengths for v in views], axis=0)
        named = ((recipe.view1, recipe.rate1), (recipe.view2, recipe.rate2))
        in_use = any(name != "none" for name, _ in named)
        self.embedding_views = EmbeddingViews(encoder.backbone, named) if in_use else None
        self.batches = BucketBatches(lengths, recipe.batch_size, seed, bucket)
        self.total = max_steps if max_steps is not None else recipe.epochs * len(self.batches)
        model = group.prepare(encoder)
        self.model = torch.compile(model, dynamic=True) if compile else model
        self.optimizer = make_optimizer(encoder, recipe)
        self.objective = LOSSES[recipe.loss]
        self.result = Result()
        self.pending: list[tuple[int, Tensor, Tensor, float]] = []
        self.stale = 0

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
            epoch_ends = self.recipe.eval_at_epoch_ends and result.steps % len(self.batches) == 0
            if result.steps % self.eval_every == 0 or result.steps == self.total or epoch_ends:
                self.flush(bar)
                result.seconds += time.perf_counter() - clock
                self.evaluate()
                clock = time.perf_counter()
        bar.close()
        result.sentences_per_second = result.steps * self.recipe.batch_size / max(result.seconds, 1e-9)
        self.encoder.eval()

    def step(self, step: int, rows: np.ndarray) -> None:
        """One optimiser step on the sentences `rows`."""
        lr = learning_rate(self.recipe, step, self.total)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = lr
        with torch.autocast(self.group.device.type, torch.bfloat16, enabled=self.bf16):
            z1, z2, *negatives = self.group.gather(self.encode(step, self.group.share(rows)))
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
        if self.negatives is not None and self.recipe.every and step % self.recipe.every == 0:
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
            score = self.dev(self.encoder)
            self.encoder.train()
            result.history[-1]["dev_score"] = score
            if result.best_score is None or math.isnan(result.best_score) or score > result.best_score:
                result.best_score, result.best_step, self.stale = score, result.steps, 0
                result.best_state = {k: v.detach().cpu().clone() for k, v in self.encoder.state_dict().items()}
                if self.out is not None:
                    self.encoder.save(self.out / "best")
            else:
                self.stale += 1
        result.stopped_early = self._agree(bool(self.recipe.patience) and self.stale >= self.recipe.patience)
        if self.out is not None and self.group.is_main:
            self.save()

    def _agree(self, stop: bool) -> bool:
        if self.group.size == 1:
            return stop
        flag = torch.tensor([int(stop)], device=self.group.device)
        torch.distributed.broadcast(flag, 0)
        return bool(flag.item())

    def save(self) -> None:
        """Write weights, optimiser moments, random state and history: complete or not at all."""
        assert self.out is not None
        tensors = {f"model.{k}": v.detach().cpu().contiguous() for k, v in self.encoder.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            for key, value in moments.items():
                tensors[f"optimizer.{index}.{key}"] = value.detach().cpu().contiguous()
        tensors["random.cpu"] = torch.get_rng_state()
        if self.group.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.group.device)
        result = self.result
        state = {
            "history": result.history,
            "best_step": result.best_step,
            "best_score": result.best_score,
            "steps": result.steps,
            "seconds": result.seconds,
            "stale": self.stale,
            "identity": self.identity(),
        }
        temporary = self.out / f"checkpoint.tmp{os.getpid()}"
        save_file(tensors, temporary, metadata={"state": json.dumps(state)})
        os.replace(temporary, self.out / "checkpoint.safetensors")

    def identity(self) -> dict:
        """What a checkpoint must agree with to be continued."""
        return {"steps": self.total, "seed": self.seed, "sentences": len(self.views[0]), **asdict(self.recipe)}

    def restore(self) -> None:
        """Take up `out`'s checkpoint if there is one."""
        assert self.out is not None
        path = self.out / "checkpoint.safetensors"
        if self.group.is_main:
            sweep(self.out / "best")
            sweep(self.out / "last")
            for remains in self.out.glob("checkpoint.tmp*"):
                remains.unlink()
        self.group.wait()
        if not path.exists():
            return
        with safe_open(path, "pt") as f:
            state = json.loads(f.metadata()["state"])
            tensors = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118
        saved, here = state.pop("identity"), self.identity()
        if different := [f"{k}: {saved.get(k)} there, {v} here" for k, v in here.items() if saved.get(k) != v]:
            raise ValueError(
                f"{path} is of another training ({'; '.join(different)}): use resume=False or another folder"
            )
        self.encoder.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
        optimizer = self.optimizer.state_dict()
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".")
                optimizer["state"].setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict(optimizer)
        self.stale = state.pop("stale")
        for key, value in state.items():
            setattr(self.result, key, value)
        self.result.stopped_early = bool(self.recipe.patience) and self.stale >= self.recipe.patience
        if self.result.best_step is not None and self.group.is_main:
            best = Encoder.load(self.out / "best")
            self.result.best_state = {k: v.clone() for k, v in best.state_dict().items()}
        self._restore_random(tensors)

    def _restore_random(self, tensors: dict[str, Tensor]) -> None:
        """The main process goes on with its dropout masks; the others, which saved none, draw new ones."""
        if not self.group.is_main:
            torch.manual_seed(hash((self.seed, self.group.rank, self.result.steps)))
            return
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.group.device)
