"""Classification by labels that no model has learned."""

import json
from dataclasses import replace

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import build_sentence_model, save_small
from tests.unit.inference.small_task import save_classifier, save_model

import bertkit
from bertkit.base.errors import InputError, SettingsError
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.cli.main import main
from bertkit.inference.predictor import Classifier, PredictionCounts
from bertkit.inference.settings import EngineSettings
from bertkit.inference.zero_shot import EntailedLabels, SimilarLabels, load_zero_shot
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.classify.zero_shot import ZeroShot

PLAIN = EngineSettings(device="cpu", precision="fp32", engine="torch")
ANIMALS = ZeroShot({"cat": "", "dog": "", "hat": "a lost hat"}, "the {label} .")
TEXTS = ["the cat saw a hat", "a dog", "lost"]
JUDGED = ("contradiction", "neutral", "Entailment")


def save_encoder(folder):
    """A sentence encoder with a dense layer and a prompt."""
    save_small(folder)
    write_sentence_model(folder, build_sentence_model(torch.nn.Linear(8, 5)))
    return folder


@pytest.fixture
def encoder(tmp_path):
    return save_encoder(tmp_path / "encoder")


@pytest.fixture
def judge(tmp_path):
    settings = ClassifySettings(max_length=16)
    return save_model(tmp_path / "judge", Classify(settings, JUDGED))


def test_a_text_has_the_label_whose_vector_is_nearest(encoder):
    classify = load_zero_shot(ANIMALS, encoder, PLAIN)
    assert isinstance(classify, SimilarLabels)
    embed = bertkit.Embedder.load(encoder, PLAIN)
    cosines = embed(TEXTS) @ embed(["the cat .", "the dog .", "a lost hat"]).T
    wanted = torch.tensor(20 * cosines).softmax(dim=-1)
    found = classify(TEXTS)
    assert close([[*one.probabilities.values()] for one in found], wanted)
    assert [one.label for one in found] == [
        [*ANIMALS.labels][row] for row in cosines.argmax(axis=1)
    ]
    likeliest = sorted(found[2].probabilities.values(), reverse=True)[:2]
    assert close([*classify("lost", top_k=2).probabilities.values()], likeliest)


def test_the_prompt_and_the_case_of_a_model_hold(tmp_path):
    folder = save_encoder(tmp_path / "encoder")
    model = replace(
        build_sentence_model(torch.nn.Linear(8, 5)), default_prompt="query", lowercase=True
    )
    write_sentence_model(folder, model)
    embed = bertkit.Embedder.load(folder, PLAIN)
    wanted = 20 * embed("A Cat") @ embed(["the cat .", "the dog .", "a lost hat"]).T
    assert close(load_zero_shot(ANIMALS, folder, PLAIN)("A Cat").logits, wanted)


def test_a_text_has_the_label_that_it_entails_most(judge):
    classify = load_zero_shot(ANIMALS, judge, PLAIN)
    assert isinstance(classify, EntailedLabels)
    pairs = Classifier.load(judge, PLAIN)
    sentences = ["the cat .", "the dog .", "a lost hat"]
    logits = [pairs((TEXTS[0], each)).logits[2] for each in sentences]
    found = classify(TEXTS[0])
    assert close([*found.probabilities.values()], torch.tensor(logits).softmax(dim=0))
    counts = PredictionCounts()
    long = " ".join(["cat"] * 40)
    assert len([*classify.stream([long, "a dog"], counts=counts)]) == 2
    assert (counts.inputs, counts.truncated, counts.windowed) == (2, 1, 0)


def test_other_models_and_unknown_labels_are_refused(tmp_path, encoder):
    classifier = save_classifier(tmp_path / "classifier")
    with pytest.raises(SettingsError, match=r"task classify with the labels bad, good, odd; other"):
        load_zero_shot(ANIMALS, classifier, PLAIN)
    unknown = ZeroShot({"x": "", "y": ""}, "{label}")
    with pytest.raises(InputError, match="the labels: none of 2 tokens is in the vocabulary"):
        load_zero_shot(unknown, encoder, PLAIN)
    classify = load_zero_shot(ANIMALS, encoder, PLAIN)
    with pytest.raises(SettingsError, match="explain is for a model that learned its labels"):
        classify("a cat", explain=True)
    with pytest.raises(InputError, match="reads single texts, and this is a pair"):
        classify(("a cat", "a dog"))


def test_a_plain_encoder_is_said_to_know_less(tmp_path, capsys):
    save_small(tmp_path / "plain")
    assert load_zero_shot(ANIMALS, tmp_path / "plain", PLAIN)("a cat").label in ANIMALS.labels
    assert "wasn't trained to compare texts" in capsys.readouterr().err


def test_texts_are_classified_from_python(encoder, tmp_path):
    labels = {"cat": "", "dog": "a lost dog"}
    settings = {"model": encoder, "template": "the {label}", "device": "cpu"}
    one = bertkit.classify("a cat", labels=labels, **settings)
    many = bertkit.classify(["a cat", "a dog"], labels=labels, top_k=1, **settings)
    assert many[0].label == one.label
    assert [len(each.probabilities) for each in many] == [1, 1]
    path = tmp_path / "texts.txt"
    path.write_text("a cat\na dog\n", "utf-8")
    assert [each.label for each in bertkit.classify(path, labels=labels, **settings)] == [
        each.label for each in many
    ]
    with pytest.raises(SettingsError, match=r"must have \{label\} where the label stands"):
        bertkit.classify("a cat", labels=labels, template="the", model=encoder)


def test_the_command_takes_labels_in_place_of_a_model(encoder, tmp_path, capsys):
    words = ["classify", "--labels", "cat,dog", "--model", str(encoder), "--device", "cpu"]
    assert main([*words, "a cat", "a dog", "--json"]) == 0
    told = capsys.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert [[*row["probabilities"]] for row in rows] == [["cat", "dog"]] * 2
    assert "not learned" not in told.err
    path = tmp_path / "rows.csv"
    path.write_text("text,other\na cat,1\na dog,2\n", "utf-8")
    out = tmp_path / "answers.csv"
    assert main([*words, "--file", str(path), "--output", str(out), "--template", "a {label}"]) == 0
    assert out.read_text("utf-8").splitlines()[0] == (
        "text,other,label,probability,probability_cat,probability_dog"
    )
    assert "these labels were compared with the texts, not learned" in capsys.readouterr().err
    assert main([*words, "--file", f"{tmp_path}/row*.csv", "--output", f"{tmp_path}/many/"]) == 0
    assert [*(tmp_path / "many").glob("rows*")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a fine-tuned model first, then texts; or give --labels"),
        (["a cat", "--model", "bert/"], "or give --labels, for which --model names an encoder"),
        (["bert/", "a cat", "--template", "{label}"], "--template is for --labels; give both"),
        (["--labels", "a", "a cat"], "two or more different ones, separated by commas"),
        (["--labels", "a,b", "--template", "x", "a cat"], "must have {label} where the label sta"),
    ],
)
def test_the_command_says_what_is_missing(words, message, capsys):
    assert main(["classify", *words]) == 2
    assert message in capsys.readouterr().err
