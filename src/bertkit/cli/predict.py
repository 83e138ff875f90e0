"""`bertkit <task>`: predict with a fine-tuned model; one command for each task of `TASKS`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.cli.results import list_problems, open_result
from bertkit.cli.texts import NO_TEXT, Words, find_source, legible
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.tasks.column_settings import choose_columns
from bertkit.tasks.table import TaskEntry

if TYPE_CHECKING:
    from bertkit.batch_jobs.predict.run import Answers

PROBLEMS = {
    "empty": "empty",
    "truncated": "truncated to {max_length} tokens",
    "windowed": "split into windows of {max_length} tokens",
}

DOCSTRING = """{summary}

    Takes a model of `bertkit finetune {name}`, or of another tool. Prediction n belongs to text n,
    or to row n of the file; a row that can't be read is an error.

    **Examples**

        bertkit {name} model/ {example}

        bertkit {name} model/ --file {file} --json

        bertkit {name} model/ --file {file} --output answers.csv

    Args:
        model: A folder of `bertkit finetune`, another tool's model for the task, or the id of a
            model of the Hub.
        words: {words}; - reads standard input, by default one text per line.
        inputs: Further inputs.
        file: File of texts, or of records as for training (labels aren't needed); or
            hub:owner/name.
        output: File for the rows of the input with their predictions: .csv, .tsv, .jsonl or
            .parquet.
        settings: The settings of the command.
        answers: What a prediction gives.
        columns: Names of the columns.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: The inference engine; auto uses the fastest that is installed.
        precision: Precision of matrix products: auto takes bf16 where it was measured to be
            faster, else fp32; int8 is faster on processors with VNNI, and less exact.
        json: Print one JSON object per prediction, with all scores.
    """


def build_predict(name: str, entry: TaskEntry) -> Callable[..., None]:
    """The command of a task: its flags follow from the task's inputs and columns."""
    inputs_kind: Any = entry.inputs
    as_flags = Parameter(name="*", show=bool(entry.inputs.model_fields))
    answers_kind: Any = entry.answers
    as_answers = Parameter(name="*", show=bool(entry.answers.model_fields))
    columns_kind: Any = choose_columns(entry.settings)

    def predict(
        model: str,
        /,
        *words: Words,
        inputs: Annotated[inputs_kind, as_flags] = inputs_kind(),  # noqa: B008
        file: str | None = None,
        output: Path | None = None,
        answers: Annotated[answers_kind, as_answers] = answers_kind(),  # noqa: B008
        settings: Annotated[PredictSettings, Parameter(name="*")] = PredictSettings(),  # noqa: B008
        columns: Annotated[columns_kind, Parameter(name="*")] = columns_kind(),  # noqa: B008
        device: str = "auto",
        revision: str | None = None,
        engine: EngineName = "auto",
        precision: PrecisionName = "auto",
        json: bool = False,
    ) -> None:
        source = find_source(words, file, has_other_inputs=inputs != inputs_kind())
        values = inputs.gather(words) if source is None else []
        if source is None and not values:
            raise InputError(NO_TEXT)
        from bertkit.batch_jobs.predict.outputs import check_output
        from bertkit.batch_jobs.predict.run import answer_file, answer_values
        from bertkit.inference.predictor import Predictor

        with open_result(
            output, "writing answers into", source, check_output, overwrite=settings.overwrite
        ) as place:
            predictor: Predictor[Any, Any, Any] = Predictor.load(
                model, device=device, revision=revision, engine=engine, precision=precision
            )
            if (task := predictor.task.name) != name:
                raise SettingsError(f"{model} is a model for the task {task}; use `bertkit {task}`")
            predictor = predictor.giving(answers)
            if source is None:
                found = answer_values(predictor, values)
            else:
                found = answer_file(predictor, source, settings, columns)
            give(found, place, json=json)

    predict.__doc__ = DOCSTRING.format(
        name=name,
        summary=entry.summary,
        words=entry.inputs.words,
        example=entry.inputs.example,
        file=entry.inputs.example_file,
    )
    return predict


def give(answers: "Answers", output: Path | None, *, json: bool) -> None:
    """Print predictions or write them to a file, and announce problems of the inputs."""
    from bertkit.batch_jobs.predict.run import write_answers

    shows_results = answers.report is None or (output is None and sys.stdout.isatty())
    with show_progress("Predicting", None, is_hidden=shows_results) as progress:
        if output is not None:
            write_answers(answers, output, progress)
        else:
            print_answers(answers, progress, json=json)
    report = answers.report
    problems = list_problems(
        answers.counts,
        PROBLEMS,
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
        announce("; ".join((done, *problems)))


def print_answers(answers: "Answers", progress: ProgressBar, *, json: bool) -> None:
    """Print each prediction as soon as it is computed."""
    from bertkit.batch_jobs.predict.outputs import format_json

    task = answers.task
    for row in answers.read(progress):
        if json:
            line = format_json(answers.describe_json(row))
        else:
            shown = " ".join(task.show(row.example).split())
            line = legible("\t".join(filter(None, (task.describe(row.prediction), shown))))
        sys.stdout.write(f"{line}\n")
