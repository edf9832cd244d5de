"""`make table`: fill the tables between markers in the README, the model card and `data/README.md`
from `results/`."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import paths, plots, results
from lib.data import files
from lib.data.files import write_bytes
from lib.results.statistics import mean_sd
from tools.markers import fill

SMALL = {
    "TF-IDF": "TF-IDF",
    "input embeddings, SIF": "midi-BERT's input embeddings, SIF",
    "as pre-trained": "midi-BERT as pre-trained",
    "SimCSE": "midi-BERT + SimCSE",
    "one mask for both": "… with one dropout mask for both views",
}
LIGHT = {
    "word counts": "word counts",
    "TF-IDF": "TF-IDF",
    "input embeddings": "mini-BERT's input embeddings, mean",
    "input embeddings, SIF": "mini-BERT's input embeddings, SIF",
    "as pre-trained": "mini-BERT as pre-trained",
    "SimCSE": "mini-BERT + SimCSE, trained through cls and a head",
    "SimCSE, trained through the mean": "mini-BERT + SimCSE, trained through the mean",
}


def headline(grid: str, names: Mapping[str, str]) -> str:
    """Markdown table of a grid's committed rows: STS-B dev and the mean of the seven tasks, at the
    checkpoint that was best on STS-B dev (of what was not trained: as it is).

    Args:
        grid: its name in `workflow/grids/`.
        names: row of the grid → what the table calls it; rows without a run are left out.
    """
    found = results.rows(grid)
    lines = ["| encoder | seeds | STS-B dev | seven STS tasks, mean |", "|---|--:|--:|--:|"]
    for row, name in names.items():
        runs_of = found[found["row"] == row]
        if len(runs_of):
            trained, point = _checkpoint(runs_of)
            metrics = (f"stsb_dev_spearman_{point}", f"sts7_test_avg_{point}")
            dev, test = (mean_sd(runs_of[metric]) for metric in metrics)
            seeds = len(runs_of) if trained else "–"
            lines.append(f"| {name} | {seeds} | {dev} | {test} |")
    return "\n".join(lines)


def _checkpoint(runs_of: pd.DataFrame) -> tuple[bool, str]:
    """Whether runs are trained, and at which checkpoint they are read."""
    trained = bool((runs_of["steps"] > 0).all())
    return trained, "best" if trained else "last"


def headline_figure(grid: str, names: Mapping[str, str]) -> Figure:
    """The README's figure: a row for each of these rows of a grid, a dot for each committed run, at
    the mean of the seven tasks and the checkpoint of the table, and beside them their mean."""
    scores = {}
    for row, runs_of in results.rows(grid).groupby("row"):
        if row in names:
            _, point = _checkpoint(runs_of)
            scores[names[row]] = runs_of[f"sts7_test_avg_{point}"].to_numpy(float)
    scores = {name: scores[name] for name in names.values() if name in scores}
    figure, (axis,) = plots.new_figure(width=6.4, height=2.5)
    for i, values in enumerate(scores.values()):
        axis.plot(values, np.full(len(values), i), "o", color=plots.colour(0), ms=7, alpha=0.6)
        axis.text(values.max() + 0.5, i, f"{values.mean():.2f}", va="center", fontsize=11)
    axis.set_yticks(range(len(scores)), list(scores), fontsize=11)
    tasks = "mean of seven STS tasks (Spearman × 100)"
    axis.set_xlabel(f"{tasks}\na dot is a run, the number their mean", fontsize=10)
    axis.set(ylim=(len(scores) - 0.5, -0.5), xlim=(None, axis.get_xlim()[1] + 2.5))
    return figure


def headlines() -> dict[Path, str]:
    """The files that have a headline table, each with its content."""
    return {
        paths.ROOT / "README.md": headline("simcse_small", SMALL),
        paths.MINI_BERT / "README.md": headline("simcse_light", LIGHT),
        paths.MIDI_BERT / "README.md": headline("simcse_small", SMALL),
    }


def shipped() -> list[Path]:
    """The data files that are ours, in the order of `data/README.md`."""
    found = sorted(paths.MINI.glob("*.t*"))
    found += [paths.MINI_BERT / "model.safetensors", paths.MINI_BERT / "tokenizer.json"]
    found += [*sorted(paths.MIDI_BERT.glob("*.safetensors")), paths.MIDI_BERT / "tokenizer.json"]
    for folder in paths.SIBLINGS.values():
        found += [folder / "model.safetensors", folder / "tokenizer.json"]
    of_spacy = sorted(path for path in paths.MINI_SPACY.rglob("*") if path.is_file())
    return found + [path for path in of_spacy if path.suffix not in (".md", ".cfg")]


def checksums() -> str:
    """Markdown table of the shipped files: size and SHA-256."""
    lines = ["| file | bytes | sha256 |", "|---|--:|---|"]
    for path in shipped():
        name = path.relative_to(paths.DATA).as_posix()
        lines.append(f"| {name} | {path.stat().st_size:,} | `{files.sha256(path)}` |")
    return "\n".join(lines)


def main() -> None:
    """Write the README's figure and fill every table."""
    picture = paths.RESULTS / "02_simcse.png"
    write_bytes(picture, plots.png(headline_figure("simcse_small", SMALL)))
    fill(paths.DATA / "README.md", "checksums", checksums())
    for text, content in headlines().items():
        fill(text, "headline", content)
        print(f"filled {text}")


if __name__ == "__main__":
    main()
