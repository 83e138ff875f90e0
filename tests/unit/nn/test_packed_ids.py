"""The tokens of packed sequences are reduced to a row for each."""

import numpy as np
import pytest
from tests.closeness import assert_close

from bertkit.nn.packed_ids import reduce_sequences


@pytest.mark.parametrize("how", [np.add, np.maximum])
def test_each_sequence_is_reduced_as_if_it_were_alone(how):
    lengths = [3, 3, 1, 5, 1, 1, 3]
    tokens = np.random.default_rng(0).standard_normal((sum(lengths), 4), np.float32)
    parts = np.split(tokens, np.cumsum(lengths)[:-1])
    found = reduce_sequences(tokens, lengths, how)
    assert_close(found, np.stack([how.reduce(part, axis=0) for part in parts]))
