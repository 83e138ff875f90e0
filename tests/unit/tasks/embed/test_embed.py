"""The task from rows to losses and predictions."""

import dataclasses

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.tasks.small import TOKENIZER

from bertkit.base.errors import InputError
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.data.tables.records import open_records
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.examples import EmbedExample
from bertkit.tasks.embed.losses import in_batch_loss, number_texts
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.task_batch import TaskBatch


def read(*rows, **settings):
    """The examples of rows, and their table."""
    chosen, table = EmbeddingSettings(**settings), open_records(list(rows), split="train")
    parse = EmbedExample.build_parser(chosen, table, needs_answer=True)
    found = table.read(parse, lambda rows, report: EmbedExample.settle(rows, report, chosen))
    return found, table.report


def pairs_of(examples):
    return [(one.query, one.passages, one.number) for one in examples]


def test_passages_are_the_positive_and_the_negatives():
    examples, _ = read({"query": "a", "passage": "b", "negative": ["c", "d"]})
    assert pairs_of(examples) == [("a", ("b", "c", "d"), None)]


def test_rows_with_label_0_are_negatives_of_their_query():
    rows = [("a", "b", 1), ("a", "c", 0), ("d", "e", 1), ("a", "f", 1), ("a", "g", 0)]
    examples, _ = read(*rows)
    assert pairs_of(examples) == [
        ("a", ("b", "c", "g"), None),
        ("d", ("e",), None),
        ("a", ("f", "c", "g"), None),
    ]


def test_negatives_are_neither_repeated_nor_answers_of_their_query():
    rows = [
        ("a", "b", 1),
        ("a", "F", 1),
        ("a", "c", 0),
        ("a", "c", 0),
        ("a", "f", 0),
        ("a", "b", 0),
    ]
    examples, report = read(*rows)
    assert [one.passages for one in examples] == [("b", "c"), ("F", "c")]
    assert report.notes[-1] == (
        "1 passage with the label 0 as negatives; negatives left out: 1 repeated, 2 that answer"
        " their query"
    )
    given = {"query": "a", "passage": "b", "negative": ["b", "c", "c"]}
    examples, report = read(given, {"query": "d", "passage": "e"})
    assert [one.passages for one in examples] == [("b", "c"), ("e",)]
    assert report.notes[-1] == "negatives left out: 1 repeated, 1 that answer their query"


def test_a_row_has_a_few_negatives_of_many_drawn_at_random():
    wrong = [f"n{number}" for number in range(40)]
    rows = [*(("a", f"p{number}", 1) for number in range(3)), *(("a", one, 0) for one in wrong)]
    examples, report = read(*rows)
    drawn = [one.passages[1:] for one in examples]
    assert [len({*own} & {*wrong}) for own in drawn] == [8, 8, 8]
    assert len({*drawn}) == 3
    assert drawn == [one.passages[1:] for one in read(*rows)[0]]
    num_used = len({text for own in drawn for text in own})
    assert report.notes[-1] == (
        f"{num_used} passages with the label 0 as negatives; negatives left out:"
        f" {40 - num_used} over 8 of each row"
    )
    [example, _], _ = read(
        {"query": "a", "passage": "b", "negatives": wrong}, {"query": "c", "passage": "d"}
    )
    assert example.passages == ("b", *wrong)


def test_a_query_with_label_0_alone_is_left_out_and_counted():
    rows = [(f"q{number}", f"p{number}", 1) for number in range(300)]
    examples, report = read(*rows, ("x", "y", 0))
    assert len(examples) == 300
    assert report.num_broken == 1
    assert "has the label 0, and no row of its query has 1" in report.first_broken[0]


def test_scores_stay_scores_whatever_their_scale():
    examples, _ = read(("a", "b", 2.5), ("c", "e", 5), ("a", "d", -1))
    assert pairs_of(examples) == [("a", ("b",), 2.5), ("c", ("e",), 5.0), ("a", ("d",), -1.0)]
    assert examples[0].shown == "a ||| b"


def test_labels_0_and_1_of_pairs_that_share_no_query_are_scores():
    rows = [(f"a{number}", f"b{number}", number % 2) for number in range(8)]
    examples, report = read(*rows, ("a1", "c", 0))  # as in pairs of questions
    assert [one.number for one in examples] == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert report.num_broken == 0
    assert "; ".join(report.notes) == (
        "columns: texts text and pair, score label; 0 and 1 are scores, because no row with 1 has"
        " the first text of 4 of 5 rows with 0"
    )
    assert len(report.notes) == 1
    assert Embed.from_examples(EmbeddingSettings(), examples).metric == "spearman"


def test_pairs_of_equal_texts_are_left_out_and_counted():
    examples, report = read(("a", "b", 2.5), ("c", "c", 5), ("a", "d", -1))
    assert [one.number for one in examples] == [2.5, -1]
    assert report.notes[-1] == "1 pair of equal texts left out"
    assert report.num_broken == 0
    with pytest.raises(InputError, match="train: each pair is the same text twice"):
        read(("a", "a", 2.5), ("c", "c", 5))


def test_a_query_that_is_its_own_passage_teaches_nothing():
    rows = [(f"q{number}", f"p{number}") for number in range(300)]
    examples, report = read(*rows, ("x", "x"))
    assert len(examples) == 300
    assert "the same text as query and as passage" in report.first_broken[0]
    with pytest.raises(InputError, match="the same text as query and as passage"):
        read(("x", "x"), ("y", "y"))


def test_rows_that_share_a_text_directly_or_by_others_are_a_group():
    rows = [("a", "b"), ("c", "b"), ("c", "d"), ("e", "f"), ("f", "g")]
    examples, _ = read(*rows)
    first, *others = [example.group for example in examples]
    assert others[:2] == [first, first]
    assert len({first, *others}) == 2
    assert others[2] == others[3] != first


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b", 3), ("c", "d", 3)], "all pairs have the score 3; nothing can be learned"),
        ([("a", "b"), ("c", "b")], "there is no second passage"),
    ],
)
def test_what_teaches_nothing_is_an_error(rows, message):
    examples, _ = read(*rows)
    with pytest.raises(InputError, match=message):
        Embed.from_examples(EmbeddingSettings(), examples)


def build(*rows, sentences=None, **settings):
    """The task of rows, their examples and these encoded."""
    examples, _ = read(*rows)
    task = Embed.from_examples(EmbeddingSettings(**settings), examples)
    if sentences is not None:
        task = dataclasses.replace(task, sentences=sentences)
    return task, examples, task.encode(examples, TOKENIZER)


def words_of(encoded):
    return [" ".join(TOKENIZER.vocabulary[n] for n in ids) for ids, _ in encoded.sequences]


def test_the_metric_is_that_of_the_rows():
    assert build(("a", "cat"), ("a", "dog"))[0].metric == "ndcg@10"
    assert build(("a", "cat", 1), ("a", "dog", 3))[0].metric == "spearman"


def test_each_text_is_a_sequence_of_its_own():
    _, _, [encoded, _] = build(
        {"query": "a cat", "passage": "the hat", "negative": "fox"},
        {"query": "a", "passage": "dog"},
    )
    assert words_of(encoded) == ["[CLS] a cat [SEP]", "[CLS] the hat [SEP]", "[CLS] fox [SEP]"]
    assert {segment for _, segments in encoded.sequences for segment in segments} == {0}


def test_prompts_stand_before_queries_and_passages():
    prompts = {"query": "the ", "passage": "not ", "other": "hat "}
    sentences = SentenceModel((), 8, prompts=prompts, default_prompt="other")
    _, _, encoded = build(("cat", "dog"), ("fox", "hat"), sentences=sentences)
    assert words_of(encoded[0]) == ["[CLS] the cat [SEP]", "[CLS] not dog [SEP]"]
    _, _, encoded = build(("cat", "dog", 1), ("fox", "hat", 2), sentences=sentences)
    assert words_of(encoded[0]) == ["[CLS] hat cat [SEP]", "[CLS] hat dog [SEP]"]


def test_long_texts_are_cut_and_lowered_as_the_model_does():
    sentences = SentenceModel((), 4, lowercase=True)
    _, _, encoded = build(("CAT the a", "dog"), ("fox", "hat"), sentences=sentences, max_length=4)
    assert words_of(encoded[0]) == ["[CLS] cat the [SEP]", "[CLS] dog [SEP]"]
    assert [one.is_cut for one in encoded] == [True, False]


def test_the_loss_is_that_of_a_query_among_all_passages():
    task, _, encoded = build(
        {"query": "a", "passage": "cat", "negative": "hat"}, {"query": "the", "passage": "dog"}
    )
    batch = TaskBatch.collate(encoded, [0, 1])
    vectors = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    found = task.loss(vectors, batch)
    expected = in_batch_loss(vectors, (3, 2), number_texts(batch.packed), 0.05)
    assert_close(found.losses["task"].numpy(), expected.total.numpy(), "float32")
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    cosines = unit[[0, 3]] @ unit[[1, 2, 4]].T / 0.05
    by_hand = torch.nn.functional.cross_entropy(cosines, torch.tensor([0, 2]), reduction="sum")
    assert_close(found.losses["task"].numpy(), by_hand.numpy(), "float32")
    assert batch.target_counts == {"task": 2}


def test_an_example_alone_ranks_its_own_passages():
    task, [example, _], [encoded, _] = build(
        {"query": "a", "passage": "cat", "negative": "hat"}, {"query": "the", "passage": "dog"}
    )
    found = task.decode(example, encoded, np.array([[1, 0], [0, 1], [3, 1]], dtype=np.float32))
    assert (found.passage, found.expected, found.rank) == ("hat", "cat", 2)


def test_a_pair_alone_has_a_cosine():
    task, [example, _], [encoded, _] = build(("a", "cat", 1), ("a", "dog", 3))
    found = task.decode(example, encoded, np.array([[1, 0], [3, 4]], dtype=np.float32))
    assert found.value == close(0.6, "float32")
