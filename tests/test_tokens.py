"""Token rows and the batches drawn from them."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_sentences, tiny_tokenizer

from lib.encoder.tokens import TokenRows, tokenise
from lib.training.batches import BucketBatches

few = settings(max_examples=40, deadline=None)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def rows_of(lists: list[list[int]], pad_id: int = 0) -> TokenRows:
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in lists])])
    return TokenRows(np.array([i for x in lists for i in x], np.uint16), offsets, pad_id)


@few
@given(
    lists=st.lists(st.lists(st.integers(1, 65535), max_size=6), min_size=1, max_size=8),
    pad_id=st.integers(0, 9),
    data=st.data(),
)
def test_rows_are_padded_on_the_right(lists, pad_id, data):
    rows = rows_of(lists, pad_id)
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=10))
    ids, mask = rows[np.array(chosen)]
    width = max(len(lists[i]) for i in chosen)
    assert len(rows) == len(lists) and rows.lengths.tolist() == [len(x) for x in lists]
    assert ids.dtype == mask.dtype == torch.int64 and ids.shape == mask.shape == (
        len(chosen),
        width,
    )
    for row, (i, m) in zip(chosen, zip(ids.tolist(), mask.tolist(), strict=True), strict=True):
        rest = width - len(lists[row])
        assert i == lists[row] + [pad_id] * rest
        assert m == [1] * len(lists[row]) + [0] * rest


def test_tokenise_is_the_tokenizer_row_by_row(tokenizer):
    sentences = tiny_sentences(30, seed=3)
    rows = tokenise(sentences, tokenizer, max_length=8)
    for i, sentence in enumerate(sentences):
        expected = tokenizer(sentence, truncation=True, max_length=8)["input_ids"]
        ids, mask = rows[[i]]
        assert ids[0].tolist() == expected and mask.sum() == len(expected) <= 8
    assert rows.lengths.max() == 8
    assert rows.pad_id == tokenizer.pad_token_id


def test_tokenise_does_not_depend_on_its_chunks(tokenizer):
    sentences = tiny_sentences(40) * 260  # more than one chunk of 10,000
    rows = tokenise(sentences, tokenizer, 12)
    first = tokenise(sentences[:40], tokenizer, 12)
    assert len(rows) == 10_400
    for start in (0, 9_960, 10_000, 10_360):
        ids, mask = rows[np.arange(start, start + 40)]
        expected = first[np.arange(40)]
        assert torch.equal(ids, expected[0]) and torch.equal(mask, expected[1])


@pytest.mark.parametrize(("size", "dtype"), [(65_535, np.uint16), (65_536, np.uint32)])
def test_ids_take_two_bytes_where_they_fit(size, dtype):
    class Tokenizer:
        pad_token_id, eos_token_id = None, 7

        def __len__(self):
            return size

        def __call__(self, batch, **_):
            return {"input_ids": [[size - 1, 1] for _ in batch]}

    rows = tokenise(["x"], Tokenizer(), 8)
    assert rows.ids.dtype == dtype and rows[[0]][0].tolist() == [[size - 1, 1]]
    assert rows.pad_id == 7


def test_no_sentence_is_an_error(tokenizer):
    with pytest.raises(ValueError, match="no sentences"):
        tokenise([], tokenizer)


corpora = given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    options=st.fixed_dictionaries(
        {
            "batch_size": st.integers(1, 9),
            "seed": st.integers(0, 99),
            "bucket": st.booleans(),
            "drop_last": st.booleans(),
        }
    ),
)


@few
@corpora
def test_each_row_comes_once_an_epoch(lengths, options):
    """Or is among the few that do not fill a batch."""
    size, n = options["batch_size"], len(lengths)
    if options["drop_last"] and n < size:
        with pytest.raises(ValueError, match="lower batch_size"):
            BucketBatches(np.array(lengths), **options)
        return
    batches = BucketBatches(np.array(lengths), **options)
    assert batches.rows == (n // size * size if options["drop_last"] else n)
    for number in range(2):
        epoch = batches.epoch(number)
        rows = np.concatenate(epoch).tolist()
        assert len(set(rows)) == len(rows) == batches.rows and set(rows) <= set(range(n))
        assert len(epoch) == len(batches) and {len(b) for b in epoch} == batches.sizes
        assert sorted(len(b) for b in epoch)[1:] == [size] * (len(epoch) - 1)


@few
@corpora
def test_starting_at_a_step_equals_continuing(lengths, options):
    options["drop_last"] = False
    batches = BucketBatches(np.array(lengths), **options)
    total = 2 * len(batches) + 3
    all_steps = list(islice(batches.from_step(0), total))
    assert [step for step, _ in all_steps] == list(range(total))
    for start in {1, len(batches) - 1, len(batches), len(batches) + 1, total - 1}:
        fresh = BucketBatches(np.array(lengths), **options)
        tail = list(islice(fresh.from_step(start), total - start))
        for (s, a), (t, b) in zip(all_steps[start:], tail, strict=True):
            assert s == t and np.array_equal(a, b)


def test_epochs_and_seeds_differ():
    lengths = np.random.default_rng(0).integers(3, 30, 200)
    first = np.concatenate(BucketBatches(lengths, 10, 0).epoch(0))
    assert not np.array_equal(first, np.concatenate(BucketBatches(lengths, 10, 0).epoch(1)))
    assert not np.array_equal(first, np.concatenate(BucketBatches(lengths, 10, 1).epoch(0)))


def test_neighbours_in_the_corpus_are_spread_over_the_epoch():
    first = np.concatenate(BucketBatches(np.full(1000, 5), 10, 0, bucket=False).epoch(0))
    assert abs(np.corrcoef(first, np.arange(1000))[0, 1]) < 0.15


def padding(batches: BucketBatches) -> float:
    used = sum(int(batches.lengths[b].sum()) for b in batches.epoch(0))
    read = sum(int(batches.lengths[b].max()) * len(b) for b in batches.epoch(0))
    return 1 - used / read


def test_buckets_save_padding_and_come_in_any_order():
    lengths = np.random.default_rng(0).integers(4, 33, 6_400)
    plain, bucketed = (BucketBatches(lengths, 64, 0, bucket) for bucket in (False, True))
    assert padding(plain) > 0.35 and padding(bucketed) < 0.05
    means = np.array([lengths[b].mean() for b in bucketed.epoch(0)])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4


def test_batches_of_nothing_are_errors():
    with pytest.raises(ValueError, match="do not fill one batch"):
        BucketBatches(np.ones(0), 4, drop_last=False)
