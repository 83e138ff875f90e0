"""The loss of rankings."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.tasks.rerank.task import Rerank
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Scores

NO_PASSAGE = -1e4  # logit that pads queries with fewer candidates


def score_passages(task: Rerank, logits: Float[Tensor, "sequences 1"], batch: TaskBatch) -> Scores:
    """Compute `listwise_loss`, summed over the queries."""
    del task
    found = listwise_loss(logits[:, 0], batch.labels, batch.num_sequences)
    return Scores({"task": found.sum()}, {})


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
