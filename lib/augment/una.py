"""UNA: hard negatives by swapping a sentence's heavy words for words of similar weight.

Source: Shu & Lampos 2024, "Unsupervised hard Negative Augmentation for contrastive learning", §3
    and Algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lib.augment.tfidf import Terms, TfidfModel

SELECT = ("tfidf", "random")
REPLACE = ("window", "uniform")
_PICK, _DRAW, _FORCE = range(3)


@dataclass(frozen=True)
class UNA:
    """Negatives of sentences given as term numbers; draws depend on (seed, epoch, sentence,
    position) alone.

    Step 2, with z_i the TF-IDF score of a token and a_i = z_i − min z:
        p_i = min(β · a_i / mean(a), 1), and 1 for the first token with the largest z.
    Step 3: a token drawn with p_i becomes one of the `radius` terms below and above it in the
    order of s, with probability proportional to s.

    Terms of equal s stand in the order in which the corpus first names them. The authors sort
    from the highest s down, so that equal terms stand the other way round: nearly every window
    then holds other members (here and theirs share all of them in 0.5 % of the windows), with the
    same weights, and the negatives change as often and as far.

    Args:
        model: frequencies and s.
        beta: β ≥ 0, the mean of p where nothing is cut at 1.
        radius: r ≥ 1, terms on either side.
        include_self: True keeps a term in its own window, so that it may "replace" itself, as in
            the authors' code.
        per: mean(a) over the sentence's tokens ("token", as in the authors' code) or its distinct
            terms ("type").
        select: "tfidf" is step 2; "random" draws every token with rate β, and one at random where
            none was drawn.
        replace: "window" is step 3; "uniform" draws from the whole vocabulary, as both steps of the
            authors' option `uni` do. Their `--p2_rand` draws step 3 from the 2r + 1 terms around a
            term in the order in which the corpus first names them, which is not here; `uni` also
            leaves sentences of fewer than three tokens alone and need not change a sentence.
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
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )

    def probabilities(self, terms: Terms) -> np.ndarray:
        """p of every token, (tokens,) in [0, 1]; for `select="random"` the rate β before the
        guarantee."""
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
        (first,), (last,) = self._bounds(self.model.rank[[term]], np.ones(1, bool))
        candidates, weights = self.model.order[first:last], self._weights[first:last].copy()
        if not self.include_self:
            weights[candidates == term] = 0
        if not weights.sum():
            weights = (
                np.ones(len(candidates))
                if self.include_self
                else (candidates != term).astype(float)
            )
        return candidates, weights / max(weights.sum(), 1e-300)

    def __call__(
        self, terms: Terms, rows: Sequence[int] | np.ndarray | None = None, epoch: int = 0
    ) -> Terms:
        """One negative of every sentence, of the same length.

        An empty sentence stays empty. A sentence of at least one term changes in at least one,
        unless the vocabulary has no other term or `include_self` draws the same.

        Args:
            rows: numbers of the sentences in their corpus, (n,); None: 0 … n − 1. A sentence's
                draws follow from its number: the same in any batch and order.
            epoch: another number, other draws.
        """
        rows = np.arange(len(terms)) if rows is None else np.asarray(rows)
        token_rows, position = np.repeat(rows, terms.lengths), _positions(terms)
        pick = uniform(self.seed, epoch, token_rows, position, _PICK) < self.probabilities(terms)
        if self.select == "random":
            self._at_least_one(pick, terms, rows, epoch)
        picked = np.flatnonzero(pick)
        draw = uniform(self.seed, epoch, token_rows[picked], position[picked], _DRAW)
        ids = terms.ids.copy()
        ids[picked] = self._replacements(terms, picked, draw)
        return Terms(ids, terms.offsets, terms.unseen)

    def _at_least_one(self, pick: np.ndarray, terms: Terms, rows: np.ndarray, epoch: int) -> None:
        drawn = np.bincount(terms.rows[pick], minlength=len(terms))
        none = np.flatnonzero((drawn == 0) & (terms.lengths > 0))
        where = (
            uniform(self.seed, epoch, rows[none], np.zeros(len(none), np.int64), _FORCE)
            * terms.lengths[none]
        )
        pick[terms.offsets[none] + where.astype(np.int64)] = True

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weight of every rank in the order of s: s, or 1 where all are drawn alike. (V,)"""
        ordered = self.model.s[self.model.order]
        return np.ones_like(ordered) if self.replace == "uniform" else ordered

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """Prefix sums of the weights, (V + 1,): `_cumulative[i]` is the weight before rank i."""
        return np.concatenate([[0.0], np.cumsum(self._weights)])

    def _bounds(self, rank: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The window's first rank and the one behind its last; "uniform" is a window of
        everything."""
        size = len(self.model.terms)
        radius = size if self.replace == "uniform" else self.radius
        return np.maximum(rank - radius, 0), np.minimum(rank + radius + known, size)

    def _replacements(self, terms: Terms, picked: np.ndarray, draw: np.ndarray) -> np.ndarray:
        """Term numbers for the tokens `picked`, each by one binary search in the prefix sums."""
        size, old = len(self.model.terms), terms.ids[picked]
        known = old < size
        rank = self.model.rank[np.minimum(old, size - 1)]
        if not known.all():  # an unseen term stands where its own score would
            ordered = self.model.s[self.model.order]
            rank = np.where(known, rank, np.searchsorted(ordered, self.model.scores(terms)[picked]))
        first, last = self._bounds(rank, known)
        leave_out = known & (not self.include_self)
        own_weight = leave_out * self._weights[np.minimum(rank, size - 1)]
        drawn = _drawn(self._cumulative, rank, first, last, own_weight, draw)
        weightless = self._cumulative[last] - self._cumulative[first] - own_weight <= 1e-12
        if weightless.any():
            alike = _drawn(np.arange(size + 1.0), rank, first, last, leave_out * 1.0, draw)
            drawn = np.where(weightless, alike, drawn)
        beside = np.where(rank + 1 < last, rank + 1, rank - 1)
        drawn = np.where(leave_out & (drawn == rank), beside, drawn)  # by rounding alone
        return self.model.order[np.maximum(drawn, 0)]


def _drawn(
    cumulative: np.ndarray,
    rank: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    own_weight: np.ndarray,
    draw: np.ndarray,
) -> np.ndarray:
    """Ranks in [first, last) by their weight, whose sums are `cumulative`, less `own_weight` at
    `rank`. All (tokens,)."""
    others = cumulative[last] - cumulative[first] - own_weight
    target = cumulative[first] + draw * others
    target += own_weight * (target >= cumulative[rank])  # jump over the term itself
    return np.clip(np.searchsorted(cumulative, target, side="right") - 1, first, last - 1)


def _positions(terms: Terms) -> np.ndarray:
    return np.arange(len(terms.ids)) - np.repeat(terms.offsets[:-1], terms.lengths)


def uniform(
    seed: int, epoch: int, rows: np.ndarray, positions: np.ndarray, stream: int
) -> np.ndarray:
    """Uniform numbers in [0, 1), each a function of its five arguments alone (53 bits of a mixed
    counter).

    A generator with a state would give a sentence other draws in another batch; a counter does not.

    Source: the finaliser is SplitMix64's, Steele, Lea & Flood 2014.
    """
    state = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64))
    for number in (epoch, stream):
        state = _mix(state + np.uint64(number))
    return (
        _mix(_mix(state + rows.astype(np.uint64)) + positions.astype(np.uint64)) >> np.uint64(11)
    ) * 2.0**-53


def _mix(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
