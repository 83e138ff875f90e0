"""Streaming of texts through a model in windows, with results in the same order.

Texts are read a window at a time, so memory doesn't grow with their number. Inside a window they
are sorted by length and packed to a token budget (`nn/batching.py`); while the model computes one
window, a thread tokenizes the next.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bertkit.base.errors import BertkitError, InputError
from bertkit.tokenization.tokenizer import check_several, check_texts

WINDOW_TEXTS = 4096
WINDOW_CHARS = 1 << 18  # about 60,000 tokens: the unit of saving, progress and interruption

Text = TypeVar("Text")  # a text, or an object that holds one
Encoded = TypeVar("Encoded")


def check_each(texts: Iterable[str]) -> Iterator[str]:
    """Yield the same texts, checking each when its turn comes."""
    check_several(texts)
    for text in texts:
        check_texts([text])
        yield text


def cut_windows(
    texts: Iterable[Text], measure: Callable[[Any], int] = len, most: int | None = None
) -> Iterator[list[Text]]:
    """Yield lists of texts, at most some thousands each.

    The end of a window depends only on the texts since its start, so a stream resumed at the first
    text of a window yields the same windows. Only before an invalid text a window ends early.

    Args:
        texts: texts, or objects that hold them.
        measure: returns the size of one; by default its number of characters.
        most: total size of texts that ends a window; by default 262,144.
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

    If reading a window fails, the windows before it are yielded before the error is raised.
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
