"""BERT in the steps of a `Graph`: the blocks of the encoder, the pooler and the heads.

Source: Devlin et al. 2018, section 3 and appendix A.
"""

from bertkit.inference.graphs.graph import PARTS, Graph, Value


def write_layers(graph: Graph[Value], embedded: Value, num_layers: int) -> list[Value]:
    """Write the first layers for the sums of a batch's embeddings, and return all their states.

    Layer 0 is the output of the embeddings, n that of block n.
    """
    states = [graph.norm("encoder.embeddings.norm", embedded)]
    for number in range(num_layers):
        is_highest = number == num_layers - 1
        name = f"encoder.layers.{number}"
        states.append(write_block(graph, name, states[-1], is_highest=is_highest))
    return states


def write_block(graph: Graph[Value], name: str, tokens: Value, *, is_highest: bool) -> Value:
    """Write attention and feed-forward, each with residual and layer norm.

    Args:
        is_highest: whether no block follows, so that only the tokens that `keep` chooses go on.
    """
    query, key, value = (graph.linear(f"{name}.attention.{part}", tokens) for part in PARTS)
    context = graph.attend(query, key, value)
    if is_highest:
        context, tokens = graph.keep(context), graph.keep(tokens)
    mixed = graph.add(graph.linear(f"{name}.attention.output", context), tokens)
    tokens = graph.norm(f"{name}.attention_norm", mixed)
    inner = graph.linear(f"{name}.feed_forward.up", tokens)
    inner = graph.activate(graph.config.hidden_act, inner)
    outer = graph.add(graph.linear(f"{name}.feed_forward.down", inner), tokens)
    return graph.norm(f"{name}.feed_forward_norm", outer)


def write_pooler(graph: Graph[Value], summaries: Value) -> Value:
    """Write C for the states of each sequence's [CLS]."""
    return graph.activate("tanh", graph.linear("pooler.dense", summaries))


def write_word_features(graph: Graph[Value], tokens: Value) -> Value:
    """Write the vectors that the masked LM head multiplies with the word embeddings."""
    active = graph.activate(graph.config.word_activation, graph.linear("masked_lm.dense", tokens))
    return graph.norm("masked_lm.norm", active)
