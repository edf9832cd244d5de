"""Kills, damaged input and races, counted: `python -m benchmarks.robustness`."""
