"""An encoder in the steps of a `Graph`: its blocks, the pooler and the heads.

What it is made of stands in the graph's `parts` and `head`; the defaults are BERT's.

Source: Devlin et al. 2018, section 3 and appendix A.
"""

from bertkit.inference.graphs.graph import Graph, Value

POOLER = "pooler.dense.weight"


def write_layers(graph: Graph[Value], embedded: Value, num_layers: int) -> list[Value]:
    """Write the first layers for the sums of a batch's embeddings, and return all their states.

    Layer 0 is the output of the embeddings, n that of block n; the last block's are normalized if
    its norms come first.
    """
    tokens = graph.norm("encoder.embeddings.norm", embedded)
    if graph.parts.embedding_size is not None:
        tokens = graph.linear("encoder.embeddings.projection", tokens)
    states = [tokens]
    for layer in range(num_layers):
        states.append(write_block(graph, layer, states[-1], is_highest=layer == num_layers - 1))
    if graph.parts.normalizes_first and num_layers == graph.config.num_hidden_layers:
        states[-1] = graph.norm("encoder.final_norm", states[-1])
    return states


def write_block(graph: Graph[Value], layer: int, tokens: Value, *, is_highest: bool) -> Value:
    """Write attention and feed-forward, each with residual and layer norm.

    Args:
        is_highest: whether no block follows, so that only the tokens that `keep` chooses go on.
    """
    name, is_first = f"encoder.layers.{layer}", graph.parts.normalizes_first
    has_norm = is_first and (layer > 0 or graph.parts.has_first_norm)
    read = graph.norm(f"{name}.attention_norm", tokens) if has_norm else tokens
    query, key, value = graph.linear_parts(f"{name}.attention.query_key_value", read)
    context = graph.attend(query, key, value, layer)
    if is_highest:
        context, tokens = graph.keep(context), graph.keep(tokens)
    mixed = graph.add(graph.linear(f"{name}.attention.output", context), tokens)
    if is_first:
        normed = graph.norm(f"{name}.feed_forward_norm", mixed)
        return graph.add(write_feed_forward(graph, f"{name}.feed_forward", normed), mixed)
    tokens = graph.norm(f"{name}.attention_norm", mixed)
    outer = write_feed_forward(graph, f"{name}.feed_forward", tokens)
    return graph.norm(f"{name}.feed_forward_norm", graph.add(outer, tokens))


def write_feed_forward(graph: Graph[Value], name: str, tokens: Value) -> Value:
    """Write a feed-forward network, whose inner layer may have a gate."""
    activation = graph.config.hidden_act
    if graph.parts.is_gated:
        inner, gate = graph.linear_parts(f"{name}.up", tokens)
        inner = graph.multiply(graph.activate(activation, inner), gate)
    else:
        inner = graph.activate(activation, graph.linear(f"{name}.up", tokens))
    return graph.linear(f"{name}.down", inner)


def write_pooler(graph: Graph[Value], states: Value) -> Value:
    """Write what a head computes before its last layer: C, for the states of each [CLS]."""
    pooled = graph.activate(graph.head.activation, graph.linear("pooler.dense", states))
    return graph.norm("pooler.norm", pooled) if graph.head.has_norm else pooled


def write_token_features(graph: Graph[Value], tokens: Value) -> Value:
    """Write what the last layer of a head on all tokens reads: their states, in most families."""
    return write_pooler(graph, tokens) if POOLER in graph.weights else tokens


def write_word_features(graph: Graph[Value], tokens: Value) -> Value:
    """Write the vectors that the masked LM head multiplies with the word embeddings."""
    active = graph.activate(graph.config.word_activation, graph.linear("masked_lm.dense", tokens))
    return graph.norm("masked_lm.norm", active)
