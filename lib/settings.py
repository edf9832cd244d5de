"""The parts of a recipe: what each field is, what it may hold, and when it has an effect.

A field is declared once: its default, the values it allows, and the name that papermill, grids and
run folders know it by, where that differs from its own (`Head.kind` is their `head`). Every value
is checked when a part is made, before anything is loaded.
"""

import os
import re
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral
from typing import Any

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
    "mask_span",
    "repeat",
    "punctuate",
    "edit",
    "prefix",
    "swap",
    "replace_synonyms",
    "insert_synonyms",
)
POSITIVES = ("dropout", "identical", "file", "sda", *EDITS)
NEGATIVES = ("none", "una", "sda")
NEGATIVE_MODES = ("doubled", "extra", "margin")
RULES = ("punctuation", "modal_verbs", "double_negation", "negation", "ensemble")
VIEWS = ("none", "shuffle", "token_cutoff", "feature_cutoff", "span_cutoff", "dropout", "keep_span")
REPRESENTATIONS = (
    "none",
    "interpolate",
    "extrapolate",
    "sample_linearly",
    "add_gaussian",
    "jitter_pca",
)
LOSSES = ("info_nce", "nt_xent", "nt_xent_sum", "arccon", "simsiam", "scd")
LOSSES_WITH_A_HEAD = ("simsiam", "scd")
HEADS = ("none", "linear", "tanh", "relu", "simclr", "bn_mlp", "simsiam", "scd")
SIZED_HEADS = ("simclr", "bn_mlp", "simsiam", "scd")
DRAWN_HEADS = ("linear", "tanh", "relu", "scd")
BATCH_NORM_HEADS = ("simclr", "bn_mlp", "simsiam", "scd")
HEAD_INITS = ("bert", "torch")
LARGEST_LAYER = 65_536

_KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}


def _one_of(default: str, choices: tuple[str, ...], called: str = "") -> Any:
    return field(default=default, metadata={"choices": choices, "called": called})


def _number(default: float, allowed: str, called: str = "") -> Any:
    """`allowed` is written as in mathematics: a round bracket leaves the end out."""
    return field(default=default, metadata={"range": allowed, "called": called})


def _flag(default: bool, called: str = "") -> Any:
    return field(default=default, metadata={"called": called})


def _text(default: str, called: str = "", empty: bool = False) -> Any:
    return field(default=default, metadata={"empty": empty, "called": called})


class Part:
    """Settings that belong together; frozen, checked, and silent where they have no effect."""

    def __post_init__(self) -> None:
        for name, declared in self.declared().items():
            value = checked_as(declared, name, getattr(self, declared.name))
            object.__setattr__(self, declared.name, value)

    @classmethod
    def declared(cls) -> dict[str, Field]:
        """The fields by the names that papermill knows them by."""
        return {f.metadata["called"] or f.name: f for f in fields(cls)}  # type: ignore[arg-type]

    def values(self) -> dict[str, Any]:
        """All fields by the names that papermill knows them by."""
        return {name: getattr(self, f.name) for name, f in self.declared().items()}

    def idle(self) -> set[str]:
        """Own names of the fields that have no effect, as the others are set."""
        return set()


@dataclass(frozen=True)
class EncoderPart(Part):
    """What is trained.

    Attributes:
        backbone: Hugging Face id or folder the row was published with.
        pooling: from token states to a vector, in training (`lib.encoder.pooling`).
        dropout: probability inside the backbone, in [0, 1).
        dropout2: that of the positives' encoding (0: the same).
        lora_rank: r of LoRA (`lib.encoder.adapters`); 0 trains all weights.
    """

    backbone: str = _text("bert-base-uncased")
    pooling: str = _one_of("cls", POOLINGS)
    dropout: float = _number(0.1, "[0, 1)")
    dropout2: float = _number(0.0, "[0, 1)")
    lora_rank: int = _number(0, "[0, 4096]")

    def idle(self) -> set[str]:
        """Without adapters there is no rank, without a second dropout nothing to say of it."""
        return {name for name in ("lora_rank", "dropout2") if not getattr(self, name)}


@dataclass(frozen=True)
class PositivePart(Part):
    """Where the second view of a sentence comes from.

    Attributes:
        kind: `dropout` encodes the sentence twice, `identical` uses one encoding for both views,
            `file` reads it from `file`, `sda` applies `rule`, any other name is a text
            augmentation of `lib.augment`.
        rate: share of the words the text augmentation concerns, in [0, 1]; of the sentences for
            `mask_span`, whose span has so many characters.
        file: text file aligned with the training text line by line, e.g. paraphrases.
        synonyms: where synonym augmentations look: `wordnet` or a tab-separated file.
        rule: of `lib.augment.sda`, for the share `share` of the sentences.
        parser: a spaCy pipeline, installed or a folder; SDA's hard negatives need it, too.
        nouns: double negation may also put "no" before a noun, as the text of SDA's §4.3 (not its
            Algorithm 3) says.
    """

    kind: str = _one_of("dropout", POSITIVES, "positive")
    rate: float = _number(0.0, "[0, 1]", "positive_rate")
    span: int = _number(5, "[1, 10000]")
    file: str = _text("", "positive_file", empty=True)
    synonyms: str = _text("wordnet")
    rule: str = _one_of("punctuation", RULES)
    share: float = _number(1.0, "[0, 1]", "augmented_share")
    parser: str = _text("data/mini-spacy")
    nouns: bool = _flag(False, "dn_nouns")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rate("positive", self.kind, "positive_rate", self.rate)

    @property
    def encodes_twice(self) -> bool:
        """Whether anchor and positive are two encodings."""
        return self.kind != "identical"

    def idle(self) -> set[str]:
        """What belongs to kinds other than this one."""
        found = set()
        if self.kind != "file":
            found.add("file")
        if not self.kind.endswith("_synonyms"):
            found.add("synonyms")
        if self.kind != "mask_span":
            found.add("span")
        if self.kind != "sda":
            found |= {"rule", "share", "parser"}
        if self.kind != "sda" or self.rule not in ("double_negation", "ensemble"):
            found.add("nouns")
        return found


@dataclass(frozen=True)
class NegativePart(Part):
    """Hard negatives, and further ones that are not text.

    Attributes:
        kind: `none`, `una` or `sda` (the sentence negated).
        mode: `doubled` makes each negative an anchor with itself as positive, `extra` a candidate
            of all, `margin` one of its own sentence only, relaxed by `delta` (δ).
        every: on every α-th step, from step 0.
        beta, radius, select, replace: β, r, and what UNA draws by (`lib.augment.una.UNA`); a
            radius below 1 is that share of the vocabulary (UNA's 4,000 of 451,691 terms are 0.0089
            of it).
        queue, momentum: embeddings of earlier batches, `queue` batches of them, as a copy of the
            encoder sees them that follows it with this momentum (`lib.memory`); 0: none.
        noise, noise_steps, noise_rate: random vectors, `noise` batches of them, and how many steps
            of which length they go up the loss (`lib.augment.noise`); 0: none.
    """

    kind: str = _one_of("none", NEGATIVES, "negative")
    mode: str = _one_of("doubled", NEGATIVE_MODES, "negative_mode")
    every: int = _number(5, "[1, 1000000000]")
    beta: float = _number(0.5, "[0, 100]")
    radius: float = _number(4000, "(0, 1000000000]")
    select: str = _one_of("tfidf", ("tfidf", "random"), "negative_select")
    replace: str = _one_of("window", ("window", "uniform"), "negative_replace")
    delta: float = _number(0.5, "[0, 100]")
    queue: float = _number(0.0, "[0, 1000]")
    momentum: float = _number(0.995, "[0, 1]", "queue_momentum")
    noise: float = _number(0.0, "[0, 1000]")
    noise_steps: int = _number(4, "[0, 1000]")
    noise_rate: float = _number(0.001, "[0, 100]")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius > 1 and not self.radius.is_integer():
            raise ValueError(
                "radius must be a whole number of terms, or a share of them below 1, got"
                f" {self.radius!r}"
            )

    @property
    def in_use(self) -> bool:
        """Whether there are hard negatives."""
        return self.kind != "none"

    @property
    def further(self) -> bool:
        """Whether there are negatives that are no text of the batch."""
        return bool(self.queue or self.noise)

    def idle(self) -> set[str]:
        """All without hard negatives; what is UNA's, the margin's, the queue's or the noise's
        alone, where they are not."""
        found = set()
        if not self.queue:
            found |= {"queue", "momentum"}
        if not self.noise:
            found |= {"noise", "noise_steps", "noise_rate"}
        if not self.in_use:
            found |= {"kind", "mode", "every"}
        if self.kind != "una":
            found |= {"beta", "radius", "select", "replace"}
        if not self.in_use or self.mode != "margin":
            found.add("delta")
        return found


@dataclass(frozen=True)
class ViewsPart(Part):
    """Views that are made inside the encoder, of anchor and positive.

    Attributes:
        view1, view2: of the two encodings, in the embedding layer
            (`lib.augment.embeddings.VIEWS`).
        rate1, rate2: their rates, 0 for those that have none.
        representation: augmentation of the positive's vector (`lib.augment.representations`) or
            `none`.
        strength: its λ.
    """

    view1: str = _one_of("none", VIEWS)
    rate1: float = _number(0.0, "[0, 1]")
    view2: str = _one_of("none", VIEWS)
    rate2: float = _number(0.0, "[0, 1]")
    representation: str = _one_of("none", REPRESENTATIONS)
    strength: float = _number(0.1, "[0, 100]", "representation_strength")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rate("view1", self.view1, "rate1", self.rate1)
        _check_rate("view2", self.view2, "rate2", self.rate2)

    @property
    def named(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """Name and rate of the view of each encoding."""
        return (self.view1, self.rate1), (self.view2, self.rate2)

    @property
    def in_use(self) -> bool:
        """Whether an encoding has a view in the embedding layer."""
        return (self.view1, self.view2) != ("none", "none")

    def idle(self) -> set[str]:
        """Views that are none, rates of those without one, λ of no augmentation."""
        found = set()
        for view, rate in (("view1", "rate1"), ("view2", "rate2")):
            if getattr(self, view) == "none":
                found.add(view)
            if not takes_rate(view, getattr(self, view)):
                found.add(rate)
        if self.representation == "none":
            found |= {"representation", "strength"}
        return found


@dataclass(frozen=True)
class HeadPart(Part):
    """What stands between the pooled vector and the loss (`lib.encoder.heads`).

    Attributes:
        kind: `none`, `linear`, `tanh`, `relu`, `simclr`, `bn_mlp`, `simsiam` or `scd`, with sizes
            as in simclr:600:512.
        init: weights of a single-layer head, or of `scd`: `bert` N(0, initializer_range) and no
            bias, `torch` as `nn.Linear`.
        per_view: its batch norm takes the statistics of each view by itself, not of both together.
    """

    kind: str = _text("tanh", "head", empty=True)
    init: str = _one_of("bert", HEAD_INITS, "head_init")
    per_view: bool = _flag(False, "head_per_view")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_head(self.kind)

    @property
    def name(self) -> str:
        """The kind without its sizes."""
        return self.kind.partition(":")[0]

    @property
    def out(self) -> int:
        """The last of its sizes, 0 where it names none."""
        return int(self.kind.rpartition(":")[2]) if ":" in self.kind else 0

    @property
    def normalises(self) -> bool:
        """Whether it has a batch norm, which sees the batch and not a row."""
        return self.name in BATCH_NORM_HEADS

    def idle(self) -> set[str]:
        """What the head is not made of."""
        found = set()
        if self.name not in DRAWN_HEADS:
            found.add("init")
        if not self.normalises:
            found.add("per_view")
        return found


@dataclass(frozen=True)
class ObjectivePart(Part):
    """What is minimised (`lib.objective`).

    Attributes:
        loss: `info_nce` (one direction), `nt_xent` (both; `nt_xent_sum` adds them), `arccon`,
            `simsiam` or `scd`.
        temperature: τ.
        margin: degrees that `arccon` adds to the angle of a pair.
        decorrelation, off_diagonal: of `scd`, the weight of its decorrelation, β, and in it that of
            the correlations that shall be 0, λ.
        weight: factor of the loss. With AdamW it only moves the gradient against `grad_clip` and
            `adam_eps`. SimSiam's loss is the mean of its two directions; ConSERT's code adds them,
            which is a weight of 2.
    """

    loss: str = _one_of("info_nce", LOSSES)
    temperature: float = _number(0.05, "(0, 100]")
    weight: float = _number(1.0, "(0, 1000000]", "loss_weight")
    margin: float = _number(10.0, "[0, 90]", "angular_margin")
    decorrelation: float = _number(0.005225, "[0, 1000]")
    off_diagonal: float = _number(0.012, "[0, 1000]")

    def idle(self) -> set[str]:
        """What belongs to losses other than this one."""
        found = set() if self.loss == "arccon" else {"margin"}
        return found if self.loss == "scd" else found | {"decorrelation", "off_diagonal"}


@dataclass(frozen=True)
class OptimiserPart(Part):
    """AdamW and its learning rate (`lib.optimizer`).

    Attributes:
        lr: peak learning rate.
        schedule: `linear` decay to 0 or `constant`, after `warmup` (share of all steps).
        warmup_from_zero: the first step of a warm-up has the rate 0, as in `transformers`; False
            begins at one part.
        weight_decay, adam_eps: of AdamW.
        grad_clip: the gradient's largest norm (0: not clipped).
        bias_correction: of the moments (Kingma & Ba 2015, Algorithm 1); ConSERT's code switches it
            off.
    """

    lr: float = _number(3e-5, "[0, 100]")
    schedule: str = _one_of("linear", ("linear", "constant"))
    warmup: float = _number(0.0, "[0, 1]")
    warmup_from_zero: bool = _flag(False)
    weight_decay: float = _number(0.0, "[0, 100]")
    adam_eps: float = _number(1e-8, "(0, 1]")
    grad_clip: float = _number(1.0, "[0, 1000000]")
    bias_correction: bool = _flag(True)

    def idle(self) -> set[str]:
        """Without a warm-up it begins nowhere."""
        return set() if self.warmup else {"warmup_from_zero"}


def batches_in(sentences: int, size: int, drop_last: bool) -> int:
    """Batches of one epoch; the last, smaller one counts if it is not dropped.

    Example:
        >>> batches_in(100, 64, drop_last=True), batches_in(100, 64, drop_last=False)
        (1, 2)
    """
    full, rest = divmod(sentences, size)
    return full if drop_last or not rest else full + 1


@dataclass(frozen=True)
class BatchesPart(Part):
    """How the text is cut into steps (`lib.batches`).

    Attributes:
        size: sentences in a batch.
        epochs: passes over the corpus.
        max_length: tokens a sentence is cut at, special tokens included.
        bucket: batches hold sentences of similar length, which saves padding and takes away the
            length as a cue for telling negatives apart; False shuffles, as all papers' code does.
        drop_last: leave out the sentences that do not fill the last batch of an epoch.
        chunk_size: most sentences that are in memory with their activations; the others are encoded
            again in the backward pass (0: all of them are). Dropout is drawn chunk by chunk, so
            that another size is another draw: the same training in distribution, not in numbers.
    """

    size: int = _number(64, "[2, 1000000]", "batch_size")
    epochs: int = _number(1, "[1, 1000000]")
    max_length: int = _number(32, "[3, 1000000]")
    bucket: bool = _flag(False)
    drop_last: bool = _flag(True)
    chunk_size: int = _number(0, "[0, 1000000]")

    def idle(self) -> set[str]:
        """Without chunks they have no size."""
        return set() if self.chunk_size else {"chunk_size"}

    def steps(self, sentences: int) -> int:
        """Steps of a whole training on so many sentences.

        Example:
            >>> BatchesPart(epochs=2).steps(100), BatchesPart(epochs=2, drop_last=False).steps(100)
            (2, 4)
        """
        return self.epochs * batches_in(sentences, self.size, self.drop_last)


@dataclass(frozen=True)
class EvaluationPart(Part):
    """How and when the encoder is tested.

    Attributes:
        pooling, head: from token states to a vector at evaluation, with the head or without.
        every: steps between dev scores; at_epoch_ends: there too; restarts: counted anew in each
            epoch.
        patience: dev scores without a new best before stopping (0: never).
        also_pooling: a second pooling that the finished encoder is tested with, without head.
        transfer_pooling: pooling with which the best checkpoint meets the seven transfer tasks ("":
            it does not).
        whiten: embeddings are whitened (`lib.evaluate.whitened_encode`), with the mean and
            covariance of the sentences that are compared.
        dev_max_length, test_max_length: tokens that dev and test sentences are cut at, special
            tokens included (0: the longest the model reads).
    """

    pooling: str = _one_of("cls", POOLINGS, "eval_pooling")
    head: bool = _flag(False, "eval_head")
    every: int = _number(125, "[1, 1000000000]", "eval_every")
    at_epoch_ends: bool = _flag(False, "eval_at_epoch_ends")
    restarts: bool = _flag(False, "eval_restarts")
    patience: int = _number(0, "[0, 1000000000]")
    also_pooling: str = _one_of("", ("", *POOLINGS))
    transfer_pooling: str = _one_of("", ("", *POOLINGS))
    whiten: bool = _flag(False)
    dev_max_length: int = _number(0, "0 or [3, 1000000]")
    test_max_length: int = _number(0, "0 or [3, 1000000]")

    def idle(self) -> set[str]:
        """What is not asked for."""
        optional = ("whiten", "also_pooling", "transfer_pooling")
        return {name for name in optional if not getattr(self, name)}


def takes_rate(name: str, value: str) -> bool:
    """Whether the positive, or the view in the embedding layer, called `value` has a rate."""
    return value in EDITS if name == "positive" else value not in ("none", "shuffle")


def checked_as(declared: Field, name: str, value: object) -> Any:
    """`value` as the type that a field declares, within what the field allows.

    Nothing is rounded or guessed: a whole number may be written 1e2, a number 3, and a NumPy
    scalar stands for what it holds; True is no number, "none" no truth value, and NaN and infinity
    are nothing.

    Raises:
        ValueError: another type, or a value outside the range or the choices; the message calls
            the field `name`.
    """
    exact, allowed = _exact(value, declared.type), declared.metadata
    if exact is None or ("range" in allowed and not _within(exact, allowed["range"])):
        raise ValueError(f"{name} must be {_allowed(declared)}, got {value!r}")
    if "choices" in allowed and exact not in allowed["choices"]:
        hint = closest(exact, allowed["choices"])
        raise ValueError(f"{name} must be {_allowed(declared)}, got {value!r}{hint}")
    if not allowed.get("empty", True) and not exact.strip():
        raise ValueError(f"{name} must not be empty")
    return exact


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


def closest(name: str, known: Any) -> str:
    """A hint that ends an error message: the known name that is most like `name`, if one is."""
    close = get_close_matches(name, [other for other in known if other], 1)
    return f": did you mean {close[0]!r}?" if close else ""


def _exact(value: Any, kind: Any) -> Any:
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
    if kind is float:
        return float(value)
    return int(value) if int(value) == value else None


def _within(value: float, allowed: str) -> bool:
    """Whether a number lies in one of the intervals such as "0 or (0, 1]"."""
    return any(_inside(value, interval) for interval in allowed.split(" or "))


def _inside(value: float, interval: str) -> bool:
    if interval[0] not in "[(":
        return value == float(interval)
    low, high = (float(end) for end in interval[1:-1].split(","))
    if value in (low, high):
        return interval[0 if value == low else -1] in "[]"
    return low < value < high


def _allowed(declared: Field) -> str:
    if "choices" in declared.metadata:
        *most, last = (repr(choice) for choice in declared.metadata["choices"])
        return f"{', '.join(most)} or {last}"
    kind: Any = declared.type
    if "range" not in declared.metadata:
        return _KINDS[kind]
    interval = declared.metadata["range"].replace("[", "in [", 1).replace("(", "in (", 1)
    return f"{_KINDS[kind]}, {interval}"


def _check_rate(name: str, value: str, rate_name: str, rate: float) -> None:
    if rate and not takes_rate(name, value):
        raise ValueError(
            f"{rate_name}={rate} means nothing with {name}={value!r}: set {rate_name}=0 or choose"
            f" another {name}"
        )
    if not rate and takes_rate(name, value):
        raise ValueError(
            f"{name}={value!r} at {rate_name}=0 changes nothing: give {rate_name}, a share in"
            " (0, 1]"
        )


def _check_head(head: str) -> None:
    kind, *sizes = head.split(":")
    if kind not in HEADS:
        hint = closest(kind, HEADS)
        raise ValueError(f"head must be one of {', '.join(HEADS)}, got {head!r}{hint}")
    if not sizes:
        return
    numbers = len(sizes) == 2 and all(re.fullmatch("[0-9]+", size) for size in sizes)
    if kind not in SIZED_HEADS or not numbers:
        raise ValueError(
            f"head {head!r}: sizes are written as in simclr:600:512 or simsiam:600:512"
        )
    if not all(1 <= int(size) <= LARGEST_LAYER for size in sizes):
        raise ValueError(f"head {head!r}: sizes must be whole numbers in [1, {LARGEST_LAYER}]")
