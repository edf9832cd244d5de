"""Views in embedding space: exact counts, padding, equal draws equal views, real encoders of four
architectures."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModel

from lib.augment import vectors
from lib.augment.vectors import EmbeddingViews, draw, k_smallest

WIDTH = 6
ROWS = ("token_cutoff", "span_cutoff")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mask_of(lengths: list[int], left: bool = False) -> torch.Tensor:
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    return mask.flip(1) if left else mask


batches = st.tuples(
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
    st.floats(0, 1),
    st.booleans(),
    st.integers(0, 10_000),
)


def embedded(batch) -> tuple[torch.Tensor, torch.Tensor, list[int], float, int]:
    """Embeddings without a zero, and the mask, of a drawn batch; its lengths, rate and seed."""
    lengths, rate, left, seed = batch
    mask = mask_of(lengths, left)
    return torch.rand(*mask.shape, WIDTH) + 0.5, mask, lengths, rate, seed


# --- selection
# -------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 700), st.integers(1, 4), st.sampled_from([3, 2**31]))
def test_smallest_is_a_full_sort(seed: int, m: int, n: int, top: int) -> None:
    draws = torch.randint(-top, top, (n, m), generator=generator(seed), dtype=torch.int32)
    among = torch.rand(n, m, generator=generator(seed + 1)) < 0.7
    share = torch.rand(n, generator=generator(seed + 2))
    k = (share * (among.sum(1) + 1)).long().clamp_max(among.sum(1))
    keys = draws.long().masked_fill(~among, 2**40)
    rank = keys.argsort(dim=1, stable=True).argsort(1)
    assert k_smallest(draws, k, among).equal(rank < k[:, None])


def are_equally_frequent(codes: torch.Tensor, kinds: int) -> bool:
    """Chi-square at p = 1e-4 of 4 to 6 kinds."""
    counts = codes.unique(return_counts=True)[1].double()
    expected = len(codes) / kinds
    return len(counts) == kinds and ((counts - expected) ** 2 / expected).sum() < 25.7


def test_subsets_shuffles_and_spans_are_uniform() -> None:
    n = 30_000
    among = torch.ones(n, 4, dtype=torch.bool)
    chosen = k_smallest(draw((n, 4), generator()), torch.full((n,), 2), among)
    assert are_equally_frequent((chosen * torch.tensor([1, 2, 4, 8])).sum(1), 6)
    shuffled = vectors.shuffle(torch.arange(3).repeat(n, 1), torch.ones(n, 3), generator())
    assert are_equally_frequent((shuffled * torch.tensor([9, 3, 1])).sum(1), 6)
    cut = vectors.span_cutoff(torch.ones(n, 6, 1), torch.ones(n, 6), 0.5, generator())
    assert are_equally_frequent((cut[..., 0] == 0).int().argmax(1), 4)


# --- counts
# ------------------------------------------------------------------------------------------


@given(batches)
def test_token_and_span_cutoff_zero_exactly_that_many_rows(batch) -> None:
    x, mask, lengths, rate, seed = embedded(batch)
    for name in ROWS:
        y = vectors.OUTPUT_VIEWS[name](x.clone(), mask, rate, generator(seed))
        zero = (y == 0).all(2)
        assert zero.sum(1).tolist() == [int(rate * length) for length in lengths]
        assert not (zero & (mask == 0)).any()
        assert y[~zero].equal(x[~zero])
        if name == "span_cutoff":
            for row, real in zip(zero, mask.bool(), strict=True):
                where = row[real].nonzero().flatten().tolist()
                assert where == list(range(where[0], where[0] + len(where))) if where else True


@given(batches)
def test_feature_cutoff_zeroes_columns_of_the_real_tokens(batch) -> None:
    x, mask, _, rate, seed = embedded(batch)
    y = vectors.feature_cutoff(x.clone(), mask, rate, generator(seed))
    for before, after, real in zip(x, y, mask.bool(), strict=True):
        columns = (after[real] == 0).all(0)
        assert columns.sum() == int(rate * WIDTH)
        assert after[real][:, ~columns].equal(before[real][:, ~columns])
        assert after[~real].equal(before[~real])


@given(batches)
def test_dropout_zeroes_exactly_that_many_elements_and_scales_nothing(batch) -> None:
    x, mask, lengths, rate, seed = embedded(batch)
    y = vectors.dropout_view(x.clone(), mask, rate, generator(seed))
    assert (y == 0).sum((1, 2)).tolist() == [int(rate * (length * WIDTH)) for length in lengths]
    assert y[y != 0].equal(x[y != 0])
    assert y[mask == 0].equal(x[mask == 0])


@given(batches)
def test_shuffle_permutes_the_positions_of_real_tokens(batch) -> None:
    lengths, _, left, seed = batch
    mask = mask_of(lengths, left)
    positions = torch.arange(2, 2 + mask.shape[1]).repeat(len(mask), 1)
    shuffled = vectors.shuffle(positions, mask, generator(seed))
    for before, after, real in zip(positions, shuffled, mask.bool(), strict=True):
        assert sorted(after[real].tolist()) == before[real].tolist()
        assert after[~real].equal(before[~real])


@given(batches)
def test_keep_span_keeps_one_span_and_pads_the_rest(batch) -> None:
    lengths, rate, left, seed = batch
    mask = mask_of(lengths, left)
    ids = torch.arange(1, mask.numel() + 1).view(mask.shape) * mask
    kept = vectors.keep_span(ids, mask, rate, generator(seed), 0)
    for before, after, real in zip(ids, kept, mask.bool(), strict=True):
        where = (after[real] != 0).nonzero().flatten().tolist()
        assert len(where) == max(int((1 - rate) * real.sum().item()), 1)
        assert where == list(range(where[0], where[0] + len(where)))
        assert after[real][where].equal(before[real][where])


# --- draws
# -------------------------------------------------------------------------------------------


@given(batches)
def test_a_batch_is_its_sentences_one_by_one(batch) -> None:
    lengths, rate, left, seed = batch
    mask = mask_of(lengths, left)
    n, t = mask.shape
    x, positions = torch.rand(n, t, WIDTH), torch.arange(t).repeat(n, 1)
    of_a_row = {"feature_cutoff": (n, WIDTH), "span_cutoff": (n, 1)}
    of_a_token = {"dropout": (n, t, WIDTH), "token_cutoff": (n, t), "shuffle": (n, t)}
    for name, shape in (of_a_row | of_a_token).items():
        view = vectors.OUTPUT_VIEWS.get(name, vectors.shuffle)
        before, options = (positions, ()) if name == "shuffle" else (x, (rate,))
        draws = draw(shape, generator(seed))
        together = view(before.clone(), mask, *options, draws)
        for i in range(n):
            real, row = mask[i].bool(), slice(i, i + 1)
            own = draws[row][:, real] if name in of_a_token else draws[row]
            alone = view(before[row, real], mask[row, real], *options, own)
            assert alone[0].equal(together[i, real])


@pytest.mark.parametrize("name", vectors.OUTPUT_VIEWS)
def test_one_seed_one_view(name: str) -> None:
    x, mask = torch.rand(3, 9, WIDTH), mask_of([9, 4, 6])
    view = vectors.OUTPUT_VIEWS[name]
    first, second, other = (view(x.clone(), mask, 0.5, generator(s)) for s in (1, 1, 2))
    assert first.equal(second)
    assert not first.equal(other)


def test_the_gradient_flows_where_nothing_is_zeroed() -> None:
    x = torch.rand(2, 5, WIDTH, requires_grad=True)
    y = vectors.dropout_view(x * 1, mask_of([5, 3]), 0.5, generator())
    y.sum().backward()
    assert x.grad is not None and x.grad.equal((y != 0).float())


# --- encoders
# ------------------------------------------------------------------------------------------

SMALL = {"vocab_size": 40, "max_position_embeddings": 24, "num_attention_heads": 2}
SMALL |= {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48}
DISTIL = {"vocab_size": 40, "max_position_embeddings": 24, "dim": 32, "n_heads": 2, "n_layers": 2}
BACKBONES = {
    "bert": {**SMALL, "initializer_range": 0.3},
    "roberta": {**SMALL, "pad_token_id": 1},
    "albert": {**SMALL, "embedding_size": 8},
    "mpnet": SMALL,
    "distilbert": {**DISTIL, "hidden_dim": 48},
    "llama": SMALL,
}
VIEWED = [kind for kind in BACKBONES if kind != "llama"]


def backbone(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return AutoModel.from_config(AutoConfig.for_model(kind, **BACKBONES[kind])).eval()


def states(model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids, attention_mask=mask).last_hidden_state


def inputs(pad_id: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    mask = mask_of([9, 5, 3, 7])
    ids = torch.randint(5, 40, mask.shape, generator=generator(3))
    return ids.masked_fill(mask == 0, pad_id), mask


@pytest.mark.parametrize("kind", VIEWED)
def test_views_reach_the_first_layer_and_only_their_part(kind: str) -> None:
    model = backbone(kind)
    ids, mask = inputs(model.config.pad_token_id)
    seen = []
    views = EmbeddingViews(model, [("feature_cutoff", 0.5), ("shuffle", 0.0)])
    handle = model.embeddings.register_forward_hook(
        lambda module, args, x: seen.append(x.detach().clone())
    )
    plain = states(model, ids, mask)
    with views.drawn(mask, [1, 2], generator()):
        changed = states(model, ids, mask)
    before, after = seen
    width = before.shape[2]
    assert (after[0, :9] == 0).all(0).sum() == width // 2
    assert not (after[1:] == 0).all(1).any()
    assert not after[1].equal(before[1])
    assert after[1, mask[1] == 0].equal(before[1, mask[1] == 0])
    assert changed[3].allclose(plain[3], atol=1e-6)
    assert not changed[0].allclose(plain[0], atol=1e-3)
    handle.remove()
    views.remove()
    assert states(model, ids, mask).equal(plain)


def test_shuffling_positions_is_shuffling_words() -> None:
    model = backbone("bert")
    ids, mask = inputs()
    views = EmbeddingViews(model, [("shuffle", 0.0)])
    with views.drawn(mask, [4], generator(5)):
        shuffled = states(model, ids, mask)[mask == 1].sum(0)
    positions = vectors.shuffle(torch.arange(9).repeat(4, 1), mask, generator(5))
    words = torch.empty_like(ids).scatter_(1, positions, ids)
    plain = states(model, words, mask)[mask == 1].sum(0)
    assert shuffled.allclose(plain, atol=1e-3)


def test_roberta_positions_start_after_its_padding() -> None:
    model = backbone("roberta")
    ids, mask = inputs(1)
    seen = []
    model.embeddings.position_embeddings.register_forward_pre_hook(
        lambda module, args: seen.append(args[0])
    )
    model(input_ids=ids, attention_mask=mask)
    with EmbeddingViews(model, [("shuffle", 0.0)]).drawn(mask, [4], generator()):
        model(input_ids=ids, attention_mask=mask)
    plain, shuffled = seen
    assert not shuffled.equal(plain)
    assert shuffled.sort(1).values.equal(plain.sort(1).values)
    assert (shuffled[mask == 0] == 1).all()
    assert shuffled[mask == 1].min() == 2


def test_padded_tokens_of_keep_span_stay_in_attention() -> None:
    model = backbone("bert")
    ids, mask = inputs()
    with EmbeddingViews(model, [("keep_span", 0.5)]).drawn(mask, [4], generator(2)):
        seen = states(model, ids, mask)
    expected = vectors.keep_span(ids, mask, 0.5, generator(2), 0)
    assert seen.equal(states(model, expected, mask))
    assert not (expected == ids).all()


def test_the_positions_of_a_kept_span_do_not_depend_on_the_other_view() -> None:
    model = backbone("roberta")
    ids, mask = inputs(1)
    for other in ("none", "shuffle"):
        seen: list[torch.Tensor] = []
        handle = model.embeddings.position_embeddings.register_forward_pre_hook(
            lambda m, a, s=seen: s.append(a[0])
        )
        views = EmbeddingViews(model, [("keep_span", 0.5), (other, 0.0)])
        with views.drawn(mask, [2, 2], generator()):
            model(input_ids=ids, attention_mask=mask)
        handle.remove()
        assert seen[0][:2].equal((mask.cumsum(1) * mask + 1)[:2])


def test_models_that_cannot_take_a_view_say_so() -> None:
    with pytest.raises(ValueError, match="LlamaModel has no embeddings module"):
        EmbeddingViews(backbone("llama"), [("dropout", 0.1)])
    model = backbone("bert")
    model.embeddings.position_embeddings = None
    with pytest.raises(ValueError, match="BertModel has no absolute positions"):
        EmbeddingViews(model, [("shuffle", 0.0)])
