"""Recurrent nets against the formulas of their papers, spelled out a token at a time."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.closeness import assert_close
from tests.parity.agreement import randomize

from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import (
    LanguageModelConfig,
    SkipThoughtConfig,
    TranslatorConfig,
)
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel
from bertkit_studies.recurrent.skip_thought import SkipThought
from bertkit_studies.recurrent.translator import AttentionalTranslator

SENTENCES = [[2, 7, 8, 9, 3], [2, 3], [2, 5, 6, 7, 8, 9, 10, 3], [2, 4, 4, 3]]
WRITTEN = [[2, 11, 12], [2, 13, 14, 15, 16, 17], [2], [2, 11, 11]]
LABELS = [[11, 12, 3], [13, 14, 15, 16, 17, 3], [3], [11, 11, 3]]
VOCABULARY, EMBEDDING, HIDDEN = 20, 6, 5


def lstm_cell(net, layer, word, state):
    """Hochreiter and Schmidhuber 1997, with a forget gate: i, f, g, o."""
    hidden, cell = state
    gates = (
        getattr(net, f"weight_ih_l{layer}") @ word
        + getattr(net, f"bias_ih_l{layer}")
        + getattr(net, f"weight_hh_l{layer}") @ hidden
        + getattr(net, f"bias_hh_l{layer}")
    )
    enter, forget, new, leave = gates.chunk(4)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


def gru_cell(weights, biases, word, hidden):
    """Cho et al. 2014, as torch has it: what is forgotten is decided behind the product."""
    (inner, outer), (inner_bias, outer_bias) = weights, biases
    read_r, read_z, read_n = (inner @ word + inner_bias).chunk(3)
    kept_r, kept_z, kept_n = (outer @ hidden + outer_bias).chunk(3)
    update = (read_z + kept_z).sigmoid()
    new = (read_n + (read_r + kept_r).sigmoid() * kept_n).tanh()
    return (1 - update) * new + update * hidden


def of_gru(net):
    suffix = "_l0" if hasattr(net, "weight_ih_l0") else ""
    names = (("weight_ih", "weight_hh"), ("bias_ih", "bias_hh"))
    return tuple(tuple(getattr(net, f"{name}{suffix}") for name in pair) for pair in names)


def read_lstm(net, words):
    for layer in range(net.num_layers):
        state = (words[0].new_zeros(HIDDEN), words[0].new_zeros(HIDDEN))
        states = []
        for word in words:
            state = lstm_cell(net, layer, word, state)
            states.append(state[0])
        words = states
    return words


def read_gru(net, words):
    hidden, states = words[0].new_zeros(HIDDEN), []
    for word in words:
        hidden = gru_cell(*of_gru(net), word, hidden)
        states.append(hidden)
    return states


def build(kind, config):
    model = kind(config).double().eval()
    randomize(model, 0.5)
    return model


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {
        name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None
    }


def assert_same_gradients(model, ours, theirs):
    found, expected = gradients(model, ours), gradients(model, theirs)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert_close(found[name], gradient)
    assert all(gradient.abs().max() > 0 for gradient in expected.values())


def cross_entropies(model, embeddings, features, labels):
    scores = torch.stack(features) @ embeddings.weight.t() + model.bias
    return F.cross_entropy(scores, torch.tensor(labels), reduction="sum")


@pytest.mark.parametrize("is_next", [True, False])
def test_language_model_agrees_with_its_cells(is_next):
    config = LanguageModelConfig(
        vocab_size=VOCABULARY,
        embedding_size=EMBEDDING,
        hidden_size=HIDDEN,
        num_layers=2,
        dropout=0.0,
    )
    model = build(RecurrentLanguageModel, config)
    batch = PackedBatch.from_single(SENTENCES)
    embeddings, features, labels, positions, start = model.reader.embeddings, [], [], [], 0
    for sentence in SENTENCES:
        words = list(embeddings(torch.tensor(sentence)))
        if is_next:
            states = read_lstm(model.reader.from_start, words)
            features += [model.next_word(state) for state in states[:-1]]
            labels += sentence[1:]
            positions += range(start, start + len(sentence) - 1)
        else:
            states = read_lstm(model.reader.from_end, words[::-1])[::-1]
            features += [model.previous_word(state) for state in states[1:]]
            labels += sentence[:-1]
            positions += range(start + 1, start + len(sentence))
        start += len(sentence)
    loss = model.next_loss if is_next else model.previous_loss
    ours, _ = loss(batch, torch.tensor(positions), torch.tensor(labels))
    theirs = cross_entropies(model, embeddings, features, labels)
    assert_close(ours, theirs)
    assert_same_gradients(model, ours, theirs)


def test_skip_thought_agrees_with_its_cells():
    config = SkipThoughtConfig(
        vocab_size=VOCABULARY, embedding_size=EMBEDDING, hidden_size=HIDDEN, dropout=0.0
    )
    model = build(SkipThought, config)
    features = []
    for sentence, written in zip(SENTENCES, WRITTEN, strict=True):
        vector = read_gru(model.encoder, list(model.embeddings(torch.tensor(sentence))))[-1]
        words = [torch.cat([word, vector]) for word in model.embeddings(torch.tensor(written))]
        features += [model.word(state) for state in read_gru(model.writers["after"], words)]
    labels = [word for row in LABELS for word in row]
    ours, _ = model.neighbor_loss(
        "after",
        model.encode(PackedBatch.from_single(SENTENCES)),
        PackedBatch.from_single(WRITTEN),
        torch.tensor(labels),
    )
    theirs = cross_entropies(model, model.embeddings, features, labels)
    assert_close(ours, theirs)
    assert_same_gradients(model, ours, theirs)


def build_translator():
    config = TranslatorConfig(
        vocab_size=VOCABULARY,
        embedding_size=EMBEDDING,
        hidden_size=HIDDEN,
        attention_size=7,
        dropout=0.0,
        decoder_start_token_id=2,
        eos_token_id=3,
    )
    return build(AttentionalTranslator, config)


def attend(model, state, annotations):
    """Appendix A.1.2: e = v · tanh(W s + U h), and shares by softmax."""
    attention = model.attention
    scores = torch.stack(
        [
            attention.score.weight[0]
            @ torch.tanh(attention.query.weight @ state + attention.key.weight @ annotation)
            for annotation in annotations
        ]
    )
    shares = scores.exp() / scores.exp().sum()
    return sum(share * one for share, one in zip(shares, annotations, strict=True)), shares


def translate(model, sentence, written):
    """Features of the word after each that is written, and the shares; section 3, appendix A."""
    words = list(model.embeddings(torch.tensor(sentence)))
    back = read_gru(model.from_end, words[::-1])[::-1]
    on = read_gru(model.from_start, words)
    annotations = [torch.cat(pair) for pair in zip(on, back, strict=True)]
    state = torch.tanh(model.first_state.weight @ back[0] + model.first_state.bias)
    features, all_shares = [], []
    for word in model.embeddings(torch.tensor(written)):
        context, shares = attend(model, state, annotations)
        state = gru_cell(*of_gru(model.writer), torch.cat([word, context]), state)
        pieces = model.readout(torch.cat([word, state, context]))
        features.append(torch.stack([pieces[2 * i : 2 * i + 2].max() for i in range(EMBEDDING)]))
        all_shares.append(shares)
    return features, torch.stack(all_shares)


def test_translator_agrees_with_the_paper():
    model = build_translator()
    found = [translate(model, *pair) for pair in zip(SENTENCES, WRITTEN, strict=True)]
    features = [feature for one, _ in found for feature in one]
    labels = [word for row in LABELS for word in row]
    source, target = PackedBatch.from_single(SENTENCES), PackedBatch.from_single(WRITTEN)
    ours, _ = model.next_loss(source, target, torch.tensor(labels))
    theirs = cross_entropies(model, model.embeddings, features, labels)
    assert_close(ours, theirs)
    assert_same_gradients(model, ours, theirs)
    for shares, (_, expected) in zip(model.align(source, target), found, strict=True):
        assert_close(shares, expected)


def test_additive_attention_agrees_with_numpy():
    model = build_translator()
    attention = model.attention
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(6, HIDDEN))  # three rows for each of two sequences
    memory = model.read(PackedBatch.from_single([SENTENCES[0], SENTENCES[1]]))
    contexts, shares = attention(torch.from_numpy(queries), memory)
    weights = [layer.weight.detach().numpy() for layer in (attention.query, attention.key)]
    vector = attention.score.weight.detach().numpy()[0]
    for row, query in enumerate(queries):
        length = len(SENTENCES[row // 3])
        states = memory.states[row // 3, :length].detach().numpy()
        scores = np.tanh(query @ weights[0].T + states @ weights[1].T) @ vector
        expected = np.exp(scores) / np.exp(scores).sum()
        assert_close(shares[row, :length].detach(), expected)
        assert not shares[row, length:].any()
        assert_close(contexts[row].detach(), expected @ states)
