"""The task as the recipe and the predictor use it, from sentences to a saved model."""

import json

import numpy as np
import pytest
import torch
from tests.closeness import close
from tests.unit.tasks.small import learn

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.problems import RowReport
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.batch import IGNORED_LABEL
from bertkit.tasks.saved import load_task
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

FILLERS = ("the", "saw", "ran", "and", ",")
WORDS = (*FILLERS, "ada", "bob", "love", "##lace", "rome", "##s")
TOKENIZER = Tokenizer([*SPECIAL_TOKENS, *WORDS])
SETTINGS = TagSettings(max_length=8, stride=4)
LABELS = ("O", "B-LOC", "B-PER", "I-PER")


def list_examples():
    """Names, one of them of two words, between others; some sentences need two windows."""
    found = []
    for number in range(30):
        words, tags = [], []
        for place in range(1 + number % 4):
            words += [FILLERS[(number + place) % 5]]
            tags += ["O"]
            name = (number + 2 * place) % 3
            words += (("ada", "lovelace"), ("bob",), ("Rome",))[name]
            tags += (("B-PER", "I-PER"), ("B-PER",), ("B-LOC",))[name]
        found.append(TagExample(words=tuple(words), tags=tuple(tags), place=f"line {number}"))
    return found


def test_it_learns_names_and_is_saved(tmp_path):
    examples = list_examples()
    task = Tag.from_examples(SETTINGS, examples)
    assert (task.labels, task.scheme, task.metric) == (LABELS, "BIO", "f1")
    encoded = task.encode(examples, TOKENIZER)
    assert sum(len(one.sequences) for one in encoded) > len(examples)
    assert not any(one.is_cut for one in encoded)
    tag, evaluation = learn(task, examples, tmp_path, 30, TOKENIZER)
    assert set(evaluation.metrics.values()) == {1.0}
    assert evaluation.metrics.keys() > {"f1 LOC", "accuracy"}
    assert evaluation.mistakes == ()
    assert tag.task == task
    text = "The Ada  Lovelace, and Rome"
    found, given, none = tag([text, ("the", "bob"), "\u200b"])
    assert [entity[:2] for entity in found.entities] == [("PER", "Ada  Lovelace"), ("LOC", "Rome")]
    for part in (*found.words, *found.entities):
        assert text[part.start : part.stop] == part.text
    assert found.describe() == "The/O Ada/B-PER Lovelace/I-PER ,/O and/O Rome/B-LOC"
    assert [word.start for word in given.words] == [None, None]
    assert given.entities[0].text == "bob"
    assert none == tag(()) == tag("")
    assert none.words == ()
    told = json.loads(json.dumps(found.to_json()))
    assert told["words"][1]["tag"] == "B-PER"
    assert told["entities"][1]["start"] == 23


def test_the_first_piece_of_each_word_has_its_label():
    task = Tag(SETTINGS, LABELS)
    example = TagExample(words=("ada", "lovelace", "roms", "romes"), tags=("B-PER",) * 4)
    (encoded,) = task.encode([example], TOKENIZER)
    (sequence,) = encoded.sequences
    pieces = [TOKENIZER.vocabulary[id_] for id_ in sequence.ids]
    assert pieces == ["[CLS]", "ada", "love", "##lace", "[UNK]", "rome", "##s", "[SEP]"]
    no = IGNORED_LABEL
    assert encoded.labels.tolist() == [no, 2, 2, no, 2, 2, no, no]
    assert encoded.alignment[1].tolist() == [1, 2, 4, 5]
    assert sequence.segments == [0] * 8


def test_each_word_of_a_long_sentence_counts_once():
    task = Tag(SETTINGS, LABELS)
    words = ("ada", "saw", "bob") * 5
    tags = ("B-PER", "O", "B-PER") * 5
    encoded, untagged = task.encode([TagExample(words, tags=tags), TagExample(words)], TOKENIZER)
    assert [len(one.ids) for one in encoded.sequences] == [8, 8, 8, 5]
    assert (encoded.labels != IGNORED_LABEL).sum() == len(words)
    tokens = [id_ for one in encoded.sequences for id_ in one.ids]
    found = [TOKENIZER.vocabulary[tokens[row]] for row in encoded.alignment[1]]
    assert found == list(words)
    assert (untagged.labels, untagged.sequences) == (None, encoded.sequences)


def test_of_a_truncated_sentence_the_words_that_are_read_have_a_tag():
    task = Tag(TagSettings(max_length=8, long_texts="truncate"), LABELS)
    example = TagExample(words=("ada", "saw", "bob") * 5, tags=("B-PER", "O", "B-PER") * 5)
    (encoded,) = task.encode([example], TOKENIZER)
    assert [len(one.ids) for one in encoded.sequences] == [8]
    assert (encoded.is_cut, (encoded.labels != IGNORED_LABEL).sum()) == (True, 6)
    found = task.decode(example, encoded, np.eye(4, dtype=np.float32)[[0, 2, 0, 2, 2, 0, 2, 0]])
    assert (len(found.words), found.tags[:3]) == (6, ["B-PER", "O", "B-PER"])
    assert task.score([example], [found]).evaluate().metrics["f1"] == 1.0


def test_words_that_bert_reads_nothing_of_keep_their_tag():
    task = Tag(SETTINGS, LABELS)
    example = TagExample(words=("", "ada", "\u200b", "\u0301"), tags=("O", "B-PER", "O", "O"))
    (encoded,) = task.encode([example], TOKENIZER)
    pieces = [TOKENIZER.vocabulary[id_] for id_ in encoded.sequences[0].ids]
    assert pieces == ["[CLS]", "[UNK]", "ada", "[UNK]", "[UNK]", "[SEP]"]
    assert encoded.labels.tolist()[1:-1] == [0, 2, 0, 0]
    assert task.list_warnings([example])[0].startswith("1 sentence has words without a letter")


def test_a_word_that_fills_more_than_a_window_is_cut_and_said():
    task = Tag(SETTINGS, LABELS)
    word = "love" + "s" * 9
    examples = [TagExample(words=("ada", each)) for each in (word, word[:9])]
    long, fitting = task.encode(examples, TOKENIZER)
    assert [len(one.ids) for one in long.sequences] == [3, 8]
    assert (long.is_cut, fitting.is_cut) == (True, False)


def test_labels_that_training_does_not_have_are_ignored():
    task = Tag(SETTINGS, LABELS)
    example = TagExample(words=("ada", "ran"), tags=("B-ORG", "O"))
    batch = TaskBatch.collate(task.encode([example], TOKENIZER), [0])
    assert batch.target_counts == {"task": 1}
    logits = torch.full((4, 4), 60000.0, dtype=torch.float16)
    loss = task.loss(logits, batch).losses["task"]
    assert loss.dtype == torch.float32
    assert float(loss) == close(torch.log(torch.tensor(4.0)).item(), "float32")
    assert TagExample(text="ada").label_names == ()


@pytest.mark.parametrize(
    ("tags", "scheme", "expected"),
    [
        ("B-X I-X O", "plain", (("O", "B-X", "I-X"), None, "accuracy")),
        ("B-X I-X O", "entities", (("O", "B-X", "I-X"), "BIO", "f1")),
        ("2 10 1", "auto", (("1", "10", "2"), None, "accuracy")),
    ],
)
def test_labels_and_scheme_follow_from_the_examples(tags, scheme, expected):
    example = TagExample(words=("a",) * 3, tags=tuple(tags.split()))
    task = Tag.from_examples(TagSettings(scheme=scheme), [example])
    assert (task.labels, task.scheme, task.metric) == expected


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ((), "auto", "no word is tagged"),
        (("O", "O"), "auto", "all words have the tag 'O'; at least two tags are needed"),
        (
            ("O", "NN"),
            "entities",
            "scheme entities needs tags such as B-PER, I-PER and O, not O, N",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused(tags, scheme, message):
    examples = [TagExample(words=("a",) * len(tags), tags=tags), TagExample(text="a")]
    with pytest.raises(InputError, match=message):
        Tag.from_examples(TagSettings(scheme=scheme), examples)


def test_a_stray_tag_is_not_learned_and_is_named():
    tags = ("B-PER", "I-PER", "0", "O")
    examples = [*list_examples(), TagExample(("ada", "lovelace", "ran", ","), tags=tags)]
    task = Tag.from_examples(SETTINGS, examples)
    assert (task.labels, task.scheme) == (LABELS, "BIO")
    (encoded,) = task.encode(examples[-1:], TOKENIZER)
    no = IGNORED_LABEL
    assert encoded.labels.tolist() == [no, 2, 3, no, no, 0, no]
    (line,) = task.list_warnings(examples)
    assert line.startswith("tags that mark no entity: 0; their words aren't learned")
    plain = Tag.from_examples(TagSettings(scheme="plain"), examples)
    assert (plain.labels[:2], plain.list_warnings(examples)) == (("O", "0"), [])


def test_many_stray_tags_make_plain_tags_and_are_named():
    tags = ("B-PER", "I-PER", "0", "0")
    examples = [TagExample(("ada", "lovelace", "ran", ","), tags=tags, place="line 4")]
    task = Tag.from_examples(SETTINGS, examples)
    assert (task.scheme, task.metric) == (None, "accuracy")
    (line,) = task.list_warnings(examples)
    assert line.startswith("the tags mark entities but for 0 (2 words, first line 4), so words are")
    with pytest.raises(InputError, match=r"tags such as B-PER, I-PER and O, not 0$"):
        Tag.from_examples(TagSettings(scheme="entities"), examples)


def test_tags_in_another_spelling_are_those_of_the_labels():
    def settle(*known):
        report = RowReport("t.conll")
        examples = [TagExample(("ada", "lovelace", "ran"), tags=("per-b", "per-i", "o"))]
        return TagExample.settle(examples, report, SETTINGS, known), report.notes

    examples, notes = settle()
    assert notes == ["tags such as per-b are read as B-per"]
    task = Tag.from_examples(SETTINGS, examples)
    assert (task.labels, task.scheme) == (("O", "B-per", "I-per"), "BIO")
    (encoded,) = task.encode(examples, TOKENIZER)
    assert [label for label in encoded.labels if label != IGNORED_LABEL] == [1, 2, 0]
    assert task.list_warnings(examples) == []
    assert settle(*task.labels, "0") == (examples, notes)
    (plain,), notes = settle("per-b", "o")
    assert (plain.tags, notes) == (("per-b", "per-i", "o"), [])


def test_a_model_of_another_tool_tags(tmp_path):
    names = {0: "B-PER", 1: "O", 2: "I-PER"}
    config = BertConfig(id2label=names)
    task = load_task(tmp_path, config, "BertForTokenClassification")
    assert isinstance(task, Tag)
    assert (task.labels, task.scheme) == (("B-PER", "O", "I-PER"), "BIO")
    underscores = BertConfig(id2label={0: "O", 1: "B_PER", 2: "I_PER"})
    task = load_task(tmp_path, underscores, "BertForTokenClassification")
    assert (task.labels, task.scheme) == (("O", "B-PER", "I-PER"), "BIO")
    nameless = load_task(tmp_path, BertConfig(num_labels=3), "BertForTokenClassification")
    assert (nameless.labels, nameless.metric) == (("LABEL_0", "LABEL_1", "LABEL_2"), "accuracy")
    with pytest.raises(CheckpointError, match="a tagger needs at least two labels"):
        load_task(tmp_path, BertConfig(num_labels=1), "BertForTokenClassification")
