"""Predict the next word of a text with a recurrent language model."""

from dataclasses import dataclass

import torch

from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel


@dataclass(frozen=True)
class NextWord:
    """A vocabulary entry that begins a word, and its probability among all entries."""

    token: str
    probability: float


@torch.inference_mode()
def predict_next_words(
    net: RecurrentLanguageModel, tokenizer: Tokenizer, text: str, num_words: int
) -> list[NextWord]:
    """Return the most probable entries, best first; special tokens and `##` entries are left out.

    Args:
        net: the language model, in evaluation mode.
        tokenizer: the model's tokenizer.
        text: what was read so far; an empty one is the start of a text.
        num_words: maximum number of entries.
    """
    batch = PackedBatch.from_single([tokenizer.encode(text).ids[:-1]])  # without [SEP]
    probabilities = net.next_scores(batch, batch.last_tokens)[0].float().softmax(dim=0)
    is_begin = torch.from_numpy(~tokenizer.is_continuation)
    is_begin[list(tokenizer.special_ids)] = False
    begins = is_begin.nonzero()[:, 0]
    best = probabilities[begins].topk(min(num_words, len(begins)))
    return [
        NextWord(tokenizer.vocabulary[token], probability)
        for token, probability in zip(
            begins[best.indices].tolist(), best.values.tolist(), strict=True
        )
    ]
