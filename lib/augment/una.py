"""UNA: hard negatives by swapping a sentence's heavy words for words of similar weight.

Source: Shu & Lampos 2024, "Unsupervised hard Negative Augmentation for contrastive learning", §3 and Algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lib.augment.tfidf import Terms, TfidfModel, ragged_take

SELECT = ("tfidf", "random")
REPLACE = ("window", "uniform")
_PICK, _DRAW, _FORCE = range(3)


@dataclass(frozen=True)
class UNA:
    """Negatives of sentences given as term numbers; draws depend on (seed, epoch, sentence, position) alone.

    Step 2, with z_i the TF-IDF score of a token and a_i = z_i − min z:
        p_i = min(β · a_i / mean(a), 1), and 1 for the first token with the largest z.
    Step 3: a token drawn with p_i becomes one of the `radius` terms below and above it in the order of s,
    with probability proportional to s.

    Args:
        model: frequencies and s.
        beta: β ≥ 0, the mean of p where nothing is cut at 1.
        radius: r ≥ 1, terms on either side.
        include_self: True lets a term "replace" itself, as in the authors' code.
        per: mean(a) over the sentence's tokens ("token", as in the authors' code) or its distinct terms ("type").
        select: "tfidf" is step 2; "random" draws every token with rate β, and one at random where none was drawn.
        replace: "window" is step 3; "uniform" draws from the whole vocabulary.
        seed: of all draws.

    Raises:
        ValueError: a parameter outside its range.

    Example:
        >>> model = TfidfModel.fit(["a cat sat", "a dog ran", "a bird flew"])
        >>> una = UNA(model, beta=0.5, radius=2)
        >>> model.strings(una(model.encode(["a cat sat"])))[0] != "a cat sat"
        True
    """

    model: TfidfModel
    beta: float = 0.5
    radius: int = 4000
    include_self: bool = False
    per: str = "token"
    select: str = "tfidf"
    replace: str = "window"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise ValueError(f"beta must not be negative, got {self.beta}")
        if self.radius < 1:
            raise ValueError(f"radius must be at least 1, got {self.radius}")
        for name, known in (("per", ("token", "type")), ("select", SELECT), ("replace", REPLACE)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")

    def probabilities(self, terms: Terms) -> np.ndarray:
        """p of every token, (tokens,) in [0, 1]; for `select="random"` the rate β before the guarantee."""
        if self.select == "random":
            return np.full(len(terms.ids), min(self.beta, 1.0))
        z = self.model.scores(terms)
        full = np.flatnonzero(terms.lengths)
        starts, lengths = terms.offsets[full], terms.lengths[full]
        a = z - np.repeat(np.minimum.reduceat(z, starts), lengths) if len(full) else z
        if not len(full):
            return a
        weight = np.ones(len(z)) if self.per == "token" else 1 / terms.counts()
        mean = np.add.reduceat(a * weight, starts) / np.add.reduceat(weight, starts)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.minimum(self.beta * a / np.repeat(mean, lengths), 1.0)
        p = np.where(np.repeat(mean, lengths) > 0, p, 0.0)
        top = np.flatnonzero(z == np.repeat(np.maximum.reduceat(z, starts), lengths))
        _, first = np.unique(np.repeat(np.arange(len(full)), lengths)[top], return_index=True)
        p[top[first]] = 1.0
        return p

    def window(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """Terms that may replace `term` of the vocabulary, and their exact probabilities."""
        first, last = self._bounds(self.model.rank[[term]])
        if self.replace == "uniform":
            first, last = np.array([0]), np.array([len(self.model.terms)])
        candidates = self.model.order[first[0] : last[0]]
        weights = np.ones(len(candidates)) if self.replace == "uniform" else self._weights[first[0] : last[0]].copy()
        if not self.include_self:
            weights[candidates == term] = 0
        if not weights.sum():
            weights = np.ones(len(candidates)) if self.include_self else (candidates != term).astype(float)
        return candidates, weights / max(weights.sum(), 1e-300)

    def __call__(self, terms: Terms, rows: Sequence[int] | np.ndarray | None = None, epoch: int = 0) -> Terms:
        """One negative of every sentence, of the same length.

        An empty sentence stays empty. A sentence of at least one term changes in at least one, unless the vocabulary
        has no other term or `include_self` draws the same.

        Args:
            rows: numbers of the sentences in their corpus, (n,); None: 0 … n − 1. A sentence's draws follow from its
                number: the same in any batch and order.
            epoch: another number, other draws.
        """
        rows = np.arange(len(terms)) if rows is None else np.asarray(rows)
        token_rows, position = np.repeat(rows, terms.lengths), _positions(terms)
        pick = uniform(self.seed, epoch, token_rows, position, _PICK) < self.probabilities(terms)
        if self.select == "random":
            self._at_least_one(pick, terms, rows, epoch)
        chosen = np.flatnonzero(pick)
        draw = uniform(self.seed, epoch, token_rows[chosen], position[chosen], _DRAW)
        ids = terms.ids.copy()
        ids[chosen] = self._replacements(terms, chosen, draw)
        return Terms(ids, terms.offsets, terms.unseen)

    def _at_least_one(self, pick: np.ndarray, terms: Terms, rows: np.ndarray, epoch: int) -> None:
        drawn = np.bincount(terms.rows[pick], minlength=len(terms))
        none = np.flatnonzero((drawn == 0) & (terms.lengths > 0))
        where = uniform(self.seed, epoch, rows[none], np.zeros(len(none), np.int64), _FORCE) * terms.lengths[none]
        pick[terms.offsets[none] + where.astype(np.int64)] = True

    @cached_property
    def _weights(self) -> np.ndarray:
        return self.model.s[self.model.order]

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """Prefix sums of s in its order, (V + 1,): `_cumulative[i]` is the weight before place i."""
        return np.concatenate([[0.0], np.cumsum(self._weights)])

    def _bounds(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        last = np.minimum(places + self.radius + 1, len(self.model.terms))
        return np.maximum(places - self.radius, 0), last

    def _replacements(self, terms: Terms, chosen: np.ndarray, draw: np.ndarray) -> np.ndarray:
        """Term numbers for the tokens `chosen`: one prefix-sum difference and one binary search each."""
        size = len(self.model.terms)
        old = terms.ids[chosen]
        known = old < size
        place = self.model.rank[np.where(known, old, 0)]
        if not known.all():  # an unseen term stands where its own score would
            place[~known] = np.searchsorted(self._weights, self.model.scores(terms)[chosen[~known]])
        if self.replace == "uniform":
            first, last, total = np.zeros_like(place), np.full_like(place, size), np.zeros(len(place))
        else:
            first, last = self._bounds(place)
            last = np.where(known, last, np.minimum(place + self.radius, size))
            total = self._cumulative[last] - self._cumulative[first]
        skip = known & (not self.include_self)
        own = np.where(skip, self._weights[np.minimum(place, size - 1)], 0.0)
        total = total - own
        flat = (self.replace == "uniform") | (total <= 1e-12)
        found = self._weighted(first, last, place, own, total, draw)
        if flat.any():
            candidates = last - first - skip
            even = first + np.floor(draw * candidates).astype(np.int64)
            found = np.where(flat, even + (skip & (even >= place)), found)
        found = np.where(skip & (found == place), np.where(place + 1 < last, place + 1, place - 1), found)
        alone = (last - first - skip) < 1
        return np.where(alone, old, self.model.order[np.clip(found, 0, size - 1)])

    def _weighted(self, first, last, place, own, total, draw) -> np.ndarray:
        target = self._cumulative[first] + draw * np.maximum(total, 0)
        target = target + np.where(target >= self._cumulative[np.minimum(place, len(self._weights))], own, 0.0)
        return np.clip(np.searchsorted(self._cumulative, target, side="right") - 1, first, np.maximum(last - 1, first))


def _positions(terms: Terms) -> np.ndarray:
    return np.arange(len(terms.ids)) - np.repeat(terms.offsets[:-1], terms.lengths)


def uniform(seed: int, epoch: int, rows: np.ndarray, positions: np.ndarray, stream: int) -> np.ndarray:
    """Uniform numbers in [0, 1), each a function of its five arguments alone (53 bits of a mixed counter).

    A generator with a state would give a sentence other draws in another batch; a counter does not.

    Source: the finaliser is SplitMix64's, Steele, Lea & Flood 2014.
    """
    state = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64))
    for number in (epoch, stream):
        state = _mix(state + np.uint64(number))
    return (_mix(_mix(state + rows.astype(np.uint64)) + positions.astype(np.uint64)) >> np.uint64(11)) * 2.0**-53


def _mix(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class PieceTable:
    """Token ids of every term, so that a sentence of term numbers becomes model input without a tokenizer.

    Rows equal `tokenizer(" ".join(terms), truncation=True, max_length=…)`. Tokenizers that treat a word after a blank
    and a first word differently (byte-level BPE) get two tables.

    Args:
        tokenizer: a fast `transformers` tokenizer that truncates at the right.
        terms: strings by term number, e.g. `model.terms + terms.unseen`.

    Raises:
        ValueError: truncation at the left, or a `max_length` without room for a word.
    """

    def __init__(self, tokenizer, terms: Sequence[str]):
        if tokenizer.truncation_side != "right":
            raise ValueError("sentences are cut at the right: a tokenizer with truncation_side='left' is not served")
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        self.before, self.after = _frame(tokenizer)
        marker = _marker(tokenizer)
        self.flat, self.offsets = _pieces(tokenizer, [marker + " " + t for t in terms], 1 if marker else 0)
        self.size = len(self.offsets) - 1
        self.two_tables = bool(marker)
        if marker:  # the pieces of a first word stand behind those of later ones
            first, bounds = _pieces(tokenizer, list(terms), 0)
            self.offsets = np.concatenate([self.offsets, bounds[1:] + len(self.flat)])
            self.flat = np.concatenate([self.flat, first])

    def __call__(self, terms: Terms, max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Padded ids `(n, t)` int64 and mask `(n, t)` int64, t ≤ `max_length`, special tokens included."""
        room = max_length - len(self.before) - len(self.after)
        if room < 1:
            raise ValueError(f"max_length {max_length} leaves no room beside the special tokens")
        flat, bounds = self._concatenated(terms)
        lengths = np.minimum(np.diff(bounds), room)
        begin, width = len(self.before), int(lengths.max(initial=0)) + max_length - room
        columns = np.arange(width)
        ids = np.full((len(terms), width), self.pad_id, np.int64)
        inside = (columns >= begin) & (columns < begin + lengths[:, None])  # (n, t)
        spans = np.stack([bounds[:-1], bounds[:-1] + lengths], 1).ravel()
        ids[inside], _ = ragged_take(flat, spans, np.arange(0, 2 * len(terms), 2))
        ids[:, :begin] = self.before
        for k, token in enumerate(self.after):
            ids[np.arange(len(terms)), begin + lengths + k] = token
        mask = columns < (begin + lengths + len(self.after))[:, None]
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))

    def _concatenated(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """Token ids of whole sentences end to end, and the sentences' boundaries."""
        numbers = terms.ids.astype(np.int64)
        if self.two_tables:
            numbers[terms.offsets[:-1][terms.lengths > 0]] += self.size
        flat, offsets = ragged_take(self.flat, self.offsets, numbers)
        return flat, offsets[terms.offsets]


def _frame(tokenizer) -> tuple[list[int], list[int]]:
    """Special tokens that the tokenizer puts before and after a sentence."""
    framed = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    start = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
    return framed[:start], framed[start + len(bare) :]


def _marker(tokenizer) -> str:
    """A first word to put before a term where a blank before a word is part of its tokens, else nothing."""
    plain, spaced = (tokenizer(t, add_special_tokens=False)["input_ids"] for t in ("word", "a word"))
    single = tokenizer("a", add_special_tokens=False)["input_ids"]
    return "" if spaced == single + plain else "a"


def _pieces(tokenizer, strings: list[str], skip: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of each string without its first `skip` tokens, end to end, and their boundaries."""
    parts, lengths = [np.zeros(0, np.int64)], [0]
    for start in range(0, len(strings), 10_000):
        found = tokenizer(strings[start : start + 10_000], add_special_tokens=False, return_attention_mask=False)
        lists = [ids[skip:] for ids in found["input_ids"]]
        parts.append(np.fromiter((i for ids in lists for i in ids), np.int64))
        lengths += [len(ids) for ids in lists]
    flat = np.concatenate(parts)
    dtype = np.uint16 if flat.max(initial=0) <= np.iinfo(np.uint16).max else np.uint32
    return flat.astype(dtype), np.cumsum(lengths)
