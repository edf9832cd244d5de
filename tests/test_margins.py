"""Margins of triplets: closed forms, a slow version, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from tiny import at_angles, hashed

from lib import data, evaluate
from lib.data import Triplets
from lib.results.statistics import mean_interval

KINDS = ["paraphrase", "negated", "unrelated"]
DEGREES = {"a": 0.0, "b": 0.0, "near": 10.0, "mid": 60.0, "far": 90.0}


def triplets(*rows):
    return Triplets("toy", *(list(column) for column in zip(*rows, strict=True)))


TOY = triplets(
    ("b", "paraphrase", "mid"),
    ("b", "negated", "near"),
    ("a", "paraphrase", "near"),
    ("a", "negated", "mid"),
    ("a", "unrelated", "far"),
)


def test_margins_of_known_angles():
    found = evaluate.margins(at_angles(DEGREES), TOY)
    near = math.cos(math.radians(10))
    assert list(found.index) == ["b", "a"] and list(found.columns) == ["negated", "unrelated"]
    expected = [[0.5 - near, math.nan], [near - 0.5, near]]
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-12)


@given(
    st.lists(st.lists(st.sampled_from("uvwxyz"), min_size=3, max_size=3), min_size=1, max_size=5)
)
def test_margins_as_one_by_one(partners):
    rows = [
        (f"anchor {i}", k, s) for i, p in enumerate(partners) for k, s in zip(KINDS, p, strict=True)
    ]
    found = evaluate.margins(hashed, triplets(*rows))
    cosine = {}
    for anchor, kind, sentence in rows:
        u, v = hashed([anchor, sentence])
        cosine[anchor, kind] = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
    for anchor, kind, _ in rows:
        if kind != "paraphrase":
            slow = cosine[anchor, "paraphrase"] - cosine[anchor, kind]
            assert found.loc[anchor, kind] == pytest.approx(slow)


def test_word_counts_see_no_change_of_roles():
    table = evaluate.margin_table(
        evaluate.margins(evaluate.bag_of_words_encode(CountVectorizer()), data.mini_triplets())
    )
    assert list(table["n"]) == [232] * 5
    assert table["high"]["role swapped"] < 0 < table["low"]["unrelated"]
    assert table["share_above_0"]["unrelated"] == 1


def test_table_of_known_margins():
    found = pd.DataFrame({"negated": [0.2, 0.2, math.nan], "unrelated": [0.0, -1.0, 1.0]})
    table = evaluate.margin_table(found)
    assert table.loc["negated"].tolist() == pytest.approx([2, 0.2, 0.2, 0.2, 1.0])
    assert table["share_above_0"]["unrelated"] == pytest.approx(1 / 3)
    assert table["low"]["unrelated"] < table["mean_margin"]["unrelated"] == 0


def test_interval_of_a_mean_is_that_of_drawing_with_replacement():
    values = np.random.default_rng(1).normal(size=150)
    mean, low, high = mean_interval(values, resamples=20_000)
    assert mean == pytest.approx(values.mean())
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert (mean - low, high - mean) == pytest.approx((half, half), rel=0.05)
    assert mean_interval(values) == mean_interval(values) != mean_interval(values, seed=1)
    rng = np.random.default_rng(2)
    slow = np.quantile([rng.choice(values, 150).mean() for _ in range(5000)], [0.025, 0.975])
    assert (low, high) == pytest.approx(tuple(slow), abs=0.01)


def test_a_higher_level_is_a_wider_interval():
    values = list(range(30))
    half, usual, nearly = (mean_interval(values, level=level) for level in (0.5, 0.95, 0.99))
    assert nearly.low < usual.low < half.low < half.high < usual.high < nearly.high


@pytest.mark.parametrize("values", [[], [[1.0]], [math.nan], [math.inf]])
def test_no_interval_without_numbers(values):
    with pytest.raises(ValueError, match="no mean: values of shape"):
        mean_interval(values)
