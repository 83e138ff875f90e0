"""The choice of an engine, and PyTorch's, which gives what the model's own modules give."""

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_model

from bertkit.base.errors import SettingsError
from bertkit.inference.engines import choice
from bertkit.inference.engines.choice import ENGINES, choose_engine
from bertkit.inference.engines.engine import resolve_layers
from bertkit.inference.engines.onnx_engine import OnnxEngine
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch

IDS = PackedIds.from_single([[2, 5, 6, 3], [2, 3], [2, 7, 8, 9, 5, 3]])
BATCH = PackedBatch.of(IDS)


@pytest.mark.parametrize("layers", [(3,), (-3,), (0, 7), ()])
def test_a_layer_that_is_not_there_is_refused(layers):
    with pytest.raises(SettingsError, match="layer"):
        resolve_layers(layers, 2)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("layers", [(-1,), (0, 1, 2), (2, 0), (1, -2)])
def test_an_engine_gives_the_layers_that_are_asked_for(name, layers):
    model = build_model().eval()
    with torch.no_grad():
        states = list(model.encoder.hidden_states(BATCH))
        assert_close(states[-1], model.encoder(BATCH))
    engine = choose_engine(name, model, layers, "fp32")
    assert (engine.name, engine.layers) == (name, resolve_layers(layers, 2))
    found = engine(IDS)
    assert len(found) == len(layers)
    for layer, state in zip(engine.layers, found, strict=True):
        assert_close(state, states[layer])


@pytest.mark.parametrize(("is_there", "expected"), [(True, "onnx"), (False, "torch")])
def test_auto_takes_the_fastest_that_is_installed(monkeypatch, is_there, expected):
    monkeypatch.setattr(choice, "has_onnx", lambda: is_there)
    assert choose_engine("auto", build_model(), precision="fp32").name == expected


def test_left_to_right_is_for_torch():
    model = BertLMHeadModel(build_model(is_decoder=True).config).eval()
    engine = choose_engine("auto", model, precision="fp32")
    assert engine.name == "torch"
    assert_close(engine(IDS)[0], model.encoder(BATCH))
    with pytest.raises(
        SettingsError, match="only bidirectional models on a CPU in fp32 or int8; use torch"
    ):
        choose_engine("onnx", model)
    with pytest.raises(SettingsError, match="only bidirectional models"):
        OnnxEngine(model)


def test_half_precision_is_for_torch_and_near():
    model = build_model().eval()
    engine = choose_engine("auto", model, precision="bf16")
    assert (engine.name, engine.precision) == ("torch", "bf16")
    assert model.encoder.embeddings.word.weight.dtype == torch.float32  # heads may read it
    with pytest.raises(SettingsError, match="models on a CPU in fp32"):
        choose_engine("onnx", build_model(), precision="bf16")
    with torch.no_grad():
        expected = model.encoder(BATCH)
    found = engine(IDS)[0]
    assert found.dtype == np.float32
    assert_close(found, expected, within=0.2)
    assert not np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_of_other_types_are_for_torch(dtype):
    model = build_model().to(dtype)
    assert choose_engine("auto", model).name == "torch"
    with pytest.raises(SettingsError, match="models on a CPU in fp32"):
        choose_engine("onnx", model)


def test_integers_are_for_onnx():
    model = build_model().eval()
    engine = choose_engine("auto", model, precision="int8")
    assert (engine.name, engine.precision) == ("onnx", "int8")
    with torch.no_grad():
        expected = model.encoder(BATCH)
    found = engine(IDS)[0]
    assert_close(found, expected, within=0.2)
    assert not np.array_equal(found, expected)
    with pytest.raises(SettingsError, match="int8 is for bidirectional models"):
        choose_engine("torch", model, precision="int8")
    causal = BertLMHeadModel(build_model(is_decoder=True).config)
    with pytest.raises(SettingsError, match="int8 is for bidirectional models"):
        choose_engine("auto", causal, precision="int8")


@pytest.mark.parametrize("taken", ["bf16", "fp32"])
def test_auto_takes_what_the_processor_is_known_for(monkeypatch, taken):
    monkeypatch.setattr(choice, "choose_precision", lambda name, device, work: taken)
    model = build_model()
    engine = choose_engine("auto", model)
    assert engine.precision == taken
    assert engine.name == ("onnx" if taken == "fp32" else "torch")
    assert model.encoder.embeddings.word.weight.dtype == torch.float32
    assert choose_engine("onnx", model).precision == "fp32"


def test_float64_runs_as_it_is():
    model = build_model().double()
    engine = TorchEngine(model)
    assert engine.encoder is model.encoder
    with torch.no_grad():
        expected = model.encoder(BATCH)
    found = engine(IDS)[0]
    assert found.dtype == np.float32
    assert_close(found, expected.float())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 0.1)])
def test_a_gpu_agrees_with_the_cpu(precision, tolerance):
    sizes = {"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.1}
    expected = TorchEngine(build_model(**sizes))(BATCH)[0]
    engine = TorchEngine(build_model(**sizes).cuda(), precision=precision)
    found = engine(IDS)[0]
    assert found.is_cuda
    assert found.dtype == np.float32
    assert_close(found.cpu(), expected, within=tolerance)
