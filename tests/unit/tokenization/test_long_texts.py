"""Long texts are truncated or read in windows, in one way, whatever version wrote the settings."""

import pytest
from pydantic import ValidationError

from bertkit.tokenization.long_texts import LongTextSettings, TextCutter


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
    with pytest.raises(ValidationError, match="`stride` needs `long_texts` windows; set that"):
        LongTextSettings(stride=3)
