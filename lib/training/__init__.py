"""How an encoder is trained: the recipe, its batches, its loss and the loop."""
