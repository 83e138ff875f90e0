"""Reranking: a model that reads query and passage together orders passages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from operator import attrgetter
from typing import Any, Self

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.settings import check_count
from bertkit.inference.predictor import PredictionCounts, Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.models.open_model import OpenModel
from bertkit.reports.notebook import ResultList, Tabular
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.regress.task import Regression
from bertkit.tasks.rerank.task import Ranking
from bertkit.tokenization.tokenizer import check_texts

# Labels, in lower case, which say that a passage answers a query, and what denies one.
POSITIVE = frozenset(
    {"1", "true", "yes", "label_1", "relevant", "entailment", "entailed", "duplicate", "match"}
)
NEGATIONS = ("not_", "no_", "non_", "un", "ir")


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
    logit, or of two labels the difference of the logits, that of the label which says that the
    passage answers (`find_positive`) minus the other's: sigmoids and probabilities of large logits
    are all rounded to 1, and would order nothing.

    Examples:
        >>> rerank = Reranker.load("reranker/")  # doctest: +SKIP
        >>> [one.text for one in rerank.rank("a flat tire", passages, top_k=3)]  # doctest: +SKIP
    """

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load a model of pairs.

        Raises:
            CheckpointError: the model's task doesn't give a pair one value, or which of two labels
                says that a passage answers isn't known.
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
        if task.name == "classify":
            find_positive(task.labels, name)
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
            SettingsError: `top_k` isn't a whole number of at least 1.
        """
        check_count("top_k", top_k)
        check_texts([query])
        if not query.strip():
            raise InputError("the query is empty; it must have at least one word")
        waiting = deque[str]()

        def read() -> Iterator[tuple[str, str]]:
            for text in texts:
                waiting.append(text)
                yield query, text

        place = find_positive(self.task.labels) if self.task.name == "classify" else 1
        values = map(partial(find_value, place=place), self.stream(read(), counts=counts))
        found = (RankedPassage(*row, waiting.popleft()) for row in enumerate(values))
        order = attrgetter("score")  # both keep the order of equal ones
        ranked = sorted(found, key=order, reverse=True) if top_k is None else None
        return ResultList(nlargest(top_k or 0, found, key=order) if ranked is None else ranked)


def find_positive(labels: Sequence[str], name: object = "the model") -> int:
    """Return the place of the label, of two, which says that a passage answers a query.

    It is known by its name, such as 1, LABEL_1, yes, relevant or entailment, or by that of the
    other, such as not_equivalent beside equivalent.

    Args:
        name: of the model, in the message.

    Raises:
        CheckpointError: neither label is known, or both are.
    """
    names = ["_".join(label.casefold().replace("-", " ").split()) for label in labels]
    found = [
        place
        for place, own in enumerate(names)
        if own in POSITIVE or names[1 - place] in {f"{no}{own}" for no in NEGATIONS}
    ]
    if len(found) != 1:
        raise CheckpointError(
            f"{name} has the labels {labels[0]!r:.80} and {labels[1]!r:.80}, and which of them says"
            " that a passage answers a query isn't known; rename that one to relevant, or make a"
            " model with `bertkit finetune rerank`"
        )
    return found[0]


def find_value(found: Ranking | Regression | Classification, place: int = 1) -> float:
    """Return the value of a prediction for one pair, by which pairs are ordered.

    `place` is that of the label, of two, whose logit counts for the passage.
    """
    if isinstance(found, Ranking):
        [value] = found.values
        return value
    if isinstance(found, Regression):
        return found.value
    assert found.logits is not None
    return float(found.logits[place] - found.logits[1 - place])
