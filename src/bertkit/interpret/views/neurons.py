"""The neuron view: how queries and keys produce a head's attention, feature by feature.

Source: Vig 2019, "A Multiscale Visualization of Attention in the Transformer Model", neuron view.
"""

from bertkit.interpret.views.view import View, paragraphs

LEGEND = paragraphs(
    """
    This is how a head decides where a token looks. The token that looks has a query: a list of
    numbers for what it looks for. Each token has a key: as many numbers for what it is found by.

    The numbers at the same place in query and key are multiplied (q × k). The products added up,
    over the square root of how many there are, are the score (q · k). Softmax makes the scores of
    all tokens into shares of 100 %: the attention. By these shares the token gathers the values
    (v) of all tokens.

    Blue is positive, orange is negative, and the stronger the color, the larger the number. A blue
    product draws the attention to a token, an orange one turns it away. Each block has a scale of
    its own, above it; few numbers are beyond its ends.

    Before a token is chosen, you see all queries and the scores of all pairs: a row for each token
    that looks, a column for each that is seen.

    To try: choose a token on the left. Find a column of q × k that is blue where the attention is
    high, and pale or orange elsewhere: this number makes the choice. Point at it to read it, or go
    there with Tab and the arrow keys. Escape leads back to all tokens.

    Queries, keys and values are rounded in this file, to one of 255 steps in each head, so scores
    can be a little off. The attention was computed before the rounding.
    """
)

ACROSS = (
    "This is how a head decides where a token that is written looks in what is read. The token that"
    " looks has just been written; it has a query: a list of numbers for what it looks for. Each"
    " token that is read has a key: as many numbers for what it is found by."
)

NEURONS = View(
    name="neurons",
    title="Neurons",
    legend=LEGEND,
    cross_legend=(ACROSS, *LEGEND[1:]),
)
