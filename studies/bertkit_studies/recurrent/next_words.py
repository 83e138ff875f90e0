"""Predict the next word of a text with a recurrent language model or a left-to-right BERT."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch

from bertkit.checkpoints.file_names import CONFIG_FILE, SAFETENSORS_FILE
from bertkit.checkpoints.huggingface import read_config
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel

NextWordModel: TypeAlias = RecurrentLanguageModel | BertLMHeadModel


def load_predictor(run: Path) -> tuple[NextWordModel, Tokenizer]:
    """Load the language model of a run, in evaluation mode, with its tokenizer."""
    folder = find_checkpoint(run, reading=(CONFIG_FILE, SAFETENSORS_FILE))
    is_bert = read_config(folder).get("model_type") == "bert"
    kind: type[NextWordModel] = BertLMHeadModel if is_bert else RecurrentLanguageModel
    return kind.from_pretrained(folder), Tokenizer.load(folder)


@dataclass(frozen=True)
class NextWord:
    """A vocabulary entry that begins a word, and its probability among all entries."""

    token: str
    probability: float


@torch.inference_mode()
def predict_next_words(
    net: NextWordModel, tokenizer: Tokenizer, text: str, num_words: int
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
