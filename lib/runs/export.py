"""A finished run as a folder that `sentence-transformers` opens, with a model card."""

from pathlib import Path
from typing import Any

from lib import paths
from lib.data import files
from lib.encoder import Encoder
from lib.runs.inputs import portable

SHIPPED = (paths.MINI_BERT, paths.MIDI_BERT, *paths.SIBLINGS.values())


def model_card(params: dict[str, Any], metrics: dict[str, Any], name: str, dimension: int) -> str:
    """README.md of an exported encoder: what it is, how it was trained, what it scores, how it is
    used.

    Args:
        params, metrics: contents of a run's `params.json` and `metrics.json`.
        name: of the model.
        dimension: of its embeddings.
    """
    told = {k: _public(v) for k, v in params.items() if k not in ("data", "run_id", "resolved")}
    head, backbone = "", params["backbone"]
    if params["data"]["model"].startswith(f"{backbone}@"):
        head, told["backbone"] = f"base_model: {backbone}\n", backbone
    if backbone in [portable(str(folder)) for folder in SHIPPED]:
        head = "license: cc-by-sa-4.0\n"
    scores = {
        key.removesuffix("_best").replace("_spearman", "").replace("_", " "): value
        for key, value in metrics.items()
        if key.endswith(("_spearman_best", "sts7_test_avg_best")) and value is not None
    }
    values = {**params, **told, **metrics, "name": name, "dimension": dimension, "head": head}
    values["scores"] = "\n".join(f"| {key} | {value:.2f} |" for key, value in scores.items())
    values["training"] = "\n".join(f"| {key} | {value} |" for key, value in told.items())
    return Path(__file__).with_name("model_card.md").read_text("utf-8").format_map(values)


def _public(value: Any) -> Any:
    """A parameter without the folders of somebody's machine.

    Example:
        >>> _public("/thesis/models/my-bert"), _public("data/mini-bert"), _public(0.1)
        ('my-bert', 'data/mini-bert', 0.1)
    """
    private = isinstance(value, str) and not value.startswith("data/")
    return Path(value).name if private else value


def export(run_folder: Path, target: Path) -> Path:
    """Write a finished run's best checkpoint as a folder that `SentenceTransformer(target)` opens,
    with a model card.

    Raises:
        FileNotFoundError: the folder is not a finished run, or it has no checkpoint.
        FileExistsError: the target holds something else than an exported encoder.
        ValueError: a file of the run is damaged, or its scores are those of whitened vectors.
    """
    if files.is_foreign(target, "modules.json"):
        raise FileExistsError(f"{target} is there and is no exported encoder: name a new folder")
    for name in ("metrics.json", "best"):
        if not (run_folder / name).exists():
            raise FileNotFoundError(f"{run_folder} is no finished run that trained: no {name}")
    params = files.read_json(run_folder / "params.json")
    metrics = files.read_json(run_folder / "metrics.json")
    if params.get("whiten"):
        raise ValueError("sentence-transformers has no module for whitening: train without whiten")
    encoder = Encoder.load(run_folder / "best")
    try:
        card = model_card(params, metrics, target.name, encoder.encode(["."]).shape[1])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{run_folder} lacks a value ({error}): run it again") from error
    encoder.export_sentence_transformers(target, card)
    return target
