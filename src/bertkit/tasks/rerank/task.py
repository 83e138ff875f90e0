"""The task rerank: one output for a query with each of its candidates, which orders them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_number
from bertkit.tasks.batch import Encoded, Logits, TaskBatch
from bertkit.tasks.ranking import RankedQuery, RankingScoring, score_rankings
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.examples import RerankExample
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import Task, TaskPrediction, choose_activation
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

NO_PASSAGE = -1e4  # logit that pads queries with fewer candidates


@dataclass(frozen=True)
class Ranking(TaskPrediction):
    """The value of each passage for its query, in their order; the highest answers it best."""

    values: tuple[float, ...]

    def describe(self) -> str:
        """Return the values."""
        return " ".join(map(format_number, self.values))


def listwise_loss(
    logits: Float[Tensor, " passages"], relevances: Float[Tensor, " passages"], sizes: Sequence[int]
) -> Float[Tensor, " queries"]:
    """Compute the loss of each query; `sizes` are the numbers of its passages.

    It is the cross-entropy of the softmax over a query's passages and their shares of its
    relevance. Where all are equally relevant, such as that of a row without another passage, it is
    the mean binary cross-entropy, with relevances over 1 taken as 1.

    Source: Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach".
    """
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    rows = pad_sequence(list(torch.split(scores, list(sizes))), True, NO_PASSAGE)
    parts = list(torch.split(relevances.to(scores.dtype), list(sizes)))
    truth = pad_sequence(parts, True, 0.0)
    is_there = pad_sequence([torch.ones_like(part) for part in parts], True, 0.0)
    highest, lowest = truth.amax(dim=-1), torch.stack([part.min() for part in parts])
    shares = truth / truth.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(truth.dtype).tiny)
    by_list = -(shares * rows.log_softmax(dim=-1)).sum(dim=-1)
    single = F.binary_cross_entropy_with_logits(rows, truth.clamp(max=1.0), reduction="none")
    by_row = (single * is_there).sum(dim=-1) / is_there.sum(dim=-1)
    return torch.where(highest > lowest, by_list, by_row)


@dataclass(frozen=True)
class Rerank(Task[RerankExample, Any]):
    """Reranking of the candidates of a query."""

    settings: RerankSettings

    name: ClassVar = "rerank"
    example_kind: ClassVar = RerankExample
    architecture: ClassVar = "BertForSequenceClassification"
    has_windows: ClassVar = False  # a sequence is a passage
    has_solvable_head: ClassVar = False
    config_changes: ClassVar = {"num_labels": 1, **choose_activation("identity")}

    @classmethod
    def from_examples(cls, settings: RerankSettings, examples: Sequence[RerankExample]) -> Self:
        """Build the task, after checking that there is a relevant passage."""
        if not any(example.positives for example in examples):
            raise InputError("no passage has a relevance over 0; nothing can be learned")
        return cls(settings)

    @classmethod
    def from_config(
        cls, settings: RerankSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task, after checking that the model has one output."""
        if config.num_labels != 1:
            raise CheckpointError(f"a reranker has 1 label, the value, not {config.num_labels}")
        return cls(settings, numbers=numbers)

    def encode(self, examples: Sequence[RerankExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] query [SEP] passage [SEP]`, one sequence per passage; cut if long."""
        texts = [Texts(one.query, passage) for one in examples for passage in one.passages]
        settings = TextSettings(max_length=self.settings.max_length)
        readings = iter(encode_texts(texts, settings, tokenizer))
        found = []
        for example in examples:
            own = [next(readings) for _ in example.passages]
            relevances = np.array(example.relevances, dtype=np.float32)
            sequences = tuple(one.sequences[0] for one in own)
            labels = relevances if example.relevances else None
            found.append(Encoded(sequences, labels, any(one.is_cut for one in own)))
        return found

    def loss(self, logits: Float[Tensor, "sequences 1"], batch: TaskBatch) -> Scores:
        """Compute `listwise_loss`, summed over the queries."""
        found = listwise_loss(logits[:, 0], batch.labels, batch.num_sequences)
        return Scores({"task": found.sum()}, {})

    def decode(self, example: RerankExample, encoded: Encoded, logits: Logits) -> Ranking:
        """Return the logits."""
        del example, encoded
        return Ranking(tuple(logits[:, 0].tolist()))

    def score(
        self, examples: Sequence[RerankExample], predictions: Sequence[Ranking]
    ) -> RankingScoring[RerankExample]:
        """Measure the order of the passages of each query that has better and worse ones.

        Metrics are NaN if no query has.
        """
        chosen = [n for n, example in enumerate(examples) if example.has_choice]
        found = [_rank(examples[n], predictions[n]) for n in chosen]
        return score_rankings([examples[n] for n in chosen], found)

    def list_warnings(self, examples: Sequence[RerankExample]) -> list[str]:
        """Report the sizes of the lists, and queries whose passages are all alike."""
        num_passages = sum(len(example.passages) for example in examples)
        num_relevant = sum(len(example.positives) for example in examples)
        queries = pluralize(len(examples), "query", "queries")
        lines = [
            f"{queries}, {pluralize(num_passages, 'passage')}, {num_relevant:,} of them relevant"
        ]
        num_alike = sum(not example.has_choice for example in examples)
        if num_alike:
            lines.append(
                f"{num_alike:,} of the queries have no passage that is more relevant than another:"
                " each of their rows is learned alone, and metrics leave them out"
            )
        return lines


def _rank(example: RerankExample, found: Ranking) -> RankedQuery:
    start = example.cosines or None
    return RankedQuery.of(example.query, example.passages, found.values, example.relevances, start)
