"""`bertkit inspect`: describe a checkpoint."""

import json as json_module
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.results import describe_metrics
from bertkit.cli.texts import printable
from bertkit.reports.text import show

if TYPE_CHECKING:
    from bertkit.inspection.description import ModelDescription

TITLE_WIDTH = 13  # columns
SHOWN_PROBLEMS = 20
SHOWN_LABELS = 12


def inspect(
    source: str,
    /,
    *,
    revision: str | None = None,
    hashes: bool = True,
    json: bool = False,
) -> None:
    """Describe a checkpoint: format, sizes, heads, parameters, labels, training, files, hashes.

    Takes what `bertkit convert` takes. A damaged checkpoint is described as far as it can be read,
    and its problems are listed.

    **Examples**

        bertkit inspect run/

        bertkit inspect google-bert/bert-base-uncased --revision main --no-hashes

        bertkit inspect uncased_L-12_H-768_A-12/ --json

    Args:
        source: A folder of any format, a run, or the id of a model of the Hub.
        revision: Branch, tag or commit of a model of the Hub.
        hashes: Compute the SHA-256 of each file.
        json: Print one JSON object.
    """
    check_standard_output()
    from bertkit.inspection.description import describe

    description = describe(source, revision=revision, hashes=hashes)
    if json:
        values = asdict(description) | {
            "folder": str(description.folder),
            "num_parameters": description.num_parameters,
        }
        print(json_module.dumps(values))
        return
    for title, text in _list_rows(description):
        print(f"{title:<{TITLE_WIDTH}}{printable(text)}")


def _list_rows(description: "ModelDescription") -> Iterator[tuple[str, str]]:
    """Yield the rows of the table."""
    yield "model", f"{description.architecture}, in {description.folder}"
    yield "format", description.format
    yield from _list_sizes(description)
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
        case = "uncased" if tokenizer["lowercase"] else "cased"
        yield "tokenizer", f"{tokenizer['entries']:,} entries, {case}"
    if description.sentences is not None:
        yield from _list_sentences(description.sentences)
    if description.training is not None:
        yield from _list_training(description.training)
    for number, file in enumerate(description.files):
        hashed = f"  {file.sha256}" if file.sha256 else ""
        yield "" if number else "files", f"{file.size_bytes:>13,}{hashed}  {file.name}"
    if description.dropped:
        yield "not weights", f"{', '.join(description.dropped)}: copies or buffers"
    problems = description.problems
    for number, problem in enumerate(problems[:SHOWN_PROBLEMS]):
        yield "" if number else "problems", problem
    if len(problems) > SHOWN_PROBLEMS:
        yield "", f"and {len(problems) - SHOWN_PROBLEMS:,} more; --json has all"


def _list_sizes(description: "ModelDescription") -> Iterator[tuple[str, str]]:
    if description.num_attention_heads is None:
        return
    config, num_heads = description.config, description.num_attention_heads
    if "encoder" in config:
        yield "encoder", _describe_sizes(config["encoder"])
        yield "decoder", _describe_sizes(config["decoder"])
        words = (
            "shared word embeddings" if config["shares_embeddings"] else "separate word embeddings"
        )
        norms = "before" if config["normalizes_first"] else "after"
        yield "joined", f"{words}, {config['positions']} positions, norms {norms} each part"
        yield (
            "attention",
            f"{pluralize(num_heads, 'head')}, including the decoder's self- and cross-attention",
        )
        return
    yield "sizes", _describe_sizes(config)
    yield (
        "attention",
        f"{pluralize(num_heads, 'head')} ({config['num_attention_heads']} in each layer)",
    )
    if config.get("is_decoder"):
        yield "reads", "left to right"


def _describe_sizes(config: dict[str, Any]) -> str:
    return (
        f"{pluralize(config['num_hidden_layers'], 'layer')}, hidden {config['hidden_size']},"
        f" feed-forward {config['intermediate_size']}, vocabulary {config['vocab_size']:,},"
        f" up to {pluralize(config['max_position_embeddings'], 'token')}"
    )


def _list_sentences(sentences: dict[str, Any]) -> Iterator[tuple[str, str]]:
    modules, length = ", ".join(sentences["modules"]), sentences["max_seq_length"]
    yield "sentences", f"{modules}; texts are cut at {pluralize(length, 'token')}"
    if sentences["prompts"]:
        yield "prompts", ", ".join(f"{name}: {text}" for name, text in sentences["prompts"].items())
    if sentences["similarity"]:
        yield "similarity", sentences["similarity"]


def _list_training(training: dict[str, Any]) -> Iterator[tuple[str, str]]:
    progress = (
        f"{training['steps']:,} of {training['of_steps']:,} steps, {training['tokens']:,}"
        f" tokens, {training['elapsed_seconds'] / 60:.1f} minutes"
    )
    yield "training", progress
    if start := training["settings"].get("start_from"):
        yield "started from", start
    if held_out := training["held_out"]:
        yield "held-out", describe_metrics(held_out)
