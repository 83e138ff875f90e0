"""Few labels: an encoder trained on pairs of texts that share a label, where that helps a head.

The pairs are sampled, so that their number doesn't grow with the square of the rows. Whether the
training helps is decided by cross-validation against a head on the encoder as it is.

Source: Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts", section 3.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from bertkit.base.errors import InputError
from bertkit.base.progress import announce, show_progress
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.finetune.job import FineTuningJob, sum_loss
from bertkit.recipes.solved_head import (
    FOLDS_FOR_ALL,
    SUMMARIES_FOLDER,
    Features,
    FrozenModel,
    HeadSolver,
    computed_features,
    deal_folds,
)
from bertkit.tasks.batch import Logits, pack_sequences
from bertkit.tasks.columns import name_labels
from bertkit.tasks.embed.losses import in_batch_loss
from bertkit.training.optimizer import build_optimizer, set_learning_rate
from bertkit.training.settings import LoopSettings

NUM_STEPS, NUM_PAIRS = 40, 16  # of each training, and of a step
LEARNING_RATE, WARMUP_STEPS = 1e-4, 4
TEMPERATURE = 0.3
LEAST_GAIN = 0.5  # standard errors
Numbers = Sequence[int]  # of examples
Predicted = dict[int, Logits]  # by the number of the example


def train_if_better(run: Path, job: FineTuningJob) -> bool:
    """Train the encoder on pairs of texts, unless a head without that is as good; tell whether.

    It is trained if that lowers the loss of held-out folds, by more than half the standard error.

    Raises:
        InputError: there are too many rows, or a label has one alone.
    """
    frozen, examples = job.frozen, job.data.train.examples
    if len(examples) > FOLDS_FOR_ALL:
        raise InputError(
            f"few_shot is for at most {FOLDS_FOR_ALL:,} rows, and there are {len(examples):,};"
            " leave it out"
        )
    counts = Counter(int(one.label_rows[0]) for one in frozen.examples)
    alone = [job.task.labels[label] for label, count in counts.items() if count == 1]
    if alone:
        raise InputError(
            f"few_shot needs at least two rows of each label, and {name_labels(alone)} has one; add"
            " rows, or leave it out"
        )
    start = {name: each.clone() for name, each in frozen.model.state_dict().items()}
    folds = deal_folds(examples, frozen.seed)
    before: Predicted = {}
    after: Predicted = {}
    for number, fold in enumerate(folds):
        kept = [each for other in folds if other is not fold for each in other]
        if kept:
            before |= predict_fold(run, frozen, kept, fold)
            train_on_pairs(frozen, kept, number)
            after |= predict_fold(run, frozen, kept, fold)
            frozen.model.load_state_dict(start)
    lost = [np.array(list_losses(job, predicted)) for predicted in (before, after)]
    mean, error = measure_gain(lost[0] - lost[1])
    is_better = mean > LEAST_GAIN * error
    announce(
        f"training the encoder on pairs of texts {'lowers' if mean >= 0 else 'raises'} the loss of"
        f" held-out rows by {abs(mean):.3f}"
        f" (standard error {error:.3f}, {len(examples):,} rows, {len(folds)} folds):"
        f" {'it is trained' if is_better else 'the head alone is solved'}"
    )
    if is_better:
        train_on_pairs(frozen, range(len(examples)), len(folds))
    return is_better


def measure_gain(gains: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and its standard error; 0 of none."""
    if len(gains) < 2:
        return 0.0, 0.0
    return float(gains.mean()), float(gains.std(ddof=1) / math.sqrt(len(gains)))


def list_losses(job: FineTuningJob, predicted: Predicted) -> list[float]:
    """Return the loss of each example, at the temperature that suits all of them best.

    Heads on an encoder that has learned the other rows are surer of themselves than they should be,
    which a temperature corrects in the end, too.
    """
    numbers = sorted(predicted)
    encoded = [job.train[number] for number in numbers]
    examples = [job.data.train.examples[number] for number in numbers]
    logits = [predicted[number] for number in numbers]
    temperature = job.task.fit_numbers(examples, encoded, logits).temperature if logits else 1.0
    return [
        sum_loss(job.task, [one], [found / np.float32(temperature)])[0]
        for one, found in zip(encoded, logits, strict=True)
    ]


def predict_fold(run: Path, frozen: FrozenModel, kept: Numbers, fold: Numbers) -> Predicted:
    """Return the logits of the examples of a fold, by a head that was solved on the others."""
    with computed_features(run / SUMMARIES_FOLDER, frozen) as features:
        own = Features(features.rows, [features.row_ranges[number] for number in kept])
        others = replace(frozen, examples=[frozen.examples[number] for number in kept])
        penalty = HeadSolver(others, own).choose_penalty()
        logits = HeadSolver(frozen, features, [kept, fold]).cross_validate(penalty)
    return {number: logits[number] for number in fold}


def train_on_pairs(frozen: FrozenModel, numbers: Numbers, stream: int) -> None:
    """Train the encoder so that texts of a label are closer to each other than to others.

    Args:
        numbers: of the examples to learn from.
        stream: makes the sampled pairs those of one training alone.
    """
    model, device = frozen.model, frozen.machine.device
    model.encoder.requires_grad_(requires_grad=True)
    settings = LoopSettings(learning_rate=LEARNING_RATE)
    optimizer = build_optimizer(model.encoder, settings)
    generator = np.random.default_rng((frozen.seed, stream))
    torch.manual_seed(int(generator.integers(2**31)))
    model.train()
    with show_progress("training on pairs", NUM_STEPS) as bar:
        for step in range(NUM_STEPS):
            chosen, labels = sample_pairs(frozen, numbers, generator)
            ids = pack_sequences([frozen.examples[each].sequences[0] for each in chosen])
            placed = PackedBatch.of(ids).to(device)
            with frozen.machine.mixed_precision():
                vectors = model.summarize(model.states(placed), placed).float()
            sizes, groups = [2] * NUM_PAIRS, torch.tensor(labels, device=device)
            loss = in_batch_loss(vectors, sizes, groups, TEMPERATURE).total / NUM_PAIRS
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.encoder.parameters(), settings.clip_norm)
            set_learning_rate(optimizer, find_rate(step))
            optimizer.step()
            bar.advance(1)
    model.encoder.requires_grad_(requires_grad=False)
    model.eval()


def find_rate(step: int) -> float:
    """Return the learning rate of a step: up, then down, both evenly."""
    return LEARNING_RATE * min((step + 1) / WARMUP_STEPS, 1 - step / NUM_STEPS)


def sample_pairs(
    frozen: FrozenModel, numbers: Numbers, generator: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return the numbers of pairs of examples with the same label, and their labels.

    Labels take turns, so that each has as many pairs; of a label's only example both are that one.
    """
    of_label: defaultdict[int, list[int]] = defaultdict(list)
    for number in numbers:
        of_label[int(frozen.examples[number].label_rows[0])].append(number)
    order = generator.permutation(sorted(of_label)).tolist()
    chosen, labels = list[int](), list[int]()
    for place in range(NUM_PAIRS):
        label = order[place % len(order)]
        found = of_label[label]
        chosen += generator.choice(found, 2, replace=len(found) < 2).tolist()
        labels += [label] * 2
    return chosen, labels
