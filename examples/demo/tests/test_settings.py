"""What `--minutes` and `--device` change, and what they leave."""

import pytest

from bertkit.base.errors import SettingsError
from bertkit.base.settings import list_differences, validate
from bertkit.training.settings import MAY_CHANGE
from bertkit_demo.settings import DemoSettings


def test_more_minutes_are_only_another_budget_so_that_a_run_can_grow():
    short, long = (
        DemoSettings(minutes=minutes).pretrain_settings().model_dump() for minutes in (1.0, 2.5)
    )
    assert list_differences(short, long) == ["minutes: 1.0 → 2.5"]
    assert "minutes" in MAY_CHANGE


def test_the_device_is_handed_on():
    assert DemoSettings(device="cuda:1").pretrain_settings().device == "cuda:1"


@pytest.mark.parametrize("minutes", [0, -1, float("inf"), float("nan")])
def test_impossible_minutes_are_refused(minutes):
    with pytest.raises(SettingsError, match="minutes"):
        validate(DemoSettings, {"minutes": minutes}, "demo")
