"""A word in its texts, with the vectors of the model's own pass, and the words for each place."""

import math

import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import save_small

from bertkit.base.errors import InputError
from bertkit.inference.fill_mask import FillMask
from bertkit.interpret import contexts as module
from bertkit.interpret.contexts import (
    compare_contexts,
    compare_different,
    find_word,
    predict_words,
    read_words,
)
from bertkit.interpret.inspected_model import InspectedModel

TEXTS = ["the cat saw a hat .", "a dog lost the cat - the cats lost a cat"]


def test_each_place_of_the_word_is_found_and_none_of_another_word(inspected):
    found = compare_contexts(inspected, "Cat", TEXTS)
    assert [place.encoded.text for place in found.occurrences] == [TEXTS[0], TEXTS[1], TEXTS[1]]
    assert [place.tokens for place in found.occurrences] == [
        range(2, 3),
        range(5, 6),
        range(12, 13),
    ]
    spans = [place.encoded.text[slice(*place.span)] for place in found.occurrences]
    assert spans == ["cat", "cat", "cat"]
    assert found.occurrences[2].span[1] == len(TEXTS[1])


def test_cosines_are_those_of_the_vectors_and_pieces_are_averaged(inspected):
    found = compare_contexts(inspected, "cats", ["the cats", "a cats"])
    assert [place.tokens for place in found.occurrences] == [range(2, 4)] * 2
    states = inspected.observe(inspected.read("the cats")).states
    for layer, state in enumerate(states):
        assert_close(found.vectors[layer, 0], state[2:4].mean(dim=0))
    found = compare_contexts(inspected, "cat", TEXTS)
    assert found.vectors.shape == (3, 3, 8)
    expected = torch.nn.functional.cosine_similarity(
        found.vectors[:, :, None], found.vectors[:, None], dim=-1
    )
    assert_close(found.cosines, expected)
    mean = (expected[:, 0, 1] + expected[:, 0, 2] + expected[:, 1, 2]) / 3
    assert_close(found.self_similarity, mean)
    assert [plane.points.shape for plane in found.planes] == [(3, 2)] * 3


def test_different_words_are_all_pairs_of_other_tokens_of_other_texts(inspected):
    found = compare_contexts(inspected, "cat", TEXTS)
    words = [
        (number, token, torch.stack([state[index] for state in observed.states]))
        for number, observed in enumerate(inspected.observe(inspected.read(text)) for text in TEXTS)
        for index, token in enumerate(observed.encoded.tokens)
        if token not in ("[CLS]", "[SEP]")
        and not any(
            number == TEXTS.index(place.encoded.text) and index in place.tokens
            for place in found.occurrences
        )
    ]
    cosines = [
        torch.nn.functional.cosine_similarity(vector, other_vector, dim=-1)
        for text, token, vector in words
        for other_text, other_token, other_vector in words
        if text != other_text and token != other_token
    ]
    assert "cat" in [token for _, token, _ in words]  # of cats
    assert_close(found.different_words, torch.stack(cosines).mean(dim=0))


def test_without_different_words_there_is_no_mean():
    same = (torch.tensor([5]), torch.ones(2, 1, 3))
    assert all(map(math.isnan, compare_different([same, same]).tolist()))
    nothing = (torch.tensor([], dtype=torch.int64), torch.ones(2, 0, 3))
    assert all(map(math.isnan, compare_different([nothing, nothing]).tolist()))


@pytest.mark.parametrize(
    ("word", "texts", "message"),
    [
        ("cat", ["the cat", "the dog"], "the word 'cat' isn't in text 2 .'the dog'."),
        ("cat", ["the cats", "the cat"], "isn't in text 1"),
        ("cat", ["the cat"], "two places or more"),
        ("cat", [], "two places or more"),
        ("cat", "the cat cat", "put it into a list"),
        ("", ["the cat"] * 2, "can't be made"),
        ("bird", ["the bird"] * 2, "can't be made"),
        (3, ["the cat"] * 2, "expected a text"),
        ("cat", ["the cat", " "], "the text is empty"),
        ("cat", ["the cat", "cat " * 30], "32 tokens, and the model takes 24"),
    ],
)
def test_what_cant_be_compared_is_refused(inspected, word, texts, message):
    with pytest.raises(InputError, match=message):
        compare_contexts(inspected, word, texts)


TEXT = "the cats saw a hat ."
PLACES = [1, 2, 3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def encoded(inspected):
    return inspected.read(TEXT)


@torch.inference_mode()
def test_words_as_read_are_the_scores_of_the_model(inspected, encoded):
    found = read_words(inspected, encoded, top_k=3)
    assert [words.position for words in found] == PLACES
    tokens = inspected.model.encoder(encoded.pack())[PLACES]
    shares = inspected.model.score_words(tokens).softmax(dim=-1)
    for words, share in zip(found, shares, strict=True):
        best = share.topk(3)
        assert [one.token_id for one in words.candidates] == best.indices.tolist()
        assert [one.probability for one in words.candidates] == close(
            best.values.tolist(), "float32"
        )
        own = share[encoded.encoding.ids[words.position]]
        assert words.own_probability == close(float(own), "float32")
        assert words.own_rank == int((share > own).sum()) + 1


def test_a_hidden_word_is_guessed_as_fill_mask_does(small_folder, inspected, encoded):
    fill = FillMask.load(small_folder, engine="torch", precision="fp32")
    found = predict_words(inspected, encoded, [1, 4, 7], top_k=4)
    texts = ["[MASK] cats saw a hat .", "the cats [MASK] a hat .", "the cats saw a hat [MASK]"]
    for words, text in zip(found, texts, strict=True):
        (blank,) = fill(text, top_k=4).blanks
        assert [one.token for one in words.candidates] == [one.token for one in blank]
        assert words.candidates[0].probability == close(blank[0].probability, "float32")


@pytest.mark.parametrize("size", [1, 20])
def test_batches_change_nothing(inspected, encoded, monkeypatch, size):
    whole = predict_words(inspected, encoded, PLACES)
    monkeypatch.setattr(module, "TOKENS_AT_A_TIME", size)
    split = predict_words(inspected, encoded, PLACES)
    assert [words.position for words in split] == PLACES
    for one, other in zip(whole, split, strict=True):
        assert [each.token_id for each in one.candidates] == [
            each.token_id for each in other.candidates
        ]
        assert one.own_probability == close(other.own_probability, "float32")


def test_both_texts_of_a_pair_keep_their_segments(inspected):
    encoded = inspected.read("the cat", "a hat")
    (found,) = predict_words(inspected, encoded, [4])
    ids = list(encoded.encoding.ids)
    ids[4] = inspected.tokenizer.mask_id
    model, types = inspected.model, encoded.encoding.token_type_ids
    with torch.inference_mode():
        scores = model(torch.tensor([ids]), torch.tensor([types])).prediction_logits
    best = scores[0, 4].softmax(dim=-1).max()
    assert found.candidates[0].probability == close(float(best), "float32")


def test_entries_without_a_word_are_no_candidates(tmp_path):
    save_small(tmp_path / "model", vocab_size=40)
    inspected = InspectedModel.load(tmp_path / "model")
    (words, *_) = read_words(inspected, inspected.read(TEXT), top_k=40)
    assert len(words.candidates) == inspected.tokenizer.vocab_size
    assert sum(one.probability for one in words.candidates) < 1


def test_several_words_are_found_together(inspected):
    encoded = inspected.read("the cat lost the cats - the cat")
    ids = inspected.tokenizer.piece_ids(["the cat"])[0]
    assert find_word(encoded, ids) == [range(1, 3), range(8, 10)]
