"""What must hold for any text."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tokenizer_folders import KINDS, make_tokenizer
from tests.vocabularies import train_vocabulary

from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.settings import TokenizerSettings, VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer

LETTERS = "abcdeéèÉßİΣςжक्षิกا한中文\u0301\u0323\u200b.,—’[]_ \t\x0b\x0c\x1c\x85\xa0\u2028\u3000\n"
VOCABULARY = (
    *SPECIAL_TOKENS,
    *(letter for letter in LETTERS if letter.isprintable() and letter != " "),
    *("##" + letter for letter in "abcdeéßжกا"),
    *("ab", "##cd", "the", "##the", "ção"),
)
TOKENIZERS = [
    Tokenizer(VOCABULARY, TokenizerSettings(lowercase=lower, strip_accents=strip, split_cjk=split))
    for lower in (True, False)
    for strip in (True, False)
    for split in (True, False)
]
tokenizers = st.sampled_from(TOKENIZERS)
plain_texts = st.text(st.sampled_from("abcd  ABz019.,—’“”[]_-…!"), max_size=60)
any_texts = st.text(st.one_of(st.sampled_from(LETTERS + "   abcd"), st.characters()), max_size=60)
texts = st.one_of(plain_texts, any_texts)


@given(tokenizers, st.lists(texts, max_size=4))
def test_the_fast_paths_equal_the_engine(tokenizer, many):
    expected = [tokenizer.encode(text).ids[1:-1] for text in many]
    assert tokenizer.piece_ids(many) == expected
    assert tokenizer.piece_arrays(many).to_lists() == expected


@given(tokenizers, st.text(st.characters(categories=["Cs", "Ll", "Zs"]), max_size=20))
def test_no_text_is_refused(tokenizer, text):
    expected = [tokenizer.encode(text).ids[1:-1]]
    assert tokenizer.piece_ids([text]) == expected
    assert tokenizer.piece_arrays([text]).to_lists() == expected


@given(tokenizers, texts)
def test_offsets_lie_in_the_text_and_in_order(tokenizer, text):
    previous = 0
    for start, stop in tokenizer.encode(text).offsets[1:-1]:
        assert previous <= start < stop <= len(text)
        previous = start


@given(tokenizers, texts, texts, st.integers(3, 40))
def test_cut_pairs_are_beginnings_and_fill_the_length(tokenizer, text, pair, max_length):
    whole = tokenizer.piece_ids([text, pair])
    cut = tokenizer.encode(text, pair, max_length=max_length)
    num_second = sum(cut.token_type_ids) - 1
    num_first = len(cut) - 3 - num_second
    assert cut.ids[1 : 1 + num_first] == whole[0][:num_first]
    assert cut.ids[2 + num_first : -1] == whole[1][:num_second]
    assert len(cut) == min(max_length, len(whole[0]) + len(whole[1]) + 3)


@given(tokenizers, st.lists(st.tuples(texts, texts), min_size=1, max_size=4), st.integers(3, 30))
def test_a_batch_is_its_rows(tokenizer, pairs, length):
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    batch = tokenizer.encode_batch(firsts, seconds, pad_to=length)
    for row, (first, second) in enumerate(pairs):
        alone = tokenizer.encode(first, second, max_length=length)
        num_tokens = int(batch.attention_mask[row].sum())
        assert batch.input_ids[row, :num_tokens].tolist() == alone.ids
        assert batch.token_type_ids[row, :num_tokens].tolist() == alone.token_type_ids
        assert not batch.input_ids[row, num_tokens:].any()


@settings(max_examples=30)
@given(st.lists(texts, min_size=1, max_size=6))
def test_a_trained_vocabulary_knows_all_it_was_trained_on(many):
    many = [*many, "a"]
    wanted = VocabularySettings(vocab_size=2000, min_frequency=1)
    tokenizer = Tokenizer(train_vocabulary(many, wanted))
    for ids in tokenizer.piece_ids(many):
        assert tokenizer.unk_id not in ids


@given(tokenizers, st.one_of(texts, st.text(st.characters(categories=["Cs", "Ll", "Mn", "Zs"]))))
def test_words_have_the_pieces_of_their_text(tokenizer, text):
    spans = tokenizer.find_words(text)
    ends = [0, *(stop for _, stop in spans)]
    assert all(end <= start < stop for end, (start, stop) in zip(ends, spans, strict=False))
    words = [text[start:stop] for start, stop in spans]
    assert [ids for word in tokenizer.piece_ids(words) for ids in word] == (
        tokenizer.piece_ids([text])[0]
    )
    assert not any(set(word) & set(" \t\n") for word in words)


@given(tokenizers, st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_the_fast_path_for_words_equals_the_engine(tokenizer, text):
    # What isn't ASCII takes the slow path; the sign behind the blank is a word of its own.
    assert tokenizer.find_words(f"{text} é")[:-1] == tokenizer.find_words(text)


@settings(max_examples=60)
@given(st.sampled_from([kind for kind in KINDS if kind != "bert"]), texts)
def test_pieces_and_words_of_every_kind_lie_in_the_text(kind, text):
    tokenizer = load_kind(kind)
    encoding = tokenizer.encode_pieces(text)
    assert [encoding.ids] == tokenizer.piece_ids([text])
    assert tokenizer.piece_arrays([text]).to_lists() == [encoding.ids]
    starts = [start for start, _ in encoding.offsets]
    assert starts == sorted(starts)
    assert all(0 <= start <= stop <= len(text) for start, stop in encoding.offsets)
    spans = tokenizer.find_words(text)
    ends = [0, *(stop for _, stop in spans)]
    assert all(end <= start < stop for end, (start, stop) in zip(ends, spans, strict=False))


@cache
def load_kind(kind: str) -> Tokenizer:
    with TemporaryDirectory() as folder:
        return Tokenizer.load(make_tokenizer(Path(folder), kind))
