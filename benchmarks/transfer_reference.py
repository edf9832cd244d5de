"""The seven transfer tasks of all-MiniLM-L6-v2: `lib.evaluate.transfer` beside a reference that
shares no code with it.

The reference reads the raw files itself, encodes with `SentenceTransformer` and searches C with
scikit-learn's `GridSearchCV` over a `Pipeline`, with another solver (Newton's method) than `lib`
uses. Same protocol, same folds, unit vectors on both sides. Nothing is timed; the exit status is 1
if an accuracy differs by more than a point.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import common
from lib import data, paths
from lib.data import sets
from lib.encoder import Encoder
from lib.evaluate import transfer

FOLDS, SEED = 10, 1111
LIMIT = 1.0

# --- the reference: nothing of lib below, down to the next line of this kind
# -------------------------------

CV_TASKS = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}


class FirstFold(StratifiedKFold):
    """Only the first of the stratified folds: one split."""

    def split(self, X, y=None, groups=None) -> Iterator:
        """Rows to fit on and rows to choose on."""
        yield next(super().split(X, y, groups))

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """One."""
        return 1


def raw_lines(path: Path) -> list[str]:
    """Lines of a file in UTF-8, or in Latin-1 where it is not valid UTF-8."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


class Reference:
    """SentenceTransformer's vectors and scikit-learn's searches on the files of one folder in
    SentEval's layout."""

    def __init__(self, model: Path, folder: Path):
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(model), device="cpu")
        self.folder = folder
        self.kfold = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)

    def vectors(self, sentences) -> np.ndarray:
        """Unit vectors in float64."""
        return self.model.encode([s.strip() for s in sentences], normalize_embeddings=True).astype(
            np.float64
        )

    def search(self, exponents: range, cv) -> GridSearchCV:
        """The search over C = 2^exponent."""
        regression = LogisticRegression(solver="newton-cholesky", max_iter=1000)
        pipeline = Pipeline(
            [("centre", StandardScaler(with_std=False)), ("regression", regression)]
        )
        return GridSearchCV(
            pipeline, {"regression__C": [2.0**k for k in exponents]}, cv=cv, refit=False
        )

    def fitted(self, search: GridSearchCV, x: np.ndarray, y) -> Pipeline:
        """A pipeline with the best C of a search that has ended, fitted on `x`."""
        return search.estimator.set_params(**search.best_params_).fit(x, y)

    def cross_validated(self, task: str) -> float:
        """MR, CR, SUBJ, MPQA: outer folds, C on the first of the inner ones."""
        one, zero = (raw_lines(self.folder / name) for name in CV_TASKS[task])
        x, y = self.vectors(one + zero), np.array([1] * len(one) + [0] * len(zero))
        search = self.search(
            range(-2, 4), FirstFold(FOLDS, shuffle=True, random_state=SEED)
        ).set_params(refit=True)
        return 100 * cross_val_score(search, x, y, cv=self.kfold).mean()

    def sst2(self) -> float:
        """C on the dev part, the regression on the training part."""
        x, y = {}, {}
        for split in ("train", "dev", "test"):
            rows = [
                line.rsplit("\t", 1)
                for line in raw_lines(self.folder / f"SST/binary/sentiment-{split}")
            ]
            x[split], y[split] = (
                self.vectors([s for s, _ in rows]),
                np.array([int(label) for _, label in rows]),
            )
        parts = PredefinedSplit([-1] * len(y["train"]) + [0] * len(y["dev"]))
        search = self.search(range(-2, 4), parts)
        search.fit(np.vstack([x["train"], x["dev"]]), np.hstack([y["train"], y["dev"]]))
        return 100 * self.fitted(search, x["train"], y["train"]).score(x["test"], y["test"])

    def trec(self) -> float:
        """Coarse classes; C by inner folds."""
        x, y = {}, {}
        for split, name in (("train", "train_5500"), ("test", "TREC_10")):
            rows = [line.split(" ", 1) for line in raw_lines(self.folder / f"TREC/{name}.label")]
            x[split], y[split] = (
                self.vectors([s for _, s in rows]),
                [label.split(":")[0] for label, _ in rows],
            )
        search = self.search(range(-1, 6), self.kfold).fit(x["train"], y["train"])
        return 100 * self.fitted(search, x["train"], y["train"]).score(x["test"], y["test"])

    def mrpc(self) -> tuple[float, float]:
        """Accuracy and F1; C by inner folds."""
        x, y = {}, {}
        for split in ("train", "test"):
            path = self.folder / f"MRPC/msr_paraphrase_{split}.txt"
            table = pd.read_csv(
                path, sep="\t", quoting=3, encoding="utf-8-sig", keep_default_na=False
            )
            u, v = self.vectors(table["#1 String"]), self.vectors(table["#2 String"])
            x[split], y[split] = (
                np.concatenate([np.abs(u - v), u * v], axis=1),
                table["Quality"].to_numpy(),
            )
        search = self.search(range(-1, 6), self.kfold).fit(x["train"], y["train"])
        predicted = self.fitted(search, x["train"], y["train"]).predict(x["test"])
        return 100 * float((predicted == y["test"]).mean()), 100 * f1_score(y["test"], predicted)

    def scores(self) -> dict[str, float]:
        """Accuracy of every task, their mean, and the F1 of MRPC."""
        scores: dict[str, float] = {}
        for task in CV_TASKS:
            scores[task] = self.cross_validated(task)
            print(f"reference: {task} {scores[task]:.2f}", file=sys.stderr, flush=True)
        scores["SST2"], scores["TREC"] = self.sst2(), self.trec()
        print(
            f"reference: SST2 {scores['SST2']:.2f}, TREC {scores['TREC']:.2f}",
            file=sys.stderr,
            flush=True,
        )
        scores["MRPC"], f1 = self.mrpc()
        return {**scores, "avg": sum(scores.values()) / len(scores), "MRPC f1": f1}


# --- lib -----------------------------------------------------------------------------------


def ours(model: Path, folder: Path, max_length: int) -> dict[str, float]:
    """`transfer7` on the unit vectors of `Encoder.encode` in fp32."""
    encoder = Encoder.load(model, pooling="mean")

    def encode(sentences: list[str]) -> np.ndarray:
        x = encoder.encode(sentences, precision="fp32", max_length=max_length)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    return transfer.transfer7(encode, folder, folds=FOLDS, seed=SEED)


def senteval(data_dir: str | Path | None) -> Path:
    """The folder `senteval` of the real data."""
    folders = [base / "senteval" for base in paths.data_dirs(data_dir)]
    if not (existing := [folder for folder in folders if (folder / "MR").is_dir()]):
        raise FileNotFoundError(
            f"no SentEval data in {', '.join(map(str, folders))}: `{data.FETCH}` brings it"
        )
    return existing[0]


def smoke_folder(folder: Path, n: int = 60) -> tuple[Path, Path]:
    """A tiny model and seven tiny tasks in the layout of the real ones."""
    tokenizer = common.tiny_model(folder / "plain")
    Encoder.load(folder / "plain", pooling="mean").export_sentence_transformers(folder / "model")
    texts = iter(common.made_up(20 * n, tokenizer))
    files = {name: [next(texts) for _ in range(n)] for names in CV_TASKS.values() for name in names}
    for split in ("train", "dev", "test"):
        files[f"SST/binary/sentiment-{split}"] = [f"{next(texts)}\t{i % 2}" for i in range(n)]
    for name in ("train_5500", "TREC_10"):
        files[f"TREC/{name}.label"] = [
            f"{data.TREC_CLASSES[i % 6]}:x {next(texts)}" for i in range(2 * n)
        ]
    for split in ("train", "test"):
        rows = [f"{i % 2}\t1\t2\t{next(texts)}\t{next(texts)}" for i in range(n)]
        files[f"MRPC/msr_paraphrase_{split}.txt"] = [
            "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
            *rows,
        ]
    (folder / sets.OWN_SETS).touch()
    for name, rows in files.items():
        path = folder / "senteval" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{row}\n" for row in rows))
    return folder / "model", folder


def compare(model: Path, data_dir: str | Path | None, source: str) -> dict:
    """Both sides and the content of the JSON file."""
    folder = senteval(data_dir)
    reference = Reference(model, folder)
    theirs = reference.scores()
    lib_scores = ours(model, folder, reference.model.get_max_seq_length())
    rows = [
        {
            "task": task,
            "lib": round(lib_scores[task], 2),
            "reference": round(theirs[task], 2),
            "difference": round(lib_scores[task] - theirs[task], 2),
        }
        for task in lib_scores
    ]
    settings = {
        "model": f"{source}, mean pooling, unit vectors in fp32",
        "protocol": (
            f"SentEval's splits, {FOLDS} folds, seed {SEED}; accuracy in percent, of MRPC F1 too"
        ),
        "lib": "transfer.transfer7: L-BFGS",
        "reference": (
            "its own reading of the files, SentenceTransformer.encode, GridSearchCV over a"
            " Pipeline: Newton"
        ),
        "differences allowed": f"{LIMIT:g} point",
    }
    date = datetime.now(UTC).isoformat(timespec="seconds")
    title = "Transfer tasks against a reference that shares no code"
    return {
        "name": "transfer_reference",
        "title": title,
        "date": date,
        "settings": settings,
        "rows": rows,
    }


def markdown(content: Mapping) -> str:
    """The report as a page."""
    environment = content["machine"]
    versions = ", ".join(
        f"{name} {number}" for name, number in environment["versions"].items() if number
    )
    rows = [
        f"| {r['task']} | {r['lib']:.2f} | {r['reference']:.2f} | {r['difference']:+.2f} |"
        for r in content["rows"]
    ]
    lines = [
        f"# {content['title']}",
        "",
        f"- {environment['platform']}, Python {environment['python']}, {versions}",
        f"- date: {content['date']}; commit: {environment['commit'] or 'not known'}",
        *[f"- {key}: {value}" for key, value in content["settings"].items()],
        "",
        "| task | lib | reference | difference |",
        "| --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Compare, print and write the table."""
    options = common.parser(__doc__, repetitions=1).parse_args(argv)
    common.prepare(options)
    environment = common.machine()
    try:
        content = common.of_minilm(options, compare, smoke_folder)
    except FileNotFoundError as error:
        print(f"transfer_reference: {error}", file=sys.stderr)
        return 1
    common.write(content, environment, options.results, page=markdown)
    return int(
        any(abs(row["difference"]) > LIMIT for row in content["rows"] if row["task"] != "MRPC f1")
    )


if __name__ == "__main__":
    sys.exit(main())
