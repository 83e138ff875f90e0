"""A run that goes on from a checkpoint is killed, taken up, and held against one that was not."""

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.children import CHECKPOINT_EVERY, Workshop, list_differences, send
from tests.faults.test_kill import MIDDLE_OF_A_SAVE
from tests.faults.watch import Place

from bertkit import BertForMaskedLM, BertForPreTraining, Tokenizer

BEFORE_THE_FIRST_CHECKPOINT = Place(CHECKPOINT_EVERY - 1, "before a step", 0)


@dataclass(frozen=True)
class WorkshopWithSource(Workshop):
    """A workshop whose runs begin with the weights of a checkpoint that has no pair head."""

    source: Path

    def words(self, run: Path, budget: str = "--steps 18") -> list[str]:
        words = super().words(run, budget)
        place = words.index("--model")
        return [*words[:place], "--from", str(self.source), "--new-heads", *words[place + 2 :]]


@pytest.fixture
def with_source(workshop, tmp_path):
    """Its source is for one test alone, which may remove it."""
    run, source = tmp_path / "first", tmp_path / "source"
    ending = send(workshop.words(run, "--steps 2"), run)
    assert ending.code == 0, ending.messages
    BertForMaskedLM.from_pretrained(run).save_pretrained(source)
    Tokenizer.load(workshop.folder / "tokenizer").save(source)
    return WorkshopWithSource(workshop.folder, source)


def test_killed_and_taken_up_without_its_source_nothing_changes(with_source, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ending = send(with_source.words(whole), whole)
    assert ending.code == 0, ending.messages
    for place in (BEFORE_THE_FIRST_CHECKPOINT, MIDDLE_OF_A_SAVE):
        ending = send(with_source.words(parts), parts, {place: [signal.SIGKILL]})
        assert ending.code == -signal.SIGKILL, ending.messages
        assert ending.places[-1] == place
    shutil.rmtree(with_source.source)
    ending = send(with_source.words(parts), parts)
    assert ending.code == 0, ending.messages
    assert list_differences(whole, parts) == []
    assert BertForPreTraining.from_pretrained(parts).new_heads == ()
