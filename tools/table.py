"""`make table`: fill the tables between markers in the README, the model cards, `data/README.md`
and `results/verdicts.md` from `results/`."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lib import paths, results
from lib.data import files
from lib.data.files import write_text
from lib.results import claims
from tools import front, primary
from tools.markers import fill
from tools.notes import notes
from tools.results_pages import mean_sd

WORDS = {"TF-IDF": "TF-IDF, counted on 50,000 sentences"}
SMALL = {
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
PRETRAINING = {
    "plain": "plain: AdamW at 1e-3, bf16, dropout 0.1, 15 % masked",
    "muon": "Muon for the layers' matrices, at AdamW's 1e-3",
    "muon_5e-3": "Muon at 5e-3",
    "muon_2e-2": "Muon at 2e-2",
    "no_dropout": "no dropout while pre-training",
    "mask_30_15": "30 % masked, falling to 15 %",
    "zero_init": "output projections start at zero",
    "ramp": "from 4,096 to 16,384 tokens a step",
    "ema": "the mean of the weights (EMA, 0.998) is scored",
    "all_mask": "every guessed token is [MASK]",
    "late_decay": "constant learning rate, decay in the last 35 %",
    "random_start": "word embeddings start at random",
    "fp32": "fp32 instead of bf16",
    "together": "Muon at 5e-3, no dropout, 30 % masked falling to 15 %",
    "together_late": "the same, decay in the last 35 %",
}


def headline(*parts: tuple[str, Mapping[str, str]]) -> str:
    """Markdown table of committed rows: STS-B dev and the mean of the seven tasks, at the
    checkpoint that was best on STS-B dev (of what was not trained: as it is).

    Args:
        parts: a grid of `workflow/grids/`, and row of the grid → what the table calls it; rows
            without a run are left out.
    """
    lines = ["| encoder | seeds | STS-B dev | seven STS tasks, mean |", "|---|--:|--:|--:|"]
    for grid, names in parts:
        found = results.rows(grid)
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


def ceiling() -> str:
    """A line for the README's table: what labelled pairs buy."""
    table = pd.read_csv(paths.RESULTS / "floor_and_ceiling.csv").set_index("vectors")
    best = table.loc[table["sts7"].idxmax()]
    name = f"{best.name}, trained on {best['learnt from']}"
    return f"\n| {name} | – | {best['stsb_dev']:.2f} | {best['sts7']:.2f} |"


def headlines() -> dict[Path, str]:
    """The files that have a headline table, each with its content."""
    midi = headline(("simcse_light", WORDS), ("simcse_small", SMALL))
    return {
        paths.ROOT / "README.md": midi + ceiling(),
        paths.MINI_BERT / "README.md": headline(("simcse_light", LIGHT)),
        paths.MIDI_BERT / "README.md": midi,
    }


SHIPPED = {"midi-BERT": "small", "mini-BERT": "light", **dict.fromkeys(paths.SIBLINGS, "light")}


def shipped_encoders() -> str:
    """The README's table of encoders: size on disk and scores, pre-trained and after SimCSE."""
    folders = {"midi-BERT": paths.MIDI_BERT, "mini-BERT": paths.MINI_BERT, **paths.SIBLINGS}
    lines = ["| encoder | MB | pre-trained | + SimCSE |", "|---|--:|--:|--:|"]
    for name, size in SHIPPED.items():
        folder, rows = folders[name], results.rows(f"backbones_{size}")
        megabytes = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6
        raw = mean_sd(rows[rows["row"] == f"{name}, raw"]["sts7_test_avg_last"])
        trained = mean_sd(rows[rows["row"] == name]["sts7_test_avg_best"])
        link = f"[{folder.name}](data/{folder.name}/README.md)"
        lines.append(f"| {link} | {megabytes:.1f} | {raw} | {trained} |")
    return "\n".join(lines)


def front_page() -> dict[str, str]:
    """The README's tables beside the headline, by marker."""
    count = claims.judged(claims.read())["verdict"].value_counts()
    count = count.reindex(claims.VERDICTS, fill_value=0)
    counted = (
        f"Of the {count.sum()} differences that the texts print and argue from,"
        f" {count.sum() - count['not tested']} were tested: {count['confirmed']} are confirmed,"
        f" {count['smaller']} are smaller, {count['reversed']} are reversed,"
        f" {count['not found at the printed size']} are not found at the printed size, and"
        f" {count['undecided']} are undecided."
    )
    of_declared = primary.outcome()
    of_declared = of_declared[of_declared["kind"] == "primary"]
    tested = of_declared[of_declared["difference"].notna()]
    tested = tested.sort_values("verdict", key=lambda one: one.str.startswith("preliminary"))
    table = primary.shown(tested)[["claim", "printed", "ours", "verdict"]]
    table["claim"] = tested["paper"] + ": " + tested["says"]
    return {"encoders": shipped_encoders(), "three claims": f"{_markdown(table)}\n\n{counted}"}


PAPERS = {"una": "UNA", "sda": "SDA", "consert_ext": "ConSERT, extended", "backbones": "Backbones"}
ENCODERS = {"small": "midi-BERT", "light": "mini-BERT"}
FIELDS = ["backbone", "steps", "batch_size", "lr", "dropout", "head", "loss"]
SETTINGS = {
    "UNA": ("paper_una_bert", "una_{}", "UNA, doubled"),
    "SDA": ("paper_sda_negation_bert", "sda_{}", "DN"),
    "ConSERT": ("paper_consert", "consert_{}", "ConSERT-unsup, STS sentences"),
}
BASELINES = {"una_small": "SimCSE, UNA's loss", "sda_small": "SimCSE, SDA's head"}


def appendix() -> dict[str, str]:
    """The tables of `results/verdicts.md`, by marker."""
    listed = claims.read()
    judged = claims.judged(listed)
    ways = {"claims of a paper together": judged}
    tested = int((judged["seeds"] > 0).sum())
    ways["all claims together"] = claims.judged(listed, comparisons=tested)
    ways["each claim alone"] = claims.judged(listed, comparisons=1)
    ways["together, at the last checkpoint"] = claims.judged(listed, "last")
    families = pd.DataFrame({way: one["verdict"].value_counts() for way, one in ways.items()}).T
    families = families.reindex(columns=claims.VERDICTS).fillna(0).astype(int)
    errata = pd.read_csv(paths.PAPERS / "errata.csv", dtype=str).replace({"paper": PAPERS})
    return {
        "primary": _markdown(primary.shown(primary.write())),
        "claims": _markdown(verdicts(judged)),
        "notes": notes(judged, ways["each claim alone"]),
        "families": _markdown(families.rename_axis("intervals").reset_index()),
        "settings": _markdown(_settings()),
        "baselines": _markdown(_baselines()),
        "errata": _markdown(errata),
    }


def verdicts(judged: pd.DataFrame) -> pd.DataFrame:
    """Every claim of the papers: their difference, ours, what would be detected, the verdict."""
    order = claims.VERDICTS
    table = judged.sort_values("verdict", key=lambda told: told.map(order.index), kind="stable")
    shown = pd.DataFrame({"paper": table["paper"].replace(PAPERS) + ", " + table["where"]})
    shown["claim"], shown["printed"] = table["claim"], table["printed"].map("{:+.2f}".format)
    shown["ours"] = [
        f"{one.ours:+.2f} ± {one.half_width:.2f} ({ENCODERS[one.grid.split('_')[1]]})"
        if one.seeds
        else f"needs {one.untested}"
        for one in table.itertuples()
    ]
    shown["80 % power at"] = table["could_be_seen"].map("{:.2f}".format).replace("nan", "–")
    return shown.replace(r"^-", "−", regex=True).assign(verdict=table["verdict"])


def _settings() -> pd.DataFrame:
    """The papers' settings beside those of the committed runs."""
    papers = pd.read_csv(paths.PAPERS / "settings.csv")
    papers = papers.pivot(index="recipe", columns="field", values="value")
    papers["steps"] = papers["epochs"] + " epoch(s)"
    lines = {}
    for name, (recipe, family, condition) in SETTINGS.items():
        lines[f"{name}, paper"] = papers.loc[recipe, FIELDS]
        for size, encoder in ENCODERS.items():
            rows = results.rows(family.format(size))
            if len(rows := rows[rows["row"] == condition]):
                lines[f"{name}, {encoder}"] = rows.iloc[0][FIELDS]
    table = pd.DataFrame(lines).T.astype(str).replace(r"^data/|\.0$", "", regex=True)
    return table.rename_axis("runs").reset_index()


def _baselines() -> pd.DataFrame:
    """The SimCSE of each setting: how it was trained, and its scores."""
    lines = {}
    for grid in (f"{name}_{size}" for size in ENCODERS for name in ("simcse", "una", "sda")):
        rows = results.rows(grid)
        rows = rows[rows["row"] == BASELINES.get(grid, "SimCSE")]
        kept = rows.iloc[0][["steps", "eval_every", "loss", "head"]].astype(str)
        scores = {step: mean_sd(rows[f"sts7_test_avg_{step}"]) for step in ("best", "last")}
        lines[grid] = {**kept.replace(r"\.0$", "", regex=True), **scores}
    return pd.DataFrame(lines).T.rename_axis("grid").reset_index()


def _markdown(table: pd.DataFrame) -> str:
    rule = ["--:" if name in ("printed", "ours") else "---" for name in table]
    lines = [list(table), rule, *table.astype(str).to_numpy().tolist()]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


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


def pretraining() -> str:
    """Markdown table of `results/pretraining.csv`: what each technique of a pre-training brought,
    mean over seeds."""
    scores = {
        "held_out": "masked loss, nats",
        "stsb_dev": "STS-B dev",
        "simcse_stsb_dev_spearman_best": "… after SimCSE",
        "simcse_sts7_test_avg_best": "seven tasks after SimCSE",
    }
    found = pd.read_csv(paths.RESULTS / "pretraining.csv").groupby("technique", sort=False)
    table = found.agg({"seed": "size"} | dict.fromkeys(scores, "mean"))
    table["held_out"] = table["held_out"].map("{:.2f}".format)
    table[list(scores)[1:]] = table[list(scores)[1:]].map("{:.1f}".format)
    table = table.rename(index=PRETRAINING, columns={"seed": "seeds"} | scores)
    return _markdown(table.reset_index())


def main() -> None:
    """Draw the README's first picture and fill every table."""
    write_text(front.FOLDER / "search.svg", front.search_picture())
    fill(paths.DATA / "README.md", "checksums", checksums())
    fill(paths.DATA / "README.md", "pretraining", pretraining())
    for text, content in headlines().items():
        fill(text, "headline", content)
        print(f"filled {text}")
    for marker, content in front_page().items():
        fill(paths.ROOT / "README.md", marker, content)
    for marker, content in appendix().items():
        fill(paths.RESULTS / "verdicts.md", marker, content)


if __name__ == "__main__":
    main()
