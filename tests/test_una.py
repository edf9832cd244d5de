"""TF-IDF and UNA against hand-computed corpora, a slow version and exact distributions."""

import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer
from scipy import stats
from tiny import tiny_sentences
from transformers import PreTrainedTokenizerFast

from lib import data, paths
from lib.augment.tfidf import Terms, TfidfModel, terms_of
from lib.augment.una import UNA, PieceTable, uniform
from lib.encoder import Encoder

CORPUS = ["a cat sat", "a dog sat sat", "a bird flew over a dog", "a cat"]
WORDS = st.lists(st.sampled_from(list("abcdefgh")), max_size=9)
SETTINGS = {"per": ["token", "type"], "select": ["tfidf", "random"], "replace": ["window", "uniform"]}


@given(st.text(alphabet="aB1 .,:;-()[]{}<>?!*$%'\"—\nnot", max_size=24))
def test_terms_are_nltks(sentence):
    assert terms_of(sentence) == NLTKWordTokenizer().tokenize(sentence.lower())


@pytest.mark.parametrize(
    "sentence", ["I cannot.", "Gonna go.", "a.)", "1,000:2, b:", "x--y...", "a. .", "“No.”", "can't"]
)
def test_terms_of_odd_sentences_are_nltks(sentence):
    assert terms_of(sentence) == NLTKWordTokenizer().tokenize(sentence.lower())


@pytest.mark.real_data
def test_terms_of_real_sentences_are_nltks():
    sentences = data.corpus("wiki_slice")
    tokenizer = NLTKWordTokenizer()
    assert [s for s in sentences if terms_of(s) != tokenizer.tokenize(s.lower())] == []


def slow_scores(sentence: str, corpus: list[str]) -> dict[str, float]:
    """z of every term of a sentence, straight from Eq. 2."""
    words, documents = terms_of(sentence), [set(terms_of(d)) for d in corpus]
    found = {}
    for t in words:
        contain = sum(t in d for d in documents)
        idf = (
            -math.log(contain / len(corpus))
            if contain
            else max(-math.log(sum(w in d for d in documents) / len(corpus)) for d in documents for w in d)
        )
        found[t] = math.log(1 + words.count(t) / len(words)) * idf
    return found


def slow_probabilities(sentence: str, corpus: list[str], beta: float, per: str = "token") -> list[float]:
    """p of every token, Eq. 3 and 4 term by term."""
    z, words = slow_scores(sentence, corpus), terms_of(sentence)
    low = min(z.values())
    units = words if per == "token" else list(z)
    mean = sum(z[w] - low for w in units) / len(units)
    p = [min(beta * (z[w] - low) / mean, 1) if mean > 0 else 0.0 for w in words]
    p[max(range(len(words)), key=lambda i: z[words[i]])] = 1.0
    return p


def test_z_idf_and_s_by_hand():
    model = TfidfModel.fit(CORPUS)
    assert model.terms == ["a", "cat", "sat", "dog", "bird", "flew", "over"] and model.n_sentences == 4
    assert model.idf == pytest.approx([0, math.log(2), math.log(2), math.log(2), math.log(4), math.log(4), math.log(4)])
    expected = {
        "cat": math.log(1.5) * math.log(2),
        "sat": math.log(1.5) * math.log(2),
        "dog": math.log(1.25) * math.log(2),
    }
    found = dict(zip(model.terms, model.s, strict=True))
    assert {k: found[k] for k in expected} == pytest.approx(expected) and found["a"] == 0
    assert found["bird"] == pytest.approx(math.log(1 + 1 / 6) * math.log(4))
    assert model.s[model.order].tolist() == sorted(model.s) and (model.rank[model.order] == np.arange(7)).all()


@given(st.lists(WORDS, min_size=1, max_size=12), st.floats(0.05, 3), st.sampled_from(["token", "type"]))
def test_scores_and_probabilities_equal_the_slow_version(lists, beta, per):
    corpus = [" ".join(words) for words in lists]
    if not any(corpus):
        with pytest.raises(ValueError, match="corpus is empty"):
            TfidfModel.fit(corpus)
        return
    model = TfidfModel.fit(corpus)
    terms = model.encode(corpus)
    assert model.strings(terms) == corpus
    p = UNA(model, beta, per=per).probabilities(terms)
    for i, sentence in enumerate(corpus):
        a, b = terms.offsets[i], terms.offsets[i + 1]
        if sentence:
            z = slow_scores(sentence, corpus)
            assert model.scores(terms)[a:b] == pytest.approx([z[w] for w in terms_of(sentence)])
            assert p[a:b] == pytest.approx(slow_probabilities(sentence, corpus, beta, per), abs=1e-9)


def test_an_unseen_term_has_the_largest_idf():
    model = TfidfModel.fit(CORPUS)
    terms = model.encode(["a zebra saw a yak", "zebra"])
    assert terms.unseen == ["zebra", "saw", "yak"] and terms.ids.tolist() == [0, 7, 8, 0, 9, 7]
    assert model.scores(terms) == pytest.approx(
        [
            0,
            math.log(1.2) * math.log(4),
            math.log(1.2) * math.log(4),
            0,
            math.log(1.2) * math.log(4),
            math.log(2) * math.log(4),
        ]
    )
    negative = UNA(model, radius=2)(terms)
    assert (negative.ids[[1, 5]] < 7).all() and model.strings(terms) == ["a zebra saw a yak", "zebra"]
    assert len(model.strings(negative)) == 2


@pytest.mark.parametrize("radius", [1, 2, 50])
def test_an_unseen_terms_window_is_r_below_and_r_above_its_score(radius):
    model = TfidfModel.fit(CORPUS)
    n = 4000
    terms = Terms(np.full(n, 7, np.int32), np.arange(n + 1), ["zebra"])
    place = int(np.searchsorted(np.sort(model.s), model.scores(terms)[0]))
    assert place == 7  # alone in its sentence it is heavier than every term
    drawn = np.bincount(UNA(model, radius=radius)(terms).ids, minlength=8)
    expected = np.sort(model.s)[max(0, 7 - radius) :]
    assert drawn[7] == 0 and (drawn[model.order[max(0, 7 - radius) :]] > 0).tolist() == (expected > 0).tolist()
    assert drawn[model.order[: max(0, 7 - radius)]].sum() == 0


@pytest.mark.parametrize("radius", [1, 3, 50])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("replace", ["window", "uniform"])
def test_replacements_follow_the_exact_distribution(radius, include_self, replace):
    """Chi-square on 40,000 draws each for the first, a middle and the last term of the sorted vocabulary."""
    model = TfidfModel.fit(tiny_sentences(300))
    una = UNA(model, beta=1.0, radius=radius, include_self=include_self, replace=replace, seed=5)
    n = 40_000
    for place in (0, 1, len(model.terms) // 2, len(model.terms) - 1):
        term = int(model.order[place])
        terms = Terms(np.full(n, term, np.int32), np.arange(n + 1))
        drawn = una(terms).ids  # a sentence of one token: p = 1
        candidates, p = una.window(term)
        assert p.sum() == pytest.approx(1) and (include_self or term not in candidates[p > 0])
        observed = np.bincount(drawn, minlength=len(model.terms))
        assert observed.sum() == observed[candidates].sum() == n
        possible = p > 0
        assert observed[candidates[~possible]].sum() == 0
        if possible.sum() > 1:
            assert stats.chisquare(observed[candidates[possible]], n * p[possible]).pvalue > 1e-4


def test_window_weights_are_proportional_to_s():
    model = TfidfModel.fit(tiny_sentences(200))
    middle = int(model.order[30])
    candidates, p = UNA(model, radius=4).window(middle)
    assert model.rank[candidates].tolist() == list(range(26, 35))
    expected = model.s[candidates] * (candidates != middle)
    assert p == pytest.approx(expected / expected.sum())


@given(st.lists(WORDS, min_size=2, max_size=12), st.integers(0, 2**40), st.integers(1, 9), st.floats(0, 2), st.data())
def test_every_sentence_changes_and_keeps_its_length(lists, seed, radius, beta, drawn):
    corpus = [" ".join(words) for words in lists] + ["a b c"]
    model = TfidfModel.fit(corpus)
    terms = model.encode(corpus)
    options = {name: drawn.draw(st.sampled_from(values)) for name, values in SETTINGS.items()}
    negatives = UNA(model, beta, radius, seed=seed, **options)(terms)
    assert negatives.offsets.tolist() == terms.offsets.tolist() and negatives.ids.max() < len(model.terms)
    changed = np.bincount(terms.rows[negatives.ids != terms.ids], minlength=len(terms))
    assert ((changed > 0) == (terms.lengths > 0)).all()


def test_one_term_alone_cannot_change():
    model = TfidfModel.fit(["word", "word word"])
    assert model.strings(UNA(model)(model.encode(["word word", ""]))) == ["word word", ""]


def test_equal_scores_replace_the_first_token_only():
    """All z equal: mean(a) is 0, p is 0 but for the first token with the largest z."""
    model = TfidfModel.fit(["b c", "d e"])
    assert UNA(model).probabilities(model.encode(["b c", "c c"])).tolist() == [1, 0, 1, 0]


def test_draws_do_not_depend_on_batches_order_or_workers():
    corpus = tiny_sentences(500)
    model, again = TfidfModel.fit(corpus), TfidfModel.fit(iter(corpus), workers=2)
    assert again.terms == model.terms and (again.s == model.s).all() and (again.idf == model.idf).all()
    terms, una = model.encode(corpus, workers=2), UNA(model, radius=5, seed=3)
    assert (terms.ids == model.encode(corpus).ids).all()
    whole = model.strings(una(terms))
    rows = np.random.default_rng(0).permutation(500)
    for part in np.array_split(rows, 7):
        assert model.strings(una(terms[part], part)) == [whole[i] for i in part]
    assert model.strings(UNA(model, radius=5, seed=4)(terms)) != whole != model.strings(una(terms, epoch=1))


def test_uniform_numbers_are_uniform_and_independent():
    rows, positions = (a.ravel() for a in np.meshgrid(np.arange(500), np.arange(40)))
    u = uniform(1, 0, rows, positions, 0)
    assert u.min() >= 0 and u.max() < 1 and stats.kstest(u, "uniform").pvalue > 1e-3
    for other in (
        uniform(2, 0, rows, positions, 0),
        uniform(1, 1, rows, positions, 0),
        uniform(1, 0, rows, positions, 1),
    ):
        assert abs(np.corrcoef(u, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(u.reshape(40, 500)[:-1].ravel(), u.reshape(40, 500)[1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -1.0}, "beta"),
        ({"radius": 0}, "radius"),
        ({"per": "word"}, "per must be"),
        ({"select": "x"}, "select"),
        ({"replace": "x"}, "replace"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        UNA(TfidfModel.fit(CORPUS), **options)


def test_random_selection_has_rate_beta():
    model = TfidfModel.fit(tiny_sentences(2000, shortest=8))
    terms = model.encode(tiny_sentences(2000, shortest=8))
    changed = UNA(model, beta=0.5, select="random")(terms).ids != terms.ids
    assert changed.mean() == pytest.approx(0.5, abs=0.01)


def test_save_and_load(tmp_path):
    model = TfidfModel.fit([*CORPUS, "naïve café 你好"])
    model.save(tmp_path / "model.npz")
    again = TfidfModel.load(tmp_path / "model.npz")
    assert again.terms == model.terms and again.n_sentences == 5
    assert (again.idf == model.idf).all() and (again.s == model.s).all()
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    whole = (tmp_path / "model.npz").read_bytes()
    for content in (b"no archive", b"", whole[: len(whole) // 2]):
        (tmp_path / "other.npz").write_bytes(content)
        with pytest.raises(ValueError, match="not a TF-IDF model"):
            TfidfModel.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        TfidfModel.load(tmp_path / "none.npz")


@pytest.fixture(scope="module")
def byte_level():
    """A byte-level BPE tokenizer as RoBERTa's, trained on the mini corpus."""
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing

    trainer = ByteLevelBPETokenizer()
    trainer.train_from_iterator(
        data.corpus("mini")[:3000], 1500, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    )
    trainer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=trainer._tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


@pytest.mark.parametrize("kind", ["wordpiece", "byte_level"])
@pytest.mark.parametrize("max_length", [8, 32])
def test_pieces_equal_the_tokenizer_on_the_joined_string(kind, max_length, byte_level):
    tokenizer = byte_level if kind == "byte_level" else Encoder.load(paths.MINI_BERT).tokenizer
    corpus = [*data.corpus("mini")[:400], "", "naïve “café” 你好 o'clock $3.50 e.g. don't", "x" * 300, "100%"]
    model = TfidfModel.fit(corpus[:300])
    terms = model.encode(corpus)
    negatives = UNA(model, radius=20)(terms)
    table = PieceTable(tokenizer, model.terms + terms.unseen)
    for t in (terms, negatives):
        ids, mask = table(t, max_length)
        expected = tokenizer(model.strings(t), truncation=True, max_length=max_length)["input_ids"]
        assert [row[m == 1].tolist() for row, m in zip(ids, mask, strict=True)] == expected
        assert (ids[mask == 0] == tokenizer.pad_token_id).all() and ids.shape[1] == max(map(len, expected))


def test_terms_are_nltks_words():
    assert terms_of("He said: \"It's $3.50, isn't it?\"") == [
        "he",
        "said",
        ":",
        "``",
        "it",
        "'s",
        "$",
        "3.50",
        ",",
        "is",
        "n't",
        "it",
        "?",
        "''",
    ]


@pytest.mark.real_data
def test_real_sentences_are_replaced_as_often_as_expected():
    sentences = data.corpus("wiki_slice")
    assert len(sentences) == 11_548
    model = TfidfModel.fit(sentences)
    terms = model.encode(sentences)
    for beta in (0.3, 0.5, 0.8):
        una = UNA(model, beta, 500)
        share = (una(terms).ids != terms.ids).mean()
        assert share == pytest.approx(una.probabilities(terms).mean(), abs=0.01)


def test_command_line_is_aligned_and_repeats(tmp_path):
    lines = [*tiny_sentences(50), "", "a cat ."]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    results = []
    for name in ("a.txt", "b.txt"):
        command = [
            sys.executable,
            "-m",
            "lib.augment",
            "una",
            "in.txt",
            name,
            "--beta",
            "0.5",
            "--radius",
            "9",
            "--seed",
            "1",
        ]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(paths.ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        results.append((tmp_path / name).read_text().split("\n"))
    assert results[0] == results[1] and len(results[0]) == len(lines) + 1 and results[0][50] == results[0][-1] == ""
    pairs = list(zip(lines, results[0], strict=False))
    assert all(a != b for a, b in pairs if a) and all(len(a.split()) == len(b.split()) for a, b in pairs)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt", "in.txt"]
    common = Counter(w for a, b in pairs for w in {*a.split()} & {*b.split()})
    assert common
