"""The mini data set: rebuilt byte for byte, well formed, and valid as a test of sentence
embeddings."""

import re
from collections import Counter

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


def test_corpus_is_large_distinct_and_rich():
    corpus = lines("corpus.txt")
    assert len(corpus) == len(set(corpus)) >= 20_000
    assert len({word for s in corpus for word in re.findall(r"[a-z]+", s.lower())}) > 3_500
    assert all(3 <= len(s.split()) <= 25 for s in corpus)


def test_handwritten_sentences_with_a_paraphrase_are_in_the_corpus_and_no_others():
    paired = {sentence for sentence, _ in build.handwritten()}
    assert len(paired) >= 400 and paired <= set(lines("corpus.txt"))
    assert not (set(data.handwritten()) - paired) & set(every_sentence())


def test_handwritten_sentences_are_distinct_and_can_be_searched():
    sentences = data.handwritten()
    assert len(sentences) == len(set(sentences))
    assert all(4 <= len(sentence.split()) <= 40 for sentence in sentences)
    assert not [s for s in sentences if "|" in s or s != " ".join(s.split())]


def test_no_query_stands_in_another_file():
    queries = data.queries()
    assert len(queries) == len(set(queries)) == 12
    others = {*every_sentence(), *triplet_sentences(), *data.handwritten()}
    assert not set(queries) & others


def test_paraphrases_are_aligned_and_differ():
    corpus, other = lines("corpus.txt"), lines("paraphrase.txt")
    assert len(corpus) == len(other)
    assert not [a for a, b in zip(corpus, other, strict=True) if a.lower() == b.lower()]
    of = dict(zip(corpus, other, strict=True))
    assert all(of[sentence] == paraphrase for sentence, paraphrase in build.handwritten())


@pytest.mark.parametrize("split", ["dev", "test"])
def test_pairs_are_well_formed(split):
    assert lines(f"sts_{split}.tsv")[0] == "score\tkind\tsentence1\tsentence2"
    rows = pairs(split)
    assert len(rows) >= 1_500
    assert all(len(row) == 4 and row[2] != row[3] for row in rows)
    assert set(Counter(row[1] for row in rows)) == set(build.KINDS)
    assert all(0 <= float(row[0]) <= 5 for row in rows)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_scores_follow_the_rule(split):
    ranges = {
        "paraphrase": (4.8, 5.0),
        "detail changed": (2.4, 4.2),
        "attribute changed": (3.4, 3.6),
        "role swapped": (2.6, 2.6),
        "negated": (2.0, 2.0),
        "same topic": (1.0, 1.8),
        "unrelated": (0.0, 0.0),
    }
    assert all(ranges[row[1]][0] <= float(row[0]) <= ranges[row[1]][1] for row in pairs(split))


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


def test_readme_names_the_counts():
    readme = (MINI / "README.md").read_text(encoding="utf-8")
    assert f"{len(lines('corpus.txt')):,} sentences" in readme
    assert f"{len(build.PATTERNS)} patterns" in readme


# --- triplets
# ----------------------------------------------------------------------------------------------


def triplet_rows():
    return [line.split("\t") for line in lines("triplets.tsv")[1:]]


def triplet_sentences():
    return {sentence for row in triplet_rows() for sentence in (row[1], row[3])}


def bag(sentence):
    """The words in order of the alphabet, without genitives and pronouns."""
    found = triplets.words(sentence.replace("'s", ""))
    return sorted(word for word in found if word not in ("he", "she", "his", "her"))


def test_triplets_are_rebuilt_byte_for_byte():
    shipped = (MINI / "triplets.tsv").read_text(encoding="utf-8")
    assert shipped == "\n".join(triplets.lines()) + "\n"


def test_every_anchor_has_every_kind_once():
    kinds = {}
    for number, anchor, kind, _ in triplet_rows():
        kinds.setdefault((int(number), anchor), []).append(kind)
    assert len(kinds) >= 150 and [number for number, _ in kinds] == [*range(1, len(kinds) + 1)]
    assert len({anchor for _, anchor in kinds}) == len(kinds)
    assert {tuple(found) for found in kinds.values()} == {triplets.KINDS}


def test_what_was_done_to_the_anchor_is_what_the_kind_says():
    for found in triplets.anchors():
        anchor, scene, partners = found.sentence, found.scene, found.partners
        assert len({anchor, *partners.values()}) == 7
        assert triplets.differing_words(anchor, partners["word changed"]) == 1
        assert bag(partners["role swapped"]) == bag(anchor) != bag(partners["negated"])
        assert [other.topic == scene.topic for other in found.others] == [True, False]
        for other in found.others:
            assert other.frame != scene.frame
            assert not triplets.persons(other) & triplets.persons(scene)


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
