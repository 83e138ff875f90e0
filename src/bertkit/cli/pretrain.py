"""Commands that pre-train: train-tokenizer, prepare, pretrain, report."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.addresses import show_address
from bertkit.base.errors import BertkitError, SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.base.parts import PartsSettings
from bertkit.base.signals import stop_at_once
from bertkit.cli.next_step import find_free, repeat_flags, suggest
from bertkit.cli.output import check_share, describe_missing, print_result
from bertkit.cli.texts import Words, describe_metrics, legible, open_in_browser
from bertkit.data.input_files import find_files, find_pattern
from bertkit.data.problems import WARNING, name_problem
from bertkit.data.sources import ReaderSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.settings import PrepareSettings, ReportSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings
from bertkit.reports.text import format_percent

if TYPE_CHECKING:
    from bertkit.recipes.prepare.run import PrepareResult
    from bertkit.recipes.pretrain.run import DryRun
    from bertkit.recipes.train_tokenizer import TrainTokenizerResult

MAX_NAMED = 3  # of more inputs, such as a shell makes of a glob, globs are suggested


def train_tokenizer(
    *inputs: Words,
    output: Path,
    settings: TrainTokenizerSettings = TrainTokenizerSettings(),
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Train a WordPiece vocabulary on text.

    The same text and settings give the same vocabulary, byte for byte. Memory doesn't grow with
    the text. `transformers.AutoTokenizer` loads the folder.

    **Examples**

        bertkit train-tokenizer books/*.txt.gz --vocab-size 30522 --output tokenizer/

        bertkit train-tokenizer articles.jsonl --no-lowercase --no-strip-accents --output cased/

    Args:
        inputs: Files, folders or globs; - for standard input.
        output: Folder to write.
        overwrite: Replace an existing output.
        json: Print the result as one JSON object.
    """
    from bertkit.recipes.train_tokenizer import summarize
    from bertkit.recipes.train_tokenizer import train_tokenizer as run

    result = run(inputs, output, settings, overwrite=overwrite)
    facts = {
        "output": output,
        "fingerprint": result.tokenizer.fingerprint,
        **summarize(result),
        "read_report": result.report.to_json(),
        "elapsed_seconds": result.elapsed_seconds,
    }
    print_result(result, partial(describe_vocabulary, settings), json=json, facts=facts)
    texts = inputs if len(inputs) <= MAX_NAMED else list_patterns(inputs)
    words = ["prepare", *texts, "--tokenizer", output, *repeat_flags(settings, ReaderSettings)]
    is_gone = "-" in inputs or not texts  # what was read there
    suggest(*words, "--output", find_free(output.parent / "shards"), json=json or is_gone)


def list_patterns(inputs: Sequence[str]) -> list[str]:
    """List globs of these files and no others; empty if there are none."""
    members: dict[str, set[Path]] = {}
    for name in inputs:
        members.setdefault(find_pattern(name), set()).add(Path(name))
    with suppress(BertkitError):
        for pattern, files in members.items():
            if pattern not in inputs and files != {path for path, _ in find_files(pattern)}:
                return []
        return sorted(members)
    return []


def describe_vocabulary(settings: TrainTokenizerSettings, result: "TrainTokenizerResult") -> str:
    """Describe a vocabulary, and what it lacks of what was asked for."""
    words, num_entries = result.word_counts, result.tokenizer.vocab_size
    summary = (
        f"{pluralize(num_entries, 'entry', 'entries')} from"
        f" {pluralize(words.num_words, 'word')} ({len(words.counts):,} distinct,"
        f" {words.num_characters:,} characters)"
        f" in {result.elapsed_seconds:.1f} s: {result.folder}"
    )
    lines = [summary]
    if num_entries < settings.vocab_size:
        lines.append(
            f"Fewer than the requested {settings.vocab_size:,}: no other pieces occur at least"
            f" {settings.min_frequency} times."
        )
    if words.num_forgotten:
        lines.append(
            f"{pluralize(words.num_forgotten, 'occurrence')} of rare words dropped to save memory."
        )
    return "\n".join(
        [*lines, *(name_problem("the input", line) for line in result.list_problems())]
    )


def prepare(
    *inputs: Words,
    tokenizer: str,
    output: Path,
    settings: PrepareSettings = PrepareSettings(),
    dev: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    parts: PartsSettings = PartsSettings(),
    overwrite: bool = False,
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Tokenize raw text into shards for pre-training.

    Reads plain text (one sentence or paragraph per line, a blank line between documents), JSONL,
    CSV, TSV, Parquet and MediaWiki dumps, plain or as .gz, .bz2 and .zst. The same command resumes
    interrupted work. The output is the same for any number of workers, of one machine or of many,
    byte for byte. Tasks of a scheduler such as Slurm run one --shard each, in any order; the one
    that finds no part missing finishes the shards, as does the same command without --shard.

    Some documents are held out, drawn by --held-out or named by --dev, to evaluate on what wasn't
    trained on. If the draw holds out none, as happens with few documents, the end of the text is.
    What --dev names isn't trained on, even if it is in a folder of the inputs.

    **Examples**

        bertkit prepare books/ reviews/ more.jsonl --tokenizer tokenizer/ --output shards/

        bertkit prepare books/ --dev books/emma.txt --tokenizer tokenizer/ --output s/

        bertkit prepare my-texts/ --tokenizer google-bert/bert-base-uncased --output my-domain/

        zcat text.gz | bertkit prepare - --tokenizer tokenizer/ --output shards/

        bertkit prepare books/ --tokenizer tokenizer/ --output shards/ --run-on ray

        bertkit prepare books/ --tokenizer tokenizer/ --output shards/ --shard 3/16

    Args:
        inputs: Files, folders or globs; - for standard input.
        tokenizer: Folder that `bertkit train-tokenizer` wrote, a model's folder, a vocab.txt, or
            the id of a model of the Hub.
        output: Folder for the shards.
        dev: Text to hold out; without it, a share of the documents (--held-out).
        overwrite: Replace an existing output.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.checkpoints.hub import resolve_tokenizer
    from bertkit.recipes.prepare.run import prepare as run
    from bertkit.recipes.prepare.run import prepare_share

    what = (inputs, resolve_tokenizer(tokenizer, revision=revision), output, settings)
    is_share = parts.shard is not None
    if is_share:
        check_share(parts, overwrite=overwrite)
        share = prepare_share(*what, parts, held_out_inputs=dev)
        if share.num_missing:
            counts = {"num_parts": share.num_units, "num_missing": share.num_missing}
            lines = partial(describe_missing, output, share.num_units)
            print_result(share.num_missing, lines, json=json, facts={"output": output, **counts})
            return
    result = run(*what, held_out_inputs=dev, workers=parts, overwrite=overwrite, waits=is_share)
    facts = result.manifest.model_dump(mode="json", exclude={"shards", "token_counts"})
    facts |= {"was_done": result.was_done, "elapsed_seconds": result.elapsed_seconds}
    print_result(result, partial(describe_shards, output), json=json, facts=facts)
    run_folder = find_free(output.parent / "run")
    suggest("pretrain", "--data", output, "--minutes", 10, "--output", run_folder, json=json)


def describe_shards(output: Path, result: "PrepareResult") -> str:
    """Describe what was prepared: its counts, its problems and the speed."""
    manifest = result.manifest
    lines = [
        f"{name:>8}: {pluralize(counts.documents, 'document'):>20}"
        f" {pluralize(counts.sentences, 'sentence'):>22}"
        f" {pluralize(counts.tokens, 'token'):>22}"
        for name, counts in (("train", manifest.train), ("held-out", manifest.held_out))
    ]
    lines += [line if line.startswith(WARNING) else f"    note: {line}" for line in result.report]
    text = f"{manifest.raw_bytes / 1e6:,.2f} MB of text"
    if result.was_done:
        return "\n".join([*lines, f"{show_address(output)} is already done: {text}"])
    rate = result.bytes_per_second / 1e6
    return "\n".join([*lines, f"{text} in {result.elapsed_seconds:,.1f} s, {rate:,.1f} MB/s"])


def pretrain(
    *,
    data: Path,
    output: Path | None = None,
    settings: PretrainSettings = PretrainSettings(),
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Pre-train a BERT on shards of `bertkit prepare`, from scratch or from a pre-trained model.

    With --objective causal, the model reads left to right and predicts the next word, so that
    `bertkit generate` can continue texts.

    Ctrl-C, SIGTERM and SIGHUP stop with a checkpoint; the same command resumes from it, bit for
    bit. Other settings in the same folder are refused, but the budget may grow.

    **Examples**

        bertkit pretrain --data shards/ --size mini --minutes 30 --output run/

        bertkit pretrain --data shards/ --size base --steps 100000 --dry-run

        bertkit pretrain --model google-bert/bert-base-uncased --data my-domain/ --output domain/

        bertkit pretrain --objective causal --data shards/ --output gpt/

    Args:
        data: Folder of shards that `bertkit prepare` wrote.
        output: Folder of the run; required unless --dry-run.
        dry_run: Measure time and memory of a few steps, print them, and write nothing.
        json: Print the result as one JSON object.
    """
    require_torch("`bertkit pretrain`")
    if dry_run:
        check_standard_output()
        from bertkit.recipes.pretrain.run import dry_run as measure

        name = settings.size or settings.model
        print_result(measure(data, settings), partial(describe_estimate, name), json=json)
        return
    if output is None:
        raise SettingsError("--output is missing: name a folder for the run")
    with stop_at_once(lambda: "stopped while loading; run the same command again"):
        from bertkit.data.shards import ShardSet
        from bertkit.recipes.pretrain.objective_report import find_report
        from bertkit.recipes.pretrain.run import pretrain as run

    result = run(data, output, settings)
    line = (
        f"{pluralize(result.num_steps, 'step')}, {pluralize(result.num_tokens, 'token')},"
        f" {result.elapsed_seconds / 60:.1f} minutes."
        f" Held-out: {describe_metrics(result.metrics)}."
    )
    print_result(line, str, json=json, facts=result)
    if json:
        return
    shards = None
    with suppress(BertkitError, OSError):  # they may be gone by now
        shards = ShardSet.open(data)
    command, text = find_report(result.objective).choose_trial(shards)
    suggest(*command.split(), show_address(output), text, json=json)


def describe_estimate(name: str | None, estimate: "DryRun") -> str:
    """Describe what a run will take."""
    pace, share, long = estimate.pace, "", ""
    if estimate.share_of_peak is not None:
        share = format_percent(estimate.share_of_peak)
        share = f", {share} of the speed of a matrix product on this machine"
    if estimate.long_pace is not None:
        long = f"a step with --long-length: {estimate.long_pace.step_seconds:.3f} s\n"
    return (
        f"{name}: {estimate.num_parameters:,} parameters on {estimate.device},"
        f" {estimate.precision}\n"
        f"a step: {pace.step_seconds:.3f} s, {pace.tokens_per_step:,.0f} tokens"
        f" ({pace.tokens_per_step / pace.step_seconds:,.0f} tokens/s{share})\n"
        f"{long}an evaluation: {pace.evaluation_seconds:.1f} s\n"
        f"memory: {pace.peak_memory_bytes / 1e9:.2f} GB at peak so far\n"
        f"the run: {pluralize(estimate.num_steps, 'step')}, about {estimate.seconds / 60:,.1f}"
        " minutes"
    )


def report(
    run: Path,
    /,
    *others: Path,
    output: Path | None = None,
    settings: ReportSettings = ReportSettings(),
    open_page: Annotated[bool, Parameter(name="--open", negative=())] = False,
    json: bool = False,
) -> None:
    """Write a report of a run: curves, speed, spikes, settings, machine, examples and next steps.

    Takes output folders of `bertkit pretrain`, `finetune` and `demo`, also of runs in progress,
    which aren't changed. For several runs, curves share axes, and a table lists the settings that
    differ. Of a pre-training run, the newest checkpoint fills blanks of the held-out text, or
    continues it; the shards are those beside the run, or --data. The page needs no network.

    **Examples**

        bertkit report run/ --open

        bertkit report run/ --text "The capital is [MASK]." --output run.html

        bertkit report run-a/ run-b/ run-c/ --output comparison.html

    Args:
        run: The folder of a run, of a fine-tuned model, or of a demo.
        others: More runs of the same kind, to compare.
        output: File for the page; by default report.html in the run, or for several runs
            comparison.html in the current folder.
        open_page: Show the page in the browser.
        json: Print the figures of the runs as one JSON object.
    """
    require_torch("`bertkit report`")
    from bertkit.recipes.report.page import summarize
    from bertkit.recipes.report.run import report as write
    from bertkit.recipes.report.run import summarize_run

    result = write((run, *others), output, settings)
    if open_page:
        open_in_browser(result.report)
    facts = {"report": result.report, "runs": [summarize_run(facts) for facts in result.runs]}
    lines = [f"{facts.path}: {summarize(facts)}" for facts in result.runs]
    lines.append(f"Report: {result.report.resolve()}")
    print_result("\n".join(lines), legible, json=json, facts=facts)
