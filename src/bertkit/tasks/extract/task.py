"""The task extract: classify the hidden state of each sentence's [CLS] with a linear layer.

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization", with its simple classifier, and
one segment in place of alternating ones.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.data.sentences import Candidates
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForTokenClassification
from bertkit.reports.text import format_number
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits, TokenSequence
from bertkit.tasks.columns import find_column, take_text
from bertkit.tasks.evaluation import MISTAKE_CHARS, TaskScoring
from bertkit.tasks.extract import ExtractSettings
from bertkit.tasks.extract.choosing import Extraction, extract
from bertkit.tasks.metrics.texts import measure_summaries
from bertkit.tasks.task import Task, TaskExample, score_rows
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.words import split_words

SIZES = (1, 2)  # n of the n-grams

Gram: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Grams:
    """Counts of the unigrams and bigrams of a text."""

    counts: tuple[Counter[Gram], ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Count the n-grams of consecutive words."""
        runs = ([words[start:] for start in range(size)] for size in SIZES)
        return cls(tuple(Counter(zip(*run, strict=False)) for run in runs))

    def __add__(self, other: "Grams") -> "Grams":
        """Add the counts of two texts, without bigrams across their border."""
        pairs = zip(self.counts, other.counts, strict=True)
        return Grams(tuple(one + more for one, more in pairs))

    def likeness(self, other: "Grams") -> float:
        """Return the sum of ROUGE-1 and ROUGE-2 F1 of two texts."""
        return sum(map(f1, self.counts, other.counts))


def f1(one: Counter[Gram], other: Counter[Gram]) -> float:
    """Return the F1 of two bags of n-grams: 2 x overlap / total."""
    size = one.total() + other.total()
    return 2.0 * (one & other).total() / size if size else 0.0


def find_best(sentences: Sequence[str], summary: str, num_sentences: int) -> list[int]:
    """Select sentences greedily, each the one that raises ROUGE most, and sort their indexes."""
    wanted = Grams.of(split_words(summary))
    grams = [Grams.of(split_words(sentence)) for sentence in sentences]
    taken: list[int] = []
    so_far, best = Grams.of(()), 0.0
    while len(taken) < min(num_sentences, len(sentences)):
        scores = [
            -1.0 if index in taken else (so_far + own).likeness(wanted)
            for index, own in enumerate(grams)
        ]
        top = max(scores)
        if top <= best:
            break
        taken.append(scores.index(top))
        so_far, best = so_far + grams[taken[-1]], top
    return sorted(taken)


TEXT = "text"
USUAL_TEXT = (TEXT, "article", "document")
USUAL_SUMMARY = ("summary", "highlights", "abstract")


@dataclass(frozen=True, slots=True)
class ExtractExample(TaskExample):
    """A text, with an optional reference summary."""

    candidates: Candidates
    num_chars: int
    summary: str | None = None  # written by a person; None if unknown
    place: str = ""  # file and line, for messages

    @classmethod
    def build_parser(
        cls, settings: ExtractSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "ExtractExample"]:
        """Build a function that reads text and summary from a record."""
        # A file with one text per line has this column, whatever it was called in training.
        wanted = None if table.format == TEXT else settings.text_column
        text_column = find_column(table, "text", wanted, USUAL_TEXT)
        summary_column = None
        if needs_answer:
            summary_column = find_column(table, "summary", settings.summary_column, USUAL_SUMMARY)

        def parse(record: Record) -> ExtractExample:
            text = take_text(record, text_column)
            summary = None if summary_column is None else take_text(record, summary_column)
            candidates = Candidates.find(text, settings.language)
            if summary is not None and not len(candidates):
                raise BrokenRowError(f"{record.place} has no sentence in {text_column}")
            if summary is not None and not split_words(summary):
                raise BrokenRowError(f"{record.place} has no word in {summary_column}")
            return ExtractExample(candidates, len(text), summary, record.place)

        return parse

    @classmethod
    def from_value(cls, value: Any, place: str, settings: ExtractSettings) -> Self:
        """Build an example from a text."""
        if not isinstance(value, str):
            raise InputError(f"{place}: expected a text, got {value!r:.80}")
        return cls(Candidates.find(value, settings.language), len(value), place=place)

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The sentences of the text."""
        return [("", " ".join(self.candidates.sentences))]

    @property
    def group(self) -> str | None:
        """The text, because another summary of it would leak which sentences matter."""
        return " ".join(self.candidates.sentences) or None


NUM_SPECIAL = 2  # [CLS] and [SEP] of each sentence


class SentenceWindows(NamedTuple):
    """An encoded text."""

    # several for a long text; `[CLS] [SEP]` without a sentence
    sequences: tuple[TokenSequence, ...]
    rows: tuple[int, ...]  # index of each sentence's [CLS] in the tokens of all sequences
    is_cut: bool  # whether the end of a sentence was left out


def join_sentences(
    pieces: Sequence[list[int]], max_length: int, tokenizer: Tokenizer
) -> SentenceWindows:
    """Encode as `[CLS] sentence [SEP] [CLS] sentence [SEP] …`, as many per sequence as fit.

    Source: Liu 2019, section 3.1.
    """
    room = max_length - NUM_SPECIAL
    windows: list[list[int]] = [[]]
    rows, num_tokens = [], 0
    for own in pieces:
        ids = [tokenizer.cls_id, *own[:room], tokenizer.sep_id]
        if len(windows[-1]) + len(ids) > max_length:
            windows.append([])
        windows[-1] += ids
        rows.append(num_tokens)
        num_tokens += len(ids)
    if not pieces:
        windows = [[tokenizer.cls_id, tokenizer.sep_id]]
    sequences = tuple(TokenSequence(ids, [0] * len(ids)) for ids in windows)
    return SentenceWindows(sequences, tuple(rows), any(len(own) > room for own in pieces))


def choose_best(example: ExtractExample, num_sentences: int) -> str:
    """Return the oracle summary: the sentences with the highest ROUGE."""
    sentences = example.candidates.sentences
    chosen = find_best(sentences, example.summary or "", num_sentences)
    return " ".join(sentences[index] for index in chosen)


@dataclass(frozen=True)
class ExtractScoring(TaskScoring[ExtractExample, Extraction]):
    """ROUGE of summaries, and of the first and the oracle sentences."""

    num_sentences: int

    @cached_property
    def metrics(self) -> dict[str, float]:
        """ROUGE-1, ROUGE-2 and ROUGE-L."""
        return self._measure([found.summary for found in self.predictions])

    @cached_property
    def details(self) -> dict[str, float]:
        """The same of other summaries."""
        first = [" ".join(one.candidates.sentences[: self.num_sentences]) for one in self.examples]
        return {
            f"{metric}_{name}": value
            for name, summaries in {"first_sentences": first, "best_sentences": self.best}.items()
            for metric, value in self._measure(summaries).items()
        }

    def _measure(self, summaries: Sequence[str]) -> dict[str, float]:
        return measure_summaries(summaries, [example.summary or "" for example in self.examples])

    @cached_property
    def best(self) -> list[str]:
        """The oracle summaries."""
        return [choose_best(example, self.num_sentences) for example in self.examples]

    @property
    def badness(self) -> npt.NDArray[np.float64]:
        """How much less ROUGE each summary has than the oracle's."""
        lost = []
        for example, found, best in zip(self.examples, self.predictions, self.best, strict=True):
            wanted, own, other = (
                Grams.of(split_words(text)) for text in (example.summary or "", found.summary, best)
            )
            lost.append(other.likeness(wanted) - own.likeness(wanted))
        return np.array(lost)

    def show_example(self, number: int) -> str:
        """Return the beginning of a text."""
        return " ".join(self.examples[number].candidates.sentences)[:MISTAKE_CHARS]

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the oracle summary and the predicted one."""
        return self.best[number], self.predictions[number].summary

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if the model is no better than the first sentences."""
        own, first = self.metrics["rouge2"], self.details["rouge2_first_sentences"]
        if own > first:
            return ()
        warning = (
            f"rouge2 ({format_number(own)}) isn't above that of the first"
            f" {pluralize(self.num_sentences, 'sentence')}"
            f" ({format_number(first)}); take those, or train on more texts"
        )
        return (warning,)


@dataclass(frozen=True)
class Extract(Task[ExtractExample, Extraction]):
    """Selects the sentences of a text that make a summary."""

    labels: tuple[str, ...] = ("OTHER", "SUMMARY")

    name: ClassVar = "extract"
    example_kind: ClassVar = ExtractExample
    model_kind: ClassVar = BertForTokenClassification
    needs_both_ways: ClassVar = True  # [CLS] comes before its sentence
    metric: ClassVar = "rouge2"

    loss = staticmethod(score_rows)

    @classmethod
    def from_examples(cls, settings: ExtractSettings, examples: Sequence[ExtractExample]) -> Self:
        """Build the task, after checking that something can be learned and measured."""
        if all(len(example.candidates) <= settings.sentences for example in examples):
            raise InputError(
                f"no text has more than {settings.sentences} sentences, so there is nothing to"
                f" learn; set sentences to a lower number"
            )
        if not any(choose_best(example, settings.sentences) for example in examples):
            raise InputError(
                "no text has a sentence with a word of its summary, so there is nothing to learn;"
                " check text_column and summary_column"
            )
        measure_summaries(["a"], ["a"])  # fails before training if ROUGE can't be computed
        return cls(settings)

    @classmethod
    def from_config(
        cls, settings: ExtractSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task, after checking that the model has two labels."""
        if config.num_labels != 2:
            raise CheckpointError(
                f"an extractive summarizer has 2 labels, not {config.num_labels}; is this a tagger?"
            )
        return cls(settings, numbers=numbers)

    def list_warnings(self, examples: Sequence[ExtractExample]) -> list[str]:
        """Warn of texts that have no more sentences than a summary."""
        most = self.settings.sentences
        short = [example for example in examples if len(example.candidates) <= most]
        if not short:
            return []
        count = "1 text has" if len(short) == 1 else f"{len(short):,} texts have"
        line = (
            f"{count} no more sentences than a summary ({most}), so nothing is chosen there;"
            f" first {short[0].place}"
        )
        return [line]

    def encode(self, examples: Sequence[ExtractExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] sentence [SEP] [CLS] sentence [SEP] …`; long texts in several."""
        sentences = chain.from_iterable(example.candidates.sentences for example in examples)
        pieces = iter(tokenizer.piece_ids(list(sentences)))
        found = []
        for example in examples:
            own = [next(pieces) for _ in example.candidates.sentences]
            windows = join_sentences(own, self.settings.max_length, tokenizer)
            labels = None if example.summary is None else self._label(example, windows)
            found.append(Encoded(windows.sequences, labels, windows.is_cut, windows.rows))
        return found

    def _label(self, example: ExtractExample, windows: SentenceWindows) -> Any:
        """Return 1 at the [CLS] of oracle sentences, 0 at that of others, -100 elsewhere."""
        sentences, summary = example.candidates.sentences, example.summary or ""
        labels = np.full(sum(len(one.ids) for one in windows.sequences), IGNORED_LABEL)
        rows = np.array(windows.rows)
        labels[rows] = 0
        labels[rows[find_best(sentences, summary, self.settings.sentences)]] = 1
        return labels

    def decode(self, example: ExtractExample, encoded: Encoded, logits: Logits) -> Extraction:
        """Select the likeliest sentences, and return the probability of each."""
        rows = logits[list(encoded.alignment)].astype(np.float64)
        probabilities = 0.5 + 0.5 * np.tanh((rows[:, 1] - rows[:, 0]) / 2.0)  # softmax of the two
        return extract(example.candidates, probabilities, self.settings.sentences)

    def score(
        self, examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
    ) -> ExtractScoring:
        """Compare summaries with reference summaries."""
        return ExtractScoring(examples, predictions, self.settings.sentences)
