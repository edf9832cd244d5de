"""A trained encoder outside this project: a sentence-transformers folder with its model card, and a
search with it.

`python -m lib export RUN my-model` writes the folder,
`python -m lib search my-model FILE "a query"` searches with it.
"""

from pathlib import Path

import numpy as np
import yaml

from lib import evaluate, paths
from lib.data.files import is_foreign
from lib.encoder import Encoder
from lib.encoder.load import read_json
from lib.runs import inputs

WEIGHTS_LICENCE = {
    inputs.portable(str(f)): "cc-by-sa-4.0"
    for f in (paths.MINI_BERT, paths.MIDI_BERT, *paths.SIBLINGS.values())
}
_HEAD = {  # what the Hub reads of a card
    "library_name": "sentence-transformers",
    "pipeline_tag": "sentence-similarity",
    "tags": [
        "sentence-transformers",
        "feature-extraction",
        "sentence-similarity",
        "contrastive-learning",
    ],
}


def model_card(params: dict, metrics: dict, environment: dict, name: str, dimension: int) -> str:
    """README.md of an exported encoder: what it is, how it was trained, what it scores, how it is
    used.

    Args:
        params, metrics, environment: contents of a run's `params.json`, `metrics.json` and
            `env.json`.
        name: of the model; dimension: of its embeddings.
    """
    backbone = params["backbone"]
    head = dict(_HEAD)
    if _on_the_hub(params):
        head["base_model"] = backbone
    if backbone in WEIGHTS_LICENCE:
        head["license"] = WEIGHTS_LICENCE[backbone]
    scores = {
        key.removesuffix("_best").replace("_spearman", "").replace("_", " "): value
        for key, value in metrics.items()
        if "spearman" in key and key.endswith("_best") and value is not None
    }
    if metrics.get("sts7_test_avg_best") is not None:
        scores["mean of the seven STS tasks"] = metrics["sts7_test_avg_best"]
    told = ("run_id", "data", "recipe", "backbone", "seed")
    trained = {key: _public(value) for key, value in params.items() if key not in told}
    shown = backbone if _on_the_hub(params) else _public(backbone)
    template = Path(__file__).with_name("model_card.md").read_text(encoding="utf-8")
    return template.format(
        **{key: params[key] for key in ("recipe", "seed", "run_id")},
        backbone=shown,
        **{key: metrics[key] for key in ("best_step", "steps", "train_seconds")},
        **{key: environment["versions"][key] for key in ("torch", "transformers")},
        front=yaml.safe_dump(head, sort_keys=False),
        name=name,
        dimension=dimension,
        scores="\n".join(f"| {key} | {value:.2f} |" for key, value in scores.items()),
        training="\n".join(f"| {key} | {value} |" for key, value in trained.items()),
        machine=environment["gpu"] or environment["cpu"],
    )


def _on_the_hub(params: dict) -> bool:
    """Whether a run started from a model of the Hub: its hash is the id with its commit."""
    name = params["backbone"]
    return name in inputs.PACKAGED or str(params["data"]["model"]).startswith(f"{name}@")


def _public(value: object) -> object:
    """A parameter without the folders of somebody's machine.

    Example:
        >>> _public("/thesis/models/my-bert"), _public("data/mini-bert"), _public(0.1)
        ('my-bert', 'data/mini-bert', 0.1)
    """
    if not isinstance(value, str) or value.startswith("data/"):
        return value
    return Path(value).name


def export(run_folder: Path, target: Path, name: str = "") -> Path:
    """Write a finished run's best checkpoint as a folder that `SentenceTransformer(target)` opens,
    with a model card.

    Raises:
        FileNotFoundError: the folder is not a finished run, or its checkpoint is gone.
        FileExistsError: the target holds something else than an exported encoder.
        ValueError: a file of the run is damaged.
    """
    if is_foreign(target, "modules.json"):
        raise FileExistsError(f"{target} is there and is no exported encoder: name a new folder")
    files = [run_folder / f"{stem}.json" for stem in ("params", "metrics", "env")]
    if not all(file.is_file() for file in files):
        raise FileNotFoundError(
            f"{run_folder} is not a finished run's folder: params, metrics or env.json is missing"
        )
    checkpoint = run_folder / "best"
    if not checkpoint.is_dir():
        raise FileNotFoundError(
            f"{checkpoint} is missing: a run that trains nothing keeps no checkpoint"
        )
    encoder = Encoder.load(checkpoint)
    dimension = int(encoder.encode(["."]).shape[1])
    params, metrics, environment = map(read_json, files)
    try:
        card = model_card(params, metrics, environment, name or target.name, dimension)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{run_folder}: params, metrics or env.json lacks a value ({error}): run it again"
        ) from error
    encoder.export_sentence_transformers(target, card)
    return target


def search(
    encode: evaluate.Encode, sentences: list[str], query: str, n: int = 5
) -> list[tuple[float, str]]:
    """The `n` sentences nearest to a query by cosine, best first, each with its cosine.

    Args:
        encode: sentences to vectors (n, d), e.g. `Encoder.encode`.

    A sentence whose vector is zero, as that of a text without tokens, has no direction and is left
    out.

    Raises:
        ValueError: no sentences, `n` below 1, a query whose vector is zero, or vectors that are not
            finite.

    Example:
        >>> search(lambda texts: np.array([[len(t), 1.0] for t in texts]), ["a", "aaa",
        ...     "aaaaaaaa"], "aa", 1)[0][1]
        'aaa'
    """
    if not sentences:
        raise ValueError("no sentences to search")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    vectors = np.asarray(encode([query, *sentences]), float)
    if not np.isfinite(vectors).all():
        raise ValueError("the encoder gave vectors that are not finite: its weights are damaged")
    lengths = np.linalg.norm(vectors, axis=1)  # (1 + number of sentences,)
    if not lengths[0]:
        raise ValueError(
            f"the vector of the query {query!r} is zero: it is near to nothing, ask another"
        )
    nonzero = np.flatnonzero(lengths[1:])
    cosines = vectors[1:][nonzero] @ vectors[0] / lengths[1:][nonzero] / lengths[0]
    order = np.argsort(-cosines, kind="stable")[:n]
    return [(float(cosines[i]), sentences[nonzero[i]]) for i in order]
