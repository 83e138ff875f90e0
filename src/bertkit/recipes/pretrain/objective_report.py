"""What reports show of a pre-training objective: curves, metrics, examples, a command to try."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.base.errors import BertkitError
from bertkit.base.wings import OBJECTIVES, load_object
from bertkit.data.shards import ShardSet
from bertkit.inference.fill_mask import Candidate, FillMask
from bertkit.recipes.pretrain.corpus import Blank, choose_blanks
from bertkit.reports.text import format_percent
from bertkit.tasks.objectives.settings import ObjectiveName
from bertkit.tokenization.names import OF_BERT
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.sections import Curve

NUM_CANDIDATES = 4
# For runs whose shards are unknown; texts with words outside the vocabulary are skipped.
GENERAL_BLANKS = (
    ("She opened the {} and went in.", "door"),
    ("They live in a small {} by the sea.", "town"),
    ("He has three {} and two sisters.", "brothers"),
    ("The film was so long that many people {} early.", "left"),
    ("It was cold, so he put on his {}.", "coat"),
    ("The train will arrive at the {} in an hour.", "station"),
)
MASKED_WORDS = (
    Curve("mlm_loss", "Masked words, loss", "nats"),
    Curve("mlm_accuracy", "Masked words, accuracy", "of blanks", is_percent=True),
)
NEXT_SENTENCE = Curve("nsp_accuracy", "Next sentence, accuracy", "of pairs", is_percent=True)


@dataclass(frozen=True)
class ObjectiveReport:
    """What a report shows of an objective."""

    phrase: str  # behind the word “pre-trained”
    curves: tuple[Curve, ...]  # first loss and accuracy of words, then other metrics
    metrics: Mapping[str, str]  # names to display, in this order
    finding: tuple[str, str]  # a share of words, and a sentence with share and number
    title: str  # of the examples
    output: str  # the heading of what the model makes of each
    # a checkpoint, the run's shards, the user's texts, and how many of the shards' otherwise
    # → rows: text, output, original
    make_examples: Callable[[Path, ShardSet | None, Sequence[str], int], list[list[str]]]
    command: str  # that tries a model, whose name follows
    trial: str  # a general text for it
    choose_texts: Callable[[ShardSet, Tokenizer, int], Sequence[str]]  # held-out ones for it

    def choose_trial(
        self, shards: ShardSet | None, checkpoint: Path | None = None
    ) -> tuple[str, str]:
        """Choose a command that tries a model, with a text from held-out sentences.

        The text is general English if the shards are unknown, damaged, or have no such sentence.
        The mask is that of the shards' tokenizer, or else of a checkpoint's.
        """
        texts, trial = list[str](), self.trial
        with suppress(BertkitError):  # a run is useful without an example
            if shards is not None:
                tokenizer = shards.load_tokenizer()
                trial = trial.replace(OF_BERT.mask, tokenizer.mask)
                texts += self.choose_texts(shards, tokenizer, 1)
            elif checkpoint is not None:
                trial = trial.replace(OF_BERT.mask, Tokenizer.load(checkpoint).mask)
        return self.command, texts[0] if texts else trial


def find_report(objective: ObjectiveName) -> ObjectiveReport:
    """Return what reports show of an objective."""
    found: ObjectiveReport = REPORTS.get(objective) or load_object(OBJECTIVES[objective].report)
    return found


def fill_blanks(
    checkpoint: Path, shards: ShardSet | None, texts: Sequence[str], num_examples: int
) -> list[list[str]]:
    """Return rows: text, most likely words, original word."""
    fill = FillMask.load(checkpoint, device="cpu")
    if texts:
        blanks = [Blank(text, "") for text in texts]
    elif shards is not None:
        blanks = choose_blanks(shards, fill.loaded.tokenizer, num_examples)
    else:
        tokenizer = fill.loaded.tokenizer
        blanks = [
            Blank(text.format(tokenizer.mask), word)
            for text, word in GENERAL_BLANKS
            if has_words(tokenizer, text.format(word))
        ]
    filled = fill([blank.text for blank in blanks], top_k=NUM_CANDIDATES)
    return [
        [blank.text, " · ".join(map(_show, found.blanks)), blank.word]
        for blank, found in zip(blanks, filled, strict=True)
    ]


def has_words(tokenizer: Tokenizer, text: str) -> bool:
    """Whether each word of a text is a single vocabulary entry."""
    [ids] = tokenizer.piece_ids([text])
    return tokenizer.unk_id not in ids and not tokenizer.is_continuation[ids].any()


def _show(candidates: Sequence[Candidate]) -> str:
    return ", ".join(f"“{each.token}” {format_percent(each.probability)}" for each in candidates)


MASKED = ObjectiveReport(
    phrase=" without next-sentence prediction",
    curves=MASKED_WORDS,
    metrics={
        "loss": "loss",
        "mlm_accuracy": "masked accuracy",
        "nsp_accuracy": "next-sentence accuracy",
        "mlm_bits_per_character": "bits per masked character",
    },
    finding=("mlm_accuracy", "Fills {} of {} blanks right"),
    title="Fill-mask examples",
    output="Most likely words",
    make_examples=fill_blanks,
    command="fill-mask --model",
    trial="She opened the [MASK].",
    choose_texts=lambda *arguments: [blank.text for blank in choose_blanks(*arguments)],
)
REPORTS = {
    "bert": replace(MASKED, phrase="", curves=(*MASKED_WORDS, NEXT_SENTENCE)),
    "mlm": MASKED,
}
