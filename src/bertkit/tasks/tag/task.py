"""The task tag: T_i of a word's first piece, then a linear layer; one tag per word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits, TokenSequence
from bertkit.tasks.columns import name_labels
from bertkit.tasks.metrics.entities import OUTSIDE, Scheme
from bertkit.tasks.tag import OVERLAP, TagSettings, decoding
from bertkit.tasks.tag import examples as records
from bertkit.tasks.tag.decoding import Sentence, Tagging, choose_labels, list_strays, spell_labels
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.scoring import TagScoring
from bertkit.tasks.task import Task
from bertkit.tokenization.encoding import Frame
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Tag(Task[TagExample, Tagging]):
    """Tags the words of a text."""

    settings: TagSettings

    name: ClassVar = "tag"
    example_kind: ClassVar = TagExample
    architecture: ClassVar = "BertForTokenClassification"
    scored: ClassVar = "token"

    @cached_property
    def scheme(self) -> Scheme | None:
        """The scheme by which tags mark entities; None if they don't."""
        return self.settings.find_scheme(self.labels)

    @classmethod
    def from_examples(cls, settings: TagSettings, examples: Sequence[TagExample]) -> Self:
        """Build the task with the tags of the examples: O first, the others sorted by name."""
        counts = records.count_tags(examples)
        tags = set(counts) if settings.scheme == "plain" else choose_labels(counts)
        if len(tags) < 2:
            shown = (
                f"all words have the tag {next(iter(tags))!r:.40}" if tags else "no word is tagged"
            )
            raise InputError(f"{shown}; at least two tags are needed")
        task = cls(settings, tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag))))
        if settings.scheme == "entities" and task.scheme is None:
            raise InputError(
                "scheme entities needs tags such as B-PER, I-PER and O, not"
                f" {name_labels(list_strays(tags) or task.labels)}"
            )
        return task

    @classmethod
    def from_config(
        cls, settings: TagSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task with the labels of the config."""
        if config.num_labels < 2:
            raise CheckpointError("a tagger needs at least two labels")
        labels = config.label_names
        if settings.scheme != "plain":
            labels = spell_labels(labels)
        return cls(settings, labels, numbers)

    def list_warnings(self, examples: Sequence[TagExample]) -> list[str]:
        """Warn of blank words and of tags that break the scheme."""
        lines = records.list_warnings(examples, self.scheme)
        if self.scheme is None and self.settings.scheme == "auto":
            lines += records.warn_of_plain(examples)
        return lines

    def encode(self, examples: Sequence[TagExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] words [SEP]`; a long sentence in several windows."""
        ids = {label: id_ for id_, label in enumerate(self.labels)}
        sentences = [find_sentence(example, tokenizer) for example in examples]
        words = chain.from_iterable(sentence.words for sentence in sentences)
        pieces = iter(tokenizer.word_piece_ids(words))
        found = []
        for example, sentence in zip(examples, sentences, strict=True):
            # A word of which BERT's text cleaning leaves nothing still has a tag.
            own = [next(pieces) or [tokenizer.unk_id] for _ in sentence.words]
            labels = None
            if example.tags is not None:
                labels = [ids.get(tag, IGNORED_LABEL) for tag in example.tags]
            found.append(self._encode(sentence, own, labels, tokenizer))
        return found

    def _encode(
        self,
        sentence: Sentence,
        pieces: list[list[int]],
        labels: list[int] | None,
        tokenizer: Tokenizer,
    ) -> Encoded:
        """Encode one sentence in windows."""
        room = self.settings.max_length - tokenizer.num_special()
        kept = [word[:room] for word in pieces]
        lengths = [len(word) for word in kept]
        cutter = self.settings.cutter(room, room - min(OVERLAP, room // 2))
        windows = cutter.cut_words(lengths)
        sequences = []
        for window in windows:
            words = kept[window.start : window.stop]
            sequences.append(TokenSequence(*tokenizer.join([*chain.from_iterable(words)])))
        num_read = windows[-1].stop  # fewer than all if the sentence is truncated
        rows = find_rows(windows, lengths[:num_read], tokenizer.template.single)
        targets = None
        if labels is not None:
            targets = np.full(sum(len(one.ids) for one in sequences), IGNORED_LABEL)
            targets[rows] = labels[:num_read]
        is_cut = kept != pieces or num_read < len(pieces)
        return Encoded(tuple(sequences), targets, is_cut, (sentence.cut(num_read), rows))

    def decode(self, example: TagExample, encoded: Encoded, logits: Logits) -> Tagging:
        """Return the likeliest tag of each word, and the entities that the tags mark."""
        del example
        sentence, rows = encoded.alignment
        return decoding.decode(sentence, logits[rows], self.labels, self.scheme)

    def score(self, examples: Sequence[TagExample], predictions: Sequence[Tagging]) -> TagScoring:
        """Compare tags with true ones."""
        return TagScoring(examples, predictions, self.labels, self.scheme)


def find_rows(
    windows: Sequence[range], lengths: Sequence[int], frame: Frame
) -> npt.NDArray[np.int64]:
    """Find the row of each word's first piece in the window where the word has most context.

    Rows are those of the tokens of all windows, [CLS] and [SEP] too; `lengths` are the pieces of
    each word.
    """
    num_before = len(frame.gaps[0])
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - np.asarray(lengths, dtype=np.int64)
    if len(windows) == 1:
        return starts + num_before
    rows, most = np.zeros_like(starts), np.full_like(starts, -1)
    offset = 0
    for window in windows:
        begin, stop = window.start, window.stop
        first, last = starts[begin], ends[stop - 1]
        around = starts[begin:stop] - first
        if stop < len(starts):  # there is no more context behind the last window
            around = np.minimum(around, last - ends[begin:stop])
        is_better = around > most[begin:stop]
        rows[begin:stop][is_better] = (offset + num_before + starts[begin:stop] - first)[is_better]
        most[begin:stop][is_better] = around[is_better]
        offset += int(last - first) + frame.num_special
    return rows


def find_sentence(example: TagExample, tokenizer: Tokenizer) -> Sentence:
    """Return the words of an example; a text is split by BERT's pre-tokenizer."""
    if example.words is not None:
        return Sentence(example.words)
    text = example.text or ""
    spans = tokenizer.find_words(text)
    return Sentence(tuple(text[start:stop] for start, stop in spans), spans, text)
