"""Nets that learn the language of `agreement.py`, and what is measured of them."""

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
from bertkit.hardware.device import synchronize
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.models.recurrent.classifier import RecurrentClassifier
from bertkit.models.recurrent.config import ClassifierConfig
from bertkit.objectives.objective import PreTrainingLosses
from bertkit.studies.baselines.agreement import (
    NUM_CUES,
    VOCAB_SIZE,
    AgreementBatch,
    longest_sequence,
    measuring_batch,
    training_batch,
)
from bertkit.training.budget import WARM_UP_STEPS
from bertkit.training.job import Machine
from bertkit.training.optimizer import build_optimizer, set_learning_rate
from bertkit.training.schedule import learning_rate_at
from bertkit.training.settings import LoopSettings
from bertkit.training.step import add_gradients, clip_gradients, is_finite

Kind = Literal["attention", "attention-both-ways", "lstm", "gru"]
Net = BertForSequenceClassification | RecurrentClassifier

NUM_LAYERS = 2
BATCH_SIZE = 64
NUM_MEASURED = 256  # examples of each distance
NUM_TRACED = 32  # of those whose gradients are taken
LEAST_NORM = torch.finfo(torch.float32).tiny  # of a gradient; it has a logarithm
# States that give a recurrent net of two layers about as many weights as two blocks of attention.
HIDDEN_FACTORS = {"lstm": 1.34, "gru": 1.56}


@dataclass(frozen=True)
class Sizes:
    """How large the nets are, and how far they are asked to look.

    Attributes:
        width: features of a token.
        longest: the largest distance.
    """

    width: int
    longest: int


def build_net(kind: Kind, sizes: Sizes) -> Net:
    """A net with initial weights from torch's default generator."""
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
    """All that is learned."""
    return sum(parameter.numel() for parameter in net.parameters())


def score(net: Net, batch: AgreementBatch) -> PreTrainingLosses:
    """The loss of a batch, and how often the right cue won."""
    scores = net.scores(batch.packed).float()
    hits = (scores.detach().argmax(dim=1) == batch.labels).sum()
    loss = F.cross_entropy(scores, batch.labels, reduction="sum")
    return PreTrainingLosses({"cue": loss}, {"cue": hits})


def log_odds(net: Net, batch: AgreementBatch) -> Float[Tensor, " sequences"]:
    """How much more the right cue is believed than all others together.

    It changes with the cue however sure the net is, while the loss of a sure one hardly does.
    """
    scores = net.scores(batch.packed).float()
    is_right = F.one_hot(batch.labels, NUM_CUES).bool()
    return scores[is_right] - scores.masked_fill(is_right, -math.inf).logsumexp(dim=1)


def train(
    net: Net, num_tokens: int, longest: int, settings: LoopSettings, machine: Machine
) -> float:
    """Train on a number of tokens; tokens a second of the middling step, the first ones aside.

    Args:
        net: on its device.
        num_tokens: when they have been read, it ends.
        longest: the largest distance.
        settings: seed, learning rate and what belongs to it.
        machine: where it computes.
    """
    optimizer = build_optimizer(net, settings)
    num_read, step = 0, 0
    speeds: list[float] = []
    with show_progress("learning to agree", num_tokens) as bar:
        while num_read < num_tokens:
            batch = training_batch(settings.seed, step, BATCH_SIZE, longest)
            started = time.perf_counter()
            metrics = add_gradients(net, [batch], score, settings.seed, step, machine)
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
            f" {metrics['gradient_norm']}; the net can't learn from that"
        )


def rate_at(share: float, settings: LoopSettings) -> float:
    """The learning rate when a share of the tokens has been read."""
    return learning_rate_at(
        int(1000 * share),
        num_steps=1000,
        peak=settings.learning_rate,
        warmup=settings.warmup,
        schedule=settings.schedule,
    )


@torch.inference_mode()
def measure_accuracy(net: Net, distances: Sequence[int], device: torch.device) -> list[float]:
    """How often the right cue is told, at each distance."""
    net.eval()
    found = []
    for distance in distances:
        batch = measuring_batch(distance, NUM_MEASURED).to(device)
        found.append(float(score(net, batch).hits["cue"]) / len(batch.labels))
    return found


def measure_gradients(net: Net, distances: Sequence[int], device: torch.device) -> list[float]:
    """What is left of the gradient at the cue, at each distance, as a power of ten.

    The gradient is that of the right answer's log-odds with respect to the cue's embedding; its
    mean norm is held against that at the first distance, so that nets are compared by shares: 0
    there, and -2 where a hundredth is left. A norm below all numbers counts as the least of them.
    """
    net.eval()
    norms = [
        _measure_gradient(net, measuring_batch(one, NUM_TRACED).to(device)) for one in distances
    ]
    return [math.log10(norm / norms[0]) for norm in norms]


def _measure_gradient(net: Net, batch: AgreementBatch) -> float:
    """The mean norm at the cues."""
    embedded = _trace_embeddings(net, batch)
    return max(LEAST_NORM, float(embedded[batch.cue_places].norm(dim=1).mean()))


def _trace_embeddings(net: Net, batch: AgreementBatch) -> Tensor:
    """The gradient of the log-odds with respect to each token's embedding."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: object, embedded: Tensor) -> None:
        embedded.retain_grad()
        kept.append(embedded)

    handle = find_embeddings(net).register_forward_hook(keep)
    try:
        # cuDNN computes no gradient of a recurrent net that isn't in training.
        with torch.backends.cudnn.flags(enabled=False):
            log_odds(net, batch).sum().backward()  # type: ignore[no-untyped-call]
    finally:
        handle.remove()
    net.zero_grad(set_to_none=True)
    gradient = kept[0].grad
    assert gradient is not None, "the embeddings are looked up once in a pass"
    return gradient


def find_embeddings(net: Net) -> nn.Embedding:
    """The table of words."""
    if isinstance(net, RecurrentClassifier):
        return net.reader.embeddings
    return net.encoder.embeddings.word
