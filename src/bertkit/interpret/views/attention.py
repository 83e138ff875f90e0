"""The views of attention, of the attention that tokens receive, and of predicted words."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.interpret.ablation import ablate
from bertkit.interpret.contexts import PositionWords, predict_words, read_words
from bertkit.interpret.head_predictions import round_digits
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.patterns import BROAD_SHARE, MIN_SHARE
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.reports.interactive import JsonObject
from bertkit.reports.text import format_percent

READING_HEADS = (
    "Point at a token on the right to see which tokens attend to it. The arrow keys move from"
    " token to token, Enter selects one and Escape clears the selection. Each head has a color:"
    " click its number to add or remove it, double-click to see it alone."
)
HEADS = View(
    name="heads",
    title="Heads",
    legend=(
        *paragraphs(
            """
            A line leads from a token to each token that it attends to: the stronger the line, the
            higher the weight, and the weights of one token sum to 100 %. Point at a token on the
            left to see only its lines; click or tap to keep them.
            """
        ),
        READING_HEADS,
        *paragraphs(
            """
            The page opens on the most telling weight: one that reaches far and is higher than what
            the other tokens give to the same word.

            Words outside the vocabulary are split into pieces: ##ing continues a word. [CLS]
            represents the whole text and [SEP] ends it; many heads attend to them when nothing else
            in the text matches.
            """
        ),
    ),
)


MODEL = View(
    name="model",
    title="All heads",
    legend=paragraphs(
        """
        Each small picture is the attention of one head: its rows are query tokens, its columns key
        tokens, and the name below says where at least half of its attention goes, averaged over
        all tokens. Click or tap a picture to enlarge it.

        A diagonal line means that tokens attend to their neighbors, a vertical line that all tokens
        attend to the same token. “Broad” means nearly uniform attention, “mixed” none of the named
        patterns. Each row of pictures is a layer, from the first, which reads the embeddings, to
        the last.
        """
    ),
)


NEURONS_LEGEND = paragraphs(
    """
    A head multiplies the query of a token with the key of every token, number by number (q × k);
    the sum of the products, divided by the square root of their count, is the score (q · k).
    Softmax turns the scores into weights that sum to 100 %: the attention.

    The output for the query token is the sum of the value vectors (v) of all tokens, multiplied by
    these weights.

    Blue is positive, orange is negative, and the stronger the color, the larger the number. A blue
    product raises the attention to a token, an orange one lowers it. Each block has its own scale,
    above it; a few numbers exceed its ends.

    Before a token is chosen, the view shows all queries and the scores of all pairs: a row for each
    query token, a column for each key token.

    To try: choose a token on the left. Find a column of q × k that is blue where the attention is
    high, and pale or orange elsewhere: this number determines the attention. Point at it, or tap
    it, to read it, or go there with Tab and the arrow keys. Escape, or the token again, leads back
    to all tokens.
    """
)

NEURONS = View(name="neurons", title="Neurons", legend=NEURONS_LEGEND)


DECIMALS = 3
TOKENS_LEGEND = paragraphs(
    f"""
    The text is shaded by the attention that each token receives: 1.0 is what it would receive if
    attention were uniform. The grid below names each head after what it attends to most.

    The attention that a token receives is the sum over all query tokens, averaged over the chosen
    heads. The shades range from the word with the least attention to the one with the most; [CLS]
    and [SEP] often receive far more than any word.

    Entropy measures how widely a token attends: 0 if it attends to a single token, and higher the
    more tokens it attends to. It is also shown as a number of tokens: an entropy of 1.6 equals
    uniform attention to 5 tokens.

    The grid has a row for each layer and a column for each head. A head is named after the target
    of at least {format_percent(MIN_SHARE, 0)} of its attention on this text: the next token, the
    previous one, the token itself, [CLS], [SEP], or the same word elsewhere. It is “broad” if its
    entropy is at least {format_percent(BROAD_SHARE, 0)} of that of uniform attention, and “mixed”
    otherwise. On another text a head may have another pattern.

    To try: choose [CLS] and [SEP] above the grid. Many heads attend to them when a text has nothing
    that they respond to. Choose “previous”, and click the strongest head to see its lines in the
    view “Heads”.
    """
)


def collect_attention(inputs: ViewInputs) -> JsonObject:
    """Return received attention and the entropy of given attention, layers × heads × length.

    "received" is relative to the token's total under uniform attention; "entropy" is in nats.
    """
    observation = inputs.observation
    allowed = observation.allowed.double()
    even = (allowed / allowed.sum(dim=1, keepdim=True)).sum(dim=0)
    received, entropy = [], []
    for layer in observation.layers:
        weights = layer.weights.double().cpu()
        received.append(_round(weights.sum(dim=1) / even))
        entropy.append(_round(torch.special.entr(weights).sum(dim=2)))
    return {"received": received, "entropy": entropy}


def _round(numbers: Float[Tensor, "heads length"]) -> list[list[float]]:
    rounded: list[list[float]] = numbers.round(decimals=DECIMALS).tolist()
    return rounded


TOKENS = View(
    name="tokens",
    title="Tokens",
    legend=TOKENS_LEGEND,
    collect=collect_attention,
    supports=lambda inputs: not inputs.has_two_texts,
)


NUM_SIMILAR_WORDS = 5
MAX_GUESSED_TOKENS = 128  # one pass each; longer texts get only unmasked predictions

WORDS_LEGEND = paragraphs(
    """
    For every token of the text, this table lists the words that the model's masked-LM head finds
    most likely at its position: the bar behind a word is its probability. “Own word” is the
    probability and the rank of the token that is really there.

    “Hidden” shows the predictions when this one token is replaced by [MASK] and all others stay:
    what the rest of the text implies about the position. “As read” shows the predictions when the
    token is visible. The model then mostly predicts the token itself, because some of the tokens to
    predict were left unchanged in training. Where the text itself has [MASK], both are the same;
    these rows are marked.

    The original token is framed where it is among the predictions; at rank 1 the model would have
    predicted it. Words that follow from the others, such as “of” after “because”, are easy to
    predict; names are not.

    A token that begins with ## is a piece that continues a word; while one piece is hidden, the
    other pieces of the word are still visible.

    To try: look for the words with the lowest probability. Then change the text so that they become
    likely, or write [MASK] into it and read the predictions.
    """
)


def collect_words(inputs: ViewInputs) -> JsonObject:
    """Return the most likely words for each position, with its token visible and masked.

    "masks" are the positions of [MASK] in the text; "read" (visible) and "hidden" (masked) have
    each position, its candidates with probabilities, and the probability and rank of its token;
    "hidden" is null for texts of more than `MAX_GUESSED_TOKENS` tokens.
    """
    inspected, encoded = inputs.inspected, inputs.observation.encoded
    assert isinstance(inspected, InspectedModel)  # `supports` excludes other models
    mask_id = inspected.tokenizer.mask_id
    masks = {position for position, id_ in enumerate(encoded.encoding.ids) if id_ == mask_id}
    with ablate(inspected.model, inputs.observation.without):
        read = read_words(inspected, encoded, NUM_SIMILAR_WORDS)
        hidden = None
        if len(encoded.words) <= MAX_GUESSED_TOKENS:
            covered = [words for words in read if words.position in masks]
            positions = [words.position for words in read if words.position not in masks]
            guessed = predict_words(inspected, encoded, positions, NUM_SIMILAR_WORDS)
            hidden = sorted(covered + guessed, key=lambda words: words.position)
    return {
        "masks": sorted(masks),
        "read": list_words(read),
        "hidden": None if hidden is None else list_words(hidden),
        "limit": MAX_GUESSED_TOKENS,
    }


def list_words(positions: Sequence[PositionWords]) -> list[JsonObject]:
    """Convert predictions to data."""
    return [
        {
            "token": words.position,
            "words": [[one.token, round_digits(one.probability)] for one in words.candidates],
            "own": [round_digits(words.own_probability), words.own_rank],
        }
        for words in positions
    ]


WORDS = View(
    name="words",
    title="Words",
    legend=WORDS_LEGEND,
    collect=collect_words,
    supports=lambda inputs: (
        isinstance(inputs.inspected, InspectedModel) and inputs.inspected.fills_words
    ),
)
