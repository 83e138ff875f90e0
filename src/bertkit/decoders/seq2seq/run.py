"""Train an encoder-decoder on pairs of texts: read, train, keep the best, write its folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.json_files import read_json
from bertkit.base.progress import announce, show_progress
from bertkit.decoders.config import EncoderDecoderConfig, check_half
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.settings import Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.decoders.metrics import WRITING_METRICS
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.card import (
    SavedSeq2Seq,
    Seq2SeqFacts,
    build_seq2seq_card,
    build_seq2seq_page,
)
from bertkit.decoders.seq2seq.evaluation import (
    CheckpointChoice,
    Seq2SeqEvaluation,
    choose_weights,
    estimate_evaluation_seconds,
    evaluate_generation,
)
from bertkit.decoders.seq2seq.examples import (
    PairData,
    PairFiles,
    warn_of_best_step,
    warn_of_letters,
)
from bertkit.decoders.seq2seq.job import InitialModel, Seq2SeqJob, convert_budget, count_epochs
from bertkit.decoders.seq2seq.pairs import Pair
from bertkit.decoders.seq2seq.settings import DEFAULT_MINUTES, KINDS, Seq2SeqSettings
from bertkit.models.bert.config import BertConfig, find_sizes
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
from bertkit.training.record import RunRecord, RunState
from bertkit.training.run import Run

DEFAULT_SIZES = {
    "num_hidden_layers": 3,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}
JOINED = {"shares_embeddings": True, "normalizes_first": False, "positions": "learned"}
WARM_ATTENTION_DROPOUT = 0.1
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
    return InitialModel(tokenizer, EncoderDecoderModel(build_config(settings, tokenizer)), {})


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


def read_sizes(settings: Seq2SeqSettings) -> dict[str, Any]:
    """Return the sizes of a new model, and how its halves are joined, under the keys of configs."""
    if settings.size is None:
        return {**JOINED, **DEFAULT_SIZES}
    if not settings.size.endswith(".json"):
        return {**JOINED, **find_sizes(settings.size)}
    content = read_json(Path(settings.size), limit_bytes=1 << 20)
    if not isinstance(content, dict):
        raise InputError(
            f"{settings.size} holds a {type(content).__name__}; expected a config's object"
        )
    check_half(content, settings.size)
    return {**JOINED, **content}


def build_config(settings: Seq2SeqSettings, tokenizer: Tokenizer) -> EncoderDecoderConfig:
    """Build the config of a new model, whose halves are of equal size."""
    sizes = read_sizes(settings)
    joined = {name: sizes.pop(name) for name in JOINED}
    longest = max(settings.max_length, settings.max_tokens)
    values = {
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": POSITION_STEP * -(-longest // POSITION_STEP),
        **sizes,
        "vocab_size": tokenizer.vocab_size,
        "hidden_dropout_prob": settings.dropout,
    }
    config = BertConfig.from_dict(values, settings.size or "the default size")
    check_lengths(config, settings)
    if "initializer_range" not in sizes:
        config = config.model_copy(update={"initializer_range": config.hidden_size**-0.5})
    start_id, end_id = tokenizer.cls_id, tokenizer.sep_id
    return EncoderDecoderConfig.of(config, start_id=start_id, end_id=end_id, **joined)


def check_lengths(config: BertConfig, settings: Seq2SeqSettings) -> None:
    """Raise `InputError` for texts that are longer than a model takes."""
    for name in ("max_length", "max_tokens"):
        if getattr(settings, name) > config.max_position_embeddings:
            raise InputError(
                f"{name} ({getattr(settings, name)}) is more than the model's"
                f" max_position_embeddings ({config.max_position_embeddings}); ask for less"
            )


def begin_from(name: str, settings: Seq2SeqSettings) -> InitialModel:
    """Warm-start encoder and decoder from an encoder; the cross-attention gets random weights."""
    # Source: Rothe et al. 2020, "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks".
    rates = {
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": WARM_ATTENTION_DROPOUT,
    }
    opened = OpenModel.open(name, revision=settings.revision).change(**rates)
    check_half(opened.checkpoint.config, opened.folder)
    config = opened.config
    if config.is_decoder:
        raise CheckpointError(
            f"{opened.folder} reads left to right (is_decoder), but both halves start from a"
            f" bidirectional encoder; give one as --model, or leave it out to train from scratch"
        )
    check_lengths(config, settings)
    tokenizer = opened.tokenizer
    parent = BertForMaskedLM.from_pretrained(opened, new_heads=True)
    if parent.new_heads:
        announce(f"new weights for {', '.join(parent.new_heads)}, which {opened.path} doesn't have")
    start_id, end_id = tokenizer.cls_id, tokenizer.sep_id
    joined = EncoderDecoderConfig.of(parent.config, start_id=start_id, end_id=end_id, **JOINED)
    model = EncoderDecoderModel(joined)
    model.warm_start(parent)
    return InitialModel(tokenizer, model, opened.identify())


@dataclass(frozen=True)
class Seq2SeqResult:
    """The result of a run."""

    output: Path
    saved: SavedSeq2Seq
    pairs: Sequence[Pair] = ()  # of the training rows, in their order


def build_seq2seq_record(
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
        values = self.settings.dump_with_fixed_budget()
        del values["size"]  # the model has it
        return RunRecord(
            settings={"kind": self.settings.kind, **values},
            data_fingerprint=self.data.fingerprint,
            model=self._describe_model(run),
        )

    def _describe_model(self, run: Run) -> dict[str, Any]:
        """Return the config of a new model that was begun, with the sizes that are asked for."""
        before = run.read_record()
        if before is None or not before.model or self.settings.model is not None:
            return {}
        sizes = read_sizes(self.settings)
        joined = {name: sizes.pop(name) for name in JOINED}
        sizes["hidden_dropout_prob"] = self.settings.dropout
        kept = {"vocab_size": before.model["encoder"]["vocab_size"]}
        halves = {half: {**before.model[half], **sizes, **kept} for half in ("encoder", "decoder")}
        return {**before.model, **joined, **halves}

    def find_hidden_size(self) -> int:
        """Return that of the encoder to start from, or of a new model."""
        if self.settings.model is None:
            return int(read_sizes(self.settings)["hidden_size"])
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
                max_source_length=settings.max_length,
                max_target_length=settings.max_tokens,
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
        return known or convert_budget(job, partial(estimate_evaluation_seconds, job))

    def plan(self, job: Seq2SeqJob, run: Run, state: RunState, num_steps: int) -> RunState:
        """Decide when the run evaluates and what it averages."""
        job.schedule(run.read_plans().get(0, num_steps))
        return state

    def write_model(self, job: Seq2SeqJob, run: Run, state: RunState) -> SavedSeq2Seq:
        """Choose the weights, evaluate them, and write model, card and report."""
        choice, output = choose_weights(job, run, state), run.folder.parent
        final = evaluate_generation(choice.job)
        history = TrainingHistory.from_rows(read_log(run.log_path))
        saved = build_seq2seq_record(choice, final, state, history)
        record = run.read_record()
        assert record is not None, "a run that is finished was begun"
        files = choice.job.save_model(output)
        saved = saved.model_copy(
            update={"files": {name: each.sha256 for name, each in files.items()}}
        )
        facts = Seq2SeqFacts(output.resolve().name, record, saved, choice.job.model.config)
        page = build_seq2seq_page(facts, history, job.data.dev.examples, final.answers)
        write_descriptions(output, page, build_seq2seq_card(facts))
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
