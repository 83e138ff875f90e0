"""The head view: lines from each token to the tokens that it attends to."""

from bertkit.interpret.views.view import View, paragraphs

HEADS = View(
    name="heads",
    title="Heads",
    legend=paragraphs(
        """
        A BERT represents each token by combining it with the other tokens of the text. It does so
        in layers, and each layer has several heads, each with attention weights of its own.

        The text appears twice. A line goes from a query token on the left to a key token on the
        right that it attends to; the stronger the line, the higher the weight. The weights of one
        query token sum to 100 %. Each head has a color.

        Move over a token on the left to see only what it attends to, or over one on the right to
        see which tokens attend to it. Click to keep it selected, and read the numbers in the table.
        The arrow keys move from token to token, Enter selects one and Escape clears the selection.

        Words outside the vocabulary are split into pieces: ##ing continues a word. [CLS] represents
        the whole text and [SEP] ends it; many heads attend to them when nothing else in the text
        matches.
        """
    ),
    cross_legend=paragraphs(
        """
        The target text is on the left, the source text on the right. A line goes from a target
        token to a source token that it attends to; the stronger the line, the higher the weight.
        The weights of one target token sum to 100 %. Each head has a color.

        The token on the left is the decoder's latest input; from what it attends to on the right,
        the model predicts the following one. So a line from “a” in “a dog” may lead to the source
        word of “dog”. [CLS] is the input of the first step.

        Move over a token on the left to see only what it attends to, or over one on the right to
        see which tokens attend to it. Click to keep it selected, and read the numbers in the table.
        The arrow keys move from token to token, Enter selects one and Escape clears the selection.

        Words outside the vocabulary are split into pieces: ##ing continues a word. Many heads
        attend to [CLS] and [SEP] when nothing else in the text matches.
        """
    ),
)
