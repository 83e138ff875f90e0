"""Log probabilities of texts by models of both directions, against what they are by definition."""

import math

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.test_text_scorer import log_shares

from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.text_scorer import LeftToRightScorer, ask_left_to_right
from bertkit.inference.pipeline import NamedInput
from bertkit.inference.text_scorer import TextScorer

TEXTS = ["the cat", "a dog saw the hat .", "the", "a cat saw the dogs lost the hats .", "zebra"]
LONG = "the cat saw a dog . " * 4  # 24 pieces, and the model has 24 positions
LIMITS = [2, 3, 8, 9, 200]
LENGTHS = [1, 7, 8, 9, 30, 31]


@pytest.fixture(scope="module")
def left_to_right(causal_folder):
    return TextScorer.load(causal_folder, device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def masked(small_folder):
    return TextScorer.load(small_folder, device="cpu", engine="torch", precision="fp32")


@pytest.fixture(params=["left_to_right", "masked"])
def score(request):
    return request.getfixturevalue(request.param)


def test_left_to_right_it_is_that_of_the_whole_text(left_to_right):
    tokenizer = left_to_right.loaded.tokenizer
    texts = [*TEXTS, "", "the cat saw a dog . " * 3 + "the cat saw a"]  # the last fills the model
    for text, found in zip(texts, left_to_right(texts), strict=True):
        ids = tokenizer.encode(text).ids
        scores = log_shares(left_to_right, ids)
        expected = sum(float(scores[place, token]) for place, token in enumerate(ids[1:]))
        assert found.log_probability == close(expected, "float32")
        assert found.num_tokens == len(ids) - 1
        assert found.perplexity == close(math.exp(-expected / (len(ids) - 1)), "float32")
        assert found.num_unknown == ("zebra" in text)


def test_what_a_model_writes_has_the_probability_that_it_measures(causal_folder, left_to_right):
    generate = Generator.load(causal_folder, device="cpu")
    tokenizer = generate.loaded.tokenizer
    finished = [
        one
        for result in generate(["the cat"] * 30, temperature=1.0)
        for one in result.answers
        if one.is_finished
    ]
    assert finished
    before = left_to_right("the cat")
    scores = log_shares(left_to_right, tokenizer.encode("the cat").ids)
    start = before.log_probability - float(scores[2, tokenizer.sep_id])
    for one in finished:
        whole = left_to_right("the cat" + one.text)
        assert whole.log_probability - start == close(one.log_probability, within=1e-3)


def test_a_long_text_is_scored_in_parts(score):
    (encoded,) = score.encode_window([NamedInput("text 1", LONG * 5)])
    found = score(LONG * 5)
    assert found.num_tokens == encoded.num_tokens == 24 * 5 + isinstance(score, LeftToRightScorer)
    mask_id = score.loaded.tokenizer.mask_id
    expected = 0.0
    for query in encoded.queries:
        scores = log_shares(score, query.ids(mask_id))
        labels = zip(query.places, query.labels, strict=True)
        expected += sum(float(scores[place, label]) for place, label in labels)
    assert found.log_probability == close(expected, "float32")


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("num_tokens", LENGTHS)
def test_parts_left_to_right_predict_each_token_once(left_to_right, num_tokens, limit):
    tokenizer = left_to_right.loaded.tokenizer
    pieces = list(range(100, 100 + num_tokens - 1))
    queries = list(ask_left_to_right(pieces, tokenizer, limit))
    assert [label for query in queries for label in query.labels] == [*pieces, tokenizer.sep_id]
    for query in queries:
        assert query.sequence[0] == tokenizer.cls_id
        assert len(query.sequence) <= limit
        assert [query.sequence[place + 1] for place in query.places] == list(query.labels)
    for query in queries[1:]:
        assert query.places.start == (limit - 1) // 2


def test_a_model_reads_no_more_than_it_was_trained_on(tmp_path):
    save_causal(tmp_path, max_length=10)
    scorer = TextScorer.load(tmp_path, device="cpu")
    expected = scorer(LONG).log_probability
    with torch.no_grad():
        scorer.engine.model.encoder.embeddings.position.weight[10:] = torch.nan
    assert scorer(LONG).log_probability == expected
