"""The loss of numbers."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.tasks.regress.task import Regress
from bertkit.tasks.task_batch import TaskBatch, pool_windows
from bertkit.training.job import Scores


def score_numbers(task: Regress, logits: Float[Tensor, "sequences 1"], batch: TaskBatch) -> Scores:
    """Compute the squared error."""
    del task
    values = pool_windows(logits, batch)[:, 0]
    truth = batch.labels.to(values.dtype)
    return Scores({"task": F.mse_loss(values, truth, reduction="sum")}, {})
