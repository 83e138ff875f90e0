"""Shares are shown with their number and their interval."""

import pytest
from scipy.stats import binomtest
from tests.closeness import assert_close

from bertkit.tasks.metrics.shares import describe_share, wilson_interval


@pytest.mark.parametrize(("right", "number"), [(30, 34), (0, 5), (5, 5), (1, 2), (411, 9000)])
def test_the_interval_is_that_of_scipy(right, number):
    found = binomtest(right, number).proportion_ci(method="wilson")
    assert_close(wilson_interval(right / number, number), (found.low, found.high))


def test_a_share_has_its_number_and_its_interval():
    metrics = {"mlm_accuracy": 30 / 34, "mlm_count": 34, "nsp_accuracy": 0.5}
    assert describe_share(metrics, "mlm_accuracy") == "88.2 % (73.4–95.3 %, 34 blanks)"
    assert describe_share(metrics, "nsp_accuracy") == "50.0 %"  # of a run that counted none
