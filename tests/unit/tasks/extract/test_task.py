"""The task as the recipe and the predictor use it, from texts to a saved model."""

import json
import random

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.tasks.small import TOKENIZER, decode, learn, record_of, table_of

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError
from bertkit.inference.predictor import count_encoded
from bertkit.models.bert.config import BertConfig
from bertkit.recipes.finetune.examples import ExampleSet, hold_out
from bertkit.tasks.batch import IGNORED_LABEL, TaskBatch
from bertkit.tasks.extract import ExtractSettings
from bertkit.tasks.extract.task import Extract, ExtractExample, Grams, find_best
from bertkit.tasks.saved import load_task, save_task
from bertkit.tokenization.words import split_words

SENTENCES = (
    "The storm closed the port of the town.",
    "People like the sea.",
    "Two ships are missing since Monday.",
    "The storm closed the port.",
)


def likeness(one: str, other: str) -> float:
    return Grams.of(split_words(one)).likeness(Grams.of(split_words(other)))


def test_what_is_most_like_the_summary_is_taken_once():
    summary = "A storm closed the port; two ships are missing."
    assert find_best(SENTENCES, summary, 3) == [2, 3]
    assert find_best(SENTENCES, summary, 1) == [3]
    assert find_best(SENTENCES, "Zebras!", 3) == []
    assert find_best((), summary, 3) == []


def test_each_step_is_the_best_one():
    choose = random.Random(0)
    for _ in range(20):
        sentences = [" ".join(choose.choices("abcdef", k=4)) for _ in range(6)]
        summary = " ".join(choose.choices("abcdef", k=6))
        assert find_best(sentences, summary, 3) == sorted(take_greedily(sentences, summary, 3))


def take_greedily(sentences: list[str], summary: str, most: int) -> list[int]:
    """The same, by looking at all that may be added at each step."""
    wanted, taken, best = Grams.of(split_words(summary)), [], 0.0
    while len(taken) < most:
        worths = {}
        for index in set(range(len(sentences))) - set(taken):
            grams = [Grams.of(split_words(sentences[each])) for each in (*taken, index)]
            worths[index] = sum(grams[1:], start=grams[0]).likeness(wanted)
        index = max(sorted(worths), key=worths.__getitem__)
        if worths[index] <= best:
            break
        best = worths[index]
        taken.append(index)
    return taken


def test_likeness_is_rouge_1_and_rouge_2():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rouge2"])
    summary = "Two ships, and the storm that closed the port, are missed."
    for sentence in SENTENCES:
        scores = scorer.score(summary, sentence)
        expected = sum(score.fmeasure for score in scores.values())
        assert likeness(sentence, summary) == close(expected)


def test_words_of_any_script_count():
    assert find_best(("Мир велик.", "Дом мал."), "дом", 1) == [1]
    assert find_best(("今天天气很好。", "我们去公园玩。"), "大家去公园", 1) == [1]


SETTINGS = ExtractSettings(max_length=14, sentences=1)
TASK = Extract(SETTINGS, ("OTHER", "SUMMARY"))
TEXT = "The dog saw a hat. A cat lost. The fox lost the hat."


def parse(text: object, summary: object, settings: ExtractSettings = SETTINGS) -> ExtractExample:
    parser = ExtractExample.build_parser(settings, table_of("text", "summary"), needs_answer=True)
    return parser(record_of(text=text, summary=summary))


def list_examples() -> list[ExtractExample]:
    """The sentence with the cat is the summary, wherever it stands."""
    others = ("A dog saw the hat.", "The fox lost a hat.", "A fox saw.")
    found = []
    for number in range(12):
        sentences = list(others)
        sentences.insert(number % 4, "The cat lost.")
        found.append(parse(" ".join(sentences), "A cat lost it."))
    return found


def test_it_learns_which_sentence_is_the_summary_and_is_saved(tmp_path):
    examples = list_examples()
    task = Extract.from_examples(SETTINGS, examples)
    assert task == TASK
    extract, found = learn(task, examples, tmp_path, num_steps=60)
    assert found.metrics["rouge2"] == found.metrics["rouge2_best_sentences"]
    assert found.metrics["rouge2"] > found.metrics["rouge2_first_sentences"]
    assert not found.mistakes
    assert not found.warnings

    one, none = extract([TEXT, ""])
    assert one.summary == "A cat lost."
    assert [TEXT[found.start : found.stop] for found in one.sentences] == [
        found.text for found in one.sentences
    ]
    assert [found.is_taken for found in one.sentences] == [False, True, False]
    assert none.summary == ""
    told = json.loads(json.dumps(one.to_json()))
    assert told["sentences"][1]["probability"] > 0.5
    assert one.describe() == told["summary"]


def test_a_model_that_learned_nothing_is_told():
    examples = list_examples()
    logits = [np.zeros((len(labels), 2), np.float32) for labels in encode_labels(examples)]
    predictions = decode(TASK, examples, TASK.encode(examples, TOKENIZER), logits)
    found = TASK.score(examples, predictions).evaluate()
    assert "isn't above that of the first 1 sentence (" in found.warnings[0]
    assert len(found.mistakes) == 9
    assert found.mistakes[0].expected == "The cat lost."
    assert found.mistakes[0].predicted.startswith("A dog")


def encode_labels(examples):
    return [one.labels for one in TASK.encode(examples, TOKENIZER)]


def test_sentences_share_sequences_each_after_its_own_cls():
    example = parse(TEXT, "The cat lost.")
    (encoded,) = TASK.encode([example], TOKENIZER)
    cls, sep = TOKENIZER.cls_id, TOKENIZER.sep_id
    ids = [sequence.ids for sequence in encoded.sequences]
    assert [len(one) for one in ids] == [14, 8]  # 8 and 6 tokens fit, 8 more don't
    assert ids[0][0] == ids[0][8] == ids[1][0] == cls
    assert ids[0][7] == ids[0][13] == ids[1][7] == sep
    assert encoded.alignment == (0, 8, 14)
    labels = {0: 0, 8: 1, 14: 0}
    assert encoded.labels.tolist() == [labels.get(row, IGNORED_LABEL) for row in range(22)]
    assert not encoded.is_cut


def test_tokens_of_the_text_are_counted_without_those_of_each_sentence():
    parsed = parse("The cat lost. The hat.", "The cat lost.")
    encoded = TASK.encode([parsed], TOKENIZER)
    counts = count_encoded(TASK, encoded, TOKENIZER)
    assert (counts.tokens, counts.text_tokens) == (11, 7)


def test_a_sentence_that_is_too_long_is_cut():
    example = parse(f"{'the ' * 40}.", "the")
    (encoded,) = TASK.encode([example], TOKENIZER)
    assert [len(sequence.ids) for sequence in encoded.sequences] == [14]
    assert encoded.is_cut


def test_a_text_without_a_sentence_is_read_and_gives_nothing():
    example = TASK.make_example("* * *", "here")
    (encoded,) = TASK.encode([example], TOKENIZER)
    assert encoded.sequences[0].ids == [TOKENIZER.cls_id, TOKENIZER.sep_id]
    assert TASK.decode(example, encoded, np.zeros((2, 2), np.float32)).sentences == ()


def test_the_loss_is_that_of_sentences_alone():
    batch = TaskBatch.collate(TASK.encode(list_examples()[:2], TOKENIZER), range(2))
    assert batch.target_counts == {"task": 8}
    logits = torch.randn(len(batch.labels), 2, generator=torch.Generator().manual_seed(0))
    found = TASK.loss(logits, batch)
    rows = (batch.labels != IGNORED_LABEL).nonzero()[:, 0]
    truth = batch.labels[rows]
    expected = -torch.log_softmax(logits[rows], dim=1)[torch.arange(8), truth].sum()
    assert_close(found.losses["task"], expected)
    assert found.correct["task"] == (logits[rows].argmax(1) == truth).sum()


@pytest.mark.parametrize(
    ("text", "summary", "words"),
    [
        ("", "a cat", "no sentence in text"),
        ("* * *", "a cat", "no sentence in text"),
        (TEXT, " - ", "no word in summary"),
        (TEXT, None, "nothing in summary"),
        (7, "a cat", "int in text"),
    ],
)
def test_a_row_that_nothing_can_be_learned_from_is_broken(text, summary, words):
    with pytest.raises(BrokenRowError, match=words):
        parse(text, summary)


def test_columns_are_found_or_asked_for():
    parser = ExtractExample.build_parser(
        SETTINGS, table_of("article", "highlights"), needs_answer=True
    )
    example = parser(record_of(article=TEXT, highlights="A cat lost."))
    assert (example.summary, len(example.candidates)) == ("A cat lost.", 3)
    with pytest.raises(InputError, match="--summary-column"):
        ExtractExample.build_parser(SETTINGS, table_of("text", "gist"), needs_answer=True)
    named = SETTINGS.model_copy(update={"summary_column": "gist"})
    ExtractExample.build_parser(named, table_of("text", "gist"), needs_answer=True)
    assert (
        ExtractExample.build_parser(SETTINGS, table_of("text"), needs_answer=False)(
            record_of(text=TEXT)
        ).summary
        is None
    )


def test_equal_texts_are_held_out_together():
    texts = [f"The dog saw {number // 4} hats. A cat lost." for number in range(40)]
    examples = [parse(text, f"{number} hats.") for number, text in enumerate(texts)]
    parts = hold_out(ExampleSet("a.jsonl", examples, RowReport(""), {}), 0.25, 0)
    train, dev = (
        {one.candidates.sentences for one in part.examples} for part in (parts.train, parts.dev)
    )
    assert not train & dev
    assert len(parts.dev.examples) == 8


def test_where_there_is_nothing_to_choose_nothing_is_learned():
    with pytest.raises(InputError, match="no text has more than 3 sentences"):
        Extract.from_examples(ExtractSettings(), [parse(TEXT, "A cat.")])
    assert (
        "1 text has no more sentences"
        in Extract(ExtractSettings()).list_warnings([parse(TEXT, "A cat.")])[0]
    )
    assert TASK.list_warnings([parse(TEXT, "A cat.")]) == []


def test_where_no_sentence_is_like_a_summary_nothing_is_learned():
    with pytest.raises(InputError, match=r"no text has a sentence with a word of its summary"):
        Extract.from_examples(SETTINGS, [parse(TEXT, "Zebras!")])
    Extract.from_examples(SETTINGS, [parse(TEXT, "Zebras!"), parse(TEXT, "A cat.")])


def test_without_the_metrics_nothing_is_trained(monkeypatch):
    def fail(hypotheses, references):
        raise InputError("not installed")

    monkeypatch.setattr("bertkit.tasks.extract.task.measure_summaries", fail)
    with pytest.raises(InputError, match="not installed"):
        Extract.from_examples(SETTINGS, list_examples())


def test_another_number_of_labels_is_no_such_model(tmp_path):
    config = BertConfig(id2label={0: "a", 1: "b", 2: "c"})
    with pytest.raises(CheckpointError, match="2 labels, not 3"):
        Extract.from_config(SETTINGS, config, {})
    save_task(tmp_path, TASK)
    assert load_task(tmp_path, BertConfig(id2label={0: "a", 1: "b"}), None) == TASK
