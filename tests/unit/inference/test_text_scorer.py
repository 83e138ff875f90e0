"""Log probabilities of texts, against what they are by definition."""

import pytest
import torch
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.inference.engines.torch_engine import choose_engine
from bertkit.inference.text_scorer import TextScorer, ask_masked
from bertkit.nn.packing import PackedBatch

TEXTS = ["the cat", "a dog saw the hat .", "the", "a cat saw the dogs lost the hats .", "zebra"]
LIMITS = [2, 3, 8, 9, 200]
LENGTHS = [1, 7, 8, 9, 30, 31]


@pytest.fixture(scope="module")
def masked(small_folder):
    return TextScorer.load(small_folder, device="cpu", engine="torch", precision="fp32")


@torch.inference_mode()
def log_shares(scorer, ids):
    """The log probabilities of all words at each place, [tokens, vocabulary]."""
    model, batch = scorer.engine.model, PackedBatch.from_single([ids])
    return model.score_words(model.encoder(batch)).log_softmax(dim=-1)


def test_a_masked_text_has_the_sum_of_each_token_without_the_rest_of_its_word(masked):
    tokenizer = masked.loaded.tokenizer
    for text, found in zip(TEXTS, masked(TEXTS), strict=True):
        ids = tokenizer.encode(text).ids
        expected = 0.0
        for place in range(1, len(ids) - 1):
            seen = list(ids)
            seen[place] = tokenizer.mask_id
            for later in range(place + 1, len(ids)):
                if not tokenizer.vocabulary[ids[later]].startswith("##"):
                    break
                seen[later] = tokenizer.mask_id
            expected += float(log_shares(masked, seen)[place, ids[place]])
        assert found.log_probability == close(expected, "float32")
        assert found.num_tokens == len(ids) - 2
        assert found.num_unknown == ("zebra" in text)


def test_engines_agree(masked):
    folder_scores = [one.log_probability for one in masked(TEXTS)]
    other = TextScorer(
        masked.loaded, choose_engine("openvino", masked.engine.model, precision="fp32")
    )
    assert [one.log_probability for one in other(TEXTS)] == close(folder_scores, "float32")


@pytest.mark.parametrize("limit", [*LIMITS[1:], 16])
@pytest.mark.parametrize("num_tokens", LENGTHS)
def test_masked_parts_predict_each_token_once_with_tokens_on_both_sides(masked, num_tokens, limit):
    tokenizer = masked.loaded.tokenizer
    words = [tokenizer.token_to_id(word) for word in ("the", "cat", "saw", "##s")]
    pieces = [words[index % 4] for index in range(num_tokens)]
    queries = list(ask_masked(pieces, tokenizer, limit))
    assert [query.labels[0] for query in queries] == pieces
    room = limit - 2
    for index, query in enumerate(queries):
        (place,) = query.places
        assert query.sequence[place] == pieces[index]
        assert len(query.sequence) == min(room, num_tokens) + 2
        ids = query.ids(tokenizer.mask_id)
        assert ids[place] == tokenizer.mask_id
        assert (ids[0], ids[-1]) == (tokenizer.cls_id, tokenizer.sep_id)
        assert min(index, room // 4) <= place - 1
        assert min(num_tokens - 1 - index, room // 4 - 1) <= room - place


def test_a_masked_text_needs_a_token(masked):
    texts = masked.stream(["the", " "])
    with pytest.raises(InputError, match="text 2 is empty"):
        list(texts)
