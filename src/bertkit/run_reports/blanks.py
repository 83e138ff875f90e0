"""Example section of a report: blanks filled by a pre-training run's newest checkpoint."""

from collections.abc import Sequence
from pathlib import Path

from bertkit.base.errors import BertkitError, InputError, storage_errors
from bertkit.checkpoints.huggingface import WEIGHTS_FILE
from bertkit.inference.fill_mask import Candidate, FillMask
from bertkit.inference.masked_texts import MASK
from bertkit.recipes.pretrain.corpus import Blank, choose_blanks
from bertkit.reports.report import Paragraph, Section, Table
from bertkit.run_reports.facts import RunFacts
from bertkit.tokenization.tokenizer import Tokenizer

NUM_BLANKS, NUM_CANDIDATES = 6, 4
MOST_BYTES = 2 << 30  # weights up to this size load and compute in seconds
TITLE = "What it puts into blanks"
# For runs whose shards are unknown; texts with words outside the vocabulary are skipped.
GENERAL = (
    Blank("She opened the [MASK] and went in.", "door"),
    Blank("They live in a small [MASK] by the sea.", "town"),
    Blank("He has three [MASK] and two sisters.", "brothers"),
    Blank("The film was so long that many people [MASK] early.", "left"),
    Blank("It was cold, so he put on his [MASK].", "coat"),
    Blank("The train will arrive at the [MASK] in an hour.", "station"),
)


def fill_blanks(facts: RunFacts, texts: Sequence[str]) -> list[Section]:
    """Build a table of filled blanks; return nothing if no text fits the run.

    Args:
        facts: the facts of a pre-training run.
        texts: the user's texts; if empty, held-out sentences or sentences of general English.
    """
    checkpoint = facts.checkpoint
    if checkpoint is None:
        return [Paragraph("The run has no checkpoint yet that could fill any.", title=TITLE)]
    try:
        if is_too_large(checkpoint):
            return [Paragraph("Its model is too large to be tried for a report.", title=TITLE)]
        fill = FillMask.load(checkpoint, "cpu")
        blanks, note = choose(facts, fill.loaded.tokenizer, texts)
        filled = fill([blank.text for blank in blanks], top_k=NUM_CANDIDATES)
    except BertkitError as error:
        if texts and isinstance(error, InputError):
            raise
        # A running job removes old checkpoints, shards may be damaged, sentences may exceed the
        # model's maximum length; the report is useful without examples.
        return [Paragraph(f"None was filled: {error}.", title=TITLE)]
    if not blanks:
        return []
    return [
        Table(
            ["Text", "Likeliest words", "What stood there"],
            [
                [blank.text, " · ".join(map(_show, found.blanks)), blank.word]
                for blank, found in zip(blanks, filled, strict=True)
            ],
            title=TITLE,
            note=f"{note} Filled by {checkpoint.name}.",
        )
    ]


def choose(facts: RunFacts, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[Blank], str]:
    """Return the blanks, and a note about their source."""
    if texts:
        return [Blank(text, "") for text in texts], "The texts that were given."
    if facts.shards is not None:
        found = choose_blanks(facts.shards, tokenizer, NUM_BLANKS)
        return found, "Sentences that were held out: the run has never trained on them."
    known = [blank for blank in GENERAL if has_words(tokenizer, blank)]
    return known, "Sentences of general English, since the run’s own shards weren’t named."


def has_words(tokenizer: Tokenizer, blank: Blank) -> bool:
    """Whether each word of a blank's text is a single vocabulary entry."""
    text = blank.text.replace(MASK, blank.word)
    [ids] = tokenizer.piece_ids([text])
    return tokenizer.unk_id not in ids and not tokenizer.is_continuation[ids].any()


def is_too_large(checkpoint: Path) -> bool:
    """Whether a checkpoint's model is too large to run for a report."""
    path = checkpoint / WEIGHTS_FILE
    with storage_errors(path, "read"):
        return path.stat().st_size > MOST_BYTES


def _show(candidates: Sequence[Candidate]) -> str:
    return ", ".join(f"“{each.token}” {each.probability:.1%}" for each in candidates)
