"""ONNX Runtime gives what PyTorch gives, for batches of every shape."""

import random
import re
import sys

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.inference.engines import onnx_engine as module
from bertkit.inference.engines.onnx_engine import OnnxEngine, cut_parts
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.onnx.graph import OnnxGraph
from bertkit.inference.onnx.packed import OPSET, PackedWriter
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.packed_ids import PackedIds

MAX_LENGTH = 140
SHAPES_PER_MODEL = 50
SIZES = [(16, 2, 24), (24, 3, 40), (32, 1, 16), (8, 8, 8), (48, 4, 64)]
MODELS = [
    (activation, *SIZES[number % len(SIZES)])
    for number, activation in enumerate([*ACTIVATIONS, "gelu"])
]


def build(activation: str, hidden_size: int, num_heads: int, inner: int) -> BertModel:
    """All weights random and far from 0, norms and biases included."""
    torch.manual_seed(hidden_size)
    config = build_config(
        vocab_size=60,
        hidden_size=hidden_size,
        num_attention_heads=num_heads,
        intermediate_size=inner,
        hidden_act=activation,
        max_position_embeddings=MAX_LENGTH,
    )
    model = BertModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def random_batch(chance: random.Random) -> PackedIds:
    """Short or long, of one length or of many, of one segment or two, sorted or not."""
    longest = chance.choice([3, 12, 40, MAX_LENGTH])
    number = chance.choice([1, 2, 5, 12])
    lengths = [chance.randint(1, longest) for _ in range(number)]
    if chance.random() < 0.3:
        lengths = [lengths[0]] * number
    if chance.random() < 0.5:
        lengths.sort(reverse=True)
    ids = [[chance.randrange(60) for _ in range(length)] for length in lengths]
    first = [chance.randint(0, length) for length in lengths]
    segments = [[0] * cut + [1] * (n - cut) for cut, n in zip(first, lengths, strict=True)]
    return PackedIds.from_sequences(ids, segments)


@pytest.mark.parametrize(("activation", "hidden_size", "num_heads", "inner"), MODELS)
def test_it_agrees_with_torch_on_500_shapes(activation, hidden_size, num_heads, inner):
    model = build(activation, hidden_size, num_heads, inner)
    ours, theirs = OnnxEngine(model), TorchEngine(model)
    chance = random.Random(hidden_size)
    for _ in range(SHAPES_PER_MODEL):
        batch = random_batch(chance)
        (found,), (expected,) = ours(batch), theirs(batch)
        assert found.dtype == np.float32
        assert_close(found, expected)


@pytest.fixture(scope="module")
def model():
    return build("gelu", 16, 2, 24)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_many_parts_at_once_are_those_of_each_alone(model, num_threads):
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        engine = OnnxEngine(model, (0, -1))
    finally:
        torch.set_num_threads(before)
    assert engine.num_threads == num_threads
    sequences = [[5 + number % 50] * (1 + number % MAX_LENGTH) for number in range(60)]
    batch = PackedIds.from_single(sequences)
    together = [np.split(state, batch.first_tokens[1:]) for state in engine(batch)]
    for number, ids in enumerate(sequences):
        alone = engine(PackedIds.from_single([ids]))
        for state, expected in zip(together, alone, strict=True):
            assert_close(state[number], expected)


def test_an_error_in_a_thread_reaches_the_caller(model):
    batch = PackedIds.from_single([[5] * 100, [60] * 90])
    with pytest.raises(Exception, match="out of data bounds"):
        OnnxEngine(model)(batch)


def write(model: BertModel, layers: tuple[int, ...]) -> OnnxGraph:
    graph = OnnxGraph(OPSET)
    PackedWriter(graph, model.config, is_mixed=True).write(model.encoder, layers)
    return graph


def test_weights_are_used_where_they_lie(model):
    weights = write(model, (2,)).weights
    word = model.encoder.embeddings.word.weight
    assert weights["encoder.embeddings.word.weight"].data_ptr() == word.data_ptr()
    query_key_value = model.encoder.layers[1].attention.query_key_value.weight
    key = weights["encoder.layers.1.attention.key.weight"]
    assert key.data_ptr() == query_key_value[16:].data_ptr()


def test_layers_above_the_highest_are_left_out(model):
    assert not any("layers.1" in name for name in write(model, (1, 0)).weights)


def test_parts_cover_a_batch_once():
    chance = random.Random(0)
    for _ in range(200):
        lengths = [chance.randint(1, 512) for _ in range(chance.randint(1, 40))]
        parts = list(cut_parts(lengths, 2))
        assert [index for part in parts for index in range(*part)] == list(range(len(lengths)))
        for start, end in parts:
            assert end - start == 1 or sum(lengths[start:end]) <= module.MAX_PART_TOKENS


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_what_is_missing_is_told_with_the_way_to_get_it(monkeypatch, model, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError, match=rf"{package} .*{re.escape(describe_install('onnx'))}"
    ):
        OnnxEngine(model)(PackedIds.from_single([[5, 6]]))
