"""The next-word view: a left-to-right model's predictions after each token."""

from typing import Any

from bertkit.interpret.outcome import round_digits
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.metrics.perplexity import find_perplexity

NUM_WORDS = 5

LEGEND = paragraphs(
    """
    This model predicts the next word. For every token, this view lists the most likely next words
    with their probabilities: the bar behind a word is its probability, and all words of the
    vocabulary sum to 100 %. The model has seen the tokens up to this one, and none after it.

    “Comes next” is the token that actually follows, with its probability and its rank among all
    words: at rank 1 the model would have generated it itself. It is framed where it is among the
    most likely words.

    The mean log probability of these tokens measures how well the model predicts the text; e to the
    power of its negative is the perplexity, which is shown above the table: the model is as
    uncertain as if it chose among so many equally likely words.

    To try: look for the rows where the next word is least likely. Change the words before them, and
    see whether it becomes more likely.
    """
)


def collect_next(inputs: ViewInputs) -> dict[str, Any]:
    """Return the most likely words after each token, and the word that actually follows.

    Returns:
        "steps": for each token except the last, "token": its position, "next": the token that
        follows, "words": candidates with their probabilities, "own": probability and rank of the
        token that follows; "perplexity": that of the whole text.
    """
    next_words = inputs.observation.next_words
    assert next_words is not None  # `supports` excludes other models
    vocabulary, logarithms = inputs.inspected.tokenizer.vocabulary, next_words.log_probabilities
    own = logarithms[range(len(next_words.ids)), next_words.ids]
    ranks = (logarithms >= own[:, None]).sum(dim=-1).tolist()
    best = logarithms.exp().topk(min(NUM_WORDS, logarithms.shape[1]))
    rows = zip(
        next_words.ids,
        zip(best.indices.tolist(), best.values.tolist(), strict=True),
        zip(own.exp().tolist(), ranks, strict=True),
        strict=True,
    )
    return {
        "perplexity": round_digits(find_perplexity(-float(own.mean()))),
        "steps": [
            {
                "token": place,
                "next": vocabulary[id_],
                "words": [
                    [vocabulary[word], round_digits(share)]
                    for word, share in zip(*likeliest, strict=True)
                ],
                "own": [round_digits(share), rank],
            }
            for place, (id_, likeliest, (share, rank)) in enumerate(rows)
        ],
    }


NEXT = View(
    name="next",
    title="Next words",
    legend=LEGEND,
    collect=collect_next,
    supports=lambda inputs: (
        inputs.observation.next_words is not None and not inputs.is_cross_attention
    ),
)
