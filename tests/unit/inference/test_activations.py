"""Activation functions in NumPy give what PyTorch's give."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.closeness import assert_close

from bertkit.inference import activations

EXPECTED = {
    "erf": torch.erf,
    "gelu": F.gelu,
    "gelu_tanh": lambda values: F.gelu(values, approximate="tanh"),
    "mish": F.mish,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXPECTED)
def test_functions_agree_with_those_of_torch(name, kind):
    values = np.concatenate([np.linspace(-8, 8, 10_001), [-100, 0, 100]]).astype(kind)
    found = getattr(activations, name)(values)
    assert found.dtype == kind
    assert_close(found, EXPECTED[name](torch.from_numpy(values)))


def test_what_is_no_number_stays_none():
    assert np.isnan(activations.gelu(np.array([np.nan]))).all()
