"""Train an encoder-decoder on pairs of texts: read, train, keep the best, write its folder."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.output import list_names
from bertkit.base.progress import announce
from bertkit.generation.seq2seq_file import Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.hardware.allocator import prepare_memory
from bertkit.hardware.device import choose_device, choose_precision, measure_peak
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.recipes.seq2seq.evaluation import measure_judging
from bertkit.recipes.seq2seq.examples import (
    Data,
    Files,
    check_files,
    describe_set,
    encode_held_out,
    encode_training,
    identify,
    read_data,
)
from bertkit.recipes.seq2seq.initial_model import InitialModel, begin
from bertkit.recipes.seq2seq.job import (
    Seq2SeqContext,
    build_job,
    with_averages,
)
from bertkit.recipes.seq2seq.kinds import KINDS
from bertkit.recipes.seq2seq.result import Seq2SeqResult, finish, read_finished
from bertkit.recipes.seq2seq.schedule import choose_schedule, decide_steps, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.warnings import warn_of_letters
from bertkit.reports.text import make_legible
from bertkit.tokenization.detokenization import Spacing
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Machine
from bertkit.training.loop import fit
from bertkit.training.run import Run, RunRecord, check_resume, recognize_source, take_over
from bertkit.training.settings import BUDGET_FIELDS
from bertkit.training.signals import stop_at_once
from bertkit.training.versions import describe_versions

RUN_FOLDER = "run"
WRITTEN_KEYS = {"architectures", "dtype", "torch_dtype"}  # a checkpoint says them anew


@dataclass(frozen=True)
class PairFiles:
    """What is learned from.

    Attributes:
        train: one file with both sides, or that of what is read and that of what is written.
        dev: the same of held-out pairs; None holds out a share of the training pairs.
    """

    train: Files
    dev: Files | None = None

    def check(self) -> None:
        """See that all are files; errors as in `check_files`."""
        check_files("train", self.train)
        if self.dev is not None:
            check_files("dev", self.dev)


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
    inputs = [*files.train, *(files.dev or ())]
    with (
        stop_at_once(run.describe_stop),
        run.locked(output, inputs=inputs, check=partial(check_output, run=run)),
    ):
        KINDS[settings.kind].load_measure()([""], [""])  # before hours of training
        wanted = recognize_source(run.read_record(), describe_run(files, settings), "model")
        finished = read_finished(run, wanted, settings)
        if finished is not None:
            return finished
        materials, facts = gather(files, settings, run)
        return _train(run, materials, wanted.model_copy(update=facts), settings)


def check_output(output: Path, run: Run) -> None:
    """Refuse a folder in which something else lies."""
    with storage_errors(output, "read"):
        is_file = output.exists() and not output.is_dir()
    others = list_names(output) - {RUN_FOLDER}
    if is_file or run.is_foreign or (others and run.read_record() is None):
        raise ResumeError(
            f"{output} holds something that this command didn't begin; choose another --output"
        )


def describe_run(files: PairFiles, settings: Seq2SeqSettings) -> RunRecord:
    """What decides a run, as far as it is known without reading pairs and model.

    The budget is one of the settings that may not change: most schedules follow from its length.
    """
    values = settings.model_dump(mode="json", exclude=set(BUDGET_FIELDS))
    budget = {name: getattr(settings, name) for name in sorted(BUDGET_FIELDS)}
    if settings.model is not None:  # a shell adds a / to a folder's name or doesn't
        values["model"] = str(Path(settings.model))
    hashes = [identify(files.train), None if files.dev is None else identify(files.dev)]
    return RunRecord(
        settings={"kind": settings.kind, **values, "budget": budget},
        data_fingerprint=json.dumps(hashes),
        model={},
        num_steps=0,
        versions={},
    )


def gather(
    files: PairFiles, settings: Seq2SeqSettings, run: Run | None = None
) -> tuple[Seq2SeqContext, dict[str, Any]]:
    """Read data and model, and say what was met.

    Args:
        files: pairs of texts.
        settings: what can be chosen.
        run: one that may have a checkpoint; vocabulary and model come from there then.

    Returns:
        What the run is made of, and what its record says of that.
    """
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    prepare_memory(device)
    data = read_data(files.train, files.dev, settings)
    checkpoint = None if run is None else run.newest_checkpoint()
    if checkpoint is not None:
        model = EncoderDecoderModel.from_pretrained(checkpoint)
        beginning = InitialModel(Tokenizer.load(checkpoint), model, {})
        saved = read_seq2seq_file(checkpoint)
    else:
        beginning = begin(data, settings)
        saved = describe_writing(data, settings)
    machine = Machine(device, precision, measure_peak(device, precision))
    materials = assemble(data, beginning, saved, machine, settings)
    config = materials.model.config.to_dict()
    return materials, {
        "model": {name: value for name, value in config.items() if name not in WRITTEN_KEYS},
        "versions": describe_versions(machine.device, machine.precision),
        "source": beginning.facts,
    }


def describe_writing(data: Data, settings: Seq2SeqSettings) -> Seq2SeqSettingsFile:
    """How texts will be made of what the model writes."""
    return Seq2SeqSettingsFile(
        kind=settings.kind,
        decoding=KINDS[settings.kind].decoding,
        spacing=Spacing.learn(data.train.targets).to_dict(),
        max_source_length=settings.max_source_length,
        max_target_length=settings.max_target_length,
    )


def assemble(
    data: Data,
    beginning: InitialModel,
    saved: Seq2SeqSettingsFile,
    machine: Machine,
    settings: Seq2SeqSettings,
) -> Seq2SeqContext:
    """Encode the pairs, and say what was met."""
    train, train_counts = encode_training(data.train, beginning.tokenizer, settings)
    dev, dev_counts = encode_held_out(data.dev, beginning.tokenizer, settings)
    for counts in (train_counts, dev_counts):
        for line in describe_set(counts):
            announce(make_legible(line))
    for line in warn_of_letters(beginning.tokenizer.settings, data.dev.targets):
        announce(line)
    model = beginning.model
    number = sum(parameter.numel() for parameter in model.parameters())
    announce(f"{number:,} weights, {beginning.tokenizer.vocab_size:,} entries of the vocabulary")
    return Seq2SeqContext(
        model=model.to(machine.device),
        tokenizer=beginning.tokenizer,
        saved=saved,
        data=data,
        train=train,
        dev=dev,
        counts={"train": train_counts, "dev": dev_counts},
        machine=machine,
    )


def _train(
    run: Run, materials: Seq2SeqContext, wanted: RunRecord, settings: Seq2SeqSettings
) -> Seq2SeqResult:
    """Train in a folder that is this process's alone, and write the model beside it.

    Args:
        run: whose newest checkpoint the model was read from, where it has any.
        materials: what it is made of.
        wanted: what the run's record is to say.
        settings: what can be chosen.
    """
    record, state = run.read_record(), run.newest_state()
    if record is not None:
        check_resume(record, wanted)
        wanted = take_over(record, wanted)
    if state.step:
        announce(f"going on after step {state.step:,} of {run.folder}")
    job = build_job(materials, settings)
    if record is None:
        order = order_pairs(materials.train, settings)
        judging = partial(measure_judging, materials)
        num_steps = decide_steps(job, order, settings, materials.machine, judging)
    else:
        num_steps = record.num_steps
    run.write_record(wanted.model_copy(update={"num_steps": num_steps}))
    paced = choose_schedule(settings, num_steps)
    if not state.is_done(num_steps):
        state = fit(
            with_averages(job, paced, num_steps),
            paced,
            run=run,
            state=state,
            num_steps=num_steps,
            machine=materials.machine,
        )
    return finish(run, materials, state, paced, num_steps)
