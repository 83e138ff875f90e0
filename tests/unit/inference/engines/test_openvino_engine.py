"""OpenVINO gives what PyTorch gives, for batches of every shape."""

import inspect
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import arrays_of, build_config

from bertkit.base.errors import SettingsError
from bertkit.checkpoints.elements import ElementType, StoredRows, narrow
from bertkit.inference.engines import openvino_engine as module
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.openvino_engine import (
    OpenVinoEngine,
    Variant,
    count_threads,
    cut_parts,
    load_core,
)
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.graphs import numpy_graph, openvino_graph
from bertkit.inference.graphs.graph import WORDS
from bertkit.inference.graphs.openvino_graph import OpenVinoGraph
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


def build(activation: str, hidden_size: int, num_heads: int, inner: int, **changes) -> BertModel:
    """All weights random and far from 0, norms and biases included."""
    torch.manual_seed(hidden_size)
    config = build_config(
        vocab_size=60,
        hidden_size=hidden_size,
        num_attention_heads=num_heads,
        intermediate_size=inner,
        hidden_act=activation,
        max_position_embeddings=MAX_LENGTH,
        **changes,
    )
    model = BertModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def start(model: BertModel, *arguments: object) -> OpenVinoEngine:
    weights = arrays_of(model)
    return OpenVinoEngine(model.config, weights, "BertModel", *arguments)


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
    ours, theirs = start(model), TorchEngine(model)
    chance = random.Random(hidden_size)
    for _ in range(SHAPES_PER_MODEL):
        ids = random_batch(chance)
        (found,), (expected,) = ours(ids), theirs(ids)
        assert found.dtype == np.float32
        assert_close(found, expected)


@pytest.fixture(scope="module")
def model():
    return build("gelu", 16, 2, 24)


@pytest.fixture
def threads(monkeypatch):
    return lambda number: monkeypatch.setenv("OMP_NUM_THREADS", str(number))


SEQUENCES = [[5 + number % 50] * (1 + number % MAX_LENGTH) for number in range(60)]


def split(engine: Engine, sequences: list[list[int]]) -> list[list[np.ndarray]]:
    """The states of each sequence, computed in one batch."""
    ids = PackedIds.from_single(sequences)
    ends = np.cumsum(ids.lengths)[:-1]
    return [
        list(parts) for parts in zip(*(np.split(each, ends) for each in engine(ids)), strict=True)
    ]


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_many_parts_at_once_are_those_of_each_alone(model, threads, num_threads):
    threads(num_threads)
    engine = start(model, (0, -1))
    assert engine.num_threads == num_threads
    together = split(engine, SEQUENCES)
    for ids, states in zip(SEQUENCES, together, strict=True):
        assert_close(states, engine(PackedIds.from_single([ids])))


def test_several_threads_may_call_it_at_once(model):
    engine = start(model)
    expected = split(engine, SEQUENCES)
    batches = [SEQUENCES[number::7] for number in range(7)] + [[ids] for ids in SEQUENCES[:9]]
    wanted = [expected[number::7] for number in range(7)] + [[each] for each in expected[:9]]
    with ThreadPoolExecutor(8) as pool:
        for found, right in zip(
            pool.map(lambda each: split(engine, each), batches), wanted, strict=True
        ):
            assert_close(found, right)


def test_a_copy_of_another_process_gives_the_same(model):
    engine = start(model)
    expected = engine(PackedIds.from_single(SEQUENCES))
    copy = pickle.loads(pickle.dumps(engine))
    assert_close(copy(PackedIds.from_single(SEQUENCES)), expected)


def test_a_copy_in_a_process_with_fewer_threads_has_those(model, threads):
    threads(3)
    written = pickle.dumps(start(model))
    threads(1)
    copy = pickle.loads(written)
    assert (copy.num_threads, copy.tokens_per_batch) == (
        1,
        module.PART_TOKENS * module.PARTS_PER_THREAD,
    )


def test_a_batch_that_fails_keeps_no_request(model, threads):
    threads(2)
    engine = start(model)
    ids = PackedIds.from_single(SEQUENCES)
    (expected,) = engine(ids)
    (compiled,) = engine._compiled.values()
    parts = list(engine._list_parts(ids, Variant((2,), is_mixed=True, is_summarizing=False)))
    for _ in range(3):
        with pytest.raises(ValueError, match="could not broadcast"):
            compiled.run(parts, [np.empty((1, 16), np.float32)])
    narrow_parts = [([inputs[0][:, :3], *inputs[1:]], rows) for inputs, rows in parts]
    with pytest.raises(RuntimeError, match="shape"):
        compiled.run(narrow_parts, [np.empty_like(expected)])
    assert_close(engine(ids)[0], expected)


@pytest.mark.parametrize(("num_threads", "kept"), [(1, 512), (2, 256), (64, 32)])
def test_kernels_of_few_shapes_are_kept(model, threads, monkeypatch, num_threads, kept):
    threads(num_threads)
    asked = []
    core = load_core()

    def compile_model(graph: object, device: str, options: dict[str, object]) -> object:
        asked.append(options)
        return core.compile_model(graph, device, options | {"NUM_STREAMS": 1})

    monkeypatch.setattr(module, "load_core", lambda: Mock(compile_model=compile_model))
    start(model)(PackedIds.from_single(SEQUENCES[:2]))
    assert [options["CPU_RUNTIME_CACHE_CAPACITY"] for options in asked] == [kept]


def test_an_id_that_is_not_there_is_an_error_and_the_next_batch_is_computed(model):
    engine = start(model)
    with pytest.raises(IndexError, match="60 is out of bounds"):
        engine(PackedIds.from_single([[5] * 100, [60] * 90]))
    assert_close(split(engine, SEQUENCES[:3]), split(start(model), SEQUENCES[:3]))


def test_scores_far_from_zero_are_masked_and_segments_may_be_one():
    model = build("gelu", 16, 2, 24, type_vocab_size=1)
    with torch.no_grad():
        for layer in model.encoder.layers:
            layer.attention.query_key_value.weight *= 300.0
    ids = PackedIds.from_single(SEQUENCES[3:9])
    assert_close(start(model)(ids), TorchEngine(model)(ids))


@pytest.mark.skipif(
    "BF16" not in load_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"),
    reason="this processor has no bf16",
)
def test_bf16_is_near_and_is_not_float32(model):
    ids = PackedIds.from_single(SEQUENCES)
    (found,), (expected,) = start(model, (-1,), "bf16")(ids), start(model)(ids)
    assert found.dtype == np.float32
    assert_close(found, expected, within=0.1 * np.abs(expected).max())
    assert np.abs(found - expected).max() > 1e-4


def test_int8_is_near_and_is_not_float32(model):
    ids = PackedIds.from_single(SEQUENCES)
    (found,), (expected,) = start(model, (-1,), "int8")(ids), start(model)(ids)
    assert_close(found, expected, within=0.1 * np.abs(expected).max())
    assert np.abs(found - expected).max() > 1e-4


@pytest.mark.parametrize("inner", [1, 2, 3, 4])
def test_int8_is_near_where_matrices_are_narrow(inner):
    model = build("gelu", 64, 2, inner)
    ids = PackedIds.from_single(SEQUENCES[20:23])
    (exact,) = start(model)(ids)
    assert_close(start(model, (-1,), "int8")(ids)[0], exact, within=0.3)


def test_left_to_right_is_refused():
    model = build("gelu", 16, 2, 24, is_decoder=True)
    with pytest.raises(SettingsError, match="supports only bidirectional models; use torch"):
        start(model)


def test_another_precision_than_asked_for_is_refused(model, monkeypatch):
    graph = OpenVinoGraph(model.config, arrays_of(model), is_mixed=True)
    options = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = load_core().compile_model(graph.write((2,)), "CPU", options)
    check = inspect.unwrap(module.check_precision)  # tests of other processors leave it out
    monkeypatch.setattr(module, "check_precision", check)
    monkeypatch.setattr(module, "load_core", lambda: Mock(compile_model=lambda *_: compiled))
    with pytest.raises(SettingsError, match="OpenVINO computes in f32 here, not in bf16"):
        start(model, (-1,), "bf16")(PackedIds.from_single([[5]]))


def test_in_int8_a_text_is_the_same_in_any_batch(model):
    engine = start(model, (-1,), "int8")
    for ids, states in zip(SEQUENCES, split(engine, SEQUENCES), strict=True):
        assert_close(states, engine(PackedIds.from_single([ids])), within=0.02)


def test_weights_are_used_where_they_lie(model):
    weights = arrays_of(model)
    graph = OpenVinoGraph(model.config, weights, is_mixed=True)
    joined = weights["encoder.layers.1.attention.query_key_value.weight"]
    constants = [
        node.data
        for node in graph.write((2,)).get_ops()
        if node.get_type_name() == "Constant" and node.data.shape == (16, 16)
    ]
    assert any(np.shares_memory(each, joined[16:32]) for each in constants)


def test_layers_above_the_highest_are_left_out(model):
    weights = arrays_of(model)
    lower = {name: each for name, each in weights.items() if "layers.1" not in name}
    engine = OpenVinoEngine(model.config, lower, "BertModel", (1, 0))
    assert len(engine(PackedIds.from_single([[5, 6]]))) == 2


def test_words_are_looked_up_where_they_are_stored(model):
    weights = arrays_of(model)
    words = StoredRows(narrow(weights[WORDS], ElementType.BF16), ElementType.BF16)
    rounded = {**weights, WORDS: words.read()}
    engine = OpenVinoEngine(model.config, rounded, "BertModel", words=words)
    assert WORDS not in engine.weights
    assert engine.list_weights().keys() == weights.keys()
    ids = PackedIds.from_single([[5, 6], [7]])
    whole = OpenVinoEngine(model.config, rounded, "BertModel")
    assert np.array_equal(engine(ids)[0], whole(ids)[0])


def test_parts_cover_a_batch_once():
    chance = random.Random(0)
    for _ in range(200):
        lengths = [chance.randint(1, 512) for _ in range(chance.randint(1, 40))]
        parts = list(cut_parts(lengths, 2))
        assert [index for start, end, _ in parts for index in range(start, end)] == list(
            range(len(lengths))
        )
        tokens = np.concatenate([np.arange(sum(lengths))[each] for _, _, each in parts])
        assert tokens.tolist() == list(range(sum(lengths)))
        for start, end, _ in parts:
            assert end - start == 1 or sum(lengths[start:end]) <= module.PART_TOKENS


def test_tables_have_all_activations():
    assert openvino_graph.ACTIVATIONS.keys() == ACTIVATIONS.keys()
    assert numpy_graph.ACTIVATIONS.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize(("value", "expected"), [("3", 3), ("0", None), ("many", None)])
def test_threads_are_those_of_openmp_or_of_the_process(monkeypatch, value, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    monkeypatch.setattr(module, "count_cores", lambda: 4)
    assert count_threads() == (expected or 4)


def test_a_sequence_of_any_length_is_right(model, threads):
    """Attention without a mask is wrong from some length on, in one release at least."""
    threads(2)
    ours, theirs = start(model), TorchEngine(model)
    for length in range(1, MAX_LENGTH, 3):
        ids = PackedIds.from_single([[5 + number % 50 for number in range(length)]])
        assert_close(ours(ids), theirs(ids))
