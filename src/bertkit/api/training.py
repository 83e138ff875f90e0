"""Functions that train: a vocabulary, an encoder, a model for a task; and the shards between them.

Each resumes what it left unfinished in `output`, and returns at once what is finished there. Ctrl-C
ends with a checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, overload

from bertkit.api.inputs import choose_output, hold_rows, list_inputs, name_files
from bertkit.api.kept import ends_in_one_line
from bertkit.api.settings import build, build_each, takes_settings
from bertkit.base.errors import SettingsError
from bertkit.base.parts import WorkersSettings
from bertkit.base.progress import announce
from bertkit.base.remote import find_info, is_remote
from bertkit.checkpoints.hub import find_bundled, resolve_tokenizer
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.shards import PLAN, ShardSet
from bertkit.data.tables.rows import Table
from bertkit.inference.generation.seq2seq_generator import Seq2SeqGenerator, Translator
from bertkit.inference.generation.summarizer import AbstractiveSummarizer
from bertkit.inference.predictor import Answerer, Chooser, Classifier, Predictor, Regressor, Tagger
from bertkit.recipes.finetune.run import Sources
from bertkit.recipes.finetune.run import finetune as run_finetune
from bertkit.recipes.finetune.search import search as run_search
from bertkit.recipes.finetune.settings import FineTuneSettings, GridSearchSettings
from bertkit.recipes.prepare.run import prepare as run_prepare
from bertkit.recipes.pretrain.benchmark import PretrainBenchmark, benchmark
from bertkit.recipes.pretrain.run import PretrainResult
from bertkit.recipes.pretrain.run import pretrain as run_pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.seq2seq.examples import Pairs
from bertkit.recipes.seq2seq.run import PairFiles, train_seq2seq
from bertkit.recipes.seq2seq.settings import KINDS
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings
from bertkit.recipes.train_tokenizer import train_tokenizer as run_train_tokenizer
from bertkit.reports.text import show
from bertkit.tasks.table import TASKS
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
    "extract": Predictor,
}
WRITERS: Mapping[str, type[Seq2SeqGenerator]] = {
    "translate": Translator,
    "summarize": AbstractiveSummarizer,
}
ALL_TASKS = tuple(entry.settings for entry in TASKS.values())
ALL_KINDS = tuple(kind.settings for kind in KINDS.values())


@ends_in_one_line
@takes_settings(TrainTokenizerSettings)
def train_tokenizer(
    texts: Texts, *, output: str | Path | None = None, overwrite: bool = False, **settings: Any
) -> Tokenizer:
    """Train a WordPiece vocabulary, as `bertkit train-tokenizer`.

    Args:
        texts: a list of texts, a data frame, or a file, folder or glob by name.
        output: the tokenizer's folder; by default a temporary one.
        overwrite: replace an older tokenizer in `output`.
        settings: fields of `TrainTokenizerSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.train_tokenizer.train_tokenizer`.

    Examples:
        >>> texts = ["the cat sat on the mat", "the dog ate the cake"]
        >>> bertkit.train_tokenizer(texts, vocab_size=30, min_frequency=1).vocab_size
        30
    """
    chosen = build(TrainTokenizerSettings, settings, "train_tokenizer")
    result = run_train_tokenizer(
        list_inputs(texts, chosen.text_column),
        choose_output(output, "tokenizer"),
        chosen,
        overwrite=overwrite,
    )
    return result.tokenizer


@ends_in_one_line
@takes_settings(PrepareSettings, WorkersSettings)
def prepare(
    texts: Texts,
    tokenizer: str | Path | Tokenizer,
    *,
    output: str | Path | None = None,
    held_out_texts: Texts | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> ShardSet:
    """Tokenize text into shards for pre-training, as `bertkit prepare`.

    Args:
        texts: a list of texts, each a document; a data frame; or a file, folder or glob by name.
        tokenizer: a tokenizer, which is then saved beside the shards; its folder or `vocab.txt`, or
            the id of a model of the Hub.
        output: folder for the shards; by default a temporary one.
        held_out_texts: texts to hold out besides, as `texts`.
        overwrite: replace shards of other texts or settings in `output`.
        settings: fields of `PrepareSettings` and `WorkersSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.prepare.run.prepare`.
    """
    workers, chosen = build_each("prepare", settings, WorkersSettings, PrepareSettings)
    place, column = choose_output(output, "shards"), chosen.text_column
    run_prepare(
        list_inputs(texts, column),
        _find_tokenizer(tokenizer, place),
        place,
        chosen,
        held_out_inputs=[] if held_out_texts is None else list_inputs(held_out_texts, column),
        workers=workers,
        overwrite=overwrite,
    )
    return ShardSet.open(place)


def _find_tokenizer(tokenizer: str | Path | Tokenizer, shards: Path) -> Path:
    """Return a tokenizer's folder; one that is in memory is saved beside the shards."""
    if not isinstance(tokenizer, Tokenizer):
        return resolve_tokenizer(tokenizer)
    folder = shards.with_name(f"{shards.name}-tokenizer")
    if is_remote(shards):
        folder = choose_output(None, "tokenizer")
    tokenizer.save(folder)
    return folder


@ends_in_one_line
@takes_settings(PretrainSettings)
def pretrain(
    data: Texts,
    *,
    output: str | Path | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
    text_column: str = "text",
    encoding: str | None = None,
    on_step: OnEvent | None = None,
    on_evaluation: OnEvent | None = None,
    **settings: Any,
) -> PretrainResult:
    """Pre-train an encoder, as `bertkit pretrain`.

    Args:
        data: a folder of shards; or texts, as in `prepare`, which become shards in `output` first.
        output: folder of the run; with texts, `run/` in it is that of the run, beside `tokenizer/`
            and `shards/`. By default a temporary one.
        tokenizer: of texts: a tokenizer, a folder or the id of a model of the Hub; by default that
            of `start_from`, or else one that is trained on the texts.
        text_column: column of the texts, if they are rows.
        encoding: of files of texts, such as latin-1; by default UTF-8.
        on_step: called with the step and its metrics, after each step.
        on_evaluation: called with the step and the held-out metrics.
        settings: fields of `PretrainSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.pretrain.run.pretrain`.
    """
    chosen = build(PretrainSettings, settings, "pretrain")
    reading: dict[str, Any] = {"text_column": text_column, "encoding": encoding}
    place = choose_output(output, "pretrained")
    with observe(on_step, on_evaluation):
        names = name_files(data)
        if names is not None and _has_shards(names[0]):
            if tokenizer is not None:
                raise SettingsError("shards have a tokenizer of their own; leave out tokenizer")
            return run_pretrain(Path(names[0]), place, chosen)
        source = tokenizer or chosen.start_from
        if source is None:
            source = place / "tokenizer"
            if not source.exists():
                train_tokenizer(data, output=source, **reading)
        prepare(data, source, output=place / "shards", **reading)
        return run_pretrain(place / "shards", place / RUN_FOLDER, chosen)


def _has_shards(name: str) -> bool:
    """Whether a folder was written by `prepare`."""
    if is_remote(name):
        return find_info(f"{name.rstrip('/')}/{PLAN}") is not None
    return (Path(name) / PLAN).is_file()


@ends_in_one_line
@takes_settings(PretrainSettings)
def benchmark_pretrain(
    *, length: int | Sequence[int] = (), data: str | Path | None = None, **settings: Any
) -> PretrainBenchmark:
    """Measure how fast this machine pre-trains, as `bertkit benchmark pretrain`.

    Args:
        length: maximum lengths to measure, or one; by default `max_length`.
        data: a folder of shards; by default random text.
        settings: fields of `PretrainSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.pretrain.benchmark.benchmark`.

    Examples:
        >>> measured = bertkit.benchmark_pretrain(model="base", length=[128, 512])  # doctest: +SKIP
        >>> measured.rows[0].tokens_per_second  # doctest: +SKIP
        2140.0
    """
    chosen = build(PretrainSettings, settings, "benchmark_pretrain")
    lengths = [length] if isinstance(length, int) else length
    return benchmark(chosen, lengths, None if data is None else Path(data))


@overload
def finetune(
    task: Literal["classify"], *, train: Table, dev: Table | None = None, **settings: Any
) -> Classifier: ...


@overload
def finetune(
    task: Literal["regress"], *, train: Table, dev: Table | None = None, **settings: Any
) -> Regressor: ...


@overload
def finetune(
    task: Literal["tag"], *, train: Table, dev: Table | None = None, **settings: Any
) -> Tagger: ...


@overload
def finetune(
    task: Literal["answer"], *, train: Table, dev: Table | None = None, **settings: Any
) -> Answerer: ...


@overload
def finetune(
    task: Literal["choose"], *, train: Table, dev: Table | None = None, **settings: Any
) -> Chooser: ...


@overload
def finetune(
    task: Literal["translate"],
    *,
    train: Table | Sequence[Path],
    dev: Table | Sequence[Path] | None = None,
    **settings: Any,
) -> Translator: ...


@overload
def finetune(
    task: Literal["summarize"],
    *,
    train: Table | Sequence[Path],
    dev: Table | Sequence[Path] | None = None,
    **settings: Any,
) -> AbstractiveSummarizer: ...


@overload
def finetune(
    task: str, *, train: Table, dev: Table | None = None, **settings: Any
) -> Predictor[Any, Any, Any] | Seq2SeqGenerator: ...


@ends_in_one_line
@takes_settings(FineTuneSettings, GridSearchSettings, *ALL_TASKS, *ALL_KINDS)
def finetune(
    task: str,
    *,
    train: Texts,
    dev: Texts | None = None,
    model: str | Path | None = None,
    output: str | Path | None = None,
    revision: str | None = None,
    on_step: OnEvent | None = None,
    on_evaluation: OnEvent | None = None,
    **settings: Any,
) -> Predictor[Any, Any, Any] | Seq2SeqGenerator:
    """Fine-tune an encoder for a task, as `bertkit finetune`, and return the model.

    Args:
        task: classify, regress, tag, answer, choose, extract, translate or summarize.
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
        settings: fields of `FineTuneSettings`, of the task's settings and of
            `GridSearchSettings`; to translate or summarize, those of `TranslateSettings` or
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
    if not isinstance(cast("object", task), str) or task not in {*TASKS, *KINDS}:
        known = ", ".join((*TASKS, *KINDS))
        raise SettingsError(f"there is no task {show(repr(task), 40)}; choose one of {known}")
    if task in KINDS:
        named = {"model": model, "revision": revision}
        settings |= {name: str(value) for name, value in named.items() if value is not None}
        with observe(on_step, on_evaluation):
            return _train_pairs(task, train, dev, output, settings)
    kinds = (TASKS[task].settings, GridSearchSettings, FineTuneSettings)
    task_settings, plan, chosen = build_each("finetune", settings, *kinds)
    name = str(model) if model is not None else str(find_bundled("vectors"))
    rows, held_out = (hold_rows(cast("Table | None", each)) for each in (train, dev))
    sources = Sources(task, name, cast("Table", rows), held_out, revision)
    place = choose_output(output, task)
    with observe(on_step, on_evaluation):
        if plan.is_single:
            result = run_finetune(sources, place, task_settings, chosen)
        else:
            result = run_search(sources, place, task_settings, chosen, plan)
    for warning in result.evaluation.warnings:
        announce(f"WARNING: {warning}")
    return PREDICTORS[task].load(place, device=chosen.device)


def _train_pairs(
    task: str, train: Texts, dev: Texts | None, output: str | Path | None, values: Mapping[str, Any]
) -> Seq2SeqGenerator:
    """Train a model that writes, and load it."""
    settings = build(KINDS[task].settings, values, "finetune")
    place = choose_output(output, task)
    pairs = PairFiles(_take_pairs(train), None if dev is None else _take_pairs(dev))
    train_seq2seq(pairs, place, settings)
    return WRITERS[task].load(place, device=settings.device)


def _take_pairs(given: Texts) -> Pairs:
    """Return the files of pairs, or rows that can be read more than once."""
    names = name_files(given)
    if names is not None:
        return tuple(map(Path, names))
    return list(given) if isinstance(given, tuple | Iterator) else cast("Table", given)
