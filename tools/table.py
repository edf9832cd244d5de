"""`make table`: fill the tables between markers in the README, the model card and `data/README.md`
from `results/`."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import files, grids, paths, plots
from lib.evaluate.statistics import mean_sd
from lib.files import write_bytes
from tools.markers import fill

TRAINED = {
    "mini_simcse": "+ SimCSE, trained through cls and a head",
    "mini_simcse_mean": "+ SimCSE, trained through the mean",
}


def of_the_grid(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of the grid `simcse_light` among all rows: a run with another temperature is no run
    of its recipe."""
    return grids.collect(grids.read("simcse_light"), table)


def headline(table: pd.DataFrame) -> str:
    """Markdown of the README: STS-B dev and seven-task average of baselines, raw and trained
    encoders."""
    table = of_the_grid(table)
    names = {
        "light_bag_of_words": "word counts",
        "light_tfidf": "TF-IDF",
        "light_word_vectors": "mini-BERT's input embeddings, mean",
        "light_sif": "mini-BERT's input embeddings, SIF",
    }
    lines = [
        "| encoder | runs | checkpoint | STS-B dev | seven STS tasks, mean |",
        "|---|--:|---|--:|--:|",
    ]

    def row(name: str, rows: pd.DataFrame, which: str) -> str:
        columns = (f"stsb_dev_spearman_{which}", f"sts7_test_avg_{which}")
        cells = [mean_sd(rows.get(column, pd.Series(dtype=float))) for column in columns]
        return (
            f"| {name} | {len(rows)} | {which if len(rows) > 1 else '–'} | {cells[0]} |"
            f" {cells[1]} |"
        )

    for recipe, name in names.items():
        lines.append(row(name, table[table["recipe"] == recipe], "last"))
    raw = (table["recipe"] == "mini_simcse") & (table["max_steps"] == 0)
    lines.append(row("mini-BERT as pre-trained, mean of the last layer", table[raw], "last"))
    for recipe, name in TRAINED.items():
        rows = table[(table["recipe"] == recipe) & (table["max_steps"] > 0)]
        lines += [row(f"mini-BERT {name}", rows, which) for which in ("last", "best") if len(rows)]
    return "\n".join(lines)


def task_figure(table: pd.DataFrame) -> Figure:
    """The README's figure: the seven tasks for TF-IDF, the raw encoder and every trained run."""
    table = of_the_grid(table)
    raw = table[(table["recipe"] == "mini_simcse") & (table["max_steps"] == 0)]
    names = [
        c.removesuffix("_test_spearman_last")
        for c in table.columns
        if c.endswith("_test_spearman_last")
    ]

    def scores(rows: pd.DataFrame, which: str) -> np.ndarray:
        return rows[[f"{name}_test_spearman_{which}" for name in names]].to_numpy(float)

    methods = {
        "TF-IDF": scores(table[table["recipe"] == "light_tfidf"], "last"),
        "mini-BERT, mean": scores(raw, "last"),
    }
    for recipe, name in TRAINED.items():
        rows = table[(table["recipe"] == recipe) & (table["max_steps"] > 0)]
        if len(rows):
            methods[f"{name}, best checkpoint, {len(rows)} seeds"] = scores(rows, "best")
    return tasks(names, methods, "Spearman × 100")


def tasks(
    names: Sequence[str], methods: Mapping[str, np.ndarray], ylabel: str, title: str = ""
) -> Figure:
    """Scores by task: one marker a run, one column a task, methods side by side.

    Args:
        methods: name → scores `(runs, tasks)`.
    """
    figure, (axis,) = plots.new_figure(width=7.0, height=3.2)
    spread = np.linspace(-0.25, 0.25, len(methods))
    for i, (name, scores) in enumerate(methods.items()):
        x = np.arange(len(names)) + spread[i]
        for j, row in enumerate(np.atleast_2d(scores)):
            label = name if j == 0 else None
            axis.plot(x, row, plots.marker(i), color=plots.colour(i), ms=4, alpha=0.8, label=label)
    axis.set_xticks(range(len(names)), list(names))
    for edge in range(len(names) - 1):
        axis.axvline(edge + 0.5, color="0.9", lw=0.8)
    axis.set(ylabel=ylabel, title=title)
    axis.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def main() -> None:
    """Write the README's figure and fill every table."""
    path = paths.RESULTS / "02_simcse.csv"
    if not path.exists():
        sys.exit(f"error: {path} is missing: `python -m lib runs collect 02_simcse` writes it")
    table = pd.read_csv(path)
    content = headline(table)
    write_bytes(path.with_suffix(".png"), plots.png(task_figure(table)))
    shipped = [
        p
        for folder in ("mini", "mini-bert")
        for p in sorted((paths.DATA / folder).glob("*.t*"))
        if p.is_file()
    ]
    shipped += sorted(paths.MINI_BERT.glob("*.safetensors"))
    shipped += [*sorted(paths.MIDI_BERT.glob("*.safetensors")), paths.MIDI_BERT / "tokenizer.json"]
    for folder in paths.SIBLINGS.values():
        shipped += [folder / "model.safetensors", folder / "tokenizer.json"]
    shipped += [
        p
        for p in sorted(paths.MINI_SPACY.rglob("*"))
        if p.is_file() and p.suffix not in (".md", ".cfg")
    ]
    digests = [
        f"| {p.relative_to(paths.DATA)} | {p.stat().st_size:,} | `{files.sha256(p)}` |"
        for p in shipped
    ]
    fill(
        paths.DATA / "README.md",
        "checksums",
        "\n".join(["| file | bytes | sha256 |", "|---|--:|---|", *digests]),
    )
    for text in (paths.ROOT / "README.md", paths.MINI_BERT / "README.md"):
        fill(text, "headline", content)
        print(f"filled {text}")


if __name__ == "__main__":
    main()
