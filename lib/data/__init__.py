"""Corpora and evaluation sets: files in, sentences, graded pairs and labelled tasks out.

`readers` knows the formats, `sets` what is scored and where its files are looked for, `corpora` the
training texts and the sentences to look at; `fetch`, which alone downloads, brings texts and sets
from the Hugging Face Hub; `files` writes what is whole or not there.
"""

from lib.data.corpora import (
    aligned_corpus,
    at_hand,
    corpus,
    corpus_files,
    handwritten,
    planted,
    queries,
    searchable,
    training_text,
)
from lib.data.readers import TREC_CLASSES, Pairs, TransferTask, Triplets, read_aligned, read_lines
from lib.data.sets import (
    FETCH,
    STS_SUBSETS,
    TRANSFER_TASKS,
    WIKI1M,
    mini_pairs,
    mini_triplets,
    sts_tasks,
    stsb,
    transfer_task,
)
