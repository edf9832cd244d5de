"""The steps of CONTRIBUTING, done: a toy positive and a toy negative train, and nothing else is
touched."""

import numpy as np
import pytest
from tiny import tiny_encoder, tiny_recipe, tiny_sentences

from lib.augment import AUGMENTATIONS
from lib.encoder.tokens import tokenise
from lib.training import loop as train
from lib.training.batches import Feed
from lib.training.views import NEGATIVES

SENTENCES = tiny_sentences(32)


def backwards(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """The words in reverse order."""
    return words[::-1]


def next_line(text, recipe, tokenizer, seed):
    """The sentence that follows in the text."""
    following = [*text.sentences[1:], text.sentences[0]]
    table = tokenise(following, tokenizer, recipe.max_length)
    return lambda rows, step: table[rows]


def words_of(tokenizer, ids) -> list[str]:
    """The tokens of a row, special ones left out."""
    special = set(tokenizer.all_special_tokens)
    return [t for t in tokenizer.convert_ids_to_tokens(ids.tolist()) if t not in special]


@pytest.fixture
def two_methods():
    """A line in each of two registries, taken out again."""
    AUGMENTATIONS.register("backwards")(backwards)
    NEGATIVES.register("next_line")(next_line)
    yield
    del AUGMENTATIONS["backwards"], NEGATIVES["next_line"]


@pytest.mark.parametrize("mode", ["doubled", "extra", "margin"])
def test_a_new_positive_and_a_new_negative_train_without_another_line(two_methods, tmp_path, mode):
    recipe = tiny_recipe(
        positive="backwards",
        negative="next_line",
        negative_mode=mode,
        every=1,
        max_length=32,
        positive_rate=1.0,
    )
    encoder = tiny_encoder(tmp_path, pooling=recipe.pooling, head=recipe.head)
    feed = Feed.of(SENTENCES, recipe, encoder.tokenizer, seed=1)
    batch = feed.batch(0)
    parts = dict(zip(batch.sizes, batch.ids.split(list(batch.sizes.values())), strict=True))
    words = {role: [words_of(encoder.tokenizer, row) for row in ids] for role, ids in parts.items()}
    assert words["positive"] == [line[::-1] for line in words["anchor"]] != words["anchor"]
    following = dict(zip(SENTENCES, [*SENTENCES[1:], SENTENCES[0]], strict=True))
    assert words["negative"] == [following[" ".join(line)].split() for line in words["anchor"]]
    assert ("negative_again" in words) == (mode == "doubled")
    result = train.fit(encoder, feed, max_steps=3, device="cpu", precision="fp32")
    assert result.steps == 3 and all(np.isfinite(row["loss"]) for row in result.history)
