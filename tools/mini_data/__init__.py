"""Builder of the mini data set in `data/mini`: lexicon, sentence patterns, scenes, grading,
validation."""
