"""The mask view: a masked-LM head's predictions for each position."""

from collections.abc import Sequence
from typing import Any

from bertkit.interpret.ablation import ablate
from bertkit.interpret.head_predictions import fills_words
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.outcome import round_digits
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.interpret.words import PlaceWords, predict_words, read_words

NUM_WORDS = 5
MAX_GUESSED_TOKENS = 128  # one pass each; longer texts get only unmasked predictions

LEGEND = paragraphs(
    """
    This model has a masked-LM head. For every token of the text, this view lists the most likely
    words at its position with their probabilities: the bar behind a word is its probability, and
    all words of the vocabulary sum to 100 %.

    “Hidden” shows the predictions when this one token is replaced by [MASK] and all others stay:
    what the rest of the text implies about the position. “As read” shows the predictions when the
    token is visible. The model then mostly predicts the token itself, because some of the tokens to
    predict were left unchanged in training. Where the text itself has [MASK], both are the same;
    these rows are marked.

    The original token is framed where it is among the predictions. “Own word” shows its probability
    and its rank among all words: at rank 1 the model would have predicted it. Words that follow
    from the others, such as “of” after “because”, are easy to predict; names are not.

    A token that begins with ## is a piece that continues a word; while one piece is hidden, the
    other pieces of the word are still visible.

    To try: look for the words with the lowest probability. Then change the text so that they become
    likely, or write [MASK] into it and read the predictions.
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
            guessed = predict_words(inspected, encoded, places, NUM_WORDS)
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
