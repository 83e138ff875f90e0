"""The loss of labels: of one of each text, or of several."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.tasks.batch import IGNORED_LABEL
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.task_batch import TaskBatch, pool_windows
from bertkit.training.job import Scores


def score_labels(
    task: Classify, logits: Float[Tensor, "sequences labels"], batch: TaskBatch
) -> Scores:
    """Compute the cross-entropy; with multi-label the mean binary cross-entropy of labels."""
    scores = pool_windows(logits, batch)
    weights = scores.new_tensor(task.label_weights) if task.label_weights else None
    guesses = scores.detach()
    if task.settings.multi_label:
        truth = batch.labels.to(scores.dtype)
        loss = F.binary_cross_entropy_with_logits(
            scores, truth, pos_weight=weights, reduction="sum"
        ) / len(task.labels)
        hits = ((guesses > 0) == (truth > 0)).all(dim=-1).sum()
    else:
        loss = F.cross_entropy(
            scores, batch.labels, weights, ignore_index=IGNORED_LABEL, reduction="sum"
        )
        hits = (guesses.argmax(dim=-1) == batch.labels).sum()
    return Scores({"task": loss}, {"task": hits})
