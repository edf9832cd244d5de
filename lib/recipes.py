"""Recipes: the hyper-parameters of one row of a paper, or of one row of ours, as data."""

from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches


@dataclass(frozen=True)
class Recipe:
    """Everything that defines a training but the data, the seed and the machine.

    Attributes:
        name: key of the recipe, the first part of a run's id.
        source: paper and section the numbers come from.
        backbone: Hugging Face id or folder the row was published with.
        positive: how the second view is made: `dropout` encodes the sentence twice, `identical` uses one
            encoding for both views, any other name is a text augmentation of `lib.augment`.
        positive_rate: share of the words the text augmentation concerns, in [0, 1].
        head, pooling: training time; eval_pooling, eval_head: evaluation time (`lib.encoder`).
        loss: `info_nce` (one direction) or `nt_xent` (both); temperature: τ.
        lr: peak learning rate; schedule: `linear` decay to 0 or `constant`, after `warmup` (share of all steps).
        batch_size: sentences in a batch; epochs: passes over the corpus; max_length: tokens a sentence is cut at.
        weight_decay, adam_eps, grad_clip: AdamW and the gradient's largest norm (0: not clipped).
        dropout: probability inside the backbone, in [0, 1).
        eval_every: steps between dev scores; patience: dev scores without a new best before stopping (0: never).
    """

    name: str
    source: str
    backbone: str = "bert-base-uncased"
    positive: str = "dropout"
    positive_rate: float = 0.0
    head: str = "tanh"
    pooling: str = "cls"
    eval_pooling: str = "cls"
    eval_head: bool = False
    loss: str = "info_nce"
    temperature: float = 0.05
    lr: float = 3e-5
    schedule: str = "linear"
    warmup: float = 0.0
    batch_size: int = 64
    epochs: int = 1
    max_length: int = 32
    weight_decay: float = 0.0
    adam_eps: float = 1e-8
    grad_clip: float = 1.0
    dropout: float = 0.1
    eval_every: int = 125
    patience: int = 0

    def changed(self, **changes) -> "Recipe":
        """A copy with some fields changed; an unknown field is an error that names the closest one.

        Example:
            >>> recipe("paper_simcse_bert").changed(temperature=0.1).temperature
            0.1
        """
        for name in changes:
            if name not in asdict(self):
                close = get_close_matches(name, asdict(self), 1)
                raise ValueError(f"a recipe has no field {name!r}" + (f": did you mean {close[0]!r}?" if close else ""))
        return replace(self, **changes)


_SIMCSE = "Gao et al. 2021, SimCSE: appendix A and Table 5"

RECIPES: dict[str, Recipe] = {
    r.name: r
    for r in (
        Recipe("paper_simcse_bert", _SIMCSE),
        Recipe("paper_simcse_roberta", _SIMCSE, backbone="roberta-base", lr=1e-5, batch_size=512),
        Recipe(
            "paper_simcse_roberta_una",
            "Shu et al. 2024, UNA: the SimCSE baseline of Table 1",
            backbone="roberta-base",
            lr=5e-6,
            schedule="constant",
            eval_every=100,
        ),
        Recipe(
            "mini_simcse",
            "this course, chosen on dev scores only",
            backbone="data/mini-bert",
            eval_pooling="mean",
            lr=3e-4,
            temperature=0.1,
            eval_every=25,
        ),
        Recipe(
            "mini_simcse_mean",
            "this course: mean pooling in training too, the better of the two on STS-B dev",
            backbone="data/mini-bert",
            pooling="mean",
            eval_pooling="mean",
            lr=1e-3,
            temperature=0.1,
            eval_every=25,
        ),
    )
}


def recipe(name: str, **changes) -> Recipe:
    """The recipe called `name`, with `changes` applied.

    Raises:
        ValueError: no such recipe or field.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name].changed(**changes)
