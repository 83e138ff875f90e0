"""Static word vectors: the same every time, kept, refused, and means of them as texts."""

import sys

import pytest
import torch
from tests.closeness import assert_close, close

from bertkit.base.errors import InputError, MissingExtraError, ResumeError
from bertkit.data.shards import ShardSet
from bertkit.nn.packing import PackedBatch
from bertkit_studies.baselines.settings import SkipGramSettings
from bertkit_studies.baselines.word_vectors import (
    ShardSentences,
    draw_sentences,
    learn_vectors,
    train_word_vectors,
)
from bertkit_studies.recurrent.config import StaticVectorsConfig
from bertkit_studies.recurrent.word_vectors import StaticVectors

SETTINGS = SkipGramSettings(vector_size=8, epochs=2, min_count=2)


def test_vectors_are_learned_kept_and_the_same_every_time(shards, tmp_path):
    pytest.importorskip("gensim")
    net = train_word_vectors(shards, tmp_path / "one", SETTINGS)
    again = train_word_vectors(shards, tmp_path / "other", SETTINGS)
    assert net.embeddings.weight.equal(again.embeddings.weight)
    has_vector = net.embeddings.weight.any(dim=1)
    assert not has_vector[:5].any()  # special tokens are in no sentence
    assert has_vector[5:31].sum() >= 20
    kept = (tmp_path / "one" / "model.safetensors").stat().st_mtime_ns
    loaded = train_word_vectors(shards, tmp_path / "one", SETTINGS)
    assert loaded.embeddings.weight.equal(net.embeddings.weight)
    assert not loaded.embeddings.weight.requires_grad
    assert (tmp_path / "one" / "model.safetensors").stat().st_mtime_ns == kept
    with pytest.raises(ResumeError, match="vectors of other settings or data"):
        train_word_vectors(shards, tmp_path / "one", SkipGramSettings(vector_size=9))


def test_sentences_are_drawn_of_the_whole_text(shards):
    text = ShardSet.open(shards)
    size = text.manifest.train.tokens
    whole = read_text(text, None)
    assert sum(map(len, whole)) == size
    assert read_text(text, size) == whole
    rest = iter(whole)
    half = read_text(text, size // 2)
    assert all(sentence in rest for sentence in half)  # in the order of the text
    assert half == read_text(text, size // 2)
    assert half != read_text(text, size // 2, seed=1)
    sizes = [sum(map(len, read_text(text, size // 2, seed))) for seed in range(100)]
    assert sum(sizes) / len(sizes) == close(size / 2, within=0.05 * size)
    drawn = [draw_sentences(text, size // 5, seed) for seed in range(100)]
    for place, shard in enumerate(text.train):
        found = {int(number) for parts in drawn for number in parts[place][1]}
        assert found == set(range(shard.num_sentences))


def read_text(text: ShardSet, drawn_tokens: int | None, seed: int = 0) -> list[list[str]]:
    parts = draw_sentences(text, drawn_tokens, seed)
    return list(ShardSentences(parts, lambda number: None))


def test_vectors_of_a_part_are_others_and_kept_apart(shards, tmp_path):
    pytest.importorskip("gensim")
    net = train_word_vectors(shards, tmp_path / "one", SETTINGS)
    part = train_word_vectors(shards, tmp_path / "other", SETTINGS, drawn_tokens=60)
    assert part.embeddings.weight.any(dim=1).sum() < net.embeddings.weight.any(dim=1).sum()
    with pytest.raises(ResumeError, match="vectors of other settings or data"):
        train_word_vectors(shards, tmp_path / "other", SETTINGS)


def test_what_is_no_folder_of_vectors_stays_as_it_is(shards, tmp_path):
    pytest.importorskip("gensim")
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(ResumeError, match="something that isn't word vectors"):
        train_word_vectors(shards, tmp_path, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_text() == "mine"


def test_vectors_that_were_interrupted_are_learned_anew(shards, tmp_path, monkeypatch):
    pytest.importorskip("gensim")
    output = tmp_path / "vectors"
    with monkeypatch.context() as patched:
        patched.setattr(StaticVectors, "save_pretrained", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_word_vectors(shards, output, SETTINGS)
    net = train_word_vectors(shards, output, SETTINGS)
    assert StaticVectors.from_pretrained(output).embeddings.weight.equal(net.embeddings.weight)


def _interrupt(net, folder):
    (folder / "config.json").write_text("{")
    raise KeyboardInterrupt


def test_words_that_are_used_alike_are_near_each_other():
    pytest.importorskip("gensim")
    generator = torch.Generator().manual_seed(0)
    sentences = []
    for _ in range(400):  # 5 and 6 stand among 10 to 14, 7 and 8 among 15 to 19
        kind = int(torch.randint(0, 2, (), generator=generator))
        words = torch.randint(0, 5, (4,), generator=generator) + 10 + 5 * kind
        cue = 5 + 2 * kind + int(torch.randint(0, 2, (), generator=generator))
        sentences.append([str(word) for word in (*words[:2].tolist(), cue, *words[2:].tolist())])
    settings = SkipGramSettings(vector_size=8, epochs=20, min_count=1)
    table = learn_vectors(sentences, 20, settings).embeddings.weight
    units = torch.nn.functional.normalize(table, dim=1)
    assert units[5] @ units[6] > units[5] @ units[7] + 0.1
    assert units[7] @ units[8] > units[6] @ units[8] + 0.1


def test_too_little_text_is_refused():
    pytest.importorskip("gensim")
    with pytest.raises(InputError, match="no token occurs 5 times"):
        learn_vectors([["7", "8"]], 20, SkipGramSettings())


def test_without_gensim_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match="pip install gensim"):
        learn_vectors([["7"]], 20, SETTINGS)


def test_a_text_is_the_mean_of_its_known_words():
    net = StaticVectors(StaticVectorsConfig(vocab_size=6, vector_size=2))
    net.embeddings.weight.zero_()
    net.embeddings.weight[4] = torch.tensor([1.0, 3.0])
    net.embeddings.weight[5] = torch.tensor([3.0, 5.0])
    found = net.encode(PackedBatch.from_single([[2, 4, 5, 5, 3], [2, 3], [4]]))
    expected = torch.tensor([[7 / 3, 13 / 3], [0.0, 0.0], [1.0, 3.0]])
    assert_close(found, expected)
