"""A saved TF-IDF model that is damaged is refused, whatever the damage."""

import numpy as np
import pytest

from lib.augment.una import TfidfModel


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    TfidfModel.fit(["a cat sat", "a dog ran", "a bird flew"]).save(path)
    return path


def test_no_change_of_a_byte_goes_unnoticed_or_uncaught(saved) -> None:
    whole = saved.read_bytes()
    terms, idf = TfidfModel.load(saved).terms, TfidfModel.load(saved).idf
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        saved.write_bytes(
            damaged[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else damaged
        )
        try:
            found = TfidfModel.load(saved)
        except ValueError as error:
            assert str(saved) in str(error) and "\n" not in str(error)
        else:
            assert found.terms == terms and np.array_equal(found.idf, idf)
