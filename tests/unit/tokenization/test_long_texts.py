"""Long texts are truncated or read in windows, in one way, whatever version wrote the settings."""

import pytest
from pydantic import ValidationError

from bertkit.tokenization.long_texts import LongTextSettings, TextCutter, update_settings


@pytest.mark.parametrize("num_tokens", [0, 1, 4, 5, 6, 13])
@pytest.mark.parametrize("stride", [1, 2, 4, 9])
def test_windows_are_a_stride_apart_and_leave_nothing_out(num_tokens, stride):
    windows = TextCutter(4, stride).cut(num_tokens)
    assert [window.start for window in windows] == [n * min(4, stride) for n in range(len(windows))]
    assert all(len(window) == 4 for window in windows[:-1])
    assert windows[-1].stop == num_tokens
    assert sorted({place for window in windows for place in window}) == [*range(num_tokens)]


def test_truncation_keeps_the_beginning():
    assert TextCutter(4).cut(9) == (range(4),)
    assert TextCutter(4).cut(3) == (range(3),)
    assert TextCutter(4).cut_words([1, 2, 2, 1]) == (range(2),)


def test_windows_are_half_a_window_apart_unless_a_stride_is_given():
    assert LongTextSettings().cutter(9) == TextCutter(9)
    windows = LongTextSettings(long_texts="windows")
    assert windows.cutter(9) == TextCutter(9, 4)
    assert windows.cutter(1) == TextCutter(1, 1)
    assert windows.cutter(9, 7) == TextCutter(9, 7)
    assert LongTextSettings(long_texts="windows", stride=3).cutter(9, 7) == TextCutter(9, 3)
    with pytest.raises(ValidationError, match="stride needs long_texts windows; set that"):
        LongTextSettings(stride=3)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({"long_texts": "head", "stride": 9, "max_windows": 5}, {"long_texts": "truncate"}),
        (
            {"long_texts": "windows", "stride": 9, "max_windows": 32},
            {"long_texts": "windows", "stride": 9},
        ),
        ({"doc_stride": 128}, {"long_texts": "windows"}),
        ({"doc_stride": 64}, {"long_texts": "windows", "stride": 64}),
        ({"max_length": 128, "context": 32}, {"max_length": 128, "long_texts": "windows"}),
        (
            {"max_length": 12, "context": 3},
            {"max_length": 12, "long_texts": "windows", "stride": 7},
        ),
        (
            {"max_length": 12, "context": 90},
            {"max_length": 12, "long_texts": "windows", "stride": 5},
        ),
        ({"too_long": "cut"}, {"long_texts": "truncate"}),
        ({"too_long": "leave_out"}, {"long_texts": "leave_out"}),
        ({"seed": 1}, {"seed": 1}),
    ],
)
def test_settings_of_earlier_versions_have_todays_names(saved, expected):
    found = update_settings(saved)
    assert {name: value for name, value in found.items() if value is not None} == expected
    assert update_settings(found) == found


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"long_texts": "tail", "max_windows": 32}, "there is no long_texts tail now; train it"),
        ({"long_texts": "head_tail"}, "there is no long_texts head_tail now"),
        ({"long_texts": "windows", "max_windows": 5}, "max_windows is always 32 now; train it"),
    ],
)
def test_what_can_no_longer_be_read_alike_is_refused(saved, message):
    with pytest.raises(ValueError, match=message):
        update_settings(saved)
