"""PyTorch's engine gives what a model's own modules give; auto takes one by device and model."""

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config, build_model, save_small

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.inference.engines import choice
from bertkit.inference.engines.choice import find_torch_reason, open_engine
from bertkit.inference.engines.engine import resolve_layers
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.settings import EngineSettings
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch
from bertkit.training import processor
from bertkit.training.device import choose_device
from bertkit.training.processor import Processor

IDS = PackedIds.from_single([[2, 5, 6, 3], [2, 3], [2, 7, 8, 9, 5, 3]])
BATCH = PackedBatch.of(IDS)
NATIVE = ("avx512_bf16", "avx512_vnni")


@pytest.fixture
def opened(tmp_path):
    save_small(tmp_path)
    return OpenModel.open(tmp_path)


@pytest.fixture
def causal(tmp_path):
    save_small(tmp_path / "whole")
    return OpenModel.open(tmp_path / "whole").change(is_decoder=True)


def settings(**values: str) -> EngineSettings:
    return EngineSettings(**{"device": "cpu", **values})


@pytest.mark.parametrize("layers", [(3,), (-3,), (0, 7), ()])
def test_a_layer_that_is_not_there_is_refused(layers):
    with pytest.raises(SettingsError, match="layer"):
        resolve_layers(layers, 2)


@pytest.mark.parametrize("name", ["openvino", "torch"])
@pytest.mark.parametrize("layers", [(-1,), (0, 1, 2), (2, 0), (1, -2)])
def test_an_engine_gives_the_layers_that_are_asked_for(opened, name, layers):
    model = build_model().eval()
    with torch.no_grad():
        states = list(model.encoder.hidden_states(BATCH))
        assert_close(states[-1], model.encoder(BATCH))
    engine = open_engine(opened, settings(engine=name, precision="fp32"), "BertModel", layers)
    assert (engine.name, engine.layers) == (name, resolve_layers(layers, 2))
    found = engine(IDS)
    assert len(found) == len(layers)
    for layer, state in zip(engine.layers, found, strict=True):
        assert_close(state, states[layer])


def test_heads_are_those_of_the_architecture_that_is_asked_for(opened):
    found = [
        open_engine(opened, settings(engine=name, precision="fp32"), "BertForPreTraining")
        for name in ("openvino", "torch")
    ]
    assert_close(found[0].score_pairs(IDS), found[1].score_pairs(IDS))
    assert_close(*(one.pool(one(IDS)[-1], IDS) for one in found))
    with pytest.raises(CheckpointError, match="no classifier head"):
        open_engine(opened, settings(), "BertForTokenClassification")


def test_left_to_right_is_for_torch(causal):
    asked = settings(engine="openvino")
    with pytest.raises(SettingsError, match="only bidirectional models on a CPU; use torch"):
        open_engine(causal, asked, "BertLMHeadModel")
    assert open_engine(causal, settings(), "BertLMHeadModel").name == "torch"
    with pytest.raises(SettingsError, match="int8 is for bidirectional models"):
        open_engine(causal, settings(precision="int8"), "BertLMHeadModel")


@pytest.mark.parametrize(
    ("device", "engine", "precision", "flags", "reason"),
    [
        ("cpu", "auto", "auto", (), None),
        ("cpu", "auto", "int8", (), None),
        ("cpu", "auto", "bf16", NATIVE, None),
        ("cpu", "auto", "bf16", (), "bf16 on a processor without instructions for it"),
        ("cpu", "torch", "auto", NATIVE, "the engine torch"),
        ("auto", "auto", "auto", (), "a GPU"),
        ("auto", "openvino", "auto", (), None),
        ("cuda", "auto", "auto", (), "the device cuda"),
    ],
)
def test_the_engine_follows_from_settings_and_machine(
    monkeypatch, device, engine, precision, flags, reason
):
    monkeypatch.setattr(choice, "has_gpu", lambda: True)
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("", "P", flags))
    loading = EngineSettings(device=device, engine=engine, precision=precision)
    assert find_torch_reason(loading, build_config()) == reason


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:", "cuda:01", "cuda:x", "CPU", ""])
def test_a_device_that_there_cannot_be_is_refused(name):
    message = "device must be auto, cpu, cuda or cuda:N"
    with pytest.raises(SettingsError, match=message):
        find_torch_reason(settings(device=name), build_config())
    with pytest.raises(SettingsError, match=message):
        choose_device(name)


def test_openvino_is_for_cpus():
    with pytest.raises(SettingsError, match="only bidirectional models on a CPU"):
        find_torch_reason(settings(engine="openvino", device="cuda"), build_config())


@pytest.mark.parametrize(
    ("name", "flags", "taken"),
    [
        ("auto", (), "fp32"),
        ("auto", NATIVE, "bf16"),
        ("fp32", NATIVE, "fp32"),
        ("bf16", NATIVE, "bf16"),
        ("int8", NATIVE, "int8"),
    ],
)
def test_the_precision_follows_from_the_processor(monkeypatch, capsys, name, flags, taken):
    found = Processor("AuthenticAMD", "P", flags)
    monkeypatch.setattr(processor, "read_processor", lambda: found)
    assert choice.choose_precision(name) == taken
    assert not capsys.readouterr().err


def test_what_the_processor_lacks_is_said(monkeypatch, capsys):
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("", "P", ()))
    assert choice.choose_precision("int8") == "int8"
    assert "no instructions for products of int8" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="bf16 only on processors that have it"):
        choice.choose_precision("bf16")


def test_without_a_driver_there_is_no_gpu(monkeypatch):
    def fail(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(processor.ctypes, "CDLL", fail)
    monkeypatch.setattr(torch.cuda, "is_available", pytest.fail)
    for function in (processor.has_driver, processor.has_gpu):
        function.cache_clear()
    assert not processor.has_gpu()
    for function in (processor.has_driver, processor.has_gpu):
        function.cache_clear()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_torch_computes_in_half_precision_too(opened, precision):
    engine = open_engine(
        opened, settings(engine="torch", precision=precision), "BertForPreTraining"
    )
    assert engine.precision == precision
    model = build_model().eval()
    with torch.no_grad():
        expected = model.encoder(BATCH)
    (found,) = engine(IDS)
    assert_close(found, expected, within=0.2 if precision == "bf16" else None)
    assert torch.equal(torch.from_numpy(found), expected) == (precision == "fp32")
    assert engine.model.encoder.embeddings.word.weight.dtype == torch.float32  # heads read it


def test_float64_runs_as_it_is():
    model = build_model().double()
    engine = TorchEngine(model)
    assert engine.encoder is model.encoder
    with torch.no_grad():
        expected = model.encoder(BATCH)
    (found,) = engine(IDS)
    assert found.dtype == "float32"
    assert_close(found, expected.float())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 0.1)])
def test_a_gpu_agrees_with_the_cpu(precision, tolerance):
    sizes = {"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.1}
    expected = TorchEngine(build_model(**sizes))(IDS)[0]
    engine = TorchEngine(build_model(**sizes).cuda(), precision=precision)
    assert_close(engine(IDS)[0], expected, within=tolerance)
