"""What was measured: committed runs, and the papers' claims. Needs no torch."""

from lib.results.committed import OF_A_STEP, every_run, histories, members, rows, steps
