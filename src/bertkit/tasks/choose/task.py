"""The task choose: one logit per choice from its C, a softmax over an example's choices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np

from bertkit.reports.text import format_percent
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Statistic
from bertkit.tasks.metrics.calibration import fit_temperature
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.saved import TEMPERATURE
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import Task, TaskPrediction
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer

NO_CHOICE = -1e4  # logit that pads examples with fewer choices
ADVICE = "the model has learned nothing; try more epochs, another learning rate or another seed"


@dataclass(frozen=True)
class Choice(TaskPrediction):
    """The predicted choice."""

    index: int  # from 0
    text: str
    probability: float
    probabilities: tuple[float, ...]  # of all choices, in their order

    def describe(self) -> str:
        """Return the choice and its probability."""
        return f"{self.text}\t{format_percent(self.probability)}"


class ChooseScoring(ConfidentScoring[ChooseExample, Choice]):
    """The accuracy of predicted choices."""

    calibration = "metric"

    @cached_property
    def is_right(self) -> Flags:
        """Whether each choice is the right one."""
        pairs = zip(self.examples, self.predictions, strict=True)
        return np.array([example.label == choice.index for example, choice in pairs])

    @property
    def metrics(self) -> dict[str, float]:
        """The accuracy."""
        return {"accuracy": float(self.is_right.mean())}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The accuracy of weighted examples."""
        return {"accuracy": partial(weighted_mean, self.is_right)}

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the right choice and the predicted one."""
        example = self.examples[number]
        assert example.label is not None, "only examples with a right choice are measured"
        return example.choices[example.label], self.predictions[number].text

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if the model always predicts the same choice, or else is no better than chance."""
        indexes = {choice.index for choice in self.predictions}
        if len(indexes) == 1:
            return (f"every prediction is choice {next(iter(indexes))}: {ADVICE}",)
        accuracy = float(self.is_right.mean())
        chance = float(np.mean([1.0 / len(example.choices) for example in self.examples]))
        if accuracy > chance:
            return ()
        found, least = format_percent(accuracy), format_percent(chance)
        return (f"accuracy ({found}) isn't above that of guessing ({least}): {ADVICE}",)


@dataclass(frozen=True)
class Choose(Task[ChooseExample, Choice]):
    """Multiple choice among answers or endings."""

    name: ClassVar = "choose"
    example_kind: ClassVar = ChooseExample
    architecture: ClassVar = "BertForMultipleChoice"
    scored: ClassVar = "choice"
    loss_home: ClassVar = "bertkit.tasks.choose.loss:score_choices"
    has_windows: ClassVar = False  # a sequence is a choice

    score = ChooseScoring

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

    def decode(self, example: ChooseExample, encoded: Encoded, logits: Logits) -> Choice:
        """Return the likeliest choice, with the probability of each."""
        del encoded
        scores = logits.astype(np.float64) / self.temperature
        powers = np.exp(scores - scores.max())
        shares = powers / powers.sum()
        best = int(logits.argmax())
        return Choice(best, example.choices[best], float(shares[best]), tuple(shares.tolist()))

    def fit_numbers(
        self,
        examples: Sequence[ChooseExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """Fit the temperature by likelihood, unless all predictions are correct."""
        del encoded
        truth = np.array([example.label for example in examples])
        scores = np.full((len(logits), max(map(len, logits))), NO_CHOICE)
        for row, values in zip(scores, logits, strict=True):
            row[: len(values)] = values - values.max()
        if (scores.argmax(axis=1) == truth).all():
            return self
        return replace(self, numbers={TEMPERATURE: fit_temperature(scores, truth)})
