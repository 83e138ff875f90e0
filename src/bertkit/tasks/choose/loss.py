"""The loss of choices."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.tasks.choose.task import Choose
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Scores


def score_choices(task: Choose, logits: Float[Tensor, " sequences"], batch: TaskBatch) -> Scores:
    """Compute the cross-entropy over each example's choices."""
    del task
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    parts = torch.split(scores, list(batch.num_sequences))
    rows = pad_sequence(list(parts), batch_first=True, padding_value=-torch.inf)
    return Scores(
        {"task": F.cross_entropy(rows, batch.labels, reduction="sum")},
        {"task": (rows.detach().argmax(dim=-1) == batch.labels).sum()},
    )
