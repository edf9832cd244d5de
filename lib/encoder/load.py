"""A backbone and its tokenizer from a folder or the Hub: whole, or one sentence that says what is
wrong.

No program code that lies beside a model is run, and no weight is left to chance: a checkpoint that
lacks a tensor of its configuration, or holds one that the configuration has no place for, is
refused. Heads beside a complete backbone are left out.
"""

import inspect
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError
from tokenizers.normalizers import Lowercase, Sequence
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig
from transformers.utils import logging as hf_logging

from lib.data.files import read_json, write_json
from lib.encoder.layers import dropouts, rates

SETTINGS_FILE = "sentence_encoder.json"
HEAD_FILE = "head.safetensors"
MODULES = "modules.json"  # of sentence-transformers, whose weights lie beside it
# Our poolings that sentence-transformers has, too, by their new and their old names there.
SENTENCE_TRANSFORMERS_POOLINGS = {
    "cls": ("cls", "pooling_mode_cls_token"),
    "mean": ("mean", "pooling_mode_mean_tokens"),
    "last_token": ("lasttoken", "pooling_mode_lasttoken"),
}
# Tensors that are not read: the pooler and tables that are computed.
NOT_READ = re.compile(
    r"(^|\.)(pooler\.|(position_ids|token_type_ids|inv_freq|attn\.(masked_)?bias)$)"
)
# What is raised while a model is read, as it leaves `explained`; all else is a ValueError.
NOT_FOUND = (OSError, HFValidationError)
KINDS: dict[Any, type[Exception]] = {ImportError: ImportError, NOT_FOUND: FileNotFoundError}

hf_logging.set_verbosity_error()  # which weights a checkpoint lacks is checked here, not only told
hf_logging.disable_progress_bar()


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what `transformers` and the Hub raise while a model is read into one sentence.

    Raises:
        FileNotFoundError: neither a folder nor a model the Hub can give now.
        PermissionError: the model is gated; the message names the licence page.
        ImportError: reading it needs a package that is not installed.
        ValueError: the files are damaged, or of a model that is not served here.
    """
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        reason = first_line(error).split(". ")[0]
        kind = next((KINDS[theirs] for theirs in KINDS if isinstance(error, theirs)), ValueError)
        if "gated repo" in str(error).lower():
            page, kind = f"https://huggingface.co/{name}", PermissionError
            reason = f"it is gated: accept its licence at {page} and run `hf auth login`"
        elif "trust_remote_code" in str(error):
            reason = "it needs program code of its own, which is not run here"
        elif kind is ValueError and type(error) is not ValueError:
            reason = f"its files are damaged ({type(error).__name__}: {reason}): fetch it again"
        elif kind is FileNotFoundError and not Path(name).exists():
            reason = f"no folder has that name, and the Hub did not give it ({reason})"
        message = f"cannot load the model {name!r}, a folder or one of the Hub: {reason}"
        raise kind(message) from error


def first_line(error: BaseException) -> str:
    """What an exception says in one line: its first, and the second where the first ends in a
    colon."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]) or type(error).__name__


def download_small_files(name: str) -> Path:
    """The folder of a model's JSON files and head: itself, or that of a Hub id in the cache.

    Raises:
        FileNotFoundError: one file of a pair is missing.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = Path(snapshot_download(name, allow_patterns=["*.json", HEAD_FILE]))
    for file, told in ((SETTINGS_FILE, HEAD_FILE), (MODULES, "1_Pooling")):
        if (folder / told).exists() and not (folder / file).is_file():
            raise FileNotFoundError(f"{file}, which says what {told} is, is missing")
    return folder


def read_tokenizer(name: str) -> Any:
    """Tokenizer of a folder or Hub id.

    Raises:
        FileNotFoundError: its files are missing. What `transformers` raises is for `explained`.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise FileNotFoundError("it has no tokenizer: copy its files beside the weights")
    return tokenizer


def fitting_pooling(model: str | Path | PreTrainedConfig) -> str:
    """The pooling that suits an architecture: `last_token` for causal models, else `cls`.

    A causal model's first token has seen itself only: its state is the same for every sentence.

    Args:
        model: a folder, a Hub id, or a configuration that is read already.

    Raises:
        FileNotFoundError, PermissionError, ImportError, ValueError: as `lib.encoder.Encoder.load`.

    Example:
        >>> from lib import paths
        >>> fitting_pooling(paths.MINI_BERT), fitting_pooling(paths.SIBLINGS["Llama"])
        ('cls', 'last_token')
    """
    config = model
    if not isinstance(config, PreTrainedConfig):
        with explained(str(model)):
            config = AutoConfig.from_pretrained(model, trust_remote_code=False)
    masked = _is_a(config, "MaskedLM")
    causal = _is_a(config, "CausalLM") and not masked
    return "last_token" if causal or getattr(config, "is_decoder", False) else "cls"


def _is_a(config: PreTrainedConfig, kind: str) -> bool:
    return type(config) in getattr(transformers, f"AutoModelFor{kind}")._model_mapping


def load_backbone(
    name: str, dropout: float | None = None, pooling: str | None = None
) -> tuple[nn.Module, Any]:
    """Backbone in fp32 without task heads, and its tokenizer.

    Args:
        dropout: probability of every dropout inside the backbone, in [0, 1); None keeps the model's
            own.
        pooling: "pooler" keeps the backbone's pooler, all others leave it out; if nobody has named
            one (None) and a model of its own kind holds a pooler, a warning says so.

    Raises:
        ValueError: an encoder-decoder; a checkpoint with missing or foreign tensors or numbers that
            are not finite; a tokenizer of another model; `dropout` outside its range, or above 0
            for a backbone that has none. What `transformers` raises is for `explained`.
    """
    config = AutoConfig.from_pretrained(name, trust_remote_code=False)
    if config.is_encoder_decoder or _is_a(config, "Seq2SeqLM"):
        raise ValueError("it is an encoder-decoder or part of one: choose BERT or Llama, say")
    config.use_cache = False  # keys and values serve a text that is continued
    for field in rates(config) if dropout is not None else ():
        setattr(config, field, dropout)
    backbone = _read_weights(name, config, pooling)
    if dropout and (not 0 < dropout < 1 or all(p != dropout for *_, p in dropouts(backbone))):
        advice = "set dropout=0 and make positives with positive='delete', say"
        raise ValueError(f"it has no dropout that could be {dropout}: a number in [0, 1): {advice}")
    tokenizer = read_tokenizer(name)
    largest = max(tokenizer.get_vocab().values())
    if largest >= getattr(config, "vocab_size", math.inf):
        raise ValueError(f"its tokenizer is of another model: {largest} has no row of embeddings")
    return backbone, tokenizer


def takes_pooler(architecture: Any) -> bool:
    """Whether a class of `transformers` can be made without its pooler."""
    return "add_pooling_layer" in inspect.signature(architecture).parameters


def _read_weights(name: str, config: PreTrainedConfig, pooling: str | None) -> nn.Module:
    options: dict[str, Any] = {"config": config, "dtype": torch.float32, "trust_remote_code": False}
    if takes_pooler(AutoModel._model_mapping[type(config)]):
        options["add_pooling_layer"] = pooling == "pooler"
    if pooling == "pooler":
        options["key_mapping"] = {r"^mlp\.": "pooler."}  # as SimCSE's train.py calls it
    options |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
    backbone, report = AutoModel.from_pretrained(name, **options)
    if pooling == "pooler" and (not hasattr(backbone, "pooler") or report["missing_keys"]):
        raise ValueError("it has no pooler (pooler.dense or mlp.dense): choose cls or mean")
    parts = {part for part, _ in backbone.named_children()}
    prefix = f"{backbone.base_model_prefix}."
    unread = sorted(report["unexpected_keys"])
    foreign = [key for key in unread if key.removeprefix(prefix).split(".")[0] in parts]
    odd = [*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"]), *foreign]
    wrong = sorted(key for key in odd if not NOT_READ.search(key))
    if wrong:
        lost = f"{len(wrong)} tensors missing, too many or of another shape, {wrong[0]} among them"
        raise ValueError(f"weights and config.json are of two models: {lost}")
    # A head that transformers has a class for was the pre-training's or a task's.
    kinds = config.architectures or ["none"]
    own = not all("For" in kind and hasattr(transformers, kind) for kind in kinds)
    if own and pooling is None and any(key.startswith(("pooler.", "mlp.")) for key in unread):
        advice = "pass pooling='pooler' if its vectors go through it, as supervised SimCSE's do"
        warnings.warn(f"{name}: its pooler is left out: {advice}", stacklevel=2)
    check_finite(dict(backbone.named_parameters()))
    return backbone


def check_finite(state: Mapping[str, torch.Tensor]) -> None:
    """Refuse weights that hold NaN or infinity.

    Raises:
        ValueError: they do.
    """
    for tensor, weight in state.items():
        if not torch.isfinite(weight).all():
            raise ValueError(f"{tensor} holds numbers that are not finite: fetch it again")


def sentence_transformers_pooling(folder: Path) -> str | None:
    """Our name of the pooling that a sentence-transformers model asks for; None for other models.

    Raises:
        ValueError: a pooling, a further layer, a prompt or cut vectors: there is no counterpart.
    """
    if not (folder / MODULES).is_file():
        return None
    modules = [entry["type"].rpartition(".")[2] for entry in read_json(folder / MODULES, list)]
    odd = [kind for kind in modules if kind not in ("Transformer", "Pooling", "Normalize")]
    config = {} if odd else read_json(folder / "1_Pooling" / "config.json")
    if (further := folder / "config_sentence_transformers.json").is_file():
        settings = read_json(further)
        odd += [key for key in ("default_prompt_name", "truncate_dim") if settings.get(key)]
    flags = [flag for flag, on in config.items() if flag.startswith("pooling_mode_") and on]
    modes = config.get("pooling_mode") or flags or "mean"
    mode = modes if isinstance(modes, str) else " + ".join(modes)
    theirs = SENTENCE_TRANSFORMERS_POOLINGS.items()
    ours = {name: pooling for pooling, names in theirs for name in names}
    if odd or mode not in ours:
        advice = "pass pooling=… to take the backbone alone"
        raise ValueError(f"sentence-transformers' {', '.join(odd) or mode} is unknown: {advice}")
    return ours[mode]


def configure_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Let a tokenizer cut and lower-case as a sentence-transformers model says, in place."""
    file = next(folder.glob("sentence_*_config.json"), None)  # named after the family
    settings = read_json(file) if file else {}
    tokenizer.model_max_length = int(settings.get("max_seq_length") or tokenizer.model_max_length)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if settings.get("do_lower_case") and backend is not None:
        before = [backend.normalizer] if backend.normalizer else []
        backend.normalizer = Sequence([Lowercase(), *before])


def write_modules(folder: Path, pooling: str, width: int, transformer: dict[str, Any]) -> None:
    """Make a sentence-transformers model of a folder with weights and tokenizer."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling")])
    ]
    modes = {flag: name == pooling for name, (_, flag) in SENTENCE_TRANSFORMERS_POOLINGS.items()}
    write_json(folder / MODULES, modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **modes})
    write_json(folder / "sentence_bert_config.json", transformer)
