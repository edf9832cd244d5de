"""How far the experiments are: `results/README.md`, what has been run of each grid, and
`results/rows.md`, the scores of every row.

`python -m tools.results_pages` (`make table`) writes both from the committed rows. `rows.md` has
the grids that a notebook or a claim reads.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from lib import paths, results
from lib.augment import sda
from lib.data.files import write_text
from lib.results import claims
from lib.runs import grids, notebooks
from lib.runs.grids import Grid

SCORES = {
    "STS-B dev, best": "stsb_dev_spearman_best",
    "STS-B dev, last": "stsb_dev_spearman_last",
    "seven tests, best": "sts7_test_avg_best",
    "seven tests, last": "sts7_test_avg_last",
}
Collected = Mapping[str, tuple[Grid, pd.DataFrame]]


def mean_sd(values: pd.Series) -> str:
    """`mean ± sd` with two decimals (sd over seeds, n − 1); the value alone for one run, – for
    none.

    Runs without the number collapsed: they are counted, and there is no mean without them.

    Example:
        >>> mean_sd(pd.Series([1.0, 2.0, 3.0])), mean_sd(pd.Series([1.0, 2.0, None]))
        ('2.00 ± 1.00', '– (1 of 3 collapsed)')
    """
    if lost := int(values.isna().sum()):
        return f"– ({lost} of {len(values)} collapsed)"
    if len(values) == 0:
        return "–"
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")


def write_pages(folder: Path = paths.RESULTS) -> None:
    """Write `README.md` and `rows.md` of a folder of results."""
    for name, text in zip(("README.md", "rows.md"), pages(folder), strict=True):
        write_text(folder / name, text)


def pages(folder: Path = paths.RESULTS) -> tuple[str, str]:
    """The texts that `write_pages` writes."""
    finished = results.every_run(folder)
    collected = _collected(folder)
    return page(finished, collected, folder), rows_page(collected)


def _collected(folder: Path) -> Collected:
    begun = set(results.members(folder)["grid"])
    nothing = pd.DataFrame(columns=["row", "column", "run_id", "seed"])
    return {
        path.stem: (
            grids.read(path),
            results.rows(path.stem, folder) if path.stem in begun else nothing,
        )
        for path in sorted(paths.GRIDS.glob("*.yaml"))
    }


def page(finished: pd.DataFrame, collected: Collected, folder: Path) -> str:
    """The text of `results/README.md`."""
    tables = {str(name): table for name, table in finished.groupby("notebook")}
    kept = {name: results.histories(name, folder)["run_id"].nunique() for name in tables}
    begun = {name: item for name, item in collected.items() if len(item[1])}
    lines = [
        "# Results",
        "",
        "One row a run on real data in `NOTEBOOK.csv`, one row a step in `histories/`: `python -m"
        " lib grid NAME` writes both from the folders of finished runs. `make table` writes this"
        " page and [the scores of every row](rows.md). A run's id"
        " follows from its parameters and the hashes of its data; a test computes every id anew."
        ' Which runs stand behind a row of a table or a verdict: `results.rows("una_light")` has'
        " them with the row's name (of all notebooks: a run counts for every grid that asks for"
        " it, and is committed once), and `data/papers/claims.csv` names the two rows of each"
        " claim. What else was tried: [LOG](LOG.md).",
        "",
        "| file | runs | with history | profiles | training text | machines | hours |",
        "|---|--:|--:|---|---|---|--:|",
    ]
    for name, table in tables.items():
        cells = [str(len(table)), str(kept[name]), _names(table["profile"])]
        cells += [_texts(table), _names(table["machine"]), f"{_hours(table):.1f}"]
        lines.append(f"| [{name}]({name}.csv) | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Hours are those of trainings and their dev scores, each on its share of a machine."
        " Trainings of `results_version` 1 kept no history. `wikipedia` is a sample of our own that"
        " nobody can fetch: who trains its rows again takes another text, and gets other scores."
        " The other texts are fetched by `python -m lib data fetch`.",
        "",
        *_left(collected),
        "## Grids",
        "",
        "*Older rules*: trained under an older version of SDA's rules than today's, which write"
        " some sentences otherwise. No run of the papers' own grids (`workflow/grids/*_table_*`,"
        " `*_figure_*`) is committed.",
        "",
        "| grid | rows with runs | runs | seeds a row | asks |",
        "|---|--:|--:|--:|---|",
        *(_line(name, grid, runs_of) for name, (grid, runs_of) in begun.items()),
        "",
    ]
    return "\n".join(lines)


def lacking(grid: Grid, runs_of: pd.DataFrame) -> Counter[str]:
    """How many runs each row of a grid still lacks; rows that have all are left out.

    Args:
        runs_of: as `lib.results.rows` gives it.
    """
    found = set(zip(runs_of["row"], runs_of["seed"], strict=True))
    rows = {row for row, _ in found}
    lost: Counter[str] = Counter()
    for cell in grid.cells:
        if cell.ignores_seed:
            lost[cell.row] += cell.row not in rows
        else:
            lost[cell.row] += sum((cell.row, seed) not in found for seed in grid.seeds)
    return +lost


def _left(collected: Collected) -> list[str]:
    """What the grids of our own encoders still lack, in words."""
    found: dict[str, list[str]] = {"complete": [], "begun": [], "no run": []}
    for name, (grid, runs_of) in collected.items():
        if grid.profile not in ("light", "small"):
            continue
        part = "begun" if len(runs_of) else "no run"
        found["complete" if not lacking(grid, runs_of) else part].append(name)
    return [
        "## What is left",
        "",
        "On one core a run takes minutes at `light` (mini-BERT), 11 to 60 at `small` (midi-BERT,"
        " bf16); no GPU was at hand, so most of `small` is left. `python -m lib grid NAME` trains"
        " what is missing, `python -m tools.offline take` takes what another machine has trained;"
        " [the scores of every row](rows.md) name the rows without a run. Of the grids with our"
        " own encoders:",
        "",
        *(f"* {what}: {', '.join(names)}." for what, names in found.items() if names),
        "",
    ]


def _line(name: str, grid: Grid, found: pd.DataFrame) -> str:
    """A row of the page's second table: a run that several rows share counts once."""
    done, rows = found["row"].nunique(), len({cell.row for cell in grid.cells})
    seeds = sorted(set(found.groupby("row")["seed"].nunique()))
    shown = "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    runs_of = f"{found['run_id'].nunique()}"
    once = found.drop_duplicates("run_id").reindex(columns=["rules"])
    if old := int((once["rules"] < sda.VERSION).sum()):
        runs_of += f" ({old} by older rules)"
    of_all = shown if seeds[-1] > len(grid.seeds) else f"{shown} of {len(grid.seeds)}"
    return f"| {name} | {done} of {rows} | {runs_of} | {of_all} | {grid.source} |"


def used(names: Iterable[str]) -> set[str]:
    """Those of the grids that a notebook names, a claim rests on, or the primary claims need.

    Example:
        >>> sorted(used(["una_light", "una_small_seeds", "consert_light_heads", "primary_rates"]))
        ['consert_light_heads', 'primary_rates', 'una_light']
    """
    of_claims = {c.rows.format(size) for c in claims.read() for size in claims.SIZES}
    text = "".join(path.read_text(encoding="utf-8") for path in notebooks.find_all())
    in_a_cell = {n for n in names if f'\\"{n}\\"' in text}  # a quoted name, as JSON writes it
    return in_a_cell | {n for n in names if n in of_claims or n.startswith("primary")}


def rows_page(collected: Collected) -> str:
    """The text of `results/rows.md`: the rows of the grids in use, at the best and at the last
    step, and those without a run by name."""
    lines = [
        "# The scores of every row",
        "",
        "Mean ± sd over seeds (Spearman × 100), at the step that STS-B dev chooses, *best*, and at"
        " the *last*; what trains nothing has one of both. The verdicts of notebook 07 take the"
        " best. Here are the grids that a notebook or a claim reads; [what else was tried](LOG.md)."
        " Written by code, as [the page before](README.md).",
        "",
    ]
    wanted = used(collected)
    for name, (grid, runs_of) in collected.items():
        if len(runs_of) and name in wanted:
            lines += [f"## {name}", "", _sentence(grid.source), "", *_scores(grid, runs_of), ""]
    return "\n".join(lines)


def _scores(grid: Grid, runs_of: pd.DataFrame) -> list[str]:
    """A grid's rows as a table, and a sentence that names those without a run."""
    runs_of = runs_of.reindex(columns=[*dict.fromkeys([*runs_of, *SCORES.values()])])
    for best in ("stsb_dev_spearman_best", "sts7_test_avg_best"):
        last = best.replace("_best", "_last")
        runs_of[best] = runs_of[best].fillna(runs_of[last])
    metrics = dict(SCORES)
    if grid.metric not in SCORES.values():
        metrics[grid.metric] = grid.metric
    table = summary(runs_of, metrics)
    lines = [f"| row | {' | '.join(table.columns)} |", "|---|" + "--:|" * len(table.columns)]
    lines += [f"| {row} | {' | '.join(map(str, values))} |" for row, *values in table.itertuples()]
    lost = [row for row in lacking(grid, runs_of) if row not in table.index]
    return [*lines, "", f"No run: {'; '.join(lost)}."] if lost else lines


def summary(collected: pd.DataFrame, metrics: Mapping[str, str]) -> pd.DataFrame:
    """One line a row of a grid: `seeds`, how many it has, and `mean_sd` of each metric over them.

    Args:
        collected: one line a row and seed, as `results.rows` gives it.
        metrics: the heading of each column, and the metric below it.

    Example:
        >>> runs_of = pd.DataFrame({"row": ["a", "a"], "seed": [0, 1], "score": [1.0, 2.0]})
        >>> summary(runs_of, {"STS": "score"}).to_dict("index")
        {'a': {'seeds': 2, 'STS': '1.50 ± 0.71'}}
    """
    rows = collected.groupby("row", sort=False)
    table = rows["seed"].nunique().to_frame("seeds")
    for name, metric in metrics.items():
        table[name] = [mean_sd(grids.scores_of(part, metric)) for _, part in rows]
    return table


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _names(column: pd.Series) -> str:
    return ", ".join(sorted(set(column.dropna().astype(str))))


def _texts(table: pd.DataFrame) -> str:
    """The training texts of a file and how many trainings each has."""
    known = table.reindex(columns=["corpus", "max_steps"])
    counts = known.loc[known["max_steps"] != 0, "corpus"].value_counts().sort_index()
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _hours(table: pd.DataFrame) -> float:
    """Seconds of trainings and dev scores, as far as they were recorded."""
    known = table.reindex(columns=["train_seconds", "dev_seconds"])
    return float(known.sum().sum()) / 3600


if __name__ == "__main__":
    write_pages()
