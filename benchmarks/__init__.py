"""Side-by-side timings against public libraries."""
