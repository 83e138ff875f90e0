"""Documents → shards → documents gives the same documents, whatever they are."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.data.shards import Shard
from bertkit.recipes.prepare.work_unit import ShardWriter

VOCAB_SIZES = [6, 256, 257, 65_536, 65_537]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[int, list[list[list[int]]]]:
    vocab_size = draw(st.sampled_from(VOCAB_SIZES))
    ids = st.integers(0, vocab_size - 1) | st.just(vocab_size - 1)
    sentences = st.lists(ids, min_size=1, max_size=9)
    documents = st.lists(sentences, min_size=1, max_size=6)
    return vocab_size, draw(st.lists(documents, max_size=12))


def read(shard: Shard) -> list[list[list[int]]]:
    tokens = shard.tokens(0, shard.num_tokens).tolist()
    starts, documents = shard.sentence_offsets.tolist(), shard.document_offsets.tolist()
    return [
        [tokens[starts[i] : starts[i + 1]] for i in range(first, last)]
        for first, last in pairwise(documents)
    ]


@settings(max_examples=40)
@given(corpus=corpora(), shard_tokens=st.integers(1, 200))
def test_shards_hold_what_was_written(tmp_path_factory, corpus, shard_tokens):
    vocab_size, documents = corpus
    folder: Path = tmp_path_factory.mktemp("shards")
    (folder / "parts").mkdir()
    writer = ShardWriter(folder, "train", 0, vocab_size, shard_tokens)
    for document in documents:
        ids = np.array([token for sentence in document for token in sentence], dtype=np.uint32)
        writer.add(ids, np.array([len(sentence) for sentence in document], dtype=np.int64))
    writer.flush()
    shards = [Shard.open(folder, record) for record in writer.records]
    assert [document for shard in shards for document in read(shard)] == documents
    assert all(shard.num_tokens < shard_tokens + 54 for shard in shards)
    assert sum(shard.num_tokens for shard in shards) == writer.token_counts.sum()
