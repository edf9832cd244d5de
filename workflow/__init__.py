"""Grids of runs: the tables of the papers, and our own, as files of notebook parameters."""
