"""Which tokens of an encoded input are which word of its texts, as a reader sees words."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.explanation import ExplainedWord
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.task import AnyTask, TaskExample
from bertkit.tasks.texts import TextExample
from bertkit.tokenization.encoding import Encoding, weave
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.words import WRITTEN_WORD

Span = tuple[int, int]  # `text[start:stop]`

NO_WORD = -1
# Marks at the ends of a word that divide sentences; others, such as ! and %, stay with it.
DIVIDING = ".,;:…\"'`()[]{}<>«»‹›“”„‘’‚。、，；：「」『』（）《》"


def find_written_words(text: str) -> Iterator[Span]:
    """Yield the spans of words between blanks, without marks around them that divide sentences.

    Where only such marks stand together they are a word; in scripts without blanks between words
    each character is one.
    """
    for chunk in WRITTEN_WORD.finditer(text):
        word = chunk[0].strip(DIVIDING) or chunk[0]
        start = chunk.start() + chunk[0].index(word)
        yield start, start + len(word)


def join_words(words: Sequence[Span], pieces: Sequence[Span]) -> list[Span]:
    """Join neighboring words that one piece covers: letters of scripts without blanks."""
    joined, ends = list[Span](), iter(sorted(pieces))
    start, stop = next(ends, (0, 0))
    for word in words:
        while stop <= word[0] and (after := next(ends, None)) is not None:
            start, stop = after
        if joined and start < joined[-1][1] and word[0] < stop:
            joined[-1] = (joined[-1][0], word[1])
        else:
            joined.append(word)
    return joined


def find_texts(example: TaskExample) -> dict[str, str]:
    """Return the texts of an example by name, in the order in which its task tokenizes them."""
    if isinstance(example, TextExample):
        pair = {} if example.texts.pair is None else {"pair": example.texts.pair}
        return {"text": example.texts.text, **pair}
    if isinstance(example, AnswerExample):
        return {"question": example.question, "context": example.context}
    assert isinstance(example, TagExample), "other tasks have no option to explain"
    return {"text": (example.text or "") if example.words is None else " ".join(example.words)}


class WordNumbers:
    """Takes a tokenizer's place, and gives each piece the number of its word instead of its id.

    What a task makes of texts by it shows which word a token is of, whatever the task cuts off,
    repeats in windows, or leaves out.
    """

    unk_id = NO_WORD

    def __init__(self, tokenizer: Tokenizer, parts: Mapping[str, str]) -> None:
        self._tokenizer, self._parts = tokenizer, parts
        self._names, self._done = [*parts], 0
        self.find_words, self.find_starts = tokenizer.find_words, tokenizer.find_starts
        self.num_special, self.template = tokenizer.num_special, tokenizer.template
        self.words: list[ExplainedWord] = []  # without weights

    def join(self, *texts: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return numbers and token types; special tokens are of no word."""
        gaps = self._tokenizer.template[len(texts) - 1].gaps
        numbers = weave([[NO_WORD] * len(gap) for gap in gaps], texts)
        return [*chain.from_iterable(numbers)], self._tokenizer.join(*texts)[1]

    def encode_pieces(self, text: str) -> Encoding:
        """Encode the next text; its ids are numbers of words."""
        whole = self._tokenizer.encode_pieces(text)
        return replace(whole, ids=self._number(text, whole.offsets))

    def piece_ids(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the numbers of each text's pieces."""
        return [self.encode_pieces(text).ids for text in texts]

    def word_piece_ids(self, words: Iterable[str]) -> list[list[int]]:
        """Return the numbers of the pieces of each of the next words of a sentence."""
        numbers = []
        for word in words:
            placed = self._tokenizer.place_word(word)
            shift = len(placed) - len(word)
            offsets = self._tokenizer.encode_pieces(placed).offsets
            moved = [(start - shift, stop - shift) for start, stop in offsets]
            numbers.append(self._number(word, moved))
        return numbers

    def _number(self, text: str, offsets: Sequence[Span]) -> list[int]:
        """Return the number of the word of each piece of the next text, or word of a sentence."""
        part = self._names[0]
        begin = self._parts[part].find(text, self._done)
        if len(self._names) > 1:
            del self._names[0]
        else:
            self._done = begin + len(text)
        spans, first = join_words([*find_written_words(text)], offsets), len(self.words)
        self.words += [
            ExplainedWord(text[start:stop], 0.0, part, begin + start, begin + stop)
            for start, stop in spans
        ]
        starts, numbers = [start for start, _ in spans], []
        for start, stop in offsets:
            place = bisect_right(starts, start) - 1
            is_inside = place >= 0 and start < min(stop, spans[place][1])
            numbers.append(first + place if is_inside else NO_WORD)
        return numbers


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
    words: Sequence[ExplainedWord]
    encoded: Encoded
    owners: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, task: AnyTask, tokenizer: Tokenizer, example: TaskExample, encoded: Encoded
    ) -> "ReadInput":
        """Find the words of an example that a task has encoded."""
        parts = find_texts(example)
        numbers = WordNumbers(tokenizer, parts)
        (numbered,) = task.encode([example], cast("Any", numbers))
        found = [one.ids for one in numbered.sequences]
        read = sorted({number for ids in found for number in ids} - {NO_WORD})
        places = {number: place for place, number in enumerate(read)}
        owners = [[places.get(number, NO_WORD) for number in ids] for ids in found]
        return cls(parts, [numbers.words[number] for number in read], encoded, owners)

    def without(self, left_out: Collection[int], token_id: int | None) -> dict[int, TokenSequence]:
        """Return the sequences that words are in, by number, without these words.

        Their tokens are dropped, or replaced by another where the others must keep their places.
        """
        found = {}
        for number, (owners, one) in enumerate(
            zip(self.owners, self.encoded.sequences, strict=True)
        ):
            is_out = [owner in left_out for owner in owners]
            if any(is_out):
                kept = [
                    (token_id if out else id_, segment)
                    for out, id_, segment in zip(is_out, *one, strict=True)
                    if token_id is not None or not out
                ]
                ids, segments = zip(*kept, strict=True)
                found[number] = TokenSequence([*ids], [*segments])
        return found
