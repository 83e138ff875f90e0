"""What `bertkit benchmark pretrain` measures, and on what."""

from types import SimpleNamespace

import pytest
import torch
from tests.closeness import close

from bertkit.base.errors import SettingsError
from bertkit.data.shards import ShardSet
from bertkit.recipes.pretrain import benchmark as module
from bertkit.recipes.pretrain.benchmark import (
    StepClock,
    benchmark,
    measure_length,
    open_random_shards,
)
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training import budget


def test_random_text_has_sentences_documents_and_frequent_words(monkeypatch):
    monkeypatch.setattr(module, "NUM_WORDS", 50_000)
    with open_random_shards() as folder:
        shards = ShardSet.open(folder, verify="all")
        counts = shards.manifest.train
        assert shards.load_tokenizer().vocab_size == 30_522
        assert counts.tokens / counts.sentences == close(25, within=2.5)
        assert counts.sentences / counts.documents == close(20, within=10)
        assert shards.token_counts[5] > 20 * shards.token_counts[5 + 100] > 0
        assert shards.held_out
    assert not folder.exists()


def test_what_is_too_large_for_memory_is_measured_in_more_parts(monkeypatch, capsys):
    def measure(recipe, _):
        if recipe.settings.accumulate < 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return recipe.settings.accumulate

    monkeypatch.setattr(module, "measure_recipe", measure)
    settings = PretrainSettings(batch_size=6, max_length=64)
    assert measure_length(Pretraining(None, settings), None) == 4
    assert capsys.readouterr().err.splitlines() == [
        "length 64: out of memory; trying --accumulate 2",
        "length 64: out of memory; trying --accumulate 4",
    ]
    with pytest.raises(torch.OutOfMemoryError):  # the command names the flags
        measure_length(Pretraining(None, PretrainSettings(batch_size=3)), None)


def test_a_bug_is_not_taken_for_a_lack_of_memory(monkeypatch):
    def measure(*_):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(module, "measure_recipe", measure)
    with pytest.raises(RuntimeError, match="shapes differ"):
        measure_length(Pretraining(None, PretrainSettings()), None)


def test_the_clock_adds_up_the_parts_of_each_step(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def work(seconds):
        now[0] += seconds
        return seconds

    clock = StepClock(torch.device("cpu"))
    forward = clock.time("forward", work)
    assert forward(2.0) == 2.0
    forward(1.0)
    clock.start_step()
    clock.time("optimizer", work)(4.0)
    assert clock.steps == [{"forward": 3.0}, {"optimizer": 4.0}]


def test_a_source_of_weights_has_no_speed():
    with pytest.raises(SettingsError, match=r"--from has no effect on the speed"):
        benchmark(PretrainSettings(start_from="bert-base-uncased"))


def test_lengths_are_checked_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(budget, "take_step", None)
    with pytest.raises(SettingsError, match=r"length 1024: max_length.* less than or equal to 512"):
        benchmark(PretrainSettings(model="tiny"), [128, 1024])
