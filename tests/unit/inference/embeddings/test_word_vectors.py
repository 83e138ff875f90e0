"""Neighbors are those that the cosine by hand finds, and odd words are refused."""

import numpy as np
import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import WORDS, save_small

from bertkit.base.errors import InputError, NonFiniteError, SettingsError
from bertkit.inference.embeddings.word_vectors import WordTable, WordVectors
from bertkit.inference.engines import torch_engine
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.torch_model import TorchModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

VOCABULARY = [*SPECIAL_TOKENS, *WORDS]
WHOLE_WORDS = [word for word in WORDS if word != "##s"]


@pytest.fixture
def loaded(small_folder):
    return TorchModel.load(BertModel, small_folder, "cpu")


def read_table(loaded: TorchModel) -> np.ndarray:
    return loaded.model.encoder.embeddings.word.weight.detach().numpy()


def take(loaded: TorchModel, layer: int = 0, *, all_entries: bool = False) -> WordVectors:
    """The word vectors of a model in memory."""
    vectors = TorchEngine(loaded.model, [layer]) if layer else read_table(loaded)
    table = WordTable(vectors, loaded.tokenizer, loaded.max_length)
    return WordVectors(table, all_entries=all_entries)


def read_alone(loaded: TorchModel, layer: int, *pieces: str) -> np.ndarray:
    """The mean state of a word that the model reads by itself."""
    ids = [VOCABULARY.index(piece) for piece in ("[CLS]", *pieces, "[SEP]")]
    with torch.no_grad():
        states = list(loaded.model.encoder.hidden_states(PackedBatch.from_single([ids])))
    return states[layer][1:-1].mean(dim=0).numpy()


def rank(target: np.ndarray, vectors: dict[str, np.ndarray]) -> list[tuple[str, float]]:
    """All entries by their cosine to a vector."""
    cosines = {
        word: float(vector @ target / np.linalg.norm(vector) / np.linalg.norm(target))
        for word, vector in vectors.items()
    }
    return sorted(cosines.items(), key=lambda pair: -pair[1])


def list_answers(neighborhood) -> list[tuple[str, float]]:
    assert all(VOCABULARY[each.token_id] == each.token for each in neighborhood.neighbors)
    return [(each.token, each.similarity) for each in neighborhood.neighbors]


def assert_same(answers: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [word for word, _ in answers] == [word for word, _ in expected]
    assert [cosine for _, cosine in answers] == close([cosine for _, cosine in expected], "float32")


def test_layer_0_is_the_table_of_word_embeddings(loaded):
    table = read_table(loaded)
    others = {word: table[VOCABULARY.index(word)] for word in WHOLE_WORDS if word != "cat"}
    found = take(loaded).nearest("cat", top_k=100)
    assert_same(list_answers(found), rank(table[VOCABULARY.index("cat")], others))
    assert (found.layer, found.minus) == (0, ())
    assert (found.plus[0].word, found.plus[0].pieces, found.plus[0].token_ids) == (
        "cat",
        ("cat",),
        (VOCABULARY.index("cat"),),
    )


@pytest.mark.parametrize(("layer", "number"), [(1, 1), (2, 2), (-1, 2), (-2, 1)])
@pytest.mark.parametrize("tokens_per_batch", [2, 7, 1000])
def test_a_higher_layer_reads_each_entry_alone(
    loaded, monkeypatch, layer, number, tokens_per_batch
):
    monkeypatch.setitem(torch_engine.TOKENS_PER_BATCH, "cpu", tokens_per_batch)
    others = {word: read_alone(loaded, number, word) for word in WHOLE_WORDS if word != "dog"}
    vectors = take(loaded, layer)
    found = vectors.nearest("dog", top_k=100)
    assert_same(list_answers(found), rank(read_alone(loaded, number, "dog"), others))
    assert found.layer == number


def test_the_vocabulary_is_read_once(loaded, monkeypatch):
    vectors = take(loaded, 1)
    read: list[int] = []
    usual = PackedIds.from_single
    monkeypatch.setattr(
        PackedIds, "from_single", lambda rows: read.append(len(rows)) or usual(rows)
    )
    vectors.nearest("cat")
    vectors.nearest("dog")
    assert read == [1, len(WHOLE_WORDS), 1]


@pytest.mark.parametrize("layer", [0, 2])
def test_a_word_of_pieces_is_their_mean_and_they_are_no_answer(loaded, layer):
    table = read_table(loaded)
    if layer:
        target = read_alone(loaded, layer, "cat", "##s")
        entries = {word: read_alone(loaded, layer, word) for word in VOCABULARY}
    else:
        target = table[[VOCABULARY.index("cat"), VOCABULARY.index("##s")]].mean(axis=0)
        entries = dict(zip(VOCABULARY, table, strict=True))
    del entries["cat"], entries["##s"]
    found = take(loaded, layer, all_entries=True).nearest(["Cats"], top_k=100)
    assert found.plus[0].pieces == ("cat", "##s")
    assert_same(list_answers(found), rank(target, entries))


def test_an_entry_that_is_spelled_out_is_itself(loaded):
    found = take(loaded).nearest("##s")
    assert found.plus[0].pieces == ("##s",)
    assert take(loaded).nearest("[MASK]").plus[0].token_ids == (4,)


def test_an_analogy_adds_vectors_of_length_1(loaded):
    table = {
        word: row / np.linalg.norm(row)
        for word, row in zip(VOCABULARY, read_table(loaded), strict=True)
    }
    with torch.no_grad():
        loaded.model.encoder.embeddings.word.weight[VOCABULARY.index("dog")] *= 100
    target = table["cat"] + table["dog"] - table["hat"]
    others = {word: table[word] for word in WHOLE_WORDS if word not in {"cat", "dog", "hat"}}
    found = take(loaded).nearest(["cat", "dog"], ["hat"], top_k=3)
    assert_same(list_answers(found), rank(target, others)[:3])
    assert [word.word for word in (*found.plus, *found.minus)] == ["cat", "dog", "hat"]
    assert take(loaded).nearest(["cat", "dog"], "hat", top_k=3) == found


def test_of_equally_near_entries_the_lower_id_comes_first(loaded):
    words = [f"w{number}" for number in range(500)]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *words])
    config = {**loaded.model.config.to_dict(), "vocab_size": tokenizer.vocab_size}
    model = BertModel(BertConfig(**config))
    with torch.no_grad():
        model.encoder.embeddings.word.weight[:] = torch.eye(8)[2]
    found = take(TorchModel.in_memory(model, tokenizer)).nearest("w7", top_k=490)
    answers = [word for word in words if word != "w7"][:490]
    assert [(each.token, each.similarity) for each in found.neighbors] == [
        (word, 1.0) for word in answers
    ]


def test_a_vector_of_zeros_is_near_nothing(loaded):
    with torch.no_grad():
        loaded.model.encoder.embeddings.word.weight[VOCABULARY.index("hat")] = 0
    answers = dict(list_answers(take(loaded).nearest("cat", top_k=100)))
    assert answers["hat"] == 0
    with pytest.raises(InputError, match="hat has length 0 at layer 0, and nothing is near it"):
        take(loaded).nearest("hat")


def test_whole_words_are_no_pieces_no_special_and_no_unused_entries():
    vocabulary = [*SPECIAL_TOKENS, "[unused0]", "[unused99]", "[x]", "cat", "##s", "##", "#", "."]
    tokenizer = Tokenizer(vocabulary)
    table = WordTable(np.eye(len(vocabulary), dtype=np.float32), tokenizer)
    whole, found = (
        [one.token for one in WordVectors(table, **asked).nearest(".", top_k=100).neighbors]
        for asked in ({}, {"all_entries": True})
    )
    assert whole == ["[x]", "cat", "##", "#"]
    assert found == vocabulary[:-1]


def test_rows_beyond_the_vocabulary_are_no_entries(tmp_path):
    save_small(tmp_path, vocab_size=20)
    vectors = WordVectors.load(tmp_path, all_entries=True, device="cpu")
    assert len(vectors.nearest("cat", top_k=100).neighbors) == len(VOCABULARY) - 1


@pytest.mark.parametrize(
    ("plus", "minus", "message"),
    [
        ([], [], "no word to look up; give at least one"),
        ([], ["cat"], "no word to look up; give at least one"),
        ("", [], r"the word '' isn't covered .* \(tokens: none\)"),
        ("zebra", [], r"the word 'zebra' isn't covered .* \(tokens: \[UNK\]\)"),
        ("cat zebra", [], r"tokens: cat \[UNK\]"),
        ("cat", ["zebra"], "the word 'zebra' isn't covered"),
        ("cat " * 23, [], "has 23 pieces, and the model takes 22; shorten it"),
        (["cat", "dog"], ["dog", "cat"], "cat . dog - dog - cat has length 0 at layer 0"),
    ],
)
def test_what_has_no_vector_is_refused(loaded, plus, minus, message):
    with pytest.raises(InputError, match=message):
        take(loaded).nearest(plus, minus)


def test_settings_that_cannot_be_meant_are_refused(loaded, small_folder):
    with pytest.raises(InputError, match="top_k must be at least 1, got 0"):
        take(loaded).nearest("cat", top_k=0)
    with pytest.raises(SettingsError, match="there is no layer 3"):
        WordVectors.load(small_folder, layer=3)


def test_vectors_that_are_not_finite_are_refused(loaded):
    with torch.no_grad():
        loaded.model.encoder.embeddings.word.weight[VOCABULARY.index("hat"), 0] = torch.inf
    with pytest.raises(NonFiniteError, match="vectors of layer 0 aren't finite"):
        take(loaded).nearest("cat")


def test_word_vectors_alone_have_layer_0_and_no_entries_of_zeros(loaded):
    table = read_table(loaded).copy()
    table[VOCABULARY.index("dog")] = 0
    alone = WordTable(table, loaded.tokenizer, is_whole=False)
    kept = [word for word in WHOLE_WORDS if word not in {"cat", "dog"}]
    found = WordVectors(alone).nearest("cat", top_k=100)
    vectors = {word: table[VOCABULARY.index(word)] for word in kept}
    assert_same(list_answers(found), rank(table[VOCABULARY.index("cat")], vectors))
    with pytest.raises(InputError, match="dog has length 0 at layer 0"):
        WordVectors(alone).nearest("dog")
