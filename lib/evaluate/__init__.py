"""Scores of an encoder: STS, transfer tasks, geometry and nearest neighbours; and baselines that
are not trained.

`encode` is any function from a list of sentences to one row a sentence.
"""

from lib.evaluate.baselines import bag_of_words_encode, whitened_encode, word_vectors_encode
from lib.evaluate.neighbours import margin_table, margins, neighbour_table, place_table
from lib.evaluate.sphere import alignment, effective_rank, geometry, mean_cosine, uniformity
from lib.evaluate.sts import (
    Encode,
    pairs_spearman,
    remember,
    similarities,
    spearman,
    sts7,
    sts_task,
)
