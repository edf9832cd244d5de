"""Profiles: how large an experiment is. What to train is a recipe, how much of it is a profile."""

from dataclasses import dataclass

from lib import paths
from lib.checked import closest


@dataclass(frozen=True)
class Profile:
    """Data, encoder and length of a run.

    Attributes:
        name: `mini`, shipped data; `light` and `small`, real data with the smaller and the larger
            shipped encoder; `full`, the papers' setting; `chinese`, that of SDA's Table 7.
        recipes: first part of the recipes' names at this size.
        model: encoder to start from; None takes the recipe's own backbone.
        corpus: training text, a name of `lib.data.corpus`; n_sentences: how many of it (None: all).
        max_steps: None trains the recipe's epochs.
        eval_every: steps between dev scores; None takes the recipe's.
        dev: `mini`, `stsb` or `cnsd`; test: `mini`, `sts7` or `cnsd`.
        scoring: precision of the embeddings that are scored; `auto`, bf16 where that is quicker,
            moves a score of midi-BERT by less than 0.01.
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
    scoring: str = "fp32"

    def metric(self, name: str) -> str:
        """The name at this profile of a metric that is named for the real sets.

        Example:
            >>> profile("mini").metric("sts7_test_avg_best")
            'mini_test_spearman_best'
        """
        if self.test != "sts7":
            name = name.replace("sts7_test_avg", f"{self.test}_test_spearman")
        return name.replace("stsb_dev", f"{self.dev}_dev")


_MINI, _MIDI = str(paths.MINI_BERT), str(paths.MIDI_BERT)
PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile("mini", "mini", _MINI, "mini", None, 15, 5, "mini", "mini"),
        Profile("light", "light", _MINI, "wikipedia", 50_000, 60, 20, "stsb", "sts7"),
        Profile("small", "small", _MIDI, "wiki1m_head", None, 300, 50, "stsb", "sts7", "auto"),
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
        hint = closest(name, PROFILES) or f": choose one of {', '.join(PROFILES)}"
        raise ValueError(f"unknown profile {name!r}{hint}")
    return PROFILES[name]
