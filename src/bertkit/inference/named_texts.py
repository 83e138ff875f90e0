"""Texts with names for error messages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bertkit.tokenization.tokenizer import check_several, check_texts


@dataclass(frozen=True)
class NamedText:
    """A text with its name in error messages, such as line 3 of a file."""

    name: str
    text: str

    def __len__(self) -> int:
        return len(self.text)


def name_texts(texts: Iterable[str | NamedText]) -> Iterator[NamedText]:
    """Name each unnamed text by its number."""
    check_several(texts)
    for number, text in enumerate(texts, start=1):
        named = text if isinstance(text, NamedText) else NamedText(f"text {number}", text)
        check_texts([named.text])
        yield named
