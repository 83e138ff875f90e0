"""Each function of the checked packages is checked in a test, however late it is first called."""

import jaxtyping
import pytest
import torch
from tests.shape_checks import MOST_CHECKS, start_again

from bertkit.nn.head_blocks import length_mask
from bertkit.nn.packing import pad


@pytest.fixture(scope="module", autouse=True)
def _much_done_before():
    loop()


def loop():
    for _ in range(2 * MOST_CHECKS):
        length_mask([1], torch.device("cpu"))


def test_what_fixtures_call_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        length_mask("no lengths", torch.device("cpu"))


def test_first_calls_are_checked_however_late():
    loop()
    with pytest.raises(RuntimeError, match="no device"):  # of torch: no longer checked
        length_mask([1], "no device")
    with pytest.raises(jaxtyping.TypeCheckError):
        pad(torch.zeros(1), torch.zeros(1))
    start_again()
    with pytest.raises(jaxtyping.TypeCheckError):
        length_mask([1], "no device")
