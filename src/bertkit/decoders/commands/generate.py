"""`bertkit generate`: continuations of texts."""

import sys
from itertools import chain
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.cli.output import print_result
from bertkit.cli.texts import TextFile, Words, gather_texts, legible, open_input, stream_results
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.decoding.settings import check_seed
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.inference.settings import LoadingSettings

if TYPE_CHECKING:
    from bertkit.decoders.generation.generator import ContinuedText


def generate(
    model: str,
    /,
    *prompts: Words,
    file: TextFile = None,
    reading: TableSettings = TableSettings(),
    settings: GeneratorSettings = GeneratorSettings(),
    stream: bool | None = None,
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Continue a text with a left-to-right model.

    Takes the likeliest token each time; --beams searches, and --temperature, --top-k or --top-p
    sample. Generation ends at the end token, or after --max-tokens.

    **Examples**

        bertkit generate gpt/ "The cats are very active and fast, they have strong" --max-tokens 20

        bertkit generate gpt/ "She opened the door" --top-p 0.9 --num-answers 3 --seed 7

        bertkit generate gpt/ "It was" --beams 4 --no-repeat-ngram 3

        bertkit generate gpt/ --file beginnings.txt --json

        bertkit generate gpt/ ""

    Args:
        model: A run of `bertkit pretrain --objective causal`, its model folder, or the id of such a
            model of the Hub.
        prompts: Texts to continue; an empty one starts from nothing; - alone reads standard input.
        stream: Print tokens as they are generated; by default in a terminal, for one text and one
            answer without beams.
        json: Print one JSON object per text.
    """
    require_torch("`bertkit generate`")
    check_standard_output()
    is_single = len(prompts) == 1 and prompts[0] != "-" and file is None
    can_stream = is_single and not json and settings.beams == settings.num_answers == 1
    if stream and not can_stream:
        raise SettingsError(
            "--stream is for one text and one answer, without --beams, --file and --json; remove it"
        )
    check_seed(settings, settings.seed)
    from bertkit.decoders.generation.generator import Generator

    named = gather_texts(table := open_input(prompts, file, reading))
    generator = Generator.load(model, loading).with_options(settings)
    if stream or (stream is None and can_stream and sys.stdout.isatty()):
        pieces = generator.stream_words(table.texts[0])
        first = next(pieces)  # of a prompt that is too long, nothing is printed
        for piece in chain([table.texts[0], first], pieces):
            sys.stdout.write(legible(piece))
            sys.stdout.flush()
        sys.stdout.write("\n")
        return
    is_watched = is_single or sys.stdout.isatty()  # the printed results show the progress
    for result in stream_results(generator, table, named, "Writing", is_hidden=is_watched):
        print_result(result, describe_continuation, json=json)


def describe_continuation(result: "ContinuedText") -> str:
    """Describe the text, or each of several answers to its beginning."""
    if len(result.answers) == 1:
        return legible(result.text)
    lines = [result.prompt, *(f"  {one.score:6.2f} {one.text.strip()}" for one in result.answers)]
    return legible("\n".join(lines))
