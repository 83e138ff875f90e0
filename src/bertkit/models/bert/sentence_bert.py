"""The encoder with the modules of a sentence-transformers folder: vectors of texts, to train.

Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling, read_dense
from bertkit.checkpoints.sentence_transformers import (
    SentenceModel,
    list_module_folders,
    write_sentence_model,
)
from bertkit.checkpoints.torch_tensors import lazy_tensor
from bertkit.models.bert.encoder import BertModel, summary_tokens
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.poolings import read_sentences
from bertkit.models.bert.weights import without_memory
from bertkit.nn.packing import PackedBatch, reduce_tokens

if TYPE_CHECKING:
    from bertkit.models.open_model import OpenModel

# Functions by the names of `checkpoints.sentence_modules.ACTIVATIONS`.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda values: values,
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
}


class SentenceBert(FineTunedBert):
    """A vector for each sequence: its tokens pooled, then the modules of the folder, all trained.

    The pooler, which no vector needs, stays as it is, for other tools that load the folder.

    Attributes:
        sentences: the modules in their order, and what else the folder says; written with it.
    """

    scored = "sequence"

    def __init__(self, bert: BertModel, sentences: SentenceModel) -> None:
        super().__init__(bert.config)
        self.encoder, self.pooler, self.sentences = bert.encoder, bert.pooler, sentences
        if self.pooler is not None:
            self.pooler.requires_grad_(requires_grad=False)
        layers = [module for module in sentences.modules if isinstance(module, Dense)]
        self.dense = nn.ModuleList([_load_dense(layer) for layer in layers])
        self.sentences = self.describe()  # without maps of files, so that models can be copied

    @classmethod
    def from_pretrained(
        cls,
        path: "str | Path | OpenModel",
        *,
        revision: str | None = None,
        new_heads: bool = False,
        **changes: Any,
    ) -> Self:
        """Load any BERT, or a folder of sentence-transformers; as in `PretrainedBert`."""
        from bertkit.models.open_model import OpenModel  # it knows all classes of models

        opened = OpenModel.open(path, revision=revision)
        bert = BertModel.from_pretrained(opened, new_heads=new_heads, **changes)
        return cls(bert, read_sentences(opened)).eval()

    def summarize(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences pooled"]:
        """Return the pooled tokens of each sequence."""
        pooling = self.sentences.modules[0]
        assert isinstance(pooling, Pooling), "`read_sentences` checked it"
        pooled = [
            tokens[summary_tokens(self.config, batch)]
            if mode == "cls"
            else reduce_tokens(tokens, batch, "mean" if mode == "mean" else "max")
            for mode in pooling.modes
        ]
        return pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=1)

    def score(
        self, rows: Float[Tensor, "sequences pooled"]
    ) -> Float[Tensor, "sequences dimension"]:
        """Return the vectors: dense layers and normalization of pooled tokens."""
        layers = iter(self.dense)
        for module in self.sentences.modules[1:]:
            if isinstance(module, Dense):
                rows = ACTIVATIONS[module.activation](next(layers)(rows))
            elif isinstance(module, Normalize):
                rows = F.normalize(rows.float(), dim=1)
        return rows

    @property
    def dimension(self) -> int:
        """Numbers of a vector, before any are cut off."""
        return replace(self.sentences, truncate_dimension=None).dimension

    def widen(self, dimension: int) -> None:
        """Add a linear map to vectors of another length, before they are normalized."""
        layer, modules = nn.Linear(self.dimension, dimension, bias=False), self.sentences.modules
        place = len(modules) - isinstance(modules[-1], Normalize)
        added = Dense(lazy_tensor(layer.weight), None, "identity")
        self.dense.append(layer)
        changed = (*modules[:place], added, *modules[place:])
        self.sentences = replace(self.sentences, modules=changed)

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write a folder that sentence-transformers loads; return its files' records by name."""
        with without_memory():
            bert = BertModel(self.config, has_pooler=False)
        bert.encoder, bert.pooler = self.encoder, self.pooler
        bert.adapter_origin = self.adapter_origin
        described = write_sentence_model(Path(folder), self.describe())
        return {**bert.save_pretrained(folder), **described}

    def describe(self) -> SentenceModel:
        """Return the modules with the weights of today."""
        layers = iter(self.dense)
        modules = tuple(
            _store_dense(next(layers), module) if isinstance(module, Dense) else module
            for module in self.sentences.modules
        )
        return replace(self.sentences, modules=modules)

    def load_adapter(self, folder: Path) -> None:
        """As in `PretrainedBert`; the dense layers are in folders of their own."""
        super().load_adapter(folder)
        found = [name[:-1] for name in list_module_folders(folder) if name.endswith("_Dense/")]
        self.dense = nn.ModuleList([_load_dense(read_dense(folder, name)) for name in found])


def _load_dense(module: Dense) -> nn.Linear:
    layer = nn.Linear(module.in_features, module.out_features, bias=module.bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(module.weight.read()))
        if module.bias is not None:
            layer.bias.copy_(torch.from_numpy(module.bias.read()))
    return layer


def _store_dense(layer: nn.Module, module: Dense) -> Dense:
    weight, bias = layer.get_parameter("weight"), getattr(layer, "bias", None)
    stored = None if bias is None else lazy_tensor(bias)
    return Dense(lazy_tensor(weight), stored, module.activation)
