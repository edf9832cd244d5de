"""Corpora and evaluation sets: files in, sentences, graded pairs and labelled tasks out.

`readers` knows the formats, `folders` where files are looked for, `corpora` the training texts,
`sets` what is scored, `examples` what is looked at; `fetch`, which alone downloads, brings texts
and sets from the Hugging Face Hub.
"""

from lib.data.corpora import (
    CORPORA,
    aligned_corpus,
    at_hand,
    corpus,
    corpus_files,
    pretrain_corpus,
    sample,
    sts_unlabelled,
    training_text,
)
from lib.data.examples import handwritten, planted, queries, searchable
from lib.data.folders import FETCH, TAR, WIKI1M
from lib.data.readers import TREC_CLASSES, Pairs, TransferTask, Triplets, read_aligned, read_lines
from lib.data.sets import (
    SIZES,
    STS_SUBSETS,
    TRANSFER_FILES,
    TRANSFER_TASKS,
    cnsd,
    mini_pairs,
    mini_triplets,
    sick,
    sts_tasks,
    stsb,
    transfer_task,
)

__all__ = [
    "CORPORA",
    "FETCH",
    "SIZES",
    "STS_SUBSETS",
    "TAR",
    "TRANSFER_FILES",
    "TRANSFER_TASKS",
    "TREC_CLASSES",
    "WIKI1M",
    "Pairs",
    "TransferTask",
    "Triplets",
    "aligned_corpus",
    "at_hand",
    "cnsd",
    "corpus",
    "corpus_files",
    "handwritten",
    "mini_pairs",
    "mini_triplets",
    "planted",
    "pretrain_corpus",
    "queries",
    "read_aligned",
    "read_lines",
    "sample",
    "searchable",
    "sick",
    "sts_tasks",
    "sts_unlabelled",
    "stsb",
    "training_text",
    "transfer_task",
]
