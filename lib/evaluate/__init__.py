"""Scores: STS, transfer tasks, geometry, nearest neighbours, sentence vectors without training, and
the statistics of seeds.

`encode` is any function from a list of sentences to one row a sentence.
"""

from lib.evaluate.baselines import bag_of_words_encode, token_counts, word_vectors_encode
from lib.evaluate.geometry import (
    alignment,
    effective_rank,
    geometry,
    mean_cosine,
    singular_values,
    uniformity,
)
from lib.evaluate.margins import margin_table, margins
from lib.evaluate.neighbours import nearest, neighbour_table, place_table
from lib.evaluate.sts import (
    AGGREGATIONS,
    TASKS,
    Encode,
    by_kind,
    pairs_spearman,
    remember,
    similarities,
    spearman,
    sts7,
    sts_task,
)
from lib.evaluate.whitening import whitened_encode

__all__ = [
    "AGGREGATIONS",
    "TASKS",
    "Encode",
    "alignment",
    "bag_of_words_encode",
    "by_kind",
    "effective_rank",
    "geometry",
    "margin_table",
    "margins",
    "mean_cosine",
    "nearest",
    "neighbour_table",
    "pairs_spearman",
    "place_table",
    "remember",
    "similarities",
    "singular_values",
    "spearman",
    "sts7",
    "sts_task",
    "token_counts",
    "uniformity",
    "whitened_encode",
    "word_vectors_encode",
]
