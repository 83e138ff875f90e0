"""Reranking: a model that reads query and passage together orders passages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter
from typing import Any, Self

from bertkit.base.errors import CheckpointError, InputError
from bertkit.inference.predictor import PredictionCounts, Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.models.open_model import OpenModel
from bertkit.reports.notebook import ResultList, Tabular
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.regress.task import Regression
from bertkit.tasks.rerank.task import Ranking
from bertkit.tokenization.tokenizer import check_texts


@dataclass(frozen=True)
class RankedPassage(Tabular):
    """A passage and the model's value of it for a query.

    Attributes:
        row: its place among the passages, from 0.
        score: higher is better; any number.
    """

    row: int
    score: float
    text: str


class Reranker(Predictor[tuple[str, str | Sequence[str]], Any, Any]):
    """Orders passages by how well they answer a query.

    Takes models of `bertkit finetune rerank`, CrossEncoders with one output, and models of pairs
    of `finetune regress`, or of `finetune classify` with two labels. A passage's value is the
    logit, or the difference of the two labels' logits, the second minus the first: sigmoids and
    probabilities of large logits are all rounded to 1, and would order nothing.

    Examples:
        >>> rerank = Reranker.load("reranker/")  # doctest: +SKIP
        >>> [one.text for one in rerank.rank("a flat tire", passages, top_k=3)]  # doctest: +SKIP
    """

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load a model of pairs.

        Raises:
            CheckpointError: the model's task doesn't give a pair one value.
            InputError: it takes no pairs.
        """
        reranker = super().build(opened, loading)
        task, name = reranker.task, opened.folder
        if task.name not in {"rerank", "regress"} and (task.name, len(task.labels)) != (
            "classify",
            2,
        ):
            raise CheckpointError(
                f"{name} is a model for {task.name} with {len(task.labels)} labels, and reranking"
                " takes one that gives a pair one value, or one of two labels; make one with"
                " `bertkit finetune rerank`"
            )
        reranker.loaded.check_pairs()
        if getattr(task.settings, "pairs", None) is False:
            raise InputError(f"{name} reads single texts, and reranking takes a model of pairs")
        return reranker

    def rank(
        self,
        query: str,
        texts: Iterable[str],
        top_k: int | None = None,
        counts: PredictionCounts | None = None,
    ) -> list[RankedPassage]:
        """Return the texts in the order of their values, the highest first; equal ones as given.

        Args:
            texts: read some thousands ahead; with `top_k`, in bounded memory.
            top_k: return so many; by default all.
            counts: statistics of the pairs, updated while they are read.

        Raises:
            InputError: the query is empty, or it or a text isn't a text.
        """
        check_texts([query])
        if not query.strip():
            raise InputError("the query is empty; it must have at least one word")
        waiting = deque[str]()

        def read() -> Iterator[tuple[str, str]]:
            for text in texts:
                waiting.append(text)
                yield query, text

        values = map(find_value, self.stream(read(), counts=counts))
        found = (RankedPassage(*row, waiting.popleft()) for row in enumerate(values))
        order = attrgetter("score")  # both keep the order of equal ones
        ranked = sorted(found, key=order, reverse=True) if top_k is None else None
        return ResultList(nlargest(top_k or 0, found, key=order) if ranked is None else ranked)


def find_value(found: Ranking | Regression | Classification) -> float:
    """Return the value of a prediction for one pair, by which pairs are ordered."""
    if isinstance(found, Ranking):
        [value] = found.values
        return value
    if isinstance(found, Regression):
        return found.value
    assert found.logits is not None
    return float(found.logits[1] - found.logits[0])
