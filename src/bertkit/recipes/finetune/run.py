"""Fine-tune a model: read, train, keep the best epoch, evaluate it, write its folder."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import torch

from bertkit.base.errors import ResumeError, SettingsError
from bertkit.base.output import list_names
from bertkit.base.progress import announce
from bertkit.base.settings import validate
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.tables.records import RecordTable
from bertkit.data.tables.rows import Table
from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.adapter import adapt
from bertkit.models.bert.config import FEATURE_HEAD
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.cross_validation import solve_and_validate
from bertkit.recipes.finetune.data import FineTuningData
from bertkit.recipes.finetune.distillation import add_targets, shape_student
from bertkit.recipes.finetune.embed_job import EmbedJob
from bertkit.recipes.finetune.evaluation import evaluate_model
from bertkit.recipes.finetune.job import FineTuningJob, decide_steps, freeze_parameters
from bertkit.recipes.finetune.mining import NEGATIVES_FILE, add_negatives
from bertkit.recipes.finetune.pretrained import (
    SENTENCE_ENCODER,
    identify,
    load_pretrained,
    name_origin,
    open_pretrained,
)
from bertkit.recipes.finetune.rerank_job import RerankJob
from bertkit.recipes.finetune.result import FineTuneResult, build_record, write_model
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.settings import TaskSettings, TextSettings
from bertkit.training.job import Machine
from bertkit.training.lifecycle import ModelRecipe, load_checkpoint, train
from bertkit.training.ranks import current_ranks, refuse_ranks
from bertkit.training.record import RECORD_FILE, RunRecord, RunState
from bertkit.training.run import Run

# Of tasks whose held-out examples aren't predicted one by one.
JOBS: dict[str, type[FineTuningJob]] = {"embed": EmbedJob, "rerank": RerankJob}
SEEDS_FOLDER = "seeds"
OLD_SEEDS_FOLDER = "search"  # of earlier versions, which searched a grid, too
OTHER_KINDS = (
    (RUN_FOLDER, "a single run", "leave out --seeds"),
    (SEEDS_FOLDER, "runs of several seeds", "give --seeds, as when they were started"),
)


@dataclass(frozen=True)
class Sources:
    """The model to start from and the data."""

    task: str
    model: str
    train: Table | RecordTable
    dev: Table | RecordTable | None = None  # None holds out a share of the training examples
    revision: str | None = None


class FineTuning(ModelRecipe[FineTuningJob, FineTuneResult]):
    """Training for a task, on labeled examples."""

    saved_kind, result_kind = SavedFineTuning, FineTuneResult
    settings: FineTuneSettings

    def __init__(
        self,
        sources: Sources,
        task_settings: TaskSettings,
        settings: FineTuneSettings,
        data: FineTuningData | None = None,  # that of other seeds, which is read once
    ) -> None:
        if isinstance(task_settings, ClassifySettings) and task_settings.few_shot:
            settings = solve_only(settings)
        if settings.lora is not None and getattr(task_settings, "num_layers", None) is not None:
            raise SettingsError(
                "`lora` makes an adapter for all layers of the model, and `num_layers` keeps some"
                " of them: leave out one"
            )
        self.sources, self.task_settings, self.settings = sources, task_settings, settings
        self.data = data or open_data(sources, task_settings, settings)
        self.inputs, self.overwrite = list_paths(sources), settings.overwrite

    @cached_property
    def parent(self) -> OpenModel:
        """The model to start from."""
        return OpenModel.open(self.sources.model, revision=self.sources.revision)

    def describe(self, run: Run) -> RunRecord:
        """Return settings and data, without what depends on the model."""
        task_settings = self.task_settings.model_dump(mode="json")
        if "pairs" in task_settings:  # not given, the data decide, as with false
            task_settings["pairs"] = bool(task_settings["pairs"])
        if not task_settings.get("few_shot"):  # as in records of versions that hadn't got it
            task_settings.pop("few_shot", None)
        return RunRecord(
            settings={
                "task": self.sources.task,
                "model": self.sources.model,
                "revision": self.sources.revision,
                **task_settings,
                **self.settings.model_dump(mode="json"),
                **self.settings.undecided,
            },
            data_fingerprint=self.data.fingerprint,
            model={},
        )

    def find_hidden_size(self) -> int:
        """Return that of the model to start from."""
        return self.parent.config.hidden_size

    def open(self, checkpoint: Path | None, machine: Machine) -> FineTuningJob:
        """Read data and model."""
        settings, data = self.settings, self.data
        start = checkpoint if settings.lora is None else None  # it adapts the parent
        opened = OpenModel.open(start or self.parent)
        found = None if checkpoint is None else Run.of(checkpoint).folder
        pretrained = prepare_data(data, opened, found or self.parent, settings)
        if start is None:
            source = identify(pretrained)
        else:
            record = Run.of(start).read_record()
            source = {} if record is None else record.source
        is_sentence_encoder = bool(source.get(SENTENCE_ENCODER))
        job = build_job(
            data,
            pretrained,
            machine,
            settings,
            is_sentence_encoder=is_sentence_encoder,
            checkpoint=checkpoint,
        )
        job.source = source if start is None else {}
        return job

    def decide_steps(self, job: FineTuningJob, before: RunRecord | None, wanted: RunRecord) -> int:
        """Return the steps of the epochs."""
        return (before.num_steps if before else 0) or decide_steps(
            job.settings, job.num_epoch_steps, has_start=job.has_start
        )

    def plan(self, job: FineTuningJob, run: Run, state: RunState, num_steps: int) -> RunState:
        """Keep what was mined; solve the head, whose weights other ranks get with a step."""
        job.rows.folder = run.folder
        if current_ranks().is_first and self.data.mined is not None:
            self.data.mined.save(run.folder / NEGATIVES_FILE)
        if job.has_solved_head and state.evaluated_step is None:
            current_ranks().from_first(lambda: solve_and_validate(run.folder, job))
        return state

    def write_model(self, job: FineTuningJob, run: Run, state: RunState) -> SavedFineTuning:
        """Evaluate the best epoch, and write model, card and report."""
        load = None if self.settings.lora is None else job.model.copy_with_adapter
        best, output = load_checkpoint(job, run, state.model_step, load), run.folder.parent
        final = evaluate_model(best)
        saved = build_record(best, final, state, run)
        return write_model(output, run, best, final, saved)


def solve_only(settings: FineTuneSettings) -> FineTuneSettings:
    """Return the settings of a run whose head is solved; SettingsError if some are of training."""
    given = settings.model_dump(exclude_unset=True)
    values = {**given, "features": settings.features or "last"}
    return validate(FineTuneSettings, values, "few_shot trains with settings of its own")


def finetune(
    sources: Sources,
    output: Path,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    data: FineTuningData | None = None,
) -> FineTuneResult:
    """Fine-tune, or resume the run in `output`, as `train`; `data` is that of other seeds."""
    check_kind(output, RUN_FOLDER)
    if sources.task == "embed":  # whose loss compares all passages of a batch
        refuse_ranks("finetune embed")
    recipe = FineTuning(sources, task_settings, settings, data)
    result = train(recipe, output)
    return replace(result, examples=recipe.data.sets[0].examples)


def open_data(
    sources: Sources, task_settings: TaskSettings, settings: FineTuneSettings
) -> FineTuningData:
    """Return the data of sources, which is read when it is first asked for."""
    return FineTuningData(sources.task, sources.train, sources.dev, task_settings, settings)


def prepare_data(
    data: FineTuningData,
    opened: OpenModel,
    start: OpenModel | Path,
    settings: FineTuneSettings,
) -> OpenModel:
    """Adapt data to a model, add what other models say of their texts, and encode them, once.

    Args:
        data: they are changed.
        opened: the model that is trained.
        start: the model to start from, or the folder of a run that is resumed; see `add_negatives`.
        settings: of the training.

    Returns:
        The model, with the tokenizer that encoded the data.
    """
    data.adapt(opened)
    pretrained = open_pretrained(opened, data.task, settings)
    add_negatives(data, start, settings.device)
    add_targets(data, settings.device)
    data.encode(pretrained.tokenizer)
    return pretrained


def list_paths(sources: Sources) -> list[str | Path]:
    """List the files that are read."""
    given = (sources.train, sources.dev)
    named = (each.path or each.name if isinstance(each, RecordTable) else each for each in given)
    return [each for each in named if isinstance(each, str | Path)]


def check_kind(output: Path, kind: str) -> None:
    """Raise `ResumeError` if a folder holds runs of several seeds instead of one, or vice versa."""
    if RECORD_FILE in list_names(output / OLD_SEEDS_FOLDER):
        raise ResumeError(
            f"{output} holds a search or several seeds of an earlier version, which this one can't"
            " resume; if it is finished, use its model, otherwise train again with another --output"
        )
    others = list_names(output) - {kind}
    for name, what, way in OTHER_KINDS:
        if name in others:
            raise ResumeError(f"{output} holds {what}; {way}, or choose another --output")


def build_job(
    data: FineTuningData,
    pretrained: OpenModel,
    machine: Machine,
    settings: FineTuneSettings,
    *,
    is_sentence_encoder: bool = False,
    checkpoint: Path | None = None,
) -> FineTuningJob:
    """Load the model; that of a resumed run must have its head, or its adapter."""
    examples = chain(data.train.encoded, data.dev.encoded)
    sequences = (sequence for one in examples for sequence in one.sequences)
    if any(sequence.segments[-1] for sequence in sequences):
        LoadedModel.of(pretrained).check_pairs()
    torch.manual_seed(settings.seed)
    is_own = FEATURE_HEAD in pretrained.changes
    model_kind = BertFeatureBased if is_own else data.task.model_kind
    is_whole = checkpoint is not None and settings.lora is None
    load = model_kind.from_pretrained if is_whole else partial(load_pretrained, kind=model_kind)
    model = load(pretrained)
    shape_student(model, data.task)
    frozen = settings.freeze if settings.features is None else "encoder"
    freeze_parameters(model, frozen, model.config.num_hidden_layers)
    if settings.lora is not None:
        model.adapter_origin = name_origin(pretrained)
        num_trained, num_weights = adapt(model, settings.lora)
        announce(f"LoRA trains {num_trained:,} weights beside {num_weights:,} that are frozen")
        if checkpoint is not None:
            model.load_adapter(checkpoint)
    job_kind = JOBS.get(data.task.name, FineTuningJob)
    return job_kind(
        data,
        model.to(machine.device),
        machine,
        settings,
        has_solved_head=settings.features is not None
        or (
            is_sentence_encoder
            and data.task.has_solvable_head
            and isinstance(data.task.settings, TextSettings)
        ),
    )
