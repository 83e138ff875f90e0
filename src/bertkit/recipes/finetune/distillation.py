"""Distillation of an encoder of texts: a teacher's vectors as targets, a student with fewer layers.

Source: Sanh et al. 2019, "DistilBERT", for layers that are taken over; Reimers and Gurevych 2020,
"Making Monolingual Sentence Embeddings Multilingual using Knowledge Distillation", for the error.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.progress import announce
from bertkit.inference.embeddings.embedder import (
    PASSAGE_PROMPTS,
    QUERY_PROMPTS,
    Embedder,
    with_prompt,
)
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.sentence_bert import SentenceBert
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.task import AnyTask

if TYPE_CHECKING:
    from bertkit.recipes.finetune.data import FineTuningData


def add_targets(data: "FineTuningData", device: str) -> None:
    """Compute the teacher's vectors of all texts, if the task has a teacher, once."""
    task = data.task
    if not isinstance(task, Embed) or task.settings.teacher is None or task.targets:
        return
    embedder = Embedder.load(task.settings.teacher, EmbedderSettings(device=device))
    examples = [*data.train.examples, *data.dev.examples]
    queries = list({one.query: 0 for one in examples})
    passages = list({text: 0 for one in examples for text in one.passages})
    prompts = ((), ()) if task.settings.has_scores else (QUERY_PROMPTS, PASSAGE_PROMPTS)
    targets = {
        (is_query, text): vector
        for is_query, names, texts in ((True, prompts[0], queries), (False, prompts[1], passages))
        for text, vector in zip(
            texts, with_prompt(embedder, names)(texts, progress=True), strict=True
        )
    }
    announce(f"{embedder.opened.title} is the teacher of {pluralize(len(targets), 'text')}")
    data.task = replace(task, targets=targets)


def shape_student(model: FineTunedBert, task: AnyTask) -> None:
    """Keep some of the layers, and add a linear map if the teacher's vectors have another length.

    The layers that stay are evenly spaced, the first and the last among them.
    """
    if not (isinstance(model, SentenceBert) and isinstance(task, Embed)):
        return
    num_layers, config = task.settings.num_layers, model.config
    if num_layers is not None and num_layers != config.num_hidden_layers:
        kept = choose_layers(config.num_hidden_layers, num_layers)
        layers = nn.ModuleList([model.encoder.layers[number] for number in kept])
        changed = config.keep_layers(kept)
        model.encoder.layers, model.config, model.encoder.config = layers, changed, changed
        shown = ", ".join(str(number + 1) for number in kept)
        announce(f"the student has layers {shown} of {config.num_hidden_layers}")
    if task.targets:
        length = len(next(iter(task.targets.values())))
        if length != model.dimension:
            announce(
                f"vectors get a linear map from {model.dimension} to {length} numbers, those of the"
                " teacher"
            )
            model.widen(length)


def choose_layers(num_layers: int, num_kept: int) -> list[int]:
    """Return the numbers of evenly spaced layers, from 0; SettingsError if there are too few."""
    if num_kept > num_layers:
        raise SettingsError(
            f"`num_layers` is {num_kept}, and the model has {pluralize(num_layers, 'layer')}; keep"
            " as many or fewer"
        )
    spaced: list[int] = np.linspace(0, num_layers - 1, num_kept).round().astype(int).tolist()
    return spaced
