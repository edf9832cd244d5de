"""Profiles: on which data, from which encoder and for how long a run trains; and their texts."""

import os
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import yaml

from lib import data, paths
from lib.checked import closest


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Data, encoder and length of a run.

    Attributes:
        name: `mini`, shipped data; `light` and `small`, real data with the smaller and the larger
            shipped encoder; `full`, the papers' setting; `chinese`, that of SDA's Table 7.
        recipe_prefix: first part of the recipes' names at this size.
        corpus: training text, a name of `lib.data.corpus`; n_sentences: how many of it (None: all).
        dev: `mini`, `stsb` or `cnsd`; test: `mini`, `sts7` or `cnsd`.
        model: encoder to start from; None takes the recipe's own backbone.
        max_steps: None trains the recipe's epochs.
        eval_every: steps between dev scores; None takes the recipe's.
        scoring: precision of the embeddings that are scored; `auto`, bf16 where that is quicker,
            moves a score of midi-BERT by less than 0.01.
    """

    name: str
    recipe_prefix: str
    corpus: str
    dev: str
    test: str
    model: str | None = None
    n_sentences: int | None = None
    max_steps: int | None = None
    eval_every: int | None = None
    scoring: str = "fp32"

    def metric(self, name: str) -> str:
        """The name at this profile of a metric that is named for the real sets.

        Example:
            >>> profile_named("mini").metric("sts7_test_avg_best")
            'mini_test_spearman_best'
        """
        if self.test != "sts7":
            name = name.replace("sts7_test_avg", f"{self.test}_test_spearman")
        return name.replace("stsb_dev", f"{self.dev}_dev")


_FILE = Path(__file__).with_name("profiles.yaml")
PROFILES: dict[str, Profile] = {}
for _name, _row in yaml.safe_load(_FILE.read_text("utf-8")).items():
    if "model" in _row:
        _row["model"] = str(paths.ROOT / _row["model"])
    PROFILES[_name] = Profile(name=_name, **_row)


def profile_named(name: str) -> Profile:
    """The profile called `name`.

    Raises:
        ValueError: no such profile.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}{closest(name, PROFILES, 'there are')}")
    return PROFILES[name]


def of_profile(profile: Profile, sentences: int) -> dict[str, object]:
    """What an id says of a profile."""
    found = {"profile": profile.name, "corpus": profile.corpus, "n_sentences": sentences}
    return found | {"dev": profile.dev, "test": profile.test}


def with_text_at_hand(profile: Profile, data_dir: str | None = None) -> Profile:
    """The profile with the training text that is here: wiki1m in place of the Wikipedia dumps, with
    a warning."""
    wanted, corpus = profile.corpus, data.at_hand(profile.corpus, data_dir)
    if corpus != wanted:
        warnings.warn(f"the corpus {wanted!r} is not here: {corpus!r} is read", stacklevel=2)
    return replace(profile, corpus=corpus)


def sentences_of(profile: Profile, data_dir: str | None = None) -> list[str]:
    """The profile's training text. The sample is the same for every seed.

    It is kept until another one is asked for or one of its files changes.
    """
    stats = map(os.stat, data.corpus_files(profile.corpus, data_dir))
    stamps = tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats)
    return list(_corpus(profile.corpus, data_dir, profile.n_sentences, stamps))


@lru_cache(maxsize=1)
def _corpus(name: str, data_dir: str | None, n: int | None, stamps: tuple) -> tuple[str, ...]:
    return tuple(data.training_text(name, data_dir, n))
