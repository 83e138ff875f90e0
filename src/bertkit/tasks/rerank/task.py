"""The task rerank: one output for a query with each of its candidates, which orders them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_number
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.ranking import RankedQuery, RankingScoring, score_rankings
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.examples import RerankExample
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import Task, TaskPrediction, choose_activation
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Ranking(TaskPrediction):
    """The value of each passage for its query, in their order; the highest answers it best."""

    values: tuple[float, ...]

    def describe(self) -> str:
        """Return the values."""
        return " ".join(map(format_number, self.values))


@dataclass(frozen=True)
class Rerank(Task[RerankExample, Any]):
    """Reranking of the candidates of a query."""

    settings: RerankSettings

    name: ClassVar = "rerank"
    example_kind: ClassVar = RerankExample
    architecture: ClassVar = "BertForSequenceClassification"
    loss_home: ClassVar = "bertkit.tasks.rerank.loss:score_passages"
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
