"""`bertkit finetune <task>` and `bertkit <task>`: two commands for each task of `TASKS`."""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce, show_progress
from bertkit.base.settings import select
from bertkit.base.signals import stop_at_once
from bertkit.cli.next_step import choose_arguments, suggest
from bertkit.cli.output import describe_files, print_result
from bertkit.cli.texts import (
    NO_TEXT,
    TextFile,
    Words,
    choose_model,
    find_source,
    legible,
    list_problems,
    open_result,
    refuse_options,
)
from bertkit.data.file_parts import FilesSettings, check_is_single, is_folder
from bertkit.data.problems import append_problems
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.inference.settings import EngineSettings
from bertkit.jobs.settings import PredictSettings
from bertkit.recipes.finetune.settings import FineTuneSettings, SeedsSettings
from bertkit.reports.text import format_metric, show
from bertkit.tasks.classify import NamedZeroShot
from bertkit.tasks.classify.zero_shot import ZeroShot, read_zero_shot
from bertkit.tasks.labeled_table import check_columns, open_training_tables
from bertkit.tasks.paired_rows import PairedColumns
from bertkit.tasks.settings import PairedSettings, TaskSettings, choose_columns, with_columns
from bertkit.tasks.table import TASKS, TaskEntry

if TYPE_CHECKING:
    from bertkit.jobs.predict import AnsweredRow, Answers
    from bertkit.recipes.finetune.result import FineTuneResult

FINETUNE_DOCSTRING = """Train a model to {summary}

    Fine-tunes a pre-trained encoder, keeps the epoch that is best on held-out examples, and writes
    a folder with the model, a model card and a report. The same command resumes an interrupted run.

    **Examples**

        bertkit finetune {name} --train train{data} --dev dev{data} --output out/

        bertkit evaluate out/ test{data}

        bertkit finetune {name} --model bert/ --train train{data} --output seed1/ --seed 1

        bertkit finetune {name} --model bert/ --train train{data} --output best/ --seeds 5

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the model that comes with bertkit.
        train: Labeled examples: a file, a GLUE folder, or hub:owner/name.
        dev: Labeled examples that choose the best epoch; without it, a share of --train is held
            out. For a final test, use `bertkit evaluate`.
        output: Folder for the model.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
SHOWN_METRICS, SHOWN_COLUMNS = 12, 40
ZERO_SHOT_ADVICE = (
    "these labels were compared with the texts, not learned, and the percentages aren't calibrated:"
    " a start. `bertkit evaluate` measures a model that learns them from some labeled texts:"
    " `bertkit finetune classify --few-shot --train labeled.csv --output model/`"
)
# Panels of the help.
TASK = Group("Task", sort_key=2)
TRAINING = Group("Training", sort_key=3)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., None]:
        """Build a command when it is asked for, `<task>` or `finetune_<task>` (PEP 562)."""
        task = name.removeprefix("finetune_")
        if task not in TASKS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return (build_predict if task == name else build_command)(task, TASKS[task])


def build_command(name: str, entry: TaskEntry) -> Callable[..., None]:
    """Build `bertkit finetune <name>`; its flags follow from the task's settings."""
    task_kind: Any = entry.settings

    def finetune_task(
        *,
        model: str | None = None,
        train: str,
        dev: str | None = None,
        output: Path,
        task: Annotated[task_kind, Parameter(group=TASK)] = task_kind(),
        settings: Annotated[FineTuneSettings, Parameter(group=TRAINING)] = FineTuneSettings(),
        several: Annotated[SeedsSettings, Parameter(group=TRAINING)] = SeedsSettings(),
        revision: str | None = None,
        json: bool = False,
    ) -> None:
        require_torch(f"`bertkit finetune {name}`")
        named = {"train": train} if dev is None else {"train": train, "dev": dev}
        opened = open_training_tables(named, settings, task)  # before torch is loaded
        with stop_at_once(lambda: "stopped while loading; run the same command again"):
            from bertkit.recipes.finetune.run import Sources, finetune
            from bertkit.recipes.finetune.seeds import finetune_seeds

        data = (opened[0], opened[1] if len(opened) > 1 else None)
        sources = Sources(name, choose_model(model, "vectors"), *data, revision)
        if several.seeds == 1:
            result = finetune(sources, output, task, settings)
        else:
            result = finetune_seeds(sources, output, task, settings, several.seeds)
        facts = list_facts(result, "calibration")
        facts |= {name: getattr(result.saved, name) for name in ("cross_validated", "verdict")}
        if result.comparison is not None:
            facts["seeds"] = result.comparison.to_json()
        print_result(result, describe, json=json, facts=facts)
        if not json:
            given = choose_arguments(each.arguments for each in result.examples)
            words = name_next(name, output, given, opened[0], task)
            suggest(*words, json=not (given and words))

    finetune_task.__doc__ = FINETUNE_DOCSTRING.format(
        name=name,
        summary=entry.summary[0].lower() + entry.summary[1:],
        data=entry.example_data,
    )
    return finetune_task


def name_next(
    name: str, output: Path, given: Sequence[str], table: RecordTable, task: TaskSettings
) -> list[str | Path]:
    """Return a command that uses a model; that of passages on those of its training data.

    Empty if these are in no file.
    """
    if not isinstance(task, PairedSettings):
        return [name, output, *given]
    if not isinstance(table.path, Path):
        return []
    source: list[str | Path] = [
        table.path,
        "--text-column",
        PairedColumns.find(task, table).passage,
    ]
    if name == "rerank":
        return [name, output, *given, *source]
    return ["search", *given, "--model", output, "--corpus", *source]


def list_facts(result: Any, about_metrics: str) -> dict[str, Any]:
    """Return a result as JSON, with what the record says about its metrics."""
    told = {name: getattr(result.saved, name) for name in ("metrics", about_metrics, "warnings")}
    return {"output": result.output, **told}


def describe(result: "FineTuneResult") -> str:
    """Describe a fine-tuned model: the best step, its metrics, and warnings."""
    saved, comparison = result.saved, result.comparison
    metrics, calibration = saved.metrics, saved.calibration
    shown = ", ".join(
        f"{show(name, SHOWN_COLUMNS)} {format_metric(name, value, saved.intervals.get(name))}"
        for name, value in islice(metrics.items(), SHOWN_METRICS)
    )
    if len(metrics) > SHOWN_METRICS:  # one for each label
        shown += f" and {len(metrics) - SHOWN_METRICS:,} more in metrics.json"
    step = f"best after step {saved.best_step:,} of {saved.num_steps:,}"
    step = step if saved.num_steps else "solved"
    where = pluralize(saved.dev.num_examples, "held-out example")
    line = f"{result.output}: {step}; {where}: {shown}"
    compared = [] if comparison is None else [comparison.describe()]
    sure = [] if calibration is None else [calibration.describe()]
    warnings = [f"WARNING: {warning}" for warning in saved.warnings]
    estimated = [] if saved.cross_validated is None else [saved.cross_validated.describe()]
    return legible("\n".join((*compared, line, *estimated, *sure, *warnings, *saved.verdict_lines)))


DOCSTRING = """{summary}

    Takes a model of `bertkit finetune {name}`, or of another tool. Prediction n belongs to text n,
    or to row n of the file; a row that can't be read is an error. The file has texts, or records as
    for training, without labels; it may be hub:owner/name, and, where the output is a folder, a
    folder or glob.

    **Examples**

        bertkit {name} model/ {example}

        bertkit {name} model/ --file {file} --json

        bertkit {name} model/ --file {file} --output answers.csv

        bertkit {name} model/ --file rows/ --output answers/ --workers 2{further}

    Args:
        model: A folder of `bertkit finetune`, another tool's model for the task, or the id of a
            model of the Hub.
        words: {words}; - alone reads standard input.
        output: File for the rows of the input with their predictions: .csv, .tsv, .jsonl,
            .parquet or .xlsx; or a folder, for one file per input.
        json: Print one JSON object per prediction, with all scores.
    """


def build_predict(name: str, entry: TaskEntry) -> Callable[..., None]:
    """The command of a task: its flags follow from the task's inputs and columns."""
    inputs_kind: Any = entry.inputs
    as_flags = Parameter(show=bool(entry.inputs.model_fields))
    answers_kind: Any = entry.answers
    as_answers = Parameter(show=bool(entry.answers.model_fields))
    columns_kind: Any = choose_columns(entry.settings, has_labels=False)
    labels_kind: Any = entry.zero_shot
    as_labels = Parameter(show=bool(entry.zero_shot.model_fields))

    has_zero_shot = bool(entry.zero_shot.model_fields)
    first = Parameter(required=not has_zero_shot)  # a text where there are labels
    if has_zero_shot:
        first = Parameter(required=False, allow_leading_hyphen=True, validator=refuse_options)

    def predict(
        model: Annotated[str | None, first] = None,
        /,
        *words: Words,
        labels: Annotated[labels_kind, as_labels] = labels_kind(),
        inputs: Annotated[inputs_kind, as_flags] = inputs_kind(),
        file: TextFile = None,
        output: Path | None = None,
        answers: Annotated[answers_kind, as_answers] = answers_kind(),
        settings: PredictSettings = PredictSettings(),
        files: FilesSettings = FilesSettings(),
        columns: columns_kind = columns_kind(),
        loading: EngineSettings = EngineSettings(),
        json: bool = False,
    ) -> None:
        zero_shot = None
        if isinstance(labels, NamedZeroShot):
            model, words, zero_shot = take_labels(labels, model, words, file)
        assert model is not None, "it is required, or there are labels"
        source = find_source(words, file, has_other_inputs=inputs != inputs_kind())
        values = inputs.gather(words) if source is None else []
        if source is None and not values:
            raise InputError(NO_TEXT)
        from bertkit.checkpoints.hub import check_model

        check_model(model)
        if output is None:
            check_standard_output()
        table, are_many = None, output is not None and source is not None and is_folder(output)
        if source is not None and not are_many:  # before torch is loaded
            from bertkit.tasks.saved import open_for_model

            if zero_shot is None:
                table = open_for_model(model, source, settings, columns, split=settings.split)
            else:
                reading = select(RecordSettings, settings)
                table = open_records(source, reading, split=settings.split)
                task = with_columns(entry.settings(), columns)
                check_columns(task, table, needs_answer=False)
        from bertkit.data.writers import check_output
        from bertkit.jobs.predict import (
            PredictedFile,
            answer_file,
            answer_values,
            load_predictor,
            predict_files,
        )

        if are_many and output is not None and source is not None:
            named = columns.model_dump(exclude_unset=True)
            one = PredictedFile(name, model, loading, answers, settings, named, zero_shot)
            made = predict_files(one, [source], output, files)
            print_result(made, describe_files, json=json)
            return
        check_is_single(files)

        with open_result(
            output, "writing answers into", source, check_output, overwrite=settings.overwrite
        ) as place:
            predictor = load_predictor(model, name, loading, zero_shot).with_options(answers)
            if table is None:
                found = answer_values(predictor, values)
            else:
                found = answer_file(predictor, table, settings, columns)
            write_or_print(found, place, json=json)
        if zero_shot is not None and not json:
            announce(ZERO_SHOT_ADVICE)

    predict.__doc__ = DOCSTRING.format(
        name=name,
        summary=entry.summary,
        words=entry.inputs.words,
        example=entry.inputs.example,
        further=getattr(entry.zero_shot, "example", ""),
        file=entry.inputs.example_file,
    )
    return predict


def take_labels(
    labels: NamedZeroShot, model: str | None, words: Sequence[str], file: str | None
) -> tuple[str, tuple[str, ...], ZeroShot | None]:
    """Return the model, the texts, and the labels if there are some: then no word is a model."""
    texts = (*words,) if model is None else (model, *words)
    if labels.labels is None:
        if model is None or labels.model is not None:
            raise SettingsError(
                "name a fine-tuned model first, then texts; or give --labels, for which --model"
                " names an encoder"
            )
        if model.startswith("-"):
            raise SettingsError(f"there is no option {model}")
        if labels.template is not None:
            raise SettingsError("--template is for --labels; give both")
        return model, (*words,), None
    zero_shot = read_zero_shot(labels.labels, labels.template)
    return choose_model(labels.model, "vectors", texts, file), texts, zero_shot


def describe_answer(row: "AnsweredRow") -> str:
    """Return an answer and its text, and in lines below the words that decided."""
    shown, found = " ".join(row.example.shown.split()), row.prediction
    lines = [legible("\t".join(filter(None, (found.describe(), shown))))]
    has_colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for one in found.explanations:
        lines += [f"  {one.to_terminal()}"] if has_colors else []
        lines.append(legible(one.describe()))
    return "\n".join(lines)


def write_or_print(answers: "Answers", output: Path | None, *, json: bool) -> None:
    """Print predictions, each at once, or write them to a file, and announce problems."""
    from bertkit.data.writers import format_json
    from bertkit.jobs.predict import write_answers

    shows_results = answers.report is None or (output is None and sys.stdout.isatty())
    with show_progress("Predicting", None, is_hidden=shows_results) as progress:
        if output is not None:
            write_answers(answers, output, progress)
        for row in answers.read(progress) if output is None else ():
            line = format_json(answers.describe_json(row)) if json else describe_answer(row)
            sys.stdout.write(f"{line}\n")
    report = answers.report
    problems = list_problems(
        answers.counts,
        max_length=answers.task.settings.max_length,
        num_undecodable=0 if report is None else report.num_undecodable,
    )
    if report is not None or problems or output is not None:
        counts = answers.counts
        rate = counts.inputs / max(answers.elapsed_seconds, 1e-9)
        done = (
            f"{counts.inputs:,} answered, {pluralize(counts.tokens, 'token')}, {rate:,.0f}"
            " answers per second"
        )
        done = f"{output}: {done}" if output is not None else done
        announce(append_problems(done, problems))
