"""The task choose: one logit per choice from its C, a softmax over an example's choices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.tasks.batch import Encoded, Logits, TaskBatch
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.scoring import Choice, ChooseScoring
from bertkit.tasks.metrics.calibration import fit_temperature
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import TEMPERATURE, Task
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

NO_CHOICE = -1e4  # logit that pads examples with fewer choices


@dataclass(frozen=True)
class Choose(Task[ChooseExample, Choice]):
    """Multiple choice among answers or endings."""

    name: ClassVar = "choose"
    example_kind: ClassVar = ChooseExample
    architecture: ClassVar = "BertForMultipleChoice"

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
