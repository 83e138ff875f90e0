"""Each task from its file to its answers, through the command line."""

import json
import random

import pytest
from tests.closeness import close
from tests.e2e.small import list_suggestions
from tests.unit.recipes.finetune.small import FILLERS, save_model

from bertkit.cli.main import main
from bertkit.tasks.table import TASKS

NUM_ROWS = 24


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    save_model(folder / "model")
    return folder


def make_texts():
    """Texts with a cat or a dog."""
    choose = random.Random(0)
    for index in range(NUM_ROWS):
        words = choose.choices(FILLERS, k=4)
        words.insert(choose.randint(0, 4), ("cat", "dog")[index % 2])
        yield " ".join(words), index % 2 == 0


def write_rows(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_data(folder, task):
    """A file from which the task can be learned."""
    texts = list(make_texts())
    if task == "tag":
        path = folder / "tag.conll"
        tags = {"cat": "B-CAT", "dog": "B-DOG"}
        sentences = (
            "".join(f"{word}\t{tags.get(word, 'O')}\n" for word in text.split())
            for text, _ in texts
        )
        path.write_text("\n".join(sentences))
        return path
    rows = {
        "classify": lambda text, is_cat: {"text": text, "label": "good" if is_cat else "bad"},
        "regress": lambda text, is_cat: {"text": text, "label": 1.5 if is_cat else -1.5},
        "choose": lambda text, is_cat: {
            "context": text,
            "question": "so?",
            "choices": ["the cat", "the dog"],
            "label": 1 - is_cat,
        },
        "answer": lambda text, is_cat: {
            "id": text,
            "question": "the",
            "context": text,
            "answers": [
                {
                    "text": "cat" if is_cat else "dog",
                    "answer_start": text.index("cat" if is_cat else "dog"),
                }
            ],
        },
    }
    return write_rows(folder / f"{task}.jsonl", (rows[task](*row) for row in texts))


WORDS = {
    "classify": ["the cat", "a dog"],
    "regress": ["the cat", "a dog"],
    "tag": ["the cat", "a dog"],
    "answer": ["the", "a", "--context", "the cat saw"],
    "choose": ["the cat", "a dog", "--choice", "the cat", "--choice", "the dog"],
}
# What goes before and after the text of a row in the command that is suggested.
AROUND = {
    "answer": (["the", "--context"], []),
    "choose": ([], ["--question", "so?", "--choice", "the cat", "--choice", "the dog"]),
}


def test_every_task_is_tried():
    assert WORDS.keys() == {name for name, entry in TASKS.items() if entry.has_command}


@pytest.mark.parametrize("task", WORDS)
def test_a_task_from_its_file_to_its_answers(workshop, tmp_path, capsys, task):
    data, model = write_data(tmp_path, task), tmp_path / "model"
    words = (
        f"finetune {task} --model {workshop}/model --train {data} --dev {data} --output {model}"
        " --epochs 1 --batch-size 8 --learning-rate 1e-2 --device cpu --json --max-length 20"
        " --precision fp32"
    ).split()
    assert main(words) == 0
    learned = json.loads(capsys.readouterr().out)["metrics"]
    words.remove("--json")
    assert main(words) == 0  # of a finished run
    shown = capsys.readouterr()
    (suggestion,) = list_suggestions(shown.out + shown.err)
    (text, _), (before, after) = next(make_texts()), AROUND.get(task, ([], []))
    assert suggestion == [task, str(model), *before, text, *after]
    assert main(suggestion) == 0
    capsys.readouterr()
    assert main([task, str(model), *WORDS[task], "--json"]) == 0
    spoken = capsys.readouterr().out.splitlines()
    assert len([json.loads(line) for line in spoken]) == 2
    assert main([task, str(model), *WORDS[task]]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 2
    output = tmp_path / "answers.jsonl"
    assert main([task, str(model), "--file", str(data), "--output", str(output)]) == 0
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert len(rows) == NUM_ROWS
    capsys.readouterr()
    assert main([task, str(model), "--file", str(data), "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer.pop("id") for answer in answers] == list(range(1, NUM_ROWS + 1))
    found = tmp_path / "found"
    judging = ["evaluate", str(model), str(data), "--precision", "fp32", "--json"]
    assert main([*judging, "--output", str(found)]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert judged["task"] == task
    assert judged["metrics"] == close(learned, within=1e-4)
    lines = (found / "answers.jsonl").read_text("utf-8").splitlines()
    assert [[*json.loads(line)] for line in lines] == [["place", *answer] for answer in answers]
