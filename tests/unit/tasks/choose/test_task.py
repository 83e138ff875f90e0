"""The task as the recipe and the predictor use it, from texts to a saved model."""

import json

import numpy as np
import pytest
import torch
from tests.unit.tasks.small import TOKENIZER, decode, score, train

from bertkit.base.errors import CheckpointError
from bertkit.inference.predictors import Chooser
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.batch import TaskBatch
from bertkit.tasks.choose.choice import take_choice
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.settings import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.saved import load_task, save_task

TASK = Choose(ChooseSettings(max_length=12))


def list_examples() -> list[ChooseExample]:
    """The choice with the animal of the context is right; there are two or three."""
    animals = ("cat", "dog", "fox")
    found = []
    for number in range(24):
        name = animals[number % 3]
        others = [other for other in animals if other != name][: 1 + number % 2]
        choices = [f"a {other} lost" for other in others]
        place = number // 3 % (len(choices) + 1)
        choices.insert(place, f"a {name} lost")
        found.append(ChooseExample(f"the {name} saw", tuple(choices), "", place, f"line {number}"))
    return found


def test_it_learns_which_animal_goes_on_and_is_saved(tmp_path):
    examples = list_examples()
    task = Choose.from_examples(TASK.settings, examples)
    model = train(task, examples, num_steps=150)
    encoded, logits = score(task, model, examples)
    assert {len(rows) for rows in logits} == {2, 3}
    fitted = task.fit_numbers(examples, encoded, logits)
    predictions = decode(fitted, examples, encoded, logits)
    found = fitted.evaluate(examples, predictions)
    assert found.metrics["accuracy"] == 1.0
    assert not found.mistakes
    assert not found.warnings

    model.save_pretrained(tmp_path)
    TOKENIZER.save(tmp_path)
    save_task(tmp_path, fitted)
    choose = Chooser.load(tmp_path, device="cpu", engine="torch")
    assert choose.task == fitted
    one, two = choose(
        [
            ("the dog saw", ["a fox lost", "a dog lost"]),
            {"context": "the fox saw", "choices": ["a fox lost", "a cat lost", "a dog lost"]},
        ]
    )
    assert (one.index, one.text, two.index) == (1, "a dog lost", 0)
    assert sum(two.probabilities) == pytest.approx(1)
    assert choose.task.describe(one) == f"a dog lost\t{one.probability:.4f}"
    assert json.loads(json.dumps(choose.task.to_json(one)))["index"] == 1
    (tmp_path / "task.json").unlink()  # what another tool writes
    assert isinstance(Chooser.load(tmp_path, device="cpu", engine="torch").task, Choose)


def test_sequences_are_context_question_and_choice():
    example = ChooseExample("the cat", ("a dog", "fox " * 20), "saw")
    (encoded,) = TASK.encode([example], TOKENIZER)
    expected = TOKENIZER.encode("the cat", "saw a dog")
    assert encoded.sequences[0] == (expected.ids, expected.token_type_ids)
    assert len(encoded.sequences[1].ids) == 12
    assert encoded.is_cut
    assert encoded.labels is None
    assert TASK.num_chars(example) == 7 + 9 + 7 + 84
    assert TASK.show(example) == "the cat saw"
    assert TASK.make_example(("c", ["a", "b"]), "here").place == "here"


def test_the_loss_is_over_each_examples_own_choices():
    examples = [
        ChooseExample("a", ("x", "y"), label=1),
        ChooseExample("a", ("x", "y", "z"), label=0),
    ]
    batch = TaskBatch.collate(TASK.encode(examples, TOKENIZER), [0, 1])
    assert batch.target_counts == {"task": 2}
    logits = torch.tensor([1.0, 2.0, 3.0, 0.5, -1.0], requires_grad=True)
    scores = TASK.loss(logits, batch)
    first, second = logits[:2].log_softmax(0)[1], logits[2:].log_softmax(0)[0]
    assert torch.allclose(scores.losses["task"], -first - second)
    assert int(scores.hits["task"]) == 2
    scores.losses["task"].backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[:2].sum().abs() < 1e-6


def test_a_temperature_is_found_among_choices_of_any_number():
    random = np.random.default_rng(0)
    examples, logits = [], []
    for number in range(200):
        label = number % (2 + number % 3)
        rows = 3 * random.normal(size=2 + number % 3).astype(np.float32)
        rows[label] += 2
        examples.append(ChooseExample("a", tuple("abcd"[: len(rows)]), label=label))
        logits.append(rows)
    fitted = TASK.fit_numbers(examples, [], logits)

    def likelihood(temperature):
        chosen = [
            take_choice(one.choices, rows, temperature)
            for one, rows in zip(examples, logits, strict=True)
        ]
        return sum(
            np.log(found.probabilities[one.label])
            for one, found in zip(examples, chosen, strict=True)
        )

    best = fitted.numbers["temperature"]
    assert likelihood(best) > max(map(likelihood, (best * 0.95, best * 1.05, 1.0)))
    right = [ChooseExample("a", ("x", "y"), label=0)]
    assert TASK.fit_numbers(right, [], [np.array([1.0, 0.0])]) is TASK


def test_mistakes_and_models_that_have_learned_nothing_are_told():
    examples = [ChooseExample("a", ("x", "y"), "q", label, f"line {label}") for label in (0, 1)]
    always = [take_choice(("x", "y"), np.array([1.0, 0.0]), 1.0)] * 2
    found = TASK.evaluate(examples, always)
    assert found.warnings[0] == "every prediction is choice 0"
    assert "accuracy (0.5000) isn't above that of guessing (0.5000)" in found.warnings[1]
    (mistake,) = found.mistakes
    assert (mistake.place, mistake.text, mistake.expected, mistake.predicted) == (
        "line 1",
        "a q",
        "y",
        "x",
    )
    assert TASK.measure(examples, always) == {"accuracy": 0.5}
    low, high = found.intervals["accuracy"]
    assert low < 0.5 < high


def test_a_models_temperature_is_above_zero(tmp_path):
    assert isinstance(load_task(tmp_path, BertConfig(), "BertForMultipleChoice"), Choose)
    with pytest.raises(CheckpointError, match="temperature is -1"):
        Choose.from_config(TASK.settings, BertConfig(), {"temperature": -1.0})
