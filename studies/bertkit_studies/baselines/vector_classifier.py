"""Logistic regression on frozen text vectors (a linear probe)."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify.decoding import choose_labels
from bertkit.tasks.texts import Texts
from bertkit_studies.probes.downstream import LabeledTask

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)  # inverse regularization strengths to try
MAX_ITERATIONS = 500
SMALLEST_GRADIENT = 1e-5


def score_vectors(task: LabeledTask, encode: Encode, settings: FineTuneSettings) -> float:
    """Return the task's metric on held-out examples, with the best regularization strength.

    The strength is chosen on the held-out examples because fine-tuning chooses its epoch so too.

    Args:
        task: a task that labels texts or pairs.
        encode: texts → one row each.
        settings: fine-tuning settings; they decide the held-out share if the task has no dev file.
    """
    data = task.open(settings)
    learned = data.task
    train, held_out = standardize(
        *(
            describe_texts([example.texts for example in one.examples], encode)
            for one in (data.train, data.dev)
        )
    )
    ids = {label: number for number, label in enumerate(learned.labels)}
    labels = torch.tensor([ids[example.labels[0]] for example in data.train.examples])
    found = []
    for strength in STRENGTHS:
        weights, bias = fit(train, labels, len(ids), strength)
        scores = held_out @ weights + bias
        rows = zip(scores.float().numpy(), scores.softmax(dim=1).tolist(), strict=True)
        predictions = [choose_labels(learned.labels, *row) for row in rows]
        metrics = learned.score(data.dev.examples, predictions).metrics
        found.append(metrics[learned.metric])
    return max(found)


def describe_texts(texts: Sequence[Texts], encode: Encode) -> Vectors:
    """Return one row per text; for pairs, the absolute difference and the product of both vectors.

    Source: for pairs, Kiros et al. 2015, section 3.1.
    """
    first = encode([each.text for each in texts])
    if all(each.pair is None for each in texts):
        return first
    second = encode([each.pair or "" for each in texts])
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def standardize(
    train: Vectors, held_out: Vectors
) -> tuple[Float[Tensor, "texts features"], Float[Tensor, "others features"]]:
    """Standardize both by the mean and standard deviation of the training features."""
    known, new = (torch.from_numpy(each).double() for each in (train, held_out))
    spread = known.std(dim=0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)
    return (known - known.mean(dim=0)) / spread, (new - known.mean(dim=0)) / spread


def fit(
    vectors: Float[Tensor, "texts features"],
    labels: Int[Tensor, " texts"],
    num_labels: int,
    strength: float,
) -> tuple[Float[Tensor, "features labels"], Float[Tensor, " labels"]]:
    """Fit weights and bias; the loss is convex, so the result doesn't depend on a seed.

    Args:
        vectors: one row per text.
        labels: label ids.
        num_labels: number of labels.
        strength: weight of the summed losses against the L2 penalty, ½‖weights‖².
    """
    weights = vectors.new_zeros(vectors.shape[1], num_labels, requires_grad=True)
    bias = vectors.new_zeros(num_labels, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights, bias],
        max_iter=MAX_ITERATIONS,
        tolerance_grad=SMALLEST_GRADIENT,
        line_search_fn="strong_wolfe",
    )

    def measure() -> Tensor:
        optimizer.zero_grad()
        losses = F.cross_entropy(vectors @ weights + bias, labels, reduction="sum")
        loss = strength * losses + 0.5 * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(measure)  # type: ignore[no-untyped-call]
    return weights.detach(), bias.detach()
