"""The heads of a model, computed in NumPy from the hidden states of an engine, in float32."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.inference.graphs.bert import write_pooler, write_token_features, write_word_features
from bertkit.inference.graphs.numpy_graph import NumpyGraph
from bertkit.models.bert.feature_head import read_feature_head
from bertkit.nn.packed_ids import PackedIds, reduce_sequences

Array: TypeAlias = npt.NDArray[np.float32]


def score_labels(graph: NumpyGraph, summaries: Array) -> Array:
    """Return a classifier's logits for each sequence, from the states that represent them."""
    return graph.linear("classifier", write_pooler(graph, summaries))


def score_choices(graph: NumpyGraph, summaries: Array) -> Array:
    """Return a logit for each sequence, comparable within the choices of one question."""
    return score_labels(graph, summaries)[:, 0]


def score_pairs(graph: NumpyGraph, summaries: Array) -> Array:
    """Return logits of "B follows A" (0) and "it doesn't" (1)."""
    return graph.linear("next_sentence", write_pooler(graph, summaries))


def score_tokens(graph: NumpyGraph, tokens: Array, _: PackedIds) -> Array:
    """Return a classifier's logits for each token."""
    return graph.linear("classifier", write_token_features(graph, tokens))


def score_spans(graph: NumpyGraph, tokens: Array, _: PackedIds) -> Array:
    """Return the logits of each token as first (0) and last (1) of an answer."""
    return graph.linear("qa_outputs", write_token_features(graph, tokens))


def score_features(graph: NumpyGraph, tokens: Array, ids: PackedIds) -> Array:
    """Return the logits of a head on pooled tokens, or on each token, of one or several layers."""
    head = read_feature_head(graph.config)
    if head.scores == "token":
        return score_tokens(graph, tokens, ids)
    scores = graph.linear("classifier", POOLINGS[head.pooling](tokens, ids))
    return scores[:, 0] if head.scores == "choice" else scores


@np.errstate(over="ignore", invalid="ignore")  # callers check what comes out
def score_words(graph: NumpyGraph, tokens: Array) -> Array:
    """Return logits of all words for each of the tokens."""
    return graph.score_words(write_word_features(graph, tokens))


def mean_tokens(tokens: Array, ids: PackedIds) -> Array:
    """Return the mean of each sequence's tokens."""
    means = reduce_sequences(tokens, ids.lengths)
    means /= np.array(ids.lengths, np.float32)[:, None]
    return means


POOLINGS: dict[str, Callable[[Array, PackedIds], Array]] = {
    "cls": lambda tokens, ids: tokens[ids.first_tokens],
    "max": lambda tokens, ids: reduce_sequences(tokens, ids.lengths, np.maximum),
    "mean": mean_tokens,
}
# The logits of each fine-tuned architecture, from what represents each sequence …
SUMMARY_SCORES: dict[str, Callable[[NumpyGraph, Array], Array]] = {
    "BertForSequenceClassification": score_labels,
    "BertForMultipleChoice": score_choices,
}
# … or from those of all tokens.
TOKEN_SCORES: dict[str, Callable[[NumpyGraph, Array, PackedIds], Array]] = {
    "BertForTokenClassification": score_tokens,
    "BertForQuestionAnswering": score_spans,
    FEATURE_BASED: score_features,
}
