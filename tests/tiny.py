"""What the tests share: a vocabulary of sixty words, sentences over it, and encoders that train in
milliseconds."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, BertTokenizerFast, PreTrainedTokenizerFast

from lib import paths
from lib.encoder import Encoder
from lib.training import loop as train
from lib.training.batches import Feed
from lib.training.recipe import Recipe, recipe
from lib.training.views import Text

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_TEXT = (
    "a the some every no one two red blue small big old young dog cat bird horse child woman man"
    " teacher farmer river house garden street market bread apple song book letter boat train sees"
    " likes finds buys reads paints follows opens sings runs sleeps waits near under behind with"
    " and but not today yesterday slowly quickly ."
)
WORDS = _TEXT.split()


def tiny_tokenizer(folder: Path) -> BertTokenizerFast:
    """A WordPiece tokenizer over `WORDS`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
    return BertTokenizerFast(
        vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=32
    )


def word_tokenizer(
    bos: str, eos: str, pad: str | None, limit: int, special: bool = True
) -> PreTrainedTokenizerFast:
    """A word-level tokenizer whose special tokens are those of another family; the padding's id is
    1."""
    names = dict.fromkeys([bos, pad or "<unused>", eos, *WORDS, *SPECIAL])
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if special:
        pairs = [(bos, 0), (eos, 2)]
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A {eos}", special_tokens=pairs
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=eos,
        unk_token="[UNK]",
        mask_token="[MASK]",
    )
    if pad:
        fast.pad_token = pad
    fast.model_max_length = limit
    return fast


def tiny_bert(folder: Path, seed: int = 0, dropout: float = 0.1, layers: int = 2) -> Path:
    """A BERT of 2 layers × 32 with random weights, written to `folder`."""
    tokenizer = tiny_tokenizer(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.3,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_encoder(folder: Path, **options) -> Encoder:
    """`tiny_bert` as an `Encoder`."""
    if not (folder / "config.json").exists():
        tiny_bert(folder)
    return Encoder.load(folder, **options)


def tiny_sentences(n: int, seed: int = 0, shortest: int = 2, longest: int = 12) -> list[str]:
    """`n` distinct random word sequences."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < n:
        found[" ".join(rng.choice(WORDS[:-1], int(rng.integers(shortest, longest + 1)))) + " ."] = (
            None
        )
    return list(found)


def hashed(sentences: Sequence[str], width: int = 5) -> np.ndarray:
    """Pseudo-random vectors, each of which depends on its sentence alone."""
    return np.array([np.random.default_rng(list(s.encode())).normal(size=width) for s in sentences])


def at_angles(degrees: Mapping[str, float]) -> Callable[[Sequence[str]], np.ndarray]:
    """An `encode` that puts each sentence on the unit circle, at its angle."""

    def encode(sentences: Sequence[str]) -> np.ndarray:
        angles = np.radians([degrees[sentence] for sentence in sentences])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    return encode


def tiny_recipe(**changes) -> Recipe:
    """`mini_simcse` cut to the tiny encoder: batch 8, 16 tokens, a dev score every 3 steps."""
    settings = {"batch_size": 8, "max_length": 16, "lr": 1e-3, "eval_every": 3, **changes}
    return recipe("mini_simcse", **settings)


def begin(
    folder: Path, recipe: Recipe, text: Sequence[str] | Text, seed: int = 42, head_seed: int = 0
) -> tuple[Encoder, Feed]:
    """The encoder and the feed that a training of `recipe` starts with."""
    encoder = tiny_encoder(
        folder,
        pooling=recipe.pooling,
        head=recipe.head,
        eval_pooling=recipe.eval_pooling,
        dropout=recipe.dropout,
        lora_rank=recipe.lora_rank,
        seed=head_seed,
    )
    return encoder, Feed.of(text, recipe, encoder.tokenizer, seed)


def trained(
    folder: Path, recipe: Recipe, text: Sequence[str] | Text, *, seed: int = 42, **options
) -> tuple[Encoder, train.Result]:
    """The encoder after a training on the CPU in fp32, and the result; `options` as `fit`."""
    encoder, feed = begin(folder, recipe, text, seed, options.pop("head_seed", 0))
    options = {"device": "cpu", "precision": "fp32", **options}
    return encoder, train.fit(encoder, feed, **options)


def embedded(encoder: Encoder, feed: Feed, step: int = 0) -> list[torch.Tensor]:
    """Embeddings of each view of a step's batch, view by view, without the padding of the other."""
    _, rows = next(feed.order.from_step(step))
    return [encoder(*view[rows]) for view in feed.views]


def untimed(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics of a run but for what takes time and memory."""
    timed = {"train_seconds", "dev_seconds", "sentences_per_second", "peak_rss_gib"}
    return {name: value for name, value in metrics.items() if name not in timed}


def finished_runs(outputs: Path) -> dict[str, dict[str, float]]:
    """Run id → `untimed` metrics of the finished runs in an outputs folder."""
    found = outputs.glob("*/*/metrics.json")
    return {path.parent.name: untimed(json.loads(path.read_text())) for path in found}


def weights(encoder: Encoder) -> dict[str, torch.Tensor]:
    """A copy of all weights."""
    return {name: weight.clone() for name, weight in encoder.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights agree bit for bit."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def python(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """This interpreter in a process of its own, in the project's folder."""
    command = [sys.executable, *map(str, words)]
    own = {"cwd": paths.ROOT, "env": os.environ | environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, **own)


def run_script(text: str, *arguments: object) -> str:
    """What a Python script prints that is run in a process of its own, with this folder on its
    path."""
    start = f"import sys; sys.path[:0] = {[str(Path(__file__).parent), str(paths.ROOT)]}\n"
    done = python("-c", start + text, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def hear_interrupts() -> None:
    """For a process that is to be interrupted: in the background of a shell it would be deaf."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
