"""A trained encoder that people use, all-MiniLM-L6-v2, on 300 real texts."""

import gzip
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pytest
import torch
import transformers
from tests.closeness import assert_close

from bertkit.data.sentences import split_sentences
from bertkit.models.bert.encoder import BertModel
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_demo.python_docs import read_documents

SHARED_CORPUS = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpus"
NUM_TEXTS = 300
TEXTS_PER_FILE = 24
TEXTS_PER_DOCUMENT = 3
LINES_PER_LONG_TEXT = 40
MAX_TOKENS = 128
TEXTS_PER_BATCH = 25

is_without_corpus = not SHARED_CORPUS.is_dir()


def corpus_texts() -> Iterator[str]:
    """Sentences of each file, and once in a while a long passage."""
    for path in sorted(SHARED_CORPUS.rglob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            lines = [line.strip() for line in islice(stream, 200, 600)]
        sentences = chain.from_iterable(split_sentences(line) for line in lines if line)
        yield from islice(sentences, TEXTS_PER_FILE)
        yield " ".join(lines[:LINES_PER_LONG_TEXT])


def documentation_texts() -> Iterator[str]:
    """Sentences of Python's own documentation, a few of each module."""
    for document in read_documents([]):
        sentences = chain.from_iterable(map(split_sentences, document.lines))
        yield from islice(sentences, TEXTS_PER_DOCUMENT)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "read",
    [
        pytest.param(
            corpus_texts,
            marks=[
                pytest.mark.shared_data,
                pytest.mark.skipif(is_without_corpus, reason="../shared/data isn't here"),
            ],
        ),
        pytest.param(
            documentation_texts,
            marks=pytest.mark.skipif(
                not is_without_corpus, reason="../shared/data is read instead"
            ),
        ),
    ],
)
def test_hidden_states_agree_on_real_texts(minilm, read):
    texts = list(islice(dict.fromkeys(read()), NUM_TEXTS))
    assert len(texts) == NUM_TEXTS
    tokenizer = Tokenizer.load(minilm)
    theirs = transformers.BertModel.from_pretrained(minilm).eval()
    ours = BertModel.from_pretrained(minilm)
    texts.sort(key=lambda text: len(tokenizer.encode(text).ids))  # little padding for the peer
    for start in range(0, NUM_TEXTS, TEXTS_PER_BATCH):
        batch = tokenizer.encode_batch(
            texts[start : start + TEXTS_PER_BATCH], max_length=MAX_TOKENS
        )
        ids, mask = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.attention_mask)
        with torch.no_grad():
            expected = theirs(input_ids=ids, attention_mask=mask)
            found = ours(ids, attention_mask=mask)
        real = mask.bool()
        assert_close(found.last_hidden_state[real], expected.last_hidden_state[real])
        assert_close(found.pooler_output, expected.pooler_output)
