"""A backbone with pooling and a projection head: text in, sentence embeddings out."""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm

from lib.checked import validated
from lib.data.files import atomic_write, read_json, write_json, write_text
from lib.encoder import layers, load
from lib.encoder.device import copied_to, resolve_device, resolve_precision
from lib.encoder.heads import POOLINGS, PoolingSettings, build_head, pool
from lib.encoder.load import first_line, fitting_pooling
from lib.encoder.tokens import TokenRows, tokenise

_LONGEST = 1_000_000


class Encoder(nn.Module):
    """Sentence encoder: backbone → pooling → projection head.

    In training mode a forward pass returns `head(pool(pooling))`; in evaluation mode it returns
    `pool(eval_pooling)`, through the head only if `eval_head`.

    Args:
        seed: of the head's initial weights.
        speedups: the CPU's dropout and the other means of `lib.encoder.layers`, which `speed_up`
            has given the backbone.
        settings: fields of `PoolingSettings`.

    Example:
        >>> from lib import paths
        >>> encoder = Encoder.load(paths.MINI_BERT)
        >>> encoder.encode(["A dog barks.", "A dog barks."]).shape
        (2, 256)
    """

    def __init__(self, backbone, tokenizer, seed: int = 0, speedups: bool = True, **settings: Any):
        super().__init__()
        self.backbone, self.tokenizer = backbone, tokenizer
        chosen = validated(PoolingSettings, settings, "an encoder")
        pooling = chosen.pooling or fitting_pooling(backbone.config)
        poolings = {"pooling": pooling, "eval_pooling": chosen.eval_pooling or pooling}
        self.settings = chosen.model_dump(exclude={"head_init", "head_per_view"}) | poolings
        if "cls" in poolings.values() and fitting_pooling(backbone.config) != "cls":
            advice = "so pooling 'cls' gives all sentences one vector: choose last_token or mean"
            message = f"the first token of {type(backbone).__name__} sees itself alone, {advice}"
            warnings.warn(message, stacklevel=2)
        self.head_per_view = chosen.head_per_view
        self._first_alone = False  # in the last layer, beyond its attention
        if speedups and backbone.config.model_type in layers.FIRST_TOKEN_ALONE:
            output = backbone.encoder.layer[-1].attention.output
            output.register_forward_pre_hook(self._keep_first)
        std = getattr(backbone.config, "initializer_range", 0.02)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.head = build_head(chosen.head, backbone.config.hidden_size, std, chosen.head_init)

    @classmethod
    def load(
        cls,
        name_or_folder: str | Path,
        dropout: float | None = None,
        device: str = "cpu",
        lora_rank: int = 0,
        **options: Any,
    ) -> "Encoder":
        """Load a Hugging Face id, a `transformers` or sentence-transformers folder, or a folder
        written by `save`.

        A sentence-transformers model is pooled, cut and lower-cased as it says itself, so that
        `encode` gives its vectors (without their normalisation, which a cosine does not see). No
        program code of a model is run.

        Args:
            dropout: probability of every dropout inside the backbone, in [0, 1); None keeps the
                model's own.
            device: as `resolve_device`.
            lora_rank: r of LoRA (`layers.add_lora`), 0 trains all weights. `save` writes the sum
                of both.
            options: as `Encoder`. A field of `PoolingSettings` that is None or not given is what
                the folder was saved or exported with. `pooling="pooler"` is [CLS] through the
                pooler that the checkpoint holds, as supervised SimCSE publishes its vectors.

        Raises:
            FileNotFoundError: neither a folder nor a model the Hub can give now, or a file of it is
                missing.
            PermissionError: the model is gated; the message names the licence page.
            ImportError: a package that it needs is not installed.
            ValueError: its files are damaged, of two models, or of a kind that is not served:
                encoder-decoders, models that need program code of their own, sentence-transformers
                with other poolings or further layers (unless `pooling` is given, which takes the
                backbone alone); a `dropout` above 0 where the backbone has none.
        """
        name, where = str(name_or_folder), resolve_device(device)
        options = {key: value for key, value in options.items() if value is not None}
        if options.get("pooling") not in (None, "pooler", *POOLINGS):
            known = ", ".join((*POOLINGS, "pooler"))
            raise ValueError(f"unknown pooling {options['pooling']!r}: choose one of {known}")
        with load.explained(name):
            folder = load.download_small_files(name)
            path = folder / load.SETTINGS_FILE
            saved = read_json(path) if path.is_file() else {}
            if "pooling" in options:
                saved.pop("eval_pooling", None)
            settings = saved | options
            if pooling := settings.get("pooling") or load.sentence_transformers_pooling(folder):
                settings["pooling"] = pooling
            backbone, tokenizer = load.load_backbone(name, dropout, pooling)
            if pooling == "pooler":
                settings |= {"pooling": "cls", "head": "tanh", "eval_head": True}
            load.configure_tokenizer(tokenizer, folder)
            if settings.get("speedups", True):
                layers.speed_up(backbone)
            if lora_rank:
                layers.add_lora(backbone, lora_rank, settings.get("seed", 0))
            encoder = cls(backbone, tokenizer, **settings)
            if pooling == "pooler":
                layer: Any = backbone.pooler  # a linear layer, in most models called dense
                weights = getattr(layer, "dense", layer).state_dict()
                encoder.head.get_submodule("0").load_state_dict(weights)
                backbone.pooler = None  # type: ignore[assignment]
            elif encoder.settings["head"] == saved.get("head") and encoder.head.state_dict():
                encoder.head.load_state_dict(load_file(folder / load.HEAD_FILE))
                load.check_finite(encoder.head.state_dict())
        return encoder.to(where).eval()

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, sizes: Sequence[int] | None = None
    ) -> Tensor:
        """Embeddings `z` (n, d) of token ids (n, t): what enters the loss, not normalised.

        Args:
            sizes: rows of each view, n in sum; with `head_per_view` the head is applied to each of
                them by itself, so that its batch norm never sees two views together.
        """
        pooling = self.settings["pooling" if self.training else "eval_pooling"]
        z = self._pooled(input_ids, attention_mask, pooling)
        if not (self.training or self.settings["eval_head"]):
            return z
        if sizes is None or not self.head_per_view:
            return self.head(z)
        return torch.cat([self.head(view) for view in z.split(list(sizes))])

    def _pooled(self, ids: Tensor, mask: Tensor, pooling: str) -> Tensor:
        every = pooling not in ("cls", "mean", "last_token")
        self._first_alone = pooling == "cls"
        try:
            output = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=every)
        finally:
            self._first_alone = False
        states = output.hidden_states if every else (output.last_hidden_state,)
        return pool(states, mask, pooling)

    def _keep_first(self, _module: nn.Module, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What [CLS] pooling needs of the last layer: its attention has seen all tokens by then."""
        return tuple(s[:, :1] for s in states) if self._first_alone else states

    def encode(
        self,
        sentences: Sequence[str],
        pooling: str | None = None,
        batch_tokens: int | None = None,
        precision: str = "auto",
        max_length: int | None = None,
        progress: bool = False,
    ) -> np.ndarray:
        """Embeddings `(n, d)` float32 of `sentences`, in their order, without dropout.

        Each distinct sentence is encoded once, sorted by length. A sentence without any token, as
        the empty one is for a tokenizer without special tokens, is a row of zeros. The few
        architectures whose states see the padding (FNet, CANINE, ConvBERT, Nyströmformer) give a
        sentence a vector that depends on its batch.

        Args:
            pooling: another pooling than `eval_pooling`, without the head.
            batch_tokens: most tokens of a batch, with its padding; None is 16,384 on a GPU, and on
                a CPU so few that a layer's activations stay in its cache, 400,000 / hidden size.
            precision: as `resolve_precision`; it holds whatever autocast this is called in.
            max_length: tokens to cut at; None or 0 is the longest the model can read.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences must be a list of strings, not one string")
        bf16 = resolve_precision(precision, self.device) == "bf16"
        sentences = list(sentences)
        row_of = {s: i for i, s in enumerate(dict.fromkeys(sentences))}
        hidden = self.backbone.config.hidden_size
        with self._evaluating(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            width = self._headed(torch.zeros(1, hidden, device=self.device), pooling).shape[1]
            out = np.zeros((len(row_of), width), np.float32)
            if not row_of:
                return out
            longest = self.longest_input()
            rows = tokenise(list(row_of), self.tokenizer, min(max_length or longest, longest))
            usual = 400_000 // hidden if self.device.type == "cpu" else 16_384
            batches = list(_batches(rows.lengths, batch_tokens or usual))
            bar = tqdm(batches, unit="batch", desc="encode", disable=not progress)
            vectors = [self._encode_batch(rows, batch, pooling) for batch in bar]
            if vectors:
                out[np.concatenate(batches)] = torch.cat(vectors).cpu().numpy()
        return out[[row_of[s] for s in sentences]]

    def _encode_batch(self, rows: TokenRows, batch: np.ndarray, pooling: str | None) -> Tensor:
        ids, mask = (copied_to(x, self.device) for x in rows[batch])
        z = self._pooled(ids, mask, pooling or self.settings["eval_pooling"])
        return self._headed(z, pooling).float()

    def _headed(self, z: Tensor, pooling: str | None) -> Tensor:
        """Pooled vectors as they leave the evaluation: through the head where it has a part."""
        return self.head(z) if self.settings["eval_head"] and pooling is None else z

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        was_training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.train(was_training)

    def longest_input(self) -> int:
        """Most tokens the model reads: the smaller of the tokenizer's and the position table's
        limit."""
        table = getattr(getattr(self.backbone, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        offset = 0 if padding is None else padding + 1  # RoBERTa's start after the padding's
        positions = getattr(self.backbone.config, "max_position_embeddings", None) or 0
        limit = positions - offset if positions > 0 else _LONGEST  # XLNet has -1: no table
        return min(self.tokenizer.model_max_length, limit, _LONGEST)

    def trained_state(self) -> dict[str, Tensor]:
        """Weights that a training changes: with LoRA the adapters and the head, else all of them.

        The tensors are the model's own. `load_trained_state` puts them into an encoder that was
        loaded the same way.
        """
        state = self.state_dict()
        if not hasattr(self.backbone, "peft_config"):
            return state
        return {k: v for k, v in state.items() if ".lora_" in k or k.startswith("head.")}

    def load_trained_state(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `trained_state` gave, in place; frozen weights stay as they are."""
        self.load_state_dict(dict(state), strict=False)

    def save(self, folder: str | Path) -> None:
        """Write backbone, tokenizer, head and settings; `load(folder)` gives the same embeddings.

        The folder appears complete or not at all; an older one of that name is replaced.
        """
        with _atomic_write(folder) as temporary:
            self._write_backbone(temporary)
            state = {k: v.contiguous() for k, v in self.head.state_dict().items()}
            if state:
                save_file(state, temporary / load.HEAD_FILE)
            write_json(temporary / load.SETTINGS_FILE, self.settings)

    def _write_backbone(self, folder: Path, padded: bool = False) -> None:
        """Weights and tokenizer; `padded` for programs that let the tokenizer pad."""
        tokenizer = copy.deepcopy(self.tokenizer)
        if padded:
            tokenizer.padding_side = "right"  # as `tokens.TokenRows`; causal models count from left
            if tokenizer.pad_token is None:
                tokenizer.pad_token = tokenizer.eos_token
        if fast := getattr(tokenizer, "backend_tokenizer", None):
            fast.no_truncation()  # else the file holds the length of the last call
            fast.no_padding()
        self.backbone.save_pretrained(folder, state_dict=layers.merged_state(self.backbone))
        tokenizer.save_pretrained(folder)

    def export_sentence_transformers(self, folder: str | Path, card: str = "") -> None:
        """Write a folder that `SentenceTransformer(folder)` opens and that gives the vectors of
        `encode`.

        Args:
            card: text of its README.md, if any. The folder appears complete or not at all.

        Raises:
            ValueError: `eval_pooling` has no counterpart there (cls, mean and last_token have), or
                the head is kept at evaluation.
        """
        pooling = self.settings["eval_pooling"]
        if pooling not in load.SENTENCE_TRANSFORMERS_POOLINGS or self.settings["eval_head"]:
            advice = "export with cls, mean or last_token and without head"
            raise ValueError(f"sentence-transformers has no module for this {pooling!r}: {advice}")
        transformer: dict[str, Any] = {"max_seq_length": self.longest_input()}
        if load.takes_pooler(type(self.backbone)):
            transformer["model_args"] = {"add_pooling_layer": False}
        with _atomic_write(folder) as temporary:
            self._write_backbone(temporary, padded=True)
            load.write_modules(temporary, pooling, self.backbone.config.hidden_size, transformer)
            if card:
                write_text(temporary / "README.md", card)


@contextmanager
def _atomic_write(folder: str | Path) -> Iterator[Path]:
    """`files.atomic_write`, where all may read the weights that safetensors writes for their owner
    alone, and what it and the tokenizer raise on a full disk is an OSError."""
    with atomic_write(folder) as temporary:
        try:
            yield temporary
            for path in temporary.rglob("*.safetensors"):
                path.chmod(0o644)
        except Exception as error:
            raise OSError(f"{folder} cannot be written: {first_line(error)}") from error


def _batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Rows by length, without the empty ones: at most `batch_tokens` tokens with their padding in
    each batch."""
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    start = 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or (stop + 1 - start) * lengths[order[stop]] > batch_tokens:
            yield order[start:stop]
            start = stop
