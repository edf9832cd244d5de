"""`make table`: fill the tables between markers in the README, the model card and `data/README.md`
from `results/`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lib import files, paths, plots, results
from lib.evaluate import TASKS
from lib.evaluate.statistics import mean_sd
from lib.files import write_bytes
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
            trained = (runs_of["max_steps"] > 0).all()
            point = "best" if trained else "last"
            metrics = (f"stsb_dev_spearman_{point}", f"sts7_test_avg_{point}")
            dev, test = (mean_sd(runs_of[metric]) for metric in metrics)
            seeds = len(runs_of) if trained else "–"
            lines.append(f"| {name} | {seeds} | {dev} | {test} |")
    return "\n".join(lines)


def task_figure(grid: str, names: Mapping[str, str]) -> Figure:
    """The README's figure: the seven tasks for every committed run of these rows of a grid, after
    the last step."""
    found = results.rows(grid)
    columns = [f"{task}_test_spearman_last" for task in TASKS]
    methods = {
        name: found.loc[found["row"] == row, columns].to_numpy(float)
        for row, name in names.items()
        if (found["row"] == row).any()
    }
    return tasks(TASKS, methods, "Spearman × 100")


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


def headlines() -> dict[Path, str]:
    """The files that have a headline table, each with its content."""
    return {
        paths.ROOT / "README.md": headline("simcse_small", SMALL),
        paths.MINI_BERT / "README.md": headline("simcse_light", LIGHT),
    }


def main() -> None:
    """Write the README's figure and fill every table."""
    picture = paths.RESULTS / "02_simcse.png"
    write_bytes(picture, plots.png(task_figure("simcse_small", SMALL)))
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
    for text, content in headlines().items():
        fill(text, "headline", content)
        print(f"filled {text}")


if __name__ == "__main__":
    main()
