"""`bertkit <task>`: a fine-tuned model answers; one command for each task of `TASKS`."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.output import open_output
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, is_fed, legible
from bertkit.inference.engines.names import EngineName
from bertkit.tasks.column_settings import choose_columns
from bertkit.tasks.inputs import TaskInputs
from bertkit.tasks.table import TaskEntry

if TYPE_CHECKING:
    from bertkit.batch_jobs.predict.run import Answers
    from bertkit.inference.predictor import Predictor

ODDITIES = {
    "empty": "without a word",
    "truncated": "truncated to {max_length} tokens",
    "windowed": "read in windows of {max_length} tokens",
}
STANDARD_INPUT = "-"

DOCSTRING = """{summary}

    The model is one of `bertkit finetune {name}`, or another tool's. Prediction n belongs to
    text n, or to row n of the file; a row that can't be read is an error.

    **Examples**

        bertkit {name} model/ {example}

        bertkit {name} model/ --file {file} --json

        bertkit {name} model/ --file {file} --output answers.csv

    Args:
        model: A folder of `bertkit finetune`, another tool's model for the task, or the id of a
            model of the Hub.
        words: {words}; - reads standard input, by default a text a line.
        inputs: Other inputs.
        file: File of texts, or of records as for training, labels optional; or hub:owner/name.
        output: File for the predictions: .jsonl or .csv.
        settings: Settings.
        columns: Columns of the file.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: Inference engine; auto takes the fastest one that is installed.
        json: Print one JSON object per prediction, with all scores.
    """


def build_predict(name: str, entry: TaskEntry) -> Callable[..., None]:
    """The command of a task: its flags follow from the task's inputs and columns."""
    inputs_kind: Any = entry.inputs
    as_flags = Parameter(name="*", show=bool(entry.inputs.model_fields))
    columns_kind: Any = choose_columns(entry.settings)

    def predict(
        model: str,
        /,
        *words: Words,
        inputs: Annotated[inputs_kind, as_flags] = inputs_kind(),  # noqa: B008
        file: str | None = None,
        output: Path | None = None,
        settings: Annotated[PredictSettings, Parameter(name="*")] = PredictSettings(),  # noqa: B008
        columns: Annotated[columns_kind, Parameter(name="*")] = columns_kind(),  # noqa: B008
        device: str = "auto",
        revision: str | None = None,
        engine: EngineName = "auto",
        json: bool = False,
    ) -> None:
        if output is None:
            check_standard_output()
        values, source = find_inputs(words, inputs, file)
        if output is None and settings.overwrite:
            raise SettingsError("--overwrite needs --output")
        from bertkit.batch_jobs.predict.run import answer_file, answer_values
        from bertkit.inference.predictor import Predictor

        with hold(output, source, overwrite=settings.overwrite) as place:
            predictor: Predictor[Any, Any, Any] = Predictor.load(
                model, device=device, revision=revision, engine=engine
            )
            check_task(predictor, name, model)
            if source is None:
                answers = answer_values(predictor, values)
            else:
                answers = answer_file(predictor, source, settings, columns)
            give(answers, place, json=json)

    predict.__doc__ = DOCSTRING.format(
        name=name,
        summary=entry.summary,
        words=entry.inputs.words,
        example=entry.inputs.example,
        file=entry.inputs.example_file,
    )
    return predict


def hold(
    output: Path | None, source: str | None, *, overwrite: bool
) -> AbstractContextManager[Path | None]:
    """Hold the file for the answers, where there is to be one; errors as in `open_output`."""
    if output is None:
        return nullcontext()
    from bertkit.batch_jobs.predict.outputs import check_output

    return open_output(
        output,
        "writing answers into",
        inputs=() if source is None else (source,),
        check=partial(check_output, overwrite=overwrite),
    )


def find_inputs(
    words: tuple[str, ...], inputs: TaskInputs, file: str | None
) -> tuple[list[Any], str | None]:
    """What to answer: values, or a file to read, - being standard input.

    Raises:
        SettingsError: there are both.
        InputError: there is neither.
    """
    has_flags = inputs != type(inputs)()
    is_bare = not (words or has_flags) and is_fed()
    if file is None and (is_bare or words == (STANDARD_INPUT,)):
        words, file = (), STANDARD_INPUT
    if file is not None:
        if words or has_flags:
            raise SettingsError("give texts or a file, not both; - alone is standard input")
        return [], file
    values = inputs.gather(words)
    if not values:
        raise InputError("there is no input: give a text, --file, or - for standard input")
    return values, None


def check_task(predictor: "Predictor[Any, Any, Any]", name: str, model: str) -> None:
    """Refuse a model of another task.

    Raises:
        SettingsError: it is one.
    """
    task = predictor.task.name
    if task != name:
        raise SettingsError(f"{model} is a model for the task {task}; use `bertkit {task}`")


def give(answers: "Answers", output: Path | None, *, json: bool) -> None:
    """Print answers, or write them into a file, and tell what was odd."""
    from bertkit.batch_jobs.predict.run import write_answers

    is_watched = answers.report is None or (output is None and sys.stdout.isatty())
    with nullcontext() if is_watched else show_progress("Predicting", None) as progress:
        if output is not None:
            write_answers(answers, output, progress)
        else:
            print_answers(answers, progress, json=json)
    odd = list_warnings(answers)
    if answers.report is not None or odd or output is not None:
        counts = answers.counts
        rate = counts.inputs / max(answers.elapsed_seconds, 1e-9)
        done = (
            f"{counts.inputs:,} answered, {pluralize(counts.tokens, 'token')}, {rate:,.0f}"
            " answers a second"
        )
        done = f"{output}: {done}" if output is not None else done
        announce("; ".join((f"{done}, engine {answers.predictor.engine.name}", *odd)))


def print_answers(answers: "Answers", progress: ProgressBar | None, *, json: bool) -> None:
    """Print each answer when it is there."""
    from bertkit.batch_jobs.predict.outputs import format_json

    task = answers.task
    for example, prediction in answers.read(progress):
        if json:
            line = format_json(task.to_json(prediction))
        else:
            shown = " ".join(task.show(example).split())
            line = legible("\t".join(filter(None, (task.describe(prediction), shown))))
        sys.stdout.write(f"{line}\n")


def list_warnings(answers: "Answers") -> list[str]:
    """What was odd about the inputs, in words."""
    max_length = answers.task.settings.max_length
    odd = [
        f"{number:,} {words.format(max_length=max_length)}"
        for name, words in ODDITIES.items()
        if (number := getattr(answers.counts, name))
    ]
    if answers.report is not None and answers.report.num_undecodable:
        odd.append(
            f"{answers.report.num_undecodable:,} with bytes that aren't UTF-8, read as \ufffd"
        )
    return odd
