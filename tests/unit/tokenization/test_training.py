import os
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest
from tests.vocabularies import train_vocabulary

from bertkit.base.errors import InputError, SettingsError
from bertkit.tokenization import training
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.training import WordCounts, WordSplitter, count_words

DETERMINISM_SCRIPT = """
import hashlib
from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.training import build_vocabulary
from bertkit.tokenization.training import count_words
words = [f"{a}{b}{c}{d}" for a in "bcdf" for b in "aeiou" for c in "lmn" for d in "aeiou"]
settings = VocabularySettings(vocab_size=150)
vocabulary = build_vocabulary(count_words([" ".join(words)] * 3, settings), settings)
print(hashlib.sha256(chr(10).join(vocabulary).encode()).hexdigest())
"""


def settings(**values: object) -> VocabularySettings:
    return VocabularySettings.model_validate({"vocab_size": 100, **values})


def test_special_tokens_then_characters_then_merges_in_order():
    vocabulary = train_vocabulary(["hug hug hug pug pug hugs."], settings())
    assert vocabulary[:5] == list(SPECIAL_TOKENS)
    assert vocabulary[5:11] == [".", "g", "h", "p", "s", "u"]
    assert vocabulary[11:16] == ["##g", "##h", "##p", "##s", "##u"]
    # ##u ##g six times; h ##ug four; p ##ug two; hug ##s once only
    assert vocabulary[16:] == ["##ug", "hug", "pug"]


def test_equal_counts_are_decided_by_the_text():
    vocabulary = train_vocabulary(["zy zy ab ab", "mn mn"], settings())
    assert vocabulary[-3:] == ["ab", "mn", "zy"]


def test_vocabulary_ends_at_the_size_asked():
    full = train_vocabulary(["hug hug hug pug pug hugs."], settings())
    assert train_vocabulary(["hug hug hug pug pug hugs."], settings(vocab_size=17)) == full[:17]


def test_overlong_words_dont_count():
    assert count_words(["x" * 101, "ab"], settings()).counts == {"ab": 1}


def test_overlapping_pairs_are_counted_once_merged():
    vocabulary = train_vocabulary(["aaaaa " * 4], settings())
    assert vocabulary[-3:] == ["##aa", "##aaaa", "aaaaa"]


def test_an_outdated_count_is_put_right_before_it_wins():
    # merging ##b ##c first takes ten of the sixteen a ##b away, and eight m ##n win
    text = "abc " * 10 + "ab " * 6 + "zbc " * 10 + "mn " * 8
    vocabulary = train_vocabulary([text], settings())
    merged = [token for token in vocabulary[5:] if len(token.removeprefix("##")) > 1]
    assert merged[0] == "##bc"
    assert merged.index("mn") < merged.index("ab")


def test_equally_frequent_characters_are_kept_by_code_point():
    assert train_vocabulary(["bb aa"], settings(alphabet_limit=1))[5:] == ["a", "##a"]


def test_rare_characters_are_left_out_with_their_words():
    vocabulary = train_vocabulary(["aa " * 9, "bb " * 5, "xa " * 2], settings(alphabet_limit=2))
    assert vocabulary[5:] == ["a", "b", "##a", "##b", "aa", "bb"]
    tokenizer = Tokenizer(vocabulary)
    assert tokenizer.encode("xa").tokens[1:-1] == ["[UNK]"]


def test_words_are_those_of_the_tokenizer():
    text = "L'Été... 中文 naïve—ΟΔΟΣ a\u200bb wait... '(No)'?!"
    for switches in ({}, {"lowercase": False}, {"strip_accents": False}, {"split_cjk": False}):
        wanted = settings(min_frequency=1, **switches)
        tokenizer = Tokenizer(train_vocabulary([text], wanted), wanted.tokenizer_settings())
        assert tokenizer.unk_id not in tokenizer.encode(text).ids
        words = [word for chunk in text.split() for word in WordSplitter(wanted).split(chunk)]
        assert words == WordSplitter(wanted).split(text)
        assert set(words) <= set(tokenizer.encode(text).tokens)


def test_too_small_a_size_for_the_characters_is_refused():
    with pytest.raises(SettingsError, match=r"vocab_size \(8\) can't hold .* at least 11"):
        train_vocabulary(["abc"], settings(vocab_size=8))


@pytest.mark.parametrize("texts", [[], [""], ["  \x00 "]])
def test_no_words_is_an_error(texts):
    with pytest.raises(InputError, match="has no words"):
        train_vocabulary(texts, settings())


def test_the_same_bytes_under_any_hash_seed():
    digests = set()
    for seed in ("0", "1", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", DETERMINISM_SCRIPT]
        digests.add(
            subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        )
    assert len(digests) == 1


def test_counts_dont_depend_on_when_chunks_are_moved_over(monkeypatch):
    texts = ["The cat, the DOG.", "a cat—the dog", "dog"] * 3
    expected = count_words(texts, settings())
    monkeypatch.setattr(training, "MAX_PENDING_CHUNKS", 2)
    assert count_words(texts, settings()) == expected
    monkeypatch.setattr(training, "MAX_PENDING_CHARS", 1)
    assert count_words(texts, settings()) == expected
    assert expected.num_words == 36
    assert expected.num_texts == 9


def test_the_rarest_words_are_forgotten_together():
    found = WordCounts(Counter(a=5, b=3, c=3, d=1, e=1, f=1))
    found.forget_rarest(5)
    assert found.counts == {"a": 5}  # with b and c there would be more than half of five
    assert found.num_forgotten == 9


def test_memory_is_bounded_and_frequent_words_survive(monkeypatch):
    monkeypatch.setattr(training, "MAX_PENDING_CHUNKS", 50)
    monkeypatch.setattr(training, "MAX_DISTINCT_WORDS", 100)
    texts = (f"the word{index} of{index % 7}" for index in range(2000))
    found = count_words(texts, settings())
    assert len(found.counts) <= 100
    assert found.counts["the"] == 2000
    assert found.num_forgotten > 0
    assert found.counts.total() + found.num_forgotten == found.num_words


def test_distinct_words_are_bounded_within_one_chunk_too(monkeypatch):
    held: list[int] = []

    def spy(found: WordCounts, max_words: int) -> None:
        held.append(len(found.counts))
        forget_rarest(found, max_words)

    forget_rarest = WordCounts.forget_rarest
    monkeypatch.setattr(WordCounts, "forget_rarest", spy)
    monkeypatch.setattr(training, "MAX_DISTINCT_WORDS", 100)
    text = ",".join(f"word{index}" for index in range(5000))
    found = count_words([text], settings())
    assert set(held) == {101}
    assert len(found.counts) <= 100
    assert found.counts[","] + found.num_forgotten > 4999
    assert found.counts.total() + found.num_forgotten == found.num_words == 9999


def test_chunks_that_wait_are_bounded_by_their_length(monkeypatch):
    monkeypatch.setattr(training, "MAX_PENDING_CHARS", 1 << 20)
    tracemalloc.start()
    try:
        found = count_words((f"{index}x" * 50_000 for index in range(100)), settings())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.num_texts == 100
    assert found.num_characters > 14_000_000
    assert peak_bytes < 4 << 20
