"""The hidden state of each sentence's own [CLS], then a linear layer: does it belong to a summary?

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization", with its simple classifier and with
one segment in place of two that take turns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForTokenClassification
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, TaskBatch
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.extract import examples as records
from bertkit.tasks.extract import scoring
from bertkit.tasks.extract.examples import ExtractExample
from bertkit.tasks.extract.extraction import Extraction, extract
from bertkit.tasks.extract.oracle import find_best
from bertkit.tasks.extract.settings import ExtractSettings
from bertkit.tasks.extract.windows import SentenceWindows, join_sentences
from bertkit.tasks.logits import Logits
from bertkit.tasks.task import Task, TaskScores
from bertkit.tokenization.tokenizer import Tokenizer

LABELS = ("OTHER", "SUMMARY")


@dataclass(frozen=True)
class Extract(Task[ExtractExample, Extraction]):
    """Takes the sentences of a text that make a summary."""

    name: ClassVar = "extract"
    settings_kind: ClassVar = ExtractSettings
    model_kind: ClassVar = BertForTokenClassification
    row: ClassVar[Literal["sequence", "token"]] = "token"
    needs_both_ways: ClassVar = True  # [CLS] stands before its sentence

    @property
    def metric(self) -> str:
        """ROUGE-2."""
        return "rouge2"

    @classmethod
    def build_parser(
        cls, settings: ExtractSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], ExtractExample]:
        """Look for text and summary in their columns."""
        return records.build_parser(settings, table, needs_answer=needs_answer)

    @classmethod
    def from_examples(cls, settings: ExtractSettings, examples: Sequence[ExtractExample]) -> Self:
        """Nothing of the examples, but that there is something to choose, and to measure it by."""
        if all(len(example.candidates) <= settings.sentences for example in examples):
            raise InputError(
                f"no text has more than {settings.sentences} sentences, so nothing can be learned;"
                " ask for fewer with --sentences"
            )
        if not any(scoring.choose_best(example, settings.sentences) for example in examples):
            raise InputError(
                "no text has a sentence with a word of its summary, so nothing can be learned; do"
                " --text-column and --summary-column name the right ones?"
            )
        scoring.check_metrics()
        return cls(settings, LABELS)

    @classmethod
    def from_config(
        cls, settings: ExtractSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Nothing of the config, but that the model has two labels."""
        if config.num_labels != len(LABELS):
            raise CheckpointError(
                f"a model that takes sentences has 2 labels, not {config.num_labels}; is this a"
                " tagger?"
            )
        return cls(settings, LABELS, numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """Two labels."""
        return {"id2label": dict(enumerate(LABELS))}

    @classmethod
    def group(cls, example: ExtractExample) -> str | None:
        """The text: another summary of it would give away which sentences matter."""
        return " ".join(example.candidates.sentences) or None

    def make_example(self, value: Any, place: str) -> ExtractExample:
        """A text."""
        return records.make_example(value, place, self.settings.language)

    def num_chars(self, example: ExtractExample) -> int:
        """Characters of the text."""
        return example.num_chars

    def list_warnings(self, examples: Sequence[ExtractExample]) -> list[str]:
        """Texts where there is nothing to choose."""
        return records.list_warnings(examples, self.settings.sentences)

    def encode(self, examples: Sequence[ExtractExample], tokenizer: Tokenizer) -> list[Encoded]:
        """`[CLS] sentence [SEP] [CLS] sentence [SEP] …`; of a long text several such sequences."""
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
        """1 at the [CLS] of the sentences that are most like the summary, 0 at the others."""
        sentences, summary = example.candidates.sentences, example.summary or ""
        labels = np.full(sum(len(one.ids) for one in windows.sequences), IGNORED_LABEL)
        rows = np.array(windows.rows)
        labels[rows] = 0
        labels[rows[find_best(sentences, summary, self.settings.sentences)]] = 1
        return labels

    def loss(self, logits: Float[Tensor, "tokens 2"], batch: TaskBatch) -> TaskScores:
        """Cross-entropy over the sentences."""
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
        loss = F.cross_entropy(scores, batch.labels, reduction="sum", ignore_index=IGNORED_LABEL)
        hits = (scores.detach().argmax(dim=-1) == batch.labels).sum()
        return TaskScores({"task": loss}, {"task": hits})

    def decode(self, example: ExtractExample, encoded: Encoded, logits: Logits) -> Extraction:
        """The likeliest sentences, and how likely each is."""
        rows = logits[list(encoded.alignment)].astype(np.float64)
        probabilities = 0.5 + 0.5 * np.tanh((rows[:, 1] - rows[:, 0]) / 2.0)  # softmax of the two
        return extract(example.candidates, probabilities, self.settings.sentences)

    def measure(
        self, examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
    ) -> dict[str, float]:
        """ROUGE of the summaries."""
        return scoring.measure(examples, predictions)

    def evaluate(
        self, examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
    ) -> Evaluation:
        """Also that of the first sentences and of the best, and the worst summaries."""
        return scoring.evaluate(examples, predictions, self.settings.sentences)

    def describe(self, prediction: Extraction) -> str:
        """The summary."""
        return prediction.summary

    def to_json(self, prediction: Extraction) -> dict[str, Any]:
        """The summary, and all sentences."""
        return {
            "summary": prediction.summary,
            "sentences": [asdict(sentence) for sentence in prediction.sentences],
        }
