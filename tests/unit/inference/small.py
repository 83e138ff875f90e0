"""A tiny model with its tokenizer, and a run that could have made it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.checkpoints.torch_tensors import lazy_tensor
from bertkit.inference.engines.torch_engine import choose_engine
from bertkit.inference.torch_model import TorchModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.optimizer import build_optimizer
from bertkit.training.record import RunRecord, RunState
from bertkit.training.run import Run
from bertkit.training.settings import LoopSettings

WORDS = ("the", "a", "cat", "dog", "saw", "lost", "hat", ".", "-", "##s")


def build_config(**changes: object) -> BertConfig:
    """Two layers of two heads, and weights large enough that every token matters."""
    sizes = {
        "vocab_size": len(SPECIAL_TOKENS) + len(WORDS),
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 24,
        "initializer_range": 0.5,
    }
    return BertConfig(**{**sizes, **changes})


def build_model(**changes: object) -> BertForPreTraining:
    """The model of such a config."""
    torch.manual_seed(0)
    return BertForPreTraining(build_config(**changes))


def save_small(folder: Path, **changes: object) -> dict[str, FileRecord]:
    """A Hugging Face folder."""
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *WORDS])
    return {**build_model(**changes).save_pretrained(folder), **tokenizer.save(folder)}


def save_run(folder: Path, step: int = 3) -> Path:
    """A run with one checkpoint, and that checkpoint."""
    run, model = Run(folder), build_model()
    record = RunRecord(settings={}, data_fingerprint="", model={}, num_steps=9, versions={})
    run.write_record(record)
    optimizer = build_optimizer(model, LoopSettings())
    run.save(RunState(step=step, tokens=70), model, optimizer, save_small)
    return checkpoint_path(folder, step)


def save_kind(folder: Path, kind: type[PretrainedBert]) -> None:
    """A Hugging Face folder of the small model's encoder under other heads, its own ones kept."""
    save_small(folder / "whole")
    model = kind.from_pretrained(folder / "whole", new_heads=True)
    model.save_pretrained(folder)
    Tokenizer.load(folder / "whole").save(folder)


def build_sentence_model(linear: nn.Linear, *, has_bias: bool = True) -> SentenceModel:
    """What stands behind an encoder of sentences: mean, a linear layer, and normalizing."""
    dense = Dense(
        weight=lazy_tensor(linear.weight),
        bias=lazy_tensor(linear.bias) if has_bias else None,
        activation="tanh",
    )
    return SentenceModel(
        modules=(Pooling(dimension=8, modes=("mean",)), dense, Normalize()),
        max_seq_length=20,
        prompts={"query": "seek: "},
        similarity="cosine",
    )


def start(kind: Any, loaded: TorchModel, engine: str = "auto", precision: str = "auto") -> Any:
    """A pipeline over a loaded encoder."""
    return kind(loaded, choose_engine(engine, loaded.model, precision=precision))


def arrays_of(model: nn.Module) -> dict[str, NDArray[np.float32]]:
    """A model's weights, as an engine takes them; they share its memory."""
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}
