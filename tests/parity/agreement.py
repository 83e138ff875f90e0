"""Random models and batches for both sides, and what they compute."""

from collections.abc import Callable
from typing import Any

import torch
from tests.closeness import assert_close
from torch import Tensor, nn

from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import TokenSequence

SIZES = {
    "vocab_size": 97,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
}
NUM_CHOICES = 3  # of each question of a multiple choice

# What each computes from a packed batch: the same names as transformers', padding aside.
Scores = Callable[[Any, PackedBatch], dict[str, Tensor]]
PACKED: dict[str, Scores] = {
    "BertModel": lambda model, batch: {
        "last_hidden_state": model.encoder(batch),
        "pooler_output": model.pooler(model.encoder(batch), batch),
    },
    "BertForPreTraining": lambda model, batch: {
        "prediction_logits": model.score_words(model.encoder(batch)),
        "seq_relationship_logits": model.next_sentence(model.pooler(model.encoder(batch), batch)),
    },
    "BertForMaskedLM": lambda model, batch: {"logits": model.score_words(model.encoder(batch))},
    "BertForNextSentencePrediction": lambda model, batch: {"logits": model.pair_scores(batch)},
    "BertForSequenceClassification": lambda model, batch: {"logits": model.scores(batch)},
    "BertForTokenClassification": lambda model, batch: {"logits": model.scores(batch)},
    "BertForQuestionAnswering": lambda model, batch: dict(
        zip(("start_logits", "end_logits"), model.scores(batch).unbind(-1), strict=True)
    ),
    "BertForMultipleChoice": lambda model, batch: {
        "logits": model.scores(batch).view(-1, NUM_CHOICES)
    },
}


def randomize(model: nn.Module, standard_deviation: float = 0.2) -> None:
    """Draw every weight, biases and norms included, so that none is zero."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=standard_deviation)


def random_batch(lengths: list[int], seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, segments and mask of padded sequences, half of each in the second segment."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    ids = torch.randint(5, SIZES["vocab_size"], shape, generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    cut = torch.tensor(lengths)[:, None] // 2
    segments = (torch.arange(max(lengths)) > cut).long() * mask
    return ids * mask, segments, mask


def pad_sequences(sequences: list[TokenSequence]) -> dict[str, Tensor]:
    """What transformers takes for sequences of a task, [sequences, length] each."""
    length = max(len(one.ids) for one in sequences)
    return {
        "input_ids": pad_rows([one.ids for one in sequences], length),
        "token_type_ids": pad_rows([one.segments for one in sequences], length),
        "attention_mask": pad_rows([[1] * len(one.ids) for one in sequences], length),
    }


def pad_rows(rows: list[list[int]], length: int) -> Tensor:
    """Rows with zeros behind them."""
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


def keep_real(output: Tensor, mask: Tensor) -> Tensor:
    """Without padding, where an output has any."""
    return output[mask.bool()] if output.shape[:2] == mask.shape else output


def assert_agreement(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert_close(found[key], value)
