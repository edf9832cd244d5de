"""What an encoder's scores are made of: shared words, pairs that change rank, attention to
words."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import torch

from lib.augment.tfidf import terms_of
from lib.data import Pairs
from lib.encoder import Encoder
from lib.encoder.heads import POOLINGS
from lib.evaluate import Encode, similarities


def jaccard(first: str, second: str, tokens: Callable[[str], Iterable] = terms_of) -> float:
    """Overlap of two sentences' sets of tokens in percent, 100 · |A ∩ B| / |A ∪ B|, in [0, 100].

    Two sentences without tokens are equal: 100.

    Args:
        tokens: the tokens of a sentence; default: lower-cased words and punctuation marks. `list`
            takes characters, a tokenizer's method word pieces.

    Example:
        >>> jaccard("A dog barks.", "a dog sleeps.")
        60.0

    Source: Jaccard 1912; Zhu et al. 2024 (SDA), §6.3.
    """
    a, b = set(tokens(first)), set(tokens(second))
    return 100 * len(a & b) / len(a | b) if a | b else 100.0


def mean_jaccard(pairs: Pairs, tokens: Callable[[str], Iterable] = terms_of) -> float:
    """Mean of `jaccard` over the pairs, in [0, 100].

    Raises:
        ValueError: no pairs.

    Relations: SDA prints 47.39 for the STS series and 57.24 for SICK-R and does not name its
    tokens. On SentEval's files, as the mean of the six STS tasks, the default gives 39.97 and
    49.06; letter case, punctuation, pooling of the pairs and unscored pairs change little. BERT's
    uncased word pieces, with the [CLS] and [SEP] that all sentences share, give 47.04 and 56.01,
    the nearest plain reading: the overlap of a model's input, not of words. None of some thirty
    readings gives both numbers within 0.3.

    Example:
        >>> mean_jaccard(Pairs("toy", ["a b", "a"], ["b", "c"], np.array([3.0, 0.0])))
        25.0

    Source: Zhu et al. 2024 (SDA), §6.3.
    """
    if not len(pairs):
        raise ValueError(f"{pairs.name} has no pairs")
    each = zip(pairs.sentence1, pairs.sentence2, strict=True)
    return float(np.mean([jaccard(first, second, tokens) for first, second in each]))


def rank_changes(encode_a: Encode, encode_b: Encode, pairs: Pairs) -> pd.DataFrame:
    """Which pairs model b ranks nearer to the gold ranking than model a does.

    improvement = |rank_a − rank_gold| − |rank_b − rank_gold|. Rank 1 is the least similar pair,
    ties have their mean rank.

    Returns:
        A row a pair, indexed by its number in `pairs`: `sentence1`, `sentence2`; `gold` [0, 5];
        `similarity_a`, `similarity_b` [-1, 1]; `rank_gold`, `rank_a`, `rank_b` [1, n];
        `improvement` (-n, n). The largest improvement comes first, ties in the order of `pairs`.

    Relations: Spearman's ρ falls with the mean of the squared distances (rank − rank_gold)².

    Example:
        >>> pairs = Pairs("toy", ["a", "a", "a"], ["a", "b", "c"], np.array([5.0, 0.0, 3.0]))
        >>> axes = {"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [-1, 0]}
        >>> good = lambda sentences: [axes[s] for s in sentences]
        >>> bad = lambda sentences: [axes["dab"["cab".index(s)]] for s in sentences]
        >>> rank_changes(bad, good, pairs)[["gold", "rank_a", "rank_b",
        ...     "improvement"]].values.tolist()
        [[0.0, 2.0, 1.0, 1.0], [3.0, 1.0, 2.0, 1.0], [5.0, 3.0, 3.0, 0.0]]

    Source: Zhu et al. 2024 (SDA), §6.6 and Figure 4.
    """
    table = pd.DataFrame(
        {"sentence1": pairs.sentence1, "sentence2": pairs.sentence2, "gold": pairs.scores}
    )
    table["similarity_a"], table["similarity_b"] = (
        similarities(encode_a, pairs),
        similarities(encode_b, pairs),
    )
    ranks = (
        table[["gold", "similarity_a", "similarity_b"]]
        .rank()
        .set_axis(["rank_gold", "rank_a", "rank_b"], axis=1)
    )
    distance = ranks.sub(ranks["rank_gold"], axis=0).abs()
    table = table.join(ranks).assign(improvement=distance["rank_a"] - distance["rank_b"])
    return table.sort_values("improvement", ascending=False, kind="stable")


@torch.inference_mode()
def attention_to_words(
    encoder: Encoder, sentence: str, position: str | None = None
) -> list[tuple[str, float]]:
    """How much of the last layer's attention each word gets from the token that becomes the
    sentence's embedding.

    a_j = mean over heads of softmax(q_i · k_j / √d)_j, i that token; summed over a word's pieces,
    divided by the sum over all words, so that [CLS] and [SEP], which often get most of it, are left
    out.

    Args:
        position: a pooling, whose tokens' attention it is: `cls` the first token's, `last_token`
            the last one's, any other the mean of all tokens', special ones included; None: the
            encoder's `eval_pooling`.

    Returns:
        (word as written, weight) in the order of the sentence, weights in [0, 1] that sum to 1;
        words are those of the tokenizer, which takes a punctuation mark for one. Empty if the
        sentence has no word.

    Raises:
        ValueError: unknown position, or the backbone does not show its attention.

    Example:
        >>> from lib import paths
        >>> weights = attention_to_words(Encoder.load(paths.MINI_BERT), "No dog barks.")
        >>> [word for word, _ in weights], round(sum(weight for _, weight in weights), 6)
        (['No', 'dog', 'barks', '.'], 1.0)

    Source: Zhu et al. 2024 (SDA), §6.6 and Figure 4.
    """
    position = position or encoder.settings["eval_pooling"]
    if position not in POOLINGS:
        raise ValueError(f"position must be one of {', '.join(POOLINGS)}, got {position!r}")
    batch = encoder.tokenizer(
        sentence, return_tensors="pt", truncation=True, max_length=encoder.longest_input()
    )
    ids, mask = (batch[name].to(encoder.device) for name in ("input_ids", "attention_mask"))
    backbone, was_training = encoder.backbone, encoder.training
    implementation = backbone.config._attn_implementation
    encoder.eval()
    backbone.set_attn_implementation("eager")  # the fast implementations never form the weights
    try:
        layers = backbone(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    finally:
        backbone.set_attn_implementation(implementation)
        encoder.train(was_training)
    if not layers:
        raise ValueError(f"{type(backbone).__name__} does not show its attention")
    last = layers[-1][0].double().mean(0)  # (t, t)
    weight = {"cls": last[0], "last_token": last[-1]}.get(position, last.mean(0))  # (t,)
    words: dict[int, float] = {}
    for word, share in zip(batch.word_ids(), weight.tolist(), strict=True):
        if word is not None:
            words[word] = words.get(word, 0) + share
    spans = {word: batch.word_to_chars(word) for word in words}
    return [
        (sentence[slice(*spans[word])].strip(), share / sum(words.values()))
        for word, share in words.items()
    ]
