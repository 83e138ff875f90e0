"""Numbers just outside the limits of settings are refused, and those limits are taken."""

import pytest
from pydantic import ValidationError

from bertkit.base.settings import Settings
from bertkit.data.tables.settings import RecordSettings
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.settings import PrepareSettings
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tokenization.settings import VocabularySettings


@pytest.mark.parametrize(
    ("kind", "name", "taken", "refused"),
    [
        (VocabularySettings, "vocab_size", (6, 1_000_000), (5, 1_000_001)),
        (VocabularySettings, "min_frequency", (1,), (0,)),
        (RecordSettings, "max_broken", (0, 1), (-0.01, 1.01)),
        (PrepareSettings, "held_out", (0, 0.99), (-0.01, 1)),
        (PrepareSettings, "seed", (0, 2**31 - 1), (-1, 2**31)),
        (ObjectiveSettings, "max_length", (8, 512), (7, 513)),
        (ObjectiveSettings, "mask_rate", (0, 1), (-0.01, 1.01)),
        (PretrainSettings, "batch_size", (1,), (0,)),
        (PretrainSettings, "learning_rate", (1e-9,), (0, -1)),
        (PretrainSettings, "dropout", (0, 0.99), (-0.01, 1)),
        (FineTuneSettings, "epochs", (0.1, 10_000), (0, 10_001)),
        (FineTuneSettings, "layer_decay", (0.01, 1), (0, 1.01)),
        (FineTuneSettings, "warmup", (0, 0.99), (-0.01, 1)),
        (ClassifySettings, "max_length", (3,), (2,)),
        (AnswerSettings, "n_best", (2,), (1,)),
    ],
)
def test_limits_of_settings(
    kind: type[Settings], name: str, taken: tuple[float, ...], refused: tuple[float, ...]
):
    for value in taken:
        assert getattr(kind(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ValidationError, match=rf"{name}\n  Input should be (great|less)"):
            kind(**{name: value})
