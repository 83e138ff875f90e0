import dataclasses
import json
import shutil

import pytest
import torch
from tests.unit.recipes.finetune.small import QUICK, TASK, open_job, save_model

from bertkit.base.errors import CheckpointError, InputError
from bertkit.checkpoints.torch_tensors import read_safetensors
from bertkit.models.bert.fine_tuning import BertForQuestionAnswering, BertForSequenceClassification
from bertkit.recipes.finetune.pretrained import load_pretrained, open_pretrained
from bertkit.recipes.finetune.run import Sources
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.folder import read_max_length
from bertkit.tokenization.tokenizer import Tokenizer

TWO = Classify(TASK, ("bad", "good"))
THREE = Classify(TASK, ("bad", "good", "so so"))


@pytest.fixture
def classifier(made, tmp_path):
    """A folder of a classifier of `TWO`, whose head is told by its values."""
    parent = open_pretrained(made / "model", TWO, QUICK)
    model = load_pretrained(parent, BertForSequenceClassification)
    torch.nn.init.constant_(model.classifier.weight, 0.125)
    model.save_pretrained(tmp_path / "classifier")
    parent.tokenizer.save(tmp_path / "classifier")
    return tmp_path / "classifier"


def test_a_new_head_is_drawn_from_the_seed_and_told(made, capsys):
    parent = open_pretrained(made / "model", TWO, QUICK)
    models = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(load_pretrained(parent, BertForSequenceClassification))
    first, same, other = (model.classifier.weight for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert models[0].config.id2label == {0: "bad", 1: "good"}
    assert "new weights for classifier, which" in capsys.readouterr().err


def test_a_head_with_the_same_labels_is_trained_on(classifier, capsys):
    capsys.readouterr()
    parent = open_pretrained(classifier, TWO, QUICK)
    model = load_pretrained(parent, BertForSequenceClassification)
    assert bool((model.classifier.weight == 0.125).all())
    assert capsys.readouterr().err == ""


def test_a_head_whose_labels_have_no_names_is_trained_on(made, tmp_path, capsys):
    task = AnswerQuestions(AnswerSettings(max_length=24, max_question_length=8))
    parent = open_pretrained(made / "model", task, QUICK)
    model = load_pretrained(parent, BertForQuestionAnswering)
    torch.nn.init.constant_(model.qa_outputs.weight, 0.125)
    model.save_pretrained(tmp_path)
    parent.tokenizer.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    for key in ("id2label", "label2id"):
        config.pop(key, None)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    capsys.readouterr()
    again = load_pretrained(open_pretrained(tmp_path, task, QUICK), BertForQuestionAnswering)
    assert bool((again.qa_outputs.weight == 0.125).all())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "task", [THREE, Classify(TASK, ("down", "up"))], ids=["more labels", "other names"]
)
def test_a_head_with_other_labels_is_replaced_and_told(classifier, capsys, task):
    parent = open_pretrained(classifier, task, QUICK)
    model = load_pretrained(parent, BertForSequenceClassification)
    assert model.classifier.weight.shape[0] == len(task.labels)
    assert not bool((model.classifier.weight == 0.125).any())
    error = capsys.readouterr().err
    assert "is for other labels, and is replaced" in error
    pooler = read_safetensors(classifier / "model.safetensors")["bert.pooler.dense.weight"]
    assert torch.equal(model.pooler.dense.weight, pooler)


def test_dropout_is_the_models_own_unless_it_is_given(made):
    config = open_pretrained(made / "model", TWO, QUICK.model_copy(update={"dropout": None})).config
    assert (config.hidden_dropout_prob, config.classifier_dropout) == (0.1, None)
    settings = QUICK.model_copy(update={"dropout": 0.2, "classifier_dropout": 0.3})
    config = open_pretrained(made / "model", TWO, settings).config
    rates = (config.hidden_dropout_prob, config.attention_probs_dropout_prob)
    assert (*rates, config.classifier_dropout) == (0.2, 0.2, 0.3)


def test_more_tokens_than_positions_are_refused_with_both_numbers(made):
    task = Classify(ClassifySettings(max_length=25), ("bad", "good"))
    with pytest.raises(InputError, match=r"max_length \(25\) is more than the 24 tokens"):
        open_pretrained(made / "model", task, QUICK)


def test_a_tokenizer_of_another_model_is_refused(made, tmp_path):
    shutil.copytree(made / "model", tmp_path / "model")
    words = [f"w{number}" for number in range(30)]
    Tokenizer([*SPECIAL_TOKENS, *words]).save(tmp_path / "model")
    with pytest.raises(CheckpointError, match="they don't match"):
        open_pretrained(tmp_path / "model", TWO, QUICK)


def test_pairs_need_a_model_with_two_segments(made, tmp_path, sources):
    save_model(tmp_path / "model", type_vocab_size=1)
    (tmp_path / "pairs.csv").write_text("text,other,label\nthe,a,x\na,the,y\n")
    pairs = str(tmp_path / "pairs.csv")
    moved = dataclasses.replace(sources, model=str(tmp_path / "model"), train=pairs, dev=pairs)
    task = TASK.model_copy(update={"pair_column": "other"})
    with pytest.raises(InputError, match=r"takes single texts \(type_vocab_size is 1\)"):
        open_job(moved, task, QUICK)


def test_a_left_to_right_parent_keeps_its_direction(made, tmp_path):
    shutil.copytree(made / "model", tmp_path / "causal")
    config = json.loads((made / "model" / "config.json").read_text("utf-8"))
    text = json.dumps({**config, "is_decoder": True})
    (tmp_path / "causal" / "config.json").write_text(text, encoding="utf-8")
    parent = open_pretrained(tmp_path / "causal", TWO, QUICK)
    model = load_pretrained(parent, BertForSequenceClassification)
    assert model.config.is_decoder
    assert model.encoder.layers[0].attention.is_causal


@pytest.mark.parametrize("told", [None, 4, TASK.max_length + 1, 10**30])
def test_a_result_tells_how_much_its_task_reads(made, tmp_path, told):
    shutil.copytree(made / "model", tmp_path / "told")
    Tokenizer.load(made / "model").save(tmp_path / "told", max_length=told)
    sources = Sources("classify", str(tmp_path / "told"), str(made / "train.csv"))
    job = open_job(sources, TASK, QUICK)
    job.save_tokenizer(tmp_path / "written")
    assert read_max_length(tmp_path / "written") == TASK.max_length
