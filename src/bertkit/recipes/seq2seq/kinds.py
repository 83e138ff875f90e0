"""A table of the seq2seq tasks, translation and summarization; doesn't import torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bertkit.decoding.settings import DecodingSettings
from bertkit.recipes.seq2seq.settings import (
    Seq2SeqSettings,
    SummarizeSettings,
    TranslateSettings,
)

Measure = Callable[[Sequence[str], Sequence[str]], dict[str, float]]


TRANSLATE_HELP = """Train a translation model on parallel text.

    Trains an encoder and a decoder, from scratch or from an encoder's weights, and writes a folder
    with the model, a model card and a report. Without a budget it takes at most about 50 minutes,
    or as long as it takes to translate all held-out pairs. The same command resumes an interrupted
    run.

    **Examples**

        bertkit finetune translate --train train.de train.en --dev val.de val.en --output de-en/

        bertkit finetune translate --train a.tsv --source-column de --target-column en --output m/

        bertkit finetune translate --model M --train train.de train.en --output warm/ --minutes 20

    Args:
        train: Two files, line n of one belonging to line n of the other, or one with a column for
            each side; also .gz, .bz2 or .zst.
        dev: The same of held-out pairs; without it, a share of the training pairs is held out.
        output: Folder for the model.
        settings: Settings.
        json: Print the result as one JSON object.
    """
SUMMARIZE_HELP = """Train a summarization model on texts with reference summaries.

    Trains an encoder and a decoder, from scratch or from an encoder's weights, and writes a folder
    with the model, a model card and a report. The same command resumes an interrupted run.
    `bertkit summarize` with any encoder extracts sentences without training.

    **Examples**

        bertkit finetune summarize --model M --train articles.jsonl --output summaries/

        bertkit finetune summarize --train train.jsonl --dev dev.jsonl --output five/ --epochs 5

        bertkit finetune summarize --train a.csv --source-column article --output table/

    Args:
        train: One file with a column for each side, or two files, line n of one belonging to line
            n of the other; also .gz, .bz2 or .zst.
        dev: The same of held-out pairs; without it, a share of the training pairs is held out.
        output: Folder for the model.
        settings: Settings.
        json: Print the result as one JSON object.
    """


@dataclass(frozen=True)
class Kind:
    """A kind of seq2seq task.

    Attributes:
        settings: class of its training settings.
        summary: description in a sentence.
        metric: the metric that selects the best step.
        measure: address (`module:name`) of the function that scores hypotheses.
        signatures: address of the function that describes how the metrics were computed.
        decoding: the model's default decoding settings.
        pipeline_tag: the task's name on the Hub.
        file_words: command-line arguments, after the model's name, that read a file.
        help: help text of the command that trains it.
    """

    settings: type[Seq2SeqSettings]
    summary: str
    metric: str
    measure: str
    signatures: str
    decoding: DecodingSettings
    pipeline_tag: str
    file_words: str
    help: str

    def load_measure(self) -> Measure:
        """Import the function at `measure`."""
        found: Measure = load_address(self.measure)
        return found


def load_address(address: str) -> Callable[..., Any]:
    """Import the function at `module:name`."""
    module, _, name = address.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


KINDS = {
    "translate": Kind(
        settings=TranslateSettings,
        summary="Translate a text.",
        metric="bleu",
        measure="bertkit.metrics.translation:measure_translation",
        signatures="bertkit.metrics.translation:signatures",
        decoding=DecodingSettings(beams=5),
        pipeline_tag="translation",
        file_words="--file texts.txt",
        help=TRANSLATE_HELP,
    ),
    "summarize": Kind(
        settings=SummarizeSettings,
        summary="Summarize a text.",
        metric="rougeL",
        measure="bertkit.metrics.summaries:measure_summaries",
        signatures="bertkit.metrics.summaries:signatures",
        decoding=DecodingSettings(beams=4, no_repeat_ngram=3),
        pipeline_tag="summarization",
        file_words="article.txt",
        help=SUMMARIZE_HELP,
    ),
}
