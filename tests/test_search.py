"""The search box: what is found, what is escaped, and which encoders cannot be searched with."""

import re

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from lib import evaluate, paths, search
from lib.__main__ import main as cli
from lib.evaluate.neighbours import top_k
from lib.evaluate.sts import as_matrix
from lib.runs import inputs
from tests.tiny import tiny_encoder, tiny_sentences

SENTENCES = ["The cat sleeps.", "A dog barks.", "It rains & <b>pours</b>.", "A dog barks."]
COUNTS = evaluate.bag_of_words_encode(CountVectorizer().fit(SENTENCES))


def ask(box, query):
    """The table that a query brings."""
    field, table = box.children
    field.value = query
    return table.value


def test_the_nearest_come_first_with_their_cosines():
    table = ask(search.search_box({"counts": COUNTS}, SENTENCES, k=2), "the dog barks")
    assert table.index("0.82 A dog barks.") < table.index("0.33 The cat sleeps.")
    assert "rains" not in table and table.count("A dog barks.") == 1


def test_a_blind_search_shows_no_cosine():
    box = search.search_box({"A": COUNTS}, SENTENCES, k=2, show_cosines=False)
    table = ask(box, "the dog barks")
    assert table.index(">A dog barks.</td>") < table.index(">The cat sleeps.</td>")
    assert not re.search(r"\d\.\d", table)
    assert search.NO_VECTOR in ask(box, "Zugzwang")


def test_an_encoder_a_column(tmp_path):
    trained, words = tiny_encoder(tmp_path).encode, tiny_sentences(30)
    counts = evaluate.bag_of_words_encode(CountVectorizer().fit(words))
    encoders = {"before": counts, "after": trained}
    table = ask(search.search_box(encoders, words, k=3), words[4] + " cat")
    assert table.index(">before</th>") < table.index(">after</th>")
    assert table.count("<tr>") == 4 and table.count("<td") == 6
    for encode in encoders.values():
        rows = as_matrix(encode([words[4] + " cat", *words]))
        (places,), (cosines,) = top_k(rows[:1], rows[1:], 3)
        for place, cosine in zip(places, cosines, strict=True):
            assert f"{cosine:.2f} {words[place]}" in table


def test_sentences_are_encoded_once_when_the_box_is_made():
    calls = []
    encode = lambda texts: calls.append(list(texts)) or COUNTS(texts)  # noqa: E731
    box = search.search_box({"counts": encode}, SENTENCES, k=1)
    ask(box, " dog ")
    ask(box, "rain")
    assert list(map(len, calls)) == [3, 1, 1] and calls[1:] == [["dog"], ["rain"]]


def test_html_in_names_and_sentences_is_text():
    table = ask(search.search_box({"<i>a</i>": COUNTS}, SENTENCES, k=1), "it rains <script>")
    assert "It rains &amp; &lt;b&gt;pours&lt;/b&gt;." in table and "&lt;i&gt;a&lt;/i&gt;" in table
    assert not [tag for tag in ("<b>", "<i>", "<script") if tag in table]


def test_a_blank_query_empties_the_table():
    box = search.search_box({"counts": COUNTS}, SENTENCES, k=1)
    assert box.children[1].value == "" and ask(box, "dog")
    assert ask(box, "   ") == ""


def test_a_query_of_unknown_words_says_so(tmp_path):
    encoders = {"counts": COUNTS, "letters": lambda texts: [[len(t), 1.0] for t in texts]}
    table = ask(search.search_box(encoders, SENTENCES, k=2), "Zugzwang")
    assert search.NO_VECTOR in table and table.count("<td") == 4
    assert "1.00 A dog barks." in table
    assert ask(search.search_box(encoders, SENTENCES, k=9), "Zugzwang").count("<td") == 6


def test_the_command_takes_a_pooling_and_knows_a_causal_model(tmp_path, capsys):
    (tmp_path / "lines.txt").write_text("A dog barks.\nIt rains.\n")
    model, lines = str(paths.SIBLINGS["Llama"]), str(tmp_path / "lines.txt")
    printed = []
    for options in ([], ["--pooling", "last_token"], ["--pooling", "mean"], ["--pooling", "cls"]):
        assert cli(["search", model, lines, "A hound barks.", *options]) == 0
        printed.append(capsys.readouterr())
    usual, last, mean, first = (p.out for p in printed)
    assert usual == last != mean and first.count("1.000") == 2
    assert [bool(p.err) for p in printed] == [False, False, False, True]


def test_the_commands_find_a_packaged_encoder_without_the_hub(tmp_path, monkeypatch, capsys):
    ((name, package),) = inputs.PACKAGED.items()
    folder = str(pytest.importorskip(package).get_model_path())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "lines.txt").write_text("A dog barks.\nIt rains.\n")
    scores = {"a set": 70.0}  # the real ones take seconds
    monkeypatch.setattr("lib.commands.evaluate._scores", lambda *_: scores)
    printed = []
    for model in (name, folder):
        assert cli(["search", model, str(tmp_path / "lines.txt"), "A hound barks."]) == 0
        assert cli(["evaluate", model]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and "70.00" in printed[0]
