"""What bertkit's embeddings are measured beside: five other ways to run the same model.

sentence-transformers is what people use, and gets texts. ONNX Runtime, OpenVINO and CTranslate2 run
an encoder and nothing else, so the rest is put around them here as a careful user would write it:
the ids of bertkit's own tokenizer, texts sorted by length, padded batches up to a token budget, the
mean in NumPy.

- ONNX Runtime gets the graph that torch exports of transformers' model, fused by ONNX Runtime's own
  optimizer for transformers, which knows BERT's attention, GELU and norms.
- OpenVINO gets the graph as it was exported, which it fuses itself, or what its own quantization
  (NNCF) makes of that.
- CTranslate2 gets what its own converter makes, in float32, or with weights in int8.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import Tensor, nn

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.tokenization.tokenizer import Tokenizer
from devices import NUM_THREADS, Place
from minilm import MINILM, read_config

MAX_LENGTH = 256  # as the model's folder says
TOKEN_BUDGETS = (512, 1024, 2048, 4096)
OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
RunPadded = Callable[[Ids, Ids], Floats]  # ids and mask, [texts, length], to hidden states


@dataclass(frozen=True)
class PaddedPeer:
    """An encoder for padded batches, with all around it that makes vectors of texts.

    `tokenizer` makes the ids, and `run` is the encoder.
    """

    tokenizer: Tokenizer
    run: RunPadded

    def __call__(self, texts: Sequence[str], token_budget: int) -> Floats:
        """Normalized means, `[texts, features]`."""
        sequences = encode(self.tokenizer, texts)
        lengths = [len(ids) for ids in sequences]
        vectors: dict[int, Floats] = {}
        for chosen in plan_padded(lengths, token_budget):
            ids = np.zeros((len(chosen), max(lengths[index] for index in chosen)), np.int64)
            mask = np.zeros_like(ids)
            for row, index in enumerate(chosen):
                ids[row, : lengths[index]] = sequences[index]
                mask[row, : lengths[index]] = 1
            weights = mask[:, :, None].astype(np.float32)
            means = (self.run(ids, mask) * weights).sum(axis=1) / weights.sum(axis=1)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            vectors.update(zip(chosen, means, strict=True))
        return np.stack([vectors[index] for index in range(len(texts))])


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Ids as the model's folder wants them: cut, with [CLS] and [SEP]."""
    return [
        [tokenizer.cls_id, *ids[: MAX_LENGTH - 2], tokenizer.sep_id]
        for ids in tokenizer.piece_ids(texts)
    ]


def plan_padded(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Which texts share a batch: sorted by length, with padding at most `token_budget` tokens."""
    batches: list[list[int]] = [[]]
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches[-1] and (len(batches[-1]) + 1) * lengths[index] > token_budget:
            batches.append([])
        batches[-1].append(index)
    return batches


def share_of_padding(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """What part of the padded batches isn't text."""
    num_places = sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
    return 1 - sum(lengths) / num_places


def build_sentence_transformers(
    folder: Path, place: Place
) -> Callable[[Sequence[str], int], Floats]:
    """Texts and a batch size to vectors; the library sorts by length itself."""
    from sentence_transformers import SentenceTransformer

    dtype = torch.bfloat16 if place.precision == "bf16" else torch.float32
    model = SentenceTransformer(
        str(folder), device=str(place.device), model_kwargs={"dtype": dtype}
    )

    def embed(texts: Sequence[str], batch_size: int) -> Floats:
        vectors: Floats = model.encode(
            list(texts), batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return vectors

    return embed


def plan_like_sentence_transformers(texts: Sequence[str], batch_size: int) -> list[list[int]]:
    """Which texts share a batch there: sorted by their characters."""
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


class HiddenStates(nn.Module):
    """A model of transformers with three inputs by place and one output, as the exporter wants."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> Tensor:
        """The last hidden states."""
        hidden: Tensor = self.model(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state
        return hidden


def export_onnx(folder: Path, path: Path) -> None:
    model = transformers.BertModel.from_pretrained(
        folder, attn_implementation="eager", add_pooling_layer=False, dtype=torch.float32
    ).eval()
    ones = torch.ones(2, 9, dtype=torch.long)
    with silence():
        torch.onnx.export(
            HiddenStates(model),
            (ones, ones, 0 * ones),
            str(path),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in (*INPUTS, OUTPUT)},
            opset_version=OPSET,
            dynamo=False,
        )


def load_embedder(
    folder: Path, engine: EngineName, precision: PrecisionName, place: Place
) -> Embedder:
    """Ours, with all-MiniLM-L6-v2's own ways."""
    settings = EmbedderSettings(engine=engine, precision=precision, **MINILM)
    return Embedder.load(folder, settings, device=str(place.device))


def build_onnx_runtime(exported: Path, folder: Path) -> RunPadded:
    """ONNX Runtime on the fused graph of the model in `folder`."""
    import onnxruntime
    from onnxruntime.transformers import optimizer

    config = read_config(folder)
    fused = exported.with_name("fused.onnx")
    with silence():
        optimizer.optimize_model(
            str(exported),
            model_type="bert",
            num_heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            opt_level=1,
        ).save_model_to_file(str(fused))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = NUM_THREADS
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(fused), options, ["CPUExecutionProvider"])
    is_short = "int32" in session.get_inputs()[0].type
    dtype = np.int32 if is_short else np.int64

    def run(ids: Ids, mask: Ids) -> Floats:
        arrays = (ids.astype(dtype), mask.astype(dtype), np.zeros(ids.shape, dtype))
        hidden: Floats = session.run(None, dict(zip(INPUTS, arrays, strict=True)))[0]
        return hidden

    return run


def build_openvino(model: Path, precision: str | None = None) -> RunPadded:
    """OpenVINO, set for one request at a time on all threads; None for its own precision."""
    import openvino

    options = {"INFERENCE_NUM_THREADS": NUM_THREADS, "PERFORMANCE_HINT": "LATENCY"}
    if precision is not None:
        options["INFERENCE_PRECISION_HINT"] = precision
    request = openvino.Core().compile_model(str(model), "CPU", options).create_infer_request()

    def run(ids: Ids, mask: Ids) -> Floats:
        arrays = (ids, mask, np.zeros_like(ids))
        hidden: Floats = request.infer(dict(zip(INPUTS, arrays, strict=True)))[0]
        return hidden

    return run


def quantize_openvino(exported: Path, folder: Path, texts: Sequence[str]) -> RunPadded:
    """OpenVINO in int8, after its own quantization, which looks at some texts."""
    import nncf
    import openvino

    tokenizer = Tokenizer.load(folder)

    def encode_one(text: str) -> dict[str, Ids]:
        ids = np.array(encode(tokenizer, [text]))
        return dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))

    with silence():
        model = nncf.quantize(
            openvino.Core().read_model(str(exported)),
            nncf.Dataset(texts, encode_one),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(texts),
        )
    quantized = exported.with_name("quantized.xml")
    openvino.save_model(model, str(quantized))
    return build_openvino(quantized)


def build_ctranslate2(folder: Path, target: Path, kind: str) -> RunPadded:
    import ctranslate2

    with silence():
        converter = ctranslate2.converters.TransformersConverter(str(folder))
        converter.convert(str(target), quantization=kind)
    encoder = ctranslate2.Encoder(
        str(target), device="cpu", compute_type=kind, inter_threads=1, intra_threads=NUM_THREADS
    )

    def run(ids: Ids, mask: Ids) -> Floats:
        lengths = mask.sum(axis=1).tolist()
        rows = [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]
        return np.array(encoder.forward_batch(rows).last_hidden_state)

    return run


@contextlib.contextmanager
def silence() -> Any:
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)
