"""Recipes: the hyper-parameters of one row of a paper, or of one row of ours, as data.

Command line: `python -m lib.recipes list` names them with their sources, `python -m lib.recipes show paper_una_bert`
prints the fields that one uses.
"""

import argparse
import sys
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
            encoding for both views, `file` reads it from `positive_file`, `sda` applies `rule`, any other name is a
            text augmentation of `lib.augment`.
        positive_rate: share of the words the text augmentation concerns, in [0, 1].
        head, pooling: training time; eval_pooling, eval_head: evaluation time (`lib.encoder`).
        loss: `info_nce` (one direction) or `nt_xent` (both); temperature: τ.
        lr: peak learning rate; schedule: `linear` decay to 0 or `constant`, after `warmup` (share of all steps).
        batch_size: sentences in a batch; epochs: passes over the corpus; max_length: tokens a sentence is cut at.
        weight_decay, adam_eps, grad_clip: AdamW and the gradient's largest norm (0: not clipped).
        dropout: probability inside the backbone, in [0, 1).
        eval_every: steps between dev scores; patience: dev scores without a new best before stopping (0: never).
        positive_file: text file aligned with the training text line by line, e.g. paraphrases.
        synonyms: where synonym augmentations look: `wordnet` or a tab-separated file.
        negative: hard negatives: `none`, `una` or `sda` (the sentence negated); `every`: on every α-th step, from
            step 0.
        negative_mode: `doubled` makes each negative an anchor with itself as positive, `extra` a candidate of all,
            `margin` one of its own sentence only, relaxed by `delta` (δ).
        rule: of `lib.augment.sda`, for the share `augmented_share` of the sentences; `parser`: a spaCy pipeline,
            installed or a folder.
        beta, radius, negative_select, negative_replace: β, r, and what UNA draws by (`lib.augment.una.UNA`); a radius
            below 1 is that share of the vocabulary (UNA's 4,000 of 451,691 terms are 0.0089 of it).
        representation: augmentation of the second view's embeddings (`lib.augment.representations`) or `none`;
            representation_strength: its λ.
        view1, view2: views of the two encodings in the embedding layer (`lib.augment.embeddings.VIEWS`); rate1, rate2:
            their rates.
        loss_weight: factor of the loss. With AdamW it only moves the gradient against `grad_clip` and `adam_eps`.
        also_pooling: a second pooling that the finished encoder is tested with, without head.
        transfer_pooling: pooling with which the best checkpoint meets the seven transfer tasks ("": it does not).
        eval_at_epoch_ends: dev scores there too.
        whiten: at evaluation embeddings are whitened (`lib.evaluate.whitened_encode`), with the mean and covariance of
            the sentences that are compared.
        lora_rank: r of LoRA (`lib.lora`); 0 trains all weights.
        bucket: batches hold sentences of similar length, which saves padding and takes away the length as a cue for
            telling negatives apart; False shuffles, as all four papers' code does.
        drop_last: leave out the sentences that do not fill the last batch of an epoch.
        bias_correction: of AdamW's moments (Kingma & Ba 2015, Algorithm 1); ConSERT's code switches it off.
        warmup_from_zero: the first step of a warm-up has the rate 0, as in `transformers`; False begins at one part.
        head_init: weights of a single-layer head: `bert` N(0, initializer_range) and no bias, `torch` as `nn.Linear`.
        head_per_view: the head's batch norm takes the statistics of each view by itself, not of both together.
        eval_restarts: steps to the next dev score are counted anew in each epoch.
        dev_max_length, test_max_length: tokens that dev and test sentences are cut at, special tokens included (0: the
            longest the model reads).
        dn_nouns: double negation may also put "no" before a noun, as the text of SDA's §4.3 (not its Algorithm 3) says.
        chunk_size: most sentences that are in memory with their activations; the others are encoded again in the
            backward pass (0: all of them are).
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

    def parameters(self) -> dict[str, object]:
        """What a run is recorded by: all fields but the name, the source, and those of parts that are not in use.

        A recipe without hard negatives has no β: a field added for one method leaves the runs of others alone.

        Example:
            >>> recipe("mini_simcse").parameters().get("beta"), recipe("mini_una").parameters()["beta"]
            (None, 0.5)
        """
        unused = {"name", "source", "chunk_size"}
        if self.negative == "none":
            unused |= {"negative", "negative_mode", "every"}
        if self.negative != "una":
            unused |= {"beta", "radius", "negative_select", "negative_replace"}
        if self.negative == "none" or self.negative_mode != "margin":
            unused.add("delta")
        if self.positive != "sda":
            unused |= {"rule", "augmented_share"}
        if "sda" not in (self.positive, self.negative):
            unused.add("parser")
        if self.representation == "none":
            unused |= {"representation", "representation_strength"}
        if self.positive != "file":
            unused.add("positive_file")
        if not self.positive.endswith("_synonyms"):
            unused.add("synonyms")
        later = {"view1", "rate1", "view2", "rate2", "loss_weight"}
        later |= {
            "also_pooling",
            "transfer_pooling",
            "eval_at_epoch_ends",
            "whiten",
            "lora_rank",
            "bucket",
            "drop_last",
        }
        later |= {"bias_correction", "warmup_from_zero", "head_init", "head_per_view", "eval_restarts"}
        later |= {"dev_max_length", "test_max_length", "dn_nouns"}
        unused |= {name for name in later if getattr(self, name) == getattr(Recipe, name)}
        return {name: value for name, value in asdict(self).items() if name not in unused}

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


_UNA = "Shu & Lampos 2024, UNA: §4 and Table 1"
_UNA_BASELINE = f"{_UNA}: its baseline, with its code's loss"
_SIMCSE = "Gao et al. 2021, SimCSE: appendix A and Table 5"

_UNA_BERT: dict = {"loss": "nt_xent", "eval_every": 100}
_UNA_ROBERTA: dict = {**_UNA_BERT, "backbone": "roberta-base", "lr": 5e-6, "schedule": "constant"}
_PARAPHRASE: dict = {"positive": "file", "positive_file": "data/wiki1m_paraphrases.txt"}

_CONSERT_REPORT = "Li et al., extension of ConSERT: §4.1, pooling and patience from its code"
_CONSERT: dict = {
    "pooling": "mean",
    "head": "none",
    "eval_pooling": "mean",
    "also_pooling": "last2_mean",
    "loss": "nt_xent_sum",
    "loss_weight": 0.15,
    "temperature": 0.1,
    "lr": 5e-7,
    "warmup": 0.1,
    "batch_size": 96,
    "epochs": 10,
    "max_length": 64,
    "weight_decay": 0.01,
    "adam_eps": 1e-6,
    "dropout": 0.0,
    "eval_every": 200,
    "patience": 10,
    "eval_at_epoch_ends": True,
    "view1": "feature_cutoff",
    "rate1": 0.2,
    "view2": "shuffle",
}

_SDA_PAPER = "Zhu et al. 2024, SDA: §5.3 and Table 4"
_SDA_CHINESE = "Zhu et al. 2024, SDA: §6.4 and Table 7"
_SDA: dict = {
    "positive": "sda",
    "parser": "en_core_web_sm",
    "head": "bn_mlp",
    "lr": 2e-5,
    "batch_size": 128,
    "eval_every": 250,
}
_CHINESE: dict = {"backbone": "hfl/chinese-roberta-wwm-ext", "lr": 5e-5, "batch_size": 128, "eval_every": 250}
_NEGATION: dict = {"negative": "sda", "negative_mode": "margin", "every": 1}

_MINI: dict = {
    "backbone": "data/mini-bert",
    "eval_pooling": "mean",
    "lr": 5e-4,
    "temperature": 0.05,
    "dropout": 0.2,
    "batch_size": 128,
    "max_length": 64,
    "eval_every": 20,
    "synonyms": "data/mini/thesaurus.tsv",
}
_MINI_CONSERT: dict = {"lr": 2e-5, "eval_every": 20, "patience": 0, "eval_at_epoch_ends": False}
_MINI_UNA: dict = {"negative": "una", "radius": 0.0089}
_MINI_PARAPHRASE: dict = {"positive": "file", "positive_file": "data/mini/paraphrase.txt"}

RECIPES: dict[str, Recipe] = {
    r.name: r
    for r in (
        Recipe("paper_simcse_bert", _SIMCSE),
        Recipe("paper_simcse_roberta", _SIMCSE, backbone="roberta-base", lr=1e-5, batch_size=512),
        Recipe("paper_simcse_bert_una", _UNA_BASELINE, **_UNA_BERT),
        Recipe("paper_simcse_roberta_una", _UNA_BASELINE, **_UNA_ROBERTA),
        Recipe("paper_una_bert", _UNA, **_UNA_BERT, negative="una"),
        Recipe("paper_una_roberta", _UNA, **_UNA_ROBERTA, negative="una"),
        Recipe("paper_paraphrase_bert", _UNA, **_UNA_BERT, **_PARAPHRASE),
        Recipe("paper_paraphrase_roberta", _UNA, **_UNA_ROBERTA, **_PARAPHRASE),
        Recipe("paper_paraphrase_una_bert", _UNA, **_UNA_BERT, **_PARAPHRASE, negative="una"),
        Recipe("paper_paraphrase_una_roberta", _UNA, **_UNA_ROBERTA, **_PARAPHRASE, negative="una"),
        Recipe("paper_consert", _CONSERT_REPORT, **_CONSERT),
        Recipe(
            "paper_consert_script",
            "Li et al.: the script shipped with the code of their extension of ConSERT",
            **_CONSERT | {"temperature": 0.05, "lr": 2e-5},
        ),
        Recipe(
            "mini_consert",
            "this course, chosen on dev scores only",
            **_CONSERT | _MINI_CONSERT,
            backbone="data/mini-bert",
        ),
        Recipe("mini_simcse", "this course, chosen on dev scores only", **_MINI),
        Recipe(
            "mini_simcse_mean",
            "this course: mini_simcse with mean pooling in training too",
            **{**_MINI, "pooling": "mean"},
        ),
        Recipe(
            "mini_una",
            "this course: UNA on mini_simcse, r as the paper's share of the vocabulary",
            **_MINI,
            **_MINI_UNA,
        ),
        Recipe("paper_sda_bert", _SDA_PAPER, **_SDA),
        Recipe("paper_sda_roberta", _SDA_PAPER, **_SDA | {"backbone": "roberta-base", "lr": 1e-5, "batch_size": 64}),
        Recipe("paper_sda_negation_bert", _SDA_PAPER, **_SDA, **_NEGATION),
        Recipe(
            "paper_sda_negation_roberta",
            _SDA_PAPER,
            **_SDA | _NEGATION | {"backbone": "roberta-base", "lr": 1e-5, "batch_size": 64},
        ),
        Recipe("paper_simcse_zh", _SDA_CHINESE, **_CHINESE),
        Recipe("paper_sda_negation_zh", _SDA_CHINESE, **_SDA | _NEGATION | _CHINESE | {"parser": "zh_core_web_sm"}),
        Recipe("mini_sda", "this course: SDA on mini_simcse", **_MINI, positive="sda"),
        Recipe(
            "mini_sda_negation", "this course: SDA with negations on mini_simcse", **_MINI, positive="sda", **_NEGATION
        ),
        Recipe("mini_negation", "this course: negations as negatives on mini_simcse", **_MINI, **_NEGATION),
        Recipe("mini_paraphrase", "this course: its own paraphrases as positives", **_MINI, **_MINI_PARAPHRASE),
        Recipe("mini_paraphrase_una", "this course: both", **_MINI, **_MINI_UNA, **_MINI_PARAPHRASE),
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


def main(arguments: list[str] | None = None) -> None:
    """`list [PART]` prints names and sources, `show NAME` the fields in use."""
    parser = argparse.ArgumentParser(prog="python -m lib.recipes", description="The hyper-parameters of the papers.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="names and sources").add_argument("part", nargs="?", default="", help="of the name")
    verbs.add_parser("show", help="the fields of one").add_argument("name")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "list":
        found = [r for r in RECIPES.values() if chosen.part in r.name]
        print("\n".join(f"{r.name:<29}{r.source}" for r in found) or f"no recipe has {chosen.part!r} in its name")
        return
    try:
        wanted = recipe(chosen.name)
    except ValueError as error:
        sys.exit(f"error: {error}")
    print(f"{wanted.name}: {wanted.source}")
    print("\n".join(f"  {name:<17}{value}" for name, value in wanted.parameters().items()))


if __name__ == "__main__":
    main()
