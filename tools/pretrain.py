"""Pre-training of a ModernBERT encoder, on a CPU core or a GPU.

    CSE_DATA=… python -m tools.pretrain_text ROWS
    python -m tools.pretrain --rows ROWS --out RUN --tokens 60000000
    python -m tools.pretrain --smoke

This file and ROWS are all that a training needs beside torch, transformers and SciPy.
`RUN/model` is what `AutoModel` and `python -m lib` read, `RUN/log.csv` the curve. A killed run goes
on where its checkpoint stands, a finished one where it is given more tokens. Every technique is a
flag, and the defaults are the plain recipe: an ablation changes one of them.
"""

import argparse
import copy
import csv
import json
import math
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor
from transformers import AutoModel, ModernBertConfig, ModernBertForMaskedLM

PAD, UNK, CLS, SEP, MASK = range(5)
NOT_ASKED = -100  # label of a position that is not guessed
RAMP = 0.6  # share of the budget after which a step has all its tokens
CHOICES = {
    "optimizer": ("adamw", "muon"),
    "replaced_by": ("bert", "mask"),
    "precision": ("fp32", "autocast", "bf16"),
}
EXTENDABLE = ("tokens", "minutes", "decay", "points", "compile")
DROPOUTS = ("attention_dropout", "embedding_dropout", "mlp_dropout")
LOGGED = ("step", "tokens", "seconds", "lr", "mask", "passes", "loss", "held_out", "stsb_dev")


@dataclass(frozen=True)
class Plan:
    """Settings of a pre-training.

    Attributes:
        size: layers × width; heads are 64 wide.
        tokens, minutes: the budget; of two, the one that is used up first. 0 is none.
        step_tokens: of an optimiser step, padding included; `ramp_from`: at the beginning.
        micro: tokens of a forward and backward pass; a step adds up the gradients of several.
        lr, warmup, decay: peak learning rate; shares of the budget in which it rises from zero, and
            in which it falls to zero at the end.
        optimizer: `muon`: Muon for the matrices of the layers, AdamW for all else; `muon_lr`: its
            learning rate, five times `lr` being the best of three (0: `lr`).
        mask, mask_end: share of the tokens that is guessed, at the beginning and at the end (0: no
            change); replaced_by: all by [MASK], or 80 %, 10 % by another token, 10 % kept (`bert`).
        dropout: while pre-training.
        zero_init: the layers' output projections start at zero.
        svd: the word embeddings start from word vectors, not at random.
        ema: decay of the mean of weights that is scored and exported (0: the weights themselves).
        precision: `bf16`: weights in bf16 without autocast, the optimiser's in fp32.
        points: how often it is scored and saved.
    """

    size: str = "12x384"
    tokens: int = 0
    minutes: float = 0.0
    step_tokens: int = 8192
    ramp_from: int = 0
    micro: int = 4096
    lr: float = 1e-3
    warmup: float = 0.02
    decay: float = 0.98
    optimizer: str = "adamw"
    muon_lr: float = 0.0
    weight_decay: float = 0.01
    mask: float = 0.15
    mask_end: float = 0.0
    replaced_by: str = "bert"
    dropout: float = 0.1
    zero_init: bool = False
    svd: bool = True
    ema: float = 0.0
    precision: str = "fp32"
    compile: bool = False
    points: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.tokens or self.minutes):
            raise ValueError("a budget is missing: --tokens or --minutes")
        if self.micro > (self.ramp_from or self.step_tokens):
            raise ValueError("micro must be at most the tokens of a step")

    def share(self, state: dict[str, Any]) -> float:
        """Share of the budget that is used; 1 or more: the end."""
        of_tokens = state["tokens"] / (self.tokens or math.inf)
        return max(of_tokens, state["seconds"] / (60 * self.minutes or math.inf))

    def lr_factor(self, share: float) -> float:
        """Learning rate as a part of its peak: up to 1, and down to 0."""
        rise = share / self.warmup if self.warmup else 1.0
        fall = (1 - share) / self.decay if self.decay else float(share < 1)
        return max(0.0, min(1.0, rise, fall))

    def mask_rate(self, share: float) -> float:
        """Share of the tokens that is guessed."""
        return self.mask + ((self.mask_end or self.mask) - self.mask) * share

    def passes(self, share: float) -> int:
        """Forward and backward passes of a step."""
        first = self.ramp_from or self.step_tokens
        return round((first + (self.step_tokens - first) * min(1, share / RAMP)) / self.micro)


class Batches:
    """Batch i, rows (micro // width, width), is a function of (seed, i): an epoch has each once."""

    def __init__(self, rows: np.ndarray, micro: int, seed: int):
        self.rows, self.seed, self.size = rows, seed, micro // rows.shape[1]
        self.each = len(rows) // self.size
        self._epoch, self._order = -1, np.empty(0, int)
        if not self.each:
            raise ValueError("the text fills no batch: lower --micro, or add text")

    def __call__(self, i: int) -> np.ndarray:
        epoch, place = divmod(i, self.each)
        if epoch != self._epoch:
            rng = np.random.default_rng((self.seed, epoch))
            self._epoch, self._order = epoch, rng.permutation(len(self.rows))
        chosen = self._order[place * self.size : (place + 1) * self.size]
        return self.rows[chosen].astype(np.int64)


def masked(ids: Tensor, rate: float, plan: Plan, vocab: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (n, t) with masks, flat positions (m,) and what stood there (m,).

    m is the same for every rate, as a compiled step needs it: positions too many have the label
    `NOT_ASKED`. Special tokens are never asked for.
    """
    flat, device = ids.flatten().clone(), ids.device
    draws = torch.rand(flat.shape, device=device).masked_fill_(flat <= MASK, 2.0)
    most = math.ceil(max(plan.mask, plan.mask_end) * len(flat))
    positions = draws.topk(most, largest=False).indices
    asked = torch.arange(most, device=device) < (rate * (flat > MASK).sum()).round()
    own = flat[positions]
    new = torch.full_like(own, MASK)
    if plan.replaced_by == "bert":
        fate = torch.rand(most, device=device)
        other = torch.randint(MASK + 1, vocab, (most,), device=device)
        new = torch.where(fate < 0.8, new, torch.where(fate < 0.9, other, own))
    flat[positions] = torch.where(asked, new, own)
    return flat.view_as(ids), positions, torch.where(asked, own, NOT_ASKED)


# --- model


def initial_model(plan: Plan, vectors: np.ndarray, counts: np.ndarray) -> ModernBertForMaskedLM:
    """A model whose output bias comes from the counts of the tokens, and with `svd` its embeddings
    from their vectors."""
    layers, hidden = map(int, plan.size.split("x"))
    ids: Any = {"cls_token_id": CLS, "bos_token_id": CLS, "sep_token_id": SEP, "eos_token_id": SEP}
    config = ModernBertConfig(
        vocab_size=len(vectors),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 64),
        intermediate_size=math.ceil(hidden * 8 / 3 / 64) * 64,  # with the gate BERT's parameters
        max_position_embeddings=512,
        layer_types=["full_attention"] * layers,
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 10_000.0}},
        pad_token_id=PAD,
        **(ids | dict.fromkeys(DROPOUTS, plan.dropout)),
    )
    torch.manual_seed(plan.seed)
    model: Any = ModernBertForMaskedLM(config)
    with torch.no_grad():
        frequency = torch.from_numpy(counts).float() + 1
        model.decoder.bias.copy_(torch.log(frequency / frequency.sum()))
        if plan.svd:
            known = torch.from_numpy(vectors[:, :hidden].astype(np.float32))
            known = known / known[MASK + 1 :].std() * 0.05
            known[: MASK + 1] = torch.randn(MASK + 1, hidden) * 0.05
            model.get_input_embeddings().weight.copy_(known)
        for name, weight in model.named_parameters():
            if plan.zero_init and name.endswith("Wo.weight"):
                weight.zero_()
    return model


def own_sentence(ids: Tensor) -> Tensor:
    """Which tokens see which, (n, 1, t, t): those of one sentence each other, none the padding."""
    sentence = (ids == CLS).cumsum(1)
    same = sentence[:, :, None] == sentence[:, None, :]
    return (same & (ids != PAD)[:, None, :])[:, None]


def masked_loss(model, ids: Tensor, positions: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, at the positions asked for; the output layer sees no others."""
    seen = {"full_attention": own_sentence(ids), "sliding_attention": None}
    states = model.model(ids, attention_mask=seen)[0].flatten(0, 1)[positions]  # (m, d)
    return F.cross_entropy(model.decoder(model.head(states)).float(), labels)


def mean_pooled(backbone: torch.nn.Module, ids: Tensor) -> Tensor:
    """Means of the last states (n, d) of padded rows (n, t)."""
    found = []
    for part in ids.to(next(backbone.parameters()).device).split(128):
        part = part[:, : int((part != PAD).sum(1).max())]
        mask = (part != PAD).long()
        states = backbone(part, attention_mask=mask)[0] * mask[:, :, None]
        found.append(states.sum(1) / mask.sum(1, keepdim=True))
    return torch.cat(found)


def make_optimizers(weights: dict[str, Tensor], plan: Plan) -> list[torch.optim.Optimizer]:
    """AdamW, which decays no vectors; with `muon`, Muon beside it for the layers' matrices."""
    of_layers = ".layers." if plan.optimizer == "muon" else "no such name"
    hidden = [w for name, w in weights.items() if w.ndim == 2 and of_layers in name]
    others = [w for name, w in weights.items() if w.ndim == 2 and of_layers not in name]
    vectors = [w for w in weights.values() if w.ndim != 2]
    groups: list[dict[str, Any]] = [{"params": others}, {"params": vectors, "weight_decay": 0.0}]
    options: dict[str, Any] = {"lr": plan.lr, "weight_decay": plan.weight_decay}
    found: list[Any] = [torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True, **options)]
    if hidden:
        options |= {"lr": plan.muon_lr or plan.lr, "adjust_lr_fn": "match_rms_adamw"}
        found.append(torch.optim.Muon(hidden, **options))
    return found


# --- training


class Training:
    """A pre-training under way: its weights, its optimisers and its place in the text."""

    def __init__(self, plan: Plan, folder: Path, device: str = "cpu"):
        self.plan, self.folder, self.device = plan, folder, torch.device(device)
        self.text = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        self.batches = Batches(np.load(folder / "rows.npy", mmap_mode="r"), plan.micro, plan.seed)
        with np.load(folder / "start.npz") as start:
            model = initial_model(plan, start["vectors"], start["counts"])
        self.model = model.to(self.device).train()  # type: ignore[arg-type]
        self.scorer = copy.deepcopy(self.model).eval()
        self.weights = dict(self.model.named_parameters())  # what the optimisers change, in fp32
        if plan.precision == "bf16":
            self.weights = {n: torch.nn.Parameter(w.data.clone()) for n, w in self.weights.items()}
            for parameter in self.model.parameters():
                parameter.data = parameter.data.bfloat16()
        self.pairs: list[Any] = [*zip(self.model.parameters(), self.weights.values(), strict=True)]
        for parameter in [each for pair in self.pairs for each in pair]:
            parameter.grad = torch.zeros_like(parameter)  # stays where a CUDA graph finds it
        self.optimizers = make_optimizers(self.weights, plan)
        self.peaks = [optimizer.param_groups[0]["lr"] for optimizer in self.optimizers]
        self.ema = {n: w.detach().clone() for n, w in self.weights.items()} if plan.ema else {}
        self.state: dict[str, Any] = {"step": 0, "batch": 0, "tokens": 0, "seconds": 0.0, "log": []}
        self.loss: Any = masked_loss
        if plan.compile:
            mode = "reduce-overhead" if self.device.type == "cuda" else None
            self.loss = torch.compile(masked_loss, dynamic=False, mode=mode)

    def step(self, share: float) -> float:
        """One step of the optimisers; its mean loss, or FloatingPointError if that is no number."""
        passes = self.plan.passes(share)
        total = sum(self._gradients(share) / passes for _ in range(passes))
        for optimizer, peak in zip(self.optimizers, self.peaks, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * self.plan.lr_factor(share)
        self._update(passes)
        self.state["step"] += 1
        if not math.isfinite(loss := float(total)):
            raise FloatingPointError(f"loss is {loss} at step {self.state['step']}: lower --lr")
        return loss

    def _gradients(self, share: float) -> Tensor:
        """Add the gradients of the next batch to those there are; its loss."""
        plan, state, device = self.plan, self.state, self.device
        rows = torch.from_numpy(self.batches(state["batch"]))
        # of masks and dropout; a CPU's generator reads 32 bits
        torch.manual_seed((plan.seed * 0x9E3779B1 + state["batch"]) % 2**32)
        batch = masked(rows.to(device), plan.mask_rate(share), plan, self.text["vocabulary"])
        if plan.compile and device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(device.type, torch.bfloat16, enabled=plan.precision == "autocast"):
            loss = self.loss(self.model, *batch)
        loss.backward()
        if plan.precision == "bf16":
            for parameter, weight in self.pairs:
                weight.grad.add_(parameter.grad)
                parameter.grad.zero_()
        state["batch"] += 1
        state["tokens"] += int((rows != PAD).sum())
        return loss.detach().clone()

    @torch.no_grad()
    def _update(self, passes: int) -> None:
        parameters, weights = (list(each) for each in zip(*self.pairs, strict=True))
        torch._foreach_div_([weight.grad for weight in weights], passes)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        if self.plan.precision == "bf16":
            torch._foreach_copy_(parameters, weights)
        if self.ema:
            decay = min(self.plan.ema, (1 + self.state["step"]) / (10 + self.state["step"]))
            torch._foreach_lerp_(list(self.ema.values()), weights, 1 - decay)

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """Held-out loss with 15 % of the tokens masked, in nats, and Spearman × 100 of the mean
        states on STS-B dev."""
        for name, parameter in self.scorer.named_parameters():
            parameter.copy_((self.ema or self.weights)[name])
        plan, losses = replace(self.plan, mask=0.15, mask_end=0.0, replaced_by="mask"), []
        torch.manual_seed(0)
        for rows in np.array_split(np.load(self.folder / "held_out.npy"), 16):
            ids = torch.from_numpy(rows.astype(np.int64)).to(self.device)
            batch = masked(ids, 0.15, plan, self.text["vocabulary"])
            losses.append(masked_loss(self.scorer, *batch).item())
        with np.load(self.folder / "dev.npz") as dev:
            ids, gold = torch.from_numpy(dev["ids"].astype(np.int64)), dev["gold"]
        a, b = F.normalize(mean_pooled(self.scorer.model, ids)).cpu().chunk(2)
        spearman = 100 * float(spearmanr((a * b).sum(1), gold).statistic)
        return {"held_out": float(np.mean(losses)), "stsb_dev": spearman}

    def save(self, out: Path) -> None:
        """Write the checkpoint: complete, or not at all."""
        content = {"state": self.state, "plan": asdict(self.plan), "text": self.text}
        content |= {"weights": self.weights, "ema": self.ema}
        content["optimizers"] = [optimizer.state_dict() for optimizer in self.optimizers]
        torch.save(content, out / "checkpoint.pt.tmp")
        os.replace(out / "checkpoint.pt.tmp", out / "checkpoint.pt")

    @torch.no_grad()
    def resume(self, out: Path) -> None:
        """Go on from the checkpoint in a folder; ValueError if it is of another plan or text."""
        found = torch.load(out / "checkpoint.pt", map_location=self.device, weights_only=True)
        mine, theirs = asdict(self.plan) | self.text, found["plan"] | found["text"]
        if odd := [n for n in mine if n not in EXTENDABLE and mine[n] != theirs.get(n)]:
            raise ValueError(f"{out} was trained with another {', '.join(odd)}: name another --out")
        self.state = found["state"]
        for held, read in ((self.weights, found["weights"]), (self.ema, found["ema"])):
            for name, weight in held.items():
                weight.copy_(read[name])
        for parameter, weight in self.pairs:
            parameter.copy_(weight)
        for optimizer, state in zip(self.optimizers, found["optimizers"], strict=True):
            optimizer.load_state_dict(state)


def train(plan: Plan, folder: Path, out: Path, device: str = "cpu") -> Training:
    """Train in `out` until the budget is used up, from its checkpoint if there is one."""
    run = Training(plan, folder, device)
    out.mkdir(parents=True, exist_ok=True)
    if (out / "checkpoint.pt").exists():
        run.resume(out)
    began = time.perf_counter() - run.state["seconds"]
    share, losses = plan.share(run.state), []
    while share < 1:
        losses.append(run.step(share))
        run.state["seconds"] = time.perf_counter() - began
        before, share = share, plan.share(run.state)
        point = int(share * plan.points) > int(before * plan.points)
        if point or int(share * plan.points * 10) > int(before * plan.points * 10):
            line = {n: run.state[n] for n in LOGGED[:3]} | {"loss": float(np.mean(losses))}
            line |= {"lr": plan.lr * plan.lr_factor(before), "mask": plan.mask_rate(before)}
            line |= {"passes": plan.passes(before)} | (run.scores() if point else {})
            run.state["log"].append(line)
            write_log(out / "log.csv", run.state["log"])
            losses = []
        if point:
            run.save(out)
    return run


def write_log(path: Path, lines: list[dict[str, float]]) -> None:
    """Write the curve anew, and print its last line."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, LOGGED, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    print("  ".join(f"{n} {lines[-1][n]:.5g}" for n in LOGGED if n in lines[-1]), flush=True)


def export(run: Training, folder: Path) -> dict[str, float]:
    """Write the model in fp16, in parts of at most 16 MB, with its tokenizer and with the dropout
    of 0.1 that SimCSE needs; its scores."""
    scores, model = run.scores(), copy.deepcopy(run.scorer).half().cpu()
    for name in DROPOUTS:
        setattr(model.config, name, 0.1)
    model.save_pretrained(folder, max_shard_size="16MB")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # they are written for their owner alone
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(run.folder / name, folder)
    about = {n: run.state[n] for n in LOGGED[:3]} | scores | {"plan": asdict(run.plan)}
    about |= {"text": run.text, "torch": torch.__version__, "device": str(run.device)}
    (folder / "pretraining.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return scores


def smoke(place: Path) -> None:
    """Everything, tiny, without a network: rows, a stop, more tokens, export, scores."""
    from lib import data, paths
    from tools.pretrain_text import prepare

    socket.socket.connect = None  # type: ignore[method-assign,assignment]
    text, pairs = data.read_lines(paths.MINI / "corpus.txt"), data.mini_pairs("dev")
    options = {"tokenizer": paths.MINI_BERT, "dims": 64, "held_out": 200}
    prepare(place / "rows", list(text)[:5_000], pairs, **options)
    plan = Plan("2x64", 30_000, micro=1024, step_tokens=2048, points=2, optimizer="muon", ema=0.9)
    train(plan, place / "rows", place)
    run = train(replace(plan, tokens=60_000), place / "rows", place)
    scores = export(run, place / "model")
    ids = torch.from_numpy(np.load(place / "rows/dev.npz")["ids"][:32].astype(np.int64))
    with torch.no_grad():
        again = mean_pooled(AutoModel.from_pretrained(place / "model").float().eval(), ids)
        torch.testing.assert_close(again, mean_pooled(run.scorer.model, ids), atol=2e-2, rtol=0)
    print(f"all of it ran: {scores}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a flag for every field of `Plan`, and where to read and write."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=f"{__doc__}\n{Plan.__doc__}", formatter_class=form)
    parser.add_argument("--rows", type=Path, default=Path("outputs/pretrain/rows"))
    parser.add_argument("--out", type=Path, default=Path("outputs/pretrain/run"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--smoke", action="store_true", help="try everything, in a minute")
    for field in fields(Plan):
        kind: dict[str, Any] = {"type": type(field.default), "choices": CHOICES.get(field.name)}
        if isinstance(field.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        parser.add_argument(f"--{field.name.replace('_', '-')}", default=field.default, **kind)
    options = parser.parse_args(arguments)
    if options.smoke:
        with tempfile.TemporaryDirectory() as place:
            smoke(Path(place))
    else:
        plan = Plan(**{field.name: getattr(options, field.name) for field in fields(Plan)})
        export(train(plan, options.rows, options.out, options.device), options.out / "model")


if __name__ == "__main__":
    main()
