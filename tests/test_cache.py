"""What runs share of a text: the same as without, made once, made anew where it is damaged."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_recipe, tiny_sentences, tiny_tokenizer

from lib.augment.tfidf import TfidfModel
from lib.data.files import cached, digest, load_arrays, save_arrays
from lib.encoder import tokens
from lib.training import views
from lib.training.views import Text

SENTENCES = tiny_sentences(40)
UNA = tiny_recipe(negative="una", radius=5, every=1, max_length=12)


@given(st.lists(st.text()), st.lists(st.text()))
def test_only_equal_lists_have_equal_digests(a, b):
    assert (digest(a) == digest(b)) == (a == b)


def test_parts_are_not_mixed_up():
    parts = [["a", "b"]], [["a"], ["b"]], [["ab"]], ["ab", []], [["a\nb"]]
    assert len({digest(*part) for part in parts}) == 5


def save(value: int, path) -> None:
    """A number as an array."""
    save_arrays({"number": np.array(value)}, path)


def load(path) -> int:
    """What `save` wrote."""
    return int(load_arrays(path, ["number"])["number"])


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04half", b"text"])
def test_what_is_damaged_is_made_anew(tmp_path, damage):
    path = tmp_path / "a" / "number.npz"
    assert cached(path, lambda: 7, save, load) == 7
    assert cached(path, lambda: 8, save, load) == 7
    path.write_bytes(damage)
    assert cached(path, lambda: 9, save, load) == 9 == load(path)


def test_views_and_negatives_are_those_without_a_cache(tmp_path):
    tokenizer = tiny_tokenizer(tmp_path / "tokenizer")
    rows = np.array([3, 1, 2])
    for _ in range(2):  # made, then read
        plain, shared = (
            (
                views.make_views(Text(SENTENCES, cache=cache), UNA, tokenizer, 1),
                views.make_negatives(
                    Text(SENTENCES, aligned=["a word more"], cache=cache), UNA, tokenizer, 1
                ),
            )
            for cache in (None, tmp_path / "cache")
        )
        for a, b in zip(plain[0], shared[0], strict=True):
            assert np.array_equal(a.ids, b.ids) and np.array_equal(a.offsets, b.offsets)
            assert a.pad_id == b.pad_id and a.ids.dtype == b.ids.dtype
        for a, b in zip(plain[1](rows, 5), shared[1](rows, 5), strict=True):
            assert torch.equal(a, b)
        assert plain[1].strings(rows, 5) == shared[1].strings(rows, 5)


def test_a_text_is_counted_and_cut_once(tmp_path, monkeypatch):
    tokenizer, calls = tiny_tokenizer(tmp_path / "tokenizer"), []
    fit, cut = TfidfModel.fit, tokens.tokenise
    monkeypatch.setattr(TfidfModel, "fit", lambda *a: calls.append("fit") or fit(*a))
    monkeypatch.setattr(tokens, "tokenise", lambda *a: calls.append("cut") or cut(*a))
    for seed in (1, 2, 3):
        views.make_views(Text(SENTENCES, cache=tmp_path / "cache"), UNA, tokenizer, seed)
        views.counted(SENTENCES, cache=tmp_path / "cache")
    assert sorted(calls) == ["cut", "fit"]
    views.counted(SENTENCES[1:], cache=tmp_path / "cache")
    longer = tiny_recipe(max_length=5)
    views.make_views(Text(SENTENCES, cache=tmp_path / "cache"), longer, tokenizer, 1)
    assert sorted(calls) == ["cut", "cut", "fit", "fit"]


def test_a_text_with_other_positives_is_counted_anew(tmp_path):
    for more in ([], ["zebra"], ["yak"]):
        model, _ = views.counted(SENTENCES, more, tmp_path)
        assert [word for word in model.terms if word in ("zebra", "yak")] == more


def test_another_tokenizer_has_tokens_of_its_own(tmp_path):
    one = tiny_tokenizer(tmp_path / "one")
    other = tiny_tokenizer(tmp_path / "other")
    other.add_tokens([SENTENCES[0].split()[0] + "x"])
    for tokenizer in (one, other):
        tokens.tokenise_once(SENTENCES, tokenizer, 12, tmp_path / "cache")
    assert len(list((tmp_path / "cache").glob("tokens-*.npz"))) == 2
