"""Predicted choices, and their evaluation."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from bertkit.reports.text import format_percent
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Statistic
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.task import TaskPrediction

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
