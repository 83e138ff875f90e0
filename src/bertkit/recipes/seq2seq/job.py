"""What the training loop is handed for pairs of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import ResumeError
from bertkit.base.files import write_json
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.decoding.settings import DecodingSettings
from bertkit.generation.seq2seq_file import Seq2SeqSettingsFile, write_seq2seq_file
from bertkit.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.metrics.perplexity import find_perplexity
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.batching import plan_batches
from bertkit.recipes.seq2seq.examples import Data, SetCounts
from bertkit.recipes.seq2seq.kinds import KINDS, Kind
from bertkit.recipes.seq2seq.schedule import list_averaged, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.token_pairs import PairBatch, TokenPairs, batch_tensors
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Job, Machine, Watched
from bertkit.training.run import Run
from bertkit.training.step import evaluate_batches

TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}  # of an evaluation
GREEDY = DecodingSettings()


@dataclass(frozen=True)
class Seq2SeqContext:
    """Everything a run is made of.

    Attributes:
        model: to be trained; on its device.
        tokenizer: of both sides.
        saved: how texts are made of what it writes.
        data: the texts.
        train: pairs as token ids.
        dev: held-out pairs as token ids.
        counts: what was met in `train` and `dev`.
        machine: where it computes.
    """

    model: EncoderDecoderModel
    tokenizer: Tokenizer
    saved: Seq2SeqSettingsFile
    data: Data
    train: TokenPairs
    dev: TokenPairs
    counts: Mapping[str, SetCounts]
    machine: Machine

    @property
    def kind(self) -> Kind:
        """What it is trained for."""
        return KINDS[self.saved.kind]

    def save_tokenizer(self, folder: Path) -> dict[str, FileRecord]:
        """Write what belongs to the vocabulary, and how long sources are; other tools cut there."""
        return self.tokenizer.save(folder, max_length=self.saved.max_source_length)


@dataclass(frozen=True)
class PairScores:
    """Sums over the words of a batch."""

    losses: dict[str, Tensor]
    hits: dict[str, Tensor]


def build_job(materials: Seq2SeqContext, settings: Seq2SeqSettings) -> Job[PairBatch]:
    """What measures a run; what trains it has `with_averages` beside."""
    model = materials.model
    order = order_pairs(materials.train, settings)

    def batches_at(step: int) -> list[PairBatch]:
        numbers = order.examples(step)
        parts = np.array_split(numbers, min(settings.accumulate, len(numbers)))
        return [PairBatch.of(materials.train, part) for part in parts]

    def save_rest(folder: Path) -> dict[str, FileRecord]:
        return {**materials.save_tokenizer(folder), **write_seq2seq_file(folder, materials.saved)}

    def save_model(folder: Path) -> dict[str, FileRecord]:
        return {**model.save_pretrained(folder), **save_rest(folder)}

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, model.config.to_dict())
        return {CONFIG_FILE: config, **save_rest(folder)}

    return Job(
        model=model,
        batches_at=batches_at,
        score=partial(score, smoothing=settings.label_smoothing),
        evaluate=lambda: evaluate(materials, settings),
        count_operations=lambda batch: count_operations(model.config, batch),
        save_model=save_model,
        save_architecture=save_architecture,
        batch_tensors=batch_tensors,
        shares={"word_accuracy": "next word"},
        watched=watch(materials.kind, settings),
        example_names="pairs",
    )


def watch(kind: Kind, settings: Seq2SeqSettings) -> Watched:
    """By what the best weights are known.

    Short texts that are all wrong, and such without spaces, are equally bad to most metrics.
    """
    is_by_metric = settings.best_by == "metric"
    return Watched(
        kind.metric if is_by_metric else "loss",
        is_higher_better=is_by_metric,
        patience=settings.patience,
        is_tie_by_loss=True,
    )


def with_averages(job: Job[PairBatch], settings: Seq2SeqSettings, num_steps: int) -> Job[PairBatch]:
    """A job that makes and keeps the checkpoints that will be averaged.

    Args:
        job: for a run.
        settings: with a rhythm.
        num_steps: of the whole run.
    """
    return replace(job, needed_steps=partial(list_averaged, settings, num_steps))


def score(model: EncoderDecoderModel, batch: PairBatch, smoothing: float = 0.0) -> PairScores:
    """Sums of the losses of all words of a batch."""
    loss, num_hits = model.next_loss(batch.source, batch.target, batch.labels, smoothing)
    return PairScores({"word": loss}, {"word": num_hits})


def evaluate(materials: Seq2SeqContext, settings: Seq2SeqSettings) -> dict[str, float]:
    """Held-out loss without smoothing, and metrics of what is written greedily of some texts."""
    written = write_held_out(materials, GREEDY, settings.eval_pairs)
    return {**measure_loss(materials), **measure(materials, written)}


def measure_loss(materials: Seq2SeqContext) -> dict[str, float]:
    """Loss, accuracy and perplexity of the right words of all held-out pairs."""
    device = materials.machine.device
    budget = TOKENS_PER_BATCH[device.type]
    batches = [
        PairBatch.of(materials.dev, np.array(numbers))
        for numbers in plan_batches(materials.dev.lengths.tolist(), budget)
    ]
    metrics = evaluate_batches(materials.model, batches, score, device)
    return {**metrics, "word_perplexity": find_perplexity(metrics["word_loss"])}


def write_held_out(
    materials: Seq2SeqContext, decoding: DecodingSettings, num_pairs: int | None = None
) -> list[str]:
    """What the model writes of held-out texts: of the first ones, or of all."""
    rewriter = Seq2SeqGenerator(materials.model.eval(), materials.tokenizer, materials.saved)
    texts = materials.data.dev.sources[:num_pairs]
    return [answer.text for answer in rewriter.stream(texts, decoding)]


def measure(materials: Seq2SeqContext, written: Sequence[str]) -> dict[str, float]:
    """Metrics of texts that were written of the first held-out ones."""
    return materials.kind.load_measure()(written, materials.data.dev.targets[: len(written)])


def load_checkpoint(run: Run, step: int, materials: Seq2SeqContext) -> Seq2SeqContext:
    """The same with the weights of a run's checkpoint."""
    path = checkpoint_path(run.folder, step)
    if not path.exists():
        raise ResumeError(f"{path} is gone; remove {run.folder} to begin again")
    model = EncoderDecoderModel.from_pretrained(path)
    return replace(materials, model=model.to(materials.machine.device))


def count_operations(config: EncoderDecoderConfig, batch: PairBatch) -> float:
    """Floating-point operations of all matrix products in one training step."""
    read, written = batch.source.num_tokens, batch.target.num_tokens
    hidden, inner = config.encoder.hidden_size, config.encoder.intermediate_size
    block = 4 * hidden * hidden + 2 * hidden * inner
    encoder = read * block + 2 * hidden * _squares(batch.source.lengths, batch.source.lengths)
    inner = config.decoder.intermediate_size
    block = 6 * hidden * hidden + 2 * hidden * inner
    decoder = written * block + read * 2 * hidden * hidden
    decoder += 2 * hidden * _squares(batch.target.lengths, batch.target.lengths)
    decoder += 2 * hidden * _squares(batch.target.lengths, batch.source.lengths)
    head = written * hidden * (hidden + config.decoder.vocab_size)
    layers = config.encoder.num_hidden_layers * encoder
    layers += config.decoder.num_hidden_layers * decoder
    return 6.0 * (layers + head)


def _squares(ones: tuple[int, ...], others: tuple[int, ...]) -> int:
    """Pairs of tokens that look at each other."""
    return sum(one * other for one, other in zip(ones, others, strict=True))
