"""Words for each place: as the model has them, alone or in batches, seen or hidden."""

import pytest
import torch
from tests.unit.inference.small import save_small

from bertkit.inference.fill_mask import FillMask
from bertkit.interpret import contexts as words_module
from bertkit.interpret.contexts import predict_words, read_words
from bertkit.interpret.inspected_model import InspectedModel

TEXT = "the cats saw a hat ."
PLACES = [1, 2, 3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def encoded(inspected):
    return inspected.read(TEXT)


@torch.inference_mode()
def test_words_as_read_are_the_scores_of_the_model(inspected, encoded):
    found = read_words(inspected, encoded, top_k=3)
    assert [words.place for words in found] == PLACES
    tokens = inspected.model.encoder(encoded.pack())[PLACES]
    shares = inspected.model.score_words(tokens).softmax(dim=-1)
    for words, share in zip(found, shares, strict=True):
        best = share.topk(3)
        assert [one.token_id for one in words.candidates] == best.indices.tolist()
        assert [one.probability for one in words.candidates] == pytest.approx(best.values.tolist())
        own = share[encoded.encoding.ids[words.place]]
        assert words.own_probability == pytest.approx(float(own))
        assert words.own_rank == int((share > own).sum()) + 1


def test_a_hidden_word_is_guessed_as_fill_mask_does(small_folder, inspected, encoded):
    fill = FillMask.load(small_folder, engine="torch", precision="fp32")
    found = predict_words(inspected, encoded, [1, 4, 7], top_k=4)
    texts = ["[MASK] cats saw a hat .", "the cats [MASK] a hat .", "the cats saw a hat [MASK]"]
    for words, text in zip(found, texts, strict=True):
        (blank,) = fill(text, top_k=4).blanks
        assert [one.token for one in words.candidates] == [one.token for one in blank]
        assert words.candidates[0].probability == pytest.approx(blank[0].probability, rel=1e-4)


@pytest.mark.parametrize("size", [1, 20])
def test_batches_change_nothing(inspected, encoded, monkeypatch, size):
    whole = predict_words(inspected, encoded, PLACES)
    monkeypatch.setattr(words_module, "TOKENS_AT_A_TIME", size)
    split = predict_words(inspected, encoded, PLACES)
    assert [words.place for words in split] == PLACES
    for one, other in zip(whole, split, strict=True):
        assert [each.token_id for each in one.candidates] == [
            each.token_id for each in other.candidates
        ]
        assert one.own_probability == pytest.approx(other.own_probability, rel=1e-5)


def test_both_texts_of_a_pair_keep_their_segments(inspected):
    encoded = inspected.read("the cat", "a hat")
    (found,) = predict_words(inspected, encoded, [4])
    ids = list(encoded.encoding.ids)
    ids[4] = inspected.tokenizer.mask_id
    model, types = inspected.model, encoded.encoding.token_type_ids
    with torch.inference_mode():
        scores = model(torch.tensor([ids]), torch.tensor([types])).prediction_logits
    best = scores[0, 4].softmax(dim=-1).max()
    assert found.candidates[0].probability == pytest.approx(float(best), rel=1e-5)


def test_entries_without_a_word_are_no_candidates(tmp_path):
    save_small(tmp_path / "model", vocab_size=40)
    inspected = InspectedModel.load(tmp_path / "model")
    (words, *_) = read_words(inspected, inspected.read(TEXT), top_k=40)
    assert len(words.candidates) == inspected.tokenizer.vocab_size
    assert sum(one.probability for one in words.candidates) < 1


def test_no_place_is_no_work(inspected, encoded):
    assert predict_words(inspected, encoded, []) == []
