"""Encode texts as vectors with any net that has `encode`."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bertkit.decoders.seq2seq.token_pairs import TokenTexts
from bertkit.nn.packed_ids import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer

TOKENS_PER_BATCH = 4096


class TextEncoder(Protocol):
    """A net that encodes texts: `SkipThought`, `StaticVectors` or `RecurrentClassifier`."""

    def encode(self, batch: PackedBatch) -> Tensor:
        """Return one row per sequence."""


@torch.inference_mode()
def encode_texts(
    net: TextEncoder, tokenizer: Tokenizer, texts: Sequence[str], max_length: int
) -> npt.NDArray[np.float32]:
    """Return the vectors of texts, in their order; shape [texts, features].

    Args:
        net: the net, in evaluation mode, on the CPU.
        tokenizer: the net's tokenizer.
        texts: at least one text.
        max_length: maximum tokens of a text, with [CLS] and [SEP]; longer ones are truncated.
    """
    encoded = TokenTexts.encode(texts, tokenizer).cut(max_length)
    batches = [
        np.array(numbers) for numbers in plan_batches(encoded.lengths.tolist(), TOKENS_PER_BATCH)
    ]
    rows = torch.cat([net.encode(encoded.choose(numbers).pack()) for numbers in batches])
    vectors = np.empty(tuple(rows.shape), dtype=np.float32)
    vectors[np.concatenate(batches)] = rows.float().numpy()
    return vectors
