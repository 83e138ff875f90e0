"""Which tokens of an encoded input are which word of its texts, as a reader sees words."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import find_sentence
from bertkit.tasks.task import AnyTask, TaskExample
from bertkit.tasks.texts import TextExample
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.words import WRITTEN_WORD

NO_WORD = -1
# Marks at the ends of a word that divide sentences; others, such as ! and %, stay with it.
DIVIDING = re.escape(".,;:…\"'`()[]{}<>«»‹›“”„‘’‚。、，；：「」『』（）《》")
AT_ENDS = re.compile(rf"[{DIVIDING}]*(.*?)[{DIVIDING}]*", re.DOTALL)


class Word(NamedTuple):
    """A word of a text."""

    part: str  # name of the text
    start: int  # in characters
    stop: int


def find_written_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of words between blanks, without marks around them that divide sentences.

    Where only such marks stand together they are a word; in scripts without blanks between words
    each character is one.
    """
    for chunk in WRITTEN_WORD.finditer(text):
        inner = AT_ENDS.fullmatch(chunk[0])
        start, stop = inner.span(1) if inner and inner[1] else (0, len(chunk[0]))
        yield chunk.start() + start, chunk.start() + stop


class PieceNumbers:
    """Takes a tokenizer's place, and gives each piece its number instead of its id.

    What a task makes of texts by it shows where each token comes from, whatever the task cuts off,
    repeats in windows, or leaves out.

    Attributes:
        pieces: the number of the text among those that were read, start and end of each piece.
    """

    cls_id = sep_id = unk_id = NO_WORD

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._num_texts = 0
        self.find_words = tokenizer.find_words
        self.pieces: list[tuple[int, int, int]] = []

    def encode(self, text: str) -> Encoding:
        """Encode one text; its ids are numbers."""
        whole = self._tokenizer.encode(text)
        first, inner = len(self.pieces), whole.offsets[1:-1]
        self.pieces += [(self._num_texts, *span) for span in inner]
        self._num_texts += 1
        return replace(whole, ids=[NO_WORD, *range(first, len(self.pieces)), NO_WORD])

    def piece_ids(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the numbers of each text's pieces."""
        return [self.encode(text).ids[1:-1] for text in texts]


class Texts(NamedTuple):
    """The texts of an example."""

    parts: Mapping[str, str]  # by name
    places: Sequence[tuple[str, int]]  # part, and start in it, of each text that a task tokenizes


def find_texts(example: TaskExample, tokenizer: Tokenizer) -> Texts:
    """Return the texts of an example, in the order in which its task tokenizes them."""
    if isinstance(example, TextExample):
        pair = {} if example.texts.pair is None else {"pair": example.texts.pair}
        return Texts({"text": example.texts.text, **pair}, [("text", 0), ("pair", 0)])
    if isinstance(example, AnswerExample):
        parts = {"question": example.question, "context": example.context}
        return Texts(parts, [(name, 0) for name in parts])
    assert isinstance(example, TagExample), "other tasks have no option to explain"
    sentence = find_sentence(example, tokenizer)
    text, starts = sentence.text, [start for start, _ in sentence.spans or ()]
    if text is None:
        text = " ".join(sentence.words)
        starts, end = [], 0
        for word in sentence.words:
            starts.append(end)
            end += len(word) + 1
    return Texts({"text": text}, [("text", start) for start in starts])


@dataclass(frozen=True)
class ReadInput:
    """An encoded input, and the words that its tokens belong to.

    Attributes:
        parts: its texts by name.
        words: those of which the model reads a token, in their order.
        encoded: its sequences.
        owners: of each token of each sequence the index of its word; -1 for marks and [CLS].
    """

    parts: Mapping[str, str]
    words: Sequence[Word]
    encoded: Encoded
    owners: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, task: AnyTask, tokenizer: Tokenizer, example: TaskExample, encoded: Encoded
    ) -> "ReadInput":
        """Find the words of an example that a task has encoded."""
        texts, numbers = find_texts(example, tokenizer), PieceNumbers(tokenizer)
        (numbered,) = task.encode([example], cast("Any", numbers))
        words = [
            Word(part, *span)
            for part in texts.parts
            for span in find_written_words(texts.parts[part])
        ]
        starts = {part: [one.start for one in words if one.part == part] for part in texts.parts}
        firsts = {part: [one.part for one in words].index(part) for part in starts if starts[part]}
        owner_of = []
        for number, start, stop in numbers.pieces:
            part, shift = texts.places[number]
            place = bisect_right(starts[part], start + shift) - 1 + firsts.get(part, 0)
            is_inside = starts[part] and start + shift < words[place].stop and stop > start
            owner_of.append(place if is_inside and words[place].part == part else NO_WORD)
        owners = [
            [NO_WORD if piece == NO_WORD else owner_of[piece] for piece in one.ids]
            for one in numbered.sequences
        ]
        read = sorted({owner for one in owners for owner in one} - {NO_WORD})
        renumbered = {owner: place for place, owner in enumerate(read)} | {NO_WORD: NO_WORD}
        owners = [[renumbered[owner] for owner in one] for one in owners]
        return cls(texts.parts, [words[owner] for owner in read], encoded, owners)

    @property
    def num_tokens_without_each(self) -> int:
        """The tokens of all sequences that change, when each word is left out alone."""
        return sum(len(one) * len({*one} - {NO_WORD}) for one in self.owners)

    def without(
        self, left_out: Collection[int], token_id: int | None
    ) -> Iterator[tuple[int, TokenSequence]]:
        """Yield the sequences that words are in, with their numbers, without these words.

        Their tokens are dropped, or replaced by another where the others must keep their places.
        """
        for number, (owners, (ids, segments)) in enumerate(
            zip(self.owners, self.encoded.sequences, strict=True)
        ):
            is_out = [owner in left_out for owner in owners]
            if not any(is_out):
                continue
            if token_id is not None:
                hidden = [token_id if out else id_ for id_, out in zip(ids, is_out, strict=True)]
                yield number, TokenSequence(hidden, segments)
                continue
            kept = [place for place, out in enumerate(is_out) if not out]
            yield (
                number,
                TokenSequence([ids[place] for place in kept], [segments[place] for place in kept]),
            )
