"""The rules of SDA: pinned on hand-annotated sentences, and never at a loss on random trees."""

import hashlib
import lzma
import random
import re

import numpy as np
import pandas as pd
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from parses import CLAUSES, COMPLEMENTS, EVERY, HARD, PLAIN, Fixed, Sentence, tree
from spacy.tokens import Doc

from lib import data, paths
from lib.augment import sda
from lib.augment.sda import Augmented, Edit, Tree, english, parse
from lib.augment.sda import rules as sda_rules
from lib.augment.sda.trees import render
from lib.encoder import Encoder
from lib.evaluate import margins
from tools import sda_changes, sda_learnt, sda_overlap, sda_sick

NAMES = ("punctuation", "modal_verbs", "double_negation", "negation")
TRAVELLED = PLAIN["He travelled widely in Europe."].tree


def rules(parse: Tree) -> tuple[Augmented, ...]:
    return (
        sda_rules.punctuation(parse, order="paper"),
        sda.modal_verbs(parse, Fixed(0)),
        sda.double_negation(parse, Fixed(2)),
        sda.negation(parse, Fixed(2)),
    )


@pytest.mark.parametrize("word", ["Not", "Never"])
def test_a_sentence_of_one_negative_word_is_not_emptied(word: str) -> None:
    tree = Tree([word], [""], ["RB"], ["root"], [word.lower()], [0])
    assert sda.negation(tree, Fixed(0)).text.endswith(word.lower())


def doc_of(parse: Tree) -> Doc:
    """The tree as a spaCy Doc."""
    return Doc(
        spacy.blank("en").vocab,
        words=parse.words,
        spaces=[s == " " for s in parse.spaces],
        tags=parse.tags,
        deps=parse.deps,
        heads=parse.heads,
        lemmas=parse.lemmas,
    )


@pytest.mark.parametrize("text", PLAIN)
def test_pinned(text):
    found = rules(PLAIN[text].tree)
    assert tuple(a.text for a in found) == PLAIN[text].expected(*NAMES)


@pytest.mark.parametrize("text", HARD | CLAUSES)
def test_hard_constructions_two_clauses_and_two_negatives(text):
    sentence = EVERY.get(text) or HARD[text]
    checked = NAMES[1:] if text in HARD else NAMES[2:]
    found = dict(zip(NAMES, rules(sentence.tree), strict=True))
    assert tuple(found[name].text for name in checked) == sentence.expected(*checked)


def test_intensifiers():
    text = "Some people buy old books."
    found = sda.RULES["modal_verbs_or_adverbs"](PLAIN[text].tree, Fixed(2, 0.1))
    assert found.text == "Some people buy very old books." and found.edits == (Edit(3, 3, "very"),)


def test_be_of_a_subordinate_clause_counts_as_an_auxiliary():
    late = tree(
        "She knew who was late.",
        "She/PRP/nsubj/2 knew/VBD/ROOT/0/know who/WP/nsubj/4 was/VBD/ccomp/2/be late/JJ/acomp/4 "
        "././punct/2",
    )
    assert sda.double_negation(late, Fixed(2)).text == "She did not know who was not late."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She has a dog.", "She does not have no dog."),
        ("He's a teacher.", "He's not no teacher."),
        ("Some people buy old books.", "Some people do not buy no old books."),
        (
            "The tower was old and the bridge was closed.",
            "It is not true that the tower was not old and the bridge was closed.",
        ),
    ],
)
def test_no_before_a_noun_is_a_choice(text, expected):
    parse = EVERY[text].tree
    assert sda.double_negation(parse, Fixed(2), nouns=True).text == expected
    assert sda_rules.ensemble(parse, Fixed(2), nouns=True).text == expected
    for rule in ("punctuation", "modal_verbs", "negation"):
        assert sda.apply(rule, parse, 3, nouns=True) == sda.apply(rule, parse, 3)


@pytest.mark.parametrize("text", COMPLEMENTS)
def test_clauses_that_take_a_comma(text):
    sentence = COMPLEMENTS[text]
    assert sda_rules.punctuation(sentence.tree, order="paper").text == sentence.punctuation


def test_no_output_of_the_shipped_parser_has_not_and_no():
    sentences = data.corpus("mini")[:250]
    negative = re.compile(r"\b(?:not|no)\b|n't")
    for number, doc in enumerate(parse.parse(sentences)):
        twice = sda.apply("double_negation", doc, 1, number)
        phrases = {p.lower() for p in english.PREFIXES}
        texts = (edit.text for edit in twice.edits if edit.text.lower() not in phrases)
        put_in = {word for text in texts for word in text.split()}
        assert "no" not in put_in or negative.search(doc.text), twice.text
        assert sda.apply("negation", doc, 1, number).text != doc.text


@pytest.mark.parametrize("sentence", [s for s in EVERY.values() if s.spacy], ids=str)
def test_both_label_schemes_and_docs_agree(sentence: Sentence):
    clear = tree(sentence.text, sentence.spacy)
    assert [a.text for a in rules(clear)[1:]] == [a.text for a in rules(sentence.tree)[1:]]
    assert rules(doc_of(clear)) == rules(clear)


def test_the_papers_example():
    """Table 1, in the variants that the algorithms give."""
    denied = sda.double_negation(TRAVELLED, Fixed(1)).text
    assert denied == "The fact is not that he did not travel widely in Europe."


@pytest.mark.parametrize(
    ("text", "choice", "chance", "expected"),
    [
        ("He travelled widely in Europe.", 0, 0.1, '"He" travelled widely in Europe.'),
        (
            "When the bell rang the children ran home.",
            0,
            0.1,
            "When the bell rang, the children ran home.",
        ),
        (
            "When the bell rang the children ran home.",
            0,
            0.9,
            "When the bell rang the children, ran home.",
        ),
        ("Close the door.", 0, 0.1, '"Close the door."'),
        ("Close the door.", 2, 0.9, "Close the door;"),
        ("Close the door.", 1, 0.9, "Close the door!"),
        ("The end of the story", 0, 0.9, "The end of the story,"),
        ("The car (which he sold) was red.", 0, 0.1, '"The car (which he sold) was red."'),
    ],
)
def test_random_order_of_punctuation(text, choice, chance, expected):
    assert sda_rules.punctuation(PLAIN[text].tree, Fixed(choice, chance)).text == expected


def test_an_emphasised_question_keeps_its_mark():
    parse = tree("Ready?", "Ready/JJ/root/0 ?/./punct/1")
    for choice in range(4):
        assert sda_rules.punctuation(parse, Fixed(choice)).text == "Ready?!"


@pytest.mark.parametrize(("closing", "expected"), [('"', '"Go!"'), (")", '"Go!)')])
def test_the_final_mark_stands_before_closing_quotes(closing, expected):
    parse = tree(f'"Go.{closing}', f'"/``/punct/2 Go/VB/root/0 ././punct/2 {closing}/-/punct/2')
    assert sda_rules.punctuation(parse, order="paper").text == expected


# Verb, tag, infinitive; with "not"; with "have to".
VERBS = [
    ("walks", "VBZ", "walk", "does not walk", "has to walk"),
    ("walk", "VBP", "walk", "do not walk", "have to walk"),
    ("walked", "VBD", "walk", "did not walk", "had to walk"),
    ("goes", "VBZ", "go", "does not go", "has to go"),
    ("went", "VBD", "go", "did not go", "had to go"),
    ("has", "VBZ", "have", "does not have", "has to have"),
    ("does", "VBZ", "do", "does not do", "has to do"),
    ("are", "VBP", "be", "are not", "have to be"),
    ("was", "VBD", "be", "was not", "had to be"),
    ("cut", "VBD", "cut", "did not cut", "had to cut"),
    ("stopped", "VBD", "stop", "did not stop", "had to stop"),
]


@pytest.mark.parametrize(("verb", "tag", "lemma", "negated", "modal"), VERBS)
def test_do_support_and_agreement(verb, tag, lemma, negated, modal):
    last = "/".join([verb, tag, "root", "0", lemma])
    parse = tree(f"They {verb}", f"They/PRP/nsubj/2 {last}")
    assert sda.negation(parse).text == f"They {negated}"
    assert sda.modal_verbs(parse, Fixed(3)).text == f"They {modal}"


@pytest.mark.parametrize(
    ("phrase", "forms"),
    [
        ("have to", {"has to", "had to", "have to"}),
        ("cannot but", {"cannot but", "could not but"}),
        ("ought to", {"ought to"}),
    ],
)
def test_phrases_agree(phrase, forms):
    found = {
        english.agreed(phrase, past, third) for past in (False, True) for third in (False, True)
    }
    assert phrase in english.PHRASES["every"] and found == forms


def test_equal_words_are_told_apart_by_index():
    """A look-up by string would find the first "are"."""
    parse = tree(
        "Pets that are old are calm.",
        "Pets/NNS/nsubj/6 that/WDT/nsubj/4 are/VBP/cop/4 old/JJ/acl:relcl/1 are/VBP/cop/6 "
        "calm/JJ/root/0 ././punct/6",
    )
    assert sda.negation(parse).text == "Pets that are old are not calm."
    assert sda.modal_verbs(parse, Fixed(0)).text == "Pets that are old must be calm."


def test_rendering_keeps_spacing():
    words, spaces = ["He", " ", "is", "not", "in", "."], [" ", "", " ", " ", "", ""]
    parse = Tree(words, spaces, ["X"] * 6, ["dep"] * 6, ["x"] * 6, [0] * 6)
    assert render(parse, [Edit(3, 4, "")]).text == "He  is in."
    assert render(parse, [Edit(2, 2, "there")]).text == "He  there is not in."
    assert render(parse, [Edit(5, 5, "!", "left")]).text == "He  is not in!."
    assert render(parse, []) == Augmented("He  is not in.")
    assert render(parse, [Edit(0, 1, "")]).text == "Is not in."
    for edits in ([Edit(0, 2, "x"), Edit(1, 3, "y")], [Edit(4, 9, "x")]):
        with pytest.raises(ValueError, match=r"overlap|outside"):
            render(parse, edits)


def test_an_unknown_rule_or_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="negation"):
        sda.apply("irony", TRAVELLED)
    for wrong in ({"seed": -1}, {"number": -1}):
        with pytest.raises(ValueError, match="must not be negative"):
            sda.apply("negation", TRAVELLED, **wrong)


def test_a_sentence_without_words_stays():
    for words in ([], ["..."], [" "]):
        n = len(words)
        parse = Tree(words, [""] * n, ["."] * n, ["root"] * n, words, [0] * n)
        for rule in sda.RULES:
            assert rule == "punctuation" or sda.apply(rule, parse).text == "".join(words)


def test_the_ensemble_takes_all_three_and_seeds_repeat():
    found = [sda.apply("ensemble", TRAVELLED, 1, i).text for i in range(60)]
    assert found == [sda.apply("ensemble", TRAVELLED, 1, i).text for i in range(60)]
    assert any("not" in t.split() and " that " in t for t in found)
    assert any(t.startswith(('"', "He,")) for t in found) and any(
        "travel widely" in t and "did" not in t for t in found
    )


PLAIN_WORDS = """
He she I it dogs a the no not n't never is 's was has have does did ca wo will 'll must to be
who that if travelled goes went old Paris IBM children nobody nothing without some any ( ) [ ] “
” ' , . ? ! ; … - $ 12 naïve 日本 re-do e.g. <br> 😀
"""
WORDS = [*PLAIN_WORDS.split(), '"', " ", "  ", "\xa0"]
TAGS = """
PRP NN NNS NNP VB VBD VBZ VBP VBN VBG MD RB JJ DT IN TO EX WP . , `` '' -LRB- _SP XX
"""
LABELS = """
nsubj nsubj:pass nsubjpass csubj expl aux aux:pass auxpass cop advcl ccomp acl acl:relcl relcl
xcomp obj dobj attr det neg advmod amod compound mark case punct conj dep root ROOT obl:tmod
"""


@st.composite
def random_trees(draw) -> Tree:
    n = draw(st.integers(1, 12))
    rng = random.Random(draw(st.integers(0, 2**32)))
    words = [rng.choice(WORDS) for _ in range(n)]
    spaces = [rng.choice(["", " ", " "]) if w.strip() else "" for w in words]
    order = rng.sample(range(n), n)
    heads = [0] * n
    for place, i in enumerate(order):
        heads[i] = order[rng.randrange(place)] if place and rng.random() < 0.9 else i
    labels = ["ROOT" if heads[i] == i else rng.choice(LABELS.split()) for i in range(n)]
    tags = [rng.choice(TAGS.split()) for _ in words]
    return Tree(words, spaces, tags, labels, [w.lower() for w in words], heads)


def test_a_name_keeps_its_capital_and_both_its_place():
    club = tree(
        "Rayo Vallecano was second.",
        "Rayo/NN/nsubj/4 Vallecano/NNP/flat/1 was/VBD/cop/4 second/JJ/root/0 ././punct/4",
    )
    denied = sda.double_negation(club, Fixed(2)).text
    assert denied == "It is not true that Rayo Vallecano was not second."
    slept = tree(
        "Both in May and June he slept.",
        "Both/DT/cc/3 in/IN/case/3 May/NNP/obl/7 and/CC/cc/5 June/NNP/conj/3 he/PRP/nsubj/7 "
        "slept/VBD/root/0/sleep ././punct/7",
    )
    denied = sda.double_negation(slept, Fixed(2)).text
    assert denied == "It is not true that both in May and June he did not sleep."


def test_no_stands_before_words_only():
    odd = tree("They sell ….", "They/PRP/nsubj/2 sell/VBP/root/0 …/NNS/obj/2 ././punct/2")
    assert sda_rules._no_noun(odd) == []


STRAY = re.compile(r"(?<=\S) [,;:.?!)\]…–—-]")


def survivors(parse: Tree, edits: tuple[Edit, ...]) -> list[str]:
    named = {i for e in edits for i in range(e.start, e.stop)}
    return [word for i, word in enumerate(parse.words) if i not in named and word.strip()]


@given(random_trees(), st.integers(0, 9))
@settings(max_examples=400, deadline=None)
def test_no_parse_is_too_odd(parse, seed):
    for rule in sda.RULES:
        for options in ({}, {"order": "paper"}) if rule == "punctuation" else ({},):
            found = sda.apply(rule, parse, seed, **options)
            assert (found.text != parse.text) == bool(found.edits)
            assert found.text.count("  ") <= parse.text.count("  ")
            if all(word.strip() for word in parse.words):
                assert len(STRAY.findall(found.text)) <= len(STRAY.findall(parse.text))
            for bracket in "()[]“”":
                assert found.text.count(bracket) == parse.text.count(bracket)
            assert (found.text.count('"') - parse.text.count('"')) % 2 == 0
            place = 0
            for word in survivors(parse, found.edits):
                place = found.text.index(word, place) + len(word)


@given(random_trees())
@settings(max_examples=200, deadline=None)
def test_negation_leaves_no_sentence_with_words_unchanged(parse):
    if any(parse.is_word(i) for i in range(len(parse.words))):
        assert sda.negation(parse, np.random.default_rng(0)).text != parse.text


# --- what the rules write, read line by line
# ---------------------------------------------------------------

READINGS = pd.read_csv(paths.DATA / "sda" / "readings.csv")


def test_readings_are_of_what_the_rules_write():
    docs = parse.parse(list(READINGS["sentence"]))
    for row, doc in zip(READINGS.itertuples(), docs, strict=True):
        assert sda.apply(row.rule, doc, 0, row.Index).text == row.changed


@pytest.mark.real_data
def test_the_overlap_of_the_test_pairs_is_what_its_tool_computes():
    kept = pd.read_csv(sda_overlap.PATH, index_col="task")
    pd.testing.assert_frame_equal(sda_overlap.table(), kept)


@pytest.mark.real_data
def test_what_punctuation_and_the_prefix_change_is_what_the_tool_computes(monkeypatch):
    monkeypatch.setattr(sda_changes, "RULES", {"PI": "punctuation"})
    monkeypatch.setattr(sda_changes, "RATES", (0.1,))
    kept = pd.read_csv(sda_changes.PATH, index_col="version")
    found = sda_changes.table()
    pd.testing.assert_frame_equal(found, kept.loc[found.index])


def test_what_a_checkpoint_has_learnt_is_what_the_margins_say(tmp_path):
    triplets = data.mini_triplets()
    encoder = Encoder.load(paths.MINI_BERT)
    encoder.save(tmp_path / "last")
    found = pd.DataFrame(sda_learnt._learnt(tmp_path / "last", triplets)).set_index("kind")
    expected = margins(encoder.encode, triplets)
    assert np.allclose(found["margin"], expected.mean(), atol=1e-3)
    assert np.allclose(found["nearer"], 100 * (expected > 0).mean(), atol=1)


def test_what_a_pushed_negation_moves_is_counted_on_the_pairs_with_one_negative_word():
    first = ["a dog runs", "a dog runs", "a cat sits", "a cat sits"]
    second = ["a dog does not run", "a dog runs fast", "a cat sits", "no cat sits"]
    pairs = data.Pairs("toy", first, second, np.array([1.0, 4.0, 5.0, 2.0]))
    angle = {"a dog runs": 0.0, "a dog runs fast": 0.3, "a cat sits": 2.0}

    def encoder(negated):
        place = angle | {"a dog does not run": negated, "no cat sits": 2.0 + 2 * negated}
        return lambda sentences: np.array([[np.cos(place[s]), np.sin(place[s])] for s in sentences])

    found = sda_sick.moved(encoder(0.1), encoder(1.0), pairs)
    assert (found["pairs"], found["one_sided"]) == (4, 2)
    assert found["moved"] == pytest.approx(((1 - 3) + (2 - 2)) / 2, abs=1) and found["moved"] < 0
    assert found["pushed_all"] > found["plain_all"]
    assert found["plain_others"] == found["pushed_others"] == 100
    assert found["top"] == 50  # of all four pairs


@pytest.mark.real_data
def test_verdicts_are_on_what_the_rules_write():
    table = pd.read_csv(paths.DATA / "sda" / "verdicts.csv")
    folder = next(p for p in paths.data_dirs() if (p / "corpus").is_dir())
    path = folder / "corpus/pretrain/wikipedia_en_2021.txt.xz"
    wanted = set(table["line"])
    with lzma.open(path, "rt", encoding="utf-8") as file:
        lines = {n: line.strip() for n, line in enumerate(file, 1) if n in wanted}
    parses = parse.parse([lines[n] for n in table["line"]])
    digest = lambda text: hashlib.sha256(text.encode()).hexdigest()[:12]  # noqa: E731
    for row, doc in zip(table.itertuples(), parses, strict=True):
        assert digest(lines[row.line]) == row.sha256
        assert digest(sda.apply(row.rule, doc, 0, row.line - 1).text) == row.text_sha256, row
