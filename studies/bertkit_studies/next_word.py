"""`bertkit next-word`: train a recurrent language model, and predict next words with it."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.base.signals import stop_at_once
from bertkit.cli.next_step import describe_next
from bertkit.cli.texts import Words, describe_metrics, gather_texts, open_input, printable
from bertkit.reports.text import format_percent
from bertkit_studies.baselines.settings import LanguageModelSettings

if TYPE_CHECKING:
    from bertkit_studies.baselines.run import RecurrentResult
    from bertkit_studies.recurrent.next_words import NextWord


def next_word(
    *texts: Words,
    data: Path | None = None,
    output: Path | None = None,
    top_k: Annotated[int, Parameter(validator=Number(gte=1))] = 5,
    settings: LanguageModelSettings = LanguageModelSettings(),
    json: bool = False,
) -> None:
    """Predict the next word of a text with a recurrent network, for comparison with a BERT.

    With --data and --output the network is trained; the same command resumes after Ctrl-C. Without
    them, the first argument is the folder of such a run, or of a left-to-right BERT
    (`bertkit pretrain --objective causal`). A word that the vocabulary splits is predicted by its
    first piece.

    **Examples**

        bertkit next-word --data shards/ --minutes 10 --output lstm/

        bertkit next-word lstm/ "She opened the" --top-k 10

    Args:
        texts: A run, and beginnings of texts; - reads standard input, one text per line.
        data: Folder that `bertkit prepare` wrote, to train on.
        output: Folder of the run to train.
        top_k: Number of words for each text.
        json: Print one JSON object per text, or of the training.
    """
    require_torch("`bertkit next-word`")
    if data is not None and output is not None and not texts:
        train(data, output, settings, json=json)
        return
    if data is not None or output is not None or settings != LanguageModelSettings():
        raise SettingsError("training needs --data and --output, and takes no texts")
    if not texts:
        raise SettingsError("name the folder of a run, and texts; or --data and --output to train")
    check_standard_output()
    predict(Path(texts[0]), texts[1:], top_k, json=json)


def train(data: Path, output: Path, settings: LanguageModelSettings, *, json: bool) -> None:
    """Train or resume a run, and print its result."""
    with stop_at_once(lambda: "stopped while loading; run the same command again"):
        from bertkit_studies.baselines.language_model import train_language_model

    result = train_language_model(data, output, settings)
    trial = describe_next("next-word", output, "She opened the")
    sys.stdout.write(describe_training(result, trial, json=json))


def describe_training(result: "RecurrentResult", trial: str, *, json: bool) -> str:
    """Format the result of a run, and a command to try the network with, as text or JSON."""
    if json:
        values = asdict(result) | {"checkpoint": str(result.checkpoint)}
        return json_module.dumps(values) + "\n"
    return (
        f"{pluralize(result.num_steps, 'step')}, {pluralize(result.num_tokens, 'token')},"
        f" {result.elapsed_seconds / 60:.1f} minutes."
        f" Held-out: {describe_metrics(result.metrics)}.\n"
        f"{trial}\n"
    )


def predict(run: Path, texts: Sequence[str], top_k: int, *, json: bool) -> None:
    """Print the next words of each text."""
    named = gather_texts(open_input(texts, None))
    from bertkit_studies.recurrent.next_words import load_predictor, predict_next_words

    net, tokenizer = load_predictor(run)
    for _, text, _ in named:
        words = predict_next_words(net, tokenizer, text, top_k)
        sys.stdout.write(describe(text, words, json=json))


def describe(text: str, words: "Sequence[NextWord]", *, json: bool) -> str:
    """Format a text's next words as text or JSON."""
    if json:
        values = {"text": text, "words": [asdict(word) for word in words]}
        return json_module.dumps(values, ensure_ascii=False) + "\n"
    lines = [f"  {format_percent(word.probability):>7} {printable(word.token)}" for word in words]
    return "".join(f"{line}\n" for line in (printable(text), *lines))
