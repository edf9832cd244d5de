"""The report's back-translations stand beside the sentences they translate."""

import numpy as np
import pytest

from lib import data, paths
from tools import translations


def test_a_short_file_is_refused() -> None:
    with pytest.raises(ValueError, match="1 translations of 2"):
        translations.aligned(["a", "b"], ["x", ""])


@pytest.mark.real_data
def test_each_line_translates_its_own_sentence(tmp_path, monkeypatch) -> None:
    if not any((folder / translations.FOLDER / "1.txt").is_file() for folder in paths.data_dirs()):
        pytest.skip("the back-translations are not here")
    monkeypatch.setattr(translations, "TARGET", tmp_path / "translated.txt")
    assert translations.main() == 0
    sentences, translated = data.aligned_corpus("stsb_train", tmp_path / "translated.txt")
    words = [[set(text.lower().split()) for text in texts] for texts in (sentences, translated)]

    def shared(shift: int) -> float:
        """Mean share of words that a sentence has in common with the line `shift` below it."""
        both = zip(words[0], np.roll(np.array(words[1], object), -shift), strict=True)
        return float(np.mean([len(a & b) / len(a | b) for a, b in both]))

    assert shared(0) > 0.3 and shared(1) < 0.1
