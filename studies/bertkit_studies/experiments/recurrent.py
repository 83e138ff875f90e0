"""Study: attention against recurrent nets on long-distance dependencies."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from bertkit.base.errors import pluralize
from bertkit.training.device import choose_device, choose_precision
from bertkit.training.job import Machine
from bertkit.training.settings import LoopSettings
from bertkit_studies.baselines.agreement import list_distances, training_batch
from bertkit_studies.baselines.agreement_nets import (
    BATCH_SIZE,
    Kind,
    Net,
    Sizes,
    build_net,
    count_parameters,
    measure_accuracy,
    measure_gradients,
    train,
)
from bertkit_studies.settings import RecurrentSettings
from bertkit_studies.study import LAST, Arm, Cell, Claim, Decision, Figure, Measure, Side, Study

DISTANCE = "words between cue and answer"
TOKENS = "tokens of training"
PROBE_STEPS = 10  # steps that measure a net's speed


@dataclass(frozen=True)
class RecurrentScale:
    """Sizes and budget of the study.

    Attributes:
        sizes: sizes of the nets.
        tokens: training budget of each net.
        learning_rate: peak learning rate.
    """

    sizes: Sizes
    tokens: int
    learning_rate: float = 2e-3


SCALES: Mapping[str, RecurrentScale] = {
    "small": RecurrentScale(Sizes(width=64, longest=128), tokens=3_000_000),
    "large": RecurrentScale(Sizes(width=128, longest=512), tokens=60_000_000, learning_rate=1e-3),
}

# Gradients of the log-odds are relative to the shortest distance, so that nets are comparable.
POWERS = "log10, relative to the shortest distance"
ACCURACY = Measure(
    "accuracy",
    "Agreement over distance",
    "accuracy; 1 in 8 by chance",
    is_percent=True,
    across=DISTANCE,
    is_logarithmic=True,
)
GRADIENT = Measure(
    "gradient",
    "Gradient that reaches the cue, after training",
    POWERS,
    across=DISTANCE,
    is_logarithmic=True,
)
FIRST_GRADIENT = Measure(
    "first_gradient",
    "Gradient that reaches the cue, before training",
    POWERS,
    across=DISTANCE,
    is_logarithmic=True,
)
SPEED = Measure("tokens_per_second", "Training tokens per second", "on this machine", is_speed=True)
PARAMETERS = Measure("parameters", "Parameters", "of the whole net", is_higher_better=False)

PATHS = "Vaswani et al. 2017, section 4, table 1"


@final
class Recurrent(Study[RecurrentSettings]):
    """Compare two Transformer blocks, causal and bidirectional, with LSTM and GRU."""

    name = "recurrent"
    question = "Does attention carry information further than recurrent nets?"
    finding = (
        "Vaswani et al. 2017 (section 4, table 1) argue that words n positions apart are one step"
        " apart for attention and n sequential steps for a recurrent net. Hochreiter and"
        " Schmidhuber 1997 show that gradients of plain recurrent nets vanish over such"
        " distances, and designed the LSTM to prevent it. Jozefowicz et al. 2015"
        " (abstract) found that its forget gates should start with a bias of 1, as they do here."
    )
    budget = (
        "All nets have about the same number of parameters, not counting position embeddings, and"
        " are trained on the same number of tokens of an artificial language."
    )
    caution = (
        "The language is artificial: one marked cue among random words. It shows what a net can"
        " carry over a distance, not what real text requires. All nets have the same learning"
        " rate, which wasn't tuned for any of them. Tokens per second depend on the machine; a"
        " recurrent net computes each step for all texts of a batch,"
        f" {BATCH_SIZE} of them, at once."
    )

    precision = "fp32"
    arms = (
        Arm("attention", "two Transformer layers, causal"),
        Arm("attention-both-ways", "two Transformer layers, bidirectional"),
        Arm("lstm", "two layers of LSTM, left to right"),
        Arm("gru", "two layers of GRU, left to right"),
    )
    measures = (ACCURACY, GRADIENT, FIRST_GRADIENT, SPEED, PARAMETERS)
    claims = (
        Claim(
            "At the longest distance, attention is more accurate than an LSTM",
            PATHS,
            "accuracy",
            Side("attention", LAST),
            Side("lstm", LAST),
        ),
        Claim(
            "At the longest distance, attention is more accurate than a GRU",
            PATHS,
            "accuracy",
            Side("attention", LAST),
            Side("gru", LAST),
        ),
        Claim(
            "Before training, a larger gradient reaches a distant cue through attention",
            PATHS,
            "first_gradient",
            Side("attention", LAST),
            Side("lstm", LAST),
        ),
        Claim(
            "Attention trains faster than an LSTM",
            PATHS,
            "tokens_per_second",
            Side("attention"),
            Side("lstm"),
        ),
    )

    @property
    def scale(self) -> RecurrentScale:
        """The scale for the chosen size."""
        return SCALES[self.settings.size]

    @property
    def sizes(self) -> Sizes:
        """Sizes of the nets, with the requested longest distance."""
        sizes = self.scale.sizes
        return Sizes(sizes.width, self.settings.longest or sizes.longest)

    def identify_data(self) -> str:
        """Return the longest distance; the synthetic data don't differ otherwise."""
        return f"agreement over up to {pluralize(self.sizes.longest, 'word')}"

    def decide(self) -> Decision:
        """Convert the budget to tokens, by the slowest net."""
        speeds = {arm.name: self._measure_speed(arm.name) for arm in self.arms}
        tokens = self.settings.tokens or self.scale.tokens
        if self.settings.minutes is not None:
            tokens = max(1, int(60 * self.settings.minutes * min(speeds.values())))
        return Decision({TOKENS: tokens}, {name: tokens / speed for name, speed in speeds.items()})

    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Train and measure a net; only the figures are kept."""
        del folder
        machine = self._machine()
        net = self._build(cell.arm, cell.seed).to(machine.device)
        distances = list_distances(self.sizes.longest)
        before = measure_gradients(net, distances, machine.device)
        tokens = int(decision.values[TOKENS])
        settings = self._choose(cell.seed)
        speed = train(net, tokens, self.sizes.longest, settings, machine)
        found = {
            "accuracy": measure_accuracy(net, distances, machine.device),
            "gradient": measure_gradients(net, distances, machine.device),
            "first_gradient": before,
        }
        figures = [
            Figure(name, value, float(distance))
            for name, values in found.items()
            for distance, value in zip(distances, values, strict=True)
        ]
        return [
            *figures,
            Figure("tokens_per_second", speed),
            Figure("parameters", float(count_parameters(net))),
        ]

    def _measure_speed(self, arm: str) -> float:
        machine = self._machine()
        net, longest = self._build(arm, 0).to(machine.device), self.sizes.longest
        steps = (training_batch(0, step, BATCH_SIZE, longest) for step in range(PROBE_STEPS))
        num_tokens = sum(step.num_tokens for step in steps)
        return train(net, num_tokens, longest, self._choose(0), machine)

    def _build(self, arm: str, seed: int) -> Net:
        torch.manual_seed(seed)
        kind: Kind = arm  # type: ignore[assignment]
        return build_net(kind, self.sizes)

    def _choose(self, seed: int) -> LoopSettings:
        return LoopSettings(seed=seed, learning_rate=self.scale.learning_rate, weight_decay=0.0)

    def _machine(self) -> Machine:
        device = choose_device(self.settings.device)
        precision = choose_precision(self.precision, device, "training")
        return Machine(device, precision, peak_operations=1.0)
