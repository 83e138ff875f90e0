"""Train an encoder-decoder on pairs of texts: read, train, keep the best, write its folder."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.base.progress import announce
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.generation.seq2seq_file import Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.recipes.seq2seq.evaluation import estimate_evaluation_seconds
from bertkit.recipes.seq2seq.examples import (
    Data,
    Pairs,
    check_files,
    describe_set,
    encode_held_out,
    encode_training,
    identify,
    read_data,
)
from bertkit.recipes.seq2seq.facts import SavedResult
from bertkit.recipes.seq2seq.initial_model import InitialModel, begin
from bertkit.recipes.seq2seq.job import (
    Seq2SeqContext,
    build_job,
    with_averages,
)
from bertkit.recipes.seq2seq.kinds import KINDS
from bertkit.recipes.seq2seq.result import Seq2SeqResult, finish
from bertkit.recipes.seq2seq.schedule import choose_schedule, decide_steps, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.warnings import warn_of_letters
from bertkit.reports.text import make_legible
from bertkit.tokenization.detokenization import Spacing
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.finished import read_finished
from bertkit.training.job import Machine
from bertkit.training.lifecycle import (
    complete_record,
    open_run,
    start_or_resume,
    train_to_end,
)
from bertkit.training.run import Run, RunRecord, keep_precision, recognize_source


@dataclass(frozen=True)
class PairFiles:
    """What is learned from.

    Attributes:
        train: one file with both sides, or that of what is read and that of what is written; or
            rows from Python.
        dev: the same of held-out pairs; None holds out a share of the training pairs.
    """

    train: Pairs
    dev: Pairs | None = None

    @property
    def paths(self) -> list[Path]:
        """All files."""
        given = (self.train, self.dev)
        return [path for each in given if isinstance(each, tuple) for path in each]

    def check(self) -> None:
        """See that all names are those of files; errors as in `check_files`."""
        for flag, given in (("train", self.train), ("dev", self.dev)):
            if isinstance(given, tuple):
                check_files(flag, given)


def train_seq2seq(files: PairFiles, output: Path, settings: Seq2SeqSettings) -> Seq2SeqResult:
    """Train, or go on with what was begun in `output`; a finished model is only reported.

    Args:
        files: pairs of texts.
        output: the folder of the model; its `run/` has log and checkpoints.
        settings: of translation or summarization.

    Raises:
        ResumeError: `output` holds a run with other settings or data, or something else, or another
            process trains in it.
        SettingsError: `output` mixes with the data.
        InputError: the data can't be learned from, or doesn't fit the model.
        CheckpointError: the encoder's config or tensors don't fit.
        MissingFileError, DamagedFileError: data, encoder or run lack a file or have a damaged one.
        MissingExtraError: what computes the metrics isn't installed.
        StorageError: writing failed.
        StoppedError: a signal came; the same call goes on.
        NonFiniteError: the loss went to infinity and stayed there.
        BertkitError: the encoder can't be had, as in `resolve_model` and `open_checkpoint`.
    """
    run = Run(output / RUN_FOLDER)
    files.check()
    with open_run(run, output, inputs=files.paths):
        KINDS[settings.kind].load_measure()([""], [""])  # before hours of training
        wanted = recognize_source(run.read_record(), describe_run(files, settings), "model")
        if (saved := read_finished(run, wanted, SavedResult)) is not None:
            return Seq2SeqResult(output, saved)
        context, source = gather(files, settings, run)
        config = context.model.config.to_dict()
        wanted = complete_record(wanted, config, context.machine, source)
        return _train(run, context, wanted, settings)


def describe_run(files: PairFiles, settings: Seq2SeqSettings) -> RunRecord:
    """What decides a run, as far as it is known without reading pairs and model.

    The budget is one of the settings that may not change: most schedules follow from its length.
    """
    values = settings.dump_with_fixed_budget()
    if settings.model is not None:  # a shell adds a / to a folder's name or doesn't
        values["model"] = str(Path(settings.model))
    sets = (files.train, files.dev)
    hashes = [None if each is None else identify(each, settings) for each in sets]
    return RunRecord(
        settings={"kind": settings.kind, **values},
        data_fingerprint=json.dumps(hashes),
        model={},
        num_steps=0,
        versions={},
    )


def gather(
    files: PairFiles, settings: Seq2SeqSettings, run: Run | None = None
) -> tuple[Seq2SeqContext, dict[str, Any]]:
    """Read data and model, and announce their counts and problems.

    Args:
        files: pairs of texts.
        settings: of translation or summarization.
        run: if it has a checkpoint, vocabulary and model are read from there.

    Returns:
        The context, and the identity of the encoder that the model starts from, for the record.
    """
    machine = Machine.choose(keep_precision(settings, run))
    data = read_data(files.train, files.dev, settings)
    checkpoint = None if run is None else run.newest_checkpoint()
    if checkpoint is not None:
        model = EncoderDecoderModel.from_pretrained(checkpoint)
        initial = InitialModel(Tokenizer.load(checkpoint), model, {})
        saved = read_seq2seq_file(checkpoint)
    else:
        initial = begin(data, settings)
        saved = describe_writing(data, settings)
    return assemble(data, initial, saved, machine, settings), initial.facts


def describe_writing(data: Data, settings: Seq2SeqSettings) -> Seq2SeqSettingsFile:
    """How texts will be made of what the model writes."""
    return Seq2SeqSettingsFile(
        kind=settings.kind,
        decoding=KINDS[settings.kind].decoding,
        spacing=Spacing.fit(data.train.targets).to_dict(),
        max_source_length=settings.max_source_length,
        max_target_length=settings.max_target_length,
    )


def assemble(
    data: Data,
    initial: InitialModel,
    saved: Seq2SeqSettingsFile,
    machine: Machine,
    settings: Seq2SeqSettings,
) -> Seq2SeqContext:
    """Encode the pairs, and say what was met."""
    train, train_counts = encode_training(data.train, initial.tokenizer, settings)
    dev, dev_counts = encode_held_out(data.dev, initial.tokenizer, settings)
    for counts in (train_counts, dev_counts):
        for line in describe_set(counts):
            announce(make_legible(line))
    for line in warn_of_letters(initial.tokenizer.settings, data.dev.targets):
        announce(line)
    model = initial.model
    number = sum(parameter.numel() for parameter in model.parameters())
    announce(f"{number:,} weights, {initial.tokenizer.vocab_size:,} entries of the vocabulary")
    return Seq2SeqContext(
        model=model.to(machine.device),
        tokenizer=initial.tokenizer,
        saved=saved,
        data=data,
        train=train,
        dev=dev,
        counts={"train": train_counts, "dev": dev_counts},
        machine=machine,
    )


def _train(
    run: Run, context: Seq2SeqContext, wanted: RunRecord, settings: Seq2SeqSettings
) -> Seq2SeqResult:
    """Train in a folder whose lock this process holds, and write the model beside the run."""
    record, state = start_or_resume(run, wanted)
    job = build_job(context, settings)
    num_steps = record.num_steps
    if not num_steps:
        order = order_pairs(context.train, settings)
        measure = partial(estimate_evaluation_seconds, context)
        num_steps = decide_steps(job, order, settings, context.machine, measure)
    record = record.model_copy(update={"num_steps": num_steps})
    run.write_record(record)
    paced = choose_schedule(settings, num_steps)
    job = with_averages(job, paced, num_steps)
    state = train_to_end(run, job, paced, record, state, context.machine)
    return finish(run, context, state, paced, num_steps)
