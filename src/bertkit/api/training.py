"""Functions that train: a vocabulary, an encoder, a model for a task; and the shards between them.

Each resumes what it left unfinished in `output`, and returns at once what is finished there. Ctrl-C
ends with a checkpoint.
"""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, overload

from pydantic import SkipValidation

from bertkit.api.inputs import choose_output, hold_rows, list_inputs, name_files
from bertkit.api.settings import Call, divide, ends_in_one_line, show_fields, takes
from bertkit.base.addresses import name_beside
from bertkit.base.errors import SettingsError
from bertkit.base.parts import WorkersSettings
from bertkit.base.progress import announce
from bertkit.base.settings import select
from bertkit.base.wings import TEXT_TASKS, has_wing, load_object
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.hub import resolve_tokenizer
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.shards import ShardSet, is_prepared
from bertkit.data.tables.rows import Table
from bertkit.inference.predictor import Answerer, Chooser, Classifier, Predictor, Regressor, Tagger
from bertkit.recipes.finetune.run import Sources
from bertkit.recipes.finetune.run import finetune as run_finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.recipes.finetune.settings import FineTuneSettings, SeedsSettings
from bertkit.recipes.prepare.run import prepare as run_prepare
from bertkit.recipes.pretrain.run import PretrainResult
from bertkit.recipes.pretrain.run import pretrain as run_pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings
from bertkit.recipes.train_tokenizer import train_tokenizer as run_train_tokenizer
from bertkit.reports.text import show
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.table import TASKS
from bertkit.tasks.tag import TagSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.log import OnEvent, observe

# Texts from Python, or files by name: one string (a file, folder or glob), or paths.
Texts = Table | Sequence[Path]

PREDICTORS: Mapping[str, type[Predictor[Any, Any, Any]]] = {
    "classify": Classifier,
    "regress": Regressor,
    "tag": Tagger,
    "answer": Answerer,
    "choose": Chooser,
}  # of other tasks `Predictor` itself


class OutputCall(Call):
    """The keyword arguments of a function that writes a folder, or replaces what is there."""

    output: SkipValidation[str | Path | None] = None
    overwrite: bool = False


class TrainTokenizerCall(TrainTokenizerSettings, OutputCall):
    """The keyword arguments of `train_tokenizer`."""


@takes(TrainTokenizerCall)
def train_tokenizer(call: TrainTokenizerCall, texts: Texts) -> Tokenizer:
    """Train a WordPiece vocabulary, as `bertkit train-tokenizer`.

    Args:
        texts: a list of texts, a data frame, or a file, folder or glob by name.
        output: the tokenizer's folder; by default a temporary one.
        overwrite: replace an older tokenizer in `output`.

    Further keyword arguments: fields of `TrainTokenizerSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.train_tokenizer.train_tokenizer`.

    Examples:
        >>> texts = ["the cat sat on the mat", "the dog ate the cake"]
        >>> bertkit.train_tokenizer(texts, vocab_size=30, min_frequency=1).vocab_size
        30
    """
    result = run_train_tokenizer(
        list_inputs(texts, call.text_column),
        choose_output(call.output, "tokenizer"),
        select(TrainTokenizerSettings, call),
        overwrite=call.overwrite,
    )
    for line in result.list_problems():
        announce(line)
    return result.tokenizer


class PrepareCall(PrepareSettings, WorkersSettings, OutputCall):
    """The keyword arguments of `prepare`."""

    held_out_texts: SkipValidation[Texts | None] = None


@takes(PrepareCall)
def prepare(call: PrepareCall, texts: Texts, tokenizer: str | Path | Tokenizer) -> ShardSet:
    """Tokenize text into shards for pre-training, as `bertkit prepare`.

    Args:
        texts: a list of texts, each a document; a data frame; or a file, folder or glob by name.
        tokenizer: a tokenizer, which is then saved beside the shards; its folder or `vocab.txt`, or
            the id of a model of the Hub.
        output: folder for the shards; by default a temporary one.
        held_out_texts: texts to hold out besides, as `texts`.
        overwrite: replace shards of other texts or settings in `output`.

    Further keyword arguments: fields of `PrepareSettings` and `WorkersSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.prepare.run.prepare`.
    """
    place = choose_output(call.output, "shards")
    column, held_out = call.text_column, call.held_out_texts
    if isinstance(tokenizer, Tokenizer):
        folder = name_beside(place, "-tokenizer") or choose_output(None, "tokenizer")
        tokenizer.save(folder)
    else:
        folder = resolve_tokenizer(tokenizer)
    result = run_prepare(
        list_inputs(texts, column),
        folder,
        place,
        select(PrepareSettings, call),
        held_out_inputs=[] if held_out is None else list_inputs(held_out, column),
        workers=select(WorkersSettings, call),
        overwrite=call.overwrite,
    )
    for line in result.report:
        announce(line)
    return ShardSet.open(place)


class PretrainCall(PretrainSettings, Call):
    """The keyword arguments of `pretrain`."""

    output: SkipValidation[str | Path | None] = None
    tokenizer: SkipValidation[str | Path | Tokenizer | None] = None
    text_column: str = "text"
    encoding: str | None = None
    on_step: OnEvent | None = None
    on_evaluation: OnEvent | None = None


@takes(PretrainCall)
def pretrain(call: PretrainCall, data: Texts) -> PretrainResult:
    """Pre-train an encoder, as `bertkit pretrain`.

    Args:
        data: a folder of shards; or texts, as in `prepare`, which become shards in `output` first.
        output: folder of the run; with texts, `run/` in it is that of the run, beside `tokenizer/`
            and `shards/`. By default a temporary one.
        tokenizer: of texts: a tokenizer, a folder or the id of a model of the Hub; by default that
            of `model`, or else one that is trained on the texts.
        text_column: column of the texts, if they are rows.
        encoding: of files of texts, such as latin-1; by default UTF-8.
        on_step: called with the step and its metrics, after each step.
        on_evaluation: called with the step and the held-out metrics.

    Further keyword arguments: fields of `PretrainSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.pretrain.run.pretrain`.
    """
    chosen, tokenizer = select(PretrainSettings, call), call.tokenizer
    reading: dict[str, Any] = {"text_column": call.text_column, "encoding": call.encoding}
    place = choose_output(call.output, "pretrained")
    with observe(call.on_step, call.on_evaluation):
        names = name_files(data)
        if names is not None and is_prepared(names[0]):
            if tokenizer is not None:
                raise SettingsError("shards have a tokenizer of their own; leave out tokenizer")
            return run_pretrain(Path(names[0]), place, chosen)
        source = tokenizer or chosen.model
        if source is None:
            source = place / "tokenizer"
            if not source.exists():
                train_tokenizer(data, output=source, **reading)
        prepare(data, source, output=place / "shards", **reading)
        return run_pretrain(place / "shards", place / RUN_FOLDER, chosen)


class TrainCall(Call):
    """The keyword arguments of `finetune` for every task."""

    train: SkipValidation[Texts]
    dev: SkipValidation[Texts | None] = None
    output: SkipValidation[str | Path | None] = None
    on_step: OnEvent | None = None
    on_evaluation: OnEvent | None = None


class FromEncoderCall(TrainCall):
    """Those for a task on a pre-trained encoder."""

    model: SkipValidation[str | Path | None] = None
    revision: str | None = None


class FineTuneCall(FineTuneSettings, SeedsSettings, FromEncoderCall):
    """Those, with the settings that all such tasks have."""


class ClassifyCall(ClassifySettings, FineTuneCall):
    """The keyword arguments of `finetune("classify")`."""


class RegressCall(RegressSettings, FineTuneCall):
    """The keyword arguments of `finetune("regress")`."""


class TagCall(TagSettings, FineTuneCall):
    """The keyword arguments of `finetune("tag")`."""


class AnswerCall(AnswerSettings, FineTuneCall):
    """The keyword arguments of `finetune("answer")`."""


class ChooseCall(ChooseSettings, FineTuneCall):
    """The keyword arguments of `finetune("choose")`."""


@overload
@takes(ClassifyCall)
def finetune(call: ClassifyCall, task: Literal["classify"]) -> Classifier: ...


@overload
@takes(RegressCall)
def finetune(call: RegressCall, task: Literal["regress"]) -> Regressor: ...


@overload
@takes(TagCall)
def finetune(call: TagCall, task: Literal["tag"]) -> Tagger: ...


@overload
@takes(AnswerCall)
def finetune(call: AnswerCall, task: Literal["answer"]) -> Answerer: ...


@overload
@takes(ChooseCall)
def finetune(call: ChooseCall, task: Literal["choose"]) -> Chooser: ...


@overload
def finetune(task: Literal["translate", "summarize"], **settings: Any) -> Any: ...


@overload
def finetune(task: str, **settings: Any) -> Predictor[Any, Any, Any] | Any: ...


@ends_in_one_line
def finetune(task: str, **settings: Any) -> Predictor[Any, Any, Any] | Any:
    """Fine-tune an encoder for a task, as `bertkit finetune`, and return the model.

    Args:
        task: classify, regress, tag, answer, choose, translate or summarize.
        train: labeled examples: rows (mappings, tuples of text and label, a data frame, an Arrow
            table, a `datasets.Dataset`), or a file by name. To translate or summarize: pairs of
            texts, also as two files, whose lines n belong together.
        dev: held-out examples; without them, a share of the training examples is held out.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit, and to translate or summarize a new one.
        output: folder for the model; by default a temporary one.
        revision: branch, tag or commit of a model of the Hub.
        on_step: called with the step and its metrics, after each step.
        on_evaluation: called with the step and the held-out metrics.

    Further keyword arguments: fields of `FineTuneSettings`, of the task's settings and of
    `SeedsSettings`; to translate or summarize, those of `TranslateSettings` or
    `SummarizeSettings` alone, with the defaults of their commands.

    Returns:
        A `Classifier`, `Regressor`, `Tagger`, `Answerer`, `Chooser`, `Predictor`, `Translator` or
        `AbstractiveSummarizer`, with the `metrics` of the held-out examples.

    Raises:
        BertkitError: as in `bertkit.recipes.finetune.run.finetune`.

    Examples:
        >>> rows = [("a gripping film", "good"), ("a dull film", "bad")] * 20
        >>> classify = bertkit.finetune("classify", train=rows, epochs=1, max_length=16)
        >>> sorted(classify.task.labels)
        ['bad', 'good']
    """
    if not isinstance(cast("object", task), str) or task not in {*TASKS, *TEXT_TASKS}:
        known = ", ".join((*TASKS, *TEXT_TASKS))
        raise SettingsError(f"there is no task {show(repr(task), 40)}; choose one of {known}")
    if task in TEXT_TASKS:
        return load_object(TEXT_TASKS[task].function)(task, settings)
    kinds = (FromEncoderCall, TASKS[task].settings, SeedsSettings, FineTuneSettings)
    call, task_settings, several, chosen = divide(settings, "finetune", *kinds)
    name = str(find_bundled("vectors") if call.model is None else call.model)
    rows, held_out = hold_rows(call.train), hold_rows(call.dev)
    sources = Sources(task, name, cast("Table", rows), held_out, call.revision)
    place = choose_output(call.output, task)
    with observe(call.on_step, call.on_evaluation):
        if several.seeds == 1:
            result = run_finetune(sources, place, task_settings, chosen)
        else:
            result = finetune_seeds(sources, place, task_settings, chosen, several.seeds)
    for warning in result.saved.warnings:
        announce(f"WARNING: {warning}")
    return PREDICTORS.get(task, Predictor).load(place, device=chosen.device)


show_fields(
    finetune,
    inspect.signature(finetune),
    FineTuneCall,
    *(entry.settings for entry in TASKS.values()),
    *(load_object(task.settings) for task in TEXT_TASKS.values() if has_wing(task.settings)),
)
