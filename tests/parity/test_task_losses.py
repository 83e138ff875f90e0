"""Losses of sequences, of choices and of tags against transformers, in float64."""

from typing import Any

import pytest
import torch
import transformers
from tests.closeness import assert_close, close
from tests.parity.agreement import pad_sequences
from tests.unit.tasks.small import TOKENIZER
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from bertkit.models.bert.config import BertConfig
from bertkit.tasks.batch import IGNORED_LABEL
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress, RegressExample
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag
from bertkit.tasks.task import AnyTask
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tasks.texts import Texts

TEXTS = [Texts("the cat"), Texts("a dog lost", "the hat"), Texts(""), Texts("fox " * 30, "cats")]
LABELS = ("x", "y", "z")
SETS = (("x",), ("y", "z"), (), ("x", "y", "z"))
CHOICES = [ChooseExample("the cat", ("a", "fox saw", "not"), "saw", label) for label in (0, 2, 1)]
CASES: dict[str, tuple[AnyTask, list[Any], str]] = {
    "classify": (
        Classify(ClassifySettings(max_length=16), LABELS),
        [
            ClassifyExample(each, (label,))
            for each, label in zip(TEXTS, ("z", "x", "unseen", "y"), strict=True)
        ],
        "AutoModelForSequenceClassification",
    ),
    "several labels": (
        Classify(ClassifySettings(max_length=16, multi_label=True), LABELS),
        [ClassifyExample(each, labels) for each, labels in zip(TEXTS, SETS, strict=True)],
        "AutoModelForSequenceClassification",
    ),
    "regress": (
        Regress(RegressSettings(max_length=16)),
        [
            RegressExample(each, number)
            for each, number in zip(TEXTS, (1.5, -2.0, 0.0, 4.25), strict=True)
        ],
        "AutoModelForSequenceClassification",
    ),
    "choose": (Choose(ChooseSettings(max_length=16)), CHOICES, "AutoModelForMultipleChoice"),
    "tag": (
        Tag(TagSettings(max_length=16), LABELS),
        [
            TagExample(("the", "cats", ""), tags=("x", "y", "x")),
            TagExample(("hats",), tags=("new",)),
            TagExample(("a", "dog", "lost", "hats"), tags=("z", "x", "new", "y")),
        ],
        "AutoModelForTokenClassification",
    ),
}


def save_both(task: AnyTask, folder: Any, kind: str) -> tuple[Any, Any]:
    """One model in both libraries, all of its weights away from 0."""
    config = BertConfig.from_dict(
        {
            "model_type": "bert",
            "vocab_size": TOKENIZER.vocab_size,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 16,
            **task.config_changes,
        },
        folder,
    )
    torch.manual_seed(0)
    model = task.model_kind(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.save_pretrained(folder)
    reference = getattr(transformers, kind).from_pretrained(folder)
    return model.double().eval(), reference.double().eval()


@pytest.mark.parametrize("name", CASES)
def test_the_loss_of_a_batch_and_its_gradient_are_those_of_transformers(name, tmp_path):
    task, examples, kind = CASES[name]
    model, reference = save_both(task, tmp_path, kind)
    encoded = task.encode(examples, TOKENIZER)
    batch = TaskBatch.collate(encoded, range(len(examples)))
    loss = task.loss(model.scores(batch.packed), batch).losses["task"] / batch.target_counts["task"]

    tensors = pad_sequences([sequence for one in encoded for sequence in one.sequences])
    if name == "choose":
        tensors = {key: rows.unflatten(0, (len(examples), -1)) for key, rows in tensors.items()}
    labels = batch.labels.double() if batch.labels.is_floating_point() else batch.labels
    if name == "tag":
        rows = labels.split(batch.packed.lengths)
        labels = pad_sequence(rows, batch_first=True, padding_value=IGNORED_LABEL)
    theirs = reference(**tensors, labels=labels).loss
    assert loss.item() == close(theirs.item())

    loss.backward()
    theirs.backward()
    ours, other = model.classifier.weight.grad, reference.classifier.weight.grad
    assert_close(ours, other)


def test_weights_are_those_of_torch_but_for_the_mean():
    """torch divides by the weights of the batch; here an example weighs the same in any batch."""
    examples = [ClassifyExample(Texts("a"), (label,)) for label in "xxxy"]
    settings = ClassifySettings(max_length=16, class_weights="balanced")
    task = Classify.from_examples(settings, examples)
    batch = TaskBatch.collate(task.encode(examples, TOKENIZER), range(4))
    logits = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours = task.loss(logits, batch).losses["task"] / 4
    weight = torch.tensor([2 / 3, 2.0], dtype=torch.float64)
    assert float(ours) == close(float(cross_entropy(logits, batch.labels, weight)))
