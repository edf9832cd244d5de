"""The walk through the code: its sentence is in the first batch and has the negative it shows."""

import re

import numpy as np

from lib import data, paths
from lib.encoder.load import read_tokenizer
from lib.training.batches import Feed
from lib.training.recipe import recipe


def test_the_sentence_of_the_walk_is_in_the_first_batch_and_has_that_negative() -> None:
    text = (paths.ROOT / "book" / "walk.md").read_text(encoding="utf-8")
    sentence, negative = (
        " ".join(quoted.split())
        for quoted in re.findall(r'\*"((?:By a glacier|by a sides)[^"]*)"\*', text)
    )
    line = int(re.search(r"line ([\d,]+) of 24,015", text)[1].replace(",", ""))  # type: ignore[index]
    corpus, tokenizer = data.corpus("mini"), read_tokenizer(str(paths.MINI_BERT))
    assert len(corpus) == 24_015 and corpus[line - 1] == sentence

    feed = Feed.of(corpus, recipe("mini_una"), tokenizer, seed=42)
    _, rows = next(feed.order.from_step(0))
    batch = feed.batch(0)
    roles = dict(zip(batch.sizes, batch.ids.split(list(batch.sizes.values())), strict=True))
    (place,) = np.flatnonzero(rows == line - 1)
    assert tokenizer.decode(roles["negative"][place], skip_special_tokens=True) == negative
