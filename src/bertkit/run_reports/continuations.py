"""Example section of a report: texts continued by a left-to-right run's newest checkpoint."""

from collections.abc import Sequence

from bertkit.base.errors import BertkitError, InputError
from bertkit.generation.generator import Generator
from bertkit.generation.generator_settings import GeneratorSettings
from bertkit.recipes.pretrain.corpus import TextPrefix, choose_beginnings
from bertkit.reports.report import Paragraph, Section, Table
from bertkit.run_reports.blanks import is_too_large
from bertkit.run_reports.facts import RunFacts
from bertkit.tokenization.tokenizer import Tokenizer

NUM_BEGINNINGS = 6
TITLE = "How it goes on"
# Greedy decoding alone repeats itself.
WRITING = GeneratorSettings(max_tokens=24, no_repeat_ngram=3)
# For runs whose shards are unknown; texts with words outside the vocabulary are skipped.
GENERAL = ("She opened the door and", "They live in a small", "The film was so long that")


def continue_texts(facts: RunFacts, texts: Sequence[str]) -> list[Section]:
    """Build a table of texts with their continuations; return nothing if no text fits the run.

    Args:
        facts: the facts of a left-to-right pre-training run.
        texts: the user's texts; if empty, held-out sentences or sentences of general English.
    """
    checkpoint = facts.checkpoint
    if checkpoint is None:
        return [Paragraph("The run has no checkpoint yet that could write.", title=TITLE)]
    try:
        if is_too_large(checkpoint):
            return [Paragraph("Its model is too large to be tried for a report.", title=TITLE)]
        generate = Generator.load(checkpoint, "cpu")
        beginnings, note = choose(facts, generate.loaded.tokenizer, texts)
        written = generate([beginning.text for beginning in beginnings], WRITING)
    except BertkitError as error:
        if texts and isinstance(error, InputError):
            raise
        # As with blanks: the report is useful without examples.
        return [Paragraph(f"Nothing was written: {error}.", title=TITLE)]
    if not beginnings:
        return []
    rows = [
        [beginning.text, found.answers[0].text.strip(), beginning.rest]
        for beginning, found in zip(beginnings, written, strict=True)
    ]
    return [
        Table(
            ["Text", "How the model goes on", "What stood there"],
            [list(row) for row in rows],
            title=TITLE,
            note=f"{note} Written by {checkpoint.name}, the likeliest word each time.",
        )
    ]


def choose(
    facts: RunFacts, tokenizer: Tokenizer, texts: Sequence[str]
) -> tuple[list[TextPrefix], str]:
    """Return the beginnings of texts, and a note about their source."""
    if texts:
        return [TextPrefix(text, "") for text in texts], "The texts that were given."
    if facts.shards is not None:
        found = choose_beginnings(facts.shards, tokenizer, NUM_BEGINNINGS)
        return found, "Halves of sentences that were held out: the run has never trained on them."
    known = [text for text in GENERAL if tokenizer.unk_id not in tokenizer.piece_ids([text])[0]]
    note = "Beginnings of general English, since the run’s own shards weren’t named."
    return [TextPrefix(text, "") for text in known], note
