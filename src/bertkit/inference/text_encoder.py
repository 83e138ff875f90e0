"""From texts to the sequences that a model reads, and a count of what was odd about them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from bertkit.tokenization.tokenizer import Tokenizer

NUL = "\0"
NUM_SPECIAL = 2  # [CLS] and [SEP]


@dataclass
class TextCounts:
    """What was met among texts; each text also counts under all that hold of it.

    Attributes:
        texts: all of them.
        tokens: those that the model read, special ones and overlaps of parts included.
        empty: texts without a token, such as blanks; they are read as [CLS] [SEP].
        unknown_only: texts of which the vocabulary knows nothing; they are read as [UNK] …
        truncated: texts of which the end was cut off.
        windowed: texts that were read in parts.
        with_nul: texts with a NUL, which is dropped as BERT drops all control characters.
        undecodable: texts with bytes that weren't UTF-8, which are dropped too.
    """

    texts: int = 0
    tokens: int = 0
    empty: int = 0
    unknown_only: int = 0
    truncated: int = 0
    windowed: int = 0
    with_nul: int = 0
    undecodable: int = 0

    def add(self, other: "TextCounts") -> None:
        """Count what another one counted."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(frozen=True)
class Sequences:
    """Texts as token ids; a long text may be several sequences.

    Attributes:
        ids: of each sequence, with [CLS] and [SEP].
        owners: which text each belongs to; the sequences of a text follow one another.
        num_skipped: leading tokens of each sequence that are of a prompt which doesn't count.
        num_texts: how many texts there are.
        counts: what they were like.
    """

    ids: list[list[int]]
    owners: list[int]
    num_skipped: list[int]
    num_texts: int
    counts: TextCounts


@dataclass(frozen=True)
class TextEncoder:
    """Makes sequences of texts.

    Attributes:
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.
        stride: tokens from the beginning of one part of a long text to the next; None cuts it.
        prompt: what is put before each text.
        lowercase: whether texts are lower-cased before the tokenizer sees them.
        skips_prompt: whether the tokens of the prompt don't count.
    """

    tokenizer: Tokenizer
    max_length: int
    stride: int | None = None
    prompt: str = ""
    lowercase: bool = False
    skips_prompt: bool = False

    def __call__(self, texts: Sequence[str]) -> Sequences:
        """Encode texts, none of which is ever refused."""
        room = self.max_length - NUM_SPECIAL
        counts = TextCounts(texts=len(texts), with_nul=sum(NUL in text for text in texts))
        found = Sequences([], [], [], len(texts), counts)
        num_of_prompt = len(self._cut([self.prompt])[0]) if self.prompt else 0
        for owner, pieces in enumerate(self._cut([self.prompt + text for text in texts])):
            counts.empty += len(pieces) <= num_of_prompt
            own = pieces[num_of_prompt:]
            counts.unknown_only += bool(own) and own.count(self.tokenizer.unk_id) == len(own)
            parts = self._split(pieces, room)
            counts.windowed += len(parts) > 1
            counts.truncated += len(parts) == 1 and len(pieces) > room
            for number, part in enumerate(parts):
                found.ids.append([self.tokenizer.cls_id, *part, self.tokenizer.sep_id])
                found.owners.append(owner)
                is_skipping = self.skips_prompt and number == 0 and num_of_prompt
                found.num_skipped.append(1 + min(num_of_prompt, len(part)) if is_skipping else 0)
                counts.tokens += len(part) + NUM_SPECIAL
        return found

    def _cut(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer.piece_ids(
            [text.lower() for text in texts] if self.lowercase else texts
        )

    def _split(self, pieces: list[int], room: int) -> list[list[int]]:
        """The parts of a text; the last one ends where the text ends."""
        if self.stride is None or len(pieces) <= room:
            return [pieces[:room]]
        num_parts = 1 + -(-(len(pieces) - room) // self.stride)
        return [
            pieces[start : start + room] for start in range(0, num_parts * self.stride, self.stride)
        ]
