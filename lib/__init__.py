"""Sentence embeddings: from a text file to a score.

Read the packages in the order in which data flows; each imports only from those before it.

* `data`: files in, sentences and graded pairs out.
* `encoder`: tokens, backbone, pooling, head.
* `augment`: positives and hard negatives, as text and as vectors.
* `training`: recipe, batches, forward pass, loss, loop, checkpoint.
* `results`: committed runs, claims, statistics.
* `evaluate`: STS, transfer tasks, geometry, neighbours.
* `runs`: profile, job, one run and its folder, grids.
* `commands`: `python -m lib VERB`.

Beside them: `paths` (every folder), `checked` (values and registries that are checked), and for
notebooks `plots`, `say` and `search`.
"""

import logging

# Jupyter interrupts an idle kernel before it stops it, and ipykernel logs this as an error at the
# end of a run that succeeded.
logging.getLogger("IPKernelApp").addFilter(
    lambda record: "KeyboardInterrupt caught in kernel" not in record.getMessage()
)
