"""A vector for each text, from any of the nets that encode."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bertkit.nn.batching import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.seq2seq.token_pairs import TokenTexts
from bertkit.tokenization.tokenizer import Tokenizer

TOKENS_PER_BATCH = 4096


class TextEncoder(Protocol):
    """`SkipThought`, `StaticVectors` or `RecurrentClassifier`."""

    def encode(self, batch: PackedBatch) -> Tensor:
        """A row for each sequence."""


@torch.inference_mode()
def encode_texts(
    net: TextEncoder, tokenizer: Tokenizer, texts: Sequence[str], max_length: int
) -> npt.NDArray[np.float32]:
    """The vectors of texts, in their order; shape [texts, features].

    Args:
        net: in evaluation, on the CPU.
        tokenizer: that of the net's training.
        texts: one at least.
        max_length: tokens of a text, [CLS] and [SEP] included; what is longer is cut.
    """
    encoded = TokenTexts.encode(texts, tokenizer).cut(max_length)
    batches = [
        np.array(numbers) for numbers in plan_batches(encoded.lengths.tolist(), TOKENS_PER_BATCH)
    ]
    rows = torch.cat([net.encode(encoded.choose(numbers).pack()) for numbers in batches])
    vectors = np.empty(tuple(rows.shape), dtype=np.float32)
    vectors[np.concatenate(batches)] = rows.float().numpy()
    return vectors
