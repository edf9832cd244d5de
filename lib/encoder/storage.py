"""What an encoder's folder says beside its weights, in our own form and in that of
sentence-transformers."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from tokenizers.normalizers import Lowercase, Sequence

from lib.data.files import write_json
from lib.encoder.heads import HEADS
from lib.encoder.pooling import POOLINGS
from lib.encoder.pretrained import optional_file, read_json

SETTINGS_FILE = "sentence_encoder.json"
HEAD_FILE = "head.safetensors"
ALLOWED = {"pooling": POOLINGS, "head": HEADS, "eval_pooling": POOLINGS, "eval_head": (True, False)}
# Our poolings that sentence-transformers has, too, by their new and their old names there.
EXPORTED_POOLINGS = {"cls": "cls", "mean": "mean", "last_token": "lasttoken"}
OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
HARMLESS = {"add_pooling_layer", "attn_implementation", "dtype", "torch_dtype", "trust_remote_code"}
# What `limit` follows, and what describes the text models that are served anyway.
FOLLOWED = {"max_seq_length", "do_lower_case", "modality_config", "module_output_name"}
FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")


def saved_settings(name: str) -> dict[str, Any]:
    """What `Encoder.save` wrote beside the weights; empty for other models.

    Raises:
        FileNotFoundError: there is a head without settings.
        ValueError: a setting that there is not, or a value that it cannot have.
    """
    path = optional_file(name, SETTINGS_FILE)
    if path is None:
        if (Path(name) / HEAD_FILE).is_file():
            raise FileNotFoundError(
                f"{name}: {SETTINGS_FILE}, which says what {HEAD_FILE} is, is missing"
            )
        return {}
    settings = read_json(path)
    for key, value in settings.items():
        if key not in ALLOWED:
            raise ValueError(f"{path}: unknown setting {key!r}: known are {', '.join(ALLOWED)}")
        kind = value.partition(":")[0] if isinstance(value, str) else value
        if kind not in ALLOWED[key]:
            choices = ", ".join(map(str, ALLOWED[key]))
            raise ValueError(f"{path}: {key} must be one of {choices}, got {value!r}")
    return settings


@dataclass
class Described:
    """What a model's modules.json says, or nothing.

    Attributes:
        folder: of the weights; a Hub id where they lie at its top.
        pooling: None unless it is a sentence-transformers model.
        transformer: the settings of its first module.
    """

    folder: str
    pooling: str | None = None
    transformer: dict[str, Any] = field(default_factory=dict)


def described(name: str, pooling: str | None = None) -> Described:
    """What a sentence-transformers model says of its weights, pooling and tokenizer.

    Without a network, a model of the Hub is known as one only if its modules.json is in the cache.

    Args:
        pooling: one that is asked for in place of the model's: its backbone is taken alone.

    Raises:
        FileNotFoundError: a file that another one names is missing.
        ValueError: a pooling, a module or a setting that has no counterpart here.
    """
    path = optional_file(name, "modules.json")
    if path is None:
        if (Path(name) / "1_Pooling" / "config.json").is_file():
            raise FileNotFoundError(
                f"{name}: modules.json, which says what 1_Pooling is, is missing"
            )
        return Described(name)
    try:
        modules = [(str(entry["type"]), Path(entry["path"])) for entry in read_json(path, list)]
        first = modules[0][1]
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"{path} must list objects with type and path: write it again") from error
    files = [optional_file(name, f"{first / f'sentence_{kind}_config.json'}") for kind in FAMILIES]
    transformer: dict[str, Any] = next((read_json(file) for file in files if file), {})
    pooling = pooling or _their_pooling(name, modules, transformer)
    if not first.parts:
        return Described(name, pooling, transformer)
    local = Path(name).is_dir()  # old versions put the weights into 0_BERT or 0_Transformer
    top = name if local else snapshot_download(name, allow_patterns=f"{first}/*")
    return Described(str(Path(top) / first), pooling, transformer)


def _their_pooling(name: str, modules: list[tuple[str, Path]], transformer: dict[str, Any]) -> str:
    """Our name of the pooling that modules.json asks for, if nothing else there would change the
    text, the forward pass or the vectors."""
    names = [kind for kind, _ in modules]
    kinds = [n.split(".")[-1] if n.startswith("sentence_transformers.") else n for n in names]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise _no_counterpart(name, f"the modules {', '.join(kinds)}")
    path = optional_file(name, f"{modules[1][1] / 'config.json'}")
    if path is None:
        missing = modules[1][1] / "config.json"
        raise FileNotFoundError(f"{name}: {missing}, which modules.json names, is missing")
    config = read_json(path)
    old = [new for flag, new in OLD_POOLINGS.items() if config.get(flag)]
    modes = config.get("pooling_mode") or old or ["mean"]
    modes = [modes] if isinstance(modes, str) else [str(mode) for mode in modes]
    ours = {theirs: own for own, theirs in EXPORTED_POOLINGS.items()}
    if len(modes) > 1 or modes[0] not in ours:
        raise _no_counterpart(name, f"the pooling {' + '.join(modes)}")
    file = optional_file(name, "config_sentence_transformers.json")
    further = read_json(file) if file else {}
    settings = {key: further.get(key) for key in ("default_prompt_name", "truncate_dim")}
    for key, value in (transformer | settings).items():
        if isinstance(value, dict) and key.endswith("args"):
            value = {argument for argument in value if argument not in HARMLESS}
        if value and key not in FOLLOWED and value != "feature-extraction":
            raise _no_counterpart(name, f"{key} {value}")
    return ours[modes[0]]


def _no_counterpart(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} is a sentence-transformers model with {what}, which has no counterpart here (cls,"
        " mean and lasttoken without further layers have): pass pooling=… to take its backbone"
        " alone"
    )


def limit(tokenizer, transformer: dict[str, Any]) -> None:
    """Let a tokenizer cut and lower-case as a sentence-transformers model says, in place.

    Raises:
        ValueError: max_seq_length is no positive number.
    """
    longest = transformer.get("max_seq_length")
    if longest is not None:
        if not isinstance(longest, int) or longest < 1:
            name = tokenizer.name_or_path
            raise ValueError(f"{name}: max_seq_length must be a positive number, got {longest!r}")
        tokenizer.model_max_length = longest
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if transformer.get("do_lower_case") and backend is not None:
        before = backend.normalizer
        if before is None or before.normalize_str("A") != "a":
            backend.normalizer = Sequence([Lowercase(), *([before] if before else [])])


def write_modules(folder: Path, pooling: str, width: int, transformer: dict[str, Any]) -> None:
    """Make a sentence-transformers model of a folder with weights and tokenizer."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling")])
    ]
    theirs = EXPORTED_POOLINGS[pooling]
    modes = {flag: new == theirs for flag, new in OLD_POOLINGS.items()}
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **modes})
    write_json(folder / "sentence_bert_config.json", transformer)
