"""SentEval's seven transfer tasks: what a classifier on frozen embeddings gets right.

`encode` is any function from a list of sentences to one row a sentence, as in `lib.evaluate`;
`lib.data.transfer_task` reads a task. Accuracies are in percent.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from lib import data
from lib.data import TransferTask
from lib.evaluate import Encode
from lib.evaluate.sts import finite_matrix, remember

C_GRID = tuple(2.0**k for k in range(-2, 4))
C_GRID_INNER_FOLDS = tuple(2.0**k for k in range(-1, 6))
TOLERANCE, MAX_ITERATIONS = 1e-6, 2000
Split = tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]


def _features(encode: Encode, task: TransferTask) -> Any:
    """One row a labelled line, all splits one below the other: u (n, d), or of pairs |u − v| beside
    u ∘ v (n, 2d)."""
    lines = [s for sentences, _ in task.splits.values() for s in sentences]
    second = [s for split in task.second.values() for s in split]
    known = remember(encode, lines + second, finite_matrix)
    if not second:
        return known(lines)
    u, v = known(lines), known(second)
    if sparse.issparse(u):
        return sparse.hstack([abs(u - v), u.multiply(v)], format="csr")
    return np.hstack([np.abs(u - v), u * v])


def _splits(task: TransferTask, y: np.ndarray, folds: int, seed: int) -> list[Split]:
    """(training rows, test rows, [(rows to fit on, rows to choose C on), …] inside the training
    rows), …"""
    stops = np.cumsum([len(labels) for _, labels in task.splits.values()])
    rows = dict(zip(task.splits, np.split(np.arange(len(y)), stops[:-1]), strict=True))
    kfold = StratifiedKFold(folds, shuffle=True, random_state=seed)

    def inner(train: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(train[fit], train[dev]) for fit, dev in kfold.split(train, y[train])]

    if "all" in rows:
        return [(train, test, inner(train)[:1]) for train, test in kfold.split(y, y)]
    if "dev" in rows:
        return [(rows["train"], rows["test"], [(rows["train"], rows["dev"])])]
    return [(rows["train"], rows["test"], inner(rows["train"]))]


def _predictions(
    x: Any, y: np.ndarray, fit: np.ndarray, ask: np.ndarray, grid: Sequence[float]
) -> list[np.ndarray]:
    """Labels predicted for the rows `ask` by regressions on the rows `fit`, one for each C, each
    begun at the last.

    Subtracting the mean row leaves the optimum where it is, as the intercept is not penalised, and
    brings the solver there in fewer steps.
    """
    shift = 0 if sparse.issparse(x) else x[fit].mean(0)
    x_fit, x_ask = x[fit] - shift, x[ask] - shift
    model = LogisticRegression(tol=TOLERANCE, max_iter=MAX_ITERATIONS, warm_start=True)
    return [model.set_params(C=c).fit(x_fit, y[fit]).predict(x_ask) for c in grid]


def score_task(encode: Encode, task: TransferTask, folds: int = 10, seed: int = 1111) -> dict:
    """Accuracy of a logistic regression on frozen embeddings: how much of a task's answer they hold
    linearly.

    min over W, b of ½‖W‖² + C Σ_i −log p(y_i | W x_i + b), with p logistic for two classes,
    softmax for more. C is never chosen on what is tested:

    * one split `all` (MR, CR, SUBJ, MPQA): stratified folds, each the test part once; C on a
      tenth of the rest.
    * `train`, `dev`, `test` (SST2): C on `dev`; the regression sees `train` only.
    * `train`, `test` (TREC, MRPC): C by the mean accuracy over stratified folds of `train`.

    C is one of `C_GRID`, 2^-2 … 2^3; for TREC and MRPC one of `C_GRID_INNER_FOLDS`, 2^-1 … 2^5; of
    equally good ones the smallest. The solver is L-BFGS in float64. It stops when no entry of the
    gradient of the objective, divided by C n, exceeds `TOLERANCE`: at scikit-learn's 1e-4 it stops
    so early on SST2 that a larger C changes nothing.

    Args:
        encode: gets each distinct sentence of the task once, in one call; its rows are taken as
            they are, neither normalised nor scaled, dense or sparse.
        task: of `data.transfer_task`; with `second` the features of a pair are |u − v| beside
            u ∘ v.
        folds: outer folds and inner folds, at least 2; each class needs as many members.

    Returns:
        `accuracy`, the mean over the folds' test parts; `dev`, that on what C was chosen on; `C`,
        the list of what was chosen, one a fold; with pairs `f1` of class 1. All but C in percent,
        in [0, 100].

    Raises:
        ValueError: embeddings of a wrong shape, NaN or infinity in them.

    Relations: SentEval chooses C of MR, CR, SUBJ and MPQA by inner folds, here one split of the
    same size stands for them, a tenth of the work. Its regression was scikit-learn's of 2018,
    with a penalised intercept and one class against the rest; SimCSE's tables come from its
    PyTorch classifier, trained by Adam.

    Example:
        >>> counts = lambda sentences: [[s.count("!"), s.count("?")] for s in sentences]
        >>> lines = [f"{word}{mark}" for mark in "?!" for word in ("one", "two", "three", "four")]
        >>> score_task(counts, TransferTask("toy", {"all": (lines, [0] * 4 + [1] * 4)}), folds=2)
        {'accuracy': 100.0, 'dev': 100.0, 'C': [0.25, 0.25]}

    Source: Conneau & Kiela 2018 (SentEval), §3; Zhu et al. 2024 (SDA), §6.2 and Table 5.
    """
    y = np.array([label for _, labels in task.splits.values() for label in labels])
    grid = C_GRID_INNER_FOLDS if task.splits.keys() == {"train", "test"} else C_GRID
    x = _features(encode, task)
    accuracies, devs, f1s, chosen = [], [], [], []
    for train, test, inner in _splits(task, y, folds, seed):
        tried = [
            [(p == y[dev]).mean() for p in _predictions(x, y, fit, dev, grid)] for fit, dev in inner
        ]
        scores = np.mean(tried, axis=0)  # (grid,)
        chosen.append(grid[scores.argmax()])
        (predicted,) = _predictions(x, y, train, test, chosen[-1:])
        devs.append(scores.max())
        accuracies.append((predicted == y[test]).mean())
        f1s += [f1_score(y[test], predicted)] if task.second else []
    means = {"accuracy": accuracies, "dev": devs} | ({"f1": f1s} if task.second else {})
    return {name: float(100 * np.mean(found)) for name, found in means.items()} | {"C": chosen}


def transfer7(
    encode: Encode, data_dir: str | Path | None = None, folds: int = 10, seed: int = 1111
) -> dict[str, float]:
    """Accuracy on MR, CR, SUBJ, MPQA, SST2, TREC and MRPC, their mean `avg`, and `MRPC f1`, which
    is not in it.

    Args:
        folds, seed: as `score_task`.

    Raises:
        FileNotFoundError: the data is not there; the message names the command that brings it.
        ValueError: bad embeddings.

    Source: the columns of Table 5 of Zhu et al. 2024 (SDA).
    """
    tasks = [data.transfer_task(name, data_dir) for name in data.TRANSFER_TASKS]
    found = {task.name: score_task(encode, task, folds, seed) for task in tasks}
    accuracy = {name: result["accuracy"] for name, result in found.items()}
    avg = float(np.mean(list(accuracy.values())))
    return {**accuracy, "avg": avg, "MRPC f1": found["MRPC"]["f1"]}
