"""Recipes: the hyper-parameters of one row of a paper, or of one row of ours, as data:
`recipes.yaml`.

A recipe has parts (`lib.settings`), each of which knows its fields, checks them and says which of
them have an effect. What the papers and their authors' code say of each field stands in
`data/papers/settings.csv`.

`python -m lib recipes list` names them with their sources, `python -m lib recipes show NAME` prints
one.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lib.settings import (
    LOSSES_WITH_A_HEAD,
    BatchesPart,
    EncoderPart,
    EvaluationPart,
    HeadPart,
    NegativePart,
    ObjectivePart,
    OptimiserPart,
    PositivePart,
    ViewsPart,
    checked_as,
    closest,
    takes_rate,
)


@dataclass(frozen=True)
class Recipe:
    """Everything that defines a training but the data, the seed and the machine.

    The parts are described in `lib.settings`: `recipe.negative.beta`, `recipe.optimiser.lr`. A run
    is recorded, and steered from a command line, by names without parts, `beta` and `lr`
    (`FIELDS`).

    Attributes:
        name: key of the recipe, the first part of a run's id.
        source: paper and section the numbers come from.

    Raises:
        ValueError: two parts that contradict each other.
    """

    name: str
    source: str
    encoder: EncoderPart = field(default_factory=EncoderPart)
    positive: PositivePart = field(default_factory=PositivePart)
    negative: NegativePart = field(default_factory=NegativePart)
    views: ViewsPart = field(default_factory=ViewsPart)
    head: HeadPart = field(default_factory=HeadPart)
    objective: ObjectivePart = field(default_factory=ObjectivePart)
    optimiser: OptimiserPart = field(default_factory=OptimiserPart)
    batches: BatchesPart = field(default_factory=BatchesPart)
    evaluation: EvaluationPart = field(default_factory=EvaluationPart)

    def __post_init__(self) -> None:
        _check_together(self)

    def values(self) -> dict[str, Any]:
        """All fields but name and source, by the names that papermill knows them by.

        Example:
            >>> recipe("paper_una_bert").values()["negative_mode"]
            'doubled'
        """
        found: dict[str, Any] = {}
        for part in PARTS:
            found |= getattr(self, part).values()
        return found

    def in_use(self) -> dict[str, Any]:
        """The fields that have an effect, as `values`.

        Example:
            >>> recipe("mini_simcse").in_use().get("beta"), recipe("mini_una").in_use()["beta"]
            (None, 0.5)
        """
        idle = {(part, name) for part in PARTS for name in getattr(self, part).idle()}
        if self.negative.kind == "sda":
            idle.discard(("positive", "parser"))
        if self.encoder.dropout2:  # two passes, each with its own batch norm
            idle.add(("head", "per_view"))
        values = self.values()
        return {name: values[name] for name, place in FIELDS.items() if place[:2] not in idle}

    def parameters(self) -> dict[str, Any]:
        """What a run is recorded by: the fields in use.

        A field that was added for one method is left out where it has its default: it leaves the
        runs of others alone.

        Example:
            >>> recipe("mini_simcse").parameters().get("whiten")
            >>> recipe("mini_simcse", whiten=True).parameters()["whiten"]
            True
        """
        used = self.in_use().items()
        usual = {name for name, value in used if name in _ADDED and value == FIELDS[name].default}
        return {name: value for name, value in used if name not in usual}

    def changed(self, **changes: Any) -> "Recipe":
        """A copy with some fields changed, by the names that papermill knows them by.

        The rate of a positive or a view goes with it: where these change to one without a rate,
        it becomes 0, unless it is given.

        Raises:
            ValueError: an unknown field, with the closest one; a value that its field does not
                allow, or that contradicts another.

        Example:
            >>> recipe("paper_simcse_bert").changed(temperature=0.1).objective.temperature
            0.1
            >>> recipe("mini_consert").changed(view1="shuffle").views.rate1
            0.0
        """
        values = {name: checked(name, value) for name, value in changes.items()}
        for name, rate in _RATES.items():
            if name in values and not takes_rate(name, values[name]):
                values.setdefault(rate, 0.0)
        return replace(self, **_parts({**self.values(), **values}))


class Place(NamedTuple):
    """Where a field stands in a recipe, and how it is declared."""

    part: str
    name: str
    declared: Field

    @property
    def default(self) -> Any:
        """What it is unless a recipe says otherwise."""
        return self.declared.default


PARTS: dict[str, Any] = {
    part.name: part.type for part in fields(Recipe) if part.name not in ("name", "source")
}
# papermill's and the grids' name of a field → its place: the one table of both.
FIELDS: dict[str, Place] = {
    name: Place(part, declared.name, declared)
    for part, kind in PARTS.items()
    for name, declared in kind.declared().items()
}
_RATES = {"positive": "positive_rate", "view1": "rate1", "view2": "rate2"}
_ADDED = (
    "view1",
    "rate1",
    "view2",
    "rate2",
    "loss_weight",
    "also_pooling",
    "transfer_pooling",
    "eval_at_epoch_ends",
    "whiten",
    "lora_rank",
    "bucket",
    "drop_last",
    "bias_correction",
    "warmup_from_zero",
    "head_init",
    "head_per_view",
    "eval_restarts",
    "dev_max_length",
    "test_max_length",
    "dn_nouns",
)


def checked(name: str, value: object) -> Any:
    """`value` as the type that the field declares, within what the field allows.

    Raises:
        ValueError: no such field, another type, or a value outside the range or the choices.

    Example:
        >>> checked("batch_size", 1e2), checked("lr", 1)
        (100, 1.0)
    """
    return checked_as(_place(name).declared, name, value)


def value_of(name: str, text: str) -> Any:
    """The value of a field written as text, on a command line or in a table, read by the type the
    field declares.

    Raises:
        ValueError: no such field, or the text is no value of it.

    Example:
        >>> value_of("lr", "3e-5"), value_of("epochs", "010"), value_of("whiten", "true")
        (3e-05, 10, True)
    """
    kind, word = _place(name).declared.type, text.strip()
    if kind is bool and word.lower() in ("true", "false"):
        return checked(name, word.lower() == "true")
    if kind in (int, float) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", word):
        return checked(name, int(word) if re.fullmatch(r"[-+]?\d+", word) else float(word))
    return checked(name, text)


def _place(name: str) -> Place:
    if name not in FIELDS:
        raise ValueError(f"a recipe has no field {name!r}{closest(name, FIELDS)}")
    return FIELDS[name]


def _parts(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that hold these values, named as papermill names them."""
    found: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for name, value in values.items():
        place = _place(name)
        found[place.part][place.name] = value
    return {part: PARTS[part](**own) for part, own in found.items()}


def _check_together(chosen: Recipe) -> None:
    """Refuse parts that contradict each other.

    Raises:
        ValueError: the message names the fields.
    """
    head, loss = chosen.head, chosen.objective.loss
    positive, negative = chosen.positive, chosen.negative
    for name in LOSSES_WITH_A_HEAD:
        if (head.name == name) != (loss == name):
            raise ValueError(
                f"head and loss {name!r} need each other, got head {head.kind!r} and loss {loss!r}"
            )
    if loss in LOSSES_WITH_A_HEAD and (negative.in_use or negative.further):
        raise ValueError(
            f"the loss {loss!r} has no negatives: set negative='none', queue=0 and noise=0"
        )
    if chosen.views.in_use and not positive.encodes_twice:
        raise ValueError(
            "positive='identical' encodes once: views in embedding space need 'dropout', which"
            " encodes twice"
        )
    if negative.in_use and negative.mode == "margin" and loss != "info_nce":
        raise ValueError(f"negative_mode='margin' is a form of the loss 'info_nce', got {loss!r}")
    if negative.in_use and negative.mode == "margin" and negative.further:
        raise ValueError("negative_mode='margin' has no further negatives: set queue=0 and noise=0")
    _check_encodings(chosen)
    if (positive.kind, negative.kind, positive.rule) == ("sda", "sda", "negation"):
        raise ValueError(
            "rule='negation' makes the positives, which are the hard negatives of"
            " negative='sda' too"
        )
    if chosen.batches.chunk_size and chosen.views.in_use:
        raise ValueError("chunk_size works without view1 and view2 only: set chunk_size=0")
    if chosen.batches.chunk_size and head.normalises:
        raise ValueError(
            f"the batch norm of head {head.kind!r} would see a chunk and not the batch:"
            " chunk_size=0"
        )


def _check_encodings(chosen: Recipe) -> None:
    """Refuse a second dropout or a queue where one forward pass does not allow it.

    Raises:
        ValueError: the message names the fields.
    """
    if chosen.encoder.dropout2 and not chosen.positive.encodes_twice:
        raise ValueError("positive='identical' encodes once: set dropout2=0")
    if chosen.encoder.dropout2 and (chosen.views.in_use or chosen.batches.chunk_size):
        raise ValueError("dropout2 works without view1, view2 and chunk_size only: set dropout2=0")
    if chosen.negative.queue and chosen.head.normalises:
        raise ValueError(
            f"the batch norm of head {chosen.head.kind!r} would see the queue's sentences, too:"
            " set queue=0"
        )


def _read(path: Path) -> dict[str, Recipe]:
    """The recipes of a YAML file, each with what its bases say.

    Raises:
        ValueError: a base, a part or a field that there is not, or a value that its field does not
            allow.
    """
    file = yaml.safe_load(path.read_text(encoding="utf-8"))
    bases, rows = file["bases"], file["recipes"]
    return {
        name: Recipe(name, row["source"], **_parts(_inherited(name, row, bases)))
        for name, row in rows.items()
    }


def _inherited(name: str, row: Mapping[str, Any], bases: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row and of its bases; the later base wins, the row itself over all."""
    found: dict[str, Any] = {}
    for base in row.get("base", ()):
        if base not in bases:
            raise ValueError(f"recipe {name!r}: there is no base {base!r}")
        found |= _inherited(base, bases[base], bases)
    for part, values in row.items():
        if part not in ("source", "base"):
            found |= _called(name, part, values)
    return found


def _called(recipe_name: str, part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a part by the names that papermill knows them by."""
    if part not in PARTS:
        raise ValueError(f"recipe {recipe_name!r}: there is no {part!r} in 'a recipe'")
    names = {declared.name: name for name, declared in PARTS[part].declared().items()}
    for unknown in sorted(values.keys() - names.keys()):
        raise ValueError(f"recipe {recipe_name!r}: there is no {unknown!r} in {part!r}")
    return {names[own]: value for own, value in values.items()}


RECIPES: dict[str, Recipe] = _read(Path(__file__).with_name("recipes.yaml"))


def recipe(name: str, **changes: Any) -> Recipe:
    """The recipe called `name`, with `changes` applied.

    Raises:
        ValueError: no such recipe or field.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name].changed(**changes)
