import numpy as np
import pytest
from tests.unit.inference.small import WORDS

from bertkit.decoders.seq2seq import token_pairs
from bertkit.decoders.seq2seq.examples import PairSet
from bertkit.decoders.seq2seq.pairs import Pair, PairReport
from bertkit.decoders.seq2seq.settings import TranslateSettings
from bertkit.decoders.seq2seq.token_pairs import PairBatch, TokenPairs, TokenTexts
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

TEXTS = ["the cat saw the dog.", "a", "lost hats", "", "the the the"]
TARGETS = ["a dog", "the cat lost the hat.", "cat", "a", "dog dog"]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="module")
def pairs(tokenizer):
    return TokenPairs(TokenTexts.encode(TEXTS, tokenizer), TokenTexts.encode(TARGETS, tokenizer))


def rows(texts: TokenTexts) -> list[list[int]]:
    return [part.tolist() for part in np.split(texts.ids, texts.offsets[1:-1])]


def test_texts_are_what_the_tokenizer_makes_of_each(tokenizer, pairs):
    assert rows(pairs.sources) == [tokenizer.encode(text).ids for text in TEXTS]


def test_texts_are_encoded_in_lots(tokenizer, pairs, monkeypatch):
    sizes = []
    monkeypatch.setattr(token_pairs, "LOT_CHARS", 10)
    whole = tokenizer.piece_arrays
    monkeypatch.setattr(tokenizer, "piece_arrays", lambda lot: sizes.append(len(lot)) or whole(lot))
    found = TokenTexts.encode(TEXTS, tokenizer)
    assert sizes == [1, 2, 2, 0]
    assert rows(found) == rows(pairs.sources)
    assert len(TokenTexts.encode([], tokenizer)) == 0


def test_a_cut_text_still_ends(tokenizer, pairs):
    cut = rows(pairs.sources.cut(4))
    for ids, before in zip(cut, rows(pairs.sources), strict=True):
        assert len(ids) == min(4, len(before))
        assert ids[:-1] == before[: len(ids) - 1]
        assert ids[-1] == tokenizer.sep_id


def test_a_cut_target_has_no_end_that_nobody_wrote(pairs):
    found = pairs.cut(9, 2).targets
    assert rows(found) == [ids[:3] for ids in rows(pairs.targets)]
    batch = PairBatch.of(pairs.cut(9, 2), np.array([1]))
    assert batch.labels.tolist() == rows(pairs.targets)[1][1:3]


def test_pairs_that_were_left_out_before_are_counted_and_not_told_again(tokenizer):
    report = PairReport("pairs", [], num_too_long=3)
    found = PairSet("pairs", (), [Pair("the cat", "a dog")], report=report)
    found.encode(tokenizer, TranslateSettings(), leaves_out=True)
    counts = found.counts
    assert (counts.num_over_limit, counts.num_too_long) == (3, 0)
    assert len(counts.describe()) == 1


def test_a_batch_asks_for_the_word_after_each(pairs):
    numbers = np.array([1, 4])
    batch = PairBatch.of(pairs, numbers)
    targets = [rows(pairs.targets)[number] for number in numbers]
    sources = [rows(pairs.sources)[number] for number in numbers]
    assert batch.source.input_ids.tolist() == sources[0] + sources[1]
    assert batch.target.input_ids.tolist() == targets[0][:-1] + targets[1][:-1]
    assert batch.labels.tolist() == targets[0][1:] + targets[1][1:]
    assert batch.target.lengths == (len(targets[0]) - 1, len(targets[1]) - 1)
    assert batch.target.position_ids.tolist() == [
        place for ids in targets for place in range(len(ids) - 1)
    ]
    assert batch.num_tokens == pairs.lengths[numbers].sum()
    assert batch.target_counts == {"word": len(batch.labels)}
    assert batch.describe() == "2 5"
