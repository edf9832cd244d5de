"""The transcribed tables of the papers: shape, arithmetic, agreement between tables, quoted
figures."""

import re
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean, stdev

import pandas as pd
import pytest

from lib.paths import PAPERS

INDEX = pd.read_csv(PAPERS / "index.csv", dtype=str, keep_default_na=False).set_index("file")
ROWS = INDEX["rows"].astype(int).to_dict()
STS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
TRANSFER = ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"]
KNOWN_MISPRINTS = {  # (file, row_id): (average as printed, mean of the printed tasks with two more digits)
    ("sda_table_4.csv", "ensemble_roberta"): ("79.37", "79.4143"),
    ("consert_ext_table_8.csv", "translate"): ("73.96", "73.9729"),
    ("consert_ext_table_9.csv", "tau_0_50"): ("0.666623", "0.66662000"),
    ("consert_ext_table_10.csv", "lr_2e_6"): ("0.727244", "0.72725286"),
}
NUMBER = re.compile(r"(0|[1-9]\d*)?\.\d+")


def read(name: str) -> pd.DataFrame:
    """The file's cells as printed, indexed by `row_id`."""
    return pd.read_csv(PAPERS / name, dtype=str, keep_default_na=False).set_index("row_id")


def in_library_names(name: str) -> pd.DataFrame:
    """The file with task columns renamed as `columns.csv` says."""
    columns = pd.read_csv(PAPERS / "columns.csv", dtype=str)
    return read(name).rename(columns=dict(zip(columns["printed"], columns["task"], strict=True)))


def half_ulp(printed: str) -> Decimal:
    """Half a unit of the last printed digit."""
    return Decimal(5).scaleb(int(Decimal(printed).as_tuple().exponent) - 1)


def task_mean(name: str, row_id: str) -> tuple[Decimal, Decimal]:
    """Mean of the seven printed tasks and the largest error that their rounding can cause."""
    table = in_library_names(name)
    tasks = STS if "STS12" in table.columns else TRANSFER
    cells = [str(table.loc[row_id, task]) for task in tasks]
    return sum(map(Decimal, cells), Decimal()) / 7, sum(map(half_ulp, cells), Decimal()) / 7


def average_rows() -> list[tuple[str, str]]:
    columns = {name: set(in_library_names(name)) for name in ROWS}
    whole = [n for n, c in columns.items() if {"STS12", "avg"} <= c or {"MR", "avg"} <= c]
    return [(name, str(row_id)) for name in whole for row_id in read(name).index]


def test_every_table_is_there_and_listed():
    names = ("index", "claims", "columns", "errata", "primary", "settings")
    others = {f"{name}.csv" for name in names}
    files = {path.name for path in PAPERS.glob("*.csv")} - others
    assert files == set(ROWS) and INDEX.index.is_unique


@pytest.mark.parametrize("name", ROWS)
def test_rows_and_keys(name):
    table = pd.read_csv(PAPERS / name, dtype=str, keep_default_na=False)
    assert list(table.columns[:3]) == ["paper", "table", "row_id"]
    assert len(table) == ROWS[name]
    assert table["row_id"].is_unique
    assert table["row_id"].str.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*").all()
    assert set(table["paper"]) == {re.split(r"_(?:table|text|figure)_", name)[0]}
    assert table["table"].nunique() == 1
    number = name.removesuffix(".csv").partition("_table_")[2]
    assert not number or table["table"][0] == number.upper()
    assert all(cell == cell.strip() for cell in (*table.columns, *table.to_numpy().ravel()))


@pytest.mark.parametrize("name", ROWS)
def test_scores_are_numbers_in_the_unit_of_the_index(name):
    factor = INDEX.loc[name, "factor"]
    if not factor:
        assert not re.search("Spearman|accuracy", INDEX.loc[name, "unit"])
        return
    measured = {*STS, *TRANSFER, "avg", "STS Avg.", "STS-B dev.", "Chinese STS-B", "avg. STS"}
    measured |= {"SimCSE", "Paraphrasing & UNA"}
    if name in {"una_table_c4.csv", "una_table_c5.csv", "una_table_c6.csv"}:
        measured.add("UNA")
    table = in_library_names(name)
    scores = [column for column in table.columns if column in measured]
    assert scores
    for cell in table[scores].to_numpy().ravel():
        assert NUMBER.fullmatch(cell), cell
        assert 35 < float(cell) * float(factor) < 100
    spreads = table[[c for c in table.columns if c.endswith("_sd")]].to_numpy().ravel()
    spreads = [cell for cell in spreads if cell]
    assert all(NUMBER.fullmatch(cell) and float(cell) * float(factor) < 3 for cell in spreads)


@pytest.mark.parametrize(("name", "row_id"), average_rows())
def test_average_follows_from_its_row(name, row_id):
    computed, error = task_mean(name, row_id)
    printed = in_library_names(name).loc[row_id, "avg"]
    adds_up = abs(computed - Decimal(printed)) <= error + half_ulp(printed)
    if (name, row_id) not in KNOWN_MISPRINTS:
        assert adds_up, f"{name} {row_id}: printed {printed}, computed {computed:.6f}"
        return
    expected_printed, expected_computed = KNOWN_MISPRINTS[name, row_id]
    assert not adds_up
    assert printed == expected_printed
    expected = Decimal(expected_computed)
    assert computed.quantize(expected, ROUND_HALF_UP) == expected


def test_every_misprinted_average_is_in_the_errata():
    errata = pd.read_csv(PAPERS / "errata.csv", dtype=str, keep_default_na=False)
    assert list(errata.columns) == ["paper", "where", "printed", "found"]
    assert not errata.duplicated(["paper", "where", "printed"]).any()
    assert (errata[["paper", "where", "printed", "found"]] != "").all(axis=None)
    for (name, _), (printed, computed) in KNOWN_MISPRINTS.items():
        paper, _, table = name.removesuffix(".csv").partition("_table_")
        lines = errata[errata["paper"] == paper]
        told = lines[lines["where"].str.match(rf"Table {table}\b")]
        told = told[told["printed"].str.contains(printed, regex=False)]
        assert len(told) == 1
        rounded = Decimal(computed).quantize(Decimal(printed), ROUND_HALF_UP)
        assert str(rounded) in told["found"].iloc[0]


@pytest.mark.parametrize("column", ["SimCSE", "Paraphrasing & UNA"])
def test_una_seeds_give_the_printed_mean_and_deviation(column):
    table = read("una_table_d7.csv")
    seeds = table.drop("mean")
    assert list(seeds["Seed"].astype(int)) == [42, 0, 1, 11, 15, 48, 111, 421, 456, 3407]
    values = [float(value) for value in seeds[column]]
    assert mean(values) == pytest.approx(float(table.loc["mean", column]), abs=1e-4)
    assert stdev(values) == pytest.approx(float(table.loc["mean", f"{column}_sd"]), abs=0.5e-4)
    assert set(seeds[f"{column}_sd"]) == {""}


def test_una_tables_agree():
    main, others, models = (read(f"una_table_{number}.csv") for number in ("1", "c3", "d8"))
    tasks = [*STS[:5], "STS Bench.", "SICK Rel.", "Avg."]
    for row_id in ("bert_simcse", "bert_paraphrase"):
        assert list(main.loc[row_id, tasks]) == list(others.loc[row_id, tasks])
    for backbone in ("bert", "roberta"):
        ours = models.loc[f"{backbone}_ours", tasks]
        assert list(main.loc[f"{backbone}_paraphrase_una", tasks]) == list(ours)
    chosen = [
        read(f"una_table_{table}.csv").loc[row, ["UNA", "Paraphrasing & UNA"]].to_list()
        for table, row in (("c4", "alpha_5"), ("c5", "beta_0_5"), ("c6", "r_4000"))
    ]
    assert chosen == [[".8235", ".8345"]] * 3
    seed_42 = read("una_table_d7.csv").loc["seed_42"]
    assert seed_42["SimCSE"] == main.loc["bert_simcse", "Avg."]
    assert seed_42["Paraphrasing & UNA"] == main.loc["bert_paraphrase_una", "Avg."]
    assert read("una_table_2.csv").loc["bert_una", "STS Avg."] == main.loc["bert_una", "Avg."]


def test_sda_tables_agree():
    main, ablation = read("sda_table_4.csv"), read("sda_table_6.csv")
    for row_id in ("simcse_roberta", "mv_roberta"):
        assert list(main.loc[row_id, [*STS, "Avg."]]) == list(ablation.loc[row_id, [*STS, "Avg."]])
    assert read("sda_table_9.csv").loc["none", "avg. STS"] == main.loc["simcse_roberta", "Avg."]
    lift = Decimal(ablation.loc["mv_roberta_no_positive", "SICK-R"]) - Decimal(
        ablation.loc["mv_roberta_no_negation", "SICK-R"]
    )
    assert lift == Decimal("3.39")


def test_consert_extension_tables_agree():
    for short, long in ((3, 9), (4, 10)):
        averages, full = (read(f"consert_ext_table_{n}.csv")["Avg."] for n in (short, long))
        assert averages.to_dict() == full[averages.index].to_dict()
    main, views = read("consert_ext_table_1.csv"), read("consert_ext_table_8.csv")
    tasks = [*STS[:5], "STSb", "SICK-R", "Avg."]
    same_in = {"consert_unsup": "consert_unsup", "sentence_aug": "shuffle_dropout_0_1"}
    for row_id, same in {**same_in, "consert_sup": "consert_sup"}.items():
        assert list(main.loc[row_id, tasks]) == list(views.loc[same, tasks])
