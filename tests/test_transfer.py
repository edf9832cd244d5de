"""Transfer tasks, overlap of pairs, changes of ranks."""

import importlib
import json
import math
import os
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from test_evaluate import pairs_of
from tiny import at_angles, hashed
from transformers import AutoTokenizer

from lib import data, evaluate, paths
from lib.augment.tfidf import terms_of
from lib.data import TransferTask, sets
from lib.evaluate import transfer
from lib.runs import inputs
from tools import inspection

REAL = Path(os.environ.get("CSE_DATA", "."))


# --- transfer tasks
# ----------------------------------------------------------------------------------------


def lines(n: int, labels: int, seed: int) -> list[tuple[str, int]]:
    """`n` sentences and their labels, which they name."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        label = int(rng.integers(labels)) if i >= 12 * labels else i % labels
        found.append((f"c{label} number {seed} {i} {'x' * int(rng.integers(1, 9))}", label))
    return found


def write_tasks(root: Path, n: int = 150) -> Path:
    """The seven tasks in the layout of the real files."""

    def write(relative: str, rows: list[str]) -> None:
        (root / relative).parent.mkdir(parents=True, exist_ok=True)
        (root / relative).write_text("".join(f"{row}\n" for row in rows))

    write(sets.OWN_SETS, [])
    binary = [files for files in sets.TRANSFER_FILES.values() if "one" in files]
    for seed, files in enumerate(binary):
        rows = lines(n, 2, seed)
        for label, relative in zip((1, 0), files.values(), strict=True):
            write(relative, [s for s, y in rows if y == label])
    for seed, split in enumerate(sets.SPLITS, 10):
        write(f"SST/binary/sentiment-{split}", [f"{s}\t{y}" for s, y in lines(n, 2, seed)])
    for seed, relative in ((20, "train_5500"), (21, "TREC_10")):
        rows = [f"{data.TREC_CLASSES[y]}:x {s}" for s, y in lines(2 * n, 6, seed)]
        write(f"TREC/{relative}.label", rows)
    for seed, split in ((30, "train"), (31, "test")):
        header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
        rows = [f"{y}\t1\t2\tc0 first {i}\t{s}" for i, (s, y) in enumerate(lines(n, 2, seed))]
        write(f"MRPC/msr_paraphrase_{split}.txt", [header, *rows])
    return root


def test_the_second_sentences_of_a_task_are_in_its_hash(tmp_path):
    write_tasks(tmp_path)
    before = inputs.transfer_hash(tmp_path)
    path = tmp_path / "MRPC" / "msr_paraphrase_test.txt"
    lines_of = path.read_text().splitlines()
    path.write_text("\n".join([*lines_of[:-1], lines_of[-1] + " indeed"]) + "\n")
    assert inputs.transfer_hash(tmp_path) != before


def named(sentences: list[str]) -> np.ndarray:
    """Which label a sentence names, one-hot, beside noise that depends on the sentence alone."""
    labels = [[s.startswith(f"c{k}") for k in range(6)] for s in sentences]
    return np.hstack([hashed(sentences), labels])


def gaussian(
    counts: dict[str, int], classes: int = 2, width: int = 5, seed: int = 0, pairs: bool = False
):
    """Overlapping clouds, one a class: (task, encode)."""
    rng = np.random.default_rng(seed)
    splits, second, table = {}, {}, {}
    for split, n in counts.items():
        labels = [i % classes for i in range(n)]
        for i, label in enumerate(labels):
            table[f"{split} {i}"] = rng.normal(size=width) + 1.2 * np.eye(classes, width)[label]
            table[f"{split} {i} b"] = rng.normal(size=width)
        splits[split] = ([f"{split} {i}" for i in range(n)], labels)
        if pairs:
            second[split] = [f"{split} {i} b" for i in range(n)]
    return TransferTask("toy", splits, second), lambda sentences: np.array(
        [table[s] for s in sentences], np.float32
    )


def test_seven_separable_tasks(tmp_path):
    found = transfer.transfer7(named, write_tasks(tmp_path))
    assert list(found) == [*data.TRANSFER_TASKS, "avg", "MRPC f1"]
    assert all(score == pytest.approx(100) for score in found.values())


def test_each_distinct_sentence_is_encoded_once(tmp_path):
    calls = []

    def encode(sentences):
        calls.append(sentences)
        return named(sentences)

    task = data.transfer_task("MRPC", write_tasks(tmp_path))
    transfer.score_task(encode, task, folds=2)
    (call,) = calls
    every = {s for sentences, _ in task.splits.values() for s in sentences}
    assert sorted(call) == sorted(every.union(*task.second.values()))


def test_folds_are_stratified_and_disjoint():
    labels = [0] * 37 + [1] * 63
    task = TransferTask("toy", {"all": ([str(i) for i in range(100)], labels)})
    y = np.array(labels)
    parts = transfer._splits(task, y, 10, 1111)
    assert sorted(np.concatenate([test for _, test, _ in parts])) == list(range(100))
    expected = StratifiedKFold(10, shuffle=True, random_state=1111).split(y, y)
    for (train, test, inner), (expected_train, expected_test) in zip(parts, expected, strict=True):
        assert np.array_equal(train, expected_train) and np.array_equal(test, expected_test)
        assert 3 <= (y[test] == 0).sum() <= 4
        ((fit, dev),) = inner
        assert sorted([*fit, *dev]) == sorted(train) and not set(fit) & set(dev)
        assert 3 <= (y[dev] == 0).sum() <= 4 and len(dev) == 9
    other = transfer._splits(task, y, 10, 7)
    assert any(set(a) != set(b) for (_, a, _), (_, b, _) in zip(parts, other, strict=True))


class Recorder(LogisticRegression):
    """Notes the numbers of the rows that it sees; they stand in the first column."""

    seen: ClassVar[list[tuple[str, frozenset]]] = []

    def fit(self, x, y):
        Recorder.seen.append(("fit", frozenset(x[:, [0]].toarray().ravel())))
        return super().fit(x, y)

    def predict(self, x):
        Recorder.seen.append(("predict", frozenset(x[:, [0]].toarray().ravel())))
        return super().predict(x)


@pytest.mark.parametrize(
    ("counts", "grid", "inner", "outer"),
    [
        ({"all": 60}, 6, 1, 5),
        ({"train": 40, "dev": 20, "test": 20}, 6, 1, 1),
        ({"train": 40, "test": 20}, 7, 5, 1),
    ],
)
def test_c_is_chosen_without_the_test_part(monkeypatch, counts, grid, inner, outer):
    monkeypatch.setattr(transfer, "LogisticRegression", Recorder)
    monkeypatch.setattr(Recorder, "seen", [])
    task, encode = gaussian(counts)
    row = {
        s: i for i, s in enumerate(s for sentences, _ in task.splits.values() for s in sentences)
    }

    def numbered(sentences):
        return sparse.csr_matrix(np.column_stack([[row[s] for s in sentences], encode(sentences)]))

    transfer.score_task(numbered, task, folds=5)
    seen = Recorder.seen
    one = 2 * grid * inner + 2
    assert len(seen) == one * outer
    for i in range(outer):
        *own, (_, train), (_, test) = seen[one * i : one * (i + 1)]
        assert not train & test
        assert all(not rows & test for _, rows in own)
        assert all(rows <= train for kind, rows in own if kind == "fit")


def test_the_result_is_reproducible():
    task, encode = gaussian({"all": 90})
    once = transfer.score_task(encode, task)
    assert once == transfer.score_task(encode, task)
    assert once["C"] == [c for c in once["C"] if c in transfer.C_GRID] and len(once["C"]) == 10


def reference(model_x, y, cv, grid):
    """scikit-learn's own search with another solver, converged."""
    estimator = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    return GridSearchCV(estimator, {"C": list(grid)}, cv=cv).fit(model_x, y)


@pytest.mark.parametrize("classes", [2, 6])
def test_against_a_grid_search_on_the_training_part(classes):
    task, encode = gaussian({"train": 240, "test": 120}, classes, 8)
    (train, y), (test, true) = task.splits["train"], task.splits["test"]
    cv = StratifiedKFold(10, shuffle=True, random_state=1111)
    search = reference(encode(train).astype(float), y, cv, transfer.C_GRID_INNER_FOLDS)
    found = transfer.score_task(encode, task)
    assert found["C"] == [search.best_params_["C"]]
    assert found["dev"] == pytest.approx(100 * search.best_score_)
    assert found["accuracy"] == pytest.approx(100 * search.score(encode(test).astype(float), true))


def test_against_a_grid_search_on_a_given_dev_part():
    task, encode = gaussian({"train": 160, "dev": 80, "test": 80})
    x = {split: encode(sentences).astype(float) for split, (sentences, _) in task.splits.items()}
    y = {split: labels for split, (_, labels) in task.splits.items()}
    cv = PredefinedSplit([-1] * 160 + [0] * 80)
    search = reference(
        np.vstack([x["train"], x["dev"]]), y["train"] + y["dev"], cv, transfer.C_GRID
    )
    final = LogisticRegression(C=search.best_params_["C"], tol=1e-10).fit(x["train"], y["train"])
    found = transfer.score_task(encode, task)
    assert found["C"] == [search.best_params_["C"]]
    assert found["dev"] == pytest.approx(100 * search.best_score_)
    assert found["accuracy"] == pytest.approx(100 * final.score(x["test"], y["test"]))


def test_pairs_become_difference_and_product_and_have_an_f1():
    task, encode = gaussian({"train": 60, "test": 30}, pairs=True)
    found = transfer.score_task(encode, task, folds=5)
    u, v = (
        np.vstack([encode(of[split]) for split in ("train", "test")]).astype(float)
        for of in ({split: s for split, (s, _) in task.splits.items()}, task.second)
    )
    x, y = np.hstack([abs(u - v), u * v]), np.arange(60) % 2
    predicted = LogisticRegression(C=found["C"][0], tol=1e-10).fit(x[:60], y).predict(x[60:])
    true = y[:30]
    hits = int((predicted & true).sum())
    assert found["accuracy"] == pytest.approx(100 * (predicted == true).mean())
    assert found["f1"] == pytest.approx(100 * 2 * hits / (predicted.sum() + true.sum()))
    assert transfer.score_task(lambda s: sparse.csr_matrix(encode(s)), task, folds=5) == found


def test_a_common_shift_and_sparse_rows_change_nothing():
    task, encode = gaussian({"all": 120})
    expected = transfer.score_task(encode, task)
    assert transfer.score_task(lambda s: encode(s) + 50.0, task) == expected
    assert transfer.score_task(lambda s: sparse.csr_matrix(encode(s)), task) == expected


# --- overlap
# -----------------------------------------------------------------------------------------------


def test_jaccard_closed_forms():
    assert inspection.jaccard("a b c", "B c d") == 50
    assert inspection.jaccard("a a a", "a") == 100
    assert inspection.jaccard("a b", "c d") == 0
    assert inspection.jaccard("", "a") == 0
    assert inspection.jaccard("", "") == 100
    assert inspection.jaccard("abc", "abd", tokens=list) == 50


# --- ranks
# -------------------------------------------------------------------------------------------------

graded = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=10)


def angled(values: list[int]):
    """An encode whose cosine of ("base", "i") grows with values[i]."""
    return at_angles({"base": 0.0} | {str(i): 90 - 15.0 * v for i, v in enumerate(values)})


@given(graded)
def test_rank_changes_against_a_slow_version(rows):
    a, b, gold = (list(column) for column in zip(*rows, strict=True))
    pairs = pairs_of(*[("base", str(i), g) for i, g in enumerate(gold)])
    found = inspection.rank_changes(angled(a), angled(b), pairs)

    def rank(values, i):
        return (
            1 + sum(w < values[i] for w in values) + (sum(w == values[i] for w in values) - 1) / 2
        )

    improvement = [
        abs(rank(a, i) - rank(gold, i)) - abs(rank(b, i) - rank(gold, i)) for i in range(len(rows))
    ]
    assert found.index.tolist() == sorted(range(len(rows)), key=lambda i: -improvement[i])
    for i, row in found.iterrows():
        assert (row["sentence1"], row["sentence2"], row["gold"]) == ("base", str(i), gold[i])
        ranks = (row["rank_gold"], row["rank_a"], row["rank_b"], row["improvement"])
        assert ranks == (rank(gold, i), rank(a, i), rank(b, i), improvement[i])
        assert row["similarity_a"] == pytest.approx(math.cos(math.radians(90 - 15 * a[i])))


# --- the reference
# -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_reference_agrees_on_made_up_tasks(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(paths.ROOT))
    threads = torch.get_num_threads()
    script = importlib.import_module("benchmarks.transfer_reference")
    assert script.main(["--smoke", "--threads", "1", "--results", str(tmp_path)]) == 0
    torch.set_num_threads(threads)
    (table,) = tmp_path.glob("*.json")
    rows = json.loads(table.read_text())["rows"]
    assert [row["task"] for row in rows] == [*data.TRANSFER_TASKS, "avg", "MRPC f1"]
    for row in rows:
        assert row["lib"] == pytest.approx(row["reference"], abs=1)


# --- real data
# ---------------------------------------------------------------------------------------------


def sts_and_sick(tokens) -> list[float]:
    """Mean overlap of the six STS tasks, and of SICK-R."""
    overlap = {}
    for task, subsets in data.sts_tasks(REAL).items():
        means = [inspection.mean_jaccard(pairs, tokens) for pairs in subsets.values()]
        overlap[task] = np.average(means, weights=[len(pairs) for pairs in subsets.values()])
    sick = overlap.pop("SICK-R")
    return [float(np.mean(list(overlap.values()))), float(sick)]


@pytest.mark.real_data
def test_overlap_of_the_sts_pairs():
    """SDA prints 47.39 and 57.24."""
    assert sts_and_sick(terms_of) == pytest.approx([39.97, 49.06], abs=0.01)


@pytest.mark.real_data
def test_overlap_of_the_sts_pairs_in_word_pieces():
    """Nearest to what SDA prints: word pieces, [CLS] and [SEP] among them."""
    tokenizer = AutoTokenizer.from_pretrained(REAL / "vocab/bert-base-uncased")
    found = sts_and_sick(lambda sentence: tokenizer(sentence)["input_ids"])
    assert found == pytest.approx([47.04, 56.01], abs=0.01)
    assert found != pytest.approx([47.39, 57.24], abs=0.3)


@pytest.mark.real_data
def test_words_of_customer_reviews():
    """A bag of words guesses most polarities; 64 of 100 are positive."""
    reviews = data.transfer_task("CR", REAL)
    found = transfer.score_task(evaluate.bag_of_words_encode(CountVectorizer(min_df=2)), reviews)
    assert 76 < found["accuracy"] < 84 and found["dev"] > 76


@pytest.mark.real_data
def test_chinese_sts_b():
    pairs = {split: sets.graded("CNSD", split, REAL) for split in sets.SPLITS}
    assert [len(p) for p in pairs.values()] == [5231, 1458, 1361]
    characters = CountVectorizer(analyzer="char").fit_transform  # their counts
    scores = {split: evaluate.pairs_spearman(characters, p) for split, p in pairs.items()}
    assert scores == pytest.approx({"train": 58.09, "dev": 64.35, "test": 56.88}, abs=0.01)
