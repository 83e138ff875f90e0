"""Train a recurrent language model on the examples of `pretrain --objective causal`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.data.order import PlannedExample
from bertkit.data.shards import Shard, ShardSet
from bertkit.decoders.causal_objective import CausalObjective
from bertkit.tasks.objectives.objective import Examples, WordBatch
from bertkit.training.job import Scores
from bertkit_studies.baselines.plan import BaselinePlan
from bertkit_studies.baselines.run import RecurrentResult, train
from bertkit_studies.baselines.settings import LanguageModelSettings
from bertkit_studies.baselines.shard_batches import ShardBatches
from bertkit_studies.recurrent.config import LanguageModelConfig
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel

NEXT, PREVIOUS = "clm", "previous"  # losses; the objective `causal` uses the first name too


@dataclass(frozen=True)
class NeighborBatch(WordBatch):
    """Sequences whose tokens predict the next token, and optionally the previous one.

    Attributes:
        is_bidirectional: whether previous tokens are predicted too, as many as next tokens.
    """

    word_loss = NEXT
    is_bidirectional: bool

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets of each loss."""
        names = (NEXT, PREVIOUS) if self.is_bidirectional else (NEXT,)
        return dict.fromkeys(names, len(self.labels))


@dataclass(frozen=True)
class NeighborWords:
    """Builds batches from the examples of the causal objective."""

    causal: CausalObjective
    is_bidirectional: bool

    def plan(self, epoch: int, shard: int) -> Examples:
        """Return the examples that the causal objective plans."""
        return self.causal.plan(epoch, shard)

    def batch(self, examples: Sequence[PlannedExample]) -> NeighborBatch:
        """Pack examples into a batch, with the next tokens as labels."""
        found = self.causal.batch(examples)
        return NeighborBatch(
            found.packed,
            found.positions,
            found.labels,
            found.keys,
            is_bidirectional=self.is_bidirectional,
        )


def train_language_model(
    data: Path, output: Path, settings: LanguageModelSettings
) -> RecurrentResult:
    """Train a language model on shards; raises what `run.train` raises.

    Args:
        data: a folder that `prepare` wrote.
        output: the run's folder.
        settings: model and training settings.
    """
    return train(lambda: plan_language_model(data, settings), output, settings, [data])


def plan_language_model(data: Path, settings: LanguageModelSettings) -> BaselinePlan:
    """Assemble data, net and losses of a run."""
    shards = ShardSet.open(data)
    tokenizer = shards.load_tokenizer()
    config = LanguageModelConfig(
        vocab_size=tokenizer.vocab_size,
        **settings.model_dump(include=set(LanguageModelConfig.model_fields)),
    )

    def build(parts: Sequence[Shard], seed: int) -> NeighborWords:
        causal = CausalObjective(
            shards=parts,
            seed=seed,
            max_length=settings.max_length,
            short_rate=settings.short_rate,
            template=tokenizer.template,
        )
        return NeighborWords(causal, settings.is_bidirectional)

    batches = ShardBatches(shards, build, settings.seed)
    return BaselinePlan(
        config=config,
        begin=lambda: RecurrentLanguageModel(config),
        load=RecurrentLanguageModel.from_pretrained,
        tokenizer=tokenizer,
        data_fingerprint=shards.fingerprint,
        examples_at=lambda step: range(
            step * settings.batch_size, (step + 1) * settings.batch_size
        ),
        collate=batches.training(),
        num_micro_batches=settings.accumulate,
        held_out=batches.held_out(settings.eval_examples),
        score=score,
        judge=score,
        count_operations=count_operations,
        progress_metrics={f"{NEXT}_accuracy": "next-word acc."},
    )


def score(model: RecurrentLanguageModel, batch: NeighborBatch) -> Scores:
    """Return loss and correct predictions of each direction."""
    found = {NEXT: model.next_loss(batch.packed, batch.positions, batch.labels)}
    if batch.is_bidirectional:
        words = batch.packed.input_ids.index_select(0, batch.positions)
        found[PREVIOUS] = model.previous_loss(batch.packed, batch.positions + 1, words)
    return Scores(
        losses={name: loss for name, (loss, _) in found.items()},
        correct={name: num_correct for name, (_, num_correct) in found.items()},
    )


def count_operations(model: RecurrentLanguageModel, batch: NeighborBatch) -> float:
    """Return the floating-point operations of a training step on a batch."""
    return model.count_operations(batch.packed, len(batch.labels))
