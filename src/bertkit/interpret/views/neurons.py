"""The neuron view: how queries and keys produce a head's attention, feature by feature.

Source: Vig 2019, "A Multiscale Visualization of Attention in the Transformer Model", neuron view.
"""

from bertkit.interpret.views.view import View, paragraphs

LEGEND = paragraphs(
    """
    This view shows how a head computes where a token attends. Each query token has a query vector,
    each key token a key vector with as many numbers.

    The numbers at the same position in query and key are multiplied (q × k). The sum of the
    products, divided by the square root of their number, is the score (q · k). Softmax turns the
    scores of all tokens into weights that sum to 100 %: the attention. The output for the query
    token is the sum of the value vectors (v) of all tokens by these weights.

    Blue is positive, orange is negative, and the stronger the color, the larger the number. A blue
    product raises the attention to a token, an orange one lowers it. Each block has its own scale,
    above it; a few numbers exceed its ends.

    Before a token is chosen, the view shows all queries and the scores of all pairs: a row for each
    query token, a column for each key token.

    To try: choose a token on the left. Find a column of q × k that is blue where the attention is
    high, and pale or orange elsewhere: this number determines the attention. Point at it to read
    it, or go there with Tab and the arrow keys. Escape leads back to all tokens.

    Queries, keys and values are rounded in this file, to one of 255 steps in each head, so scores
    can differ slightly. The attention was computed before the rounding.
    """
)

ACROSS = (
    "This view shows how a head computes where a target token attends in the source text. Each"
    " target token has a query vector, each source token a key vector with as many numbers."
)

NEURONS = View(
    name="neurons",
    title="Neurons",
    legend=LEGEND,
    cross_legend=(ACROSS, *LEGEND[1:]),
)
