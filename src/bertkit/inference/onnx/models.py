"""The models of each architecture as ONNX graphs with padded batches: the encoder and its heads.

Outputs have the names that Optimum gives them, so that its classes load the file too.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.names import their_names
from bertkit.checkpoints.onnx_file import SCALE, SENTENCE, TRANSPOSED
from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.inference.onnx.graph import Shape
from bertkit.inference.onnx.padded import INPUT_NAMES, PaddedWriter, write_pooling
from bertkit.models.bert.config import BertConfig, check_bidirectional
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.feature_head import read_feature_head
from bertkit.models.bert.fine_tuning import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertkit.models.bert.heads import (
    BertForNextSentencePrediction,
    BertForPreTraining,
    WordScoringBert,
)

Outputs = dict[str, Shape]


class ExportedKind(NamedTuple):
    """How models of an architecture are exported."""

    # adds the nodes to a graph; returns its outputs, name → shape
    write: Callable[[PaddedWriter, Any], Outputs]
    input_shape: Shape = ("batch", "length")  # of each of `INPUT_NAMES`

    @property
    def inputs(self) -> Mapping[str, tuple[torch.dtype, Shape]]:
        """The graph's inputs, name → type and shape."""
        return dict.fromkeys(INPUT_NAMES, (torch.int64, self.input_shape))


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


def their_name(name: str) -> str:
    """Return the name in Hugging Face's files for the name of a weight in a graph."""
    ours = name.removesuffix(TRANSPOSED).removesuffix(SCALE)
    suffix = name.removeprefix(ours)
    if ours.startswith(SENTENCE):
        return name
    for number, part in enumerate(("query", "key", "value")):
        if f".attention.{part}." in ours:
            joined = ours.replace(f".attention.{part}.", ".attention.query_key_value.")
            return their_names(joined)[number] + suffix
    return their_names(ours)[0] + suffix


def write_bert(writer: PaddedWriter, model: BertModel) -> Outputs:
    """Write the encoder, and the pooler if there is one."""
    size = model.config.hidden_size
    tokens = writer.write_encoder(model.encoder, output="last_hidden_state")
    outputs: Outputs = {tokens: ("batch", "length", size)}
    if model.pooler is not None:
        outputs[writer.write_pooler(model.pooler, tokens, "pooler_output")] = ("batch", size)
    return outputs


def write_labels(
    writer: PaddedWriter,
    model: BertForSequenceClassification | BertFeatureBased | BertForTokenClassification,
) -> Outputs:
    """Write a classifier of tokens, or a classifier or regressor of sequences."""
    features, sizes = writer.write_encoder(model.encoder), ["batch"]
    match model:
        case BertForSequenceClassification():
            features = writer.write_pooler(model.pooler, features)
        case BertFeatureBased():
            features = write_pooling(writer.graph, (model.head.pooling,), features)
        case BertForTokenClassification():
            sizes.append("length")
    logits = writer.write_head("classifier", model.classifier, features, "logits")
    return {logits: (*sizes, model.config.num_labels)}


def write_choices(writer: PaddedWriter, model: BertForMultipleChoice) -> Outputs:
    """Write a multiple-choice model, whose inputs are `[batch, choices, length]`."""
    graph = writer.graph
    sizes = graph.node("Shape", "input_ids")
    length = graph.node("Gather", sizes, graph.constant([2]))
    rows = graph.node("Concat", graph.constant([-1]), length, axis=0)
    ids, mask, segments = (graph.node("Reshape", name, rows) for name in INPUT_NAMES)
    pooled = writer.write_pooler(
        model.pooler, writer.write_encoder(model.encoder, (ids, mask, segments))
    )
    scores = writer.write_head("classifier", model.classifier, pooled)
    shape = graph.node("Gather", sizes, graph.constant([0, 1]))
    return {graph.node("Reshape", scores, shape, output="logits"): ("batch", "choices")}


def write_answers(writer: PaddedWriter, model: BertForQuestionAnswering) -> Outputs:
    """Write an extractive question answering model."""
    tokens = writer.write_encoder(model.encoder)
    scores = writer.write_head("qa_outputs", model.qa_outputs, tokens)
    return {
        writer.graph.take(scores, index, axis=2, output=name): ("batch", "length")
        for index, name in enumerate(("start_logits", "end_logits"))
    }


def write_pretraining(writer: PaddedWriter, model: BertForPreTraining) -> Outputs:
    """Write a model with both heads of pre-training."""
    tokens = writer.write_encoder(model.encoder)
    pairs = write_pairs(writer, model, tokens, "seq_relationship_logits")
    return {**write_words(writer, model, tokens), **pairs}


def write_words(writer: PaddedWriter, model: WordScoringBert, tokens: str = "") -> Outputs:
    """Write a masked language model, or, if there are `tokens`, its head alone.

    The head's product reads the word embeddings where they are.
    """
    graph, head, config = writer.graph, model.masked_lm, model.config
    tokens = tokens or writer.write_encoder(model.encoder)
    dense = writer.write_head("masked_lm.dense", head.dense, tokens)
    active = writer.activations[config.hidden_act](graph, dense)
    features = graph.norm("masked_lm.norm", head.norm, active)
    words = graph.weight("encoder.embeddings.word.weight", model.encoder.embeddings.word.weight)
    scores = graph.node("MatMul", features, graph.node("Transpose", words, perm=[1, 0]))
    bias = graph.weight("masked_lm.bias", head.bias)
    logits = graph.node("Add", scores, bias, output="logits")
    return {logits: ("batch", "length", config.vocab_size)}


def write_pairs(
    writer: PaddedWriter,
    model: BertForNextSentencePrediction | BertForPreTraining,
    tokens: str = "",
    output: str = "logits",
) -> Outputs:
    """Write a next sentence model, or, if there are `tokens`, its head alone."""
    pooled = writer.write_pooler(model.pooler, tokens or writer.write_encoder(model.encoder))
    logits = writer.write_head("next_sentence", model.next_sentence, pooled, output)
    return {logits: ("batch", 2)}


EXPORTED: dict[str, ExportedKind] = {
    "BertModel": ExportedKind(write_bert),
    "BertForPreTraining": ExportedKind(write_pretraining),
    "BertForMaskedLM": ExportedKind(write_words),
    "BertForNextSentencePrediction": ExportedKind(write_pairs),
    "BertForSequenceClassification": ExportedKind(write_labels),
    FEATURE_BASED: ExportedKind(write_labels),
    "BertForTokenClassification": ExportedKind(write_labels),
    "BertForQuestionAnswering": ExportedKind(write_answers),
    "BertForMultipleChoice": ExportedKind(write_choices, ("batch", "choices", "length")),
}
