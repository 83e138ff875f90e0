"""The loss of an answer's borders."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.nn.packing import PackedBatch
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Scores


def score_borders(
    task: AnswerQuestions, logits: Float[Tensor, "tokens 2"], batch: TaskBatch
) -> Scores:
    """Compute the mean of start and end cross-entropy over each window's tokens."""
    del task
    scores = pad_with_nothing(logits, batch.packed)
    loss = F.cross_entropy(scores, batch.labels, reduction="sum") / 2
    is_right = (scores.detach().argmax(dim=1) == batch.labels).all(dim=1)
    return Scores({"task": loss}, {"task": is_right.sum()})


def pad_with_nothing(
    logits: Float[Tensor, "tokens 2"], packed: PackedBatch
) -> Float[Tensor, "windows longest 2"]:
    """Pad the logits of each window with -inf (probability 0), in float32 or wider."""
    values = logits.to(torch.promote_types(logits.dtype, torch.float32))
    device, num_windows = logits.device, len(packed.lengths)
    lengths = torch.tensor(packed.lengths, device=device)
    windows = torch.arange(num_windows, device=device)
    windows = windows.repeat_interleave(lengths, output_size=len(logits))
    padded = values.new_full((num_windows, max(packed.lengths), 2), -torch.inf)
    padded[windows, packed.position_ids] = values
    return padded
