"""What the test pairs of the seven STS tasks share, and where a negative word stands on one side
alone: `data/sda/overlap.csv`, numbers without a sentence.

Command line: `python -m tools.sda_overlap`, with the real data at hand.
"""

import sys
from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib import data, paths
from lib.augment.sda import english
from lib.augment.tfidf import terms_of
from lib.data import Pairs
from lib.data.files import write_text
from tools import inspection

PATH = paths.DATA / "sda" / "overlap.csv"
NEGATIVE = {*english.NEGATIVES, *english.ADVERB_NEGATIVES}


def is_negative(sentence: str) -> bool:
    """Whether one of its words is a negative word of the rules.

    Example:
        >>> is_negative("It doesn't rain."), is_negative("It is dry.")
        (True, False)
    """
    return any(word in NEGATIVE for word in terms_of(sentence))


def overlap(sets: Iterable[Pairs]) -> dict[str, float]:
    """Of a task's test pairs: how many, their mean Jaccard overlap and the share with a negative
    word on one side only, in percent, and the mean gold score of these pairs and of the others."""
    each = [
        (inspection.jaccard(first, second), is_negative(first) != is_negative(second), gold)
        for pairs in sets
        for first, second, gold in zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True)
    ]
    shared, one_sided, gold = (np.array(column) for column in zip(*each, strict=True))
    return {
        "pairs": len(each),
        "jaccard": round(float(shared.mean()), 2),
        "one_sided": round(100 * float(one_sided.mean()), 1),
        "gold_one_sided": round(float(gold[one_sided].mean()), 2),
        "gold_others": round(float(gold[~one_sided].mean()), 2),
    }


def table(data_dir: str | None = None) -> pd.DataFrame:
    """A row a task, SICK-R last.

    Raises:
        FileNotFoundError: the STS sets are not here.
    """
    found = {task: overlap(sets.values()) for task, sets in data.sts_tasks(data_dir).items()}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("task")


def main() -> int:
    """Write the table."""
    write_text(PATH, table().to_csv())
    return 0


if __name__ == "__main__":
    sys.exit(main())
