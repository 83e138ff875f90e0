"""`bertkit evaluate`: evaluate a model on labeled data, minimal pairs or held-out text."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.base.settings import Settings
from bertkit.cli.next_step import choose_arguments, find_free, repeat_flags, suggest
from bertkit.cli.output import print_result
from bertkit.cli.texts import describe_metrics, legible, open_result
from bertkit.inference.settings import EngineSettings
from bertkit.recipes.settings import EvaluateSettings
from bertkit.reports.text import format_metric, format_number
from bertkit.tasks.settings import choose_columns
from bertkit.tasks.table import TASKS

if TYPE_CHECKING:
    from bertkit.inference.text_scorer import PairAccuracy, PairsResult
    from bertkit.recipes.evaluate.held_out import HeldOutResult

COLUMNS: Any = choose_columns(*(entry.settings for entry in TASKS.values()))


def evaluate(
    model: str,
    data: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    minimal_pairs: Path | None = None,
    held_out: Path | None = None,
    output: Path | None = None,
    settings: EvaluateSettings = EvaluateSettings(),
    columns: COLUMNS = COLUMNS(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Evaluate a fine-tuned model on labeled data, or a pre-trained one on text.

    Prints the task's metrics with 95 % confidence intervals, the confusion matrix, the calibration,
    and the worst mistakes. Rows that can't be used are skipped and counted. A pre-trained model is
    evaluated without labels: by the share of minimal pairs whose acceptable sentence it finds
    likelier, or by the words that it predicts in held-out text.

    **Examples**

        bertkit evaluate sentiment/ test.csv

        bertkit evaluate sentiment/ reviews.jsonl --text-column body --label-column stars

        bertkit evaluate squad/ dev-v2.0.json --output squad-dev/

        bertkit evaluate run/ --minimal-pairs blimp.jsonl

        bertkit evaluate run/ --held-out shards/

    Args:
        model: A folder of `bertkit finetune`, a pre-trained model, another tool's model, or the id
            of a model of the Hub.
        data: A labeled file as for training, a GLUE folder, or hub:owner/name.
        minimal_pairs: A file with the columns sentence_good and sentence_bad, and perhaps
            linguistics_term and UID, as BLiMP has them.
        held_out: Folder of `bertkit prepare` with held-out text.
        output: Folder for a report, metrics.json, and the predictions as JSONL and for official
            scorers.
        json: Print one JSON object.
    """
    given = [place for place in (data, minimal_pairs, held_out) if place is not None]
    if len(given) != 1:
        raise SettingsError("give one of: labeled data, --minimal-pairs, --held-out")
    from bertkit.checkpoints.hub import check_model

    check_model(model)  # before torch is loaded
    if data is not None:
        evaluate_rows(model, data, output, settings, columns, loading, json=json)
        return
    if output is not None or settings.overwrite:
        raise SettingsError("--output and --overwrite are for labeled data; see --json")
    check_standard_output()
    if minimal_pairs is not None:
        from bertkit.inference.text_scorer import TextScorer, judge_pairs

        pairs = judge_pairs(TextScorer.load(model, loading), minimal_pairs, settings)
        facts = {name: value for name, value in vars(pairs).items() if name != "outcomes"}
        print_result(pairs, describe_pairs, json=json, facts=facts)
    if held_out is not None:
        from bertkit.recipes.evaluate.held_out import evaluate_held_out

        if (loading.engine, loading.precision) != ("auto", "auto"):
            raise SettingsError("--held-out is evaluated as in training: no engine, no precision")
        found = evaluate_held_out(model, held_out, loading.device, revision=loading.revision)
        print_result(found, describe_held_out, json=json)


def evaluate_rows(
    model: str,
    data: str,
    output: Path | None,
    settings: EvaluateSettings,
    columns: Settings,
    loading: EngineSettings,
    *,
    json: bool,
) -> None:
    """Evaluate a fine-tuned model on labeled data, and print the result or write its folder."""
    from bertkit.inference.predictor import Predictor
    from bertkit.recipes.evaluate.run import check_output, summarize, write_evaluation
    from bertkit.recipes.evaluate.run import evaluate as run
    from bertkit.recipes.evaluate.text import render

    overwrite = settings.overwrite
    with open_result(
        output, "evaluating into", data, check_output, overwrite=overwrite, is_workplace=True
    ) as place:
        load = partial(Predictor[Any, Any, Any].load, model, loading)
        result = run(load, data, settings, columns, model)
        for line in result.data_problems:
            announce(legible(line))
        if place is not None:
            write_evaluation(place, result)
            announce(f"{place}: wrote the report and the predictions")
    print_result(
        result,
        lambda result: "\n".join(map(legible, render(result))),
        json=json,
        facts=summarize(result),
    )
    engine = repeat_flags(loading, EngineSettings)
    if output is None:
        reading = [*repeat_flags(settings, EvaluateSettings), *repeat_flags(columns, COLUMNS)]
        words = ["evaluate", model, data, *reading, *engine, "--output"]
        suggest(*words, find_free(Path("evaluation")), json=json)
    else:
        given = choose_arguments(example.arguments for example in result.labeled.examples)
        suggest(result.task.name, model, *given, *engine, json=json or not given)


def describe_pairs(result: "PairsResult") -> str:
    """Describe the accuracy on minimal pairs in a table by phenomenon; announce problems."""
    for problem in result.problems:
        announce(legible(problem))
    width = max(map(len, ["all", *result.phenomena]))

    def describe_row(name: str, found: "PairAccuracy") -> str:
        return (
            f"{legible(name):<{width}} "
            f" {format_metric('accuracy', found.accuracy, found.interval):>22}"
            f"  {pluralize(found.num_pairs, 'pair'):>12}"
        )

    rows = [describe_row(name, found) for name, found in result.phenomena.items()]
    return "\n".join([*rows, describe_row("all", result.whole)])


def describe_held_out(result: "HeldOutResult") -> str:
    """Describe the metrics of held-out text."""
    counted = {
        "document": result.num_documents,
        "sequence": result.num_sequences,
        "predicted word": result.num_predicted,
    }
    counts = ", ".join(pluralize(number, noun) for noun, number in counted.items())
    (bits,) = (
        value for name, value in result.metrics.items() if name.endswith("_bits_per_character")
    )
    return (
        f"{counts}, up to {result.max_length} tokens at a time\n"
        f"{describe_metrics(result.metrics)}\n"
        f"{format_number(bits)} bits per character"
    )
