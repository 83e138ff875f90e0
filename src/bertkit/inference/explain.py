"""Explanations of predictions: words are left out, or gradients are followed, and both checked.

Source: leaving words out: Li et al. 2016, "Understanding Neural Networks through Representation
Erasure"; the check: DeYoung et al. 2020, "ERASER", section 4.2 (comprehensiveness).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.base.extras import require_torch
from bertkit.inference.engines.engine import Engine
from bertkit.inference.explain_inputs import NO_WORD, ReadInput
from bertkit.inference.explain_targets import Target, list_targets
from bertkit.tasks.batch import Encoded, Logits, pack_sequences
from bertkit.tasks.explanation import LEAST_SHARE, NUM_NAMED, Explanation
from bertkit.tasks.task import AnyTask, TaskPrediction
from bertkit.tokenization.tokenizer import Tokenizer

NUM_DRAWS = 5  # sets of random words beside the named ones
NUM_STEPS = 32  # points of the path that gradients follow
GRADIENT_COST = 3 * NUM_STEPS  # in passes: backward costs two

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Explainer:
    """Explains predictions for an input.

    Attributes:
        task: that of the model.
        tokenizer: that of the model.
        engine: computes the model.
        compute: returns the logits of encoded inputs, by the engine.
        read: the input, with its words.
        logits: of the input.
    """

    task: AnyTask
    tokenizer: Tokenizer
    engine: Engine
    compute: Callable[[Sequence[Encoded]], Iterable[Logits]]
    read: ReadInput
    logits: Logits

    def explain(self, prediction: TaskPrediction) -> tuple[Explanation, ...]:
        """Return an explanation for each label, entity, answer or number.

        A word's weight is exact, what the target loses without the word, unless the words are so
        many that gradients cost less.

        Raises:
            MissingExtraError: the words are so many, and PyTorch, which follows gradients, isn't
                installed.
        """
        targets = list_targets(self.task, prediction, self.read.encoded, self.logits)
        places, scores = range(len(self.read.words)), None
        if len(places) <= GRADIENT_COST * len(targets):
            scores = self._score(targets, [{place} for place in places])
        return tuple(
            self._explain(target, None if scores is None else scores[:, number])
            for number, target in enumerate(targets)
        )

    def _explain(self, target: Target, scores: Numbers | None) -> Explanation:
        """Explain a target by its scores without each word; if there are none, by gradients."""
        words, base = self.read.words, target.score(self.logits.astype(np.float64))
        value = target.to_value(base)
        if scores is None:
            losses = weights = self._follow_gradients(target)
        else:
            losses = base - scores  # where probabilities round to 1, log-odds differ
            weights = value - target.to_value(scores)
        named, random = choose_named(losses, is_number=not target.name), np.random.default_rng(0)
        drawn = [random.choice(len(words), len(named), replace=False) for _ in range(NUM_DRAWS)]
        sets = [named, *(one.tolist() for one in drawn)]
        without, *others = target.to_value(self._score([target], sets)[:, 0])
        return Explanation(
            target=target.name,
            value=float(value),
            words=tuple(
                word._replace(weight=float(weight))
                for word, weight in zip(words, weights, strict=True)
            ),
            named=named,
            value_without=float(without),
            value_without_random=float(np.mean(others)),
            method="gradients" if scores is None else "words left out",
            parts=self.read.parts,
        )

    def _score(self, targets: Sequence[Target], sets: Sequence[Collection[int]]) -> Numbers:
        """Return the scores `[sets, targets]` without the words of each set."""
        is_token, sequences = self.task.scored == "token", self.read.encoded.sequences
        begins = [*accumulate((len(one.ids) if is_token else 1 for one in sequences), initial=0)]
        mask_id = self.tokenizer.mask_id if is_token else None
        changed = [
            self.read.without(words, mask_id) or dict(enumerate(sequences)) for words in sets
        ]
        found = np.empty((len(sets), len(targets)))
        computed = self.compute([Encoded(tuple(one.values())) for one in changed])
        for scores, numbers, own in zip(found, changed, computed, strict=True):
            logits = self.logits.astype(np.float64)
            logits[[row for one in numbers for row in range(*begins[one : one + 2])]] = own
            scores[:] = [target.score(logits) for target in targets]
        return found

    def _follow_gradients(self, target: Target) -> Numbers:
        """Return what each word adds to the value, in comparison with a text of [PAD]."""
        require_torch("explaining a text of so many words")
        from bertkit.inference.gradients import follow_gradients
        from bertkit.inference.torch_model import find_network

        def score(logits: Any) -> Any:
            found = target.score(logits)
            return found.sigmoid() if target.name else found

        read = self.read
        emptied = read.without(range(len(read.words)), self.tokenizer.pad_id)
        sequences = read.encoded.sequences
        start = [emptied.get(number, one) for number, one in enumerate(sequences)]
        ends = pack_sequences(start), pack_sequences(sequences)
        tokens = follow_gradients(find_network(self.engine), ends, score, NUM_STEPS)
        owners, added = np.concatenate(read.owners), np.zeros(len(read.words))
        is_word = owners != NO_WORD
        np.add.at(added, owners[is_word], tokens[is_word])
        return added


def choose_named(losses: Numbers, *, is_number: bool) -> tuple[int, ...]:
    """Return the places of the words that decided, the weightiest first, the first of equal ones.

    A probability is decided by words without which it falls, a number by those that change it; a
    word with a small share of the largest weight decides nothing.
    """
    sizes = np.abs(losses) if is_number else losses
    order = np.argsort(-sizes, kind="stable")[:NUM_NAMED]
    least = LEAST_SHARE * max(sizes.max(initial=0.0), 0.0)
    return tuple(int(place) for place in order if sizes[place] > least)
