"""Augmentations of text, aligned line by line (`edits`, `una`, `sda`), and of vectors.

`AUGMENTATIONS` maps a recipe's name to its function."""

from lib.augment.edits import AUGMENTATIONS, NEED_SYNONYMS, augment
