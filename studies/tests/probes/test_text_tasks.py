"""Tasks are made from running text, the same ones every time."""

import csv
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.probes.text_tasks import (
    GAP,
    NO_GAP,
    Sentences,
    find_small_words,
    find_tasks,
    make_task,
    tag_gaps,
    write_text_tasks,
)

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

    @property
    def token_counts(self) -> np.ndarray:
        """The comma and the point are half of all text."""
        counts = np.ones(TOKENIZER.vocab_size, dtype=np.uint64)
        counts[[COMMA, POINT]] = 10
        return counts


def build_shard(words: range, num_sentences: int = 40) -> FakeShard:
    """Each document uses one word alone, so that a sentence tells its document."""
    choose = random.Random(words.start)
    documents = []
    for number in words:
        word = FIRST_WORD + number
        lengths = [choose.randint(2, 5) for _ in range(num_sentences)]
        documents.append([[word, COMMA, *[word] * length, POINT] for length in lengths])
    return FakeShard(documents)


def build_shards(num_documents: int = 5) -> FakeShards:
    train = [build_shard(range(2)), build_shard(range(2, num_documents))]
    return FakeShards(train, [build_shard(range(num_documents))])


def test_gaps_become_tags_of_the_word_before():
    small = {",", "the"}
    tagged = tag_gaps(["the", "cat", ",", "the", "dog", "sat"], small)
    assert tagged == [("cat", GAP), ("dog", NO_GAP), ("sat", NO_GAP)]
    assert tag_gaps(["the", ","], small) == []


def test_small_words_are_the_most_frequent_whole_ones():
    counts = np.zeros(TOKENIZER.vocab_size, dtype=np.uint16)
    counts[[COMMA, POINT, PIECE, FIRST_WORD, FIRST_WORD + 1]] = [10, 5, 12, 60, 30]
    assert find_small_words(counts, TOKENIZER) == {WORDS[0]}
    counts[FIRST_WORD] = 40
    assert find_small_words(counts, TOKENIZER) == {WORDS[0]}  # two fifths, and not more
    counts[[UNK, PIECE]] = [60_000, 50]
    assert find_small_words(counts, TOKENIZER) == {WORDS[0]}  # with the piece they are enough


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


def test_the_file_of_gaps_has_words_and_tags_and_no_small_word():
    text, num_examples = make_task("gaps", "train", build_shards(), 30)
    assert num_examples == 30
    blocks = text.split("\n\n")
    assert len(blocks) == 30
    for block in blocks:
        (first, *_, last), *_ = [[line.split("\t") for line in block.split("\n") if line]]
        assert (first[1], last[1]) == (GAP, GAP)  # before the comma and before the point
        assert block.count(GAP) == 2
        assert "," not in block


def test_pairs_are_of_one_document_or_of_two():
    text, _ = make_task("pairs", "train", build_shards(), 40)
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 40
    assert [row["label"] for row in rows[:2]] == ["same", "other"]
    for row in rows:
        is_same = row["sentence1"].split()[0] == row["sentence2"].split()[0]
        assert is_same == (row["label"] == "same")
    assert sum(row["label"] == "same" for row in rows) == 20


def test_files_are_written_once(tmp_path):
    counts = {"train": 30, "dev": 20}
    files = write_text_tasks(["gaps", "pairs"], build_shards(), tmp_path / "tasks", counts)
    assert [path.name for path in files["gaps"]] == ["gaps-train.conll", "gaps-dev.conll"]
    before = {path: path.read_bytes() for pair in files.values() for path in pair}
    assert write_text_tasks(["gaps", "pairs"], FakeShards([], []), tmp_path / "tasks", counts)
    assert {path: path.read_bytes() for path in before} == before


def test_a_task_that_the_text_has_no_examples_of_is_told_and_left_out(capsys):
    shards = build_shards()
    shards.held_out = [build_shard(range(1))]  # one document alone
    with pytest.raises(InputError, match="gives too few examples: 1, and 20 are needed"):
        make_task("pairs", "dev", shards, 30)
    assert find_tasks(["gaps", "pairs", "gaps"], shards, {"train": 30, "dev": 25}) == {"gaps": 25}
    assert "skipping the task pairs" in capsys.readouterr().err
