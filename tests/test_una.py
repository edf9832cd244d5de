"""TF-IDF and UNA against hand-computed corpora, a slow version and exact distributions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer
from scipy import stats
from tiny import tiny_recipe, tiny_sentences, tiny_tokenizer
from transformers import AutoTokenizer

from lib import data, paths
from lib.augment import tfidf
from lib.augment.tfidf import Terms, TfidfModel, terms_of
from lib.augment.una import UNA, uniform
from lib.commands.augment import main
from lib.training.views import Text, make_negatives

CORPUS = ["a cat sat", "a dog sat sat", "a bird flew over a dog", "a cat"]
WORDS = st.lists(st.sampled_from(list("abcdefgh")), max_size=9)
SETTINGS = {"select": ["tfidf", "random"], "replace": ["window", "uniform"]}


@given(st.text(alphabet="aB1 .,:;-()[]{}<>?!*$%'\"—\nnot", max_size=24))
@example("I cannot.")
@example("Gonna go.")
@example("1,000:2, b:")
@example("x--y... a.)")
@example("“No.” can't a. .")
def test_terms_are_nltks(sentence):
    assert terms_of(sentence) == NLTKWordTokenizer().tokenize(sentence.lower())


@pytest.mark.real_data
def test_terms_of_real_sentences_are_nltks():
    sentences = data.corpus("wiki_slice")
    tokenizer = NLTKWordTokenizer()
    assert [s for s in sentences if terms_of(s) != tokenizer.tokenize(s.lower())] == []


def slow_scores(sentence: str, corpus: list[str]) -> dict[str, float]:
    """z of every term of a sentence, straight from Eq. 2."""
    words, documents = terms_of(sentence), [set(terms_of(d)) for d in corpus]

    def idf(term):
        return -math.log(sum(term in d for d in documents) / len(corpus))

    return {t: math.log(1 + words.count(t) / len(words)) * idf(t) for t in words}


def slow_probabilities(sentence: str, corpus: list[str], beta: float) -> list[float]:
    """p of every token, Eq. 3 and 4 term by term."""
    z, words = slow_scores(sentence, corpus), terms_of(sentence)
    low = min(z.values())
    mean = sum(z[w] - low for w in words) / len(words)
    p = [min(beta * (z[w] - low) / mean, 1) if mean > 0 else 0.0 for w in words]
    p[max(range(len(words)), key=lambda i: z[words[i]])] = 1.0
    return p


def test_z_idf_and_s_by_hand():
    model = TfidfModel.fit(CORPUS)
    two, four = math.log(2), math.log(4)
    assert model.terms == ["a", "cat", "sat", "dog", "bird", "flew", "over"]
    assert model.n_sentences == 4
    assert model.idf == pytest.approx([0, two, two, two, four, four, four])
    one, less, least = (math.log(1 + 1 / n) for n in (2, 4, 6))
    s = [0, one * two, one * two, less * two, least * four, least * four, least * four]
    assert model.s == pytest.approx(s)
    in_order = ["a", "dog", "bird", "flew", "over", "cat", "sat"]  # ties as they come
    assert [model.terms[i] for i in model.order] == in_order
    assert (model.rank[model.order] == np.arange(7)).all()


@given(st.lists(WORDS, min_size=1, max_size=12), st.floats(0.05, 3))
def test_scores_and_probabilities_equal_the_slow_version(lists, beta):
    corpus = [" ".join(words) for words in lists]
    if not any(corpus):
        with pytest.raises(ValueError, match="corpus is empty"):
            TfidfModel.fit(corpus)
        return
    model = TfidfModel.fit(corpus)
    terms = model.encode(corpus)
    assert model.strings(terms) == corpus
    p = UNA(model, beta).probabilities(terms)
    for i, sentence in enumerate(corpus):
        a, b = terms.offsets[i], terms.offsets[i + 1]
        if sentence:
            z = slow_scores(sentence, corpus)
            assert model.scores(terms)[a:b] == pytest.approx([z[w] for w in terms_of(sentence)])
            slow = slow_probabilities(sentence, corpus, beta)
            assert p[a:b] == pytest.approx(slow, abs=1e-9)


def test_an_unseen_term_has_the_largest_idf():
    model = TfidfModel.fit(CORPUS)
    terms = model.encode(["a zebra saw a yak", "zebra"])
    assert terms.unseen == ["zebra", "saw", "yak"] and terms.ids.tolist() == [0, 7, 8, 0, 9, 7]
    z, alone = math.log(1.2) * math.log(4), math.log(2) * math.log(4)
    assert model.scores(terms) == pytest.approx([0, z, z, 0, z, alone])
    negative = UNA(model, radius=2)(terms)
    assert (negative.ids[[1, 5]] < 7).all() and len(model.strings(negative)) == 2
    assert model.strings(terms) == ["a zebra saw a yak", "zebra"]


def test_an_unseen_term_between_others_is_replaced_by_its_neighbours():
    model = TfidfModel.fit(CORPUS)
    line = "zebra " + "a " * 8
    terms = model.encode([line] * 200)
    place = int(np.searchsorted(np.sort(model.s), model.scores(terms)[0]))
    assert 0 < place < len(model.terms) - 1
    drawn = UNA(model, beta=0.0, radius=1)(terms).ids[terms.offsets[:-1]]
    assert set(drawn.tolist()) <= set(model.order[place - 1 : place + 1].tolist())


@pytest.mark.parametrize("radius", [1, 3, 50])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("replace", ["window", "uniform"])
def test_replacements_follow_the_exact_distribution(radius, include_self, replace):
    """Chi-square on 40,000 draws each for the first, a middle and the last term of the sorted
    vocabulary."""
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


@pytest.mark.parametrize("include_self", [False, True])
def test_terms_without_weight_replace_each_other_alike(include_self):
    """Three terms stand in every sentence, so that s is 0 in the whole window of each."""
    model = TfidfModel.fit(["a b c x", "a b c y"])
    terms = Terms(np.zeros(3000, np.int32), np.arange(3001))
    drawn = np.bincount(UNA(model, radius=2, include_self=include_self)(terms).ids, minlength=5)
    expected = [1000, 1000, 1000, 0, 0] if include_self else [0, 1500, 1500, 0, 0]
    assert drawn == pytest.approx(expected, abs=150)


def test_window_weights_are_proportional_to_s():
    model = TfidfModel.fit(tiny_sentences(200))
    middle = int(model.order[30])
    candidates, p = UNA(model, radius=4).window(middle)
    assert model.rank[candidates].tolist() == list(range(26, 35))
    expected = model.s[candidates] * (candidates != middle)
    assert p == pytest.approx(expected / expected.sum())


@given(st.lists(WORDS, min_size=2, max_size=12), st.integers(0, 2**40), st.data())
def test_every_sentence_changes_and_keeps_its_length(lists, seed, drawn):
    radius, beta = drawn.draw(st.integers(1, 9)), drawn.draw(st.floats(0, 2))
    corpus = [" ".join(words) for words in lists] + ["a b c"]
    model = TfidfModel.fit(corpus)
    terms = model.encode(corpus)
    options = {name: drawn.draw(st.sampled_from(values)) for name, values in SETTINGS.items()}
    negatives = UNA(model, beta, radius, seed=seed, **options)(terms)
    assert negatives.offsets.tolist() == terms.offsets.tolist()
    assert negatives.ids.max() < len(model.terms)
    changed = np.bincount(terms.rows[negatives.ids != terms.ids], minlength=len(terms))
    assert ((changed > 0) == (terms.lengths > 0)).all()


def test_one_term_alone_cannot_change():
    model = TfidfModel.fit(["word", "word word"])
    assert model.strings(UNA(model)(model.encode(["word word", ""]))) == ["word word", ""]


def test_equal_scores_replace_the_first_token_only():
    """All z equal: mean(a) is 0, p is 0 but for the first token with the largest z."""
    model = TfidfModel.fit(["b c", "d e"])
    assert UNA(model).probabilities(model.encode(["b c", "c c"])).tolist() == [1, 0, 1, 0]


def test_draws_do_not_depend_on_batches_or_order(monkeypatch):
    corpus = tiny_sentences(500)
    model = TfidfModel.fit(corpus)
    monkeypatch.setattr(tfidf, "CHUNK", 7)
    again = TfidfModel.fit(iter(corpus))
    assert again.terms == model.terms
    assert (again.s == model.s).all() and (again.idf == model.idf).all()
    terms, una = model.encode(corpus), UNA(model, radius=5, seed=3)
    whole = model.strings(una(terms))
    rows = np.random.default_rng(0).permutation(500)
    for part in np.array_split(rows, 7):
        assert model.strings(una(terms[part], part)) == [whole[i] for i in part]
    assert model.strings(UNA(model, radius=5, seed=4)(terms)) != whole
    assert model.strings(una(terms, epoch=1)) != whole


def test_uniform_numbers_are_uniform_and_independent():
    rows, positions = (a.ravel() for a in np.meshgrid(np.arange(500), np.arange(40)))
    u = uniform(1, 0, rows, positions, 0)
    assert u.min() >= 0 and u.max() < 1 and stats.kstest(u, "uniform").pvalue > 1e-3
    for other in ((2, 0, 0), (1, 1, 0), (1, 0, 1)):
        seed, epoch, salt = other
        assert abs(np.corrcoef(u, uniform(seed, epoch, rows, positions, salt))[0, 1]) < 0.03
    for lag in (1, 500):  # the next row and the next position
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 0.03


def test_a_sentence_without_a_draw_changes_anywhere():
    """Of ten tokens, none drawn at rate 0, each is the one that changes in a tenth of the
    sentences."""
    model = TfidfModel.fit(["a b c d e f g h i j"])
    terms = Terms(np.tile(np.arange(10, dtype=np.int32), 2000), np.arange(0, 20_001, 10))
    changed = UNA(model, beta=0.0, select="random")(terms).ids != terms.ids
    per_place = changed.reshape(2000, 10)
    assert (per_place.sum(1) == 1).all()
    assert per_place.sum(0) == pytest.approx(np.full(10, 200), abs=60)


@pytest.mark.parametrize("wrong", [{"select": "idf"}, {"replace": "near"}, {"beta": -0.1}])
def test_a_parameter_out_of_its_range_is_refused(wrong):
    model = TfidfModel.fit(CORPUS)
    with pytest.raises(ValueError, match=str(*wrong.values())):
        UNA(model, **wrong)


def test_save_and_load(tmp_path):
    model = TfidfModel.fit([*CORPUS, "naïve café 你好"])
    model.save(tmp_path / "model.npz")
    again = TfidfModel.load(tmp_path / "model.npz")
    assert again.terms == model.terms and again.n_sentences == 5
    assert (again.idf == model.idf).all() and (again.s == model.s).all()
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    with pytest.raises(FileNotFoundError):
        TfidfModel.load(tmp_path / "none.npz")


# --- hard negatives as model input
# -------------------------------------------------------------------------

ODD = ["word", "", "a", "100%", "naïve “café” 你好 o'clock $3.50 e.g. don't", "x" * 90 + " ends"]


@pytest.mark.parametrize("family", ["mini-bert", "mini-roberta", "mini-llama"])
def test_negatives_are_what_the_tokenizer_gives_for_their_text(family):
    tokenizer = AutoTokenizer.from_pretrained(paths.ROOT / "data" / family)
    sentences = [*data.corpus("mini")[:60], *ODD]
    rows = np.random.default_rng(0).permutation(len(sentences))
    recipe = tiny_recipe(negative="una", radius=9, max_length=6)
    negatives = make_negatives(Text(sentences), recipe, tokenizer, seed=3)
    ids, mask = negatives(rows, 7)
    text = negatives.strings(rows, 7)
    expected = [tokenizer(s, truncation=True, max_length=6)["input_ids"] for s in text]
    assert [row[m == 1].tolist() for row, m in zip(ids, mask, strict=True)] == expected
    assert ids.shape == mask.shape and (mask.diff(dim=1) <= 0).all()  # padded at the right
    assert text[rows.tolist().index(60 + ODD.index(""))] == ""


def test_negatives_follow_from_seed_step_and_sentence(tmp_path):
    tokenizer, text = tiny_tokenizer(tmp_path), Text(tiny_sentences(40))
    recipe, rows = tiny_recipe(negative="una", radius=5), np.arange(40)
    one, same, other = (make_negatives(text, recipe, tokenizer, seed) for seed in (1, 1, 2))
    drawn = one.strings(rows, 5)
    assert same.strings(rows, 5) == drawn and one.strings([7, 31], 5) == [drawn[7], drawn[31]]
    assert torch.equal(one(rows, 5)[0], same(rows, 5)[0])
    for different in (one.strings(rows, 6), one.strings(rows, 0), other.strings(rows, 5)):
        assert different != drawn


def test_the_recipe_reaches_the_draws(tmp_path):
    tokenizer, sentences = tiny_tokenizer(tmp_path), tiny_sentences(200)

    def drawn(**changes):
        """Whether a term was replaced, and by one how many places away in the order of s."""
        recipe = tiny_recipe(negative="una", **changes)
        negatives = make_negatives(Text(sentences), recipe, tokenizer)
        old, new, place = negatives.terms, negatives.una(negatives.terms), negatives.model.rank
        return new.ids != old.ids, np.abs(place[new.ids] - place[old.ids])

    period = TfidfModel.fit(sentences)
    period, ids = period.terms.index("."), period.encode(sentences).ids
    terms = len(TfidfModel.fit(sentences).terms)
    none, few, many = (drawn(beta=beta)[0].mean() for beta in (0.0, 0.1, 0.6))
    assert 0 < none < few < many - 0.2
    assert not drawn(beta=0.6)[0][ids == period].any()  # it weighs nothing
    assert drawn(beta=0.5, negative_select="random")[0].mean() == pytest.approx(0.5, abs=0.05)
    assert drawn(beta=0.6, negative_select="random")[0][ids == period].any()
    assert [drawn(radius=r)[1].max() for r in (2, 15, 2.5 / terms)] == [2, 15, 3]
    assert drawn(radius=2, negative_replace="uniform")[1].max() > 15
    kept = [drawn(beta=1.0, radius=2, include_self=own)[0].mean() for own in (False, True)]
    assert kept[1] < kept[0]


def test_paraphrases_are_counted_and_their_words_drawn(tmp_path):
    tokenizer, sentences = tiny_tokenizer(tmp_path), ["a cat sees a dog .", "a dog sees a cat ."]
    paraphrases = ["the bird waits behind .", "the horse sleeps near ."]
    recipe = tiny_recipe(negative="una", radius=50, beta=1.0)
    rows, own = np.arange(2), {w for s in sentences for w in s.split()}
    alone = make_negatives(Text(sentences), recipe, tokenizer)
    both = make_negatives(Text(sentences, aligned=paraphrases), recipe, tokenizer)
    drawn = [
        {w for step in range(40) for s in n.strings(rows, step) for w in s.split()}
        for n in (alone, both)
    ]
    assert drawn[0] <= own and drawn[1] - own == {w for s in paraphrases for w in s.split()} - own
    assert both.model.n_sentences == 4 and len(both.strings(rows, 0)) == 2


def test_the_command_line_draws_as_its_options_say(tmp_path):
    lines = [*tiny_sentences(50), "", "a cat ."]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    request = ["una", str(tmp_path / "in.txt"), str(tmp_path / "out.txt")]
    assert main([*request, "--beta", "0.3", "--radius", "9", "--seed", "1"]) == 0
    model = TfidfModel.fit([line for line in lines if line])
    expected = model.strings(UNA(model, 0.3, 9, seed=1)(model.encode(lines)))
    assert (tmp_path / "out.txt").read_text() == "\n".join(expected) + "\n"
