"""Nearest neighbours: a slow version, ties, zero vectors, sparse rows, and what is refused."""

import math
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from tiny import hashed

from lib import data, evaluate
from lib.evaluate import neighbours

DEGREES = {"right": 0, "near": 10, "mid": 60, "up": 90, "left": 180}


def turned(texts):
    """Vectors at the angles of DEGREES, each of another length."""
    angles = np.radians([DEGREES[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], 1) * (1 + angles[:, None])


def vectors(n):
    """`n` vectors of small integers, so that zero vectors and ties are frequent."""
    return st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), min_size=n, max_size=9)


def slow(queries, rows, k):
    """Every cosine one by one, sorted."""
    found = []
    for query in queries:
        cosines = []
        for i, row in enumerate(rows):
            product = sum(a * b for a, b in zip(query, row, strict=True))
            lengths = math.hypot(*query) * math.hypot(*row)
            cosine = product / lengths if lengths else 0.0
            cosines.append((-round(cosine, 12), i))
        found.append([(i, -cosine) for cosine, i in sorted(cosines)[:k]])
    return found


@given(queries=vectors(0), rows=vectors(2), block=st.integers(1, 30), data=st.data())
def test_as_one_by_one_in_blocks_of_any_size(queries, rows, block, data):
    k = data.draw(st.integers(1, len(rows)))
    u, v = np.array(queries, float).reshape(-1, 3), np.array(rows, float)
    expected = slow(queries, rows, k)
    for as_is in (np.asarray, sparse.csr_matrix):
        with patch.object(neighbours, "BLOCK", block):
            found, cosines = neighbours.top_k(as_is(u), as_is(v), k)
        assert found.shape == cosines.shape == (len(queries), k)
        assert found.tolist() == [[i for i, _ in row] for row in expected]
        np.testing.assert_allclose(
            cosines, np.reshape([c for row in expected for _, c in row], (-1, k)), atol=1e-11
        )


def test_equal_vectors_stand_in_their_order_in_every_block():
    rows = np.tile(np.random.default_rng(0).normal(size=(1, 64)), (20_000, 1))
    rows *= np.random.default_rng(1).uniform(0.1, 9, size=(20_000, 1))
    found, cosines = neighbours.top_k(rows[:3], rows, 4)
    assert found.tolist() == [[0, 1, 2, 3]] * 3 and (cosines == 1).all()


def test_the_nearest_of_known_angles():
    queries, sentences = ["up", "near", "up"], ["mid", "left", "up", "mid", "right"]
    table = evaluate.neighbour_table({"one": turned, "other": hashed}, queries, sentences)
    assert table.columns.tolist() == ["query", "one", "other"]
    assert table["query"].tolist() == queries
    assert table["one"].tolist() == ["mid", "right", "mid"]
    (first,) = neighbours.top_k(hashed(["near"]), hashed(sentences), 1)[0]
    assert table["other"][1] == sentences[first[0]]


def test_sparse_rows_and_single_precision_give_the_same():
    counts = CountVectorizer()  # fitted to the texts, all of which it must see at once
    sentences, queries = data.handwritten(), data.queries()
    thin = evaluate.bag_of_words_encode(counts)
    thick = lambda texts: thin(texts).toarray().astype("float32")  # noqa: E731
    table = evaluate.neighbour_table({"thin": thin, "thick": thick}, queries, sentences)
    assert table["thin"].tolist() == table["thick"].tolist()


@pytest.mark.parametrize(("queries", "sentences"), [(["up"], []), (["mid", "up"], ["up", "up"])])
def test_beside_a_query_there_must_be_a_sentence(queries, sentences):
    with pytest.raises(ValueError, match="no sentence in which to look for 'up'"):
        evaluate.neighbour_table({"turned": turned}, queries, sentences)


@pytest.mark.parametrize("texts", [("up", ["mid"]), (["up"], "mid")])
def test_one_string_is_no_list(texts):
    with pytest.raises(TypeError, match="not one string"):
        evaluate.neighbour_table({"turned": turned}, *texts)


def test_places_are_those_of_a_sorted_list():
    planted = pd.DataFrame({"query": ["up", "near"], "a": ["mid", "right"], "b": ["left", "left"]})
    by_query = evaluate.place_table({"turned": turned}, planted, ["near", "right", "up", "mid"])
    assert by_query.index.tolist() == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert by_query["turned"].tolist() == [1, 3, 1, 3]
    found = by_query.groupby("kind").median()
    assert found.index.tolist() == ["a", "b"] and found.columns.tolist() == ["turned"]
    # up, at 90°: mid 60°, then right 0° and left 180° as near; near, at 10°: right, mid, left
    assert found["turned"].tolist() == [1.0, 3.0]
