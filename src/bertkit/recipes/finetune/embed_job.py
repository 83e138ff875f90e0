"""The training loop's job of the task embed: held-out queries rank the passages of all rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import announce
from bertkit.data.order import DistinctOrder
from bertkit.models.bert.sentence_bert import SentenceBert
from bertkit.recipes.finetune.cached_vectors import compute_in_parts, count_parts
from bertkit.recipes.finetune.job import FineTuningJob, sum_loss
from bertkit.tasks.batch import Encoded
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.ranking import RankedQuery, fold_text
from bertkit.tasks.task import AnyTask, TaskPrediction
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Scores

MAX_PASSAGES = 10_000  # that held-out queries rank
DRAWING = 5  # the seed of the random generator that draws them

Vectors = npt.NDArray[np.float32]


class EmbedJob(FineTuningJob):
    """Training an encoder of texts."""

    task: Embed
    model: SentenceBert

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.num_micro_batches = 1  # its loss is that of a whole batch
        self._check_kinds()
        examples, has_scores = self.data.train.examples, self.task.settings.has_scores
        if self.settings.batch_size == 1 and all(len(one.passages) == 1 for one in examples):
            other = "pair to be compared with" if has_scores else "passage to tell its own from"
            advice = "" if has_scores else ", or give rows with negatives"
            raise SettingsError(f"a batch of one has no other {other}; raise `batch_size`{advice}")
        if not has_scores:
            self.order = self._order_queries()
        self.model.sentences = replace(
            self.model.sentences,
            prompts=self.task.sentences.prompts,
            max_seq_length=self.task.settings.max_length,
        )

    def _check_kinds(self) -> None:
        """Raise an `InputError` if only training rows or only held-out ones have scores."""
        has_scores, dev = bool(self.task.settings.has_scores), self.data.dev
        if any((example.number is not None) != has_scores for example in dev.examples):
            kinds = ("queries with passages", "pairs with a score")
            raise InputError(
                f"{dev.name} has {kinds[not has_scores]}, and the training data have"
                f" {kinds[has_scores]}; give the same in both"
            )

    def _order_queries(self) -> DistinctOrder:
        """Return an order in which no passage of a step answers another of its queries."""
        rows = [(one.query, one.passages) for one in self.data.train.examples]
        order = DistinctOrder(rows, self.settings.batch_size, self.settings.seed)
        order.examples(0)
        if order.num_unplaced:
            announce(
                f"{order.num_unplaced:,} of {len(rows):,} examples are in a batch with a passage"
                " or a query of theirs, because too many rows share them"
            )
        return order

    def loss(self, model: SentenceBert, batch: TaskBatch) -> Scores:  # type: ignore[override]
        """Return the loss of the whole batch; a large one is computed in parts."""
        num_parts = max(self.settings.accumulate, count_parts(self.model.config, batch.packed))
        return self.task.loss(compute_in_parts(model.scores, batch.packed, num_parts), batch)

    def predict_held_out(self) -> tuple[float, list[TaskPrediction]]:
        """Return the held-out loss; and a similarity for each row, or a ranking for its query."""
        examples, logits = self.data.dev.examples, self.held_out_logits(range(len(self.dev)))
        total, count = sum_loss(self.task, self.dev, logits)
        loss = total / max(1, count)
        if not np.isfinite(loss):
            return loss, []
        if self.task.settings.has_scores:
            rows = zip(examples, self.dev, logits, strict=True)
            return loss, [self.task.decode(*row) for row in rows]
        vectors = {
            passage: vector
            for example, own in zip(examples, logits, strict=True)
            for passage, vector in zip(example.passages, own[1:], strict=True)
        }
        others = self.compute_logits(list(self.other_passages.values()))
        vectors |= dict(zip(self.other_passages, (own[0] for own in others), strict=True))
        passages, corpus = list(vectors), _normalize(np.stack([*vectors.values()]))
        folded = [fold_text(passage) for passage in passages]
        ranked: dict[str, TaskPrediction] = {}
        for example, own in zip(examples, logits, strict=True):
            if example.query not in ranked:
                cosines, relevant = (
                    corpus @ _normalize(own[0]),
                    self.relevant[fold_text(example.query)],
                )
                ranked[example.query] = RankedQuery.of(
                    example.query,
                    passages,
                    cosines,
                    [one in relevant for one in folded],
                )
        return loss, [ranked[example.query] for example in examples]

    def answer_held_out(
        self, fitted: Mapping[str, float] | None
    ) -> tuple[AnyTask, list[TaskPrediction], list[TaskPrediction]]:
        """Return the task and its predictions; it has no numbers to fit."""
        del fitted
        return self.task, self.predict_held_out()[1], []

    @cached_property
    def relevant(self) -> dict[str, set[str]]:
        """The passages of each query in all rows, both as `fold_text` returns them."""
        found: dict[str, set[str]] = {}
        for part in self.data.parts:
            for example in part.examples:
                query, passage = fold_text(example.query), fold_text(example.passages[0])
                found.setdefault(query, set()).add(passage)
        return found

    @cached_property
    def other_passages(self) -> dict[str, Encoded]:
        """Passages of the training rows, which held-out queries rank beside the held-out ones."""
        held_out = {passage for each in self.data.dev.examples for passage in each.passages}
        found: dict[str, tuple[int, int]] = {}  # the example, and the place in it
        for number, example in enumerate(self.data.train.examples):
            for place, passage in enumerate(example.passages, start=1):
                if passage not in held_out:
                    found.setdefault(passage, (number, place))
        passages, room = list(found), max(0, MAX_PASSAGES - len(held_out))
        if len(passages) > room:
            generator = np.random.default_rng(DRAWING)  # the same for all seeds
            chosen = np.sort(generator.permutation(len(passages))[:room])
            announce(
                f"held-out queries rank {len(held_out) + room:,} of the"
                f" {len(held_out) + len(passages):,} passages: all held-out ones, and training ones"
                " drawn at random"
            )
            passages = [passages[place] for place in chosen]
        sequences = (self.train[found[one][0]].sequences[found[one][1]] for one in passages)
        encoded = (Encoded((sequence,)) for sequence in sequences)
        return dict(zip(passages, encoded, strict=True))


def _normalize(vectors: Vectors) -> Vectors:
    """Return vectors of length 1."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, 1e-12)
    return unit
