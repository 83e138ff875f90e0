"""From a stream of texts to a stream of results in the same order.

Texts are taken a window at a time, so memory doesn't grow with their number. Inside a window they
are sorted by length and packed to a token budget (`nn/batching.py`); while the model computes one
window, a thread tokenizes the next.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bertkit.base.errors import BertkitError, InputError
from bertkit.tokenization.tokenizer import check_several, check_texts

WINDOW_TEXTS = 4096
WINDOW_CHARS = 1 << 18  # about 60,000 tokens: what is saved, shown and interrupted at a time

Text = TypeVar("Text")  # a text, or one with more beside it
Encoded = TypeVar("Encoded")


def check_each(texts: Iterable[str]) -> Iterator[str]:
    """The same texts, each looked at when its turn comes."""
    check_several(texts)
    for text in texts:
        check_texts([text])
        yield text


def cut_windows(
    texts: Iterable[Text], measure: Callable[[Any], int] = len, most: int | None = None
) -> Iterator[list[Text]]:
    """Texts, some thousands at a time.

    Where a window ends depends on the texts since it began alone, so whoever begins at the first
    text of a window gets the same windows. Only before a text that is at fault one ends early.

    Args:
        texts: texts, or what holds them.
        measure: the size of one; by default its characters.
        most: a window ends as soon as its texts have this size together; by default 262,144.
    """
    most = WINDOW_CHARS if most is None else most
    window: list[Text] = []
    size = 0
    try:
        for text in texts:
            window.append(text)
            size += measure(text)
            if len(window) == WINDOW_TEXTS or size >= most:
                yield window
                window, size = [], 0
    except InputError:
        if window:
            yield window
        raise
    if window:
        yield window


def encode_ahead(
    windows: Iterable[list[Text]], encode: Callable[[list[Text]], Encoded]
) -> Iterator[Encoded]:
    """Encode each window in a thread, while the caller works on the one before.

    Where a window can't be read, those before it are given first.
    """
    remaining, waiting = iter(windows), None
    with ThreadPoolExecutor(max_workers=1) as worker:
        while True:
            window, error = None, None
            try:
                window = next(remaining, None)
            except BertkitError as raised:
                error = raised
            future = None if window is None else worker.submit(encode, window)
            if waiting is not None:
                yield waiting.result()
            if error is not None:
                raise error
            if future is None:
                return
            waiting = future
