"""Going on with texts: in batches, alone, and a token at a time; and what they are worth."""

import unicodedata
from dataclasses import replace

import pytest
from tests.unit.inference.small import build_model, save_small
from tests.unit.inference.small_causal import save_causal

from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.generation.generator import Generator
from bertkit.generation.generator_settings import GeneratorSettings
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.tokenization.detokenization import Spacing
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.settings import CASED, VocabularySettings
from bertkit.tokenization.spacing_rules import SpacingRule
from bertkit.tokenization.tokenizer import Tokenizer

PROMPTS = ["the cat", "", "a dog saw the hat .", "the", "a cat saw the dog lost the hat .", "zebra"]
LONG = "the cat saw a dog . " * 4  # 24 pieces, and the model has 24 positions
SETTINGS = [
    GeneratorSettings(),
    GeneratorSettings(beams=3, num_answers=2),
    GeneratorSettings(sample=True, num_answers=3, seed=4),
    GeneratorSettings(max_tokens=None, no_repeat_ngram=3),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causal")
    save_causal(folder)
    return folder


@pytest.fixture(scope="module")
def generate(folder):
    return Generator.load(folder, "cpu")


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: one.model_dump_json()[:40])
def test_a_text_among_others_goes_on_as_alone(generate, settings):
    together = generate(PROMPTS, settings)
    assert [one.prompt for one in together] == PROMPTS
    if settings.sample:  # what is drawn follows from the place among all
        together = together[:1]
    for prompt, found in zip(PROMPTS, together, strict=False):
        alone = generate(prompt, settings)
        assert [one.text for one in alone.answers] == [one.text for one in found.answers]
        assert len(found.answers) == settings.num_answers
        for one, other in zip(alone.answers, found.answers, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_more_texts_than_are_taken_at_a_time(generate, monkeypatch):
    expected = generate(PROMPTS, SETTINGS[2])
    monkeypatch.setattr("bertkit.generation.generator.PROMPTS_AT_A_TIME", 2)
    monkeypatch.setattr("bertkit.generation.generator.TOKENS_AT_A_TIME", 50)
    found = list(generate.stream(iter(PROMPTS), SETTINGS[2]))
    for one, other in zip(found, expected, strict=True):
        assert [each.text for each in one.answers] == [each.text for each in other.answers]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("settings", [SETTINGS[0], GeneratorSettings(sample=True, seed=2)])
def test_what_is_shown_while_it_is_written_is_what_is_written(generate, prompt, settings):
    pieces = list(generate.write(prompt, settings))
    assert "".join(pieces) == generate(prompt, settings).answers[0].text


def test_blanks_that_depend_on_what_follows_are_shown_when_that_is_known(generate, monkeypatch):
    apart = {f"{mark} 0 <word> =cat": SpacingRule("none", 1.0) for mark in ".-"}
    token_to_id = generate.loaded.tokenizer.token_to_id
    tokens = [token_to_id(piece) for piece in (".", "cat", "##s", "-", "cat")]
    monkeypatch.setattr("bertkit.generation.generator.stream", lambda *_: iter(tokens))
    pieces = list(Generator(generate.loaded, Spacing(apart)).write("the"))
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
    monkeypatch.setattr("bertkit.generation.generator.stream", lambda *_: iter(later))
    found = "".join(Generator(replace(generate.loaded, tokenizer=tokenizer)).write(prompt))
    assert unicodedata.normalize("NFC", prompt + found).endswith(written)
    assert len(found) >= len(written) - 1


def test_only_words_are_written(generate):
    found = generate(["the"] * 40, GeneratorSettings(sample=True, temperature=9.0))
    assert not any("[" in one.text or "##" in one.text for one in found)
    assert len({one.text for one in found}) > 30


def test_a_text_stands_behind_its_prompt_as_it_was_given(generate):
    settings = GeneratorSettings(min_tokens=3)
    found = generate("The  CAT", settings)
    assert found.text.startswith("The  CAT")
    assert found.answers[0].text[0] in " .-s"
    assert generate("the cat ", settings).answers[0].text[0] != " "
    assert generate("", settings).answers[0].text[0] != " "


def test_a_model_that_never_ends_is_stopped(tmp_path):
    save_causal(tmp_path, end_bias=-50.0)
    generate = Generator.load(tmp_path, "cpu")
    (answer,) = generate("the cat", GeneratorSettings(max_tokens=None)).answers
    assert (answer.num_tokens, answer.is_finished) == (24 - 3, False)
    (answer,) = generate("the cat", GeneratorSettings(max_tokens=5)).answers
    assert (answer.num_tokens, answer.is_finished) == (5, False)


@pytest.mark.parametrize("wrong", [None, 5, b"the"])
def test_what_is_no_text_is_refused(generate, wrong):
    with pytest.raises(InputError, match="expected a list of texts, got"):
        generate(wrong)


def test_a_prompt_without_room_is_refused(generate):
    with pytest.raises(InputError, match=r"text 2 \('the cat saw.*has 25 tokens.*takes 24"):
        generate(["the", LONG])
    room = "the cat saw a dog . " * 3 + "the cat saw a"
    assert generate(room).answers[0].num_tokens <= 1


def test_texts_before_a_wrong_one_have_their_results(generate):
    for wrong, message in ((LONG, "text 3 .*has 25 tokens"), (5, "expected a text, got 5")):
        found = generate.stream(["the", "a dog", wrong, "the cat"])
        assert [next(found).prompt, next(found).prompt] == ["the", "a dog"]
        with pytest.raises(InputError, match=message):
            next(found)


def test_no_more_is_read_than_a_model_was_trained_on(tmp_path):
    save_causal(tmp_path, end_bias=-50.0, max_length=10)
    generate = Generator.load(tmp_path, "cpu")
    for settings in (GeneratorSettings(max_tokens=None), GeneratorSettings(beams=2)):
        assert generate("the cat", settings).answers[0].num_tokens == 10 - 3
    assert len(list(generate.write("the cat"))) <= 10 - 3
    with pytest.raises(InputError, match=r"has 13 tokens, and the model takes 10 at a time"):
        generate("the cat saw a dog . " * 2)
    save_causal(tmp_path / "more", max_length=1000)
    assert Generator.load(tmp_path / "more", "cpu").loaded.max_length == 24


def test_beams_and_several_answers_are_not_shown_while_they_are_written(generate):
    with pytest.raises(SettingsError, match="one answer"):
        list(generate.write("the", SETTINGS[1]))


def test_other_models_are_refused(tmp_path):
    save_small(tmp_path / "bert")
    with pytest.raises(CheckpointError, match=r"is bidirectional.*--objective causal"):
        Generator.load(tmp_path / "bert")
    config = EncoderDecoderConfig.of(build_model().config, start_id=2, end_id=3)
    EncoderDecoderModel(config).save_pretrained(tmp_path / "translator")
    Tokenizer(SPECIAL_TOKENS).save(tmp_path / "translator")
    with pytest.raises(CheckpointError, match="encoder-decoder"):
        Generator.load(tmp_path / "translator")


def test_in_bf16_a_text_is_nearly_as_likely(folder):
    exact, rounded = (
        Generator.load(folder, "cpu", precision=precision)("the cat", SETTINGS[0]).answers[0]
        for precision in ("auto", "bf16")
    )
    assert rounded.text == exact.text
    assert rounded.log_probability == pytest.approx(exact.log_probability, rel=0.05)
    assert rounded.log_probability != exact.log_probability


def test_int8_is_refused(folder):
    with pytest.raises(SettingsError, match="int8 is for encoders"):
        Generator.load(folder, "cpu", precision="int8")
