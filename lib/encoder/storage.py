"""What an encoder's folder says beside its weights, in our own form and in that of
sentence-transformers."""

from pathlib import Path
from typing import Any

from lib.encoder.heads import HEADS
from lib.encoder.pooling import POOLINGS
from lib.encoder.pretrained import optional_file, read_json, sentence_transformers_pooling

SETTINGS_FILE = "sentence_encoder.json"
HEAD_FILE = "head.safetensors"
EXPORTED_POOLINGS = {"cls": "cls_token", "mean": "mean_tokens", "last_token": "lasttoken"}


def saved_settings(name: str, pooling: str | None) -> dict[str, Any]:
    """What a folder of ours or of sentence-transformers says; the latter only where no `pooling` is
    asked for."""
    if path := optional_file(name, SETTINGS_FILE):
        settings = read_json(path)
        kinds: dict[str, type] = {
            "pooling": str,
            "head": str,
            "eval_pooling": str,
            "eval_head": bool,
        }
        for key, value in settings.items():
            if key not in kinds:
                raise ValueError(f"{path}: unknown setting {key!r}: known are {', '.join(kinds)}")
            if not isinstance(value, kinds[key]):
                kind = "true or false" if kinds[key] is bool else "a text"
                raise ValueError(f"{path}: {key} must be {kind}, got {value!r}")
            known = HEADS if key == "head" else POOLINGS
            if key != "eval_head" and str(value).partition(":")[0] not in known:
                raise ValueError(
                    f"{path}: unknown {key} {value!r}: choose one of {', '.join(known)}"
                )
        return settings
    if (Path(name) / HEAD_FILE).is_file():
        raise FileNotFoundError(
            f"{name}: {SETTINGS_FILE}, which says what {HEAD_FILE} is, is missing"
        )
    exported = None if pooling else sentence_transformers_pooling(name)
    return {} if exported is None else {"pooling": exported}
