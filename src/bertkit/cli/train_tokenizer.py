"""`bertkit train-tokenizer`: train a vocabulary on raw text."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.wording import pluralize
from bertkit.cli.texts import Words
from bertkit.recipes.train_tokenizer.settings import TrainTokenizerSettings

if TYPE_CHECKING:
    from bertkit.recipes.train_tokenizer.run import TrainTokenizerResult


def train_tokenizer(
    *inputs: Words,
    output: Path,
    settings: Annotated[TrainTokenizerSettings, Parameter(name="*")] = TrainTokenizerSettings(),  # noqa: B008
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
        settings: The settings of the command.
        overwrite: Replace an older tokenizer in that folder.
        json: Print the result as one JSON object.
    """
    from bertkit.recipes.train_tokenizer.run import summarize
    from bertkit.recipes.train_tokenizer.run import train_tokenizer as run

    result = run(inputs, output, settings, overwrite=overwrite)
    if json:
        facts = {
            "output": str(output),
            "fingerprint": result.tokenizer.fingerprint,
            **summarize(result),
            "read_report": result.report.model_dump(mode="json"),
            "elapsed_seconds": result.elapsed_seconds,
        }
        print(json_module.dumps(facts))
        return
    print("\n".join(describe_result(result, settings)))


def describe_result(result: "TrainTokenizerResult", settings: TrainTokenizerSettings) -> list[str]:
    """List the lines of the summary."""
    words, num_entries = result.word_counts, result.tokenizer.vocab_size
    summary = (
        f"{pluralize(num_entries, 'entry', 'entries')} from"
        f" {pluralize(words.num_words, 'word')} ({len(words.counts):,} distinct,"
        f" {words.num_characters / 1e6:,.1f} million characters)"
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
            f"{pluralize(words.num_forgotten, 'occurrence')} of rare words dropped to stay within"
            f" {settings.max_distinct_words:,} distinct words."
        )
    return lines + [f"In the input: {line}" for line in result.report.summary_lines()]
