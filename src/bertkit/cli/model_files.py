"""Commands of a model's files: inspect, convert, export; and devices."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.cli.next_step import suggest
from bertkit.cli.output import print_result
from bertkit.cli.texts import describe_metrics, legible, printable
from bertkit.jobs.settings import ConvertSettings, ExportSettings
from bertkit.reports.text import format_percent, show
from bertkit.tasks.objectives.settings import ObjectiveSettings

if TYPE_CHECKING:
    from bertkit.jobs.convert import WrittenFolder
    from bertkit.jobs.inspect import ModelDescription
    from bertkit.tasks.objectives.shown_examples import ShownExamples
    from bertkit.training.device_report import DeviceReport

EXAMPLES = Group("Training examples", sort_key=2)
TEXT_WIDTH = 100  # columns
WRAPPED: dict[str, Any] = {"subsequent_indent": "     ", "break_on_hyphens": False}
TITLE_WIDTH = 13  # columns
SHOWN_PROBLEMS = 20
SHOWN_LABELS = 12


def inspect(
    source: str,
    /,
    *,
    revision: str | None = None,
    examples: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    seed: Annotated[int | None, Parameter(validator=Number(gte=0), group=EXAMPLES)] = None,
    settings: Annotated[ObjectiveSettings, Parameter(group=EXAMPLES)] = ObjectiveSettings(),
    json: bool = False,
) -> None:
    """Describe a checkpoint: format, sizes, heads, parameters, labels, training, files, hashes.

    Takes what `bertkit convert` takes. A damaged checkpoint is described as far as it can be read,
    and its problems are listed. With --examples, shows what pre-training learns from prepared text:
    pairs of sentences, and the words that the model predicts, as `input→target`. With the same seed
    and settings, `bertkit pretrain` begins with them.

    **Examples**

        bertkit inspect run/

        bertkit inspect google-bert/bert-base-uncased --revision main

        bertkit inspect uncased_L-12_H-768_A-12/ --json

        bertkit inspect shards/ --examples 3

    Args:
        source: A folder of any format, a run, or the id of a model of the Hub; with --examples, a
            folder that `bertkit prepare` wrote.
        revision: Branch, tag or commit of a model of the Hub.
        examples: Number of examples to show.
        seed: Seed of all random choices.
        json: Print one JSON object.
    """
    check_standard_output()
    if examples is not None:
        from bertkit.tasks.objectives.shown_examples import show_examples

        shown = show_examples(Path(source), examples, settings, seed or 0)
        print_result(shown, lambda shown: "\n".join(_list_examples(shown)), json=json)
        return
    if given := [*sorted(settings.model_fields_set), *([] if seed is None else ["seed"])]:
        raise SettingsError(f"{given[0]} is of examples; give --examples as well")
    from bertkit.jobs.inspect import describe

    description = describe(source, revision=revision)
    facts = asdict(description) | {"num_parameters": description.num_parameters}
    rows = (f"{title:<{TITLE_WIDTH}}{printable(text)}" for title, text in _list_rows(description))
    print_result(rows, "\n".join, json=json, facts=facts)


def _list_examples(shown: "ShownExamples") -> Iterator[str]:
    """Yield training examples, and counts of all that were looked at."""
    for number, example in enumerate(shown.examples, start=1):
        yield f"example {number}{f': {example.relation}' if example.relation else ''}"
        for name, segment in zip("AB", example.segments, strict=True):
            words = [text if label is None else f"{text}→{label}" for text, label in segment]
            text = printable(" ".join(words))
            yield textwrap.fill(text, TEXT_WIDTH, initial_indent=f"  {name}  ", **WRAPPED)
    counts = shown.counts
    sizes = f"{pluralize(counts.examples, 'example')}, {pluralize(counts.tokens, 'token')}"
    share = format_percent(counts.chosen / max(1, counts.tokens))
    yield f"{sizes}; {counts.chosen:,} chosen ({share}):"
    chosen = {"[MASK]": counts.masked, "random word": counts.random, "unchanged": counts.kept}
    for name, number in chosen.items():
        yield f"  {name:<12}{number:>7,}  {format_percent(number / max(1, counts.chosen)):>7}"
    for name, number in counts.relations.items():
        yield f"  {name:<12}{number:>7,}  {format_percent(number / counts.examples):>7}"


def _list_rows(description: "ModelDescription") -> Iterator[tuple[str, str]]:
    """Yield the rows of the table."""
    yield "model", f"{description.architecture}, in {description.folder}"
    yield "format", description.format
    yield from description.list_sizes()
    yield "heads", ", ".join(description.heads) or "none"
    if labels := description.labels:
        more = f" and {len(labels) - SHOWN_LABELS:,} more" if len(labels) > SHOWN_LABELS else ""
        yield "labels", f"{len(labels):,}: {', '.join(map(show, labels[:SHOWN_LABELS]))}{more}"
    for part, number in description.parameters.items():
        yield "", f"{number:>13,}  {part}"
    yield "parameters", f"{description.num_parameters:>13,}"
    if description.dtypes:
        yield "tensors", ", ".join(f"{name} ({n:,})" for name, n in description.dtypes.items())
    if (tokenizer := description.tokenizer) is not None:
        case = "uncased" if tokenizer.get("lowercase") else "cased"
        case = tokenizer.get("algorithm", case)
        yield "tokenizer", f"{tokenizer['entries']:,} entries, {case}"
    if (sentences := description.sentences) is not None:
        modules, length = ", ".join(sentences["modules"]), sentences["max_seq_length"]
        yield "sentences", f"{modules}; texts are cut at {pluralize(length, 'token')}"
        if prompts := sentences["prompts"]:
            yield "prompts", ", ".join(f"{name}: {text}" for name, text in prompts.items())
        if sentences["similarity"]:
            yield "similarity", sentences["similarity"]
    if (training := description.training) is not None:
        steps = f"{training['steps']:,} of {training['of_steps']:,} steps"
        minutes = f"{training['elapsed_seconds'] / 60:.1f} minutes"
        yield "training", f"{steps}, {training['tokens']:,} tokens, {minutes}"
        if start := training["settings"].get("model"):
            yield "started from", start
        if held_out := training["held_out"]:
            yield "held-out", describe_metrics(held_out)
    for number, file in enumerate(description.files):
        yield "" if number else "files", f"{file.size_bytes:>13,}  {file.sha256}  {file.name}"
    if description.dropped:
        yield "not weights", f"{', '.join(description.dropped)}: copies or buffers"
    problems = description.problems
    for number, problem in enumerate(problems[:SHOWN_PROBLEMS]):
        yield "" if number else "problems", problem
    if len(problems) > SHOWN_PROBLEMS:
        yield "", f"and {len(problems) - SHOWN_PROBLEMS:,} more; --json has all"


def convert(
    source: str,
    output: Path,
    /,
    *,
    settings: ConvertSettings = ConvertSettings(),
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Convert a checkpoint of any format into a Hugging Face folder, with all its heads.

    Reads Hugging Face folders (safetensors or .bin, single or sharded), Google's TensorFlow
    checkpoints, sentence-transformers folders, runs of `bertkit pretrain`, and models of the Hub.

    **Examples**

        bertkit convert uncased_L-12_H-768_A-12/ bert-base/

        bertkit convert old-model/ new-model/ --dtype bfloat16

        bertkit convert google-bert/bert-base-uncased bert-base/ --revision main

    Args:
        source: A folder of any format, a run, or the id of a model of the Hub.
        output: A new folder to write.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.jobs.convert import convert as run

    result = run(source, output, settings, revision=revision)
    heads, dtypes = ", ".join(result.heads) or "no heads", " and ".join(result.dtypes)
    lines = [f"{result.architecture} ({heads}), {result.num_parameters:,} parameters as {dtypes},"]
    if dropped := ", ".join(result.dropped):
        lines.append(f"dropped, because they are copies or not weights: {dropped}")
    _print_folder(result, lines, json=json)
    suggest("inspect", output, json=json)


def _print_folder(result: "WrittenFolder", lines: Sequence[str], *, json: bool) -> None:
    """Print what a written folder has; the first of the lines goes on with its size."""

    def describe(result: "WrittenFolder") -> str:
        size = f"{pluralize(len(result.files), 'file')}, {result.size_bytes / 1e6:,.1f} MB"
        notes = (f"note: {note}" for note in result.notes)
        return "\n".join([f"{result.folder}: {lines[0]} {size}", *lines[1:], *notes])

    files = {
        name: {"size_bytes": record.size_bytes, "sha256": record.sha256}
        for name, record in result.files.items()
    }
    print_result(result, describe, json=json, facts=vars(result) | {"files": files})


def export(
    model: str,
    /,
    *,
    output: Path,
    settings: ExportSettings = ExportSettings(),
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Export a model as ONNX, with its heads and its tokenizer.

    ONNX Runtime and other programs run the file without bertkit. The folder is also a model folder
    of bertkit: every command that takes the model takes it.

    **Examples**

        bertkit export sentence-transformers/all-MiniLM-L6-v2 --output minilm-onnx/

        bertkit export sentiment/ --precision int8 --output sentiment-int8/

        bertkit export run/ --encoder-only --output encoder-onnx/ --json

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        output: A new folder to write.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.jobs.export import export as run

    result = run(model, output, settings, revision=revision)
    line = f"{result.target}, {settings.precision}; outputs {', '.join(result.outputs)};"
    _print_folder(result, [line], json=json)
    suggest("inspect", output, json=json)


def devices(*, json: bool = False) -> None:
    """List the processor and the GPUs, with measured speeds of matrix products.

    Shows the device and the precision that auto stands for in --device and --precision, which
    depends on the kind of processor or GPU alone; if the measured speeds contradict it, a line says
    so. Takes a second for each device. Without PyTorch, nothing is measured.

    **Examples**

        bertkit devices

        bertkit devices --json

    Args:
        json: Print one JSON object per device.
    """
    check_standard_output()
    from bertkit.training.device_report import describe_devices

    for report in describe_devices():
        print_result(report, describe_device, json=json)


def describe_device(report: "DeviceReport") -> str:
    """Format a device as lines of text."""
    threads = f", {pluralize(report.num_threads, 'thread')}" if report.num_threads else ""
    features = ", ".join(report.features) or "no instructions for bf16 or int8"
    lines = [f"{report.device}{' (default)' if report.is_default else ''}: {legible(report.model)}"]
    lines.append(f"  {features}{threads}")
    jobs = {"inference": report.inference_precision, "training": report.training_precision}
    if report.training_size:
        jobs[f"training, hidden size ≥ {report.training_size}"] = jobs.pop("training")
        jobs["training of smaller models"] = "fp32"
    for precision in ("fp32", "bf16"):
        taken = " and ".join(job for job, chosen in jobs.items() if chosen == precision)
        remark = f"  --precision auto for {taken}" if taken else ""
        rate = report.operations_per_second.get(precision)
        speed = "" if rate is None else f"  {rate / 1e9:8,.0f} GFLOP/s"
        if speed or taken:
            lines.append(f"  {precision}{speed}{remark}")
    if report.doubt:
        lines.append(f"  {report.doubt}")
    return "\n".join(lines)
