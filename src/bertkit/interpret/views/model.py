"""The model view: all heads of all layers at a glance."""

from bertkit.interpret.views.view import View, paragraphs

MODEL = View(
    name="model",
    title="All heads",
    legend=paragraphs(
        """
        Each small picture shows the attention of one head. Each row of pictures is a layer, from
        the first, which reads the embeddings, to the last; each column is a head.

        In a picture, each row is a query token and each column a key token, in the order of the
        text; the stronger the color of a point, the higher the attention weight. A diagonal line
        means that tokens attend to their neighbors, a vertical line that all tokens attend to the
        same token.

        The name under a picture is the head's pattern on this text: at least half of its attention
        goes, for example, to the next token or to [SEP]. “Broad” means nearly uniform attention,
        “mixed” none of the named patterns.

        Click a picture to enlarge it; from there you can open the head in the view “Heads”.
        """
    ),
    cross_legend=paragraphs(
        """
        Each small picture shows the attention of one head. Each row of pictures is a layer of the
        decoder, from the first to the last; each column is a head.

        In a picture, each row is a target token and each column a source token; the stronger the
        color of a point, the higher the attention weight. In a translation a diagonal line means
        that both texts have the same word order. A vertical line means that all target tokens
        attend to the same source token.

        The name under a picture is the head's pattern on this text: at least half of its attention
        goes to [CLS], to [SEP], or to the same word. “Broad” means nearly uniform attention,
        “mixed” none of the named patterns. Click a picture to enlarge it; from there you can open
        the head in the view “Heads”.
        """
    ),
)
