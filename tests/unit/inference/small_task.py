"""Tiny fine-tuned models, whose heads are as they were drawn."""

from pathlib import Path

import torch
from tests.unit.inference.small import save_small

from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.saved import save_task
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.task import Tag
from bertkit.tasks.task import AnyTask
from bertkit.tokenization.tokenizer import Tokenizer

LABELS = ("bad", "good", "odd")
TAGS = ("O", "B-ANIMAL", "I-ANIMAL")


def save_classifier(folder: Path, *, max_length: int = 16, **changes: object) -> str:
    """The folder of a model that labels texts."""
    return save_model(folder, Classify(ClassifySettings(max_length=max_length), LABELS), **changes)


def save_tagger(folder: Path) -> str:
    """The folder of a model that tags words."""
    return save_model(folder, Tag(TagSettings(max_length=16), TAGS))


def save_answerer(folder: Path) -> str:
    """The folder of a model that answers questions."""
    settings = AnswerSettings(
        max_length=16, stride=4, max_question_length=6, n_best=3, version="1.1"
    )
    return save_model(folder, AnswerQuestions(settings))


def save_model(folder: Path, task: AnyTask, **changes: object) -> str:
    """The folder of a model for a task."""
    whole = folder.with_name(f"{folder.name}-whole")
    save_small(whole, initializer_range=0.5, **changes)
    torch.manual_seed(1)
    model = task.model_kind.from_pretrained(whole, new_heads=True, **task.config_changes)
    folder.mkdir()
    model.save_pretrained(folder)
    Tokenizer.load(whole).save(folder)
    save_task(folder, task)
    return str(folder)
