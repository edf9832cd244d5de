"""Pre-training of the shipped encoders, from raw text to a model folder.

Command line: ``CSE_DATA=... python -m tools.pretrain --out outputs/pretrain/mini-bert``;
`--architecture` trains a sibling: `albert` (shared layers, factorised embeddings), `roberta`
(byte-level BPE) or `llama` (rotary positions, causal attention, next-token prediction) on the
same text with the same budget.

The recipe is made for a small budget. Word embeddings start from a truncated SVD of the
positive pointwise mutual information of word-piece co-occurrences (Levy & Goldberg 2014),
the output bias from the unigram log-frequencies. Every row is one sentence, batches hold
rows of one length, so nothing is padded (`--width-step 8 --compile`, on a GPU: of eight widths,
each compiled once). Training starts with the lower half of the
layers, which are then copied on top of themselves (progressive stacking, Gong et al. 2019);
the learning rate is constant after the warm-up and decays linearly over the last third.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from scipy import sparse
from scipy.sparse.linalg import svds
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
from tqdm import tqdm
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizer,
)

from lib import paths
from lib.data import read_lines, stsb
from lib.data.files import write_json, written
from lib.encoder import Encoder
from lib.encoder.device import copied_to
from lib.encoder.layers import speed_up
from lib.encoder.load import read_tokenizer
from lib.encoder.tokens import tokenise
from lib.evaluate import pairs_spearman
from lib.training.batches import prefetched

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
PAD, UNK, CLS, SEP, MASK = range(5)
NOT_ASKED = -100
LOGGED = 50
EXTENDABLE = ("tokens", "lr", "decay_fraction", "weight_decay", "dropout")
POSITIONS = 512


@dataclass(frozen=True)
class Plan:
    """Hyper-parameters of one pre-training.

    `tokens` counts every token the encoder reads, [CLS] and [SEP] included; `grow_at` is the
    token count at which the half-depth model is stacked (0: full depth from the start);
    `embedding` is the width of the word embeddings (0: that of the layers); batches hold rows of
    one length, or with `width_step` k > 1 of lengths up to the next multiple of k, padded: few
    shapes, as compilation needs them.
    """

    tokens: int = 100_000_000
    grow_at: int = 60_000_000
    vocab_size: int = 8192
    hidden: int = 256
    layers: int = 4
    heads: int = 4
    intermediate: int = 512
    max_length: int = 64
    tokens_per_batch: int = 8192
    lr: float = 1e-3
    weight_decay: float = 0.01
    warmup_tokens: int = 1_000_000
    decay_fraction: float = 0.35
    mask_rate: float = 0.15
    dropout: float = 0.1
    embedding_std: float = 0.05
    window: int = 5
    seed: int = 0
    architecture: str = "bert"
    embedding: int = 0
    width_step: int = 1

    def __post_init__(self) -> None:
        if self.architecture not in FAMILIES:
            raise ValueError(
                f"unknown architecture {self.architecture!r}: choose one of {', '.join(FAMILIES)}"
            )
        if self.grow_at and self.architecture != "bert":
            raise ValueError(
                f"only a bert grows while it is trained: use grow_at=0 for {self.architecture!r}"
            )
        if self.embedding and self.architecture != "albert":
            raise ValueError("only an albert has word embeddings of another width: use embedding=0")
        if self.width_step > 1 and FAMILIES[self.architecture].causal:
            raise ValueError("rows of a causal model are not padded: use width_step=1")
        if self.grow_at and (self.layers % 2 or self.grow_at >= self.tokens):
            raise ValueError(
                "grow_at needs an even number of layers and a value below tokens: use grow_at=0"
                " otherwise"
            )


@dataclass(frozen=True)
class Family:
    """An architecture: its classes, where its output layer is, and what its configuration has
    beside the sizes."""

    config: type
    model: type
    head: str
    bias: str
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    bytes: bool = False
    causal: bool = False

    def settings(self, plan: Plan, layers: int) -> dict[str, object]:
        """Arguments of the configuration."""
        offset = (
            PAD + 1 if self.bytes else 0
        )  # RoBERTa counts positions from behind the padding's id
        settings: dict[str, object] = {
            "vocab_size": plan.vocab_size,
            "hidden_size": plan.hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": plan.heads,
            "intermediate_size": plan.intermediate,
            "max_position_embeddings": POSITIONS + offset,
            **dict.fromkeys(self.dropouts, plan.dropout),
        }
        if plan.embedding:
            settings["embedding_size"] = plan.embedding
        if self.causal:
            settings |= {"tie_word_embeddings": True, "num_key_value_heads": plan.heads}
        if plan.architecture != "bert":
            settings |= {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP}
        return settings


FAMILIES = {
    "bert": Family(BertConfig, BertForMaskedLM, "cls", "cls.predictions.bias"),
    "albert": Family(AlbertConfig, AlbertForMaskedLM, "predictions", "predictions.bias"),
    "roberta": Family(RobertaConfig, RobertaForMaskedLM, "lm_head", "lm_head.bias", bytes=True),
    "llama": Family(
        LlamaConfig, LlamaForCausalLM, "lm_head", "", ("attention_dropout",), causal=True
    ),
}


def train_tokenizer(
    sentences: list[str], folder: Path, vocab_size: int, limit_alphabet: int = 300
) -> BertTokenizer:
    """Train a lower-casing WordPiece vocabulary of `vocab_size` entries and save it in `folder`.

    The alphabet and its continuations ("##a") get their ids first, in a fixed order: left to
    the trainer, they come in the order of a hash table, which decides ties between merges.
    """
    trainer = BertWordPieceTokenizer(lowercase=True)
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(trainer.normalizer.normalize_str(sentence))
    frequent = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    alphabet = sorted(frequent[:limit_alphabet])
    trainer.train_from_iterator(
        sentences,
        vocab_size=vocab_size,
        min_frequency=5,
        special_tokens=SPECIAL + [f"##{c}" for c in alphabet],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
    )
    folder.mkdir(parents=True, exist_ok=True)
    trainer.save_model(str(folder))
    tokenizer = BertTokenizer(
        vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=POSITIONS
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def train_byte_tokenizer(sentences: list[str], folder: Path, vocab_size: int) -> RobertaTokenizer:
    """Train a byte-level BPE vocabulary that keeps case, special tokens at the places of
    `SPECIAL`."""
    trainer = ByteLevelBPETokenizer()
    trainer.train_from_iterator(
        sentences, vocab_size=vocab_size, min_frequency=5, special_tokens=ROBERTA_SPECIAL
    )
    folder.mkdir(parents=True, exist_ok=True)
    trainer.save_model(str(folder))
    vocab, merges = str(folder / "vocab.json"), str(folder / "merges.txt")
    tokenizer = RobertaTokenizer(vocab=vocab, merges=merges, model_max_length=POSITIONS)
    tokenizer.save_pretrained(folder)
    return tokenizer


def ppmi_svd(
    ids: np.ndarray, vocab_size: int, dim: int, window: int = 5, seed: int = 0
) -> np.ndarray:
    """Word vectors `(vocab_size, dim)` from co-occurrence counts within `window` positions.

    Counts at distance k weigh 1/k and do not cross a row's [SEP]; contexts are smoothed with
    exponent 0.75; vectors are U·sqrt(S) of the truncated SVD (Levy, Goldberg & Dagan 2015).
    """
    row_of = np.cumsum(ids == CLS)
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float32)
    for k in range(1, window + 1):
        same = row_of[:-k] == row_of[k:]
        left, right = ids[:-k][same].astype(np.int32), ids[k:][same].astype(np.int32)
        pairs = np.bincount(left * vocab_size + right, minlength=vocab_size**2)
        counts = counts + sparse.csr_matrix(
            pairs.reshape(vocab_size, vocab_size).astype(np.float32) / k
        )
    counts = (counts + counts.T).tocoo()
    total = counts.sum()
    word = np.asarray(counts.tocsr().sum(1)).ravel() + 1e-9
    context = word**0.75 / (word**0.75).sum()
    pmi = (
        np.log(counts.data / total) - np.log(word[counts.row] / total) - np.log(context[counts.col])
    )
    keep = (pmi > 0) & (counts.row >= MASK) & (counts.col >= MASK)
    ppmi = sparse.csr_matrix((pmi[keep], (counts.row[keep], counts.col[keep])), shape=counts.shape)
    start = np.random.default_rng(seed).standard_normal(vocab_size)
    u, s, _ = svds(ppmi.astype(np.float32), k=dim, v0=start.astype(np.float32))
    return (u * np.sqrt(s)).astype(np.float32)


def initial_model(
    plan: Plan, vectors: np.ndarray, unigram: np.ndarray, layers: int
) -> PreTrainedModel:
    """A model with `layers` layers whose embeddings and output bias come from the counts."""
    family = FAMILIES[plan.architecture]
    torch.manual_seed(plan.seed)
    model = family.model(family.config(**family.settings(plan, layers)))
    with torch.no_grad():
        known = torch.from_numpy(vectors)
        known = known / known[MASK + 1 :].std() * plan.embedding_std
        known[: MASK + 1] = torch.randn(MASK + 1, known.shape[1]) * plan.embedding_std
        known[PAD] = 0
        model.get_input_embeddings().weight.copy_(known)
        frequency = torch.from_numpy(unigram).float() + 1
        if family.bias:
            model.get_parameter(family.bias).copy_(torch.log(frequency / frequency.sum()))
    return model


def stack(model: BertForMaskedLM) -> BertForMaskedLM:
    """Double the depth by copying the layers on top of themselves (Gong et al. 2019)."""
    config = BertConfig.from_dict(model.config.to_dict())
    config.num_hidden_layers = 2 * model.config.num_hidden_layers
    deep = BertForMaskedLM(config)
    state = model.state_dict()
    half = model.config.num_hidden_layers
    for name, value in list(state.items()):
        if ".layer." in name:
            number = int(name.split(".layer.")[1].split(".")[0])
            state[name.replace(f".layer.{number}.", f".layer.{number + half}.")] = value.clone()
    deep.load_state_dict(state)
    return deep


class Batches:
    """Batch i is a function of (seed, i) alone: rows of one width, about `tokens_per_batch`
    tokens.

    Tokens are masked, or for a causal model each asks for the next. Where rows are padded, each
    batch of a width asks for equally many positions; those too many have the label `NOT_ASKED`.
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray, plan: Plan, shortest: int = 5):
        self.ids, self.offsets, self.plan = ids, offsets, plan
        self.lengths = np.diff(offsets)
        step = plan.width_step
        self.widths = np.minimum(-(-self.lengths // step) * step, plan.max_length)
        rng = np.random.default_rng(plan.seed)
        self.batches = []
        for width in range(shortest, plan.max_length + 1):
            fitting = (self.widths == width) & (self.lengths >= shortest)
            rows = rng.permutation(np.flatnonzero(fitting))
            size = max(1, plan.tokens_per_batch // width)
            self.batches += [rows[i : i + size] for i in range(0, len(rows) - size + 1, size)]
        if not self.batches:
            raise ValueError("the corpus fills no batch; lower tokens_per_batch or add text")
        self.order = [int(i) for i in rng.permutation(len(self.batches))]

    def __call__(self, step: int):
        """Input ids (n, t), flat positions whose output is asked for (m,), and labels (m,)."""
        rows = self.batches[self.order[step % len(self.order)]]
        ids = self._padded(rows)
        if FAMILIES[self.plan.architecture].causal:
            positions = np.arange(ids.size).reshape(ids.shape)[:, :-1]
            return (
                torch.from_numpy(ids),
                torch.from_numpy(positions.ravel()),
                torch.from_numpy(ids[:, 1:].ravel()),
            )
        rng = np.random.default_rng((self.plan.seed, step))
        flat = ids.ravel()
        candidates = np.flatnonzero(flat > MASK)
        positions = np.sort(
            rng.permutation(candidates)[: max(1, int(self.plan.mask_rate * len(candidates)))]
        )
        labels = flat[positions].copy()
        fate = rng.random(len(positions))
        flat[positions[fate < 0.8]] = MASK
        other = positions[fate >= 0.9]
        flat[other] = rng.integers(MASK + 1, self.plan.vocab_size, len(other))
        if self.plan.width_step > 1:
            missing = int(self.plan.mask_rate * ids.size) + 1 - len(positions)
            positions = np.pad(positions, (0, missing))
            labels = np.pad(labels, (0, missing), constant_values=NOT_ASKED)
        return torch.from_numpy(ids), torch.from_numpy(positions), torch.from_numpy(labels)

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """Token ids (n, t) of rows of one width."""
        columns = np.arange(self.widths[rows[0]])
        real = columns < self.lengths[rows][:, None]  # (n, t)
        where = np.where(real, self.offsets[rows][:, None] + columns, 0)
        return np.where(real, self.ids[where], PAD).astype(np.int64)

    def from_step(self, step: int) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
        """Endless: the number of real tokens of each batch from `step` on, and the batch."""
        while True:
            ids, positions, labels = self(step)
            yield int((ids != PAD).sum()), (ids, positions, labels)
            step += 1


def learning_rate(plan: Plan, seen: int) -> float:
    """Linear warm-up, constant, linear decay over the last `decay_fraction` of the tokens."""
    if seen < plan.warmup_tokens:
        return plan.lr * (seen + 1) / plan.warmup_tokens
    return plan.lr * min(1.0, max(0.0, 1 - seen / plan.tokens) / plan.decay_fraction)


class LinearCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of `hidden @ weight.T`, and its gradients in the same pass, a few hundred
    rows at a time.

    A causal model is asked at every token: all logits at once are 270 MB at batch 8,192 and
    vocabulary 8,192, and moving them takes longer than computing them.
    """

    @staticmethod
    def forward(
        ctx, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, rows: int = 512
    ) -> torch.Tensor:
        """Args: hidden (m, d), weight (V, d), labels (m,); multiplied in the type of `hidden`."""
        w = weight.to(hidden.dtype)
        total = hidden.new_zeros((), dtype=torch.float32)
        d_hidden = []
        d_weight = torch.zeros_like(weight)
        for h, y in zip(hidden.split(rows), labels.split(rows), strict=True):
            p = (h @ w.T).float().softmax(1)  # (rows, V)
            at_label = torch.arange(len(y)), y
            total -= p[at_label].clamp_min(1e-38).log().sum()
            p[at_label] -= 1
            p = p.to(hidden.dtype)
            d_hidden.append(p @ w)
            d_weight += p.T @ h
        ctx.save_for_backward(torch.cat(d_hidden), d_weight)
        ctx.count = len(labels)
        return total / len(labels)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):  # type: ignore[override]
        """The gradients of hidden and weight, made in the forward pass."""
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden * (gradient / ctx.count), d_weight * (gradient / ctx.count), None, None


def loss_of(plan: Plan) -> Callable[..., torch.Tensor]:
    """Cross-entropy at the positions asked for: the output layer never sees the others."""
    family = FAMILIES[plan.architecture]

    def loss(model: PreTrainedModel, ids, positions, labels) -> torch.Tensor:
        mask = (ids != PAD).long() if plan.width_step > 1 else None
        states = model.base_model(ids, attention_mask=mask)[0]  # (n, t, d)
        hidden = states.flatten(0, 1)[positions]  # (m, d)
        head = getattr(model, family.head)
        if family.causal:
            return LinearCrossEntropy.apply(hidden, head.weight, labels)
        return F.cross_entropy(head(hidden).float(), labels, ignore_index=NOT_ASKED)

    return loss


def ready(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """The model on its device, with the speedups of `lib.encoder.layers`, under bf16 autocast a
    bf16 residual stream among them."""
    speed_up(model)
    return model.to(device)  # type: ignore[arg-type]


def _untied(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Weights without those that are tied to others."""
    tied = set(model._tied_weights_keys or ())
    return {k: v.contiguous() for k, v in model.state_dict().items() if k not in tied}


def save_checkpoint(folder: Path, model, optimizer, state: dict) -> None:
    """Write model, optimizer moments and counters under a temporary name, then rename."""
    tensors = {f"model.{k}": v for k, v in _untied(model).items()}
    names = {p: n for n, p in model.named_parameters()}
    for parameter, moments in optimizer.state.items():
        for key, value in moments.items():
            tensors[f"optim.{names[parameter]}|{key}"] = value
    with written(folder / "checkpoint.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"state": json.dumps(state)})


def load_checkpoint(folder: Path, model, optimizer) -> None:
    """Load what `save_checkpoint` wrote into a model of the same depth."""
    tensors = load_file(folder / "checkpoint.safetensors")
    missing = model.load_state_dict(
        {k[6:]: v for k, v in tensors.items() if k.startswith("model.")}, strict=False
    )
    if set(missing.missing_keys) - set(model._tied_weights_keys or ()) or missing.unexpected_keys:
        raise ValueError(f"{folder}/checkpoint.safetensors does not fit this plan: {missing}")
    for name, parameter in model.named_parameters():
        for key in ("step", "exp_avg", "exp_avg_sq"):
            if f"optim.{name}|{key}" in tensors:
                optimizer.state[parameter][key] = tensors[f"optim.{name}|{key}"].to(
                    parameter.device
                )


def check_plan(plan: Plan, state: dict) -> None:
    """Refuse to go on with another model or other batches; tokens, rates and decay may change.

    Raises:
        ValueError: the checkpoint is of a plan that differs in another field.
    """
    before = state.get("plan", {})
    different = [
        f"{name}: {before[name]!r} there, {value!r} here"
        for name, value in asdict(plan).items()
        if name not in EXTENDABLE and before.get(name, value) != value
    ]
    if different:
        raise ValueError(
            f"the checkpoint is of another plan ({'; '.join(different)}): choose another --out"
        )


def checkpoint_state(folder: Path) -> dict | None:
    """Counters of the checkpoint in `folder`, or None where there is none."""
    from safetensors import safe_open

    path = folder / "checkpoint.safetensors"
    if not path.exists():
        return None
    with safe_open(path, "pt") as f:
        return json.loads(f.metadata()["state"])


def make_optimizer(model, plan: Plan) -> torch.optim.AdamW:
    """Fused AdamW; biases and LayerNorm weights are not decayed."""
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": decay, "weight_decay": plan.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.lr, betas=(0.9, 0.98), fused=True)


def pretrain_corpus(data_dir: str | Path | None = None, progress: bool = True) -> Iterator[str]:
    """Yield every sentence of `corpus/pretrain/*.txt.xz`, files in sorted order, blank lines
    skipped."""
    for base in paths.data_dirs(data_dir):
        for path in sorted((base / "corpus" / "pretrain").glob("*.txt.xz")):
            yield from tqdm(read_lines(path), desc=path.name, disable=not progress)


def prepare(plan: Plan, out: Path, data_dir: str | None, progress: bool = True):
    """Tokenizer, token rows and word vectors for `plan`, computed once and cached in `out`."""
    cache = out / "rows.npz"
    if not cache.exists():
        sentences = list(dict.fromkeys(pretrain_corpus(data_dir, progress=progress)))
        by_bytes = FAMILIES[plan.architecture].bytes
        make = train_byte_tokenizer if by_bytes else train_tokenizer
        tokenizer = make(sentences, out / "tokenizer", plan.vocab_size)
        rows = tokenise(sentences, tokenizer, plan.max_length)
        ids, offsets = rows.ids, rows.offsets
        vectors = ppmi_svd(
            ids, plan.vocab_size, plan.embedding or plan.hidden, plan.window, plan.seed
        )
        with written(cache) as temporary, open(temporary, "wb") as file:
            np.savez(file, ids=ids, offsets=offsets, vectors=vectors)
    with np.load(cache) as f:
        return f["ids"], f["offsets"], f["vectors"]


def train(
    plan: Plan, out: Path, data_dir: str | None = None, every_seconds: float = 180, **options
) -> PreTrainedModel:
    """Run `plan` in `out`, continuing from its checkpoint if there is one.

    A finished run goes on where the plan has more tokens.

    Args:
        out: run folder; holds the cached rows, `checkpoint.safetensors` and `log.jsonl`, in which
            the mean of the last token states is scored on STS-B dev where that is at hand.
        data_dir: folder with `corpus/pretrain` (default: `CSE_DATA`).
        every_seconds: time between checkpoints, each with its score.
        options: `device="cpu"`, `compile=False`, `bf16=False`, `progress=True`.

    Raises:
        ValueError: as `check_plan`.
    """
    device, progress = options.get("device", "cpu"), options.get("progress", True)
    out.mkdir(parents=True, exist_ok=True)
    ids, offsets, vectors = prepare(plan, out, data_dir, progress)
    batches = Batches(ids, offsets, plan)
    state = checkpoint_state(out) or {"step": 0, "seen": 0, "seconds": 0.0, "layers": 0}
    check_plan(plan, state)
    state["plan"] = asdict(plan)
    shallow = plan.layers // 2 if plan.grow_at else plan.layers
    model = initial_model(
        plan, vectors, np.bincount(ids, minlength=plan.vocab_size), state["layers"] or shallow
    )
    model = ready(model, device)
    optimizer = make_optimizer(model, plan)
    if state["step"]:
        load_checkpoint(out, model, optimizer)
    state["layers"] = model.config.num_hidden_layers
    options.setdefault("dev", dev_scorer(out / "tokenizer", data_dir))
    bar = tqdm(
        total=plan.tokens, initial=state["seen"], unit="tok", unit_scale=True, disable=not progress
    )
    while state["seen"] < plan.tokens:
        if state["layers"] < plan.layers and state["seen"] >= plan.grow_at:
            model = ready(stack(model), device)  # type: ignore[arg-type]
            optimizer = make_optimizer(model, plan)
            state["layers"] = model.config.num_hidden_layers
        phase_end = plan.tokens if state["layers"] == plan.layers else plan.grow_at
        run_phase(
            model, optimizer, batches, plan, out, state, phase_end, every_seconds, bar, **options
        )
    return model


def run_phase(
    model,
    optimizer,
    batches,
    plan,
    out,
    state,
    end,
    every_seconds,
    bar,
    device="cpu",
    compile=False,
    bf16=False,
    dev=lambda model: {},
    **_,
) -> None:
    """Train until `end` tokens at the present depth; `state` is updated in place and
    checkpointed."""
    model.train()
    asked, where = loss_of(plan), torch.device(device)
    if compile:
        mode = "reduce-overhead" if where.type == "cuda" else None
        asked = torch.compile(asked, dynamic=False, mode=mode)
    started, saved, recent = time.perf_counter(), time.perf_counter(), []
    before = state["seconds"]
    for tokens, batch in prefetched(batches.from_step(state["step"])):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(plan, state["seen"])
        torch.manual_seed(plan.seed * 2**32 + state["step"])
        if compile and where.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(where.type, torch.bfloat16, enabled=bf16):
            loss = asked(model, *(copied_to(x, where) for x in batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        recent.append(loss.detach().clone())
        state["step"] += 1
        state["seen"] += tokens
        state["seconds"] = before + time.perf_counter() - started
        bar.update(tokens)
        due = time.perf_counter() - saved > every_seconds or state["seen"] >= end
        if due or len(recent) >= LOGGED:
            write_log(out, state, recent, bar, dev(model) if due else {})
            recent = []
        if due:
            save_checkpoint(out, model, optimizer, state)
            saved = time.perf_counter()
        if state["seen"] >= end:
            break


def write_log(out: Path, state: dict, recent: list[torch.Tensor], bar: tqdm, scores: dict) -> None:
    """One line in `log.jsonl`: counters, the mean loss since the last line, scores.

    Raises:
        FloatingPointError: a loss is not finite.
    """
    losses = torch.stack(recent).tolist()
    for step, loss in enumerate(losses, state["step"] - len(losses)):
        if not np.isfinite(loss):
            raise FloatingPointError(f"loss is {loss} at step {step}: lower lr or use fp32")
    mean = float(np.mean(losses))
    bar.set_postfix(loss=f"{mean:.3f}", layers=state["layers"], **scores)
    line = {name: value for name, value in state.items() if name != "plan"}
    with open(out / "log.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps({**line, "loss": mean, **scores}) + "\n")


def dev_scorer(tokenizer_folder: Path, data_dir: str | None) -> Callable[[PreTrainedModel], dict]:
    """A function that scores a model on STS-B dev, Spearman × 100; it says nothing where the set
    is not at hand."""
    try:
        pairs = stsb("dev", data_dir)
    except FileNotFoundError:
        return lambda model: {}
    tokenizer = read_tokenizer(str(tokenizer_folder))

    def score(model: PreTrainedModel) -> dict:
        encoder = Encoder(model.base_model, tokenizer, pooling="mean", speedups=False)
        spearman = pairs_spearman(encoder.encode, pairs)
        model.train()
        return {"stsb_dev_spearman": round(spearman, 2)}

    return score


def export(
    model: PreTrainedModel, tokenizer_folder: Path, folder: Path, dropout: float = 0.1
) -> None:
    """Write encoder and tokenizer in `transformers` format, fp16 safetensors, with `dropout` in its
    configuration."""
    encoder = cast(PreTrainedModel, model.base_model)
    encoder.half().cpu()  # type: ignore[call-arg]
    for name in FAMILIES[encoder.config.model_type].dropouts:
        setattr(encoder.config, name, dropout)
    encoder.save_pretrained(folder)
    read_tokenizer(str(tokenizer_folder)).save_pretrained(folder)


def report(plan: Plan, out: Path) -> dict[str, object]:
    """What a finished pre-training was: its plan, tokens, steps, seconds, and the mean loss of its
    last 50 steps."""
    log = out / "log.jsonl"
    loss = round(json.loads(log.read_text().splitlines()[-1])["loss"], 4) if log.exists() else None
    asked = "nats per next token" if FAMILIES[plan.architecture].causal else "nats per masked token"
    done = {key: checkpoint_state(out)[key] for key in ("seen", "step", "seconds")}  # type: ignore[index]
    return {**done, "loss": loss, "loss_unit": asked, "plan": asdict(plan)}


def main(arguments: list[str] | None = None) -> None:
    """Command line: one flag per field of `Plan`, and where to read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.pretrain", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=paths.outputs() / "pretrain" / "mini-bert")
    parser.add_argument("--data-dir", help="folder with corpus/pretrain (default: CSE_DATA)")
    parser.add_argument("--export", type=Path, help="write the finished encoder to this folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    for name, default in asdict(Plan()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    options = vars(parser.parse_args(arguments))
    plan = Plan(**{name: options[name] for name in asdict(Plan())})
    machine = {name: options[name] for name in ("device", "compile", "bf16")}
    model = train(plan, options["out"], options["data_dir"], **machine)
    if options["export"]:
        export(model, options["out"] / "tokenizer", options["export"])
        write_json(options["export"] / "pretraining.json", report(plan, options["out"]))
        print(f"wrote {options['export']}")


if __name__ == "__main__":
    main()
