"""What a check says of a reader's answer, whatever the reader returns."""

import numpy as np
import pytest
import torch

from lib.say import judge

ROW = torch.tensor([0.25, 0.75])


@pytest.mark.parametrize(
    "yours",
    [
        ROW.tolist(),
        ROW.double(),
        ROW.bfloat16(),
        ROW.clone().requires_grad_(),
        tuple(ROW),
        ROW.numpy() + 1e-6,
    ],
)
def test_a_right_answer_is_right_in_any_type(yours) -> None:
    assert judge(yours, ROW) == judge(yours, ROW.numpy()) == "right"


@pytest.mark.parametrize(
    ("yours", "shape"),
    [
        (0.25, "()"),
        ([0.25], "(1,)"),
        (ROW[None], "(1, 2)"),
        ([[0.25], [0.75, 0.0]], None),
        ({"a": 1}, None),
        ("a half", None),
        ([ROW, 1.0], None),
        (ROW * np.nan, None),
    ],
)
def test_a_wrong_answer_of_any_kind_is_not_yet_right(yours, shape) -> None:
    of_shape = f"not yet, shape {shape} where (2,) is wanted"
    assert judge(yours, ROW) == (of_shape if shape else "not yet")
    assert judge(yours, ROW, "two numbers") == (of_shape if shape else "not yet, two numbers")


def test_no_answer_is_no_mistake() -> None:
    assert judge(None, ROW, "think again") == "not written yet"
