"""Vectors of texts, of which those that belong together are close; read `task.py` first.

Source: Reimers and Gurevych 2019, "Sentence-BERT"; van den Oord et al. 2018, "Representation
Learning with Contrastive Predictive Coding", section 2.3, for the loss.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from bertkit.base.settings import NO_FLAG, Count, redefine
from bertkit.tasks.settings import MiningSettings, PairedSettings, TaskSettings

DEFAULT_LENGTH = 256
TEMPERATURE = 0.05  # 1 / 20, the scale of sentence-transformers
# Settings of losses that a teacher takes the place of.
WITHOUT_TEACHER = ("loss_temperature", "symmetric", "false_negative_margin", "matryoshka")


class EmbeddingSettings(MiningSettings, PairedSettings):
    """Settings of training an encoder of texts."""

    max_length: Annotated[int, Field(ge=3)] = redefine(
        TaskSettings,
        "max_length",
        DEFAULT_LENGTH,
        shown=f"{DEFAULT_LENGTH}, or what the model takes",
    )
    has_scores: Annotated[bool | None, NO_FLAG] = Field(
        default=None,
        description="Whether examples are pairs with a score; by default, as the training data.",
    )
    loss_temperature: Annotated[float, Field(gt=0.0), NO_FLAG] = Field(
        default=TEMPERATURE, description="What cosines are divided by in the loss."
    )
    symmetric: Annotated[bool, NO_FLAG] = Field(
        default=False,
        description="Whether each passage is also compared with all queries of the batch.",
    )
    false_negative_margin: Annotated[float | None, NO_FLAG] = Field(
        default=None,
        description="Passages of other rows aren't negatives if their cosine is higher than that of"
        " the query's own passage by more than this; by default all are, except equal texts.",
    )
    matryoshka: Annotated[tuple[Count, ...], NO_FLAG] = Field(
        default=(),
        description="Lengths to which vectors may be cut later: the loss is the mean over these and"
        " the whole length.",
    )
    teacher: Annotated[str | None, NO_FLAG] = Field(
        default=None,
        description="Sentence encoder whose vectors are learned, by the squared error, instead of"
        " which passage belongs to which query.",
    )
    num_layers: Annotated[Count | None, NO_FLAG] = Field(
        default=None,
        description="Layers of the encoder that are kept, evenly spaced; by default all.",
    )
    prompts: Annotated[Mapping[str, str], NO_FLAG] = Field(
        default_factory=dict,
        description="Text before each query and before each passage, under the names query and"
        " document; by default those of the model. They are saved with it.",
    )

    @model_validator(mode="after")
    def _a_teacher_stands_alone(self) -> Self:
        fields = type(self).model_fields
        given = [name for name in WITHOUT_TEACHER if getattr(self, name) != fields[name].default]
        if self.teacher is not None and (given or self.negatives == "mine"):
            names = ", ".join(f"`{name}`" for name in given or ["negatives"])
            raise ValueError(f"vectors are learned from the `teacher` alone: leave out {names}")
        return self

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the main metric of rankings, or of pairs with a score."""
        del labels
        return "spearman" if self.has_scores else "ndcg@10"
