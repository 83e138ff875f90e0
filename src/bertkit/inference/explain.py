"""Explanations of predictions: words are left out, or gradients are followed, and both checked.

Source: leaving words out: Li et al. 2016, "Understanding Neural Networks through Representation
Erasure"; the check: DeYoung et al. 2020, "ERASER", section 4.2 (comprehensiveness).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch

from bertkit.inference.explain_gradients import GRADIENT_COST, attribute
from bertkit.inference.explain_inputs import NO_WORD, ReadInput
from bertkit.inference.explain_targets import Target, list_targets
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.tasks.batch import MAX_SCORES, Compute, Encoded, Logits, compute_logits
from bertkit.tasks.explanation import LEAST_SHARE, NUM_NAMED, ExplainedWord, Explanation
from bertkit.tasks.task import AnyTask, TaskExample, TaskPrediction
from bertkit.tokenization.tokenizer import Tokenizer

NUM_DRAWS = 5  # sets of random words beside the named ones

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Explainer:
    """Explains predictions of a model.

    Attributes:
        task: that of the model.
        model: the model itself, for gradients.
        tokenizer: its tokenizer.
        compute: returns the logits of a batch, by any engine.
        tokens_per_batch: the batch size at which that is fastest.
    """

    task: AnyTask
    model: FineTunedBert
    tokenizer: Tokenizer
    compute: Compute
    tokens_per_batch: int

    def __call__(
        self, example: TaskExample, encoded: Encoded, logits: Logits, prediction: TaskPrediction
    ) -> tuple[Explanation, ...]:
        """Explain a prediction: an explanation for each label, entity, answer or number.

        A word's weight is exact, what the target loses without the word, unless the words are so
        many that gradients cost less.
        """
        targets = list_targets(self.task, prediction, encoded, logits)
        if not targets:
            return ()
        read = ReadInput.of(self.task, self.tokenizer, example, encoded)
        work = _Work(self, read, logits, targets)
        is_exact = read.num_tokens_without_each <= GRADIENT_COST * len(targets) * encoded.num_tokens
        places = range(len(read.words))
        losses = work.base - work.score([{place} for place in places]) if is_exact else None
        return tuple(work.explain(number, losses) for number in range(len(targets)))


@dataclass(frozen=True)
class _Work:
    """An input whose targets are explained."""

    explainer: Explainer
    read: ReadInput
    logits: Logits
    targets: Sequence[Target]

    def explain(self, number: int, losses: Numbers | None) -> Explanation:
        """Explain a target by its losses without each word; without them by gradients."""
        target, base = self.targets[number], self.base[number]
        value = self._find_value(target, base)
        if losses is None:
            ranked = weights = self._follow_gradients(target)
        else:
            ranked = losses[:, number]  # where probabilities round to 1, log-odds still differ
            weights = value - self._find_value(target, base - ranked)
        named = choose_named(ranked, is_number=not target.name)
        words, parts = self.read.words, self.read.parts
        without, *others = self._find_value(target, self.score(self._draw(named))[:, number])
        return Explanation(
            target=target.name,
            value=float(value),
            words=tuple(
                ExplainedWord(parts[part][start:stop], float(weight), part, start, stop)
                for (part, start, stop), weight in zip(words, weights, strict=True)
            ),
            named=named,
            value_without=float(without),
            value_without_random=float(np.mean(others)),
            method="gradients" if losses is None else "words left out",
            parts=parts,
        )

    @cached_property
    def base(self) -> Numbers:
        """The score of each target with all words."""
        scores: Numbers = self.score([()])[0]
        return scores

    def score(self, sets: Sequence[Collection[int]]) -> Numbers:
        """Return the scores `[sets, targets]` without the words of each set."""
        at_once = max(1, MAX_SCORES // self.logits.size)
        starts = range(0, len(sets), at_once)
        found = [self._score_some(sets[start : start + at_once]) for start in starts]
        return np.concatenate([np.empty((0, len(self.targets))), *found])

    def _score_some(self, sets: Sequence[Collection[int]]) -> Numbers:
        task, sequences = self.explainer.task, self.read.encoded.sequences
        is_token = task.scored == "token"
        mask_id = self.explainer.tokenizer.mask_id if is_token else None
        changed = [
            (place, number, sequence)
            for place, words in enumerate(sets)
            for number, sequence in self.read.without(words, mask_id)
        ]
        rows = compute_logits(
            self.explainer.compute,
            [Encoded((sequence,)) for _, _, sequence in changed],
            scored=task.scored,
            tokens_per_batch=self.explainer.tokens_per_batch,
        )
        begins = [*accumulate((len(one.ids) if is_token else 1 for one in sequences), initial=0)]
        logits = np.repeat(self.logits[None], len(sets), axis=0)
        for (place, number, _), own in zip(changed, rows, strict=True):
            logits[place, begins[number] : begins[number + 1]] = own
        scores = torch.from_numpy(logits).double()
        found = torch.stack([target.score(scores) for target in self.targets], dim=-1)
        return found.numpy().astype(np.float64)

    def _find_value(self, target: Target, scores: Numbers) -> Numbers:
        values: Numbers = target.find_value(torch.as_tensor(scores)).numpy()
        return values

    def _draw(self, named: Sequence[int]) -> list[Collection[int]]:
        """Return the named words, then sets of as many words at random, the same each time."""
        random, number = np.random.default_rng(0), len(self.read.words)
        sets = [random.choice(number, len(named), replace=False) for _ in range(NUM_DRAWS)]
        return [set(named), *(set(one.tolist()) for one in sets)]

    def _follow_gradients(self, target: Target) -> Numbers:
        explainer, sequences = self.explainer, self.read.encoded.sequences
        baseline = [*sequences]
        all_words, pad_id = range(len(self.read.words)), explainer.tokenizer.pad_id
        for number, empty in self.read.without(all_words, pad_id):
            baseline[number] = empty
        tokens = attribute(explainer.model, sequences, baseline, target, explainer.tokens_per_batch)
        owners = np.concatenate(self.read.owners)
        is_word = owners != NO_WORD
        added = np.zeros(len(self.read.words))
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
