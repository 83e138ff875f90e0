"""Train an encoder-decoder on pairs of texts: read, train, keep the best, write its folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.progress import announce, show_progress
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.settings import Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.decoders.metrics import WRITING_METRICS
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.card import SavedSeq2Seq, Seq2SeqFacts, build_card, build_page
from bertkit.decoders.seq2seq.evaluation import (
    CheckpointChoice,
    Seq2SeqEvaluation,
    choose_weights,
    estimate_evaluation_seconds,
    evaluate_model,
)
from bertkit.decoders.seq2seq.examples import (
    PairData,
    PairFiles,
    warn_of_best_step,
    warn_of_letters,
)
from bertkit.decoders.seq2seq.job import InitialModel, Seq2SeqJob, count_epochs, decide_steps
from bertkit.decoders.seq2seq.pairs import Pair
from bertkit.decoders.seq2seq.settings import DEFAULT_MINUTES, KINDS, Seq2SeqSettings
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.models.open_model import OpenModel
from bertkit.recipes.model_card import write_descriptions
from bertkit.reports.text import make_legible
from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.training import build_vocabulary, count_words
from bertkit.training.history import TrainingHistory
from bertkit.training.job import Machine
from bertkit.training.lifecycle import ModelRecipe, train
from bertkit.training.log import read_log
from bertkit.training.run import Run, RunRecord, RunState

DEFAULT_LAYERS, DEFAULT_HIDDEN_SIZE = 3, 256
HEAD_FEATURES = 64
POSITION_STEP = 64  # the number of positions of a new model is a multiple of this
# A new vocabulary may have LETTERS distinct characters, or one per ENTRIES_A_LETTER entries if that
# is more. Languages with thousands of characters therefore need a larger vocabulary.
LETTERS, ENTRIES_A_LETTER = 1000, 4


def begin(data: PairData, settings: Seq2SeqSettings) -> InitialModel:
    """Build the initial model and its tokenizer."""
    torch.manual_seed(settings.seed)
    if settings.model is not None:
        return begin_from(settings.model, settings)
    texts = (data.train.sources, data.train.targets)
    tokenizer = train_tokenizer(texts, settings)
    config = join_halves(choose_sizes(settings, tokenizer), tokenizer, settings)
    return InitialModel(tokenizer, EncoderDecoderModel(config), {})


def train_tokenizer(texts: Sequence[Sequence[str]], settings: Seq2SeqSettings) -> Tokenizer:
    """Train a tokenizer on all texts together."""
    wanted = VocabularySettings(
        vocab_size=settings.vocab_size,
        alphabet_limit=max(LETTERS, settings.vocab_size // ENTRIES_A_LETTER),
        lowercase=settings.lowercase,
        strip_accents=settings.lowercase,
    )
    counts = count_words(chain.from_iterable(texts), wanted)
    with show_progress("learning the vocabulary", settings.vocab_size) as bar:
        vocabulary = build_vocabulary(counts, wanted, bar.advance)
    return Tokenizer(vocabulary, wanted.tokenizer_settings())


def choose_hidden_size(settings: Seq2SeqSettings) -> int:
    """Return the hidden size of encoder and decoder of a new model."""
    named = {} if settings.size is None else PRESETS[settings.size]
    return settings.hidden_size or named.get("hidden_size", DEFAULT_HIDDEN_SIZE)


def choose_sizes(settings: Seq2SeqSettings, tokenizer: Tokenizer) -> BertConfig:
    """Build the config of encoder and decoder for a new model."""
    named = {} if settings.size is None else PRESETS[settings.size]
    hidden = choose_hidden_size(settings)
    is_named = "hidden_size" in named and settings.hidden_size is None
    inner = named["intermediate_size"] if is_named else 2 * hidden
    longest = max(settings.max_source_length, settings.max_target_length)
    return BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=hidden,
        num_hidden_layers=settings.layers or named.get("num_hidden_layers", DEFAULT_LAYERS),
        num_attention_heads=settings.heads or max(1, hidden // HEAD_FEATURES),
        intermediate_size=settings.feed_forward or inner,
        max_position_embeddings=POSITION_STEP * -(-longest // POSITION_STEP),
        initializer_range=hidden**-0.5,
        **dropout_rates(settings),
    )


def dropout_rates(settings: Seq2SeqSettings) -> dict[str, Any]:
    """Return the config keys for dropout."""
    return {
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
    }


def join_halves(
    config: BertConfig, tokenizer: Tokenizer, settings: Seq2SeqSettings
) -> EncoderDecoderConfig:
    """Build the config of an encoder and a decoder of equal size."""
    return EncoderDecoderConfig.of(
        config,
        start_id=tokenizer.cls_id,
        end_id=tokenizer.sep_id,
        shares_embeddings=settings.share_embeddings,
        normalizes_first=settings.norm_first,
        positions=settings.positions,
    )


def begin_from(name: str, settings: Seq2SeqSettings) -> InitialModel:
    """Warm-start encoder and decoder from an encoder; the cross-attention gets random weights."""
    # Source: Rothe et al. 2020, "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks".
    opened = OpenModel.open(name, revision=settings.revision).change(**dropout_rates(settings))
    config = opened.config
    if config.is_decoder:
        raise CheckpointError(
            f"{opened.folder} reads left to right (is_decoder), but both halves start from a"
            f" bidirectional encoder; give one as --model, or leave it out to train from scratch"
        )
    for flag in ("max_source_length", "max_target_length"):
        if getattr(settings, flag) > config.max_position_embeddings:
            raise InputError(
                f"{flag} ({getattr(settings, flag)}) is more than the encoder's"
                f" max_position_embeddings ({config.max_position_embeddings}); ask for less"
            )
    tokenizer = opened.tokenizer
    parent = BertForMaskedLM.from_pretrained(opened, new_heads=True)
    if parent.new_heads:
        announce(f"new weights for {', '.join(parent.new_heads)}, which {opened.path} doesn't have")
    model = EncoderDecoderModel(join_halves(parent.config, tokenizer, settings))
    model.warm_start(parent)
    return InitialModel(tokenizer, model, opened.identify())


@dataclass(frozen=True)
class Seq2SeqResult:
    """The result of a run."""

    output: Path
    saved: SavedSeq2Seq
    pairs: Sequence[Pair] = ()  # of the training rows, in their order


def describe_result(
    choice: CheckpointChoice, final: Seq2SeqEvaluation, state: RunState, history: TrainingHistory
) -> SavedSeq2Seq:
    """Build the content of `metrics.json`."""
    job = choice.job
    metric = job.writing_metrics.best_by
    return SavedSeq2Seq(
        kind=job.saved.kind,
        metric=metric,
        metrics=final.metrics,
        signatures=final.signatures,
        baseline=final.baseline,
        warnings=(
            *choice.warnings,
            *final.warnings,
            *warn_of_best_step(metric, history.held_out[metric]),
        ),
        num_steps=state.step,
        num_epochs=count_epochs(job.order, state.step),
        best_step=choice.best_step,
        averaged_steps=choice.averaged_steps,
        has_ended_early=state.has_ended_early,
        train=job.data.train.counts,
        dev=job.data.dev.counts,
    )


class Seq2SeqTraining(ModelRecipe[Seq2SeqJob, Seq2SeqResult]):
    """Training an encoder-decoder on pairs of texts."""

    saved_kind, result_kind = SavedSeq2Seq, Seq2SeqResult
    settings: Seq2SeqSettings

    def __init__(self, files: PairFiles, settings: Seq2SeqSettings) -> None:
        self.settings, self.inputs = settings, files.paths
        self.overwrite = settings.overwrite
        self.default_minutes = None if settings.epochs else DEFAULT_MINUTES
        self.data = PairData(files, settings)

    def describe(self, run: Run) -> RunRecord:
        """Return settings, with the budget, and data."""
        WRITING_METRICS[self.settings.kind].measure([""], [""])  # before hours of training
        return RunRecord(
            settings={"kind": self.settings.kind, **self.settings.dump_with_fixed_budget()},
            data_fingerprint=self.data.fingerprint,
            model={},
        )

    def find_hidden_size(self) -> int:
        """Return that of the encoder to start from, or of a new model."""
        if self.settings.model is None:
            return choose_hidden_size(self.settings)
        opened = OpenModel.open(self.settings.model, revision=self.settings.revision)
        return opened.config.hidden_size

    def open(self, checkpoint: Path | None, machine: Machine) -> Seq2SeqJob:
        """Read data and model; announce the counts of the pairs and their problems."""
        settings, data = self.settings, self.data
        if checkpoint is None:
            initial = begin(data, settings)
            saved = Seq2SeqSettingsFile(
                kind=settings.kind,
                decoding=KINDS[settings.kind].decoding,
                spacing=Spacing.fit(data.train.targets).to_dict(),
                max_source_length=settings.max_source_length,
                max_target_length=settings.max_target_length,
            )
        else:
            opened = OpenModel.open(checkpoint)
            model = EncoderDecoderModel.from_pretrained(opened)
            initial = InitialModel(opened.tokenizer, model, {})
            saved = read_seq2seq_file(checkpoint)
        job = Seq2SeqJob(data, initial, saved, machine, settings)
        tell_data(job)
        return job

    def decide_steps(self, job: Seq2SeqJob, before: RunRecord | None, wanted: RunRecord) -> int:
        """Return the number of steps of the budget."""
        known = before.num_steps if before else 0
        return known or decide_steps(job, partial(estimate_evaluation_seconds, job))

    def plan(self, job: Seq2SeqJob, run: Run, state: RunState, num_steps: int) -> RunState:
        """Decide when the run evaluates and what it averages."""
        job.schedule(run.read_plans().get(0, num_steps))
        return state

    def write_model(self, job: Seq2SeqJob, run: Run, state: RunState) -> SavedSeq2Seq:
        """Choose the weights, evaluate them, and write model, card and report."""
        choice, output = choose_weights(job, run, state), run.folder.parent
        final = evaluate_model(choice.job)
        history = TrainingHistory.from_rows(read_log(run.log_path))
        saved = describe_result(choice, final, state, history)
        record = run.read_record()
        assert record is not None, "a run that is finished was begun"
        files = choice.job.save_model(output)
        saved = saved.model_copy(
            update={"files": {name: each.sha256 for name, each in files.items()}}
        )
        facts = Seq2SeqFacts(output.resolve().name, record, saved, choice.job.model.config)
        page = build_page(facts, history, job.data.dev.examples, final.answers)
        write_descriptions(output, page, build_card(facts))
        saved.write(output)
        return saved


def train_seq2seq(files: PairFiles, output: Path, settings: Seq2SeqSettings) -> Seq2SeqResult:
    """Train a model, or resume the run in `output`, as `train`."""
    files.check()
    recipe = Seq2SeqTraining(files, settings)
    result = train(recipe, output)
    return replace(result, pairs=recipe.data.sets[0].examples)


def tell_data(job: Seq2SeqJob) -> None:
    """Announce the counts of the pairs and their problems, and the sizes of the model."""
    for labeled in (job.data.train, job.data.dev):
        for line in labeled.counts.describe():
            announce(make_legible(line))
    for line in warn_of_letters(job.tokenizer.settings, job.data.dev.targets):
        announce(line)
    number = sum(parameter.numel() for parameter in job.model.parameters())
    announce(f"{number:,} weights, {job.tokenizer.vocab_size:,} entries of the vocabulary")
