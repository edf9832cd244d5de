"""Parsing at scale: order, what is kept on disk, and what a corpus becomes under a rule."""

import subprocess
import sys

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from lib import paths
from lib.augment import parse, sda, sda_zh
from workflow import augment as command

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


def test_several_processes_give_the_same():
    found = parse.parse(SENTENCES, workers=2, chunk=11)
    assert [rows(doc) for doc in found] == [rows(doc) for doc in parse.parse(SENTENCES)]


def test_parses_are_kept_and_an_interrupted_call_goes_on(tmp_path, monkeypatch):
    original, calls = parse._parsed, []

    def failing(job):
        calls.append(job.sentences)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(job)

    monkeypatch.setattr(parse, "_parsed", failing)
    with pytest.raises(KeyboardInterrupt):
        list(parse.parse(SENTENCES, folder=tmp_path, chunk=6))
    (target,) = tmp_path.iterdir()
    assert sorted(p.name for p in target.iterdir()) == ["00000.spacy", "00001.spacy"]
    monkeypatch.setattr(parse, "_parsed", original)
    expected = [rows(doc) for doc in parse.parse(SENTENCES)]
    load, piped = parse._pipeline("").pipe, []
    monkeypatch.setattr(
        parse._pipeline(""), "pipe", lambda texts, **k: load([t for t in texts if not piped.append(t)], **k)
    )
    assert [rows(doc) for doc in parse.parse(SENTENCES, folder=tmp_path, chunk=6)] == expected
    assert sorted(piped) == sorted(SENTENCES[12:])
    piped.clear()
    assert [rows(doc) for doc in parse.parse(SENTENCES, folder=tmp_path, chunk=6)] == expected and not piped
    list(parse.parse(SENTENCES[1:], folder=tmp_path, chunk=6))
    assert len(list(tmp_path.iterdir())) == 2 and len(piped) == 20


def test_what_is_no_pipeline_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"python -m spacy download en_core_web_none"):
        parse.load("en_core_web_none")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ValueError, match="no tagger or parser or lemmatizer"):
        parse.load(tmp_path / "blank")
    for wrong in ({"workers": 0}, {"chunk": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            list(parse.parse(SENTENCES, **wrong))


def test_rewriting_does_not_depend_on_the_cut_or_on_the_other_rules(monkeypatch):
    whole = parse.rewrite(SENTENCES, list(sda.RULES), seed=3)
    monkeypatch.setattr(parse, "CHUNK", 4)
    assert parse.rewrite(SENTENCES, list(sda.RULES), seed=3, workers=2) == whole
    for rule, lines in whole.items():
        head, tail = (
            parse.rewrite(part, rule, seed=3, first=n)[rule] for part, n in ((SENTENCES[:8], 0), (SENTENCES[8:], 8))
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
    mixed = parse.rewrite(sentences, ["negation", "punctuation"], share={"negation": 1, "punctuation": 0.5})
    assert mixed["negation"] == whole
    assert mixed["punctuation"] == parse.rewrite(sentences, "punctuation", share=0.5)["punctuation"]
    for wrong in (
        {"rules": "negation", "share": {"punctuation": 1}},
        {"rules": "irony"},
        {"rules": "negation", "share": 1.5},
    ):
        with pytest.raises(ValueError, match=r"unknown rule|share must be"):
            parse.rewrite(sentences, **wrong)


def test_a_chinese_pipeline_takes_the_chinese_rules(monkeypatch):
    nlp = spacy.blank("zh")
    Language.component("all_of_it", func=_hand_made)
    nlp.add_pipe("all_of_it")
    monkeypatch.setattr(parse, "load", lambda model: nlp)
    parse._pipeline.cache_clear()
    try:
        new = parse.rewrite(["他去了北京。"], list(sda_zh.RULES), model="hand-made")
    finally:
        parse._pipeline.cache_clear()
    assert new["negation"] == ["他没去北京。"] and new["punctuation"] == ["他，去了北京。"]
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
    given = ["sda", str(source), str(target), "--rule", "double_negation", "--seed", "5", "--quiet"]
    assert command.main([*given, "--parses", str(tmp_path / "parses")]) == 0
    expected = parse.rewrite(SENTENCES, "double_negation", seed=5)["double_negation"]
    assert target.read_text(encoding="utf-8").splitlines() == expected
    changed = sum(a != b for a, b in zip(SENTENCES, expected, strict=True))
    assert f"{changed} of 18 sentences changed ({100 * changed / 18:.2f} %)" in capsys.readouterr().out
    assert command.main([*given, "--model", "en_core_web_none"]) == 1
    assert "python -m spacy download" in capsys.readouterr().err


def test_command_line_names_its_rules():
    verb = [sys.executable, "-m", "lib.augment", "sda", "--help"]
    shown = subprocess.run(verb, capture_output=True, text=True, check=True, cwd=paths.ROOT).stdout
    assert all(rule in shown for rule in sda.RULES)
