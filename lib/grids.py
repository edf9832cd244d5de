"""Grids: the runs behind a table, as a file of notebook parameters.

`python -m lib grid NAME` trains what is missing of `workflow/grids/NAME.yaml`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from lib import experiment, gridcheck, identity, paths, profiles, recipes, runs, untrained
from lib.augment import sda
from lib.distributed import is_main_process
from lib.evaluate.statistics import mean_sd
from lib.recipes import FIELDS
from lib.workers import at_once

_PAPER_RECIPE = re.compile(r"paper_(.+?)(?:_bert|_roberta|_zh)?(?:_una)?")
_OF_THE_PAPER = {"model", "positive_file", "epochs"}
_REAL_DATA = {"corpus", "transfer_pooling"}
_PARAMETERS = FIELDS.keys() | {"profile", "recipe", "max_steps", "corpus", "vectors"}


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its place, and the notebook parameters that lead to it.

    Attributes:
        row, column: where the paper prints it (`row_id` and column of its CSV); a column that it
            does not print has no figure of the paper's. A grid of our own names its rows freely.
            `{seed}` in a row stands for the seed.
        set: parameters, without profile and seed.
        smaller: parameters that take the place of the paper's model at mini and small; None: no
            such version.
    """

    row: str
    column: str
    set: Mapping[str, object]
    smaller: Mapping[str, object] | None = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        """The encoder that the cell names; None: the profile's or the recipe's."""
        name = self.set.get("model")
        return None if name is None else str(name)

    @property
    def has_no_seed(self) -> bool:
        """Whether nothing is trained, so that all seeds are one run."""
        return self.set["method"] in untrained.METHODS or self.set.get("max_steps") == 0


@dataclass(frozen=True)
class Grid:
    """All cells of one table.

    Attributes:
        source: paper and table, or what a table of our own asks.
        notebook: whose parameters are set, and where the runs lie under `outputs/`.
        table: name of the paper's CSV in `data/papers/`, empty for a table of our own.
        metric: which of a run's metrics belongs in the table.
        factor: by which the paper's figure is multiplied to be Spearman ×100.
        common: parameters that all cells of the file have.
    """

    source: str
    notebook: str
    profile: str
    metric: str
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    table: str = ""
    factor: float = 100.0
    common: Mapping[str, object] = field(default_factory=dict)

    def runs(self, seeds: tuple[int, ...] = ()) -> Iterator[tuple[Cell, int]]:
        """Cell and seed of every run, seeds outermost; one that two cells share, or that has no
        seed, comes once."""
        for number, seed in enumerate(seeds or self.seeds):
            done: list[Mapping[str, object]] = []
            for cell in self.cells:
                if cell.set not in done and not (cell.has_no_seed and number):
                    done.append(cell.set)
                    yield cell, seed

    def at(
        self, profile_name: str = "", seeds: tuple[int, ...] = (), **parameters: object
    ) -> "Grid":
        """This grid with other seeds, parameters in all cells, or at another profile.

        Below `full` a paper's recipe becomes the course's of the same method, learning rate and r
        keep their ratio to the recipe's own, and what names the papers' models and files is left
        to the profile. At `light` the number of steps is that of the notebook's own light grid.
        Cells that need paraphrases stay out on real data, Chinese ones everywhere: there is no
        such text. At `mini` a grid of ours leaves the text to the profile, too.

        Example:
            >>> dict(read("una_table_c6").at("mini").cells[0].set)
            {'method': 'una', 'radius': 0.01335}
        """
        cells, profile = self.cells, profiles.profile(profile_name or self.profile)
        metric = self.metric
        if profile.name != self.profile and profile.recipes != "paper":
            cells = tuple(c for c in (_smaller(cell, profile) for cell in cells) if c)
            test = "sts7_test_avg" if profile.test == "sts7" else f"{profile.test}_test_spearman"
            metric = re.sub(r"^(sts7_test_avg|cnsd_test_spearman)", test, metric)
            metric = metric.replace("avg_transfer", test) if profile.test == "mini" else metric
            metric = re.sub(r"^(stsb|cnsd)_dev", f"{profile.dev}_dev", metric)
            light_grid = paths.GRIDS / f"{self.notebook.split('_')[1]}_light.yaml"
            common = read(light_grid).common if profile.name == "light" else {}
            cells = tuple(replace(cell, set={**common, **cell.set}) for cell in cells)
        if profile.name == "mini":
            cells = tuple(
                replace(c, set={k: v for k, v in c.set.items() if k not in _REAL_DATA})
                for c in cells
            )
        if "chinese" in (profile.name, self.profile) and profile.name != self.profile:
            cells = ()
        cells = tuple(replace(cell, set={**cell.set, **parameters}) for cell in cells)
        return replace(
            self, profile=profile.name, metric=metric, cells=cells, seeds=seeds or self.seeds
        )


def _smaller(cell: Cell, profile: profiles.Profile) -> Cell | None:
    """The cell with the course's recipe in place of the paper's, or None where the profile lacks
    what it needs."""
    name = str(cell.set["method"])
    match = _PAPER_RECIPE.fullmatch(name)
    if match is None:
        return cell
    if name.endswith("_zh") or cell.smaller is None:
        return None
    paper = recipes.recipe(name)
    parameters = {key: value for key, value in cell.set.items() if key not in _OF_THE_PAPER}
    parameters["method"] = _ours(name, match[1], profile.recipes)
    reads_file = parameters.get("positive", paper.positive.kind) == "file"
    if reads_file and profile.name != "mini":
        return None
    ours = recipes.recipe(f"{profile.recipes}_{parameters['method']}")
    if reads_file:
        parameters |= (
            {}
            if ours.positive.file
            else {"positive_file": recipes.recipe("mini_paraphrase").positive.file}
        )
    if profile.name == "light" and str(parameters.get("positive")).endswith("_synonyms"):
        parameters.setdefault("synonyms", paper.positive.synonyms)
    for key in {"lr", "radius"} & parameters.keys():
        ratio = ours.values()[key] / paper.values()[key]
        parameters[key] = float(f"{float(str(parameters[key])) * ratio:.6g}")
    return replace(cell, set={**parameters, **cell.smaller})


def _ours(paper_recipe: str, method: str, family: str) -> str:
    """The course's method for a paper's: UNA's baseline has UNA's loss, where our UNA has it."""
    if paper_recipe.endswith("_una") and method == "simcse":
        una, baseline = (recipes.recipe(f"{family}_{name}") for name in ("una", "simcse_una"))
        if una.objective.loss == baseline.objective.loss:
            return "simcse_una"
    return method


def read(name: str | Path) -> Grid:
    """The grid in a file, or in `workflow/grids/<name>.yaml`.

    Raises:
        FileNotFoundError: no such file; the message lists the grids there are.
        ValueError: not YAML, a key is unknown, missing or of another type, a cell stands twice or
            leads to no run; the message names the file and the cell.

    Example:
        >>> grid = read("una_table_c5")
        >>> grid.cells[0].row, dict(grid.cells[0].set)
        ('beta_0_8', {'method': 'paper_una_bert', 'beta': 0.8})
    """
    path = Path(name) if str(name).endswith(".yaml") else paths.GRIDS / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in paths.GRIDS.glob("*.yaml")))
        raise FileNotFoundError(f"no grid {name!r}: there are {known}")
    content = gridcheck.load(path)
    common, column = content.get("common", {}), content.get("column", "")
    cells = tuple(
        Cell(**{"column": column, **cell, "set": {**common, **cell.get("set", {})}})
        for cell in content["cells"]
    )
    positions = [(cell.row, cell.column) for cell in cells]
    if twice := {position for position in positions if positions.count(position) > 1}:
        raise ValueError(f"{path}: {sorted(twice)} stands twice")
    gridcheck.check_runs(path, content, [(cell.row, cell.set) for cell in cells])
    parsed = {"cells": cells, "seeds": tuple(content["seeds"]), "common": common}
    return Grid(**{name: value for name, value in content.items() if name != "column"} | parsed)


def _key(values: Mapping[str, object]) -> frozenset[tuple[str, object]]:
    """What is set, without the names that have no value."""
    return frozenset(
        (name, value) for name, value in values.items() if value is not None and value == value
    )


def _vectors(grid: Grid, cell: Cell) -> str | None:
    """Whose input embeddings a cell without training takes; None: the profile's encoder's."""
    return untrained.vectors(profiles.profile(grid.profile), cell.model)


def _run_key(grid: Grid, cell: Cell) -> frozenset[tuple[str, object]]:
    """The parameters by which the runs of a cell are known."""
    if cell.set["method"] in untrained.METHODS:
        recipe_name = f"{grid.profile}_{cell.set['method']}"
        return _key({"recipe": recipe_name, "vectors": _vectors(grid, cell)})
    profile, recipe, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
    run = {
        "profile": profile.name,
        "recipe": recipe.name,
        "max_steps": steps,
        "corpus": profile.corpus,
    }
    return _key(identity.parameters(recipe) | run)


def condition(grid: Grid, cell: Cell) -> frozenset[tuple[str, object]]:
    """What a cell varies: all parameters of its runs but the name of their recipe, so that two
    cells that train the same are one condition."""
    if cell.set["method"] in untrained.METHODS:
        return _key({"method": cell.set["method"], "vectors": _vectors(grid, cell)})
    return frozenset(item for item in _run_key(grid, cell) if item[0] != "recipe")


def conditions_of(results: pd.DataFrame) -> set[frozenset[tuple[str, object]]]:
    """`condition` of every finished run, for those of a grid's cells to be looked up in."""
    names = [name for name in results if name in _PARAMETERS]
    found = set()
    for values in results[names].astype(object).to_numpy():
        parameters = dict(zip(names, values, strict=True))
        method = str(parameters.pop("recipe")).partition("_")[2]
        if method in untrained.METHODS:
            parameters = {"method": method, "vectors": parameters.get("vectors")}
        found.add(_key(parameters))
    return found


def collect(grid: Grid, results: pd.DataFrame) -> pd.DataFrame:
    """Finished runs of a grid, one row a run: those of `results` (`results/<notebook>.csv`), with
    row and column.

    A cell holds runs of one version of SDA's rules, the newest it has; `note` says if that is not
    today's. Of runs that differ by precision, scoring, compilation or `results_version` it holds
    one kind: that of most seeds, the newer of two with as many.

    Raises:
        ValueError: two runs of one cell, kind and seed, as a text or test set that changed between
            them leaves them.
    """
    positions_of: dict[frozenset[tuple[str, object]], list[int]] = defaultdict(list)
    names = [name for name in results if name in _PARAMETERS]
    for position, values in enumerate(results[names].astype(object).to_numpy()):
        parameters = dict(zip(names, values, strict=True))
        if str(parameters["recipe"]).partition("_")[2] in untrained.METHODS:
            parameters = {name: parameters.get(name) for name in ("recipe", "vectors")}
        positions_of[_key(parameters)].append(position)
    seeds = results["seed"].to_list() if "seed" in results else []
    kinds = _kinds(results)
    positions, rows, columns = [], [], []
    for cell in grid.cells:
        same = positions_of[_run_key(grid, cell)]
        if same and cell.set["method"] not in untrained.METHODS:
            same = [position for position in same if seeds[position] in grid.seeds]
            same = _on_as_much_text(same, results, grid, cell)
        chosen = _of_one_kind(same, kinds, seeds)
        _refuse_twins(chosen, results, cell)
        for position in chosen:
            positions.append(position)
            rows.append(cell.row.format(seed=seeds[position]))
            columns.append(cell.column)
    found = results.iloc[positions].reset_index(drop=True).copy()
    return found.assign(row=rows, column=columns)


def _on_as_much_text(
    positions: list[int], results: pd.DataFrame, grid: Grid, cell: Cell
) -> list[int]:
    """Those of a cell's trainings that had as many sentences as the cell or the profile says."""
    wanted = experiment.resolve(grid.profile, **cell.set)[0].n_sentences  # type: ignore[arg-type]
    if wanted is None or "n_sentences" not in results:
        return positions
    same = results.iloc[positions]
    fits = (same["n_sentences"] == wanted) | (same["max_steps"] == 0)
    return [position for position, fit in zip(positions, fits, strict=True) if fit]


def _kinds(results: pd.DataFrame) -> list[tuple[float, float, str]]:
    """Of each run: the version of SDA's rules, `results_version`, and how it was computed."""
    numbers = results.reindex(columns=["rules", "results_version"]).fillna(0).astype(float)
    how = results.reindex(columns=["precision", "scoring", "compile"]).to_numpy(object)
    return [
        (rules, version, " ".join(map(str, row)))
        for (rules, version), row in zip(numbers.to_numpy().tolist(), how, strict=True)
    ]


def _of_one_kind(
    positions: list[int], kinds: list[tuple[float, float, str]], seeds: list[int]
) -> list[int]:
    """Of these runs those that may stand in one row of a table: see `collect`."""
    newest = max((kinds[position][0] for position in positions), default=0)
    of_kind: dict[tuple[float, float, str], list[int]] = defaultdict(list)
    for position in positions:
        if kinds[position][0] == newest:
            of_kind[kinds[position]].append(position)
    if not of_kind:
        return []

    def how_many(kind: tuple[float, float, str]) -> tuple[int, tuple[float, float, str]]:
        return len({seeds[position] for position in of_kind[kind]}), kind

    return of_kind[max(of_kind, key=how_many)]


def _refuse_twins(positions: list[int], results: pd.DataFrame, cell: Cell) -> None:
    of_cell = results.iloc[positions].reindex(columns=["run_id", "seed"]).drop_duplicates("run_id")
    twins = of_cell[of_cell["seed"].duplicated(keep=False)]
    if len(twins):
        raise ValueError(
            f"row {cell.row!r} has more than one run of a seed: {', '.join(twins['run_id'])}. They "
            "differ by their data (`data` in their params.json): move the older one away"
        )


def note(collected: pd.DataFrame) -> str:
    """One sentence on runs that were made under an older version of SDA's rules than today's; "" if
    there are none.

    Example:
        >>> note(pd.DataFrame({"rules": [1.0, np.nan]}))[:44]
        '1 of these 2 runs was made under an older ve'
    """
    if "rules" not in collected:
        return ""
    old = sorted(collected["rules"].dropna()[lambda version: version != sda.VERSION].astype(int))
    if not old:
        return ""
    runs_of = f"{len(old)} of these {len(collected)} runs {'was' if len(old) == 1 else 'were'} made"
    versions = " and ".join(map(str, dict.fromkeys(old)))
    return (
        f"{runs_of} under an older version of SDA's rules ({versions}; today's is {sda.VERSION})."
    )


def _is_collapsed(collected: pd.DataFrame, metric: str) -> np.ndarray:
    """Whether the run of each row has this metric, and it is no number."""
    if "collapsed" not in collected:
        return np.zeros(len(collected), bool)
    collapsed = [metric in names.split() for names in collected["collapsed"].fillna("").astype(str)]
    return np.array(collapsed, bool)


def summary(collected: pd.DataFrame, metrics: Mapping[str, str]) -> pd.DataFrame:
    """One line a row of a grid: `seeds`, how many it has, and `mean_sd` of each metric over them.

    Args:
        collected: as `collect` gives it.
        metrics: the heading of each column, and the metric below it.

    Example:
        >>> runs_of = pd.DataFrame({"row": ["a", "a"], "seed": [0, 1], "score": [1.0, 2.0]})
        >>> summary(runs_of, {"STS": "score"}).to_dict("index")
        {'a': {'seeds': 2, 'STS': '1.50 ± 0.71'}}
    """
    lines: dict[str, dict[str, object]] = {}
    for row, part in collected.groupby("row", sort=False):
        lines[str(row)] = {"seeds": part["seed"].nunique()}
        for name, metric in metrics.items():
            has_it = part[metric].notna().to_numpy() | _is_collapsed(part, metric)
            lines[str(row)][name] = mean_sd(part.loc[has_it, metric])
    return pd.DataFrame.from_dict(lines, orient="index", columns=["seeds", *metrics]).rename_axis(
        "row"
    )


def beside_paper(grid: Grid, results: pd.DataFrame) -> pd.DataFrame:
    """The paper's figure and ours, one line a cell (Spearman ×100).

    Returns:
        row, column, paper; n, the seeds with this metric; collapsed, how many of them are no
        number; mean and sd (n − 1) of the metric over all n, NaN where one collapsed.
    """
    runs_of = collect(grid, results)
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    values = runs_of[grid.metric] if grid.metric in runs_of else [math.nan] * len(runs_of)
    collapsed = _is_collapsed(runs_of, grid.metric)
    for row, column, value, lost in zip(
        runs_of["row"], runs_of["column"], values, collapsed, strict=True
    ):
        if lost or value == value:
            scores[row, column].append(math.nan if lost else float(value))
    printed = None
    if grid.table:
        printed = pd.read_csv(
            paths.PAPERS / f"{grid.table}.csv", dtype=str, keep_default_na=False
        ).set_index("row_id")
    rows: list[dict[str, object]] = []
    for cell in grid.cells:
        for row in dict.fromkeys(cell.row.format(seed=seed) for seed in grid.seeds):
            ours = scores[row, cell.column]
            paper = np.nan
            if printed is not None and cell.column in printed:
                paper = grid.factor * float(printed.loc[row, cell.column])
            rows.append(
                {
                    "row": row,
                    "column": cell.column,
                    "paper": round(paper, 2),
                    "n": len(ours),
                    "collapsed": sum(map(math.isnan, ours)),
                    "mean": np.mean(ours) if ours else np.nan,
                    "sd": np.std(ours, ddof=1) if len(ours) > 1 else np.nan,
                }
            )
    return pd.DataFrame(rows, columns=["row", "column", "paper", "n", "collapsed", "mean", "sd"])


def _train(grid: Grid, cell: Cell, seed: int, options: dict[str, Any]) -> runs.Run:
    parameters: dict[str, Any] = {
        name: value for name, value in cell.set.items() if name != "method"
    }
    method = str(cell.set["method"])
    if method in untrained.METHODS:
        data_dir = options["data_dir"]
        return untrained.run(grid.notebook, method, grid.profile, data_dir, cell.model)
    return experiment.run(grid.notebook, method, grid.profile, seed=seed, **options, **parameters)


def on_text_at_hand(grid: Grid, data_dir: str | None = None) -> Grid:
    """The grid whose cells name the training text that takes the place of the profile's where that
    is not here."""
    profile = profiles.profile(grid.profile)
    at_hand = experiment.with_text_at_hand(profile, data_dir)
    if at_hand == profile:
        return grid
    text = {"corpus": at_hand.corpus, "n_sentences": at_hand.n_sentences}
    cells = [
        cell if "corpus" in cell.set else replace(cell, set={**text, **cell.set})
        for cell in grid.cells
    ]
    return replace(grid, cells=tuple(cells))


def check(grid: Grid) -> None:
    """Refuse, before anything is trained, a cell that is no run and a metric that its run will not
    have.

    Raises:
        ValueError: there is such a cell; the message names its row.
    """
    for cell in grid.cells:
        if cell.set["method"] in untrained.METHODS:
            continue
        try:
            profile, recipe, _ = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise ValueError(f"row {cell.row!r}: {error}") from error
        if grid.metric not in (known := experiment.scores_of(profile, recipe)):
            close = get_close_matches(grid.metric, known, 1)
            hint = f": did you mean {close[0]!r}?" if close else f": it has {', '.join(known)}"
            raise ValueError(f"the run of row {cell.row!r} has no metric {grid.metric!r}{hint}")


def train(
    grid: Grid, options: dict[str, Any], say: Callable[[str], None], jobs: int = 1
) -> tuple[set[str], list[str]]:
    """Train what is missing; a run that fails does not stop the others.

    Args:
        options: of the machine, for `experiment.run`.
        say: is given one line a run.
        jobs: runs at once, each with its share of the cores.

    Raises:
        RuntimeError: one of several processes was killed.

    Returns:
        The ids of the finished runs, and one line for each that failed.
    """
    done, failed = set(), []
    work = [(grid, cell, seed, options) for cell, seed in grid.runs()]
    if jobs > 1:
        parse_texts(grid, options["data_dir"])
        gpus = 0 if options["device"] == "cpu" else torch.cuda.device_count()
        outcomes = (outcome for _, outcome in at_once(_outcome, work, jobs, gpus))
    else:
        outcomes = (_outcome(item) for item in work)
    for run_id, line in outcomes:
        if run_id is None:
            failed.append(line)
        else:
            done.add(run_id)
        if run_id is None or is_main_process():
            say(line)
    return done, failed


def _outcome(work: tuple[Grid, Cell, int, dict[str, Any]]) -> tuple[str | None, str]:
    """The id of a finished run, or None if it failed, and what there is to say of it."""
    grid, cell, seed, options = work
    name = f"{cell.row}, seed {seed}"
    try:
        record = _train(grid, cell, seed, options)
        score = (record.metrics or {}).get(grid.metric)
    except Exception as error:
        expected = isinstance(error, ValueError | OSError | ImportError)
        kind = "" if expected else f"{type(error).__name__}: "
        text = " ".join(str(error).split()) or type(error).__name__
        return None, f"FAILED {name}: {kind}{text}"
    return record.id, f"{name}: {grid.metric} {'–' if score is None else f'{score:.2f}'}"


def parse_texts(grid: Grid, data_dir: str | None = None) -> None:
    """Parse, with all cores and once, what several runs of SDA are about to need."""
    texts = {}
    for cell in grid.cells:
        if cell.set["method"] in untrained.METHODS:
            continue
        profile, recipe, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
        if "sda" in (recipe.positive.kind, recipe.negative.kind) and steps != 0:
            texts[profile.corpus, profile.n_sentences, recipe.positive.parser] = profile, recipe
    for profile, recipe in texts.values():
        experiment.rewritten(recipe, experiment.sentences_of(profile, data_dir))


def table_of(grid: Grid, options: dict[str, Any]) -> tuple[pd.DataFrame, str]:
    """The finished runs of a grid beside the paper's figures, as `beside_paper`; and what there is
    to say of them: rows without training that could not be scored, and the `note`."""
    alone = [(c, seed) for c, seed in grid.runs() if c.set["method"] in untrained.METHODS]
    outcomes = [_outcome((grid, cell, seed, options)) for cell, seed in alone]
    finished = runs.collect()
    remarks = [line for run_id, line in outcomes if run_id is None]
    remarks.append(note(collect(grid, finished)))
    return beside_paper(grid, finished), "\n".join(filter(None, remarks))
