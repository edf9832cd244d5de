"""Profiles: how large an experiment is. What to train is a recipe, how much of it is a profile."""

from dataclasses import dataclass

from lib import paths


@dataclass(frozen=True)
class Profile:
    """Data, encoder and length of a run.

    Attributes:
        name: `mini`, `small`, `full`, or `chinese`, the setting of SDA's Table 7.
        recipes: first part of the recipes' names at this size, `mini` or `paper`.
        model: encoder to start from; None takes the recipe's own backbone.
        corpus: training text, a name of `lib.data.corpus`; n_sentences: how many of it (None: all).
        max_steps: None trains the recipe's epochs.
        eval_every: steps between dev scores; None takes the recipe's.
        dev: `mini`, `stsb` or `cnsd`; test: `mini`, `sts7` or `cnsd`.
    """

    name: str
    recipes: str
    model: str | None
    corpus: str
    n_sentences: int | None
    max_steps: int | None
    eval_every: int | None
    dev: str
    test: str


PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile("mini", "mini", str(paths.MINI_BERT), "mini", None, 15, 5, "mini", "mini"),
        Profile("small", "mini", str(paths.MINI_BERT), "wikipedia", 50_000, 60, 20, "stsb", "sts7"),
        Profile("full", "paper", None, "wiki1m", None, None, None, "stsb", "sts7"),
        Profile("chinese", "paper", None, "simclue", None, None, None, "cnsd", "cnsd"),
    )
}


def profile(name: str) -> Profile:
    """The profile called `name`.

    Raises:
        ValueError: no such profile.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}: choose one of {', '.join(PROFILES)}")
    return PROFILES[name]
