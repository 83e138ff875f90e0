"""What is written, held against transformers' `generate` with the same weights."""

import pytest
import torch
from tests.closeness import assert_close, close
from tests.parity.agreement import SMALL
from transformers import BertLMHeadModel as TheirCausal
from transformers import EncoderDecoderModel as TheirTranslator

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.decoding.search import decode, sharpen
from bertkit.decoders.decoding.sequences import DecodingLimits, DecodingSource
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.cached_sequences import PromptSequences, SourceSequences
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch

SIZES = {**SMALL, "max_position_embeddings": 40}
START, END = 2, 3
FORBIDDEN = (0, 1, 2, 4)
ROWS = [[2, 7, 8, 9, 3], [2, 11, 3], [2, 5, 6, 7, 8, 9, 10, 11, 12, 3], [2, 3], [2, 20, 21, 22]]
SEARCHES = [
    {},
    {"no_repeat_ngram": 2, "min_tokens": 4},
    {"beams": 4},
    {"beams": 4, "length_penalty": 0.0, "num_answers": 4},
    {"beams": 4, "length_penalty": 2.0, "num_answers": 2},
    {"beams": 4, "length_penalty": -1.0},
    {"beams": 3, "num_answers": 3},
    {"beams": 4, "no_repeat_ngram": 3, "min_tokens": 6},
    {"beams": 2, "max_tokens": 5},
]


def enliven(model, end_bias):
    """Weights that write something, and end it now and then."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        model.masked_lm.bias[END] += end_bias
    return model.double().eval()


@pytest.fixture(scope="module")
def translators(tmp_path_factory):
    torch.manual_seed(0)
    config = EncoderDecoderConfig.of(BertConfig(**SIZES), start_id=START, end_id=END)
    ours, folder = enliven(EncoderDecoderModel(config), 3.5), tmp_path_factory.mktemp("translator")
    ours.save_pretrained(folder)
    return ours, TheirTranslator.from_pretrained(folder, dtype=torch.float64).eval()


@pytest.fixture(scope="module")
def continuers(tmp_path_factory):
    torch.manual_seed(0)
    ours = enliven(BertLMHeadModel(BertConfig(**SIZES, is_decoder=True)), 2.0)
    folder = tmp_path_factory.mktemp("causal")
    ours.save_pretrained(folder)
    return ours, TheirCausal.from_pretrained(folder, dtype=torch.float64).eval()


def write_ours(sequences, settings, prompts):
    limits = DecodingLimits(END, 25, FORBIDDEN)
    sources = [DecodingSource(tuple(prompt)) for prompt in prompts]
    return decode(sequences, DecodingSettings(**settings), limits, sources)


def write_theirs(model, rows, settings, *, is_prompt):
    """Prompts are padded on the left, as transformers wants it, and what is read on the right."""
    longest = max(map(len, rows))
    skipped, side = (longest, -1) if is_prompt else (1, 1)
    padded = [[*row[::side], *[0] * (longest - len(row))][::side] for row in rows]
    settings = DecodingSettings(**settings)
    output = model.generate(
        input_ids=torch.tensor(padded),
        attention_mask=torch.tensor(padded).ne(0).long(),
        decoder_start_token_id=START,
        bos_token_id=START,
        eos_token_id=END,
        pad_token_id=0,
        do_sample=False,
        num_beams=settings.beams,
        num_return_sequences=settings.num_answers,
        length_penalty=settings.length_penalty,
        early_stopping=False,
        no_repeat_ngram_size=settings.no_repeat_ngram,
        min_new_tokens=settings.min_tokens or None,
        max_new_tokens=settings.max_tokens or 25,
        suppress_tokens=list(FORBIDDEN),
        return_dict_in_generate=True,
        output_scores=True,
    )
    written = [cut(row[skipped:]) for row in output.sequences.tolist()]
    scores = output.sequences_scores.tolist() if settings.beams > 1 else [None] * len(written)
    size = settings.num_answers
    found = list(zip(written, scores, strict=True))
    return [found[start : start + size] for start in range(0, len(found), size)]


def cut(tokens):
    """Without the end, and what was padded behind it."""
    return tuple(tokens[: tokens.index(END)]) if END in tokens else tuple(tokens)


def compare(ours, theirs):
    for answers, expected in zip(ours, theirs, strict=True):
        assert [one.tokens for one in answers] == [tokens for tokens, _ in expected]
        for one, (_, score) in zip(answers, expected, strict=True):
            assert score is None or one.score == close(score, "float32")


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
def test_an_encoder_decoder_writes_the_same(translators, settings):
    ours, theirs = translators
    for rows in (ROWS, ROWS[:1]):
        found = write_ours(
            SourceSequences(ours, PackedBatch.from_single(rows)), settings, [[START]] * len(rows)
        )
        compare(found, write_theirs(theirs, rows, settings, is_prompt=False))


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
def test_a_left_to_right_model_writes_the_same(continuers, settings):
    ours, theirs = continuers
    prompts = [row[:-1] for row in ROWS]
    for rows in (prompts, prompts[:1]):
        found = write_ours(PromptSequences(ours, PackedBatch.from_single(rows)), settings, rows)
        expected = write_theirs(theirs, rows, settings, is_prompt=True)
        compare(found, expected)


def test_texts_end_at_different_places(translators, continuers):
    """Else the tests above say little."""
    found = write_ours(SourceSequences(translators[0], PackedBatch.from_single(ROWS)), {}, ROWS)
    prompts = [row[:-1] for row in ROWS]
    more = write_ours(PromptSequences(continuers[0], PackedBatch.from_single(prompts)), {}, prompts)
    for answers in (found, more):
        assert len({len(one.tokens) for (one,) in answers}) > 2
        assert any(one.is_finished for (one,) in answers)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [None, 1, 7, 100])
@pytest.mark.parametrize("top_p", [None, 0.1, 0.6, 0.95])
def test_what_may_be_drawn_is_the_same(temperature, top_k, top_p):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = 3 * torch.randn(20, 40, generator=torch.Generator().manual_seed(3))
    settings = DecodingSettings(temperature=temperature, top_k=top_k, top_p=top_p)
    expected = TemperatureLogitsWarper(temperature)(None, scores)
    if top_k is not None:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p is not None:
        expected = TopPLogitsWarper(top_p)(None, expected)
    assert_close(sharpen(scores, settings), expected)
