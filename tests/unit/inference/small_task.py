"""A tiny fine-tuned model, whose head is as it was drawn."""

from pathlib import Path

import torch
from tests.unit.inference.small import save_small

from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.tasks.classify.settings import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.saved import save_task
from bertkit.tokenization.tokenizer import Tokenizer

LABELS = ("bad", "good", "odd")


def save_classifier(folder: Path, *, max_length: int = 16, **changes: object) -> str:
    """The folder of a model that labels texts, and what it is called."""
    whole = folder.with_name(f"{folder.name}-whole")
    save_small(whole, initializer_range=0.5, **changes)
    task = Classify(ClassifySettings(max_length=max_length), LABELS)
    torch.manual_seed(1)
    model = BertForSequenceClassification.from_pretrained(
        whole, new_heads=True, **task.config_changes
    )
    folder.mkdir()
    model.save_pretrained(folder)
    Tokenizer.load(whole).save(folder)
    save_task(folder, task)
    return str(folder)
