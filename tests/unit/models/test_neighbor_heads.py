"""Before training, first-layer heads attend to the token at their offset most, or after itself."""

import pytest
import torch

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.neighbor_heads import attend_to_neighbors
from bertkit.nn.attention import score_keys
from bertkit.nn.packing import PackedBatch

LENGTH = 40


def first_layer_attention(config: BertConfig) -> torch.Tensor:
    """Attention weights of the first layer for random tokens, [heads, tokens, tokens]."""
    torch.manual_seed(0)
    encoder = BertModel(config).eval().encoder
    attend_to_neighbors(encoder)
    ids = torch.randint(0, config.vocab_size, (LENGTH,))
    rows = encoder.embeddings(PackedBatch.from_single([ids.tolist()]))
    attention = encoder.layers[0].attention
    heads = attention.query_key_value(rows).view(LENGTH, 3, attention.num_heads, -1)
    query, key = heads[:, 0].transpose(0, 1), heads[:, 1].transpose(0, 1)
    scores = score_keys(query, key)
    if attention.is_causal:
        scores = scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf)
    return scores.softmax(dim=-1)


@pytest.mark.parametrize(
    ("hidden_size", "num_heads", "is_causal", "offsets"),
    [
        (128, 2, False, [-1, 1]),
        (256, 4, False, [-1, 1, -2, 2]),
        (384, 6, False, [-1, 1, -2, 2, -1, 1]),
        (256, 4, True, [-1, -2, -3, -4]),
    ],
)
def test_heads_attend_to_their_neighbor(hidden_size, num_heads, is_causal, offsets):
    config = BertConfig(
        vocab_size=500,
        hidden_size=hidden_size,
        num_hidden_layers=1,
        num_attention_heads=num_heads,
        intermediate_size=hidden_size,
        max_position_embeddings=64,
        is_decoder=is_causal,
        initializer_range=0.7 / hidden_size**0.5,
    )
    weights = first_layer_attention(config)
    inner = torch.arange(4, LENGTH - 4)
    for head, offset in enumerate(offsets):
        mean = torch.stack([weights[head, inner, inner + other] for other in range(-4, 5)]).mean(1)
        mean[4] = 0.0  # a token also fits itself
        if is_causal:
            mean[5:] = 0.0
        assert int(mean.argmax()) - 4 == offset
        assert mean[offset + 4] > 8 / LENGTH


def test_only_positions_queries_and_keys_change():
    torch.manual_seed(0)
    encoder = BertModel(BertConfig.preset("tiny", vocab_size=50)).encoder
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    attend_to_neighbors(encoder)
    changed = {
        name for name, tensor in encoder.state_dict().items() if not tensor.equal(before[name])
    }
    joined = "layers.0.attention.query_key_value.weight"
    assert changed == {"embeddings.position.weight", joined}
    values = before[joined].view(3, -1)[2]
    assert encoder.state_dict()[joined].view(3, -1)[2].equal(values)
