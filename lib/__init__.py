"""Training and evaluation helpers of the contrastive sentence embedding course."""
