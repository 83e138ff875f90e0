"""Tasks are made from running text, the same ones every time."""

import csv
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.studies.text_tasks import (
    COMMA_TAG,
    Sentences,
    find_tasks,
    make_task,
    tag_commas,
    write_text_tasks,
)
from bertkit.tokenization.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{chr(97 + number)}" for number in range(20)]
TOKENIZER = Tokenizer([*SPECIAL, ",", ".", "##s", *WORDS])
UNK, COMMA, POINT, PIECE, FIRST_WORD = 1, 5, 6, 7, 8


@dataclass
class FakeShard:
    """Documents of sentences of token ids."""

    documents: list[list[list[int]]]
    num_reads: int = field(default=0)

    @property
    def num_sentences(self) -> int:
        return sum(map(len, self.documents))

    @property
    def sentence_offsets(self) -> np.ndarray:
        lengths = [len(sentence) for document in self.documents for sentence in document]
        return np.cumsum([0, *lengths])

    @property
    def document_offsets(self) -> np.ndarray:
        return np.cumsum([0, *map(len, self.documents)])

    def tokens(self, start: int, stop: int) -> np.ndarray:
        whole = [id_ for document in self.documents for sentence in document for id_ in sentence]
        return np.array(whole[start:stop], dtype=np.uint16)


@dataclass
class FakeShards:
    train: list[FakeShard]
    held_out: list[FakeShard]

    def load_tokenizer(self) -> Tokenizer:
        return TOKENIZER


def build_shard(num_documents: int, *, has_commas: bool = True, seed: int = 0) -> FakeShard:
    """Each document uses one word alone, so that a sentence tells its document."""
    choose = random.Random(seed)
    documents = []
    for number in range(num_documents):
        word = FIRST_WORD + number % len(WORDS)
        comma = COMMA if has_commas else word
        documents.append([[word, comma, *[word] * choose.randint(1, 4), POINT] for _ in range(10)])
    return FakeShard(documents)


def build_shards(**changes) -> FakeShards:
    shards = [build_shard(12, **changes), build_shard(8, seed=1, **changes)]
    return FakeShards(shards, [build_shard(20, seed=2, **changes)])


def test_commas_become_tags_of_the_word_before():
    assert tag_commas(["one", ",", "two", "."]) == [("one", COMMA_TAG), ("two", "O"), (".", "O")]
    assert tag_commas(["one", ",", ",", "two"]) == [("one", COMMA_TAG), ("two", "O")]
    assert tag_commas([",", "one"]) == []
    assert tag_commas(["one", "two"]) == []


def test_pieces_are_joined_and_unknown_words_leave_a_sentence_out():
    word = FIRST_WORD
    shard = FakeShard([[[word, PIECE, COMMA, word], [word, UNK, COMMA, word]]])
    sentences = Sentences([shard], TOKENIZER, "train")
    assert sentences.words((0, 0)) == ["was", ",", "wa"]
    assert sentences.words((0, 1)) == []


def test_no_sentence_is_drawn_twice_and_the_order_is_always_the_same():
    shards = build_shards().train
    drawn = list(Sentences(shards, TOKENIZER, "train").draw(5_000))
    assert len(set(drawn)) == len(drawn) == 200
    assert list(Sentences(shards, TOKENIZER, "train").draw(5_000)) == drawn
    assert list(Sentences(shards, TOKENIZER, "dev").draw(5_000)) != drawn
    assert list(Sentences([], TOKENIZER, "train").draw(10)) == []


def test_too_short_and_too_long_sentences_are_left_out():
    shard = FakeShard([[[8] * 3, [8] * 4, [8] * 48, [8] * 49]])
    assert set(Sentences([shard], TOKENIZER, "train").draw(100)) == {(0, 1), (0, 2)}


def test_the_file_of_commas_has_words_and_tags_and_no_comma():
    text = make_task("commas", "train", build_shards(), 30)
    blocks = text.split("\n\n")
    assert len(blocks) == 30
    for block in blocks:
        lines = [line.split("\t") for line in block.split("\n") if line]
        assert lines[0][1] == COMMA_TAG
        assert {tag for _, tag in lines[1:]} == {"O"}
        assert not any("," in word for word, _ in lines)


def test_pairs_are_of_one_document_or_of_two():
    text = make_task("pairs", "train", build_shards(), 40)
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 40
    assert [row["label"] for row in rows[:2]] == ["same", "other"]
    for row in rows:
        is_same = row["sentence1"].split()[0] == row["sentence2"].split()[0]
        assert is_same or row["label"] == "other"
    others = [row for row in rows if row["label"] == "other"]
    assert len(others) == 20
    differing = [row["sentence1"].split()[0] != row["sentence2"].split()[0] for row in others]
    assert sum(differing) > 15  # two documents may use the same word


def test_files_are_written_once(tmp_path):
    counts = {"train": 30, "dev": 20}
    files = write_text_tasks(["commas", "pairs"], build_shards(), tmp_path / "tasks", counts)
    assert [path.name for path in files["commas"]] == ["commas-train.conll", "commas-dev.conll"]
    before = {path: path.read_bytes() for pair in files.values() for path in pair}
    assert write_text_tasks(["commas", "pairs"], FakeShards([], []), tmp_path / "tasks", counts)
    assert {path: path.read_bytes() for path in before} == before


def test_a_task_that_the_text_has_no_examples_of_is_told_and_left_out(capsys):
    shards = build_shards(has_commas=False)
    with pytest.raises(InputError, match="gives 0 examples of it, and 20 are needed"):
        make_task("commas", "dev", shards, 30)
    assert find_tasks(["commas", "pairs", "commas"], shards, {"train": 30, "dev": 20}) == ["pairs"]
    assert "it goes without the task commas" in capsys.readouterr().err
