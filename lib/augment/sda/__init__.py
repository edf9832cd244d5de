"""SDA: rules on syntax trees that insert punctuation, modal verbs and negations.

`parse` makes the trees, `trees` is what a rule sees of one, `rules` and `chinese` are the rules,
`english` the words.

Source: Zhu et al. 2024 (SDA), §4 and Appendix A.
"""

from lib.augment.sda.rules import RULES, VERSION, apply, double_negation, modal_verbs, negation
from lib.augment.sda.trees import Augmented, Edit, Tree
