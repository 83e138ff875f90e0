"""The model view: all heads of all layers at a glance."""

from bertkit.interpret.views.view import View, paragraphs

MODEL = View(
    name="model",
    title="All heads",
    legend=paragraphs(
        """
        Each small picture is a head: a row for each layer, from the first, which reads the words,
        to the last, and a column for each head.

        In a picture, each row is a token that looks and each column a token that is looked at, both
        from the beginning of the text to its end; the stronger the color of a point, the more it
        looks there. A slanting line means that tokens look at their neighbors, an upright line
        that all look at the same token.

        Under it stands what the head does here, where that has a name: at least half of its
        attention goes to the next token, say, or to [SEP]. “Broad” means that it looks nearly
        everywhere alike, “mixed” that it has none of these habits.

        Click a picture to enlarge it, and go on from there to the lines of that head.
        """
    ),
    cross_legend=paragraphs(
        """
        Each small picture is a head: a row for each layer of the half that writes, from the first
        to the last, and a column for each head.

        In a picture, each row is a token that is written and each column a token that is read; the
        stronger the color of a point, the more it looks there. In a translation a slanting line
        means that the words of both texts come in the same order. An upright line means that all
        look at the same token.

        Under it stands what the head does here, where that has a name: at least half of its
        attention goes to [CLS], to [SEP], or to the same word. “Broad” means that it looks nearly
        everywhere alike, “mixed” that it has none of these habits. Click a picture to enlarge it,
        and go on from there to the lines of that head.
        """
    ),
)
