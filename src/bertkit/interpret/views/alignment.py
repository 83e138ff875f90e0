"""The alignment view: the source words that each target word attends to.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
Translate", figure 3.
"""

from typing import Any

from bertkit.interpret.views.view import View, ViewInputs, paragraphs

LEGEND = paragraphs(
    """
    The text that is read stands along the top, and the text that is written down the side. Each row
    is a step of writing: it shows where the model looks while it chooses the next word. The
    stronger the color of a square, the more it looks there; a row makes up 100 %. You see the mean
    of the chosen heads, in one layer or in all.

    In a translation many steps look at the word that they translate. Where both languages have the
    same order, that makes a slanting line; where a word moves, the line breaks. One word may come
    from several, or several from one.

    While a word is chosen, the model has not read it yet: it knows only the one before. “Next word”
    names each row by the word that is chosen there; “last word” names it by the word that was
    written just before, from which the model looks. Often one naming fits some layers better, and
    the other naming others.

    Attention says where numbers come from, not why a word was chosen. Much of it goes to [SEP], or
    to the full stop, when a head needs nothing from the text; leave “[CLS] and [SEP]” out to see
    the rest shared out anew.

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
