"""Example outputs of a pre-training run's newest checkpoint: filled blanks or continuations."""

from collections.abc import Sequence
from pathlib import Path

from bertkit.base.errors import BertkitError, InputError, storage_errors
from bertkit.checkpoints.huggingface import WEIGHTS_FILE
from bertkit.generation.generator import Generator
from bertkit.generation.generator_settings import GeneratorSettings
from bertkit.inference.fill_mask import Candidate, FillMask
from bertkit.inference.masked_texts import MASK
from bertkit.recipes.pretrain.corpus import Blank, TextPrefix, choose_beginnings, choose_blanks
from bertkit.reports.report import Paragraph, Section, Table
from bertkit.run_reports.facts import RunFacts
from bertkit.tokenization.tokenizer import Tokenizer

NUM_EXAMPLES, NUM_CANDIDATES = 6, 4
MAX_BYTES = 2 << 30  # weights up to this size load and compute in seconds
# Greedy decoding alone repeats itself.
GREEDY = GeneratorSettings(max_tokens=24, no_repeat_ngram=3)
# For runs whose shards are unknown; texts with words outside the vocabulary are skipped.
GENERAL_BLANKS = (
    Blank("She opened the [MASK] and went in.", "door"),
    Blank("They live in a small [MASK] by the sea.", "town"),
    Blank("He has three [MASK] and two sisters.", "brothers"),
    Blank("The film was so long that many people [MASK] early.", "left"),
    Blank("It was cold, so he put on his [MASK].", "coat"),
    Blank("The train will arrive at the [MASK] in an hour.", "station"),
)
GENERAL_PREFIXES = ("She opened the door and", "They live in a small", "The film was so long that")
USERS_NOTE = "The texts are those of --text."
HELD_OUT_NOTE = "The texts are held-out sentences, which the run has never trained on."
GENERAL_NOTE = "The texts are general English, because the run’s shards weren’t named (--data)."


def show_examples(facts: RunFacts, texts: Sequence[str]) -> list[Section]:
    """Build a table of filled blanks, or of continuations for a left-to-right run.

    Args:
        facts: the facts of a pre-training run.
        texts: the user's texts; if empty, held-out sentences or sentences of general English.

    Returns:
        The table, or a paragraph that says why there is none; nothing if no text fits the run.

    Raises:
        InputError: the model can't take a text of the user.
    """
    is_causal, checkpoint = facts.objective == "causal", facts.checkpoint
    title = "Continuations" if is_causal else "Filled blanks"
    if checkpoint is None:
        return [Paragraph("The run has no checkpoint yet.", title=title)]
    try:
        if is_too_large(checkpoint):
            return [Paragraph("The model is too large to run for a report.", title=title)]
        build = continue_texts if is_causal else fill_blanks
        rows = build(checkpoint, facts, texts)
    except BertkitError as error:
        if texts and isinstance(error, InputError):
            raise
        # A running job removes old checkpoints, shards may be damaged, sentences may exceed the
        # model's maximum length; the report is useful without examples.
        return [Paragraph(f"There are no examples: {error}.", title=title)]
    if not rows:
        return []
    output = "Most likely continuation" if is_causal else "Most likely words"
    note = USERS_NOTE if texts else GENERAL_NOTE if facts.shards is None else HELD_OUT_NOTE
    note += f" The outputs are those of {checkpoint.name}."
    return [Table(["Text", output, "Original"], rows, title, note)]


def fill_blanks(checkpoint: Path, facts: RunFacts, texts: Sequence[str]) -> list[list[str]]:
    """Return rows: text, most likely words, original word."""
    fill = FillMask.load(checkpoint, "cpu")
    if texts:
        blanks = [Blank(text, "") for text in texts]
    elif facts.shards is not None:
        blanks = choose_blanks(facts.shards, fill.loaded.tokenizer, NUM_EXAMPLES)
    else:
        blanks = [blank for blank in GENERAL_BLANKS if has_words(fill.loaded.tokenizer, blank)]
    filled = fill([blank.text for blank in blanks], top_k=NUM_CANDIDATES)
    return [
        [blank.text, " · ".join(map(_show, found.blanks)), blank.word]
        for blank, found in zip(blanks, filled, strict=True)
    ]


def continue_texts(checkpoint: Path, facts: RunFacts, texts: Sequence[str]) -> list[list[str]]:
    """Return rows: text, continuation, original continuation."""
    generate = Generator.load(checkpoint, "cpu")
    tokenizer = generate.loaded.tokenizer
    if texts:
        prefixes = [TextPrefix(text, "") for text in texts]
    elif facts.shards is not None:
        prefixes = choose_beginnings(facts.shards, tokenizer, NUM_EXAMPLES)
    else:
        known = zip(GENERAL_PREFIXES, tokenizer.piece_ids(list(GENERAL_PREFIXES)), strict=True)
        prefixes = [TextPrefix(text, "") for text, ids in known if tokenizer.unk_id not in ids]
    written = generate([prefix.text for prefix in prefixes], GREEDY)
    return [
        [prefix.text, found.answers[0].text.strip(), prefix.rest]
        for prefix, found in zip(prefixes, written, strict=True)
    ]


def has_words(tokenizer: Tokenizer, blank: Blank) -> bool:
    """Whether each word of a blank's text is a single vocabulary entry."""
    [ids] = tokenizer.piece_ids([blank.text.replace(MASK, blank.word)])
    return tokenizer.unk_id not in ids and not tokenizer.is_continuation[ids].any()


def is_too_large(checkpoint: Path) -> bool:
    """Whether a checkpoint's model is too large to run for a report."""
    path = checkpoint / WEIGHTS_FILE
    with storage_errors(path, "read"):
        return path.stat().st_size > MAX_BYTES


def _show(candidates: Sequence[Candidate]) -> str:
    return ", ".join(f"“{each.token}” {each.probability:.1%}" for each in candidates)
