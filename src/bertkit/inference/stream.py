"""Streaming of texts through a model in windows, with results in the same order.

Texts are read a window at a time, so memory doesn't grow with their number. Inside a window they
are sorted by length and packed to a token budget (`nn/packing.py`); while the model computes one
window, a thread tokenizes the next.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

from bertkit.base.errors import BertkitError, InputError
from bertkit.tokenization.long_texts import TextCutter
from bertkit.tokenization.tokenizer import Tokenizer, check_texts

TextOrIds = str | Sequence[int]
NUL = "\0"


@dataclass
class InputCounts:
    """Statistics of inputs; those of several windows add up. What isn't counted is 0."""

    @property
    def tokens(self) -> int:
        """Tokens that the model reads."""
        return 0

    @property
    def truncated(self) -> int:
        """Inputs that are cut off."""
        return 0

    @property
    def text_tokens(self) -> int:
        """Tokens of the texts, without special ones."""
        return 0

    @property
    def unknown_tokens(self) -> int:
        """Tokens that are [UNK]."""
        return 0

    def add(self, other: "InputCounts") -> None:
        """Add the counts of another object."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass
class TextCounts(InputCounts):
    """InputCounts over texts; a text is counted under each field that applies."""

    texts: int = 0
    tokens: int = 0  # that the model processed, with special tokens and overlaps of parts
    text_tokens: int = 0  # of the whole texts, without special tokens
    unknown_tokens: int = 0  # of these, [UNK]
    empty: int = 0  # without a token, such as white space; encoded as [CLS] [SEP]
    unknown_only: int = 0  # with no word in the vocabulary; encoded as [UNK] …
    truncated: int = 0  # of which the end was cut off
    windowed: int = 0  # split into parts
    with_nul: int = 0  # with a NUL, which WordPiece drops, as all control characters
    undecodable: int = 0  # with bytes that aren't valid UTF-8, read as U+FFFD


@dataclass(frozen=True)
class EncodedTexts:
    """Encoded texts; a long text may have several sequences."""

    ids: list[list[int]]  # of each sequence, with [CLS] and [SEP]
    owners: list[int]  # index of each sequence's text; those of a text are consecutive
    num_skipped: list[int]  # leading tokens left out of pooling: [CLS] and the prompt, or 0
    num_texts: int
    counts: TextCounts

    @classmethod
    def join(cls, several: Sequence[Self]) -> Self:
        """Join the texts of several objects, in their order."""
        joined = cls([], [], [], 0, TextCounts())
        for one in several:
            joined.ids.extend(one.ids)
            joined.owners.extend(joined.num_texts + owner for owner in one.owners)
            joined.num_skipped.extend(one.num_skipped)
            joined.counts.add(one.counts)
            joined = replace(joined, num_texts=joined.num_texts + one.num_texts)
        return joined


@dataclass(frozen=True)
class TextEncoder:
    """Encodes texts as sequences."""

    tokenizer: Tokenizer
    max_length: int  # of a sequence in tokens, including special tokens
    stride: int | None = None  # tokens between the starts of two parts of a text; None truncates
    prompt: str = ""  # prepended to each text
    lowercase: bool = False  # before tokenization
    skips_prompt: bool = False  # whether the prompt's tokens are left out of pooling
    keeps_end: bool = False  # whether a text's start is cut off instead of its end

    def __call__(self, texts: Sequence[TextOrIds]) -> EncodedTexts:
        """Encode texts, or checked token ids as `check` takes them; no text is ever rejected."""
        num_special, [num_before] = self.tokenizer.num_special(), self.tokenizer.find_starts(0)
        room = self.max_length - num_special
        counts = TextCounts(texts=len(texts), with_nul=sum(NUL in text for text in texts))
        found = EncodedTexts([], [], [], len(texts), counts)
        prompt = self._cut(self.prompt) if self.prompt else []
        num_of_prompt = len(prompt)
        for owner, text in enumerate(texts):
            if isinstance(text, str):
                pieces = self._cut(self.prompt + text)
            else:
                pieces = [*prompt, *text[num_before : len(text) - num_special + num_before]]
            counts.empty += len(pieces) <= num_of_prompt
            own = pieces[num_of_prompt:]
            num_unknown = own.count(self.tokenizer.unk_id)
            counts.text_tokens += len(own)
            counts.unknown_tokens += num_unknown
            counts.unknown_only += 0 < num_unknown == len(own)
            if len(pieces) <= room:
                parts = [pieces]
            elif self.keeps_end and self.stride is None:
                parts = [(pieces[:num_of_prompt] + own[len(pieces) - room :])[:room]]
            else:
                parts = [
                    pieces[part.start : part.stop]
                    for part in TextCutter(room, self.stride).cut(len(pieces))
                ]
            counts.windowed += len(parts) > 1
            counts.truncated += len(parts) == 1 and len(pieces) > room
            for number, part in enumerate(parts):
                found.ids.append(self.tokenizer.join(part)[0])
                found.owners.append(owner)
                is_skipping = self.skips_prompt and number == 0 and num_of_prompt
                num_skipped = num_before + min(num_of_prompt, len(part))
                found.num_skipped.append(num_skipped if is_skipping else 0)
                counts.tokens += len(part) + num_special
        return found

    def check(self, value: object) -> None:
        """Raise InputError for what is neither a text nor the token ids of one.

        Ids are a list or a tuple, from [CLS] to [SEP], as clients of OpenAI's own models send them
        from another vocabulary, where they mean other words.
        """
        if not isinstance(value, list | tuple) or not all(isinstance(one, int) for one in value):
            check_texts([value])
            return
        ends, _ = self.tokenizer.join([])
        if len(value) < len(ends) or [value[0], value[-1]] != [ends[0], ends[-1]]:
            first, last = (
                f"{id_} ({self.tokenizer.vocabulary[id_]})" for id_ in (ends[0], ends[-1])
            )
            raise InputError(
                f"token ids must be those of this model's tokenizer, from {first} to {last}; send"
                " texts instead (in LangChain check_embedding_ctx_length=False)"
            )
        self.tokenizer.check_ids(value)

    def _cut(self, text: str) -> list[int]:
        return self.tokenizer.piece_ids([text.lower() if self.lowercase else text])[0]


WINDOW_TEXTS = 4096
WINDOW_CHARS = 1 << 18  # about 60,000 tokens: the unit of saving, progress and interruption

Text = TypeVar("Text")  # a text, or an object that holds one
Encoded = TypeVar("Encoded")


def cut_windows(
    texts: Iterable[Text],
    measure: Callable[[Any], int] = len,
    most: int | None = None,
    most_texts: int | None = None,
    *,
    ends_early: bool = True,
) -> Iterator[list[Text]]:
    """Yield lists of texts: by default up to 262,144 characters (or of `measure`), or 4,096 texts.

    The end of a window depends only on the texts since its start, so a stream resumed at the first
    text of a window yields the same windows. Only before an invalid text a window ends early, or
    isn't yielded.
    """
    most = WINDOW_CHARS if most is None else most
    most_texts = WINDOW_TEXTS if most_texts is None else most_texts
    window: list[Text] = []
    size = 0
    try:
        for text in texts:
            window.append(text)
            size += measure(text)
            if len(window) == most_texts or size >= most:
                yield window
                window, size = [], 0
    except InputError:
        if window and ends_early:
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
