"""Losses of vectors: a query beside the passages of its batch, pairs with a score, several lengths.

All compare cosines, in float32 or better whatever the model computes in: a cosine in bfloat16,
divided by a temperature of 0.05, would be off by 0.1.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Scores


class VectorLoss(NamedTuple):
    """The loss of a batch.

    Attributes:
        total: summed over queries, or over pairs with a score.
        hits: number of queries whose own passage is the closest; None of pairs with a score.
        num_masked: number of negatives that were left out, over all queries; None likewise.
    """

    total: Float[Tensor, ""]
    hits: Int[Tensor, ""] | None = None
    num_masked: Int[Tensor, ""] | None = None


def score_vectors(
    task: Embed, vectors: Float[Tensor, "sequences dimension"], batch: TaskBatch
) -> Scores:
    """Compute the contrastive loss, summed over examples; each batch is a whole one."""
    if task.targets:
        error = squared_error(vectors, batch.labels)
        return Scores({"task": error * batch.target_counts["task"]}, {})
    loss = _choose_loss(task.settings, batch)
    if task.settings.matryoshka:
        loss = matryoshka(loss, task.settings.matryoshka)
    found = loss(vectors)
    if found.hits is None or found.num_masked is None:  # pairs with a score
        return Scores({"task": found.total}, {})
    counts = {"masked_negatives": found.num_masked}
    return Scores({"task": found.total}, {"task": found.hits}, counts)


def _choose_loss(
    settings: EmbeddingSettings, batch: TaskBatch
) -> Callable[[Float[Tensor, "sequences dimension"]], VectorLoss]:
    """Return the loss of the batch's vectors."""
    if settings.has_scores:
        return partial(cosent_loss, scores=batch.labels, scale=1 / settings.loss_temperature)
    return partial(
        in_batch_loss,
        num_sequences=batch.num_sequences,
        group_ids=number_texts(batch.packed),
        temperature=settings.loss_temperature,
        is_symmetric=settings.symmetric,
        margin=settings.false_negative_margin,
    )


class _Batch(NamedTuple):
    """Where queries, their own passages and all passages are; computed on the host."""

    queries: Int[Tensor, " queries"]
    candidates: Int[Tensor, " candidates"]  # positives and negatives of all queries
    targets: Int[Tensor, " queries"]  # the number of the positive among the candidates
    owners: Int[Tensor, " candidates"]  # the number of the query that has the candidate

    @classmethod
    def divide(cls, num_sequences: Sequence[int], device: torch.device) -> "_Batch":
        """Divide a batch of `query, positive, *negatives` for each example."""
        counts, numbers = np.array(num_sequences), np.arange(len(num_sequences))
        starts = np.cumsum(counts) - counts
        candidates = np.setdiff1d(np.arange(counts.sum()), starts, assume_unique=True)
        arrays = starts, candidates, starts - numbers, np.repeat(numbers, counts - 1)
        return cls(*(torch.from_numpy(one).to(device, non_blocking=True) for one in arrays))


def in_batch_loss(
    vectors: Float[Tensor, "sequences dimension"],
    num_sequences: Sequence[int],
    group_ids: Int[Tensor, " sequences"],
    temperature: float,
    *,
    is_symmetric: bool = False,
    margin: float | None = None,
) -> VectorLoss:
    """Cross-entropy of each query's own passage among all passages of the batch.

    Left out as negatives of a query are: the text of its positive or of itself, the positives of
    the same query in other examples, and what is closer to it than its positive by more than
    `margin`, except for the negatives that were given for it.

    Args:
        vectors: of `query, positive, *negatives` of each example; any length.
        num_sequences: of each example, at least 2.
        group_ids: a number for each sequence, the same for equal texts; see `number_texts`.
        temperature: what cosines are divided by.
        is_symmetric: whether to average it with the cross-entropy of each positive's own query
            among all queries.
        margin: a difference of cosines; None to keep negatives that are closer.

    Source: van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding";
    of the margin: Solatorio 2024, "GISTEmbed", here by the cosines of the model itself.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        unit = _normalize(vectors)
        batch = _Batch.divide(num_sequences, vectors.device)
        cosines = unit[batch.queries] @ unit[batch.candidates].T
        masked = _find_equal(batch, group_ids) | _find_closer(cosines.detach(), batch, margin)
        logits = (cosines / temperature).masked_fill(masked, -torch.inf)
        total = F.cross_entropy(logits, batch.targets, reduction="sum")
        if is_symmetric:
            back = logits[:, batch.targets].T
            numbers = torch.arange(len(num_sequences), device=vectors.device)
            total = (total + F.cross_entropy(back, numbers, reduction="sum")) / 2
        hits = (logits.detach().argmax(dim=1) == batch.targets).sum()
    return VectorLoss(total, hits, masked.sum())


def _find_equal(
    batch: _Batch, group_ids: Int[Tensor, " sequences"]
) -> Bool[Tensor, "queries candidates"]:
    """Mark the candidates that are no negatives of a query, because of texts that are equal."""
    queries, candidates = group_ids[batch.queries], group_ids[batch.candidates]
    positives, numbers = (
        candidates[batch.targets],
        torch.arange(len(queries), device=queries.device),
    )
    is_equal = (candidates == positives[:, None]) | (candidates == queries[:, None])
    is_equal[:, batch.targets] |= queries == queries[:, None]
    is_equal[numbers, batch.targets] = False
    return is_equal


def _find_closer(
    cosines: Float[Tensor, "queries candidates"], batch: _Batch, margin: float | None
) -> Bool[Tensor, "queries candidates"]:
    """Mark the candidates of other queries that are closer than a query's own by a margin."""
    if margin is None:
        return torch.zeros_like(cosines, dtype=torch.bool)
    own = cosines.gather(1, batch.targets[:, None])
    numbers = torch.arange(len(cosines), device=cosines.device)
    return (cosines > own + margin) & (batch.owners != numbers[:, None])


def cosent_loss(
    vectors: Float[Tensor, "sequences dimension"], scores: Float[Tensor, " pairs"], scale: float
) -> VectorLoss:
    """The CoSENT loss: a pair with a higher score should have the higher cosine.

    It is `log(1 + sum(exp(scale · (cosine of i - cosine of j))))` over all pairs i and j of which j
    has the higher score, times the number of pairs. Only the order of scores matters.

    Args:
        vectors: of both texts of each pair, one after the other.
        scores: in any unit.
        scale: what differences of cosines are multiplied by.

    Source: Su 2022, "CoSENT: a more efficient sentence vector scheme than Sentence-BERT".
    """
    with torch.autocast(vectors.device.type, enabled=False):
        unit = _normalize(vectors)
        cosines = (unit[0::2] * unit[1::2]).sum(dim=1)
        excess = scale * (cosines[:, None] - cosines)
        counted = excess.masked_fill(scores[:, None] >= scores, -torch.inf)
        terms = torch.cat([excess.new_zeros(1), counted.flatten()])
        return VectorLoss(terms.logsumexp(dim=0) * len(scores))


def squared_error(
    vectors: Float[Tensor, "sequences dimension"], targets: Float[Tensor, "sequences dimension"]
) -> Float[Tensor, ""]:
    """Return the mean squared distance of vectors to those of a teacher, in float32 or better."""
    precise = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return (precise - targets.to(precise.dtype)).square().sum(dim=1).mean()


def matryoshka(
    loss: Callable[[Float[Tensor, "sequences dimension"]], VectorLoss], lengths: Sequence[int]
) -> Callable[[Float[Tensor, "sequences dimension"]], VectorLoss]:
    """Return the mean of a loss over the first so many numbers of each vector, and over all.

    What the loss leaves out or counts is that of whole vectors.

    Raises:
        SettingsError: the vectors are no longer than a length; when the loss is computed.

    Source: Kusupati et al. 2022, "Matryoshka Representation Learning".
    """

    def compute(vectors: Float[Tensor, "sequences dimension"]) -> VectorLoss:
        dimension = vectors.shape[1]
        if not all(0 < length < dimension for length in lengths):
            raise SettingsError(
                f"`matryoshka` has the lengths {', '.join(map(str, lengths))}; each must be from 1"
                f" to {dimension - 1}, because vectors of this model have {dimension} numbers"
            )
        whole = loss(vectors)
        totals = [whole.total, *(loss(vectors[:, :length]).total for length in lengths)]
        return whole._replace(total=torch.stack(totals).mean())

    return compute


def number_texts(batch: PackedBatch) -> Int[Tensor, " sequences"]:
    """Return a number of 64 bits for each sequence, the same for equal token ids.

    It is computed where the batch is, without waiting for a device: a sum of the ids, each times a
    factor that belongs to its position and looks random.
    """
    factors = _scramble(batch.position_ids + 1)
    sums = F.pad((_scramble(batch.input_ids + 1) * factors).cumsum(0), (1, 0))
    offsets = batch.offsets.long()
    return sums[offsets[1:]] - sums[offsets[:-1]]


def _scramble(numbers: Int[Tensor, " tokens"]) -> Int[Tensor, " tokens"]:
    """Spread small numbers over 64 bits; products wrap around.

    Source: Steele et al. 2014, "Fast Splittable Pseudorandom Number Generators".
    """
    for factor in (-0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15):
        numbers = numbers * factor
        numbers = numbers ^ (numbers >> 29)
    return numbers


def _normalize(
    vectors: Float[Tensor, "sequences dimension"],
) -> Float[Tensor, "sequences dimension"]:
    """Return vectors of length 1, in float32 or better."""
    return F.normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=-1)
