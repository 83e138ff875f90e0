"""Commands of models that predict or score words: fill-mask, generate, score."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import print_result
from bertkit.cli.texts import (
    NamedModel,
    Words,
    find_size,
    gather_texts,
    legible,
    printable,
    stream_results,
    take_model,
)
from bertkit.data.problems import announce_unknown
from bertkit.decoders.decoding.settings import check_seed
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.inference.settings import EngineSettings, FillOptions, LoadingSettings
from bertkit.reports.text import format_percent, shorten

if TYPE_CHECKING:
    from bertkit.decoders.generation.generator import ContinuedText, Generator
    from bertkit.inference.fill_mask import FilledText
    from bertkit.inference.text_scorer import TextScore


def fill_mask(
    *texts: Words,
    model: NamedModel = None,
    file: Path | None = None,
    options: FillOptions = FillOptions(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Predict the most probable words for each [MASK] of a text.

    **Examples**

        bertkit fill-mask "The doctor ran to see [MASK] patient." --top-k 5

        bertkit fill-mask run/ "She opened the [MASK]."

        bertkit fill-mask run/ "He took [MASK] hat." --targets his --targets her

        bertkit fill-mask run/ --file texts.txt --json

        bertkit fill-mask google-bert/bert-base-uncased "Paris is the [MASK] of France."

    Args:
        texts: Texts with at least one [MASK] each; the first argument may be the model; - reads
            standard input, one text per line.
        file: File with one text per line, of any length.
        json: Print one JSON object per text.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.fill_mask import FillMask
    from bertkit.inference.stream import TextCounts

    fill = FillMask.load(model, loading).with_options(options)
    size, is_watched = find_size(texts, file), sys.stdout.isatty()
    counts = TextCounts()
    found = stream_results(fill, named, "Filling", size, is_hidden=is_watched, counts=counts)
    for result in found:
        print_result(result, describe_blanks, json=json)
    announce_unknown(counts.unknown_tokens, counts.text_tokens)


def describe_blanks(result: "FilledText") -> str:
    """Describe the words of each [MASK]."""
    lines = [result.text]
    for number, candidates in enumerate(result.blanks, start=1):
        if len(result.blanks) > 1:
            lines.append(f"  blank {number}")
        lines += [
            f"  {format_percent(one.probability):>7} {printable(one.token)}" for one in candidates
        ]
    return "\n".join(lines)


def generate(
    model: str,
    /,
    *prompts: Words,
    file: Path | None = None,
    settings: GeneratorSettings = GeneratorSettings(),
    stream: bool | None = None,
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Continue a text with a left-to-right model.

    Uses greedy search by default, beam search with --beams, and sampling with --sample. Generation
    ends at the end token, or after --max-tokens.

    **Examples**

        bertkit generate gpt/ "The cats are very active and fast, they have strong" --max-tokens 20

        bertkit generate gpt/ "She opened the door" --sample --top-p 0.9 --num-answers 3 --seed 7

        bertkit generate gpt/ "It was" --beams 4 --no-repeat-ngram 3

        bertkit generate gpt/ --file beginnings.txt --json

        bertkit generate gpt/ ""

    Args:
        model: A run of `bertkit pretrain --objective causal`, its model folder, or the id of such a
            model of the Hub.
        prompts: Texts to continue; an empty one starts from nothing; - reads standard input, one
            text per line.
        file: File with one text per line.
        stream: Print tokens as they are generated; by default in a terminal, for one text and one
            answer without beams.
        json: Print one JSON object per text.
    """
    check_standard_output()
    is_single = len(prompts) == 1 and prompts[0] != "-" and file is None
    can_stream = is_single and not json and settings.beams == settings.num_answers == 1
    if stream and not can_stream:
        raise SettingsError(
            "--stream is for one text and one answer, without --beams, --file and --json; remove it"
        )
    check_seed(settings, settings.seed)
    from bertkit.decoders.generation.generator import Generator

    prompts = replace_surrogates(prompts)
    named = gather_prompts(prompts, file)
    generator = Generator.load(model, loading).with_options(settings)
    if stream or (stream is None and can_stream and sys.stdout.isatty()):
        write_live(generator, prompts[0])
        return
    is_watched = is_single or sys.stdout.isatty()  # the printed results show the progress
    size = find_size(prompts, file)
    for result in stream_results(generator, named, "Writing", size, is_hidden=is_watched):
        print_result(result, describe_continuation, json=json)


def gather_prompts(prompts: Sequence[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """Yield all texts with their names; an empty text is valid as an argument."""
    if prompts and "-" not in prompts and file is None:
        return ((f"text {number}", text) for number, text in enumerate(prompts, start=1))
    return gather_texts(prompts, file)


def write_live(generator: "Generator", prompt: str) -> None:
    """Print the prompt, then tokens as they are generated; if it is too long, print nothing."""
    pieces = generator.stream_words(prompt)
    first = next(pieces)
    for piece in chain([prompt, first], pieces):
        sys.stdout.write(legible(piece))
        sys.stdout.flush()
    sys.stdout.write("\n")


def describe_continuation(result: "ContinuedText") -> str:
    """Describe the text, or each of several answers to its beginning."""
    if len(result.answers) == 1:
        return legible(result.text)
    lines = [result.prompt, *(f"  {one.score:6.2f} {one.text.strip()}" for one in result.answers)]
    return legible("\n".join(lines))


SHOWN_CHARS = 60  # of a text


def score(
    *texts: Words,
    model: NamedModel = None,
    file: Path | None = None,
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Score how likely a language model finds texts, without labels.

    Prints each text's log probability and its perplexity per token: 1 is certainty, and a model
    that guesses has the size of its vocabulary. A bidirectional model predicts each token from all
    others (the pseudo log-likelihood), a left-to-right model from those before it. Scores compare
    texts under one model; long texts are split into windows.

    **Examples**

        bertkit score "The cats are asleep." "The cats is asleep."

        bertkit score run/ --file sentences.txt --json

        bertkit score gpt/ "The captain looked at the sea." "Sea the at looked captain the."

    Args:
        texts: Texts; the first argument may be the model; - reads standard input, one text per
            line.
        file: File with one text per line.
        json: Print one JSON object per text, and one for all.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.text_scorer import TextScorer

    scorer = TextScorer.load(model, loading)
    scores = AllScores()
    for result in stream_results(scorer, named, "Scoring", find_size(texts, file)):
        facts = {**asdict(result), "perplexity": result.perplexity}
        print_result(result, describe_score, json=json, facts=facts)
        scores.add(result)
    if json or len(scores.logs) > 1:
        print_result(scores, AllScores.describe, json=json, facts=scores.gather())
    announce_unknown(scores.num_unknown, scores.num_tokens)


@dataclass
class AllScores:
    """The scores of all texts together."""

    logs: list[float] = field(default_factory=list)
    num_tokens: int = 0
    num_unknown: int = 0

    def add(self, result: "TextScore") -> None:
        """Add those of a text."""
        self.logs.append(result.log_probability)
        self.num_tokens += result.num_tokens
        self.num_unknown += result.num_unknown

    def gather(self) -> dict[str, float]:
        """Return the counts, the log probability and the perplexity."""
        from bertkit.tasks.metrics.texts import find_perplexity

        total = math.fsum(self.logs)
        return {
            "texts": len(self.logs),
            "num_tokens": self.num_tokens,
            "num_unknown": self.num_unknown,
            "log_probability": total,
            "perplexity": find_perplexity(-total / self.num_tokens),
        }

    def describe(self) -> str:
        """Describe them as the last line of a table."""
        facts = self.gather()
        return (
            f"{format_score(facts['log_probability'], facts['perplexity'])} all"
            f" {pluralize(len(self.logs), 'text')}, {pluralize(self.num_tokens, 'token')}"
        )


def describe_score(result: "TextScore") -> str:
    """Describe a score as a line of a table."""
    shown = shorten(printable(result.text), SHOWN_CHARS)
    return f"{format_score(result.log_probability, result.perplexity)} {shown}"


def format_score(log_probability: float, perplexity: float) -> str:
    """Format a log probability and a perplexity as the first columns of a line."""
    return f"{log_probability:10,.2f}   perplexity {perplexity:8,.1f}  "
