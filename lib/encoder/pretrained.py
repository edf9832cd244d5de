"""A backbone and its tokenizer from a folder or the Hub: whole, or one sentence that says what is
wrong.

No program code that lies beside a model is run, and no weight is left to chance: a checkpoint that
lacks a tensor of its configuration, or holds one that the configuration has no place for, is
refused.
"""

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import GatedRepoError
from tokenizers.normalizers import Lowercase, Sequence
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedConfig,
)
from transformers.utils import cached_file
from transformers.utils import logging as hf_logging

DROPOUT_FIELDS = (
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
LFS_POINTER = b"version https://git-lfs"
# What a checkpoint may hold beside the backbone: heads of the pre-training and of tasks, the pooler
# that a backbone is loaded without, and tables that are computed.
HEADS_OF_PRE_TRAINING = re.compile(
    r"(cls|lm_head|lm_predictions|lm_loss|mlm_head|predictions|mask_predictions|pred_layer|decoder|head"
    r"|vocab_transform|vocab_layer_norm|vocab_projector|generator_predictions|generator_lm_head"
    r"|discriminator_predictions|sop_classifier|classifier|pre_classifier|qa_outputs|score)\."
)
NOT_READ = re.compile(
    r"(^|\.)(pooler\.|(position_ids|token_type_ids|inv_freq|attn\.(masked_)?bias)$)"
)


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
    text = str(error)
    reason = first_line(error).split(". ")[0]
    if isinstance(error.__cause__, GatedRepoError) or "gated repo" in text.lower():
        page = f"https://huggingface.co/{name}"
        return PermissionError(
            f"{name} is gated: accept its licence at {page} and run `hf auth login`"
        )
    if pointer := _lfs_pointer(Path(name)):
        return ValueError(
            f"{pointer} is a pointer of Git LFS and not the file itself: run `git lfs pull`"
        )
    if "trust_remote_code" in text:
        return ValueError(
            f"{name} needs program code of its own (auto_map in its configuration), which is not"
            " run here: choose a model that transformers knows itself"
        )
    if isinstance(error, ImportError):
        return ImportError(f"{name} cannot be read: {reason}")
    if not isinstance(error, OSError):
        problem = "its files are damaged, not complete or of another kind of model"
        return ValueError(f"cannot load the model {name!r}: {problem} ({reason}): fetch it again")
    if Path(name).is_dir():
        problem = "a file of the folder is missing or damaged"
    else:
        problem = "it is no folder with config.json and weights here, and the Hub did not give it"
    return FileNotFoundError(f"cannot load the model {name!r}: {problem} ({reason})")


def _lfs_pointer(folder: Path) -> Path | None:
    """The first file of a folder that stands for one that was not fetched."""
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        if (
            path.is_file()
            and path.stat().st_size < 1024
            and path.read_bytes().startswith(LFS_POINTER)
        ):
            return path
    return None


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
    try:
        cached = cached_file(
            name,
            filename,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
            _raise_exceptions_for_gated_repo=False,
        )
    except OSError:
        return None
    return Path(cached) if cached else None


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file that holds an object (or, with `kind=list`, a list).

    Raises:
        ValueError: it holds something else; the message names the file.
    """
    if path.read_bytes().startswith(LFS_POINTER):
        raise ValueError(
            f"{path} is a pointer of Git LFS and not the file itself: run `git lfs pull`"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): write it again") from error
    if not isinstance(content, kind):
        expected = "an object" if kind is dict else "a list"
        raise ValueError(
            f"{path} must hold {expected}, got {type(content).__name__}: write it again"
        )
    return content


def fitting_pooling(name_or_folder: str | Path) -> str:
    """The pooling that suits an architecture: `cls` where a token sees the whole sentence, else
    `last_token`.

    A causal model's first token has seen itself only: its state is the same for every sentence.
    Whether a model is one is read from its configuration: masked language models are not.

    Raises:
        FileNotFoundError, PermissionError, ImportError, ValueError: as `lib.encoder.Encoder.load`.

    Example:
        >>> from lib import paths
        >>> fitting_pooling(paths.MINI_BERT)
        'cls'
    """
    config = read_config(str(name_or_folder))
    return "cls" if type(config) in AutoModelForMaskedLM._model_mapping else "last_token"


def load_backbone(name: str, dropout: float | None = None) -> tuple[nn.Module, Any]:
    """Backbone in fp32 without pooler and task heads, and its tokenizer.

    Args:
        dropout: probability of every dropout inside the backbone, in [0, 1); None keeps the model's
            own.

    Raises:
        FileNotFoundError: no such model, or a file of it is missing.
        PermissionError, ImportError: as `explained`.
        ValueError: an encoder-decoder; a checkpoint with missing, foreign or mis-shaped tensors or
            numbers that are not finite; a tokenizer of another model; `dropout` outside its range.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    config = read_config(name)
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(
            f"{name} is an encoder-decoder ({config.model_type}), which is not served here: choose"
            " an encoder such as BERT or a decoder such as Llama"
        )
    if getattr(config, "use_cache", False):
        config.use_cache = (
            False  # keys and values of all tokens would be kept, for a text nobody continues
        )
    for field in DROPOUT_FIELDS if dropout is not None else ():
        if isinstance(getattr(config, field, None), float | int):
            setattr(config, field, dropout)
    backbone = _read_weights(name, config)
    tokenizer = read_tokenizer(name)
    _check_vocabulary(name, tokenizer, backbone)
    return backbone, tokenizer


def _read_weights(name: str, config: PreTrainedConfig) -> nn.Module:
    with explained(name):
        architecture = AutoModel._model_mapping[type(config)]
        parameters = inspect.signature(architecture).parameters  # type: ignore[arg-type]
        options = {"add_pooling_layer": False} if "add_pooling_layer" in parameters else {}
        backbone, report = AutoModel.from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    _check_report(name, report)
    for tensor, weight in backbone.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(
                f"{name}: {tensor} holds numbers that are not finite: fetch the weights again"
            )
    return backbone


def _check_report(name: str, report: dict) -> None:
    """Raise unless a checkpoint holds the tensors of its configuration, in their shapes, and no
    others."""
    if mismatched := sorted(report["mismatched_keys"]):
        tensor, there, here = mismatched[0]
        raise ValueError(
            f"{name}: {tensor} has the shape {tuple(there)} and config.json asks for {tuple(here)} "
            f"({len(mismatched)} such tensors): weights and config.json are of two models"
        )
    missing = sorted(k for k in report["missing_keys"] if not NOT_READ.search(k))
    foreign = sorted(
        key
        for key in report["unexpected_keys"]
        if not NOT_READ.search(key) and not HEADS_OF_PRE_TRAINING.match(key)
    )
    problems = []
    if missing:
        problems.append(f"lack {len(missing)} tensors that config.json asks for, e.g. {missing[0]}")
    if foreign:
        problems.append(
            f"hold {len(foreign)} tensors that config.json has no place for, e.g. {foreign[0]}"
        )
    if problems:
        raise ValueError(
            f"{name}: the weights {' and '.join(problems)}: they are not complete, or of another"
            " model"
        )


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


# Poolings of sentence-transformers that have a counterpart here, by their old and new names.
COUNTERPARTS = {"cls": "cls", "mean": "mean", "lasttoken": "last_token"}
_OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_HARMLESS_ARGUMENTS = {
    "add_pooling_layer",
    "attn_implementation",
    "dtype",
    "torch_dtype",
    "trust_remote_code",
}


def sentence_transformers_pooling(name: str) -> str | None:
    """The pooling that a sentence-transformers model asks for in its modules.json; None if it is no
    such model.

    Without a network, a model of the Hub is known as one only if its modules.json is in the cache.

    Raises:
        ValueError: it has a pooling, a module or a setting without counterpart here.
    """
    if (path := optional_file(name, "modules.json")) is None:
        if (Path(name) / "1_Pooling" / "config.json").is_file():
            raise FileNotFoundError(
                f"{name}: modules.json, which says what 1_Pooling is, is missing"
            )
        return None
    modules = [_module(name, entry) for entry in read_json(path, list)]
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise _no_counterpart(name, f"the modules {', '.join(kinds)}")
    (_, weights), (_, folder) = modules[:2]
    if weights:
        raise ValueError(
            f"{name}: the weights lie in its folder {weights}: load that with pooling=…"
        )
    _check_settings(name)
    config = optional_file(name, f"{folder}/config.json")
    if config is None:
        raise FileNotFoundError(
            f"{name}: {folder}/config.json, which modules.json names, is missing"
        )
    modes = _modes(read_json(config))
    if len(modes) != 1 or modes[0] not in COUNTERPARTS:
        raise _no_counterpart(name, f"the pooling {' + '.join(modes)}")
    return COUNTERPARTS[modes[0]]


def _no_counterpart(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} is a sentence-transformers model with {what}, which has no counterpart here (cls,"
        " mean and lasttoken without further layers have): pass pooling=… to take its backbone"
        " alone"
    )


def _module(name: str, entry: Any) -> tuple[str, str]:
    """(class, path) of an entry of modules.json."""
    kind, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(path, str):
        raise ValueError(
            f"{name}: modules.json must list objects with type and path: write it again"
        )
    return kind.rpartition(".")[2] if kind.startswith("sentence_transformers.") else kind, path


def _modes(config: dict) -> list[str]:
    mode = config.get("pooling_mode")
    if mode is None:
        mode = [new for old, new in _OLD_POOLINGS.items() if config.get(old)] or ["mean"]
    return [mode] if isinstance(mode, str) else [str(m) for m in mode]


def _check_settings(name: str) -> None:
    """Raise where sentence-transformers would change the text, the forward pass or the vectors."""
    file = optional_file(name, "config_sentence_transformers.json")
    settings = read_json(file) if file else {}
    prompts = settings.get("prompts") or {}
    if (prompt := settings.get("default_prompt_name")) and prompts.get(prompt):
        raise _no_counterpart(name, f"the prompt {prompts[prompt]!r} before each text")
    if settings.get("truncate_dim"):
        raise _no_counterpart(name, f"vectors cut to {settings['truncate_dim']} dimensions")
    transformer = _transformer_settings(name)
    if (task := transformer.get("transformer_task", "feature-extraction")) != "feature-extraction":
        raise _no_counterpart(name, f"the task {task}")
    for field in ("model", "config", "tokenizer", "processor"):
        for ending in ("args", "kwargs"):
            arguments = set(transformer.get(f"{field}_{ending}") or {}) - _HARMLESS_ARGUMENTS
            if arguments:
                raise _no_counterpart(name, f"{field}_{ending} {', '.join(sorted(arguments))}")
    if transformer.get("processing_kwargs"):
        raise _no_counterpart(name, "processing_kwargs")


def _transformer_settings(name: str) -> dict:
    for family in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"):
        if file := optional_file(name, f"sentence_{family}_config.json"):
            return read_json(file)
    return {}


def limit_like_sentence_transformers(name: str, tokenizer) -> None:
    """Let a tokenizer cut at the model's max_seq_length and lower-case if the model says so, in
    place.

    Raises:
        ValueError: max_seq_length is no positive number.
    """
    if optional_file(name, "modules.json") is None:
        return
    settings = _transformer_settings(name)
    if (longest := settings.get("max_seq_length")) is not None:
        if not isinstance(longest, int) or longest < 1:
            problem = f"max_seq_length must be a positive number, got {longest!r}"
            raise ValueError(f"{name}: sentence_bert_config.json: {problem}")
        tokenizer.model_max_length = longest
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if settings.get("do_lower_case") and backend is not None:
        before = backend.normalizer
        if before is None or before.normalize_str("A") != "a":
            backend.normalizer = Sequence([Lowercase(), *([before] if before else [])])
