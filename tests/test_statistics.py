"""`lib.results.statistics` against closed forms, textbook values and simulation."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.results.statistics import (
    best_of,
    called,
    critical_value,
    minimum_detectable_effect,
    paired_differences,
    power_of,
)
from tools.results_pages import mean_sd


def frame(**rows: list[float]) -> pd.DataFrame:
    """Scores by row, of the seeds 0, 1, …"""
    return pd.DataFrame(
        [(row, seed, score) for row, scores in rows.items() for seed, score in enumerate(scores)],
        columns=["row", "seed", "score"],
    )


def test_mean_and_sd_count_what_collapsed() -> None:
    values = [70.0, 72.0, 77.0]
    assert mean_sd(pd.Series(values)) == f"73.00 ± {statistics.stdev(values):.2f}"
    assert mean_sd(pd.Series([*values, np.nan])) == "– (1 of 4 collapsed)"
    assert mean_sd(pd.Series([70.0])) == "70.00" and mean_sd(pd.Series(dtype=float)) == "–"


def test_the_best_of_n_is_that_of_a_simulation() -> None:
    draws = np.random.default_rng(0).normal(50, 2, size=(40_000, 10)).max(1)
    assert best_of(10, 50, 2) == pytest.approx(draws.mean(), abs=4 * stats.sem(draws))
    assert best_of(1, 50, 2) == pytest.approx(50)


@pytest.mark.parametrize(
    ("df", "comparisons", "printed"), [(4, 1, 2.776), (4, 10, 5.598), (10, 25, 4.144)]
)
def test_critical_values_are_those_of_tables(df: int, comparisons: int, printed: float) -> None:
    """Student's t at 0.975, 0.995, 0.9975 and 0.999, as Dunn (1961) arranges them."""
    assert critical_value(df + 1, comparisons) == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize("wrong", [{"n": 1}, {"n": 5, "comparisons": 0}])
def test_a_critical_value_has_a_design(wrong: dict) -> None:
    with pytest.raises(ValueError, match="are the fewest"):
        critical_value(**wrong)


def test_paired_differences_are_those_of_a_slow_version() -> None:
    rng = np.random.default_rng(0)
    scores = frame(**{name: rng.normal(k, 1, 5) for k, name in enumerate(["base", "b", "c"])})
    scores = scores.query("not (row == 'c' and seed == 3)").sample(frac=1, random_state=0)
    found = paired_differences(scores, "score", "base")
    assert dict(found["seeds"]) == {"b": 5, "c": 4} and set(found["minus"]) == {"base"}
    assert list(found.columns) == ["minus", "seeds", "mean", "sd", "95 % ±"]
    values = {name: part.set_index("seed")["score"] for name, part in scores.groupby("row")}
    for row, line in found.iterrows():
        pairs = [(values[row][seed], values["base"][seed]) for seed in values[row].index]
        low, high = stats.ttest_rel(*zip(*pairs, strict=True)).confidence_interval(1 - 0.05 / 2)
        ends = [line["mean"] - line["95 % ±"], line["mean"] + line["95 % ±"]]
        assert ends == pytest.approx([low, high])
        assert line["sd"] == pytest.approx(statistics.stdev(a - b for a, b in pairs))


def test_the_family_is_the_table_or_as_many_as_are_said() -> None:
    rng = np.random.default_rng(1)
    scores = frame(**{name: rng.normal(0, 1, 5) for name in "abcd"})
    alone = paired_differences(scores, "score", {"c": "b"})
    assert list(alone["minus"]) == ["b"] and list(alone.index) == ["c"]
    ratio = stats.t.isf(0.025 / 9, 4) / stats.t.isf(0.025, 4)
    nine = paired_differences(scores, "score", {"c": "b"}, comparisons=9)
    assert nine.loc["c", "95 % ±"] == pytest.approx(ratio * alone.loc["c", "95 % ±"])
    with pytest.raises(ValueError, match="3 rows are more than 1 comparisons"):
        paired_differences(scores, "score", "a", comparisons=1)


def test_a_row_without_an_interval_widens_the_others_all_the_same() -> None:
    scores = frame(a=[0.0, 0.0, 0.0], b=[1.0, 2.0, 4.0], lost=[1.0, np.nan, 3.0])
    found = paired_differences(scores, "score", "a")
    alone = paired_differences(scores, "score", {"b": "a"}, comparisons=2)
    assert found.loc["b", "95 % ±"] == alone.loc["b", "95 % ±"]
    assert found.loc["lost", "seeds"] == 3
    assert found.loc["lost", ["mean", "sd", "95 % ±"]].isna().all()


def test_one_seed_equal_differences_and_no_shared_seed_have_no_interval() -> None:
    one = paired_differences(frame(a=[1.0], b=[2.0]), "score", "a").loc["b"]
    assert (one["seeds"], one["mean"]) == (1, 1.0) and np.isnan([one["sd"], one["95 % ±"]]).all()
    same = frame(a=[0.1, 1.1, 2.1], b=[0.2, 1.2, 2.2], c=[0.1] * 3, d=[0.3] * 3)
    found = paired_differences(same, "score", {"b": "a", "d": "c"})
    assert found["mean"].tolist() == pytest.approx([0.1, 0.2]) and found["95 % ±"].isna().all()
    apart = pd.concat([frame(a=[1.0, 2.0]), frame(b=[1.0, 2.0]).assign(seed=[7, 8])])
    assert paired_differences(apart, "score", "a").loc["b", "seeds"] == 0
    assert np.isnan(paired_differences(apart, "score", "a").loc["b", "mean"])
    assert paired_differences(frame(a=[1.0, 2.0]), "score", "a").empty


def test_a_wrong_baseline_and_two_runs_of_one_seed_are_refused() -> None:
    scores = frame(a=[1.0, 2.0], b=[2.0, 3.0])
    with pytest.raises(ValueError, match="no finished run of \\['bass'"):
        paired_differences(scores, "score", "bass")
    with pytest.raises(ValueError, match="two runs of one row and seed, 'b'"):
        paired_differences(pd.concat([scores, scores.tail(1)]), "score", "a")


@pytest.mark.parametrize("sds", [[0.68, 0.41, 0.5, 0.6, 0.7, 0.9, 1.92], [0.6] * 6 + [5.0]])
def test_intervals_hold_together_whatever_the_rows_variances(sds: list[float]) -> None:
    """Tables of noise, five seeds and a shared baseline, with the sds of the backbones' table, and
    of a method that collapses now and then: one in twenty has an interval without zero."""
    rng, tables, n, k = np.random.default_rng(0), 20_000, 5, len(sds) - 1
    of_seed = rng.standard_normal((tables, n, 1))
    x = (0.6 * of_seed + 0.8 * rng.standard_normal((tables, n, k + 1))) * sds
    d = x[..., 1:] - x[..., :1]
    half = critical_value(n, k) * d.std(1, ddof=1) / n**0.5
    assert 0.03 < (np.abs(d.mean(1)) > half).any(1).mean() < 0.053


@pytest.mark.parametrize(
    ("n", "d", "printed"), [(10, 1.0, 0.8031), (34, 0.5, 0.8078), (54, 0.5, 0.9502)]
)
def test_power_is_that_of_g_power(n: int, d: float, printed: float) -> None:
    """Means, difference between two dependent means (matched pairs), two tails, α 0.05."""
    assert power_of(d, n, 1.0) == pytest.approx(printed, abs=1e-4)
    assert power_of(-3 * d, n, 3.0) == pytest.approx(printed, abs=1e-4)


def test_the_smallest_effect_is_that_of_r() -> None:
    """`pwr.t.test(d = 0.5, power = 0.8, type = "paired")` asks for 33.37 pairs."""
    assert minimum_detectable_effect(33, 1.0) > 0.5 > minimum_detectable_effect(34, 1.0)
    assert minimum_detectable_effect(5, 1.0) == pytest.approx(1.68, abs=0.005)
    assert minimum_detectable_effect(5, 0.7) == pytest.approx(
        0.7 * minimum_detectable_effect(5, 1.0)
    )


@pytest.mark.parametrize(("n", "comparisons", "power"), [(5, 1, 0.8), (5, 15, 0.8), (3, 6, 0.5)])
def test_power_is_that_of_a_simulation(n: int, comparisons: int, power: float) -> None:
    effect = minimum_detectable_effect(n, 0.7, comparisons, power)
    assert power_of(effect, n, 0.7, comparisons) == pytest.approx(power)
    draws = np.random.default_rng(0).normal(effect, 0.7, (40_000, n))
    seen = stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05 / comparisons
    assert seen.mean() == pytest.approx(power, abs=4 * (power * (1 - power) / 40_000) ** 0.5)


def test_power_without_effect_is_the_level() -> None:
    assert power_of(0.0, 5, 1.0, comparisons=10) == pytest.approx(0.005)
    for effect in (40.0, -40.0):
        assert power_of(effect, 5, 1.0) == pytest.approx(1.0), "a tail of scipy is NaN there"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sd": 0.0}, "sd of the differences"),
        ({"n": 1}, "are the fewest"),
        ({"power": 0.04}, "power must be"),
    ],
)
def test_an_effect_needs_a_design(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        minimum_detectable_effect(**{"n": 5, "sd": 1.0, **wrong})


@pytest.mark.parametrize(
    ("difference", "half", "printed", "expected"),
    [
        (1.0, 0.5, 1.5, "confirmed"),
        (1.0, 0.5, 2.0, "smaller"),
        (-1.0, 0.5, 2.0, "reversed"),
        (0.5, 0.5, math.nan, "undecided"),
        (0.0, 0.5, 0.5, "undecided"),
        (0.0, 0.5, 0.51, "not found at the printed size"),
    ],
)
def test_an_interval_has_a_word(
    difference: float, half: float, printed: float, expected: str
) -> None:
    assert called(difference, half, printed) == expected
    assert math.isnan(printed) or called(-difference, half, -printed) == expected


def test_without_an_interval_there_is_no_word() -> None:
    with pytest.raises(ValueError, match=r"no verdict on 0\.4 ± nan"):
        called(0.4, math.nan, 0.8)
