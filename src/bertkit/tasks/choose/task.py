"""The task choose: one logit per choice from its C, a softmax over an example's choices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.base.errors import CheckpointError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForMultipleChoice
from bertkit.tasks.batch import Encoded, TaskBatch
from bertkit.tasks.choose import examples as records
from bertkit.tasks.choose import scoring
from bertkit.tasks.choose.choice import Choice, take_choice
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.settings import ChooseSettings
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.long_texts import encode_texts
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import TEMPERATURE, Task
from bertkit.tasks.texts import Texts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores


@dataclass(frozen=True)
class Choose(Task[ChooseExample, Choice]):
    """Multiple choice among answers or endings."""

    name: ClassVar = "choose"
    settings_kind: ClassVar = ChooseSettings
    model_kind: ClassVar = BertForMultipleChoice
    row: ClassVar[Literal["sequence", "token"]] = "sequence"
    head_output: ClassVar = "number"
    sequence: ClassVar[Literal["window", "choice"]] = "choice"

    @property
    def metric(self) -> str:
        """Accuracy."""
        return "accuracy"

    @classmethod
    def build_parser(
        cls, settings: ChooseSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], ChooseExample]:
        """Build a function that reads context, question, choices and label from a record."""
        return records.build_parser(settings, table, needs_answer=needs_answer)

    @classmethod
    def from_examples(cls, settings: ChooseSettings, examples: Sequence[ChooseExample]) -> Self:
        """Build the task; nothing depends on the examples."""
        del examples
        return cls(settings)

    @classmethod
    def from_config(
        cls, settings: ChooseSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task; nothing depends on the config, since any number of choices is scored."""
        del config
        if not numbers.get(TEMPERATURE, 1.0) > 0.0:
            raise CheckpointError(f"the temperature is {numbers[TEMPERATURE]}, and must be above 0")
        return cls(settings, numbers=numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """No changes: choices have no names, and each has one logit."""
        return {}

    @classmethod
    def group(cls, example: ChooseExample) -> str | None:
        """Return the context, which several examples may share."""
        return example.context or None

    def make_example(self, value: Any, place: str) -> ChooseExample:
        """Build an example from (context, choices), or a mapping that may also have a question."""
        return records.make_example(value, place)

    def num_chars(self, example: ChooseExample) -> int:
        """Return the number of characters of all sequences."""
        texts = (example.join(choice) for choice in example.choices)
        return sum(len(example.context) + len(text) for text in texts)

    def encode(self, examples: Sequence[ChooseExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] context [SEP] question choice [SEP]`, one sequence per choice."""
        texts = [
            Texts(example.context, example.join(choice))
            for example in examples
            for choice in example.choices
        ]
        settings = TextSettings(max_length=self.settings.max_length)
        readings = iter(encode_texts(texts, settings, tokenizer))
        found = []
        for example in examples:
            own = [next(readings) for _ in example.choices]
            encoded = Encoded(
                tuple(sequence for reading in own for sequence in reading.sequences),
                None if example.label is None else np.array([example.label]),
                any(reading.is_cut for reading in own),
            )
            found.append(encoded)
        return found

    def loss(self, logits: Float[Tensor, " sequences"], batch: TaskBatch) -> Scores:
        """Compute the cross-entropy over each example's choices."""
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
        parts = torch.split(scores, list(batch.num_sequences))
        rows = pad_sequence(list(parts), batch_first=True, padding_value=-torch.inf)
        return Scores(
            {"task": F.cross_entropy(rows, batch.labels, reduction="sum")},
            {"task": (rows.detach().argmax(dim=-1) == batch.labels).sum()},
        )

    def decode(self, example: ChooseExample, encoded: Encoded, logits: Logits) -> Choice:
        """Return the likeliest choice, with the probability of each."""
        del encoded
        return take_choice(example.choices, logits, self.temperature)

    def fit_numbers(
        self,
        examples: Sequence[ChooseExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """Fit the temperature on held-out examples."""
        del encoded
        value = scoring.find_temperature(examples, logits)
        return self if value is None else replace(self, numbers={TEMPERATURE: value})

    def measure(
        self, examples: Sequence[ChooseExample], predictions: Sequence[Choice]
    ) -> dict[str, float]:
        """Compute the accuracy."""
        return scoring.measure(examples, predictions)

    def evaluate(
        self, examples: Sequence[ChooseExample], predictions: Sequence[Choice]
    ) -> Evaluation:
        """Compute accuracy with its interval, calibration, and the most confident mistakes."""
        return scoring.evaluate(examples, predictions)

    def show(self, example: ChooseExample) -> str:
        """Return context and question."""
        return f"{example.context} {example.question}".strip()

    def describe(self, prediction: Choice) -> str:
        """Return the choice and its probability."""
        return f"{prediction.text}\t{prediction.probability:.4f}"

    def to_json(self, prediction: Choice) -> dict[str, Any]:
        """Return the choice and all probabilities."""
        return asdict(prediction)
