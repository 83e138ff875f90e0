"""`bertkit inspect shards/ --examples` shows what pre-training learns from."""

import json

import pytest

from bertkit.cli.main import main
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.tasks.objectives.bert import BertObjective
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tokenization.tokenizer import Tokenizer

BRIEF = ["--max-length", "16", "--seed", "5"]


@pytest.fixture(scope="module")
def shards(workshop):
    return workshop / "shards"


def run(capsys, shards, *words):
    capsys.readouterr()
    assert main(["inspect", str(shards), *words]) == 0
    return capsys.readouterr().out


def test_examples_are_those_that_pre_training_begins_with(shards, capsys):
    found = json.loads(run(capsys, shards, "--examples", "4", *BRIEF, "--json"))
    opened = ShardSet.open(shards)
    tokenizer: Tokenizer = opened.load_tokenizer()
    settings = ObjectiveSettings(max_length=16)
    objective = BertObjective.build(opened.train, tokenizer, settings, 5)
    order = ExampleOrder([shard.num_tokens for shard in opened.train], objective.plan, 5)
    batch = objective.batch(order.examples(0, 4))
    words, ids = tokenizer.vocabulary, batch.packed.input_ids.tolist()
    tokens = [
        token for example in found["examples"] for half in example["segments"] for token in half
    ]
    chosen = set(batch.positions.tolist())
    shown = [
        words[id_]
        for place, id_ in enumerate(ids)
        if place in chosen or id_ not in tokenizer.special_ids
    ]
    assert [text for text, _ in tokens] == shown
    labels = [label for _, label in tokens if label is not None]
    assert labels == [words[label] for label in batch.labels.tolist()]
    is_next = [label == 0 for label in batch.next_sentence_labels.tolist()]
    assert [example["is_next"] for example in found["examples"]] == is_next


def test_counts_add_up_and_are_near_the_rates(shards, capsys):
    out = run(capsys, shards, "--examples", "1", *BRIEF)
    counts = json.loads(run(capsys, shards, "--examples", "1", *BRIEF, "--json"))["counts"]
    chosen = counts["masked"] + counts["random"] + counts["kept"]
    assert 0.1 < chosen / counts["tokens"] < 0.2
    assert 0.7 < counts["masked"] / chosen < 0.9
    assert counts["is_next"] + counts["not_next"] == counts["examples"]
    assert f"{counts['tokens']:,} tokens; {chosen:,} chosen" in out
    assert out.startswith(("example 1: IsNext\n  A  ", "example 1: NotNext\n  A  "))


def test_without_next_sentence_there_are_words_alone(shards, capsys):
    out = run(capsys, shards, "--examples", "1", "--objective", "mlm")
    assert out.startswith("example 1\n  A  ")
    assert "[MASK]→" in out
    assert "Next" not in out


def test_a_folder_without_shards_is_told(tmp_path, capsys):
    assert main(["inspect", str(tmp_path), "--examples", "1"]) == 2
    assert "name a folder that `bertkit prepare` wrote" in capsys.readouterr().err
