"""The public runs of others: counts, ranges, and what their sources and the papers print."""

import pandas as pd
import pytest

from lib.paths import PAPERS, PUBLIC
from lib.results import public_runs

TASKS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
JAPANESE = ["JSICK", "JSTS val", "JSTS train"]
SIMCSE = public_runs("simple_simcse_runs").set_index("model").groupby(level=0)
TRANSLATED = "Translate+token_dropout01+shuffle_"


@pytest.mark.parametrize(
    ("name", "rows", "groups", "size", "tasks"),
    [
        ("simple_simcse_runs", 200, ["model", "lr", "batch_size"], 50, TASKS),
        ("simple_simcse_ja_unsup", 1152, ["model", "corpus"], 12, JAPANESE),
        ("eclda_runs", 14, ["log", "lr"], 2, TASKS),
    ],
)
def test_counts_and_means(name, rows, groups, size, tasks) -> None:
    found = public_runs(name)
    assert len(found) == rows and set(found.groupby(groups).size()) == {size}
    assert found[tasks].stack().between(50, 90).all()
    assert (found[tasks].mean(axis=1) - found["mean"]).abs().max() < 1e-4


def test_files_are_small_and_a_wrong_name_is_refused() -> None:
    assert sum(file.stat().st_size for file in PUBLIC.glob("*.csv")) <= 400 * 1024
    with pytest.raises(ValueError, match="there are eclda_dev_curves"):
        public_runs("nothing")


def test_the_slides_are_fifty_seeds_in_every_digit() -> None:
    printed = pd.read_csv(PAPERS / "backbones_table_1.csv").set_index("Model")
    columns = [task.replace("-", "").removesuffix("R").lower() for task in TASKS]
    for measured, ending in [(SIMCSE[TASKS].mean(), ""), (SIMCSE[TASKS].std(), "_sd")]:
        cells = printed.loc[measured.index, [f"{column}{ending}" for column in columns]]
        assert cells.size == 28 and (abs(measured.round(6) - cells.to_numpy()) < 1e-9).all(None)


def test_simcse_as_the_source_prints_it() -> None:
    mean = SIMCSE["mean"]
    assert mean.mean().round(2).tolist() == [75.11, 74.95, 74.60, 76.71]
    assert mean.min().round(2).tolist() == [73.16, 70.31, 74.17, 75.64]
    assert mean.max().round(2).tolist() == [76.70, 77.28, 75.14, 77.69]
    assert mean.std().round(2).tolist() == [0.84, 1.74, 0.21, 0.50]
    runs = public_runs("simple_simcse_runs").set_index("model")["mean"]
    assert (runs["bert-base-uncased"] >= 76.25).sum() == 5
    assert (runs["roberta-base"] >= 76.57).sum() == 0


@pytest.mark.parametrize(
    ("row", "log"),
    [
        ("consert_unsup", "logs_baseline"),
        ("sentence_aug", f"{TRANSLATED}epoch30"),
        ("projection_head", f"{TRANSLATED}epoch100_mlp"),
    ],
)
def test_rows_of_the_report_are_public_logs(row, log) -> None:
    """Their mean of the last layer; the report rounds some figures and cuts others off."""
    printed = pd.read_csv(PAPERS / "consert_ext_table_1.csv").set_index("row_id").loc[row]
    found = public_runs("eclda_runs").set_index(["log", "layers"]).loc[(log, "last")]
    columns = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R", "Avg."]
    assert abs(found[[*TASKS, "mean"]] - printed[columns].to_numpy()).max() < 0.01


def test_dev_curves_and_japanese_as_their_sources_print_them() -> None:
    curves = public_runs("eclda_dev_curves").groupby("log")["dev"]
    assert sorted(curves.size()) == [11, 11, 17, 30, 30, 30, 38]
    peaks = curves.max()[["logs_baseline", "logs_lr=2e-5", f"{TRANSLATED}epoch100_mlp"]]
    assert peaks.tolist() == [80.77, 80.70, 84.11]
    found = public_runs("simple_simcse_ja_unsup").query("corpus == 'wiki40b'")
    best = found.loc[found.groupby("model")["dev"].idxmax()].set_index("model")
    names = ["cl-tohoku/bert-base-japanese-v3", "xlm-roberta-base", "xlm-roberta-large"]
    assert best["mean"].round(2)[names].tolist() == [77.33, 72.09, 78.18]
