"""Recipes: the hyper-parameters of one row of a paper, or of one row of ours.

A recipe has parts, which say what each field is, what it may hold and when it has an effect. Its
fields have one name everywhere: `-p temperature 0.1` in papermill, `temperature: 0.1` in
`recipes.yaml` and in a grid, `recipe.temperature` here. What the papers and their authors' code say
of each stands in `data/papers/settings.csv`.

`python -m lib recipes list` names the recipes with their sources, `… show NAME` prints one.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import model_validator

from lib.augment import AUGMENTATIONS, NEED_SYNONYMS
from lib.augment.representations import REPRESENTATIONS
from lib.augment.sda import RULES
from lib.augment.una import REPLACE, SELECT
from lib.augment.vectors import VIEWS
from lib.checked import Checked, Names, closest, metadata_of, setting, validated
from lib.encoder.heads import BATCH_NORM_HEADS, DRAWN_HEADS, HEAD_INITS, POOLINGS, check_head
from lib.training.losses import LOSSES
from lib.training.views import NEGATIVES

LOSSES_WITH_A_HEAD = ("simsiam", "scd")  # the head has the name of the loss
POSITIVES = Names(("dropout", "identical", "file", "sda"), AUGMENTATIONS)
VECTOR_CHANGES = Names(("none",), REPRESENTATIONS)
WHEN_DRAWN = "head_kind=" + "|".join(DRAWN_HEADS)
RATES = {"positive": "positive_rate", "view1": "rate1", "view2": "rate2"}


class EncoderPart(Checked):
    """What is trained.

    Attributes:
        backbone: Hugging Face id or folder the row was published with.
        pooling: from token states to a vector, in training (`lib.encoder.heads`).
        dropout: probability inside the backbone, in [0, 1).
        dropout2: that of the positives' encoding (0: the same).
        lora_rank: r of LoRA (`lib.encoder.layers`); 0 trains all weights.
    """

    backbone: str = setting("bert-base-uncased")
    pooling: str = setting("cls", among=POOLINGS)
    dropout: float = setting(0.1, ge=0, lt=1)
    dropout2: float = setting(0.0, ge=0, lt=1, when="dropout2")
    lora_rank: int = setting(0, ge=0, le=4096, when="lora_rank", later=True)


class PositivePart(Checked):
    """Where the second view of a sentence comes from.

    Attributes:
        positive: `dropout` encodes the sentence twice, `identical` uses one encoding for both
            views, `file` reads it from `positive_file`, `sda` applies `rule`, any other name is a
            text augmentation of `lib.augment`.
        positive_rate: share of the words the text augmentation concerns, in [0, 1]; of the
            sentences for `mask_span`, whose span has `span` characters.
        positive_file: text file aligned with the training text line by line, e.g. paraphrases.
        synonyms: where synonym augmentations look: `wordnet` or a tab-separated file.
        rule: of `lib.augment.sda`, for the share `augmented_share` of the sentences.
        parser: a spaCy pipeline, installed or a folder; SDA's hard negatives need it, too.
        dn_nouns: double negation may also put "no" before a noun, as the text of SDA's §4.3 (not
            its Algorithm 3) says.
    """

    positive: str = setting("dropout", among=POSITIVES)
    positive_rate: float = setting(0.0, ge=0, le=1)
    span: int = setting(5, ge=1, le=10_000, when="positive=mask_span")
    positive_file: str = setting("", when="positive=file")
    synonyms: str = setting("wordnet", when="positive=" + "|".join(NEED_SYNONYMS))
    rule: str = setting("punctuation", among=RULES, when="positive=sda")
    augmented_share: float = setting(1.0, ge=0, le=1, when="positive=sda")
    parser: str = setting("data/mini-spacy", when="parses")
    dn_nouns: bool = setting(False, when="doubles_negation", later=True)

    @property
    def doubles_negation(self) -> bool:
        """Whether positives are made by the rule of double negation."""
        return self.positive == "sda" and self.rule in ("double_negation", "ensemble")


class NegativePart(Checked):
    """Hard negatives, and further ones that are not text.

    Attributes:
        negative: `none`, `una`, `sda` (the sentence negated) or another registered name.
        negative_mode: `doubled` makes each negative an anchor with itself as positive, `extra` a
            candidate of all, `margin` one of its own sentence only, relaxed by `delta` (δ).
        every: on every α-th step, from step 0.
        beta, radius, negative_select, negative_replace, include_self: β, r, and what UNA draws by
            (`lib.augment.una.UNA`); a radius below 1 is that share of the vocabulary (UNA's 4,000
            of 451,691 terms are 0.0089 of it).
        queue, queue_momentum: embeddings of earlier batches, `queue` batches of them, as a copy of
            the encoder sees them that follows it with this momentum (`lib.training.forward`); 0:
            none.
        noise, noise_steps, noise_rate: random vectors, `noise` batches of them, and how many steps
            of which length they go up the loss (`augment.representations`); 0: none.
    """

    negative: str = setting("none", among=Names(("none",), NEGATIVES), when="negative")
    negative_mode: str = setting("doubled", among=("doubled", "extra", "margin"), when="negative")
    every: int = setting(5, ge=1, le=10**9, when="negative")
    beta: float = setting(0.5, ge=0, le=1, when="negative=una")
    radius: float = setting(4000.0, gt=0, le=1e9, when="negative=una")
    negative_select: str = setting("tfidf", among=SELECT, when="negative=una")
    negative_replace: str = setting("window", among=REPLACE, when="negative=una")
    include_self: bool = setting(False, when="negative=una", later=True)
    delta: float = setting(0.5, ge=0, le=100, when="has_margin")
    queue: float = setting(0.0, ge=0, le=1000, when="queue")
    queue_momentum: float = setting(0.995, ge=0, le=1, when="queue")
    noise: float = setting(0.0, ge=0, le=1000, when="noise")
    noise_steps: int = setting(4, ge=0, le=1000, when="noise")
    noise_rate: float = setting(0.001, ge=0, le=100, when="noise")

    @property
    def has_margin(self) -> bool:
        """Whether a hard negative counts for its own sentence only, relaxed by δ."""
        return self.negative != "none" and self.negative_mode == "margin"


class ViewsPart(Checked):
    """Views that are made inside the encoder, of anchor and positive.

    Attributes:
        view1, view2: of the two encodings, in the embedding layer (`lib.augment.vectors.VIEWS`).
        rate1, rate2: their rates, 0 for those that have none.
        representation: augmentation of the positive's vector (`augment.representations`) or
            `none`.
        representation_strength: its λ.
    """

    view1: str = setting("none", among=VIEWS, when="view1", later=True)
    rate1: float = setting(0.0, ge=0, le=1, when="rate1", later=True)
    view2: str = setting("none", among=VIEWS, when="view2", later=True)
    rate2: float = setting(0.0, ge=0, le=1, when="rate2", later=True)
    representation: str = setting("none", among=VECTOR_CHANGES, when="representation")
    representation_strength: float = setting(0.1, ge=0, le=100, when="representation")

    @property
    def views(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """Name and rate of the view of each encoding."""
        return (self.view1, self.rate1), (self.view2, self.rate2)

    @property
    def has_views(self) -> bool:
        """Whether an encoding has a view in the embedding layer."""
        return (self.view1, self.view2) != ("none", "none")


class LossPart(Checked):
    """What stands between the pooled vector and the loss (`lib.encoder.heads`), and what is
    minimised (`lib.training.losses`).

    Attributes:
        head: `none`, `linear`, `tanh`, `relu`, `simclr`, `bn_mlp`, `simsiam` or `scd`, with sizes
            as in simclr:600:512.
        head_init: weights of a single-layer head, or of `scd`: `bert` N(0, initializer_range) and
            no bias, `torch` as `nn.Linear`.
        head_per_view: its batch norm takes the statistics of each view by itself, not of both.
        loss: `info_nce` (one direction), `nt_xent` (both; `nt_xent_sum` adds them), `arccon`,
            `simsiam` or `scd`.
        temperature: τ.
        angular_margin: degrees that `arccon` adds to the angle of a pair.
        decorrelation, off_diagonal: of `scd`, the weight of its decorrelation, β, and in it that of
            the correlations that shall be 0, λ.
        loss_weight: factor of the loss. With AdamW it only moves the gradient against `grad_clip`
            and `adam_eps`. SimSiam's loss is the mean of its two directions; ConSERT's code adds
            them, which is a weight of 2.
    """

    head: str = setting("tanh")
    head_init: str = setting("bert", among=HEAD_INITS, when=WHEN_DRAWN, later=True)
    head_per_view: bool = setting(False, when="normalises_views", later=True)
    loss: str = setting("info_nce", among=LOSSES)
    temperature: float = setting(0.05, gt=0, le=100)
    loss_weight: float = setting(1.0, gt=0, le=1e6, later=True)
    angular_margin: float = setting(10.0, ge=0, le=90, when="loss=arccon")
    decorrelation: float = setting(0.005225, ge=0, le=1000, when="loss=scd")
    off_diagonal: float = setting(0.012, ge=0, le=1000, when="loss=scd")

    @property
    def head_kind(self) -> str:
        """The head without its sizes."""
        return self.head.partition(":")[0]

    @property
    def head_normalises(self) -> bool:
        """Whether it has a batch norm, which sees the batch and not a row."""
        return self.head_kind in BATCH_NORM_HEADS


class AdamWPart(Checked):
    """AdamW and its learning rate (`lib.training.loop`).

    Attributes:
        lr: peak learning rate.
        schedule: `linear` decay to 0 or `constant`, after `warmup` (share of all steps).
        warmup_from_zero: the first step of a warm-up has the learning rate 0, as in
            `transformers`; False begins at one part.
        weight_decay, adam_eps: of AdamW.
        grad_clip: the gradient's largest norm (0: not clipped).
        bias_correction: of the moments (Kingma & Ba 2015, Algorithm 1); ConSERT's code switches it
            off.
    """

    lr: float = setting(3e-5, ge=0, le=100)
    schedule: str = setting("linear", among=("linear", "constant"))
    warmup: float = setting(0.0, ge=0, le=1)
    warmup_from_zero: bool = setting(False, when="warmup", later=True)
    weight_decay: float = setting(0.0, ge=0, le=100)
    adam_eps: float = setting(1e-8, gt=0, le=1)
    grad_clip: float = setting(1.0, ge=0, le=1e6)
    bias_correction: bool = setting(True, later=True)


class BatchesPart(Checked):
    """How the text is cut into steps (`lib.training.batches`).

    Attributes:
        batch_size: sentences in a batch.
        epochs: passes over the corpus.
        max_length: tokens a sentence is cut at, special tokens included.
        bucket: batches hold sentences of similar length, which saves padding and takes away the
            length as a cue for telling negatives apart; False shuffles, as all papers' code does.
        drop_last: leave out the sentences that do not fill the last batch of an epoch.
        chunk_size: most sentences that are in memory with their activations; the others are encoded
            again in the backward pass (0: all of them are). Dropout is drawn chunk by chunk, so
            that another size is another draw: the same training in distribution, not in numbers.
    """

    batch_size: int = setting(64, ge=2, le=10**6)
    epochs: int = setting(1, ge=1, le=10**6)
    max_length: int = setting(32, ge=3, le=10**6)
    bucket: bool = setting(False, later=True)
    drop_last: bool = setting(True, later=True)
    chunk_size: int = setting(0, ge=0, le=10**6, when="chunk_size")

    def steps(self, sentences: int) -> int:
        """Steps of a whole training on so many sentences.

        Example:
            >>> BatchesPart(epochs=2).steps(100), BatchesPart(epochs=2, drop_last=False).steps(100)
            (2, 4)
        """
        full, rest = divmod(sentences, self.batch_size)
        return self.epochs * (full + bool(rest and not self.drop_last))


class ScorePart(Checked):
    """How and when the encoder is tested.

    Attributes:
        eval_pooling, eval_head: from token states to a vector at evaluation, with the head or
            without.
        eval_every: steps between dev scores; eval_at_epoch_ends: there too; eval_restarts: counted
            anew in each epoch.
        patience: dev scores without a new best before stopping (0: never).
        also_pooling: a second pooling that the finished encoder is tested with, without head.
        transfer_pooling: pooling with which the best checkpoint meets the seven transfer tasks ("":
            it does not).
        whiten: embeddings are whitened (`lib.evaluate.whitened_encode`), with the mean and
            covariance of the sentences that are compared.
        dev_max_length, test_max_length: tokens that dev and test sentences are cut at, special
            tokens included (0: the longest the model reads).
    """

    eval_pooling: str = setting("cls", among=POOLINGS)
    eval_head: bool = setting(False)
    eval_every: int = setting(125, ge=1, le=10**9)
    eval_at_epoch_ends: bool = setting(False, later=True)
    eval_restarts: bool = setting(False, later=True)
    patience: int = setting(0, ge=0, le=10**9)
    also_pooling: str = setting("", among=("", *POOLINGS), when="also_pooling", later=True)
    transfer_pooling: str = setting("", among=("", *POOLINGS), when="transfer_pooling", later=True)
    whiten: bool = setting(False, when="whiten", later=True)
    dev_max_length: int = setting(0, ge=0, le=10**6, later=True)
    test_max_length: int = setting(0, ge=0, le=10**6, later=True)


class Recipe(
    ScorePart, BatchesPart, AdamWPart, LossPart, ViewsPart, NegativePart, PositivePart, EncoderPart
):
    """Everything that defines a training but the data, the seed and the machine.

    Attributes:
        name: key of the recipe, the first part of a run's id.
        source: paper and section the numbers come from.

    Raises:
        ValueError: two fields that contradict each other.
    """

    name: str
    source: str

    @property
    def parses(self) -> bool:
        """Whether the text is parsed."""
        return self.positive == "sda" or self.negative in NEGATIVES.parsing

    @property
    def normalises_views(self) -> bool:
        """Whether a batch norm sees both views at once."""
        return self.head_normalises and not self.dropout2

    def values(self) -> dict[str, Any]:
        """All fields but name and source.

        Example:
            >>> recipe("paper_una_bert").values()["negative_mode"]
            'doubled'
        """
        return {name: getattr(self, name) for name in FIELDS}

    def in_use(self) -> dict[str, Any]:
        """The fields that have an effect, as `values`.

        Example:
            >>> recipe("mini_simcse").in_use().get("beta"), recipe("mini_una").in_use()["beta"]
            (None, 0.5)
        """
        return {name: getattr(self, name) for name in FIELDS if self._has_effect(name)}

    def _has_effect(self, name: str) -> bool:
        other, _, wanted = (metadata_of(Recipe, name)["when"] or "").partition("=")
        if not other:
            return True
        found = getattr(self, other)
        return found in wanted.split("|") if wanted else found not in (0, "", "none")

    def parameters(self) -> dict[str, Any]:
        """What a run is recorded by: the fields in use, but for those that came after the first
        results and have their default.

        Example:
            >>> recipe("mini_simcse").parameters().get("whiten")
            >>> recipe("mini_simcse", whiten=True).parameters()["whiten"]
            True
        """
        used = self.in_use().items()
        return {n: v for n, v in used if v != default_of(n) or not metadata_of(Recipe, n)["later"]}

    def changed(self, **changes: Any) -> "Recipe":
        """A copy with some fields changed.

        The rate of a positive or a view goes with it: where these change to one without a rate,
        it becomes 0, unless it is given.

        Raises:
            ValueError: an unknown field, with the closest one; a value that its field does not
                allow, or that contradicts another.

        Example:
            >>> recipe("paper_simcse_bert").changed(temperature=0.1).temperature
            0.1
            >>> recipe("mini_consert").changed(view1="shuffle").rate1
            0.0
        """
        for name, rate in RATES.items():
            if name in changes and not takes_rate(name, str(changes[name])):
                changes.setdefault(rate, 0.0)
        return validated(Recipe, self.model_dump() | changes, "a recipe")

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        check_head(self.head)
        for message in _contradictions(self):
            raise ValueError(message)
        return self


FIELDS: tuple[str, ...] = tuple(n for n in Recipe.model_fields if n not in ("name", "source"))


def default_of(name: str) -> Any:
    """What a field holds unless a recipe says otherwise."""
    return Recipe.model_fields[name].default


def takes_rate(name: str, value: str) -> bool:
    """Whether the positive, or the view in the embedding layer, called `value` has a rate."""
    return value in AUGMENTATIONS if name == "positive" else value not in ("none", "shuffle")


def _contradictions(r: Recipe) -> Iterator[str]:
    """One message for each contradiction between fields."""
    further = r.queue or r.noise
    for name, rate in RATES.items():
        value, share = getattr(r, name), getattr(r, rate)
        if share and not takes_rate(name, value):
            yield f"{rate}={share} has no effect with {name}={value!r}: set {rate}=0"
        if takes_rate(name, value) and not share:
            yield f"{name}={value!r} at {rate}=0 changes nothing: give {rate}, a share in (0, 1]"
    for name in LOSSES_WITH_A_HEAD:
        if (r.head_kind == name) != (r.loss == name):
            yield f"head and loss {name!r} need each other, got head {r.head!r}, loss {r.loss!r}"
    if r.radius > 1 and not r.radius.is_integer():
        yield f"radius must be a whole number of terms, or a share below 1, got {r.radius}"
    if r.loss in LOSSES_WITH_A_HEAD and (r.negative != "none" or further):
        yield f"the loss {r.loss!r} has no negatives: set negative='none', queue=0 and noise=0"
    if r.positive == "identical" and (r.has_views or r.dropout2):
        yield "positive='identical' encodes once: set view1, view2 to 'none' and dropout2=0"
    if r.has_margin and (r.loss != "info_nce" or further):
        yield "negative_mode='margin' needs loss='info_nce', queue=0 and noise=0"
    if (bool(r.dropout2), bool(r.chunk_size), r.has_views).count(True) > 1:
        yield "dropout2, chunk_size and view1 with view2 exclude each other: leave one of them"
    if r.head_normalises and (r.queue or r.chunk_size):
        yield f"the batch norm of head {r.head!r} must see one batch: set queue=0 and chunk_size=0"
    if (r.positive, r.negative, r.rule) == ("sda", "sda", "negation"):
        yield "rule='negation' makes positives that are the hard negatives of negative='sda', too"
    if {r.dev_max_length, r.test_max_length} & {1, 2}:
        yield "dev_max_length and test_max_length are 0 (no limit) or at least 3"


@cache
def recipes() -> dict[str, Recipe]:
    """All recipes of `recipes.yaml` by name, each with what its bases say.

    Raises:
        ValueError: a base or a field that there is not, or a value that its field does not allow.
    """
    file = yaml.safe_load(Path(__file__).with_name("recipes.yaml").read_text(encoding="utf-8"))
    found = {}
    for name, row in file["recipes"].items():
        try:
            values = _inherited(row, file["bases"])
            found[name] = validated(Recipe, {"name": name, **values}, "a recipe")
        except ValueError as error:
            raise ValueError(f"recipe {name!r}: {error}") from error
    return found


def _inherited(row: Mapping[str, Any], bases: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row and of its bases; the later base wins, the row itself over all."""
    found: dict[str, Any] = {}
    for base in row.get("base", ()):
        if base not in bases:
            raise ValueError(f"there is no base {base!r}")
        found |= _inherited(bases[base], bases)
    return found | {field: value for field, value in row.items() if field != "base"}


def recipe(name: str, **changes: Any) -> Recipe:
    """The recipe called `name`, with `changes` applied.

    Raises:
        ValueError: no such recipe or field.
    """
    if name not in recipes():
        hint = closest(name, recipes()) or ": `python -m lib recipes list` names them"
        raise ValueError(f"unknown recipe {name!r}{hint}")
    return recipes()[name].changed(**changes)
