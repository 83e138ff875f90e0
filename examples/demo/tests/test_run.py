"""The pieces between the recipes: what is counted, and where the guessers are asked."""

from types import SimpleNamespace

import numpy as np
import torch

from bertkit_demo.run import count_neighbors, measure_accuracies

VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d")
CLS, SEP, MASK, A, B, C, D = 2, 3, 4, 5, 6, 7, 8
TOKENIZER = SimpleNamespace(
    vocabulary=VOCABULARY, vocab_size=len(VOCABULARY), cls_id=CLS, sep_id=SEP
)


def shard(*documents: list[list[int]]) -> SimpleNamespace:
    """As `ShardSet` hands it out: unsigned offsets, tokens by a function."""
    sentences = [sentence for document in documents for sentence in document]
    tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.uint8)
    return SimpleNamespace(
        num_tokens=len(tokens),
        tokens=lambda start, stop: tokens[start:stop],
        sentence_offsets=np.cumsum([0, *map(len, sentences)]).astype(np.uint64),
        document_offsets=np.cumsum([0, *map(len, documents)]).astype(np.uint64),
    )


def test_shards_are_counted_as_one_text_without_joining_them():
    guesser = count_neighbors([shard([[A, B], [C, D]], [[D, A]]), shard([[B, C]])], TOKENIZER)
    pairs = np.array([[A, C], [B, D], [D, B], [C, D], [SEP, C]])
    contexts = pairs[:, 0] * len(VOCABULARY) + pairs[:, 1]
    assert guesser.both.look_up(contexts).tolist() == [B, C, -1, -1, B]


def test_guessers_are_asked_at_the_masked_positions_of_every_batch():
    train = shard([[A, B, C], [A, B, C], [A, D, C]])
    shards = SimpleNamespace(
        train=(train,), token_counts=np.bincount(train.tokens(0, 9), minlength=9).astype(np.uint64)
    )

    def batch(input_ids: list[int], positions: list[int], labels: list[int]) -> SimpleNamespace:
        return SimpleNamespace(
            packed=SimpleNamespace(input_ids=torch.tensor(input_ids)),
            positions=torch.tensor(positions),
            labels=torch.tensor(labels),
        )

    batches = [
        batch([CLS, A, MASK, C, SEP, MASK, B, SEP], [2, 5], [B, A]),
        batch([CLS, A, MASK, C, SEP], [2], [D]),
    ]
    accuracies = measure_accuracies(shards, TOKENIZER, batches, 0.25)
    assert accuracies.num_masked == 3
    assert accuracies.model == 0.25
    assert accuracies.neighbors == 2 / 3
    assert accuracies.most_frequent == 1 / 3
    assert accuracies.most_frequent_token == "a"
