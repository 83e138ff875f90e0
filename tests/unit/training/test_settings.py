import pytest
from tests.closeness import close

from bertkit.training.settings import OptimizationSettings


def rates(schedule: str, num_steps: int = 100, warmup: float = 0.1) -> list[float]:
    settings = OptimizationSettings(learning_rate=2.0, warmup=warmup, schedule=schedule)
    return [settings.learning_rate_at(step, num_steps) for step in range(num_steps)]


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_it_rises_evenly_to_the_peak_and_never_starts_at_zero(schedule):
    values = rates(schedule)
    assert values[0] == close(2.0 / 11)
    assert values[9] == close(2.0 * 10 / 11)
    assert values[10] == max(values) == 2.0


def test_it_falls_as_asked():
    assert rates("linear")[55] == close(1.0)
    assert rates("linear")[-1] == close(2.0 / 90)
    assert rates("cosine")[55] == close(1.0)
    assert rates("cosine")[30] > rates("linear")[30]
    assert set(rates("constant")[10:]) == {2.0}


def published_rate(step: int, warmup_steps: int, width: int = 512) -> float:
    """Vaswani et al. 2017, equation 3; steps are counted from 1."""
    return width**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def test_inverse_sqrt_is_the_published_schedule():
    peak = published_rate(101, 101)
    settings = OptimizationSettings(learning_rate=peak, schedule="inverse_sqrt")
    ours = [settings.learning_rate_at(step, 1000) for step in range(1000)]
    assert ours == close([published_rate(step, 101) for step in range(1, 1001)])
    assert ours[403] == close(ours[100] / 2)  # the 404th step is four times as far
    assert rates("inverse_sqrt", warmup=0.0)[3] == close(1.0)


@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_the_shortest_runs_learn_too(num_steps):
    assert all(rate > 0 for rate in rates("linear", num_steps, warmup=0.9))
