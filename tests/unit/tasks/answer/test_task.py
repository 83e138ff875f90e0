"""The task as the recipe and the predictor use it, from questions to a saved model."""

import json

import pytest
import torch
from tests.unit.tasks.small import learn

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_percent
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.examples import AnswerExample, GoldAnswer, locate_answer
from bertkit.tasks.answer.scoring import AnswerScoring
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.saved import list_scorer_files, load_task
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

NAMES = ("ada", "bob", "cleo", "dan")
TOKENIZER = Tokenizer([*SPECIAL_TOKENS, "who", "?", "the", "cat", "saw", "and", "ran", *NAMES])
SETTINGS = AnswerSettings(max_length=12, max_question_length=4, stride=4)
FILLERS = ("the cat", "saw the cat and ran", "ran and saw", "the cat ran and the cat saw")


def list_examples(*, has_impossible=True):
    """The answer is the name; every fourth context has none."""
    found = []
    for number in range(32):
        before, after = FILLERS[number % 4], FILLERS[number // 4 % 4]
        name = NAMES[number // 3 % 4]
        has_name = number % 4 != 3 or not has_impossible
        context = f"{before} {name} {after}" if has_name else f"{before} the {after}"
        golds = (locate_answer(context, name, len(before)),) if has_name else ()
        found.append(AnswerExample("who ?", context, golds, f"q{number}", f"line {number}"))
    return found


def test_it_learns_names_and_where_there_is_none_and_is_saved(tmp_path):
    examples = list_examples()
    task = AnswerQuestions.from_examples(SETTINGS, examples)
    assert task.settings.version == "2.0"
    encoded = task.encode(examples, TOKENIZER)
    assert sum(len(one.sequences) for one in encoded) > len(examples)
    answer, evaluation = learn(task, examples, tmp_path, tokenizer=TOKENIZER)
    assert answer.task.numbers.keys() == {"null_threshold"}
    assert evaluation.metrics["f1"] == evaluation.metrics["NoAns_exact"] == 1
    found, none = answer(
        [("who ?", "the cat saw bob"), {"question": "who ?", "context": "the cat"}]
    )
    assert (found.text, found.start, found.stop) == ("bob", 12, 15)
    assert none.is_null
    assert none.describe().startswith("(no answer)\t")
    assert found.describe() == f"bob\t{format_percent(found.probability)}"
    assert json.loads(json.dumps(found.to_json()))["n_best"][0]["text"] == "bob"


def test_until_the_threshold_is_known_the_best_one_is_measured_with():
    examples = list_examples()
    task = AnswerQuestions.from_examples(SETTINGS, examples)
    encoded = task.encode(examples, TOKENIZER)
    torch.manual_seed(1)
    logits = [torch.randn(one.num_tokens, 2).numpy() for one in encoded]
    rows = list(zip(examples, encoded, logits, strict=True))
    predictions = [task.decode(*row) for row in rows]
    fitted = task.fit_numbers(examples, encoded, logits)
    final = fitted.score(examples, [fitted.decode(*row) for row in rows]).metrics
    assert task.score(examples, predictions).metrics == final
    assert final["f1"] > AnswerScoring(examples, predictions).metrics["f1"]


def test_by_the_rules_of_1_1_no_threshold_is_looked_for():
    examples = list_examples(has_impossible=False)
    task = AnswerQuestions.from_examples(SETTINGS, examples)
    assert task.settings.version == "1.1"
    encoded = task.encode(examples, TOKENIZER)
    logits = [torch.zeros(one.num_tokens, 2).numpy() for one in encoded]
    assert task.fit_numbers(examples, encoded, logits) is task
    predictions = [task.decode(*row) for row in zip(examples, encoded, logits, strict=True)]
    files = list_scorer_files(task, examples, predictions)
    assert files.keys() == {"predictions.json", "nbest_predictions.json"}
    assert files["predictions.json"].keys() == {example.example_id for example in examples}
    assert task.score(examples, predictions).metrics.keys() == {"exact_match", "f1"}


def test_2_0_may_be_asked_for_where_each_question_has_an_answer():
    examples = list_examples(has_impossible=False)
    task = AnswerQuestions.from_examples(SETTINGS.model_copy(update={"version": "2.0"}), examples)
    encoded = task.encode(examples, TOKENIZER)
    logits = [torch.zeros(one.num_tokens, 2).numpy() for one in encoded]
    assert task.fit_numbers(examples, encoded, logits) is task
    assert task.threshold == 0.0
    predictions = [task.decode(*row) for row in zip(examples, encoded, logits, strict=True)]
    assert "null_odds.json" in list_scorer_files(task, examples, predictions)
    assert "HasAns_f1" in task.score(examples, predictions).metrics


def test_what_cannot_be_learned_is_refused():
    none = [AnswerExample("who ?", "the cat", ())]
    with pytest.raises(InputError, match="no question has an answer"):
        AnswerQuestions.from_examples(SETTINGS, none)
    with pytest.raises(InputError, match=r"8 of 32 questions have no answer.*set version to 2\.0"):
        AnswerQuestions.from_examples(
            SETTINGS.model_copy(update={"version": "1.1"}), list_examples()
        )


def test_a_model_of_another_tool_answers_every_question(tmp_path):
    task = load_task(tmp_path, BertConfig(), "BertForQuestionAnswering")
    assert isinstance(task, AnswerQuestions)
    assert task.settings.version == "1.1"
    with pytest.raises(CheckpointError, match="has 2 labels, start and end, not 3"):
        load_task(tmp_path, BertConfig(num_labels=3), "BertForQuestionAnswering")
    short = load_task(tmp_path, BertConfig(max_position_embeddings=64), "BertForQuestionAnswering")
    assert short.settings.question_limit == 30
    kept = AnswerQuestions.from_config(AnswerSettings(version="2.0"), BertConfig(), {})
    assert kept.settings.version == "2.0"


def test_the_end_of_a_long_question_is_left_out_and_said():
    task = AnswerQuestions(SETTINGS)
    examples = [AnswerExample("who " * length, "the cat saw") for length in (0, 4, 5)]
    encoded = task.encode(examples, TOKENIZER)
    assert [len(one.sequences[0].ids) for one in encoded] == [6, 10, 10]
    assert [one.is_cut for one in encoded] == [False, False, True]
    assert [one.labels for one in encoded] == [None] * 3
    assert encoded[0].sequences[0].segments == [0, 0, 1, 1, 1, 1]


def test_of_a_truncated_context_the_beginning_is_read():
    task = AnswerQuestions(SETTINGS.model_copy(update={"long_texts": "truncate", "stride": None}))
    context = "the cat saw bob " * 5
    gold = locate_answer(context, "bob", 50)
    (encoded,) = task.encode([AnswerExample("who ?", context, (gold,))], TOKENIZER)
    assert [len(one.ids) for one in encoded.sequences] == [12]
    assert (encoded.is_cut, encoded.labels.tolist()) == (True, [[0, 0]])


def test_an_answer_without_a_token_points_at_cls():
    task = AnswerQuestions(SETTINGS)
    gold = GoldAnswer("\u200b", 3, False)
    (encoded,) = task.encode([AnswerExample("who ?", "the\u200b cat", (gold,))], TOKENIZER)
    assert encoded.labels.tolist() == [[0, 0]]
