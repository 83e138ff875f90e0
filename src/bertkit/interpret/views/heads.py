"""The head view: lines from each token to the tokens that it attends to."""

from bertkit.interpret.views.view import View, paragraphs

HEADS = View(
    name="heads",
    title="Heads",
    legend=paragraphs(
        """
        To understand a word, a BERT looks at the other words. It does so in layers, one after the
        other, and each layer has several heads, each of which looks for something of its own. This
        is called attention.

        The text stands here twice. A line goes from a token on the left to a token on the right
        that it looks at; the stronger the line, the more it looks there. What one token gives to
        all others together is always 100 %. Each head has a color.

        Move over a token on the left to see only where it looks, or over one on the right to see
        who looks at it. Click to keep it, and read the numbers in the table. The arrow keys move
        from token to token, Enter keeps one and Escape lets it go.

        Words that the model doesn't know whole are cut into pieces: ##ing goes on a word. [CLS]
        stands for the whole text and [SEP] ends it; many heads look there when they have found
        nothing.
        """
    ),
    cross_legend=paragraphs(
        """
        On the left stands what is written, on the right what is read. A line goes from a token on
        the left to a token on the right that it looks at; the stronger the line, the more it looks
        there. What one token gives to all others together is always 100 %. Each head has a color.

        The token on the left has just been written; with what it finds on the right, the model
        chooses the next one. So a line from “a” in “a dog” may lead to what “dog” is made from.
        [CLS] stands where nothing is written yet.

        Move over a token on the left to see only where it looks, or over one on the right to see
        who looks at it. Click to keep it, and read the numbers in the table. The arrow keys move
        from token to token, Enter keeps one and Escape lets it go.

        Words that the model doesn't know whole are cut into pieces: ##ing goes on a word. Many
        heads look at [CLS] and [SEP] when they look for nothing.
        """
    ),
)
