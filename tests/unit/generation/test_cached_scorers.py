"""Our models under a search: with what was kept, and computed again; together, and alone."""

import pytest
import torch
from benchmarks.uncached_scorers import UncachedPromptSequences, UncachedSourceSequences

from bertkit.decoding.limits import DecodingLimits, DecodingSource
from bertkit.decoding.search import decode
from bertkit.decoding.settings import DecodingSettings
from bertkit.generation.cached_scorers import PromptSequences, SourceSequences
from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.packing import PackedBatch

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
    "initializer_range": 0.5,
}
ROWS = [[2, 7, 8, 9, 3], [2, 11], [2, 5, 6, 7, 8, 9, 10, 11, 12, 3], [2], [2, 20, 21, 22]]
LIMITS = DecodingLimits(end_id=3, max_tokens=40, suppressed_ids=(0, 1, 2, 4))
SEARCHES = [
    {},
    {"beams": 4, "num_answers": 3},
    {"beams": 3, "early_stop": True, "length_penalty": 0.3},
    {"beams": 2, "no_repeat_ngram": 2, "min_tokens": 5},
    {"sample": True, "num_answers": 3, "top_k": 12},
]


def lean_to_end(model):
    with torch.no_grad():
        model.masked_lm.bias[3] += 3.0
    return model.eval()


def build_causal():
    torch.manual_seed(1)
    return lean_to_end(BertLMHeadModel(BertConfig(**SIZES, is_decoder=True)))


def build_translator(**joined):
    torch.manual_seed(1)
    config = EncoderDecoderConfig.of(BertConfig(**SIZES), start_id=2, end_id=3, **joined)
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
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_changes_nothing(way, settings):
    build, growing, again = WAYS[way]
    model = build()
    found = search(growing, model, ROWS, range(5), **settings)
    agree(found, search(again, model, ROWS, range(5), **settings))
    lengths = {len(one.tokens) for answers in found for one in answers}
    assert len(lengths) > 1  # sources end at different times, so some leave the batch


@pytest.mark.parametrize("settings", SEARCHES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a_batch_finds_what_each_finds_alone(way, settings):
    build, growing, _ = WAYS[way]
    model = build()
    together = search(growing, model, ROWS, range(5), **settings)
    alone = [search(growing, model, [row], [n], **settings)[0] for n, row in enumerate(ROWS)]
    agree(together, alone)


@torch.no_grad()
@pytest.mark.parametrize("way", WAYS)
def test_log_probabilities_are_those_of_the_whole_sequence(way):
    build, growing, _ = WAYS[way]
    model = build()
    for row, answers in zip(
        ROWS, search(growing, model, ROWS, range(5), beams=3, num_answers=3), strict=True
    ):
        for one in answers:
            written = [*one.tokens, 3] if one.is_finished else list(one.tokens)
            if way == "prompts":
                whole = model(torch.tensor([[*row, *written]]))[0, len(row) - 1 :]
            else:
                whole = model(torch.tensor([row]), torch.tensor([[2, *written]]))[0]
            logs = whole.log_softmax(dim=-1)
            expected = sum(float(logs[place, token]) for place, token in enumerate(written))
            assert one.log_probability == pytest.approx(expected, abs=1e-3)


def test_nothing_is_kept_for_gradients():
    sequences = SourceSequences(build_translator(), PackedBatch.from_single(ROWS))
    scores = sequences.scores()
    assert not scores.requires_grad
    assert scores.dtype == torch.float32


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
