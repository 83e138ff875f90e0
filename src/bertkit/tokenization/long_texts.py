"""How a text with more tokens than a model reads at a time is cut: truncated, or in windows."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Count, Settings

MAX_WINDOWS = 32  # of a text to classify; the rest isn't read


@dataclass(frozen=True)
class TextCutter:
    """Cuts a long text to its beginning, or to windows that overlap and leave nothing out.

    Attributes:
        size: tokens of a window, without special ones.
        stride: tokens between the starts of two windows; more than `size` count as `size`, and None
            truncates.
    """

    size: int
    stride: int | None = None

    def cut(self, num_tokens: int) -> tuple[range, ...]:
        """Return the tokens of each window; the last may be shorter. A text that fits is one."""
        starts = range(1)
        if self.stride is not None and num_tokens > self.size:
            step = min(self.size, self.stride)
            starts = range(0, num_tokens - self.size + step, step)
        return tuple(range(start, min(start + self.size, num_tokens)) for start in starts)

    def cut_words(self, lengths: Sequence[int]) -> tuple[range, ...]:
        """Return the words of each window, given the tokens of each word, none above `size`.

        No word is divided: a window starts at a word, and shares at most `size - stride` tokens
        with the one before.
        """
        starts = [*accumulate(lengths, initial=0)]
        ends = starts[1:]
        windows = [range(bisect_right(ends, self.size))]
        while self.stride is not None and (stop := windows[-1].stop) < len(lengths):
            overlap = max(0, self.size - max(self.stride, lengths[stop]))
            begin = bisect_left(starts, starts[stop] - overlap)
            windows.append(range(begin, bisect_right(ends, starts[begin] + self.size)))
        return tuple(windows)


class LongTextSettings(Settings):
    """What is read of a text that has more tokens than max_length."""

    long_texts: Literal["truncate", "windows"] = Field(
        default="truncate",
        description="What is read of texts longer than --max-length: truncate, their beginning;"
        " windows, all of them, in windows that overlap, of which a classifier reads at most"
        f" {MAX_WINDOWS}.",
    )
    stride: Count | None = Field(
        default=None,
        description="Tokens between the starts of two windows; more than a window count as a"
        " window. By default half a window.",
    )

    @model_validator(mode="after")
    def _stride_is_that_of_windows(self) -> Self:
        if self.stride is not None and self.long_texts == "truncate":
            raise ValueError("`stride` needs `long_texts` windows; set that, or omit `stride`")
        return self

    def cutter(self, size: int, usual_stride: int | None = None) -> TextCutter:
        """Build the cutter of windows of `size` tokens, by default half a window apart."""
        if self.long_texts == "truncate":
            return TextCutter(size)
        return TextCutter(size, self.stride or usual_stride or max(1, size // 2))
