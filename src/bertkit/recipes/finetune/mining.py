"""Mined negatives: the passages of other rows that an encoder finds most similar to a query.

Source: Xiong et al. 2021, "Approximate Nearest Neighbor Negative Contrastive Learning"; Moreira et
al. 2024, "NV-Retriever", for a margin relative to the cosine of the query's own passage.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import BertkitError, InputError, ResumeError, pluralize
from bertkit.base.progress import announce
from bertkit.inference.embeddings.embedder import (
    PASSAGE_PROMPTS,
    QUERY_PROMPTS,
    Embedder,
    with_prompt,
)
from bertkit.inference.embeddings.exact_search import ExactSearch
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.embeddings.similarity import compare
from bertkit.models.open_model import OpenModel
from bertkit.reports.text import format_percent
from bertkit.tasks.ranking import fold_text
from bertkit.tasks.settings import MiningSettings
from bertkit.training.ranks import current_ranks

if TYPE_CHECKING:
    from bertkit.recipes.finetune.data import FineTuningData

NEGATIVES_FILE = "negatives.json"  # in the folder of a run
NUM_NEGATIVES, NUM_TO_RANK = 1, 7  # by default, of a training example
NUM_HELD_OUT = 50  # candidates of a held-out query to rank
QUERIES_AT_ONCE = 4096

Vectors = NDArray[np.float32]


class Minable(Protocol):
    """An example that negatives can be mined for."""

    query: str
    passages: tuple[str, ...]

    @property
    def positives(self) -> tuple[str, ...]:
        """Those of its passages that answer the query."""

    def with_candidates(self, passages: tuple[str, ...], cosines: tuple[float, ...]) -> Self:
        """Return the example with further passages, and the cosine of each to the query."""


class MinedPassages(BaseModel):
    """The passages of an example by their numbers, its own ones first, and their cosines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    numbers: tuple[int, ...]
    cosines: tuple[float, ...]

    @classmethod
    def of(cls, found: Mapping[int, float]) -> Self:
        """Return the candidates of cosines by number."""
        return cls(numbers=tuple(found), cosines=tuple(found.values()))


class Mined(ChecksummedModel):
    """What was mined for a run: candidates of its training and its held-out examples."""

    description: ClassVar[str] = "the mined negatives of a run"
    limit_bytes: ClassVar[int] = 1 << 30

    num_passages: int
    train: tuple[MinedPassages, ...]
    held_out: tuple[MinedPassages, ...] = ()  # none if these keep their own passages


def add_negatives(data: "FineTuningData", start: OpenModel | Path, device: str) -> None:
    """Give examples the passages that the settings of their task ask for, once.

    Args:
        data: its examples are replaced.
        start: the model to start from, which finds passages if it is an encoder of sentences, else
            the one that comes with bertkit does; or the folder of a run that is resumed, which has
            found them.
        device: that computes vectors.

    Raises:
        InputError: the examples have scores, and no passages that answer a query.
    """
    settings, train, dev = data.task.settings, data.train.examples, data.dev.examples
    if not isinstance(settings, MiningSettings):
        return
    leave_out_answers(data)
    if data.mined is not None:
        return
    has_none = all(len(one.passages) == len(one.positives) for one in train)
    is_mining = settings.negatives == "mine" or (
        settings.negatives is None and settings.ranks_candidates and has_none
    )
    if not (is_mining or settings.ranks_candidates):
        return
    if getattr(settings, "has_scores", False):
        raise InputError(
            f"{data.train.name} has pairs with scores, for which there are no negatives to mine;"
            " leave out --negatives mine"
        )
    if isinstance(start, Path):
        data.mined = load_mined(start / NEGATIVES_FILE)
    else:
        data.mined = current_ranks().from_first(
            lambda: mine(data, settings, start, device, is_mining)
        )
    passages = list_passages([*train, *dev])
    if data.mined.num_passages != len(passages):
        raise ResumeError(
            f"{NEGATIVES_FILE} of the run is of other data; train again with --overwrite"
        )
    for examples, found in ((train, data.mined.train), (dev, data.mined.held_out)):
        for number, one in enumerate(found):
            texts = tuple(passages[place] for place in one.numbers)
            examples[number] = examples[number].with_candidates(texts, one.cosines)


def leave_out_answers(data: "FineTuningData") -> None:
    """Leave out negatives that answer a held-out query: training would push them away from it."""
    train, held_out, num_left_out = data.train.examples, find_held_out(data), 0
    for number, one in enumerate(train):
        kept = tuple(
            text
            for text in one.passages
            if text in one.positives or fold_text(text) not in held_out
        )
        if num_own := len(one.passages) - len(kept):
            train[number] = one.with_candidates(kept, ())
            num_left_out += num_own
    if num_left_out:
        announce(
            f"{data.train.name}: {pluralize(num_left_out, 'negative')} left out, since they answer"
            " held-out queries"
        )


def find_held_out(data: "FineTuningData") -> set[str]:
    """Return the folded answers of held-out queries; none if these are the training data."""
    if data.has_dev and data.train.sha256 == data.dev.sha256:
        return set()
    return {fold_text(text) for one in data.dev.examples for text in one.positives}


def load_mined(path: Path) -> Mined:
    """Load what a run has mined; `ResumeError` if that is missing or damaged."""
    try:
        return Mined.load(path)
    except BertkitError as error:
        raise ResumeError(
            f"the run can't be resumed without its negatives ({error}); train again with"
            " --overwrite"
        ) from None


def mine(
    data: "FineTuningData", settings: MiningSettings, start: OpenModel, device: str, is_mining: bool
) -> Mined:
    """Mine for the training examples, and find the candidates of held-out ones to rank."""
    train, dev = data.train.examples, data.dev.examples
    loading = EmbedderSettings(device=device)
    own = start if start.is_sentence_encoder else None
    embedder = Embedder.load(own, loading)
    miner = Miner.build(settings, [*train, *dev], embedder)
    held_out_texts = find_held_out(data)
    miner.pool = np.array(
        [
            number
            for number, text in enumerate(list_passages(train))
            if fold_text(text) not in held_out_texts
        ],
        dtype=np.int64,
    )
    mined, held_out = list[MinedPassages](), list[MinedPassages]()
    encoder = "the model that comes with bertkit" if own is None else embedder.opened.title
    if is_mining:
        mined = miner.mine(train)
        announce(f"{data.train.name}: {miner.describe(train, mined)}, by {encoder}")
    if settings.ranks_candidates:
        held_out = miner.retrieve(dev, NUM_HELD_OUT if is_mining else 0)
        what = f"{pluralize(NUM_HELD_OUT, 'passage')} for each query" if is_mining else "cosines"
        announce(f"{data.dev.name}: {what}, by {encoder}")
    return Mined(num_passages=len(miner.vectors), train=tuple(mined), held_out=tuple(held_out))


@dataclass
class Miner:
    """Finds passages for queries, and counts what is left out.

    Attributes:
        numbers: of all passages, by their texts.
        answers: the numbers of the passages that answer each query, in any row, or are its text; in
            this, case and spaces don't count.
        queries: vectors by text.
        vectors: of the passages.
        pool: the numbers of the passages that may be negatives, which ascend.
    """

    settings: MiningSettings
    numbers: dict[str, int]
    answers: dict[str, set[int]]
    queries: dict[str, Vectors]
    vectors: Vectors
    pool: NDArray[np.int64]
    num_close: int = 0

    @classmethod
    def build(
        cls, settings: MiningSettings, examples: Sequence[Minable], embedder: Embedder
    ) -> Self:
        """Compute the vectors of all texts."""
        passages, queries = list_passages(examples), list({one.query: 0 for one in examples})
        numbers = {text: number for number, text in enumerate(passages)}
        answers = find_answers(examples, numbers)
        vectors = with_prompt(embedder, PASSAGE_PROMPTS)(passages, progress=True)
        asked = with_prompt(embedder, QUERY_PROMPTS)(queries, progress=True)
        by_text, pool = dict(zip(queries, asked, strict=True)), np.arange(len(passages))
        return cls(settings, numbers, answers, by_text, vectors, pool)

    def mine(self, examples: Sequence[Minable]) -> list[MinedPassages]:
        """Find negatives of training examples in the pool."""
        first, last = self.settings.negative_ranks
        owners: dict[str, list[int]] = {}
        for number, one in enumerate(examples):
            owners.setdefault(one.query, []).append(number)
        found = dict[int, MinedPassages]()
        for query, rows, cosines in self._search(list(owners), last):
            others = list(zip(rows.tolist(), cosines.tolist(), strict=True))[first - 1 :]
            found |= {number: self._choose(examples[number], others) for number in owners[query]}
        return [found[number] for number in range(len(examples))]

    def _choose(self, example: Minable, others: Sequence[tuple[int, float]]) -> MinedPassages:
        """Add the most similar passages that are far enough to those of an example."""
        own = self._compare_own(example)
        nearest = max(own[self.numbers[text]] for text in example.positives)
        limit = nearest - self.settings.negative_margin * abs(nearest)
        far = [(row, cosine) for row, cosine in others if cosine <= limit]
        self.num_close += len(others) - len(far)
        usual = NUM_TO_RANK if self.settings.ranks_candidates else NUM_NEGATIVES
        new = [(row, cosine) for row, cosine in far if row not in own]
        return MinedPassages.of(own | dict(new[: self.settings.num_negatives or usual]))

    def describe(self, examples: Sequence[Minable], found: Sequence[MinedPassages]) -> str:
        """Say how many negatives were found, and how many passages were left out."""
        new = [
            len(each.numbers) - len({*one.passages})
            for one, each in zip(examples, found, strict=True)
        ]
        margin = format_percent(self.settings.negative_margin, 0)
        rows = pluralize(len(new) - new.count(0), "row")
        return (
            f"mined {pluralize(sum(new), 'negative')} for {rows}, none for {new.count(0):,} others;"
            f" left out {pluralize(self.num_close, 'passage')} whose cosine isn't {margin} lower"
            " than that of a row's own passage"
        )

    def retrieve(self, examples: Sequence[Minable], top_k: int) -> list[MinedPassages]:
        """Find the passages that a search would show, whether or not they answer the query."""
        search = ExactSearch(self.vectors, "cosine")
        found = []
        for one in examples:
            own = self._compare_own(one)
            cosines, rows = search.search(self.queries[one.query][None], top_k)
            others = zip(rows[0].tolist(), cosines[0].tolist(), strict=True)
            new = {row: cosine for row, cosine in others if row not in own}
            found.append(MinedPassages.of(own | new))
        return found

    def _compare_own(self, example: Minable) -> dict[int, float]:
        """Return the cosines of an example's own passages, by their numbers."""
        own = [self.numbers[text] for text in example.passages]
        cosines = compare("cosine", self.vectors[own], self.queries[example.query])
        return dict(zip(own, cosines.tolist(), strict=True))

    def _search(
        self, queries: Sequence[str], top_k: int
    ) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.float64]]]:
        """Yield each query with the `top_k` passages most similar to it that don't answer it."""
        search = ExactSearch(self.vectors, "cosine")
        few = [query for query in queries if len(self.answers[query]) <= top_k]
        for start in range(0, len(few), QUERIES_AT_ONCE):
            chosen = few[start : start + QUERIES_AT_ONCE]
            most = max(len(self.answers[query]) for query in chosen)
            asked = np.stack([self.queries[query] for query in chosen])
            for query, cosines, rows in zip(
                chosen, *search.search(asked, top_k + most, self.pool), strict=True
            ):
                is_other = np.isin(rows, list(self.answers[query]), invert=True)
                yield query, rows[is_other][:top_k], cosines[is_other][:top_k]
        # A query with very many answers would make all searches long: the others are searched.
        for query in (query for query in queries if len(self.answers[query]) > top_k):
            among = np.setdiff1d(self.pool, list(self.answers[query]))
            [cosines], [rows] = search.search(self.queries[query][None], top_k, among)
            yield query, rows, cosines


def find_answers(examples: Sequence[Minable], numbers: Mapping[str, int]) -> dict[str, set[int]]:
    """Return the numbers of the passages that answer each query, or are its text."""
    same, known = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for text, number in numbers.items():
        same[fold_text(text)].add(number)
    for one in examples:
        known[fold_text(one.query)].update(*(same[fold_text(text)] for text in one.positives))
    folded = {one.query: fold_text(one.query) for one in examples}
    return {query: known[key] | same.get(key, set()) for query, key in folded.items()}


def list_passages(examples: Sequence[Minable]) -> list[str]:
    """Return the passages of examples, each text once, in their order."""
    return list(dict.fromkeys(text for one in examples for text in one.passages))
