"""Continuations: what is kept of earlier tokens, what is never written, and what is shown."""

import unicodedata
from dataclasses import replace

import pytest
import torch
from benchmarks.uncached_scorers import UncachedPromptSequences, UncachedSourceSequences
from tests.closeness import close
from tests.unit.inference.small import build_config
from tests.unit.inference.small_causal import save_causal

from bertkit.base.errors import InputError
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.decoding.search import decode
from bertkit.decoders.decoding.sequences import DecodingLimits, DecodingSource
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.detokenization import Spacing, SpacingRule
from bertkit.decoders.generation.cached_sequences import (
    PromptSequences,
    SourceSequences,
    find_suppressed_tokens,
)
from bertkit.decoders.generation.generator import Generator, WordStream
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.settings import CASED, VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer


def test_it_is_what_no_text_has():
    words = ["[unused0]", "the", "[unused17]", "unused", "[", "]", "##[unused1]"]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *words])
    num_scores = tokenizer.vocab_size + 2
    found = find_suppressed_tokens(tokenizer, tokenizer.sep_id, num_scores)
    barred = {"[PAD]", "[UNK]", "[CLS]", "[MASK]", "[unused0]", "[unused17]"}
    assert {tokenizer.vocabulary[id_] for id_ in found[:-2]} == barred
    assert found[-2:] == (tokenizer.vocab_size, tokenizer.vocab_size + 1)
    assert (
        max(find_suppressed_tokens(tokenizer, tokenizer.sep_id, 6)) == 5
    )  # as many as have scores


SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
}
ROWS = [[2, 7, 8, 9, 3], [2, 11], [2, 5, 6, 7, 8, 9, 10, 11, 12, 3], [2], [2, 20, 21, 22]]
LIMITS = DecodingLimits(end_id=3, max_tokens=24, suppressed_ids=(0, 1, 2, 4))
SEARCHES = [
    {},
    {"beams": 4, "num_answers": 3},
    {"beams": 3, "length_penalty": 0.3},
    {"beams": 2, "no_repeat_ngram": 2, "min_tokens": 5},
    {"num_answers": 3, "top_k": 12},
]


def lean_to_end(model):
    with torch.no_grad():
        model.masked_lm.bias[3] += 3.0
    return model.eval()


def build_causal():
    torch.manual_seed(1)
    return lean_to_end(BertLMHeadModel(build_config(**SIZES, is_decoder=True)))


def build_translator(**joined):
    torch.manual_seed(1)
    config = EncoderDecoderConfig.of(build_config(**SIZES), start_id=2, end_id=3, **joined)
    return lean_to_end(EncoderDecoderModel(config))


WAYS = {
    "prompts": (build_causal, PromptSequences, UncachedPromptSequences),
    "sources": (build_translator, SourceSequences, UncachedSourceSequences),
    "pre-norm": (
        lambda: build_translator(normalizes_first=True),
        SourceSequences,
        UncachedSourceSequences,
    ),
}


def search(kind, model, rows, numbers, **settings):
    sources = [
        DecodingSource(tuple(row), number)
        if "Prompt" in kind.__name__
        else DecodingSource((2,), number)
        for row, number in zip(rows, numbers, strict=True)
    ]
    sequences = kind(model, PackedBatch.from_single(rows))
    return decode(sequences, DecodingSettings(**settings), LIMITS, sources)


def agree(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert (one.tokens, one.is_finished) == (other.tokens, other.is_finished)
            assert one.log_probability == close(other.log_probability, within=1e-3)


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_changes_nothing(way, settings):
    build, growing, again = WAYS[way]
    model = build()
    found = search(growing, model, ROWS, range(5), **settings)
    agree(found, search(again, model, ROWS, range(5), **settings))
    lengths = {len(one.tokens) for answers in found for one in answers}
    assert len(lengths) > 1  # sources end at different times, so some leave the batch


@pytest.mark.parametrize("settings", SEARCHES[:2], ids=str)
def test_room_that_nothing_was_written_into_is_never_read(settings, monkeypatch):
    """Prompts of several lengths leave such room, and sums with what is there may be NaN."""
    model = build_causal()
    expected = search(PromptSequences, model, ROWS, range(5), **settings)
    new_empty = torch.Tensor.new_empty
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda *sizes: new_empty(*sizes).fill_(float("nan"))
    )
    agree(search(PromptSequences, model, ROWS, range(5), **settings), expected)


PROMPTS = ["the cat", "", "a dog saw the hat .", "the", "a cat saw the dog lost the hat .", "zebra"]
LONG = "the cat saw a dog . " * 4  # 24 pieces, and the model has 24 positions
SETTINGS = [
    GeneratorSettings(),
    GeneratorSettings(beams=3, num_answers=2),
    GeneratorSettings(temperature=1.0, num_answers=3, seed=4),
    GeneratorSettings(max_tokens=None, no_repeat_ngram=3),
]


@pytest.fixture(scope="module")
def generate(causal_folder):
    return Generator.load(causal_folder, device="cpu")


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: one.model_dump_json()[:40])
def test_a_text_among_others_goes_on_as_alone(generate, settings):
    together = generate.with_options(settings)(PROMPTS)
    assert [one.prompt for one in together] == PROMPTS
    if settings.is_sampling:  # what is drawn follows from the place among all
        together = together[:1]
    for prompt, found in zip(PROMPTS, together, strict=False):
        alone = generate.with_options(settings)(prompt)
        assert [one.text for one in alone.answers] == [one.text for one in found.answers]
        assert len(found.answers) == settings.num_answers
        for one, other in zip(alone.answers, found.answers, strict=True):
            assert one.score == close(other.score, within=1e-4)


def test_a_stream_gives_a_word_a_call_and_nothing_once_it_was_ended(generate):
    options = generate.options.model_copy(update={"max_tokens": 8})
    words = list(replace(generate, options=options).stream_words("the cat"))
    stream = WordStream(generate.loaded, generate.spacing, options)
    assert [stream("the cat") for _ in range(len(words) + 2)] == [*words, None, None]
    ended = WordStream(generate.loaded, generate.spacing, options)
    assert ended("the cat") == words[0]
    ended.end()
    assert ended("the cat") is None


def test_more_texts_than_are_taken_at_a_time(generate, monkeypatch):
    expected = generate.with_options(SETTINGS[2])(PROMPTS)
    monkeypatch.setattr("bertkit.decoders.generation.generator.PROMPTS_AT_A_TIME", 2)
    monkeypatch.setattr("bertkit.decoders.generation.generator.TOKENS_AT_A_TIME", 50)
    found = list(generate.with_options(SETTINGS[2]).stream(iter(PROMPTS)))
    for one, other in zip(found, expected, strict=True):
        assert [each.text for each in one.answers] == [each.text for each in other.answers]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("settings", [SETTINGS[0], GeneratorSettings(temperature=1.0, seed=2)])
def test_what_is_shown_while_it_is_written_is_what_is_written(generate, prompt, settings):
    pieces = list(generate.with_options(settings).stream_words(prompt))
    assert "".join(pieces) == generate.with_options(settings)(prompt).answers[0].text


def test_blanks_that_depend_on_what_follows_are_shown_when_that_is_known(generate, monkeypatch):
    apart = {f"{mark} 0 <word> =cat": SpacingRule("none", 1.0) for mark in ".-"}
    token_to_id = generate.loaded.tokenizer.token_to_id
    tokens = [token_to_id(piece) for piece in (".", "cat", "##s", "-", "cat")]
    monkeypatch.setattr("bertkit.decoders.generation.generator.stream", lambda *_: iter(tokens))
    pieces = list(Generator(generate.loaded, Spacing(apart)).stream_words("the"))
    assert pieces == [". cats", " - cat"]  # and not " . cat", as it is before the "s" is there


@pytest.mark.parametrize(
    ("settings", "vocabulary", "prompt", "written"),
    [
        (VocabularySettings(), ["한국", "사람이", "많다"], "한국", "사람이 많다"),
        (VocabularySettings(), ["하", "##\u11ab", "##국"], "하", "한국"),
        (CASED, ["caf\u00e9", "au", "lait"], "caf\u00e9", "au lait"),
    ],
)
def test_letters_that_are_taken_apart_are_none_of_what_follows(
    generate, monkeypatch, settings, vocabulary, prompt, written
):
    apart = [unicodedata.normalize("NFD", entry) for entry in vocabulary]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *apart], settings)
    prompt = unicodedata.normalize("NFD", prompt)
    later = [tokenizer.token_to_id(entry) for entry in apart[1:]]
    monkeypatch.setattr("bertkit.decoders.generation.generator.stream", lambda *_: iter(later))
    found = "".join(Generator(replace(generate.loaded, tokenizer=tokenizer)).stream_words(prompt))
    assert unicodedata.normalize("NFC", prompt + found).endswith(written)
    assert len(found) >= len(written) - 1


def test_only_words_are_written(generate):
    found = generate(["the"] * 40, temperature=9.0)
    assert not any("[" in one.text or "##" in one.text for one in found)
    assert len({one.text for one in found}) > 30


def test_a_text_stands_behind_its_prompt_as_it_was_given(generate):
    settings = GeneratorSettings(min_tokens=3)
    found = generate.with_options(settings)("The  CAT")
    assert found.text.startswith("The  CAT")
    assert found.answers[0].text[0] in " .-s"
    assert generate.with_options(settings)("the cat ").answers[0].text[0] != " "
    assert generate.with_options(settings)("").answers[0].text[0] != " "


def test_a_model_that_never_ends_is_stopped(tmp_path):
    save_causal(tmp_path, end_bias=-50.0)
    generate = Generator.load(tmp_path, device="cpu")
    (answer,) = generate("the cat", max_tokens=None).answers
    assert (answer.num_tokens, answer.is_finished) == (24 - 3, False)
    (answer,) = generate("the cat", max_tokens=5).answers
    assert (answer.num_tokens, answer.is_finished) == (5, False)


def test_texts_before_a_wrong_one_have_their_results(generate):
    room = "the cat saw a dog . " * 3 + "the cat saw a"
    assert generate(room).answers[0].num_tokens <= 1
    too_long = r"text 3 \('the cat saw.*has 25 tokens.*takes 24"
    for wrong, message in ((LONG, too_long), (5, "expected a text, got 5")):
        found = generate.stream(["the", "a dog", wrong, "the cat"])
        assert [next(found).prompt, next(found).prompt] == ["the", "a dog"]
        with pytest.raises(InputError, match=message):
            next(found)


def test_no_more_is_read_than_a_model_was_trained_on(tmp_path):
    save_causal(tmp_path, end_bias=-50.0, max_length=10)
    generate = Generator.load(tmp_path, device="cpu")
    for settings in (GeneratorSettings(max_tokens=None), GeneratorSettings(beams=2)):
        assert generate.with_options(settings)("the cat").answers[0].num_tokens == 10 - 3
    assert len(list(generate.stream_words("the cat"))) <= 10 - 3
    with pytest.raises(InputError, match=r"has 13 tokens, and the model takes 10 at a time"):
        generate("the cat saw a dog . " * 2)
    save_causal(tmp_path / "more", max_length=1000)
    assert Generator.load(tmp_path / "more", device="cpu").loaded.max_length == 24


def test_in_bf16_a_text_is_nearly_as_likely(causal_folder):
    exact, rounded = (
        Generator.load(causal_folder, device="cpu", precision=precision)("the cat").answers[0]
        for precision in ("auto", "bf16")
    )
    assert rounded.text == exact.text
    assert rounded.log_probability == close(exact.log_probability, "bfloat16")
    assert rounded.log_probability != exact.log_probability
