"""A backbone with pooling and a projection head: text in, sentence embeddings out."""

import inspect
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from huggingface_hub.errors import GatedRepoError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging as hf_logging

from lib.dropout import cheapen
from lib.lora import adapter_state, add_lora, has_lora, load_adapter_state, merged_state
from lib.tokens import TokenRows, tokenise

POOLINGS = ("cls", "mean", "last2_mean", "first_last_mean_embeddings", "first_last_mean_layer_1", "last_token")
HEADS = ("none", "linear", "tanh", "relu", "simclr", "bn_mlp", "simsiam")
SETTINGS_FILE = "sentence_encoder.json"
HEAD_FILE = "head.safetensors"
_DROPOUT_FIELDS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "hidden_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "dropout_rate",
)
_LONGEST = 1_000_000
_EXPORTED_POOLINGS = {"cls": "cls_token", "mean": "mean_tokens", "last_token": "lasttoken"}


def resolve_device(device: str = "auto") -> torch.device:
    """`"auto"` is the first GPU if there is one, else the CPU; any other name is taken as it is.

    Raises:
        ValueError: a GPU is named and PyTorch sees none.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = torch.device(device)
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r} asked for, but PyTorch sees no GPU: use device='cpu'")
    return chosen


def resolve_precision(precision: str = "auto", device: str | torch.device = "cpu") -> str:
    """`"auto"` is bf16 autocast where the device multiplies bf16 matrices in hardware, else fp32.

    That means: GPUs that support bf16, and CPUs with AMX tiles or AVX512-BF16. On other CPUs bf16 is
    emulated and several times slower than fp32. The environment variable `CSE_AUTO_PRECISION`, fp32 or bf16, says
    what "auto" means in its place; a precision that is named is not touched by it.

    Raises:
        ValueError: `precision` is not one of auto, fp32, bf16.
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision must be 'auto', 'fp32' or 'bf16', got {precision!r}")
    if precision != "auto":
        return precision
    if wished := os.environ.get("CSE_AUTO_PRECISION"):
        if wished not in ("fp32", "bf16"):
            raise ValueError(f"CSE_AUTO_PRECISION must be fp32 or bf16, got {wished!r}")
        return wished
    if torch.device(device).type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    fast = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return "bf16" if fast else "fp32"


def pool(hidden_states: Sequence[Tensor], mask: Tensor, pooling: str) -> Tensor:
    """Sentence vectors `(n, d)` from the hidden states of all layers.

    Args:
        hidden_states: the embeddings' output and every layer's output, each (n, t, d). For `cls`, `mean`
            and `last_token` the last entry alone is enough.
        mask: (n, t), 1 for real tokens, 0 for padding; padding never enters a mean.
        pooling: `cls` first column, so padding has to stand on the right, as `lib.tokens` puts it; `mean` of the last
            layer; `last2_mean` of the last two layers;
            `first_last_mean_embeddings` of the embeddings' output and the last layer;
            `first_last_mean_layer_1` of layer 1 and the last layer; `last_token` the last real token,
            whichever side the padding is on.

    Raises:
        ValueError: unknown pooling.

    Example:
        >>> states = [torch.tensor([[[1.0], [3.0], [9.0]]])]
        >>> pool(states, torch.tensor([[1, 1, 0]]), "mean")
        tensor([[2.]])
    """
    last = hidden_states[-1]
    if pooling == "cls":
        return last[:, 0]
    if pooling == "last_token":
        position = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(1)
        return last[torch.arange(len(last), device=last.device), position]
    layers = {
        "mean": (-1,),
        "last2_mean": (-1, -2),
        "first_last_mean_embeddings": (0, -1),
        "first_last_mean_layer_1": (1, -1),
    }
    if pooling not in layers:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    weight = mask[:, :, None].to(last.dtype)  # (n, t, 1)
    total = torch.stack([hidden_states[i] for i in layers[pooling]]).mean(0)  # (n, t, d)
    return (total * weight).sum(1) / weight.sum(1).clamp_min(1)


def fitting_pooling(name_or_folder: str | Path) -> str:
    """The pooling that suits an architecture: `cls` where a token sees the whole sentence, else `last_token`.

    A causal model's first token has seen itself only: its state is the same for every sentence. Whether a model is one
    is read from its configuration: masked language models are not.

    Raises:
        FileNotFoundError, PermissionError: as `Encoder.load`.

    Example:
        >>> from lib import paths
        >>> fitting_pooling(paths.MINI_BERT)
        'cls'
    """
    with _explained(str(name_or_folder)):
        config = AutoConfig.from_pretrained(name_or_folder)
    return "cls" if type(config) in AutoModelForMaskedLM._model_mapping else "last_token"


def build_head(name: str, width: int, std: float = 0.02) -> nn.Module:
    """Projection head `(n, width) → (n, out)` used in training.

    Args:
        name: `none`; `linear`; `tanh` or `relu` (linear, then that); `simclr:h:out` (linear to h, batch norm, ReLU,
            linear to out); `bn_mlp` (two linear layers without bias, each with batch norm, ReLU between);
            `simsiam:h:out` (such a projection with batch norm at its end, then a predictor of the same
            shape; both outputs side by side, (n, 2·out)). Without `:h:out` both are `width`. Batch norm takes its
            statistics over all rows of a forward pass, both views together.
        width: of the sentence vectors.
        std: of the initial weights of a single layer.

    Raises:
        ValueError: unknown head, or sizes that are not two positive numbers.

    Example:
        >>> build_head("simclr:600:512", 768)(torch.randn(4, 768)).shape
        torch.Size([4, 512])

    Sources: `tanh` is BERT's pooler and SimCSE's MLP head (Gao et al. 2021, §6.3); Chen et al. 2020 (SimCLR), §4.2;
    Zhu et al. 2024 (SDA), §5.3, in the form of Chuang et al. 2022 (DiffCSE);
    Chen & He 2021 (SimSiam), §3, whose projection has three layers and whose predictor a narrower hidden one.
    """
    kind, *sizes = name.split(":")
    if kind not in HEADS:
        raise ValueError(f"unknown head {name!r}: choose one of {', '.join(HEADS)}")
    fits = not sizes or (kind in ("simclr", "simsiam") and len(sizes) == 2 and all(s.isdecimal() for s in sizes))
    if not fits or "0" in sizes:
        raise ValueError(f"head {name!r}: sizes are written as in simclr:600:512 or simsiam:600:512")
    if kind == "none":
        return nn.Identity()
    hidden, out = map(int, sizes) if sizes else (width, width)
    if kind == "simclr":
        return _mlp(width, hidden, out)
    if kind == "bn_mlp":
        first, second = (nn.Linear(width, width, bias=False) for _ in range(2))
        return nn.Sequential(first, nn.BatchNorm1d(width), nn.ReLU(), second, nn.BatchNorm1d(width, affine=False))
    if kind == "simsiam":
        return Siamese(nn.Sequential(*_mlp(width, hidden, out), nn.BatchNorm1d(out)), _mlp(out, hidden, out))
    linear = nn.Linear(width, width)
    nn.init.normal_(linear.weight, std=std)
    nn.init.zeros_(linear.bias)
    return {"linear": linear, "tanh": nn.Sequential(linear, nn.Tanh()), "relu": nn.Sequential(linear, nn.ReLU())}[kind]


def _mlp(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out))


class Siamese(nn.Module):
    """SimSiam's projection and its prediction of the other view's, side by side: (n, width) → (n, 2·out)."""

    def __init__(self, projector: nn.Module, predictor: nn.Module):
        super().__init__()
        self.projector, self.predictor = projector, predictor

    def forward(self, x: Tensor) -> Tensor:
        """[projection; prediction] of sentence vectors."""
        z = self.projector(x)
        return torch.cat([z, self.predictor(z)], dim=1)


class Encoder(nn.Module):
    """Sentence encoder: backbone → pooling → projection head.

    In training mode a forward pass returns `head(pool(pooling))`; in evaluation mode it returns
    `pool(eval_pooling)`, through the head only if `eval_head`.

    Example:
        >>> from lib import paths
        >>> encoder = Encoder.load(paths.MINI_BERT)
        >>> encoder.encode(["A dog barks.", "A dog barks."]).shape
        (2, 256)
    """

    def __init__(self, backbone, tokenizer, pooling="cls", head="none", eval_pooling=None, eval_head=False, seed=0):
        super().__init__()
        for name in (pooling, eval_pooling or pooling):
            if name not in POOLINGS:
                raise ValueError(f"unknown pooling {name!r}: choose one of {', '.join(POOLINGS)}")
        self.backbone, self.tokenizer = backbone, tokenizer
        self.settings = {
            "pooling": pooling,
            "head": head,
            "eval_pooling": eval_pooling or pooling,
            "eval_head": eval_head,
        }
        config = backbone.config
        self._first_token_only = False
        if output := _last_attention_output(backbone):
            output.register_forward_pre_hook(self._keep_needed_tokens)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = build_head(head, config.hidden_size, getattr(config, "initializer_range", 0.02))

    @classmethod
    def load(
        cls,
        name_or_folder: str | Path,
        pooling: str | None = None,
        head: str | None = None,
        eval_pooling: str | None = None,
        eval_head: bool | None = None,
        dropout: float | None = None,
        device: str = "cpu",
        seed: int = 0,
        lora_rank: int = 0,
    ) -> "Encoder":
        """Load a Hugging Face id, a `transformers` or sentence-transformers folder, or a folder written by `save`.

        Args:
            pooling, head, eval_pooling, eval_head: as `Encoder`; None takes what the folder was saved or exported with,
                else cls, none, the pooling itself, False.
            dropout: probability of every dropout inside the backbone, in [0, 1); None keeps the model's own.
            device: as `resolve_device`.
            seed: of the initial weights of a head that the folder does not hold, and of LoRA's.
            lora_rank: r of `lib.lora`, 0 trains all weights. `save` writes the sum of both, which any `load` reads.

        Raises:
            FileNotFoundError: neither a folder nor a model the Hub can give now.
            PermissionError: the model is gated; the message names the licence page.
        """
        settings = cls._saved_settings(name_or_folder)
        explicit = {"pooling": pooling, "head": head, "eval_pooling": eval_pooling, "eval_head": eval_head}
        saved_head = settings.get("head")
        if pooling is not None and eval_pooling is None:
            settings.pop("eval_pooling", None)
        settings.update({k: v for k, v in explicit.items() if v is not None})
        backbone, tokenizer = _load_backbone(str(name_or_folder), dropout)
        if lora_rank:
            add_lora(backbone, lora_rank, seed)
        encoder = cls(backbone, tokenizer, **settings, seed=seed)
        weights = Path(name_or_folder) / HEAD_FILE
        if weights.exists() and encoder.settings["head"] == saved_head:
            encoder.head.load_state_dict(load_file(weights))
        return encoder.to(resolve_device(device)).eval()

    @staticmethod
    def _saved_settings(folder: str | Path) -> dict:
        path, exported = Path(folder) / SETTINGS_FILE, Path(folder) / "1_Pooling" / "config.json"
        if path.exists() or not exported.exists():
            return json.loads(path.read_text()) if path.exists() else {}
        modes = json.loads(exported.read_text())
        for name, mode in _EXPORTED_POOLINGS.items():
            if modes.get(f"pooling_mode_{mode}") or modes.get("pooling_mode") in (name, mode.removesuffix("_token")):
                return {"pooling": name}
        return {}

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embeddings `z` (n, d) of token ids (n, t): what enters the loss, not normalised."""
        pooling = self.settings["pooling" if self.training else "eval_pooling"]
        z = pool(self._layers(input_ids, attention_mask, pooling), attention_mask, pooling)
        return self.head(z) if self.training or self.settings["eval_head"] else z

    def _layers(self, input_ids: Tensor, attention_mask: Tensor, pooling: str) -> Sequence[Tensor]:
        every = pooling not in ("cls", "mean", "last_token")
        self._first_token_only = pooling == "cls"
        output = self.backbone(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=every)
        self._first_token_only = False
        return output.hidden_states if every else (output.last_hidden_state,)

    def _keep_needed_tokens(self, _module: nn.Module, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Of the last layer's rows after attention, [CLS] pooling reads the first: the others are not computed."""
        return tuple(s[:, :1] for s in states) if self._first_token_only else states

    def encode(
        self,
        sentences: Sequence[str],
        batch_tokens: int | None = None,
        precision: str = "auto",
        max_length: int | None = None,
        progress: bool = False,
        pooling: str | None = None,
    ) -> np.ndarray:
        """Embeddings `(n, d)` float32 of `sentences`, in their order, without dropout.

        Each distinct sentence is encoded once. Sentences are sorted by length and batched so that a batch
        holds at most `batch_tokens` tokens with padding.

        Args:
            batch_tokens: None is 16,384 on a GPU; on a CPU so few that a layer's activations stay in its cache,
                400,000 / hidden size.
            precision: as `resolve_precision`.
            max_length: tokens to cut at; None is the longest the model can read.
            pooling: another pooling than `eval_pooling`, without the head.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences must be a list of strings, not one string")
        if pooling is not None and pooling not in POOLINGS:
            raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
        place = {s: i for i, s in enumerate(dict.fromkeys(sentences))}
        if not place:
            return np.zeros((0, self.backbone.config.hidden_size), np.float32)
        rows = tokenise(list(place), self.tokenizer, max_length or self.longest_input(), progress=False)
        order = np.argsort(rows.lengths, kind="stable")
        if batch_tokens is None:
            batch_tokens = 400_000 // self.backbone.config.hidden_size if self.device.type == "cpu" else 16_384
        out = None
        bf16 = resolve_precision(precision, self.device) == "bf16"
        was_training = self.training
        self.eval()
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=bf16),
            tqdm(total=len(order), unit="sentence", desc="encode", disable=not progress) as bar,
        ):
            for batch in _token_batches(order, rows.lengths, batch_tokens):
                z = self._encode_batch(rows, batch, pooling).float().cpu().numpy()
                out = np.empty((len(order), z.shape[1]), np.float32) if out is None else out
                out[batch] = z
                bar.update(len(batch))
        self.train(was_training)
        assert out is not None
        return out[[place[s] for s in sentences]]

    def _encode_batch(self, rows: TokenRows, batch: np.ndarray, pooling: str | None) -> Tensor:
        ids, mask = (x.to(self.device) for x in rows[batch])
        if pooling is None:
            return self(ids, mask)
        return pool(self._layers(ids, mask, pooling), mask, pooling)

    def longest_input(self) -> int:
        """Most tokens the model reads: the smaller of the tokenizer's and the position table's limit."""
        table = getattr(getattr(self.backbone, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        offset = 0 if padding is None else padding + 1  # RoBERTa's positions start after the padding's
        positions = getattr(self.backbone.config, "max_position_embeddings", None) or _LONGEST
        return min(self.tokenizer.model_max_length, positions - offset, _LONGEST)

    @torch.inference_mode()
    def hidden_states(self, sentence: str) -> np.ndarray:
        """Hidden states `(layers + 1, t, d)` of one sentence without dropout; entry 0 is the embeddings' output."""
        was_training = self.training
        self.eval()
        batch = self.tokenizer(sentence, return_tensors="pt", truncation=True, max_length=self.longest_input())
        batch = batch.to(self.device)
        output = self.backbone(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], output_hidden_states=True
        )
        self.train(was_training)
        return torch.stack(output.hidden_states)[:, 0].float().cpu().numpy()

    def trained_state(self) -> dict[str, Tensor]:
        """Weights that a training changes: with LoRA the adapters and the head, else all of them.

        The tensors are the model's own. `load_trained_state` puts them into an encoder that was loaded the same way.
        """
        if not has_lora(self.backbone):
            return self.state_dict()
        adapters = {f"backbone.{name}": weight for name, weight in adapter_state(self.backbone).items()}
        return adapters | {f"head.{name}": weight for name, weight in self.head.state_dict().items()}

    def load_trained_state(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `trained_state` gave, in place; frozen weights stay as they are.

        Raises:
            ValueError: the state is of another encoder.
        """
        try:
            if not has_lora(self.backbone):
                self.load_state_dict(dict(state))
                return
            self.head.load_state_dict(_part(state, "head."))
        except RuntimeError as error:
            raise ValueError(f"these weights are of another encoder: {_one_line(error)}") from error
        load_adapter_state(self.backbone, _part(state, "backbone."))

    def save(self, folder: str | Path) -> None:
        """Write backbone, tokenizer, head and settings; `load(folder)` gives the same embeddings.

        The folder appears complete or not at all; an older one of that name is replaced.
        """
        folder = Path(folder)
        temporary = self._begin(folder)
        state = {k: v.contiguous() for k, v in self.head.state_dict().items()}
        if state:
            save_file(state, temporary / HEAD_FILE)
        _write_json(temporary / SETTINGS_FILE, self.settings)
        replace_folder(temporary, folder)

    def _begin(self, folder: Path) -> Path:
        temporary = folder.with_name(f"{folder.name}.tmp{os.getpid()}")
        self.backbone.save_pretrained(temporary, state_dict=merged_state(self.backbone))
        self.tokenizer.save_pretrained(temporary)
        return temporary

    def export_sentence_transformers(self, folder: str | Path) -> None:
        """Write a folder that `SentenceTransformer(folder)` opens and that gives the vectors of `encode`.

        Raises:
            ValueError: `eval_pooling` has no counterpart there (cls, mean and last_token have), or the head
                is kept at evaluation.
        """
        modes = _EXPORTED_POOLINGS
        pooling = self.settings["eval_pooling"]
        if pooling not in modes or self.settings["eval_head"]:
            raise ValueError(
                f"sentence-transformers has no module for eval_pooling={pooling!r} with "
                f"eval_head={self.settings['eval_head']}: export with cls, mean or last_token and no head"
            )
        folder = Path(folder)
        temporary = self._begin(folder)
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        pooling_config = {
            "word_embedding_dimension": self.backbone.config.hidden_size,
            **{f"pooling_mode_{name}": mode == pooling for mode, name in modes.items()},
        }
        (temporary / "1_Pooling").mkdir(parents=True, exist_ok=True)
        _write_json(temporary / "modules.json", modules)
        _write_json(temporary / "1_Pooling" / "config.json", pooling_config)
        _write_json(temporary / "sentence_bert_config.json", {"max_seq_length": self.longest_input()})
        replace_folder(temporary, folder)


def _part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _last_attention_output(backbone: nn.Module) -> nn.Module | None:
    """What follows the attention in the last layer of a BERT-like backbone; None for another architecture."""
    layers = getattr(getattr(backbone, "encoder", None), "layer", None)
    return getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None


def keep_bf16(backbone: nn.Module) -> nn.Module:
    """Let the residual stream be bf16 too while a BERT-like `backbone` trains under bf16 autocast, in place.

    Autocast itself adds in fp32 what its matrix products return in bf16, and converts again for each of them.
    """

    def lower(module: nn.Module, _inputs, output: Tensor) -> Tensor:
        return output.bfloat16() if module.training and torch.is_autocast_enabled(output.device.type) else output

    if isinstance(embeddings := getattr(backbone, "embeddings", None), nn.Module):
        embeddings.register_forward_hook(lower)
    return backbone


def replace_folder(temporary: Path, folder: Path) -> None:
    """Move a finished folder to its name; what stood there is removed only after the new one is in place."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.old{os.getpid()}")
        folder.rename(old)
        temporary.rename(folder)
        shutil.rmtree(old)
    else:
        temporary.rename(folder)


def recover_folder(folder: Path) -> None:
    """Undo what a process killed in `replace_folder` left: the older folder gets its name back, remains go."""
    for old in folder.parent.glob(f"{folder.name}.old*"):
        shutil.rmtree(old) if folder.exists() else old.rename(folder)
    for temporary in folder.parent.glob(f"{folder.name}.tmp*"):
        shutil.rmtree(temporary)


def _write_json(path: Path, content) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def _token_batches(order: np.ndarray, lengths: np.ndarray, batch_tokens: int):
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= batch_tokens:
            stop += 1
        yield order[start:stop]
        start = stop


@contextmanager
def _quiet() -> Iterator[None]:
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()


def _load_backbone(name: str, dropout: float | None):
    with _explained(name):
        config = AutoConfig.from_pretrained(name)
        if dropout is not None:
            if not 0 <= dropout < 1:
                raise ValueError(f"dropout must be in [0, 1), got {dropout}")
            for field in _DROPOUT_FIELDS:
                if isinstance(getattr(config, field, None), float | int):
                    setattr(config, field, dropout)
        architecture = AutoModel._model_mapping[type(config)]
        unused = "add_pooling_layer" in inspect.signature(architecture).parameters  # type: ignore[arg-type]
        options = {"add_pooling_layer": False} if unused else {}
        with _quiet():
            backbone = AutoModel.from_pretrained(name, config=config, dtype=torch.float32, **options)
        return keep_bf16(cheapen(backbone)), AutoTokenizer.from_pretrained(name)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        text = str(error)
        if isinstance(error.__cause__, GatedRepoError) or "gated repo" in text.lower():
            raise PermissionError(
                f"{name} is gated: accept its licence at https://huggingface.co/{name} and run `hf auth login`"
            ) from error
        raise FileNotFoundError(
            f"cannot load the model {name!r}: it is no folder with config.json and weights here, and the Hub "
            f"did not give it ({(text.splitlines() or [type(error).__name__])[0]})"
        ) from error
