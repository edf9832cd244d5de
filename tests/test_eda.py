"""EDA's operations, AEDA's punctuation and the sources of synonyms."""

import nltk
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import paths
from lib.augment import augment, edits

SENTENCE = ["the", "big", "dog", "quickly", "chased", "a"]
SENTENCE += ["small", "cat", "through", "our", "old", "garden"]
words = st.lists(
    st.sampled_from(["the", "big", "dog", "runs", "home", "Rex", "3", ","]), max_size=20
)
rates = st.floats(0, 1)


def two_synonyms(word: str) -> list[str]:
    return [f"{word}one", f"x {word}two"] if word in ("big", "dog", "runs") else []


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(words, rates, st.integers(0, 1000))
def test_swap_permutes(given_words, rate, seed):
    assert sorted(edits.swap(given_words, rate, rng(seed))) == sorted(given_words)


@pytest.mark.parametrize("operation", [edits.replace_synonyms, edits.insert_synonyms])
def test_a_stop_word_has_no_synonym_at_the_start_of_a_sentence_either(operation):
    asked = []
    operation(["The", "big", "dog"], 0.5, rng(), lambda word: asked.append(word) or [word])
    assert set(asked) == {"big", "dog"}


def test_swap_exchanges_two_words_a_time():
    for seed in range(50):
        swapped = edits.swap(SENTENCE, 0.1, rng(seed))
        assert sum(a != b for a, b in zip(SENTENCE, swapped, strict=True)) == 2


@given(words, rates, st.integers(0, 1000))
def test_insertion_keeps_the_words_in_order(given_words, rate, seed):
    result = edits.insert_synonyms(given_words, rate, rng(seed), two_synonyms)
    rest = iter(result)
    assert all(w in rest for w in given_words)
    possible = any(two_synonyms(w) for w in given_words) and rate > 0
    assert (len(result) > len(given_words)) == possible


@given(words, rates, st.integers(0, 1000))
def test_replacement_concerns_at_most_n_distinct_words(given_words, rate, seed):
    result = edits.replace_synonyms(given_words, rate, rng(seed), two_synonyms)
    known = {w for w in given_words if two_synonyms(w)}
    gone = {w for w in known if w not in result}
    most = max(1, int(rate * len(given_words))) if rate else 0
    assert len(gone) == min(len(known), most)
    others = [w for w in given_words if w not in known]
    assert others == [w for w in result if w in given_words and w not in known]


@given(words, rates, st.integers(0, 1000))
def test_punctuation_only_adds_marks(given_words, rate, seed):
    result = edits.punctuate(given_words, rate, rng(seed))
    added = len(result) - len(given_words)
    assert (1 if rate and given_words else 0) <= added <= max(1, int(rate * len(given_words)))
    rest = iter(result)
    assert all(w in rest for w in given_words)


@given(words, rates, st.integers(0, 1000))
def test_random_edits_are_as_many_as_asked_for(given_words, rate, seed):
    result = edits.edit(given_words, rate, rng(seed))
    n = len(given_words)
    asked = min(n, max(1, round(rate * n))) if rate and n else 0
    assert nltk.edit_distance(given_words, result) <= asked
    assert set(result) <= set(given_words) and bool(result) == bool(n)


def test_random_edits_of_different_words_are_exactly_as_many():
    for seed in range(50):
        result = edits.edit(SENTENCE, 0.25, rng(seed))
        assert nltk.edit_distance(SENTENCE, result) in (2, 3)
    lengths = [len(edits.edit(SENTENCE, 0.25, rng(seed))) - 12 for seed in range(2000)]
    assert set(lengths) == {-3, -1, 1, 3} and abs(np.mean(lengths)) < 0.15


def test_a_prefix_changes_no_word_of_the_sentence():
    assert edits.prefix(["The", "dog", "runs"], 1.0, rng())[4:] == ["the", "dog", "runs"]
    for first in ("I", "NASA", "McDonald", "3", '"The'):
        assert edits.prefix([first, "runs"], 1.0, rng())[4:] == [first, "runs"]
    assert edits.prefix([], 1.0, rng()) == []
    assert edits.prefix(SENTENCE, 0.0, rng()) == SENTENCE
    share = np.mean([len(edits.prefix(SENTENCE, 0.3, rng(s))) > 12 for s in range(2000)])
    assert abs(share - 0.3) < 0.04


def test_punctuation_counts_are_uniform():
    added = [len(edits.punctuate(SENTENCE, 0.34, rng(s))) - 12 for s in range(3000)]
    counts = np.bincount(added)
    assert counts[0] == 0 and len(counts) == 5 and (abs(counts[1:] / 3000 - 0.25) < 0.04).all()


def test_the_thesaurus_of_the_course():
    synonyms = edits.load_synonyms("data/mini/thesaurus.tsv")
    lines = (paths.MINI / "thesaurus.tsv").read_text().splitlines()
    word, _, found = lines[0].split("\t")
    assert set(found.split(", ")) <= set(synonyms(word)) and synonyms("zzz") == []
    assert synonyms(word.capitalize())[0][0].isupper()
    changed = augment(
        "replace_synonyms", ["The attack was abrupt ."], 0.3, synonyms="data/mini/thesaurus.tsv"
    )
    assert changed != ["The attack was abrupt ."] and changed[0].startswith("The ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# nothing\n", "0 words"),
        (b"# synonyms\nbig\tlarge, huge\nsmall\n", "line 3: expected a word"),
    ],
)
def test_a_thesaurus_that_is_missing_or_without_words_is_refused(tmp_path, content, message):
    (tmp_path / "t.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.tsv.*{message}"):
        edits.load_synonyms(str(tmp_path / "t.tsv"))
    for missing in ("", "nowhere.tsv"):
        with pytest.raises(FileNotFoundError, match="no thesaurus"):
            edits.load_synonyms(missing)


@pytest.mark.wordnet
def test_wordnets_real_files_are_read():
    """`wordnet-base` of Debian, or NLTK's download."""
    synonyms = edits.load_synonyms("wordnet")
    assert {"automobile", "machine"} <= set(synonyms("car")) and "car" not in synonyms("car")
    assert "physician" in synonyms("doctor") and "Physician" in synonyms("Doctor")
    assert synonyms("qqqq") == []
    (changed,) = augment("replace_synonyms", ["the doctor bought a car"], 0.4, seed=1)
    assert changed != "the doctor bought a car" and changed.startswith("the ")
