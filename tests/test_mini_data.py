"""The mini data set: rebuilt byte for byte, well formed, and valid as a test of sentence
embeddings."""

import re

import pytest

from lib import data
from lib.paths import MINI
from tools.mini_data import build, triplets, validate

FILES = (
    "corpus.txt",
    "paraphrase.txt",
    "sts_dev.tsv",
    "sts_test.tsv",
    "thesaurus.tsv",
    "triplets.tsv",
)


def lines(name):
    return (MINI / name).read_text(encoding="utf-8").splitlines()


def pairs(split):
    return [line.split("\t") for line in lines(f"sts_{split}.tsv")[1:]]


def every_sentence():
    graded = [s for split in ("dev", "test") for row in pairs(split) for s in row[2:]]
    return lines("corpus.txt") + lines("paraphrase.txt") + graded


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_rebuild_gives_the_shipped_bytes(tmp_path_factory, name):
    out = tmp_path_factory.getbasetemp() / "mini"
    if not out.exists():
        build.build(out)
    assert (out / name).read_bytes() == (MINI / name).read_bytes()


def test_no_query_stands_in_another_file():
    queries = data.queries()
    assert len(queries) == len(set(queries)) == 12
    others = {*every_sentence(), *triplet_sentences(), *data.handwritten()}
    assert not set(queries) & others


def test_dev_and_test_share_no_scene_and_no_sentence():
    assert build.pair_scenes("dev") and build.pair_scenes("test")
    assert not build.pair_scenes("dev") & build.pair_scenes("test")
    assert not build.pair_frames("dev") & build.pair_frames("test")
    dev, test = ({s for row in pairs(split) for s in row[2:]} for split in ("dev", "test"))
    assert not dev & test
    assert not (dev | test) & set(lines("corpus.txt"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_word_counts_are_not_enough(split):
    gold, _, first, second = validate.read_pairs(MINI / f"sts_{split}.tsv")
    assert validate.spearman(gold, validate.bag_of_words(first, second)) <= 65


@pytest.mark.slow
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_good_encoder_does_well(split):
    gold, _, first, second = validate.read_pairs(MINI / f"sts_{split}.tsv")
    assert validate.spearman(gold, validate.minilm(first, second)) >= 80


# --- triplets
# ----------------------------------------------------------------------------------------------


def triplet_rows():
    return [line.split("\t") for line in lines("triplets.tsv")[1:]]


def triplet_sentences():
    return {sentence for row in triplet_rows() for sentence in (row[1], row[3])}


def test_triplets_are_rebuilt_byte_for_byte():
    shipped = (MINI / "triplets.tsv").read_text(encoding="utf-8")
    assert shipped == "\n".join(triplets.lines()) + "\n"


def test_triplets_share_no_sentence_with_the_other_files():
    assert not triplet_sentences() & set(every_sentence())


def test_triplets_share_no_run_of_six_words_with_the_corpus():
    def runs(sentences):
        split = map(triplets.words, sentences)
        return {tuple(w[i : i + 6]) for w in split for i in range(len(w) - 5)}

    assert not runs(triplet_sentences()) & runs(lines("corpus.txt") + lines("paraphrase.txt"))


def test_nobody_in_the_triplets_is_in_the_text_to_train_on():
    text = "\n".join(lines("corpus.txt") + lines("paraphrase.txt")).lower()
    people = {p for topic in triplets.triplet_topics() for p in topic.people}
    names = {name.lower() for name in triplets.WOMEN + triplets.MEN}
    assert not [p for p in people | names if re.search(rf"\b{p}s?\b", text)]
