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
from huggingface_hub.errors import GatedRepoError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
)
from transformers.utils import cached_file
from transformers.utils import logging as hf_logging

from lib.encoder.dropout import DROPOUT_FIELDS, dropouts

LFS_POINTER = b"version https://git-lfs"
# Tensors that are not read: the pooler, unless it is asked for, and tables that are computed.
NOT_READ = re.compile(
    r"(^|\.)(pooler\.|(position_ids|token_type_ids|inv_freq|attn\.(masked_)?bias)$)"
)
# SimCSE's train.py calls the pooler mlp.
POOLERS = {r"^mlp\.": "pooler."}


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
        raise _sentence(name, error) from error


def first_line(error: BaseException) -> str:
    """What an exception says in one line: its first, and the second where the first ends in a
    colon."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]) or type(error).__name__


def _sentence(name: str, error: Exception) -> Exception:
    reason = first_line(error).split(". ")[0]
    if isinstance(error.__cause__, GatedRepoError) or "gated repo" in str(error).lower():
        page = f"https://huggingface.co/{name}"
        text = f"{name} is gated: accept its licence at {page} and run `hf auth login`"
        return PermissionError(text)
    small = (p for p in Path(name).glob("*") if p.is_file() and p.stat().st_size < 1024)
    for path in sorted(small):
        if path.read_bytes().startswith(LFS_POINTER):
            return ValueError(f"{path} is a pointer of Git LFS, not the file: run `git lfs pull`")
    if "trust_remote_code" in str(error):
        return ValueError(
            f"{name} needs program code of its own (auto_map in its configuration), which is not"
            " run here: choose a model that transformers knows itself"
        )
    if isinstance(error, ImportError):
        return ImportError(f"{name} cannot be read: {reason}")
    if not isinstance(error, OSError):
        problem = "its files are damaged, not complete or of another kind of model"
        return ValueError(f"cannot load the model {name!r}: {problem} ({reason}): fetch it again")
    problem = "it is no folder with config.json and weights here, and the Hub did not give it"
    if Path(name).is_dir():
        problem = "a file of the folder is missing or damaged"
    return FileNotFoundError(f"cannot load the model {name!r}: {problem} ({reason})")


def read_config(name: str, **options: Any) -> PreTrainedConfig:
    """Configuration of a folder or Hub id; `options` go to `transformers`.

    Raises:
        FileNotFoundError, PermissionError, ImportError, ValueError: as `explained`.
    """
    if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise FileNotFoundError(f"cannot load the model {name!r}: the folder has no config.json")
    with explained(name):
        return AutoConfig.from_pretrained(name, trust_remote_code=False, **options)


def read_tokenizer(name: str, **options: Any):
    """Tokenizer of a folder or Hub id; `options` go to `transformers`.

    Raises:
        FileNotFoundError: its files are missing.
        PermissionError, ImportError, ValueError: as `explained`.
    """
    with explained(name):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, **options)
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        files = " or ".join(reversed(tokenizer.vocab_files_names.values()))
        raise FileNotFoundError(
            f"{name} has no tokenizer: {files} is missing: copy the tokenizer's files beside the"
            " weights"
        )
    return tokenizer


def optional_file(name: str, filename: str) -> Path | None:
    """A file of a model's folder or of its Hub repository (without a network: of the cache), or
    None."""
    if Path(name).is_dir():
        path = Path(name) / filename
        return path if path.is_file() else None
    kinds = ("missing_entries", "connection_errors", "gated_repo")
    options: dict[str, Any] = {f"_raise_exceptions_for_{kind}": False for kind in kinds}
    try:
        cached = cached_file(name, filename, **options)
    except OSError:
        return None
    return Path(cached) if cached else None


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file that holds an object (or, with `kind=list`, a list).

    Raises:
        ValueError: it holds something else; the message names the file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): write it again") from error
    if not isinstance(content, kind):
        expected = "an object" if kind is dict else "a list"
        found = type(content).__name__
        raise ValueError(f"{path} must hold {expected}, got {found}: write it again")
    return content


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
    config = model if isinstance(model, PreTrainedConfig) else read_config(str(model))
    masked = type(config) in AutoModelForMaskedLM._model_mapping
    causal = type(config) in AutoModelForCausalLM._model_mapping and not masked
    return "last_token" if causal or getattr(config, "is_decoder", False) else "cls"


def load_backbone(
    name: str, dropout: float | None = None, pooling: str | None = None
) -> tuple[nn.Module, Any]:
    """Backbone in fp32 without task heads, and its tokenizer.

    Args:
        dropout: probability of every dropout inside the backbone, in [0, 1); None keeps the model's
            own.
        pooling: "pooler" keeps the backbone's pooler, all others leave it out; if nobody has named
            one (None) and the checkpoint holds a layer after the backbone, a warning says so.

    Raises:
        FileNotFoundError: no such model, or a file of it is missing.
        PermissionError, ImportError: as `explained`.
        ValueError: an encoder-decoder; a checkpoint with missing, foreign or mis-shaped tensors or
            numbers that are not finite; a tokenizer of another model; `dropout` outside its range,
            or above 0 for a backbone that has none.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    config = read_config(name)
    if config.is_encoder_decoder or type(config) in AutoModelForSeq2SeqLM._model_mapping:
        raise ValueError(
            f"{name} is an encoder-decoder or the encoder of one ({config.model_type}); these are"
            " not served here: choose an encoder such as BERT or a decoder such as Llama"
        )
    if getattr(config, "use_cache", False):
        config.use_cache = False  # keys and values serve a text that is continued
    for field in DROPOUT_FIELDS if dropout is not None else ():
        if isinstance(getattr(config, field, None), float | int):
            setattr(config, field, dropout)
    backbone = _read_weights(name, config, pooling)
    if dropout and all(rate != dropout for *_, rate in dropouts(backbone)):
        raise ValueError(
            f"{name}: {type(backbone).__name__} has no dropout, so dropout={dropout} would do"
            " nothing and two encodings of a sentence would be equal: set dropout=0 and make"
            " positives otherwise, e.g. positive='delete'"
        )
    tokenizer = read_tokenizer(name)
    _check_vocabulary(name, tokenizer, backbone)
    return backbone, tokenizer


def takes_pooler(architecture: Any) -> bool:
    """Whether a class of `transformers` can be made without its pooler."""
    return "add_pooling_layer" in inspect.signature(architecture).parameters


def _read_weights(name: str, config: PreTrainedConfig, pooling: str | None) -> nn.Module:
    options: dict[str, Any] = {}
    with explained(name):
        if takes_pooler(AutoModel._model_mapping[type(config)]):
            options["add_pooling_layer"] = pooling == "pooler"
        if pooling == "pooler":
            options["key_mapping"] = POOLERS
        backbone, report = AutoModel.from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    left_out = _check_report(name, backbone, report, pooling)
    # A head that transformers has a class for was the pre-training's or a task's.
    names = config.architectures or ["none"]
    if all("For" in name and hasattr(transformers, name) for name in names):
        return backbone
    if pooling is None and left_out:
        advice = "pass pooling='pooler' if its vectors go through it, as supervised SimCSE's do"
        if not left_out[0].startswith(("pooler.", "mlp.")):
            advice = "the backbone alone is read"
        warnings.warn(
            f"{name}: {left_out[0]}, a layer after the backbone, is left out: {advice}",
            stacklevel=2,
        )
    return backbone


def _check_report(name: str, backbone: nn.Module, report: dict, pooling: str | None) -> list[str]:
    """The tensors of a checkpoint that are left out, if it holds all that its configuration asks
    for, in their shapes, and no others of the backbone."""
    if mismatched := sorted(report["mismatched_keys"]):
        tensor, there, here = mismatched[0]
        raise ValueError(
            f"{name}: {tensor} has the shape {tuple(there)} and config.json asks for {tuple(here)} "
            f"({len(mismatched)} such tensors): weights and config.json are of two models"
        )
    missing = sorted(report["missing_keys"])
    if pooling == "pooler" and (not hasattr(backbone, "pooler") or missing):
        raise ValueError(f"{name} has no pooler (pooler.dense or mlp.dense): choose cls or mean")
    missing = [key for key in missing if not NOT_READ.search(key)]
    unread = sorted(report["unexpected_keys"])
    parts = {part for part, _ in backbone.named_children()}
    prefix = f"{backbone.base_model_prefix}."
    foreign = [
        key
        for key in unread
        if key.removeprefix(prefix).split(".")[0] in parts and not NOT_READ.search(key)
    ]
    problems = []
    if missing:
        problems.append(f"lack {len(missing)} tensors that config.json asks for, e.g. {missing[0]}")
    if foreign:
        problems.append(f"hold {len(foreign)} that config.json has no place for, e.g. {foreign[0]}")
    if problems:
        raise ValueError(
            f"{name}: the weights {' and '.join(problems)}: they are not complete, or of another"
            " model"
        )
    check_finite(name, dict(backbone.named_parameters()))
    heads = [key for key in unread if key.endswith(".weight")]
    return sorted(heads, key=lambda key: not key.startswith(("pooler.", "mlp.")))


def check_finite(name: str, state: Mapping[str, torch.Tensor]) -> None:
    """Refuse weights of a file or model that hold NaN or infinity.

    Raises:
        ValueError: they do.
    """
    for tensor, weight in state.items():
        if not torch.isfinite(weight).all():
            raise ValueError(f"{name}: {tensor} holds numbers that are not finite: fetch it again")


def _check_vocabulary(name: str, tokenizer, backbone: nn.Module) -> None:
    try:
        table = backbone.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return
    rows = getattr(table, "num_embeddings", None)
    largest = max(tokenizer.get_vocab().values())
    if isinstance(rows, int) and largest >= rows:
        raise ValueError(
            f"{name}: the tokenizer's ids go up to {largest} and the embedding matrix has {rows}"
            " rows: the tokenizer is of another model"
        )
