"""The models of each architecture as ONNX graphs with padded batches: the encoder and its heads.

Outputs have the names that Optimum gives them, so that its classes load the file too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.names import NameTable
from bertkit.checkpoints.onnx_file import SCALE, SENTENCE, TRANSPOSED
from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.inference.graphs.bert import POOLER, write_token_features, write_word_features
from bertkit.inference.graphs.graph import JOINED
from bertkit.inference.onnx.graph import Shape
from bertkit.inference.onnx.padded import INPUT_NAMES, PaddedGraph
from bertkit.inference.onnx.sentences import write_pooling
from bertkit.models.bert.config import BertConfig, check_bidirectional
from bertkit.models.bert.feature_head import read_feature_head

Outputs = dict[str, Shape]


class ExportedKind(NamedTuple):
    """How models of an architecture are exported."""

    architecture: str
    # adds the nodes to a graph; returns its outputs, name → shape
    write: Callable[[PaddedGraph], Outputs]
    input_shape: Shape = ("batch", "length")  # of each of the inputs


def list_inputs(config: BertConfig) -> tuple[str, ...]:
    """Return the names of a graph's inputs; a model with one segment doesn't ask for segments."""
    return INPUT_NAMES if config.type_vocab_size > 1 else INPUT_NAMES[:2]


def find_kind(architecture: str, config: BertConfig, source: str | Path) -> ExportedKind:
    """Return how an architecture is exported."""
    check_bidirectional(config, source, "which ONNX graphs aren't written for")
    has_nodes = architecture in EXPORTED
    if architecture == FEATURE_BASED:
        has_nodes = read_feature_head(config).is_pooled
    if not has_nodes:
        raise CheckpointError(
            f"{source}: ONNX graphs are written of {', '.join(EXPORTED)}, and not of this"
            f" {architecture}"
        )
    return EXPORTED[architecture]


def their_name(name: str, table: NameTable) -> str:
    """Return the name in Hugging Face's files for the name of a weight in a graph."""
    ours = name.removesuffix(TRANSPOSED).removesuffix(SCALE)
    suffix = name.removeprefix(ours)
    if ours.startswith(SENTENCE):
        return name
    layer, _, kind = ours.rpartition(".")
    parent, _, last = layer.rpartition(".")
    for joined, parts in JOINED.items():
        if last in parts:
            return table.their_names(f"{parent}.{joined}.{kind}")[parts.index(last)] + suffix
    return table.their_names(ours)[0] + suffix


def write_encoder(graph: PaddedGraph) -> str:
    """Write the encoder for the graph's inputs, and return the states of all tokens."""
    return graph.write_encoder(list_inputs(graph.config))


def write_bert(graph: PaddedGraph) -> Outputs:
    """Write the encoder, and the pooler if there is one."""
    size = graph.config.hidden_size
    tokens = graph.onnx.name_output(write_encoder(graph), "last_hidden_state")
    outputs: Outputs = {tokens: ("batch", "length", size)}
    if POOLER in graph.weights:
        summaries = graph.onnx.name_output(graph.write_summaries(tokens), "pooler_output")
        outputs[summaries] = ("batch", size)
    return outputs


def write_sequence_labels(graph: PaddedGraph) -> Outputs:
    """Write a classifier or regressor of sequences."""
    return _write_labels(graph, graph.write_summaries(write_encoder(graph)), "batch")


def write_token_labels(graph: PaddedGraph) -> Outputs:
    """Write a classifier of tokens."""
    return _write_labels(
        graph, write_token_features(graph, write_encoder(graph)), "batch", "length"
    )


def write_pooled_labels(graph: PaddedGraph) -> Outputs:
    """Write a classifier or regressor of pooled tokens."""
    pooling = read_feature_head(graph.config).pooling
    pooled = write_pooling(graph.onnx, (pooling,), write_encoder(graph))
    return _write_labels(graph, pooled, "batch")


def _write_labels(graph: PaddedGraph, features: str, *sizes: str) -> Outputs:
    logits = graph.onnx.name_output(graph.linear("classifier", features), "logits")
    return {logits: (*sizes, graph.config.num_labels)}


def write_choices(graph: PaddedGraph) -> Outputs:
    """Write a multiple-choice model, whose inputs are `[batch, choices, length]`."""
    onnx = graph.onnx
    sizes = onnx.node("Shape", "input_ids")
    length = onnx.node("Gather", sizes, onnx.constant([2]))
    rows = onnx.node("Concat", onnx.constant([-1]), length, axis=0)
    inputs = [onnx.node("Reshape", name, rows) for name in list_inputs(graph.config)]
    pooled = graph.write_summaries(graph.write_encoder(inputs))
    shape = onnx.node("Gather", sizes, onnx.constant([0, 1]))
    scores = onnx.node("Reshape", graph.linear("classifier", pooled), shape, output="logits")
    return {scores: ("batch", "choices")}


def write_answers(graph: PaddedGraph) -> Outputs:
    """Write an extractive question answering model."""
    scores = graph.linear("qa_outputs", write_token_features(graph, write_encoder(graph)))
    return {
        graph.onnx.take(scores, index, axis=2, output=name): ("batch", "length")
        for index, name in enumerate(("start_logits", "end_logits"))
    }


def write_pretraining(graph: PaddedGraph) -> Outputs:
    """Write a model with both heads of pre-training."""
    tokens = write_encoder(graph)
    pairs = _write_pair_scores(graph, tokens, "seq_relationship_logits")
    return {**_write_word_scores(graph, tokens), **pairs}


def write_words(graph: PaddedGraph) -> Outputs:
    """Write a masked language model."""
    return _write_word_scores(graph, write_encoder(graph))


def write_pairs(graph: PaddedGraph) -> Outputs:
    """Write a next sentence model."""
    return _write_pair_scores(graph, write_encoder(graph), "logits")


def _write_word_scores(graph: PaddedGraph, tokens: str) -> Outputs:
    scores = graph.score_words(write_word_features(graph, tokens))
    logits = graph.onnx.name_output(scores, "logits")
    return {logits: ("batch", "length", graph.config.vocab_size)}


def _write_pair_scores(graph: PaddedGraph, tokens: str, output: str) -> Outputs:
    scores = graph.linear("next_sentence", graph.write_summaries(tokens))
    return {graph.onnx.name_output(scores, output): ("batch", 2)}


EXPORTED: dict[str, ExportedKind] = {
    kind.architecture: kind
    for kind in (
        ExportedKind("BertModel", write_bert),
        ExportedKind("BertForPreTraining", write_pretraining),
        ExportedKind("BertForMaskedLM", write_words),
        ExportedKind("BertForNextSentencePrediction", write_pairs),
        ExportedKind("BertForSequenceClassification", write_sequence_labels),
        ExportedKind(FEATURE_BASED, write_pooled_labels),
        ExportedKind("BertForTokenClassification", write_token_labels),
        ExportedKind("BertForQuestionAnswering", write_answers),
        ExportedKind("BertForMultipleChoice", write_choices, ("batch", "choices", "length")),
    )
}
