"""Settings of `bertkit pretrain`."""

from typing import Annotated, Any, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator
from pydantic.config import JsonDict

from bertkit.base.settings import NO_FLAG, Count
from bertkit.tasks.objectives.settings import (
    ADDED,
    OBJECTIVE_HELP,
    ObjectiveName,
    ObjectiveSettings,
    Share,
)
from bertkit.training.settings import BudgetSettings, LoopSettings, Positive

ArchitectureName = Literal["bert", "modernbert", "roberta"]
Recipe = Literal["modern", "paper"]
# Settings of a new model that are chosen together. "paper" is Devlin et al. 2018; the measurements
# behind "modern" are in docs/results.md.
RECIPES: dict[str, dict[str, str | float]] = {
    "modern": {
        "objective": "mlm",
        "initialization": "neighbors",
        "dropout": 0.0,
        "mask_rate": 0.4,
        "optimizer": "muon",
        "learning_rate": 2e-3,
    },
    "paper": {
        "objective": "bert",
        "initialization": "random",
        "dropout": 0.1,
        "mask_rate": 0.15,
        "optimizer": "adamw",
        "learning_rate": 1e-4,
    },
}
# What was tuned for one model, by recipe; see docs/results.md.
TUNED: dict[tuple[str, str], dict[str, str | float]] = {
    ("modern", "tiny"): {"learning_rate": 3e-3, "batch_size": 16},
    ("modern", "mini"): {"batch_size": 8},
    ("paper", "tiny"): {"learning_rate": 1e-3, "batch_size": 16},
    ("paper", "mini"): {"learning_rate": 1e-3},
}

DEFAULT_SIZE = "mini"
DEFAULT_RECIPE: Recipe = "modern"
# For the reference: there is no single default.
BY_SIZE: JsonDict = {"depends_on": "size"}
BY_RECIPE: JsonDict = {"depends_on": "recipe"}


def _describe_tuned(name: str) -> str:
    """Describe the values that were tuned for a model."""
    return ", ".join(
        f"{tuned[name]:g} for {model} ({recipe})"
        for (recipe, model), tuned in TUNED.items()
        if name in tuned
    )


def _shows_recipes(name: str) -> Parameter:
    """Show the default of each recipe; those of the class are what `--model` continues with."""
    defaults = {recipe: chosen[name] for recipe, chosen in RECIPES.items()}
    return Parameter(show_default=", ".join(f"{each} ({name})" for name, each in defaults.items()))


class PretrainSettings(ObjectiveSettings, LoopSettings, BudgetSettings):
    """Settings of `bertkit pretrain`."""

    size: str | None = Field(
        default=DEFAULT_SIZE,
        description="Size of a new model: tiny, mini, small, medium, base, large, layers x width"
        " such as 3x128, or a config.json with other sizes.",
    )
    architecture: ArchitectureName = Field(
        default="bert",
        description="Family of a new model. The others than BERT are trained on masked words alone,"
        " from random weights. A config.json says its own.",
    )
    model: str | None = Field(
        default=None,
        description="Model to start from instead of random weights: a model folder, a run of"
        " `bertkit pretrain`, or the id of a model of the Hub. Heads that it lacks are new.",
    )
    revision: str | None = Field(
        default=None, description="Branch, tag or commit of a model of the Hub."
    )
    recipe: Recipe = Field(
        default=DEFAULT_RECIPE,
        description="Defaults for a new model. modern: heads that attend to neighboring tokens from"
        " the start, Muon, 40 % masked, no dropout, masked words alone; it learns many times as"
        " fast. paper: as in Devlin et al. 2018, and what --model continues with.",
    )
    objective: Annotated[ObjectiveName, _shows_recipes("objective")] = Field(
        default="bert",
        description=OBJECTIVE_HELP,
        json_schema_extra=BY_RECIPE,
    )
    initialization: Annotated[Literal["neighbors", "random"], NO_FLAG] = Field(
        default="random",
        description="Initial weights of a new model. random: a truncated normal distribution."
        " neighbors: the first layer's heads attend to the tokens beside each token, positions"
        " are sines and cosines, and the other weights are random; by default as the recipe says.",
        json_schema_extra=BY_RECIPE,
    )
    batch_size: Annotated[
        Count, Parameter(show_default=f"{_describe_tuned('batch_size')}; else 32")
    ] = Field(
        default=32, description="Number of examples per optimizer step.", json_schema_extra=BY_SIZE
    )
    learning_rate: Annotated[
        Positive,
        Parameter(
            show_default=f"{_describe_tuned('learning_rate')}; else 0.002 (modern), 0.0001 (paper)"
        ),
    ] = Field(default=1e-4, description="Peak learning rate.", json_schema_extra=BY_RECIPE)
    optimizer: Annotated[Literal["adamw", "muon"], _shows_recipes("optimizer")] = Field(
        default="adamw",
        description="muon: Muon for the matrices of the Transformer blocks, AdamW for embeddings,"
        " heads, biases and layer norms.",
        json_schema_extra=BY_RECIPE,
    )
    muon_learning_rate: Annotated[Positive, NO_FLAG] = Field(
        default=0.02, description="Peak learning rate of the matrices that Muon updates."
    )
    long_length: Annotated[int, Field(ge=8, le=512)] | None = Field(
        default=None,
        description="Tokens of an example in the last part of the run, as in the paper: 512 there,"
        " after 128 (--max-length). A step has as many sequences, in more micro-batches.",
    )
    long_share: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.1, description="Share of the steps whose examples have --long-length tokens."
    )
    mask_rate: Annotated[Share, _shows_recipes("mask_rate")] = Field(
        default=0.15,
        description="Share of a text's tokens to mask, and to predict.",
        json_schema_extra=BY_RECIPE,
    )
    dropout: Annotated[float, Field(ge=0.0, lt=1.0), _shows_recipes("dropout")] = Field(
        default=0.1,
        description="Dropout rate.",
        json_schema_extra=BY_RECIPE,
    )
    checkpoint_activations: bool = Field(
        default=False,
        description="Keep only the input of each block for the backward pass, and compute the block"
        " again there: a step takes up to a third longer and needs less memory. Losses and"
        " gradients are the same.",
    )
    eval_examples: Count = Field(
        default=256,
        description="Number of held-out examples that an evaluation predicts, or writes texts for.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        is_new = values.get("model") is None
        size = values.get("size", DEFAULT_SIZE if is_new else None)
        recipe = values.get("recipe", DEFAULT_RECIPE if is_new else "paper")
        chosen = {**RECIPES.get(str(recipe), {}), **TUNED.get((str(recipe), str(size)), {})}
        if values.get("objective") in {name for name, added in ADDED.items() if not added.masks}:
            chosen.pop("mask_rate", None)
        architecture = values.get("architecture", "bert")
        if architecture != "bert":
            chosen["objective"] = "mlm"
        if architecture == "modernbert":
            chosen["initialization"] = "random"  # it has no learned positions
        if not is_new:
            chosen.pop("objective", None)  # the model has one
        return {**chosen, **values, "size": size, "recipe": recipe}

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if (self.size is None) == (self.model is None):
            raise ValueError("give either `size`, for a new model, or `model`, to start from it")
        if self.model is not None and (self.recipe != "paper" or self.initialization != "random"):
            raise ValueError("`recipe` and `initialization` are for new models; leave them out")
        if self.model is None and self.revision is not None:
            raise ValueError("`revision` is that of a model; give `model` too")
        if self.architecture != "bert" and self.model is not None:
            raise ValueError("`architecture` is for new models; leave it out")
        return self

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.long_length is not None and self.long_length <= self.max_length:
            raise ValueError(
                f"`long_length` ({self.long_length}) must be more than `max_length`"
                f" ({self.max_length})"
            )
        return self

    @property
    def continues_objective(self) -> bool:
        """Whether the objective is that of the model to start from."""
        return self.model is not None and "objective" not in self.model_fields_set

    @property
    def longest(self) -> int:
        """The maximum number of tokens of an example in the whole run."""
        return self.long_length or self.max_length

    def as_long(self) -> Self:
        """Return the settings of the steps with long examples, which need no more memory."""
        factor = -(-self.longest // self.max_length)
        accumulate = min(self.batch_size, self.accumulate * factor)
        return self.model_copy(update={"max_length": self.longest, "accumulate": accumulate})

    @property
    def dropout_rates(self) -> dict[str, float]:
        """`dropout` under the keys of a model's config."""
        return {
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
        }
