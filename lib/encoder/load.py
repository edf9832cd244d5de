"""A backbone and its tokenizer from a folder or the Hub: whole, or one sentence that says what is
wrong.

No program code that lies beside a model is run, and no weight is left to chance: a checkpoint that
lacks a tensor of its configuration, or holds one that the configuration has no place for, is
refused. Heads beside a complete backbone are left out.
"""

import inspect
import json
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

from lib.checked import made
from lib.data.files import write_json
from lib.encoder.heads import Settings, check_head
from lib.encoder.layers import dropouts, rates

SETTINGS_FILE = "sentence_encoder.json"
HEAD_FILE = "head.safetensors"
MODULES = "modules.json"  # of sentence-transformers, whose weights lie beside it
CHANGE_VECTORS = ("default_prompt_name", "truncate_dim")
# Our poolings that sentence-transformers has, too, by their new and their old names there.
THEIR_POOLINGS = {
    "cls": ("cls", "pooling_mode_cls_token"),
    "mean": ("mean", "pooling_mode_mean_tokens"),
    "last_token": ("lasttoken", "pooling_mode_lasttoken"),
}
# Tensors that are not read: the pooler, unless it is asked for, and tables that are computed.
NOT_READ = re.compile(
    r"(^|\.)(pooler\.|(position_ids|token_type_ids|inv_freq|attn\.(masked_)?bias)$)"
)
POOLERS = ("pooler.", "mlp.")  # SimCSE's train.py calls the pooler mlp


@contextmanager
def quiet() -> Iterator[None]:
    """Neither progress bars nor notes of `transformers` inside."""
    bars, verbosity = hf_logging.is_progress_bar_enabled(), hf_logging.get_verbosity()
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()
    try:
        yield
    finally:
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()


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
        with quiet():
            yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        reason = first_line(error).split(". ")[0]
        if "gated repo" in str(error).lower():
            page = f"https://huggingface.co/{name}"
            message = f"{name} is gated: accept its licence at {page} and run `hf auth login`"
            raise PermissionError(message) from error
        if "trust_remote_code" in str(error):
            reason = "it needs program code of its own, which is not run here"
        missing = (
            FileNotFoundError if isinstance(error, OSError | HFValidationError) else ValueError
        )
        kind = ImportError if isinstance(error, ImportError) else missing
        problem = "a file is missing, damaged (fetch it again) or of another kind of model"
        raise kind(f"cannot load the model {name!r}: {problem} ({reason})") from error


def first_line(error: BaseException) -> str:
    """What an exception says in one line: its first, and the second where the first ends in a
    colon."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]) or type(error).__name__


def small_files(name: str) -> Path:
    """The folder of a model's JSON files and head: itself, or that of a Hub id in the cache.

    Raises:
        FileNotFoundError: it is not there, or one file of a pair is missing.
        PermissionError, ValueError: as `explained`.
    """
    folder = Path(name)
    if not folder.is_dir():
        with explained(name):
            folder = Path(snapshot_download(name, allow_patterns=["*.json", HEAD_FILE]))
    for file, told in ((SETTINGS_FILE, HEAD_FILE), (MODULES, "1_Pooling")):
        if (folder / told).exists() and not (folder / file).is_file():
            raise FileNotFoundError(f"{name}: {file}, which says what {told} is, is missing")
    return folder


def read_tokenizer(name: str, **options: Any):
    """Tokenizer of a folder or Hub id; `options` go to `transformers`.

    Raises:
        FileNotFoundError: its files are missing.
        PermissionError, ImportError, ValueError: as `explained`.
    """
    with explained(name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            name, trust_remote_code=False, **options
        )
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise FileNotFoundError(f"{name} has no tokenizer: copy its files beside the weights")
    return tokenizer


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file that holds an object (or, with `kind=list`, a list).

    Raises:
        ValueError: it holds something else; the message names the file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): write it again") from error
    if isinstance(content, kind):
        return content
    raise ValueError(f"{path} must hold a {kind.__name__}: write it again")


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
    config = model if isinstance(model, PreTrainedConfig) else _read_config(str(model))
    masked = type(config) in transformers.AutoModelForMaskedLM._model_mapping
    causal = type(config) in transformers.AutoModelForCausalLM._model_mapping and not masked
    return "last_token" if causal or getattr(config, "is_decoder", False) else "cls"


def _read_config(name: str) -> PreTrainedConfig:
    with explained(name):
        return AutoConfig.from_pretrained(name, trust_remote_code=False)


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
        FileNotFoundError: no such model, or a file of it is missing.
        PermissionError, ImportError: as `explained`.
        ValueError: an encoder-decoder; a checkpoint with missing, foreign or mis-shaped tensors or
            numbers that are not finite; a tokenizer of another model; `dropout` outside its range,
            or above 0 for a backbone that has none.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    config = _read_config(name)
    if (
        config.is_encoder_decoder
        or type(config) in transformers.AutoModelForSeq2SeqLM._model_mapping
    ):
        kind = f"{name} is an encoder-decoder or the encoder of one ({config.model_type})"
        raise ValueError(f"{kind}: choose an encoder such as BERT or a decoder such as Llama")
    if getattr(config, "use_cache", False):
        config.use_cache = False  # keys and values serve a text that is continued
    for field in rates(config) if dropout is not None else ():
        setattr(config, field, dropout)
    backbone = _read_weights(name, config, pooling)
    if dropout and all(rate != dropout for *_, rate in dropouts(backbone)):
        kind = f"{name}: {type(backbone).__name__} has no dropout"
        raise ValueError(f"{kind}: set dropout=0 and make positives with positive='delete', say")
    tokenizer = read_tokenizer(name)
    largest, rows = max(tokenizer.get_vocab().values()), getattr(config, "vocab_size", None)
    if rows and largest >= rows:
        ids = (
            f"{name}: the tokenizer's ids go up to {largest}, the embedding matrix has {rows} rows"
        )
        raise ValueError(f"{ids}: the tokenizer is of another model")
    return backbone, tokenizer


def takes_pooler(architecture: Any) -> bool:
    """Whether a class of `transformers` can be made without its pooler."""
    return "add_pooling_layer" in inspect.signature(architecture).parameters


def _read_weights(name: str, config: PreTrainedConfig, pooling: str | None) -> nn.Module:
    options: dict[str, Any] = {"config": config, "dtype": torch.float32, "trust_remote_code": False}
    with explained(name):
        if takes_pooler(AutoModel._model_mapping[type(config)]):
            options["add_pooling_layer"] = pooling == "pooler"
        if pooling == "pooler":
            options["key_mapping"] = {r"^mlp\.": "pooler."}
        backbone, report = AutoModel.from_pretrained(name, output_loading_info=True, **options)
    missing, unread = sorted(report["missing_keys"]), sorted(report["unexpected_keys"])
    if pooling == "pooler" and (not hasattr(backbone, "pooler") or missing):
        raise ValueError(f"{name} has no pooler (pooler.dense or mlp.dense): choose cls or mean")
    parts = {part for part, _ in backbone.named_children()}
    prefix = f"{backbone.base_model_prefix}."
    foreign = [key for key in unread if key.removeprefix(prefix).split(".")[0] in parts]
    wrong = [key for key in (*missing, *foreign) if not NOT_READ.search(key)]
    if wrong:
        lost = f"{len(wrong)} tensors are missing or too many, {wrong[0]} among them"
        raise ValueError(f"{name}: weights and config.json are of two models ({lost})")
    check_finite(name, dict(backbone.named_parameters()))
    # A head that transformers has a class for was the pre-training's or a task's.
    kinds = config.architectures or ["none"]
    own = not all("For" in kind and hasattr(transformers, kind) for kind in kinds)
    if own and pooling is None and any(key.startswith(POOLERS) for key in unread):
        advice = "pass pooling='pooler' if its vectors go through it, as supervised SimCSE's do"
        warnings.warn(f"{name}: its pooler is left out: {advice}", stacklevel=2)
    return backbone


def check_finite(name: str, state: Mapping[str, torch.Tensor]) -> None:
    """Refuse weights of a file or model that hold NaN or infinity.

    Raises:
        ValueError: they do.
    """
    for tensor, weight in state.items():
        if not torch.isfinite(weight).all():
            raise ValueError(f"{name}: {tensor} holds numbers that are not finite: fetch it again")


def saved_settings(folder: Path) -> dict[str, Any]:
    """What `Encoder.save` wrote beside the weights; empty for other models.

    Raises:
        ValueError: a setting that there is not, or a value that it cannot have.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return {}
    saved = read_json(path)
    try:
        check_head(made(Settings, saved, "an encoder").head)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return saved


def described(folder: Path, pooling: str | None = None) -> tuple[str | None, dict[str, Any]]:
    """The pooling of a sentence-transformers model and the settings of its first module; of another
    model `pooling` and nothing.

    Args:
        folder: of `small_files`.
        pooling: one that is asked for in place of the model's: its backbone is taken alone.

    Raises:
        ValueError: a pooling, a module or a setting that has no counterpart here, or damaged files.
    """
    if not (folder / MODULES).is_file():
        return pooling, {}
    file = next(folder.glob("sentence_*_config.json"), None)  # named after the family
    transformer = read_json(file) if file else {}
    longest = transformer.get("max_seq_length")
    if not isinstance(longest, int | None):
        raise ValueError(f"{file}: max_seq_length must be a whole number, got {longest!r}")
    return pooling or _their_pooling(folder), transformer


def _their_pooling(folder: Path) -> str:
    """Our name of the pooling that modules.json asks for, if nothing else there would change the
    text, the forward pass or the vectors."""
    further = folder / "config_sentence_transformers.json"
    try:
        modules = [entry["type"].rpartition(".")[2] for entry in read_json(folder / MODULES, list)]
        config = read_json(folder / "1_Pooling" / "config.json")
        settings = read_json(further) if further.is_file() else {}
    except (AttributeError, TypeError, KeyError, OSError) as error:
        problem = f"{MODULES}, or a file that it names, is missing or damaged"
        raise ValueError(f"{folder}: {problem} ({first_line(error)})") from error
    flags = [flag for flag, on in config.items() if flag.startswith("pooling_mode_") and on]
    modes = config.get("pooling_mode") or flags or "mean"
    mode = modes if isinstance(modes, str) else " + ".join(modes)
    ours = {name: pooling for pooling, names in THEIR_POOLINGS.items() for name in names}
    odd = [kind for kind in modules if kind not in ("Transformer", "Pooling", "Normalize")]
    odd += [f"{key} {settings[key]}" for key in CHANGE_VECTORS if settings.get(key)]
    if odd or mode not in ours:
        what = f"{folder}: sentence-transformers' {', '.join(odd) or mode} has no counterpart here"
        raise ValueError(f"{what}: pass pooling=… to take the backbone alone")
    return ours[mode]


def limit(tokenizer: Any, transformer: dict[str, Any]) -> None:
    """Let a tokenizer cut and lower-case as a sentence-transformers model says, in place."""
    tokenizer.model_max_length = transformer.get("max_seq_length") or tokenizer.model_max_length
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if transformer.get("do_lower_case") and backend is not None:
        before = [backend.normalizer] if backend.normalizer else []
        backend.normalizer = Sequence([Lowercase(), *before])


def write_modules(folder: Path, pooling: str, width: int, transformer: dict[str, Any]) -> None:
    """Make a sentence-transformers model of a folder with weights and tokenizer."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling")])
    ]
    modes = {flag: name == pooling for name, (_, flag) in THEIR_POOLINGS.items()}
    write_json(folder / MODULES, modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **modes})
    write_json(folder / "sentence_bert_config.json", transformer)
