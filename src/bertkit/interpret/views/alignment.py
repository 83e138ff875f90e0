"""The alignment view: the source words that each target word attends to.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
Translate", figure 3.
"""

from typing import Any

from bertkit.interpret.views.view import View, ViewInputs, paragraphs

LEGEND = paragraphs(
    """
    The columns are the source tokens, the rows the target tokens. Each row is a decoding step: it
    shows what the model attends to while it predicts a token. The stronger the color of a
    square, the higher the weight; a row sums to 100 %. The weights are means over the chosen heads,
    in one layer or in all.

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

    To try: go through the layers, and choose single heads. Move over a square to read it, or go
    there with Tab and the arrow keys.
    """
)


def collect_alignment(inputs: ViewInputs) -> dict[str, Any]:
    """Return the token that is predicted in each step.

    Returns:
        "chosen": the predicted token of each row.
    """
    next_words = inputs.observation.next_words
    assert next_words is not None  # a decoder always has them
    vocabulary = inputs.inspected.tokenizer.vocabulary
    return {"chosen": [vocabulary[id_] for id_ in next_words.ids]}


ALIGNMENT = View(
    name="alignment",
    title="Alignment",
    legend=LEGEND,
    collect=collect_alignment,
    supports=lambda inputs: inputs.is_cross_attention,
)
