"""What isn't Unicode in arguments is mended, however they are held."""

import pytest
from pydantic import Field, model_validator

from bertkit.base.errors import SettingsError
from bertkit.base.settings import (
    Settings,
    find_near,
    list_differences,
    list_flag_differences,
    replace_surrogates,
    validate,
)


class Oven(Settings):
    """Settings to test with."""

    degrees: int = Field(180, ge=0, le=300, description="Heat in degrees Celsius.")
    minutes: float = Field(30.0, description="Time.")
    mode: str = Field("fan", description="How it heats.")

    @model_validator(mode="after")
    def _check(self) -> "Oven":
        if self.mode == "grill" and self.minutes > 60:
            raise ValueError("mode grill takes at most 60 minutes")
        return self


def test_infinity_is_no_setting():
    with pytest.raises(SettingsError, match="minutes must be a finite number, got inf"):
        validate(Oven, {"minutes": float("inf")}, "oven.toml")


def test_an_error_lists_everything_that_is_wrong_in_one_line():
    with pytest.raises(SettingsError) as caught:
        validate(Oven, {"degrees": 999, "minuts": 3}, "oven.toml")
    assert str(caught.value) == (
        "oven.toml: degrees must be at most 300, got 999; minuts is unknown; did you mean minutes?"
    )


def test_our_own_checks_are_told_in_our_words():
    with pytest.raises(SettingsError) as caught:
        validate(Oven, {"mode": "grill", "minutes": 90}, "oven.toml")
    assert str(caught.value) == "oven.toml: mode grill takes at most 60 minutes"


def test_a_huge_value_is_not_echoed_whole():
    with pytest.raises(SettingsError) as caught:
        validate(Oven, {"degrees": "9" * 100_000}, "oven.toml")
    assert len(str(caught.value)) < 400


def test_of_many_wrong_keys_the_first_are_told_and_the_others_counted():
    with pytest.raises(SettingsError, match=r"; key19 is unknown; and 80 more$") as caught:
        validate(Oven, {f"key{index}": 1 for index in range(100)}, "oven.toml")
    assert "key20" not in str(caught.value)


class Tray(Settings):
    """Fields of several types, and values with keys."""

    is_full: bool | int = Field(False, description="Fill.")
    rows: tuple[int, ...] | str | None = Field(None, description="Rows.")
    sizes: dict[str, int] | str = Field("all", description="Sizes.")
    counts: dict[str, int] = Field({}, description="Counts.")
    oven: Oven | None = Field(None, description="Where it goes.")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"is_full": "no idea"}, "is_full must be true or false or a whole number, got 'no idea'"),
        (
            {"rows": [1, None, 2.5]},
            "rows.1 must be a whole number, got None; rows.2 must be a whole number, got 2.5",
        ),
        (
            {"counts": {"str": None, "list[int]": None}},
            (
                "counts.str must be a whole number, got None;"
                " counts.list[int] must be a whole number, got None"
            ),
        ),
        ({"oven": {"int": 1}}, "oven.int is unknown"),
    ],
)
def test_a_field_of_several_types_is_named_once_and_keys_stay(values, message):
    with pytest.raises(SettingsError) as caught:
        validate(Tray, values, "tray.toml")
    assert str(caught.value) == f"tray.toml: {message}"


def test_differences_are_named_with_old_and_new():
    assert list_differences(Oven().model_dump(), Oven(degrees=200, mode="grill").model_dump()) == [
        "degrees: 180 → 200",
        "mode: 'fan' → 'grill'",
    ]
    assert list_differences({"a": 1}, {"a": 1}) == []


def test_flags_are_shown_as_they_are_typed():
    before = {"epochs": None, "learning_rate": 1e-5, "cased": False}
    assert list_flag_differences(before, {**before, "epochs": 5.0}) == ["--epochs not given → 5"]
    now = {**before, "learning_rate": 1e22, "cased": True}
    assert list_flag_differences(before, now) == [
        "--cased false → true",
        "--learning-rate 1e-05 → 1e+22",
    ]


@pytest.mark.parametrize(
    ("value", "mended"),
    [
        ("a\udcff", "a\ufffd"),
        (("a", "b\udcff"), ("a", "b\ufffd")),
        ({"choices": ["\udcff"], "question": None}, {"choices": ["\ufffd"], "question": None}),
    ],
)
def test_inputs_of_all_kinds_are_mended(value, mended):
    assert replace_surrogates(value) == mended


def test_the_nearest_is_first():
    assert find_near("outptu", ["out", "output", "top-k"]) == ["output"]
    assert find_near("lora", ["format", "load"]) == []
    assert find_near("lora " * 100_000, ["format", "load", "f" * 1000]) == []
    assert find_near("ma", ["max-length"]) == []
    assert find_near("max", ["max-length"]) == ["max-length"]
