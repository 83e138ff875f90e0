"""The mask view: a masked-LM head's predictions for each position."""

from collections.abc import Sequence
from typing import Any

from bertkit.interpret.ablation import ablate
from bertkit.interpret.head_predictions import fills_words
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.outcome import round_digits
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.interpret.words import PlaceWords, guess_words, read_words

NUM_WORDS = 5
MAX_GUESSED_TOKENS = 128  # one pass each; longer texts get only unmasked predictions

LEGEND = paragraphs(
    """
    This model has learned to fill in words that were hidden from it. Here you see, for every token
    of the text, the words that it holds likeliest at that place, and how likely each is: the bar
    behind a word is its probability, and all words of the vocabulary together have 100 %.

    “Hidden” shows what it guesses when this one token is covered by [MASK] and all others stay:
    what the rest of the text says about the place. “As read” shows the same while it sees the
    token itself. It then mostly says what it sees, because in training too some words to be found
    were left as they were. Where the text itself has [MASK], there is nothing to see, so both are
    the same; these rows are marked.

    The token that really stands there is framed where it is among the guesses. “Own word” tells
    its probability and its rank among all words: rank 1 means that the model would have guessed
    it. Words that follow from the others, such as “of” after “because”, are easily guessed; names
    and surprises are not.

    A token that begins with ## is a piece that goes on a word; while one piece is hidden, the
    others of the word still help.

    To try: look for the words with the lowest probability. Then change the text so that they
    become likely, or write [MASK] into it and read what is put there.
    """
)


def collect_words(inputs: ViewInputs) -> dict[str, Any]:
    """Return the most likely words for each position, with its token visible and masked.

    Returns:
        "masks": the positions of [MASK] in the text; "read" (visible) and "hidden" (masked): each
        position, its candidates with probabilities, and the probability and rank of its token;
        "hidden" is null for texts of more than `MAX_GUESSED_TOKENS` tokens.
    """
    inspected, encoded = inputs.inspected, inputs.observation.encoded
    assert isinstance(inspected, InspectedModel)  # `supports` excludes other models
    mask_id = inspected.tokenizer.mask_id
    masks = {place for place, id_ in enumerate(encoded.encoding.ids) if id_ == mask_id}
    with ablate(inspected.model, inputs.without):
        read = read_words(inspected, encoded, NUM_WORDS)
        hidden = None
        if len(encoded.words) <= MAX_GUESSED_TOKENS:
            covered = [words for words in read if words.place in masks]
            places = [words.place for words in read if words.place not in masks]
            guessed = guess_words(inspected, encoded, places, NUM_WORDS)
            hidden = sorted(covered + guessed, key=lambda words: words.place)
    return {
        "masks": sorted(masks),
        "read": _to_json(read),
        "hidden": None if hidden is None else _to_json(hidden),
        "limit": MAX_GUESSED_TOKENS,
    }


def _to_json(places: Sequence[PlaceWords]) -> list[dict[str, Any]]:
    return [
        {
            "token": words.place,
            "words": [[one.token, round_digits(one.probability)] for one in words.candidates],
            "own": [round_digits(words.own_probability), words.own_rank],
        }
        for words in places
    ]


WORDS = View(
    name="words",
    title="Words",
    legend=LEGEND,
    collect=collect_words,
    supports=lambda inputs: (
        isinstance(inputs.inspected, InspectedModel) and fills_words(inputs.inspected.model)
    ),
)
