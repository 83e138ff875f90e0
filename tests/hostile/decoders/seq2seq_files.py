"""Folders of encoder-decoders that contradict themselves, lack something, or ask for too much."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch
from tests.hostile.case import Case, Defects, make_cases
from tests.hostile.whole import (
    CONFIG,
    WEIGHTS,
    folder_with,
    header_and_data,
    join,
    to_json,
    weights_file,
)
from torch import Tensor

from bertkit.base.errors import CheckpointError, DamagedFileError
from bertkit.checkpoints.torch_tensors import export_tensors
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.names import ENCODER_DECODER, SHARED
from bertkit.models.bert.config import BertConfig
from bertkit.nn.embeddings import sinusoids

HUGE = 1 << 24  # the largest size that a config may name
SIZES = {name: value for name, value in CONFIG.items() if name != "architectures"}
JOINED: dict[str, Any] = {
    **EncoderDecoderConfig.of(BertConfig(**SIZES), start_id=2, end_id=3).to_dict(),
    "architectures": ["EncoderDecoderModel"],
}
COPY = "decoder.cls.predictions.decoder.weight"
POSITIONS = (
    "encoder.embeddings.position_embeddings.weight",
    "decoder.bert.embeddings.position_embeddings.weight",
)
CROSS = "decoder.bert.encoder.layer.1.crossattention.self.key.weight"

Weights = Mapping[str, Tensor]


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (_accepted, _contradictions, _sizes, _kinds, _tensors, _shared):
        yield from make_cases(part(), dict)


@cache
def tensors() -> Weights:
    """Weights for `JOINED` under foreign names, the same ones each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = EncoderDecoderModel(EncoderDecoderConfig(**JOINED))
        return export_tensors(model.state_dict(), ENCODER_DECODER)


def _folder(config: Mapping[str, Any], weights: Weights | None = None) -> dict[str, bytes]:
    """A whole folder but for what is wrong with it."""
    content = weights_file(tensors() if weights is None else weights)
    return folder_with({"config.json": to_json(config), WEIGHTS: content})


def _half(side: str, **changes: Any) -> dict[str, Any]:
    """The config with one half changed."""
    return {**JOINED, side: {**JOINED[side], **changes}}


def _without(config: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


def _accepted() -> Defects:
    words = tensors()[SHARED[1]]
    shared = {**tensors(), SHARED[0]: words, SHARED[1]: words}
    pooler = {
        "encoder.pooler.dense.weight": torch.zeros(8, 8),
        "encoder.pooler.dense.bias": torch.zeros(8),
    }
    waves = {name: sinusoids(*tensors()[name].shape) for name in POSITIONS}
    return {
        ("encoder-decoder", None, ""): (
            _folder(JOINED),
            _folder(JOINED, {**tensors(), COPY: words.clone()}),
            _folder(JOINED, {**tensors(), **pooler}),
            _folder({**JOINED, "shares_embeddings": True}, shared),
            _folder({**JOINED, "positions": "sinusoidal"}, {**tensors(), **waves}),
            _folder({**JOINED, "unknown_key": [1, {"x": None}]}),
        )
    }


def _contradictions() -> Defects:
    other = {"vocab_size": 33}
    return {
        (
            "halves that contradict each other",
            CheckpointError,
            "(is_decoder|hidden_size|vocab_size|token_id|positions|normalizes_first)",
        ): map(
            _folder,
            (
                _half("encoder", is_decoder=True),
                _half("decoder", is_decoder=False),
                _half("decoder", hidden_size=12),
                {**_half("decoder", **other), "shares_embeddings": True},
                {**JOINED, "decoder_start_token_id": 32},
                {**JOINED, "eos_token_id": 1 << 40},
                {**JOINED, "pad_token_id": 1},
                {**JOINED, "positions": "rotary"},
                {**JOINED, "normalizes_first": "perhaps"},
            ),
        ),
        (
            "half that isn't one",
            CheckpointError,
            "(encoder|decoder|model_type|bertkit doesn.t have)",
        ): map(
            _folder,
            (
                _without(JOINED, "encoder"),
                _without(JOINED, "decoder_start_token_id"),
                {**JOINED, "encoder": None},
                {**JOINED, "decoder": "bert"},
                _half("encoder", model_type="roberta"),
                _half("decoder", model_type="gpt2"),
                _half("encoder", position_embedding_type="relative_key"),
                _half("decoder", auto_map={"AutoModel": "evil.Evil"}),
            ),
        ),
    }


def _sizes() -> Defects:
    giant = {"hidden_size": HUGE, "intermediate_size": HUGE, "num_hidden_layers": 256}
    both = {**JOINED, **{side: {**JOINED[side], **giant} for side in ("encoder", "decoder")}}
    return {
        ("halves of huge sizes", CheckpointError, "(and must be|missing)"): map(
            _folder,
            (
                both,
                {**both, "normalizes_first": True, "model_type": "bertkit-encoder-decoder"},
                {**both, "positions": "sinusoidal"},
                *(
                    _half(side, **{name: value})
                    for side in ("encoder", "decoder")
                    for name, value in (
                        ("num_hidden_layers", 256),
                        ("vocab_size", HUGE),
                        ("intermediate_size", HUGE),
                        ("max_position_embeddings", HUGE),
                    )
                ),
            ),
        ),
        (
            "half with a size out of range",
            CheckpointError,
            "must be (at least|at most|a whole number)",
        ): map(
            _folder,
            (
                _half(side, **{name: value})
                for side in ("encoder", "decoder")
                for name in ("vocab_size", "num_hidden_layers")
                for value in (0, HUGE + 1, "32", None)
            ),
        ),
    }


def _kinds() -> Defects:
    return {
        ("encoder-decoder of another type", CheckpointError, "isn't an encoder-decoder"): map(
            _folder, ({**JOINED, "model_type": kind} for kind in ("bart", "", None, 5, ["bert"]))
        ),
        ("encoder-decoder that claims to be a BERT", CheckpointError, "is an encoder-decoder,"): (
            _folder({**JOINED, "architectures": names})
            for names in (["BertModel"], ["BertForPreTraining"], ["BertLMHeadModel"], [])
        ),
    }


def _tensors() -> Defects:
    crosses = [name for name in tensors() if "crossattention" in name]
    stray = CROSS.replace("decoder.bert", "encoder", 1)
    broken = ((CROSS, torch.nan), (SHARED[1], torch.inf))
    header, data = header_and_data(tensors())
    return {
        ("missing cross-attention", CheckpointError, "missing decoder.bert.encoder.layer"): (
            _folder(JOINED, _without(tensors(), *names)) for names in ([CROSS], crosses)
        ),
        ("encoder-decoder with a strange tensor", CheckpointError, "unknown"): (
            _folder(JOINED, {**tensors(), name: torch.zeros(8, 8)})
            for name in (stray, "decoder.x", "encoder.bert.x", "x" * 5000, "decoder.\x1b[31m")
        ),
        ("encoder-decoder whose tensor isn't finite", CheckpointError, "NaN or infinity"): (
            _folder(JOINED, {**tensors(), name: tensors()[name] * value}) for name, value in broken
        ),
        ("encoder-decoder whose tied copy differs", CheckpointError, "must equal"): [
            _folder(JOINED, {**tensors(), COPY: tensors()[SHARED[1]] + 1})
        ],
        (
            "encoder-decoder whose fixed positions are other ones",
            CheckpointError,
            "aren't sines and cosines",
        ): [_folder({**JOINED, "positions": "sinusoidal"})],
        ("encoder-decoder cut short", DamagedFileError, ""): (
            folder_with({"config.json": to_json(JOINED), WEIGHTS: join(header, data[:end])})
            for end in (-1, len(data) // 2, 0)
        ),
    }


def _shared() -> Defects:
    config = {**JOINED, "shares_embeddings": True}
    words = tensors()[SHARED[0]]
    return {
        (
            "shared embeddings that differ",
            CheckpointError,
            "shares_embeddings is true, and .* differ",
        ): [_folder(config)],
        ("shared embeddings of another shape", CheckpointError, "and must be"): (
            _folder(config, {**tensors(), SHARED[0]: words, SHARED[1]: other})
            for other in (words[:-1].clone(), words[:, :-1].clone(), torch.zeros(0, 8))
        ),
    }
