"""Parsing at scale: order, what is kept on disk, and what a corpus becomes under a rule."""

import json
import shutil

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from lib import paths
from lib.augment import sda
from lib.augment.sda import chinese, parse
from lib.commands import augment

SENTENCES = [
    "The children played in the old garden.",
    "",
    "It doesn't rain.",
    "Who opened the door?",
    "If it rains, we stay inside and read a long book about the sea.",
    "Dogs bark.",
    "She said that he had lied to his friends.",
] * 3


def rows(doc):
    return [(t.text, t.whitespace_, t.tag_, t.dep_, t.lemma_, t.head.i) for t in doc]


def test_parses_come_in_order_as_one_by_one():
    nlp = spacy.load(paths.MINI_SPACY)
    found = list(parse.parse(SENTENCES, chunk=5))
    assert [doc.text for doc in found] == SENTENCES
    assert [rows(doc) for doc in found] == [rows(nlp(sentence)) for sentence in SENTENCES]


@pytest.fixture
def parsed_anew(monkeypatch):
    """The sentences that were parsed, and not read from disk."""
    original, seen = parse._docs, []

    def counted(nlp, sentences, workers):
        seen.extend(sentences)
        return original(nlp, sentences, workers)

    monkeypatch.setattr(parse, "_docs", counted)
    return seen


def test_parses_are_kept_and_an_interrupted_call_goes_on(tmp_path, parsed_anew):
    expected = [rows(doc) for doc in parse.parse(SENTENCES)]
    docs = parse.parse(SENTENCES, folder=tmp_path, chunk=6)
    for _ in range(7):
        next(docs)
    docs.close()
    assert [p.suffix for p in tmp_path.iterdir()] == [".spacy", ".spacy"]
    for anew in (SENTENCES[12:], []):
        parsed_anew.clear()
        assert [rows(doc) for doc in parse.parse(SENTENCES, folder=tmp_path, chunk=6)] == expected
        assert parsed_anew == anew
    list(parse.parse(SENTENCES[1:], folder=tmp_path, chunk=6))
    assert parsed_anew[:6] == SENTENCES[1:7]


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other"])
def test_a_damaged_chunk_is_parsed_again(tmp_path, parsed_anew, damage):
    short = [f"{number} dogs bark." for number in range(20)]
    expected = [rows(doc) for doc in parse.parse(short, folder=tmp_path, chunk=10)]
    first, second = sorted(tmp_path.glob("*.spacy"))
    content = first.read_bytes()
    broken = {
        "cut": content[: len(content) // 2],
        "bit": content[:50] + bytes([content[50] ^ 1]) + content[51:],
        "empty": b"",
        "other": second.read_bytes(),
    }
    first.write_bytes(broken[damage])
    parsed_anew.clear()
    assert [rows(doc) for doc in parse.parse(short, folder=tmp_path, chunk=10)] == expected
    assert parsed_anew in (short[:10], short[10:]) and first.read_bytes() == content


def test_a_pipeline_trained_anew_is_not_taken_for_the_old_one(tmp_path):
    model = tmp_path / "pipeline"
    shutil.copytree(paths.MINI_SPACY, model)
    tag = lambda: next(parse.parse(["Dogs bark."], model, tmp_path / "parses"))[0].tag_  # noqa: E731
    assert tag() == "NNS"
    labels = json.loads((model / "tagger" / "cfg").read_text(encoding="utf-8"))
    swap = {"NNS": "NNP", "NNP": "NNS"}
    labels["labels"] = [swap.get(label, label) for label in labels["labels"]]
    (model / "tagger" / "cfg").write_text(json.dumps(labels), encoding="utf-8")
    assert tag() == "NNP"


def test_what_is_no_pipeline_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"python -m spacy download en_core_web_none"):
        parse.load("en_core_web_none")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ValueError, match="no tagger or parser or lemmatizer"):
        parse.load(tmp_path / "blank")
    for wrong in ({"workers": 0}, {"chunk": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            list(parse.parse(SENTENCES, **wrong))


def test_rewriting_does_not_depend_on_the_cut_or_on_the_other_rules():
    whole = parse.rewrite(SENTENCES, list(sda.RULES), seed=3)
    assert parse.rewrite(SENTENCES, list(sda.RULES), seed=3, workers=2) == whole
    for rule, lines in whole.items():
        head, tail = (
            parse.rewrite(part, rule, seed=3, first=n)[rule]
            for part, n in ((SENTENCES[:8], 0), (SENTENCES[8:], 8))
        )
        assert head + tail == lines and len(lines) == len(SENTENCES) and lines[1] == ""
        assert rule == "negation" or lines != parse.rewrite(SENTENCES, rule, seed=4)[rule]


def test_a_share_of_the_sentences_is_rewritten():
    sentences = [f"They saw {n} birds." for n in range(400)]
    whole = parse.rewrite(sentences, "negation")["negation"]
    half = parse.rewrite(sentences, "negation", share=0.5)["negation"]
    changed = [new != old for new, old in zip(half, sentences, strict=True)]
    assert 160 < sum(changed) < 240
    assert all(new == full for new, full, tried in zip(half, whole, changed, strict=True) if tried)
    assert parse.rewrite(sentences[:5], "negation", share=0.0) == {"negation": sentences[:5]}
    mixed = parse.rewrite(
        sentences, ["negation", "punctuation"], share={"negation": 1, "punctuation": 0.5}
    )
    assert mixed["negation"] == whole
    assert mixed["punctuation"] == parse.rewrite(sentences, "punctuation", share=0.5)["punctuation"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"share": 1.5}, "share must be"),
        ({"rules": "irony"}, "unknown rule"),
        ({"seed": -1}, "non-negative"),
        ({"first": -2}, "non-negative"),
    ],
)
def test_what_rewriting_cannot_do_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        parse.rewrite(["Dogs bark."], **{"rules": "negation", **wrong})


def test_no_before_a_noun_reaches_the_corpus():
    sentences = ["Some people buy old books."] * 20
    for rule, some in (("double_negation", 20), ("ensemble", 1), ("negation", 0)):
        plain, nouns = (parse.rewrite(sentences, rule, nouns=n)[rule] for n in (False, True))
        put_in = sum(new == "Some people do not buy no old books." for new in nouns)
        assert put_in >= some and (some or plain == nouns)
        assert "Some people do not buy no old books." not in plain


def test_a_chinese_pipeline_takes_the_chinese_rules(monkeypatch):
    nlp = spacy.blank("zh")
    Language.component("all_of_it", func=_hand_made)
    nlp.add_pipe("all_of_it")
    monkeypatch.setattr(parse, "load", lambda model: nlp)
    new = parse.rewrite(["他去了北京。"], list(chinese.RULES), model="hand-made")
    assert new["negation"] == ["他没去北京。"] and new["punctuation"] == ["他，去了北京。"]
    with pytest.raises(ValueError, match="nouns is a choice of the English rules"):
        parse.rewrite(["他去了北京。"], "double_negation", model="hand-made", nouns=True)
    monkeypatch.setattr(parse, "load", lambda model: spacy.blank("de"))
    with pytest.raises(ValueError, match="rules for en and zh"):
        parse.rewrite(["Sie singt."], "negation")


def _hand_made(doc: Doc) -> Doc:
    words = ["他", "去", "了", "北京", "。"]
    labels, tags = ["nsubj", "ROOT", "aux:asp", "dobj", "punct"], ["PN", "VV", "AS", "NR", "PU"]
    return Doc(doc.vocab, words, [False] * 5, heads=[1] * 5, deps=labels, tags=tags, lemmas=words)


def test_command_line(tmp_path, capsys):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    given = ["sda", str(source), str(target), "--rule", "double_negation", "--seed", "5"]
    assert augment.main(given) == 0
    expected = parse.rewrite(SENTENCES, "double_negation", seed=5)["double_negation"]
    assert target.read_text(encoding="utf-8").splitlines() == expected
    changed = sum(a != b for a, b in zip(SENTENCES, expected, strict=True))
    assert f"{changed} of 18 sentences changed" in capsys.readouterr().out
    assert augment.main([*given, "--force", "--model", "en_core_web_none"]) == 2
    assert "python -m spacy download" in capsys.readouterr().err
