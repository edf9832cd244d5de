"""Text augmentations: what each may change, and that nothing depends on how a corpus is cut."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_sentences

from lib import augment as package
from lib import paths
from lib.augment import AUGMENTATIONS, edits

augment = partial(package.augment, synonyms=str(paths.MINI / "thesaurus.tsv"))

few = settings(max_examples=60, deadline=None)
words = st.lists(st.text("abcxyz", min_size=1, max_size=4), max_size=15)
cases = given(words=words, rate=st.floats(0, 1), seed=st.integers(0, 999))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def is_subsequence(short: list[str], long: list[str]) -> bool:
    rest = iter(long)
    return all(word in rest for word in short)


@few
@cases
def test_crop_keeps_one_span(words, rate, seed):
    kept = edits.crop(words, rate, rng(seed))
    assert any(words[i : i + len(kept)] == kept for i in range(len(words) + 1))
    assert len(kept) == min(len(words), max(1, math.ceil(round((1 - rate) * len(words), 9))))


@pytest.mark.parametrize(
    ("n", "percent"), [(n, p) for n in (1, 5, 10, 20, 30) for p in range(0, 101, 10)]
)
def test_crop_is_exact_at_round_rates(n, percent):
    kept = edits.crop([str(i) for i in range(n)], percent / 100, rng(0))
    assert len(kept) == max(1, n - n * percent // 100)


def test_crop_starts_everywhere():
    starts = {edits.crop(list("abcde"), 0.4, rng(s))[0] for s in range(60)}
    assert starts == {"a", "b", "c"}


@few
@cases
def test_delete_keeps_a_subsequence_of_at_least_one_word(words, rate, seed):
    kept = edits.delete(words, rate, rng(seed))
    assert is_subsequence(kept, words)
    assert len(kept) >= min(1, len(words))


@few
@cases
def test_mask_keeps_every_position(words, rate, seed):
    masked = edits.mask(words, rate, rng(seed))
    assert len(masked) == len(words)
    assert all(m in (w, "[MASK]") for m, w in zip(masked, words, strict=True))


@few
@cases
def test_repeat_doubles_some_words_in_place(words, rate, seed):
    longer = edits.repeat(words, rate, rng(seed))
    most = min(len(words), max(2, int(rate * len(words))))
    assert len(words) <= len(longer) <= len(words) + most
    undone, i = [], 0
    numbered = [f"{w}{i}" for i, w in enumerate(words)]
    for word in edits.repeat(numbered, rate, rng(seed)):
        if undone and undone[-1] == word:
            i += 1
        else:
            undone.append(word)
    assert undone == numbered and i == len(longer) - len(words)


@pytest.mark.parametrize("name", ["delete", "mask"])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.8])
def test_the_share_of_words_concerned_is_the_rate(name, rate):
    sentences = [" ".join(f"w{i}" for i in range(50))] * 200
    changed = augment(name, sentences, rate)
    untouched = sum(w != "[MASK]" for s in changed for w in s.split()) / (50 * 200)
    assert untouched == pytest.approx(1 - rate, abs=0.02)


def test_repeat_draws_every_count():
    sentence = [" ".join(f"w{i}" for i in range(20))] * 300
    extra = {len(s.split()) - 20 for s in augment("repeat", sentence, 0.25)}
    assert extra == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", sorted(AUGMENTATIONS))
def test_rate_zero_changes_nothing(name):
    sentences = tiny_sentences(50)
    assert augment(name, sentences, 0.0) == sentences


@pytest.mark.parametrize("name", sorted(AUGMENTATIONS))
def test_rate_one_and_empty_sentences_stay_aligned(name):
    changed = augment(name, ["a b c", "", "one", "   "], 1.0)
    assert len(changed) == 4 and changed[0] and changed[1] == "" and changed[2] and changed[3] == ""


@pytest.mark.parametrize("name", sorted(AUGMENTATIONS))
def test_a_sentences_change_depends_on_seed_and_place_alone(name):
    sentences = tiny_sentences(40, shortest=8, longest=12)
    whole = augment(name, sentences, 0.3, seed=5)
    assert whole == augment(name, sentences, 0.3, seed=5)
    assert whole[:13] == augment(name, sentences[:13], 0.3, seed=5)
    replaced = ["something else entirely"] * 20 + sentences[20:]
    assert whole[20:] == augment(name, replaced, 0.3, seed=5)[20:]
    assert whole != augment(name, sentences, 0.3, seed=6)
    assert len(set(augment(name, sentences[:1] * 40, 0.3, seed=5))) > 1


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_rate_outside_0_1_is_an_error(rate):
    with pytest.raises(ValueError, match="rate"):
        augment("crop", ["a b"], rate)


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(ValueError, match=r"'corp'.*'crop'"):
        augment("corp", ["a b"], 0.1)
