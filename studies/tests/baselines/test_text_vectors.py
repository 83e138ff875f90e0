"""Texts as vectors: each as it would be alone, in the order in which they came."""

import torch
from tests.closeness import assert_close
from tests.letters import letters_tokenizer

from bertkit.nn.packing import PackedBatch
from bertkit_studies.baselines import text_vectors
from bertkit_studies.baselines.text_vectors import encode_texts
from bertkit_studies.recurrent.config import SkipThoughtConfig
from bertkit_studies.recurrent.skip_thought import SkipThought

TEXTS = ["a cat", "", "many dogs and one cat", "dogs"]


def test_each_text_is_as_it_would_be_alone(monkeypatch):
    monkeypatch.setattr(text_vectors, "TOKENS_PER_BATCH", 12)  # several batches
    tokenizer = letters_tokenizer()
    torch.manual_seed(0)
    net = SkipThought(
        SkipThoughtConfig(vocab_size=tokenizer.vocab_size, embedding_size=4, hidden_size=6)
    ).eval()
    found = encode_texts(net, tokenizer, TEXTS, 10)
    for row, text in zip(found, TEXTS, strict=True):
        pieces = tokenizer.piece_ids([text])[0][:8]
        alone = net.encode(PackedBatch.from_single([[tokenizer.cls_id, *pieces, tokenizer.sep_id]]))
        assert_close(row, alone[0].detach().numpy())
