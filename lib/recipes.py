"""Recipes: the hyper-parameters of one row of a paper, or of one row of ours, as data:
`recipes.yaml`.

Every field is checked against its type and its range when a recipe is made, before anything is
loaded. What the papers and their authors' code say of each field stands in
`data/papers/settings.csv`.

`python -m lib recipes list` names them with their sources, `python -m lib recipes show NAME` prints
one.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any

import yaml

POOLINGS = (
    "cls",
    "mean",
    "last2_mean",
    "first_last_mean_embeddings",
    "first_last_mean_layer_1",
    "last_token",
)
EDITS = (
    "crop",
    "delete",
    "mask",
    "repeat",
    "punctuate",
    "swap",
    "replace_synonyms",
    "insert_synonyms",
)
VIEWS = ("none", "shuffle", "token_cutoff", "feature_cutoff", "span_cutoff", "dropout", "keep_span")
WITHOUT_RATE = ("none", "shuffle")
HEADS = ("none", "linear", "tanh", "relu", "simclr", "bn_mlp", "simsiam")
SIZED_HEADS = ("simclr", "bn_mlp", "simsiam")
SINGLE_LAYER_HEADS = ("linear", "tanh", "relu")
BATCH_NORM_HEADS = ("simclr", "bn_mlp", "simsiam")
LARGEST_LAYER = 65_536

CHOICES: dict[str, tuple[str, ...]] = {
    "positive": ("dropout", "identical", "file", "sda", *EDITS),
    "pooling": POOLINGS,
    "eval_pooling": POOLINGS,
    "also_pooling": ("", *POOLINGS),
    "transfer_pooling": ("", *POOLINGS),
    "loss": ("info_nce", "nt_xent", "nt_xent_sum", "simsiam"),
    "schedule": ("linear", "constant"),
    "negative": ("none", "una", "sda"),
    "negative_mode": ("doubled", "extra", "margin"),
    "negative_select": ("tfidf", "random"),
    "negative_replace": ("window", "uniform"),
    "rule": ("punctuation", "modal_verbs", "double_negation", "negation", "ensemble"),
    "representation": (
        "none",
        "interpolate",
        "extrapolate",
        "sample_linearly",
        "add_gaussian",
        "jitter_pca",
    ),
    "view1": VIEWS,
    "view2": VIEWS,
    "head_init": ("bert", "torch"),
}
# Intervals as in mathematics: a round bracket leaves the end out.
RANGES: dict[str, str] = {
    "positive_rate": "[0, 1]",
    "temperature": "(0, 100]",
    "lr": "[0, 100]",
    "warmup": "[0, 1]",
    "batch_size": "[2, 1000000]",
    "epochs": "[1, 1000000]",
    "max_length": "[3, 1000000]",
    "weight_decay": "[0, 100]",
    "adam_eps": "(0, 1]",
    "grad_clip": "[0, 1000000]",
    "dropout": "[0, 1)",
    "eval_every": "[1, 1000000000]",
    "patience": "[0, 1000000000]",
    "every": "[1, 1000000000]",
    "beta": "[0, 100]",
    "radius": "(0, 1000000000]",
    "delta": "[0, 100]",
    "augmented_share": "[0, 1]",
    "representation_strength": "[0, 100]",
    "rate1": "[0, 1]",
    "rate2": "[0, 1]",
    "loss_weight": "(0, 1000000]",
    "lora_rank": "[0, 4096]",
    "dev_max_length": "0 or [3, 1000000]",
    "test_max_length": "0 or [3, 1000000]",
    "chunk_size": "[0, 1000000]",
}
NOT_EMPTY = ("name", "backbone", "synonyms", "parser")
# The parts of a recipe in `recipes.yaml`, and for each of their fields the name that papermill and
# grids know it by.
PARTS: dict[str, dict[str, str]] = {
    "encoder": {name: name for name in ("backbone", "pooling", "dropout", "lora_rank")},
    "positive": {
        "kind": "positive",
        "rate": "positive_rate",
        "file": "positive_file",
        "synonyms": "synonyms",
        "rule": "rule",
        "share": "augmented_share",
        "parser": "parser",
        "nouns": "dn_nouns",
    },
    "negative": {
        "kind": "negative",
        "mode": "negative_mode",
        "every": "every",
        "beta": "beta",
        "radius": "radius",
        "select": "negative_select",
        "replace": "negative_replace",
        "delta": "delta",
    },
    "views": {
        **{name: name for name in ("view1", "rate1", "view2", "rate2", "representation")},
        "strength": "representation_strength",
    },
    "head": {"kind": "head", "init": "head_init", "per_view": "head_per_view"},
    "objective": {"loss": "loss", "temperature": "temperature", "weight": "loss_weight"},
    "optimiser": {
        name: name
        for name in (
            *("lr", "schedule", "warmup", "warmup_from_zero"),
            *("weight_decay", "adam_eps", "grad_clip", "bias_correction"),
        )
    },
    "batches": {
        "size": "batch_size",
        **{name: name for name in ("epochs", "max_length", "bucket", "drop_last", "chunk_size")},
    },
    "evaluation": {
        "pooling": "eval_pooling",
        "head": "eval_head",
        "every": "eval_every",
        "at_epoch_ends": "eval_at_epoch_ends",
        "restarts": "eval_restarts",
        **{name: name for name in ("patience", "also_pooling", "transfer_pooling", "whiten")},
        **{name: name for name in ("dev_max_length", "test_max_length")},
    },
}


@dataclass(frozen=True)
class Recipe:
    """Everything that defines a training but the data, the seed and the machine.

    Each field is checked against its type, its range or its choices, and against the fields it goes
    with, when a recipe is made.

    Attributes:
        name: key of the recipe, the first part of a run's id.
        source: paper and section the numbers come from.
        backbone: Hugging Face id or folder the row was published with.
        positive: how the second view is made: `dropout` encodes the sentence twice, `identical`
            uses one encoding for both views, `file` reads it from `positive_file`, `sda` applies
            `rule`, any other name is a text augmentation of `lib.augment`.
        positive_rate: share of the words the text augmentation concerns, in [0, 1].
        head, pooling: training time; eval_pooling, eval_head: evaluation time (`lib.encoder`).
        loss: `info_nce` (one direction) or `nt_xent` (both); temperature: τ.
        lr: peak learning rate; schedule: `linear` decay to 0 or `constant`, after `warmup` (share
            of all steps).
        batch_size: sentences in a batch; epochs: passes over the corpus; max_length: tokens a
            sentence is cut at, special tokens included.
        weight_decay, adam_eps, grad_clip: AdamW and the gradient's largest norm (0: not clipped).
        dropout: probability inside the backbone, in [0, 1).
        eval_every: steps between dev scores; patience: dev scores without a new best before
            stopping (0: never).
        positive_file: text file aligned with the training text line by line, e.g. paraphrases.
        synonyms: where synonym augmentations look: `wordnet` or a tab-separated file.
        negative: hard negatives: `none`, `una` or `sda` (the sentence negated); `every`: on every
            α-th step, from step 0.
        negative_mode: `doubled` makes each negative an anchor with itself as positive, `extra` a
            candidate of all, `margin` one of its own sentence only, relaxed by `delta` (δ).
        rule: of `lib.augment.sda`, for the share `augmented_share` of the sentences; `parser`: a
            spaCy pipeline, installed or a folder.
        beta, radius, negative_select, negative_replace: β, r, and what UNA draws by
            (`lib.augment.una.UNA`); a radius below 1 is that share of the vocabulary (UNA's 4,000
            of 451,691 terms are 0.0089 of it).
        representation: augmentation of the second view's embeddings (`lib.augment.representations`)
            or `none`; representation_strength: its λ.
        view1, view2: views of the two encodings in the embedding layer
            (`lib.augment.embeddings.VIEWS`); rate1, rate2: their rates, 0 for those that have none.
        loss_weight: factor of the loss. With AdamW it only moves the gradient against `grad_clip`
            and `adam_eps`. SimSiam's loss is the mean of its two directions; ConSERT's code adds
            them, which is a weight of 2.
        also_pooling: a second pooling that the finished encoder is tested with, without head.
        transfer_pooling: pooling with which the best checkpoint meets the seven transfer tasks ("":
            it does not).
        eval_at_epoch_ends: dev scores there too.
        whiten: at evaluation embeddings are whitened (`lib.evaluate.whitened_encode`), with the
            mean and covariance of the sentences that are compared.
        lora_rank: r of LoRA (`lib.encoder.adapters`); 0 trains all weights.
        bucket: batches hold sentences of similar length, which saves padding and takes away the
            length as a cue for telling negatives apart; False shuffles, as all papers' code does.
        drop_last: leave out the sentences that do not fill the last batch of an epoch.
        bias_correction: of AdamW's moments (Kingma & Ba 2015, Algorithm 1); ConSERT's code switches
            it off.
        warmup_from_zero: the first step of a warm-up has the rate 0, as in `transformers`; False
            begins at one part.
        head_init: weights of a single-layer head: `bert` N(0, initializer_range) and no bias,
            `torch` as `nn.Linear`.
        head_per_view: the head's batch norm takes the statistics of each view by itself, not of
            both together.
        eval_restarts: steps to the next dev score are counted anew in each epoch.
        dev_max_length, test_max_length: tokens that dev and test sentences are cut at, special
            tokens included (0: the longest the model reads).
        dn_nouns: double negation may also put "no" before a noun, as the text of SDA's §4.3 (not
            its Algorithm 3) says.
        chunk_size: most sentences that are in memory with their activations; the others are encoded
            again in the backward pass (0: all of them are).

    Raises:
        ValueError: a field of another type or outside what it allows, or two that contradict each
            other.
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
    positive_file: str = ""
    synonyms: str = "wordnet"
    negative: str = "none"
    negative_mode: str = "doubled"
    every: int = 5
    beta: float = 0.5
    radius: float = 4000
    negative_select: str = "tfidf"
    negative_replace: str = "window"
    delta: float = 0.5
    rule: str = "punctuation"
    augmented_share: float = 1.0
    parser: str = "data/mini-spacy"
    representation: str = "none"
    representation_strength: float = 0.1
    view1: str = "none"
    rate1: float = 0.0
    view2: str = "none"
    rate2: float = 0.0
    loss_weight: float = 1.0
    also_pooling: str = ""
    transfer_pooling: str = ""
    eval_at_epoch_ends: bool = False
    whiten: bool = False
    lora_rank: int = 0
    bucket: bool = False
    drop_last: bool = True
    bias_correction: bool = True
    warmup_from_zero: bool = False
    head_init: str = "bert"
    head_per_view: bool = False
    eval_restarts: bool = False
    dev_max_length: int = 0
    test_max_length: int = 0
    dn_nouns: bool = False
    chunk_size: int = 0

    def __post_init__(self) -> None:
        for name in _TYPES:
            object.__setattr__(self, name, checked(name, getattr(self, name)))
        _check_together(self)

    def in_use(self) -> dict[str, object]:
        """All fields but the name, the source, and those of parts that are switched off.

        Example:
            >>> recipe("mini_simcse").in_use().get("beta"), recipe("mini_una").in_use()["beta"]
            (None, 0.5)
        """
        off = _switched_off(self) | {"name", "source"}
        return {name: value for name, value in asdict(self).items() if name not in off}

    def parameters(self) -> dict[str, object]:
        """What a run is recorded by: the fields in use, but `chunk_size`, which changes no number.

        A field that was added for one method is left out where it has its default: it leaves the
        runs of others alone.

        Example:
            >>> recipe("mini_simcse").parameters().get("beta"), recipe(
            ...     "mini_una").parameters()["beta"]
            (None, 0.5)
        """
        usual = {name for name in _ADDED if getattr(self, name) == getattr(Recipe, name)}
        kept = self.in_use().items()
        return {name: value for name, value in kept if name not in usual | {"chunk_size"}}

    def changed(self, **changes) -> "Recipe":
        """A copy with some fields changed; an unknown field is an error that names the closest one.

        The rate of a positive or a view goes with it: where these change to one without a rate,
        it becomes 0, unless it is given.

        Example:
            >>> recipe("paper_simcse_bert").changed(temperature=0.1).temperature
            0.1
            >>> recipe("mini_consert").changed(view1="shuffle").rate1
            0.0
        """
        for name in changes:
            _known(name)
        for part, rate in _RATES.items():
            if part in changes and not _takes_rate(part, checked(part, changes[part])):
                changes.setdefault(rate, 0.0)
        return replace(self, **changes)


_TYPES: dict[str, type] = {field.name: field.type for field in fields(Recipe)}  # type: ignore[misc]
_KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
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
    """`value` as the type that a field of `Recipe` declares, within what the field allows.

    Nothing is rounded or guessed: a whole number may be written 1e2, a number 3, and a NumPy
    scalar stands for what it holds; True is no number, "none" no truth value, and NaN and
    infinity are nothing.

    Raises:
        ValueError: no such field, another type, or a value outside the range or the choices.

    Example:
        >>> checked("batch_size", 1e2), checked("lr", 1)
        (100, 1.0)
    """
    _known(name)
    exact = _exact(value, _TYPES[name])
    if exact is None:
        raise ValueError(f"{name} must be {_allowed(name)}, got {value!r}")
    if name in RANGES and not any(_within(exact, part) for part in RANGES[name].split(" or ")):
        raise ValueError(f"{name} must be {_allowed(name)}, got {value!r}")
    if name in CHOICES and exact not in CHOICES[name]:
        close = get_close_matches(exact, [choice for choice in CHOICES[name] if choice], 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{name} must be {_allowed(name)}, got {value!r}{hint}")
    if name in NOT_EMPTY and not exact.strip():
        raise ValueError(f"{name} must not be empty")
    if name == "head":
        _check_head(exact)
    if name == "radius" and exact > 1 and not exact.is_integer():
        raise ValueError(
            f"radius must be a whole number of terms, or a share of them below 1, got {value!r}"
        )
    return exact


def value_of(name: str, text: str) -> Any:
    """The value of a field written as text, on a command line or in a table, read by the type the
    field declares.

    Raises:
        ValueError: no such field, or the text is no value of it.

    Example:
        >>> value_of("lr", "3e-5"), value_of("epochs", "010"), value_of("whiten", "true")
        (3e-05, 10, True)
    """
    _known(name)
    kind, word = _TYPES[name], text.strip()
    if kind is bool and word.lower() in ("true", "false"):
        return checked(name, word.lower() == "true")
    if kind in (int, float) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", word):
        return checked(name, int(word) if re.fullmatch(r"[-+]?\d+", word) else float(word))
    return checked(name, text)


def check_whole_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse what is no whole number from `least` to `most`; for the parameters of a run that are
    no recipe fields.

    Raises:
        ValueError: it is none.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        highest = "" if most is None else f" and at most {most:,}"
        raise ValueError(
            f"{name} must be a whole number of at least {least}{highest}, got {value!r}"
        )


def _known(name: str) -> None:
    if name not in _TYPES:
        close = get_close_matches(name, _TYPES, 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"a recipe has no field {name!r}{hint}")


def _exact(value: Any, kind: type) -> Any:
    """`value` as `kind` if that is possible without a change, else None."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a NumPy scalar
        value = value.item()
    if kind is str and isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else None
    if kind is str or not isinstance(value, int | float):
        return None
    if not abs(value) < 1e300:  # NaN and infinity, too
        return None
    return float(value) if kind is float else int(value) if int(value) == value else None


def _within(value: float, interval: str) -> bool:
    """Whether a number lies in an interval such as "(0, 1]", or is the one that is written."""
    if interval[0] not in "[(":
        return value == float(interval)
    low, high = (float(end) for end in interval[1:-1].split(","))
    inside = low < value < high
    return (
        inside or (value == low and interval[0] == "[") or (value == high and interval[-1] == "]")
    )


def _allowed(name: str) -> str:
    if name in CHOICES:
        *most, last = (repr(choice) for choice in CHOICES[name])
        return f"{', '.join(most)} or {last}"
    kind = _KINDS[_TYPES[name]]
    return (
        kind
        if name not in RANGES
        else f"{kind}, {RANGES[name].replace('[', 'in [', 1).replace('(', 'in (', 1)}"
    )


def _head(name: str) -> str:
    return name.partition(":")[0]


def _check_head(head: str) -> None:
    kind, *sizes = head.split(":")
    if kind not in HEADS:
        close = get_close_matches(kind, HEADS, 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"head must be one of {', '.join(HEADS)}, got {head!r}{hint}")
    if not sizes:
        return
    if (
        kind not in SIZED_HEADS
        or len(sizes) != 2
        or not all(re.fullmatch("[0-9]+", s) for s in sizes)
    ):
        raise ValueError(
            f"head {head!r}: sizes are written as in simclr:600:512 or simsiam:600:512"
        )
    if not all(1 <= int(size) <= LARGEST_LAYER for size in sizes):
        raise ValueError(f"head {head!r}: sizes must be whole numbers in [1, {LARGEST_LAYER}]")


def _takes_rate(part: str, value: str) -> bool:
    return value in EDITS if part == "positive" else value not in WITHOUT_RATE


def _check_together(chosen: "Recipe") -> None:
    """Refuse fields that contradict each other.

    Raises:
        ValueError: the message names the fields.
    """
    for part, rate in _RATES.items():
        value, share = getattr(chosen, part), getattr(chosen, rate)
        if share and not _takes_rate(part, value):
            raise ValueError(
                f"{rate}={share} means nothing with {part}={value!r}: set {rate}=0 or choose"
                f" another {part}"
            )
        if not share and _takes_rate(part, value):
            raise ValueError(
                f"{part}={value!r} at {rate}=0 changes nothing: give {rate}, a share in (0, 1]"
            )
    head, loss = _head(chosen.head), chosen.loss
    views = (chosen.view1, chosen.view2) != ("none", "none")
    if (head == "simsiam") != (loss == "simsiam"):
        raise ValueError(
            f"head and loss 'simsiam' need each other, got head {chosen.head!r} and loss {loss!r}"
        )
    if loss == "simsiam" and chosen.negative != "none":
        raise ValueError("the loss 'simsiam' has no negatives: set negative='none'")
    if chosen.positive == "identical" and views:
        raise ValueError(
            "positive='identical' encodes once: views in embedding space need 'dropout', which"
            " encodes twice"
        )
    if chosen.negative != "none" and chosen.negative_mode == "margin" and loss != "info_nce":
        raise ValueError(f"negative_mode='margin' is a form of the loss 'info_nce', got {loss!r}")
    if (chosen.positive, chosen.negative, chosen.rule) == ("sda", "sda", "negation"):
        raise ValueError(
            "rule='negation' makes the positives, which are the hard negatives of"
            " negative='sda' too"
        )
    if chosen.chunk_size and views:
        raise ValueError("chunk_size works without view1 and view2 only: set chunk_size=0")
    if chosen.chunk_size and head in BATCH_NORM_HEADS:
        raise ValueError(
            f"the batch norm of head {chosen.head!r} would see a chunk and not the batch:"
            " chunk_size=0"
        )


def _switched_off(chosen: "Recipe") -> set[str]:
    """Names of the fields that have no effect, since the part they belong to is not in use."""
    optional = ("lora_rank", "chunk_size", "whiten", "also_pooling", "transfer_pooling")
    off = {name for name in optional if not getattr(chosen, name)}
    off |= {
        rate
        for part, rate in _RATES.items()
        if part != "positive" and not _takes_rate(part, getattr(chosen, part))
    }
    off |= {view for view in ("view1", "view2") if getattr(chosen, view) == "none"}
    if chosen.negative == "none":
        off |= {"negative", "negative_mode", "every"}
    if chosen.negative != "una":
        off |= {"beta", "radius", "negative_select", "negative_replace"}
    if chosen.negative == "none" or chosen.negative_mode != "margin":
        off.add("delta")
    if chosen.positive != "sda":
        off |= {"rule", "augmented_share"}
    if chosen.positive != "sda" or chosen.rule not in ("double_negation", "ensemble"):
        off.add("dn_nouns")
    if "sda" not in (chosen.positive, chosen.negative):
        off.add("parser")
    if chosen.representation == "none":
        off |= {"representation", "representation_strength"}
    if chosen.positive != "file":
        off.add("positive_file")
    if not chosen.positive.endswith("_synonyms"):
        off.add("synonyms")
    if not chosen.warmup:
        off.add("warmup_from_zero")
    if _head(chosen.head) not in SINGLE_LAYER_HEADS:
        off.add("head_init")
    if _head(chosen.head) not in BATCH_NORM_HEADS:
        off.add("head_per_view")
    return off


def _read(path: Path) -> dict[str, Recipe]:
    """The recipes of a YAML file, each with what its bases say.

    Raises:
        ValueError: a base, a part or a field that there is not, or a value that its field does not
            allow.
    """
    file = yaml.safe_load(path.read_text(encoding="utf-8"))
    bases, rows = file["bases"], file["recipes"]
    return {
        name: Recipe(name, row["source"], **_inherited(name, row, bases))
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
        if part in ("source", "base"):
            continue
        if part not in PARTS or not values.keys() <= PARTS[part].keys():
            unknown = part if part not in PARTS else sorted(values.keys() - PARTS[part].keys())[0]
            raise ValueError(
                f"recipe {name!r}: there is no {unknown!r} in"
                f" {part if part in PARTS else 'a recipe'!r}"
            )
        found |= {PARTS[part][field]: value for field, value in values.items()}
    return found


RECIPES: dict[str, Recipe] = _read(Path(__file__).with_name("recipes.yaml"))


def recipe(name: str, **changes) -> Recipe:
    """The recipe called `name`, with `changes` applied.

    Raises:
        ValueError: no such recipe or field.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name].changed(**changes)
