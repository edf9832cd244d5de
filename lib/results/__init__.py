"""What was measured: committed runs, the papers' claims, public runs of others. Needs no torch."""

from lib.results.committed import OF_A_STEP, every_run, histories, members, public_runs, rows, steps
