"""What `bertkit view` shows of models that write a text only: its views, legends and attentions.

Loaded through `ATTENTION_VIEWS` (`base/wings.py`) and by `inspected_model.py` beside it.
"""

from bertkit.interpret.contexts import choose_words
from bertkit.interpret.head_predictions import round_digits
from bertkit.interpret.observation import AttentionPart, PredictedWords
from bertkit.interpret.views.attention import NEURONS, READING_HEADS, list_words
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.reports.interactive import JsonObject
from bertkit.tasks.metrics.texts import find_perplexity

HEADS_LEGEND = paragraphs(
    """
    A line leads from a token of the target text (left) to each source token that it attends
    to: the stronger the line, the higher the weight, and the weights of one target token
    sum to 100 %. Point at a token on the left to see only its lines; click or tap to keep
    them.

    The token on the left is the decoder's latest input; from what it attends to, the model
    predicts the following one. So a line from “a” in “a dog” may lead to the source word of
    “dog”. [CLS] is the input of the first step.
    """
)

MODEL_LEGEND = paragraphs(
    """
    Each small picture is the attention of one head of the decoder: its rows are target tokens,
    its columns source tokens, and the name below says where at least half of its attention
    goes, averaged over all tokens. Click or tap a picture to enlarge it.

    In a translation a diagonal line means that both texts have the same word order, a vertical
    line that all target tokens attend to the same source token. “Broad” means nearly uniform
    attention, “mixed” none of the named patterns. Each row of pictures is a layer.
    """
)

NEURONS_LEGEND = (
    "A head multiplies the query of a target token with the key of every source token, number by"
    " number (q × k); the sum of the products, divided by the square root of their count, is the"
    " score (q · k). Softmax turns the scores into weights that sum to 100 %: the attention."
)

CROSS = AttentionPart(
    "cross",
    "from target to source",
    "Cross-attention: which source tokens the decoder attends to.",
    {
        "heads": (*HEADS_LEGEND, READING_HEADS),
        "model": MODEL_LEGEND,
        "neurons": (NEURONS_LEGEND, *NEURONS.legend[1:]),
    },
    ("source", "target"),
)
ENCODER = AttentionPart(
    "encoder",
    "within the source",
    "The encoder's self-attention: how the source tokens attend to each other.",
)
DECODER = AttentionPart(
    "decoder",
    "within the target",
    "The decoder's self-attention: how target tokens attend to earlier ones.",
)


ALIGNMENT_LEGEND = paragraphs(
    """
    Each row is a decoding step: it shows which source tokens (columns) the model attends to while
    it predicts a target token. The stronger the color of a square, the higher the weight; a row
    sums to 100 %.

    The weights are means over all heads of all layers, or over the chosen heads of one layer.

    In a translation many steps attend to the word that they translate. Where both languages have
    the same word order, that makes a diagonal line; where a word moves, the line breaks. One word
    may align with several, or several with one.

    While a token is predicted, the decoder has not read it yet: its latest input is the token
    before. “Next word” labels each row with the predicted token; “last word” labels it with the
    latest input token, whose query it is. Some layers align better with one labeling, others with
    the other.

    Attention shows which vectors are combined, not why a word was predicted. Much of it goes to
    [SEP], or to the period, when nothing else in the text matches; leave out “[CLS] and [SEP]” to
    see the rest renormalized.

    To try: go through the layers, and choose single heads. Point at a square to read it, or go
    there with Tab and the arrow keys.
    """
)


ALIGNMENT = View(
    name="alignment",
    title="Alignment",
    legend=ALIGNMENT_LEGEND,
    collect=lambda inputs: {  # the token that is predicted in each step: one for each row
        "chosen": [inputs.inspected.tokenizer.vocabulary[id_] for id_ in find_next(inputs).ids]
    },
    supports=lambda inputs: inputs.has_two_texts,
)


NUM_NEXT_WORDS = 5

NEXT_LEGEND = paragraphs(
    """
    For every token, this table lists the words that the model finds most likely to come next: the
    bar behind a word is its probability. “Comes next” is the token that actually follows, with its
    probability and rank.

    The model has seen the tokens up to this one, and none after it. At rank 1 it would have
    generated the next token itself; the token is framed where it is among the most likely words.

    The mean log probability of these tokens measures how well the model predicts the text; e to the
    power of its negative is the perplexity, which is shown above the table: the model is as
    uncertain as if it chose among so many equally likely words.

    To try: look for the rows where the next word is least likely. Change the words before them, and
    see whether it becomes more likely.
    """
)


def collect_next(inputs: ViewInputs) -> JsonObject:
    """Return the most likely words after each token, and the word that actually follows.

    "steps" has for each token but the last "token", its position; "next", the token that follows;
    "words", candidates with probabilities; "own", probability and rank of "next". "perplexity" is
    that of the whole text.
    """
    predicted = find_next(inputs)
    vocabulary, positions = inputs.inspected.tokenizer.vocabulary, range(len(predicted.ids))
    own = predicted.log_probabilities[positions, predicted.ids]
    rows = list_words(choose_words(predicted, positions, vocabulary, NUM_NEXT_WORDS))
    return {
        "perplexity": round_digits(find_perplexity(-float(own.mean()))),
        "steps": [
            {"token": row["token"], "next": vocabulary[id_], **row}
            for id_, row in zip(predicted.ids, rows, strict=True)
        ],
    }


NEXT = View(
    name="next",
    title="Next words",
    legend=NEXT_LEGEND,
    collect=collect_next,
    supports=lambda inputs: inputs.observation.predicted is not None and not inputs.has_two_texts,
)


def find_next(inputs: ViewInputs) -> PredictedWords:
    """Return the words that the model predicts after each token."""
    predicted = inputs.observation.predicted
    assert predicted is not None  # a decoder always has them, and `supports` excludes other models
    return predicted
