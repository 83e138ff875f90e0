"""The task extract: classify the hidden state of each sentence's [CLS] with a linear layer.

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization", with its simple classifier, and
one segment in place of alternating ones.
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
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

LABELS = ("OTHER", "SUMMARY")


@dataclass(frozen=True)
class Extract(Task[ExtractExample, Extraction]):
    """Selects the sentences of a text that make a summary."""

    name: ClassVar = "extract"
    settings_kind: ClassVar = ExtractSettings
    model_kind: ClassVar = BertForTokenClassification
    row: ClassVar[Literal["sequence", "token"]] = "token"
    head_output: ClassVar = None  # each sentence is scored by its own [CLS]
    needs_both_ways: ClassVar = True  # [CLS] comes before its sentence

    @property
    def metric(self) -> str:
        """ROUGE-2."""
        return "rouge2"

    @classmethod
    def build_parser(
        cls, settings: ExtractSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], ExtractExample]:
        """Build a function that reads text and summary from a record."""
        return records.build_parser(settings, table, needs_answer=needs_answer)

    @classmethod
    def from_examples(cls, settings: ExtractSettings, examples: Sequence[ExtractExample]) -> Self:
        """Build the task, after checking that something can be learned and measured."""
        if all(len(example.candidates) <= settings.sentences for example in examples):
            raise InputError(
                f"no text has more than {settings.sentences} sentences, so there is nothing to"
                f" learn; set sentences to a lower number"
            )
        if not any(scoring.choose_best(example, settings.sentences) for example in examples):
            raise InputError(
                "no text has a sentence with a word of its summary, so there is nothing to learn;"
                " check text_column and summary_column"
            )
        scoring.check_metrics()
        return cls(settings, LABELS)

    @classmethod
    def from_config(
        cls, settings: ExtractSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task, after checking that the model has two labels."""
        if config.num_labels != len(LABELS):
            raise CheckpointError(
                f"an extractive summarizer has 2 labels, not {config.num_labels}; is this a tagger?"
            )
        return cls(settings, LABELS, numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """The two labels."""
        return {"id2label": dict(enumerate(LABELS))}

    @classmethod
    def group(cls, example: ExtractExample) -> str | None:
        """Return the text, because another summary of it would leak which sentences matter."""
        return " ".join(example.candidates.sentences) or None

    def make_example(self, value: Any, place: str) -> ExtractExample:
        """Build an example from a text."""
        return records.make_example(value, place, self.settings.language)

    def num_chars(self, example: ExtractExample) -> int:
        """Return the number of characters of the text."""
        return example.num_chars

    def list_warnings(self, examples: Sequence[ExtractExample]) -> list[str]:
        """Warn of texts that have no more sentences than a summary."""
        return records.list_warnings(examples, self.settings.sentences)

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

    def loss(self, logits: Float[Tensor, "tokens 2"], batch: TaskBatch) -> Scores:
        """Compute the cross-entropy over the sentences."""
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
        loss = F.cross_entropy(scores, batch.labels, reduction="sum", ignore_index=IGNORED_LABEL)
        hits = (scores.detach().argmax(dim=-1) == batch.labels).sum()
        return Scores({"task": loss}, {"task": hits})

    def decode(self, example: ExtractExample, encoded: Encoded, logits: Logits) -> Extraction:
        """Select the likeliest sentences, and return the probability of each."""
        rows = logits[list(encoded.alignment)].astype(np.float64)
        probabilities = 0.5 + 0.5 * np.tanh((rows[:, 1] - rows[:, 0]) / 2.0)  # softmax of the two
        return extract(example.candidates, probabilities, self.settings.sentences)

    def measure(
        self, examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
    ) -> dict[str, float]:
        """Compute the ROUGE of the summaries."""
        return scoring.measure(examples, predictions)

    def evaluate(
        self, examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
    ) -> Evaluation:
        """Compute ROUGE, also for first and oracle sentences, and list the worst summaries."""
        return scoring.evaluate(examples, predictions, self.settings.sentences)

    def describe(self, prediction: Extraction) -> str:
        """Return the summary."""
        return prediction.summary

    def to_json(self, prediction: Extraction) -> dict[str, Any]:
        """Return the summary and all sentences."""
        return {
            "summary": prediction.summary,
            "sentences": [asdict(sentence) for sentence in prediction.sentences],
        }
