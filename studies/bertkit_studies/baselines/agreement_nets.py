"""Build, train and evaluate nets on the synthetic task of `agreement.py`."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.base.errors import NonFiniteError
from bertkit.base.progress import show_progress
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.training.budget import WARM_UP_STEPS
from bertkit.training.device import synchronize
from bertkit.training.job import Machine, MicroBatch, Scores
from bertkit.training.optimizer import build_optimizer, set_learning_rate
from bertkit.training.replica import ModelWithLoss
from bertkit.training.settings import LoopSettings
from bertkit.training.step import add_gradients, clip_gradients, is_finite
from bertkit_studies.baselines.agreement import (
    NUM_CUES,
    VOCAB_SIZE,
    AgreementBatch,
    longest_sequence,
    measuring_batch,
    training_batch,
)
from bertkit_studies.recurrent.classifier import RecurrentClassifier
from bertkit_studies.recurrent.config import ClassifierConfig

Kind = Literal["attention", "attention-both-ways", "lstm", "gru"]
Net = BertForSequenceClassification | RecurrentClassifier

NUM_LAYERS = 2
BATCH_SIZE = 64
NUM_MEASURED = 256  # evaluation examples of each distance
NUM_TRACED = 32  # examples of each distance whose gradients are measured
LEAST_NORM = torch.finfo(torch.float32).tiny  # lower bound; keeps the logarithm finite
# Hidden size relative to the width: gives about as many parameters as two Transformer blocks.
HIDDEN_FACTORS = {"lstm": 1.34, "gru": 1.56}


@dataclass(frozen=True)
class Sizes:
    """The size of the nets and of the task.

    Attributes:
        width: embedding and hidden size.
        longest: the largest distance.
    """

    width: int
    longest: int


def build_net(kind: Kind, sizes: Sizes) -> Net:
    """Build a net, initialized from torch's default generator."""
    if kind == "lstm" or kind == "gru":
        return RecurrentClassifier(
            ClassifierConfig(
                vocab_size=VOCAB_SIZE,
                num_labels=NUM_CUES,
                embedding_size=sizes.width,
                hidden_size=round(HIDDEN_FACTORS[kind] * sizes.width),
                num_layers=NUM_LAYERS,
                is_bidirectional=False,
                cell=kind,
                pooling="ends",
                dropout=0.0,
            )
        )
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=VOCAB_SIZE,
            hidden_size=sizes.width,
            num_hidden_layers=NUM_LAYERS,
            num_attention_heads=max(1, sizes.width // 32),
            intermediate_size=4 * sizes.width,
            max_position_embeddings=longest_sequence(sizes.longest),
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            is_decoder=kind == "attention",
            num_labels=NUM_CUES,
        )
    )


def count_parameters(net: Net) -> int:
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in net.parameters())


def score(net: Net, batch: AgreementBatch) -> Scores:
    """Return the summed loss of a batch and the number of correct predictions."""
    scores = net.scores(batch.packed).float()
    hits = (scores.detach().argmax(dim=1) == batch.labels).sum()
    loss = F.cross_entropy(scores, batch.labels, reduction="sum")
    return Scores({"cue": loss}, {"cue": hits})


def log_odds(net: Net, batch: AgreementBatch) -> Float[Tensor, " sequences"]:
    """Return the log-odds of the correct cue against all others.

    Unlike the loss, the log-odds keep a usable gradient when the net is confident.
    """
    scores = net.scores(batch.packed).float()
    is_right = F.one_hot(batch.labels, NUM_CUES).bool()
    return scores[is_right] - scores.masked_fill(is_right, -math.inf).logsumexp(dim=1)


def train(
    net: Net, num_tokens: int, longest: int, settings: LoopSettings, machine: Machine
) -> float:
    """Train on a number of tokens; return the median tokens per second after warm-up.

    Args:
        net: the net, on its device.
        num_tokens: the training budget.
        longest: the largest distance.
        settings: seed, learning rate, schedule and optimizer.
        machine: device and precision.
    """
    optimizer = build_optimizer(net, settings)
    num_read, step = 0, 0
    speeds: list[float] = []
    with show_progress("learning to agree", num_tokens) as bar:
        while num_read < num_tokens:
            batch = training_batch(settings.seed, step, BATCH_SIZE, longest)
            started = time.perf_counter()
            parts = [MicroBatch(0, batch)]
            metrics = add_gradients(ModelWithLoss(net, score), parts, settings.seed, step, machine)
            metrics["gradient_norm"] = clip_gradients(net, settings.clip_norm)
            _check_finite(metrics, step)
            set_learning_rate(optimizer, rate_at(num_read / num_tokens, settings))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            synchronize(machine.device)
            speeds.append(batch.num_tokens / (time.perf_counter() - started))
            num_read += batch.num_tokens
            step += 1
            bar.advance(batch.num_tokens)
    return median(speeds[WARM_UP_STEPS:] or speeds)


def _check_finite(metrics: dict[str, float], step: int) -> None:
    if not is_finite(metrics):
        raise NonFiniteError(
            f"step {step:,}: loss {metrics['loss']}, norm of the gradient"
            f" {metrics['gradient_norm']}; training can't continue"
        )


def rate_at(share: float, settings: LoopSettings) -> float:
    """Return the learning rate after a share of the tokens."""
    return settings.learning_rate_at(int(1000 * share), 1000)


@torch.inference_mode()
def measure_accuracy(net: Net, distances: Sequence[int], device: torch.device) -> list[float]:
    """Return the accuracy at each distance."""
    net.eval()
    found = []
    for distance in distances:
        batch = measuring_batch(distance, NUM_MEASURED).to(device)
        found.append(float(score(net, batch).correct["cue"]) / len(batch.labels))
    return found


def measure_gradients(net: Net, distances: Sequence[int], device: torch.device) -> list[float]:
    """Return log10 of the gradient norm at the cue, relative to the first distance.

    The gradient is that of the log-odds of the correct cue with respect to the cue's embedding.
    Its mean norm is divided by that at the first distance, which makes nets comparable: the value
    is 0 there, and -2 where 1 % remains. A norm that underflows counts as `LEAST_NORM`.
    """
    net.eval()
    norms = [
        _measure_gradient(net, measuring_batch(one, NUM_TRACED).to(device)) for one in distances
    ]
    return [math.log10(norm / norms[0]) for norm in norms]


def _measure_gradient(net: Net, batch: AgreementBatch) -> float:
    """Return the mean gradient norm at the cues."""
    embedded = _trace_embeddings(net, batch)
    return max(LEAST_NORM, float(embedded[batch.cue_places].norm(dim=1).mean()))


def _trace_embeddings(net: Net, batch: AgreementBatch) -> Tensor:
    """Return the gradient of the log-odds with respect to each token's embedding."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: object, embedded: Tensor) -> None:
        embedded.retain_grad()
        kept.append(embedded)

    handle = find_embeddings(net).register_forward_hook(keep)
    try:
        # cuDNN has no backward pass for recurrent nets in evaluation mode.
        with torch.backends.cudnn.flags(enabled=False):
            log_odds(net, batch).sum().backward()  # type: ignore[no-untyped-call]
    finally:
        handle.remove()
    net.zero_grad(set_to_none=True)
    gradient = kept[0].grad
    assert gradient is not None, "the embeddings are looked up once in a pass"
    return gradient


def find_embeddings(net: Net) -> nn.Embedding:
    """Return the word embeddings."""
    if isinstance(net, RecurrentClassifier):
        return net.reader.embeddings
    return net.encoder.embeddings.word
