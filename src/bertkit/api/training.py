"""Functions that train an encoder, or a model for a task.

Each resumes what it left unfinished in `output`, and returns at once what is finished there. Ctrl-C
ends with a checkpoint.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack, overload

from bertkit.api.inputs import Texts, choose_output, hold_rows
from bertkit.api.preparation import prepare, train_tokenizer
from bertkit.api.settings import build, check_names, list_fields, takes
from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.base.wings import TEXT_TASKS, has_wing, load_object
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.shards import is_prepared
from bertkit.data.tables.rows import name_files
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.predictor import (
    Answerer,
    AnyPredictor,
    Chooser,
    Classifier,
    Predictor,
    Regressor,
    Tagger,
)
from bertkit.inference.reranker import Reranker
from bertkit.recipes.finetune.run import Sources
from bertkit.recipes.finetune.run import finetune as run_finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.recipes.finetune.settings import FineTuneSettings, SeedsSettings
from bertkit.recipes.pretrain.run import PretrainResult
from bertkit.recipes.pretrain.run import pretrain as run_pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.reports.text import show
from bertkit.tasks.table import TASKS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.log import OnEvent, observe

if TYPE_CHECKING:
    from bertkit.api.keywords import (
        AnswerKeywords,
        ChooseKeywords,
        FinetuneClassifyKeywords,
        FinetuneEmbedKeywords,
        FinetuneRerankKeywords,
        PretrainKeywords,
        RegressKeywords,
        TagKeywords,
    )

PREDICTORS: Mapping[str, type[AnyPredictor]] = {
    "classify": Classifier,
    "regress": Regressor,
    "tag": Tagger,
    "answer": Answerer,
    "choose": Chooser,
}  # of other tasks `Predictor` itself
LOADED: Mapping[str, Any] = {
    **PREDICTORS,
    "embed": Embedder,
    "rerank": Reranker,
}  # what `finetune` returns


@takes(PretrainSettings)
def pretrain(
    data: Texts,
    *,
    output: str | Path | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
    text_column: str = "text",
    encoding: str | None = None,
    on_step: OnEvent | None = None,
    on_evaluation: OnEvent | None = None,
    **settings: "Unpack[PretrainKeywords]",
) -> PretrainResult:
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
    chosen, place = build(PretrainSettings, settings), choose_output(output, "pretrained")
    with observe(on_step, on_evaluation):
        names = name_files(data)
        if names is not None and is_prepared(names[0]):
            if tokenizer is not None:
                raise SettingsError("shards have a tokenizer of their own; leave out tokenizer")
            return run_pretrain(Path(names[0]), place, chosen)
        source = tokenizer or chosen.model
        if source is None:
            source = place / "tokenizer"
            if not source.exists():
                train_tokenizer(data, output=source, text_column=text_column, encoding=encoding)
        prepare(data, source, output=place / "shards", text_column=text_column, encoding=encoding)
        return run_pretrain(place / "shards", place / RUN_FOLDER, chosen)


class FinetuneArguments(TypedDict, total=False):
    """The arguments of `finetune` that aren't settings, for every task on an encoder."""

    train: Required[Texts]
    dev: Texts | None
    model: str | Path | None
    revision: str | None
    output: str | Path | None
    on_step: OnEvent | None
    on_evaluation: OnEvent | None


@overload
def finetune(
    task: Literal["classify"], **arguments: "Unpack[FinetuneClassifyKeywords]"
) -> Classifier: ...


@overload
def finetune(task: Literal["regress"], **arguments: "Unpack[RegressKeywords]") -> Regressor: ...


@overload
def finetune(task: Literal["tag"], **arguments: "Unpack[TagKeywords]") -> Tagger: ...


@overload
def finetune(task: Literal["answer"], **arguments: "Unpack[AnswerKeywords]") -> Answerer: ...


@overload
def finetune(task: Literal["choose"], **arguments: "Unpack[ChooseKeywords]") -> Chooser: ...


@overload
def finetune(task: Literal["embed"], **arguments: "Unpack[FinetuneEmbedKeywords]") -> Embedder: ...


@overload
def finetune(
    task: Literal["rerank"], **arguments: "Unpack[FinetuneRerankKeywords]"
) -> Reranker: ...


@overload
def finetune(task: Literal["translate", "summarize"], *, train: Texts, **arguments: Any) -> Any: ...


@overload
def finetune(task: str, *, train: Texts, **arguments: Any) -> AnyPredictor | Any: ...


@takes(
    FineTuneSettings,
    SeedsSettings,
    *(entry.settings for entry in TASKS.values()),
    *(load_object(task.settings) for task in TEXT_TASKS.values() if has_wing(task.settings)),
)
def finetune(
    task: str,
    *,
    train: Texts,
    dev: Texts | None = None,
    model: str | Path | None = None,
    revision: str | None = None,
    output: str | Path | None = None,
    on_step: OnEvent | None = None,
    on_evaluation: OnEvent | None = None,
    **settings: Any,
) -> AnyPredictor | Any:
    """Fine-tune an encoder for a task, as `bertkit finetune`, and return the model.

    Args:
        task: classify, regress, tag, answer, choose, embed, rerank, translate or summarize.
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
        A `Classifier`, `Regressor`, `Tagger`, `Answerer`, `Chooser`, `Embedder`, `Reranker`,
        `Predictor`, `Translator` or `AbstractiveSummarizer`, with the `metrics` of the held-out
        examples.

    Raises:
        BertkitError: as in `bertkit.recipes.finetune.run.finetune`.

    Examples:
        >>> rows = [("a gripping film", "good"), ("a dull film", "bad")] * 20
        >>> classify = bertkit.finetune("classify", train=rows, epochs=1, max_length=16)
        >>> sorted(classify.task.labels)
        ['bad', 'good']
    """
    if task not in (*TASKS, *TEXT_TASKS):
        known = ", ".join((*TASKS, *TEXT_TASKS))
        raise SettingsError(f"there is no task {show(repr(task), 40)}; choose one of {known}")
    if task in TEXT_TASKS:
        named = {"model": None if model is None else str(model), "revision": revision}
        settings |= {name: value for name, value in named.items() if value is not None}
        train_pairs = load_object(TEXT_TASKS[task].function)
        with observe(on_step, on_evaluation):
            return train_pairs(task, train, dev, output, settings)
    task_kind = TASKS[task].settings
    check_names(settings, list_fields((task_kind, SeedsSettings, FineTuneSettings)), "finetune")
    task_settings, several = build(task_kind, settings), build(SeedsSettings, settings)
    chosen = build(FineTuneSettings, settings)
    name = str(find_bundled("vectors") if model is None else model)
    rows, held_out = hold_rows(train), hold_rows(dev)
    sources = Sources(task, name, rows, held_out, revision)
    place = choose_output(output, task)
    with observe(on_step, on_evaluation):
        if several.seeds == 1:
            result = run_finetune(sources, place, task_settings, chosen)
        else:
            result = finetune_seeds(sources, place, task_settings, chosen, several.seeds)
    warnings = (f"WARNING: {warning}" for warning in result.saved.warnings)
    for line in (*warnings, *result.saved.verdict_lines):
        announce(line)
    return LOADED.get(task, Predictor).load(place, device=chosen.device)
