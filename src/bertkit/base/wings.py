"""What wings add to the core: objects by address, imported when they are needed.

A wing is a room that the core runs without (`docs/architecture.md`, “A core and four wings”). The
core names wings here, in `COMMANDS` (`cli/app.py`) and in `_NAMES` (`bertkit/__init__.py`), as
strings, and nowhere else. With a wing's folder deleted, its entries aren't there either.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import PACKAGES, describe_missing

Table = Mapping[str, str]  # addresses, `module:name`, by the name under which the core looks

# By wing: the server's routes of it, as a tuple of `Endpoint`.
SERVER_ROUTES: Table = {
    "decoders": "bertkit.decoders.routes:ENDPOINTS",
    "interpret": "bertkit.interpret.routes:ENDPOINTS",
}
# By wing: how the server answers the Hub's requests of its tasks, as a mapping of functions.
SERVER_HUB_FORMS: Table = {"decoders": "bertkit.decoders.routes:HUB_FORMS"}
# By wing: what the page of the server has of it, as a function without arguments.
SERVER_PAGE_PARTS: Table = {"interpret": "bertkit.interpret.routes:read_page_parts"}
# Models other than BERT: the class of their config, by `model_type` of config.json.
CONFIGS: Table = {
    "encoder-decoder": "bertkit.decoders.config:EncoderDecoderConfig",
    "bertkit-encoder-decoder": "bertkit.decoders.config:EncoderDecoderConfig",
}
# Likewise, what `bertkit inspect` says of them: a subclass of `Anatomy`.
ANATOMIES: Table = dict.fromkeys(CONFIGS, "bertkit.decoders.anatomy:EncoderDecoder")
# Likewise, how their attention is observed: a subclass of `AnyInspected`; and views of it, by name.
INSPECTED_MODELS: Table = dict.fromkeys(
    CONFIGS, "bertkit.decoders.inspected_model:InspectedEncoderDecoder"
)
ATTENTION_VIEWS: Table = {
    "alignment": "bertkit.decoders.attention_views:ALIGNMENT",
    "next": "bertkit.decoders.attention_views:NEXT",
}
# Files with which wings describe a model; they are fetched and listed with it.
DESCRIPTIONS = ("bertkit_seq2seq.json",)


class TextTask(NamedTuple):
    """What `finetune` trains besides the tasks of `tasks/table.py`: a model that writes texts."""

    settings: str  # the address of its settings
    function: str  # that of what `bertkit.finetune` calls
    model: str  # what is trained, in the words of a report


TEXT_TASKS = {
    "translate": TextTask(
        settings="bertkit.decoders.seq2seq.settings:TranslateSettings",
        function="bertkit.decoders.functions:finetune_pairs",
        model="An encoder-decoder trained to translate",
    ),
    "summarize": TextTask(
        settings="bertkit.decoders.seq2seq.settings:SummarizeSettings",
        function="bertkit.decoders.functions:finetune_pairs",
        model="An encoder-decoder trained to summarize",
    ),
}


class AddedObjective(NamedTuple):
    """A pre-training objective of a wing."""

    objective: str  # the address of its `Objective`
    report: str  # that of its `ObjectiveReport`
    help: str
    masks: bool = False  # whether settings of masking are for it


OBJECTIVES = {
    "causal": AddedObjective(
        objective="bertkit.decoders.causal_objective:CausalObjective",
        report="bertkit.decoders.causal_report:REPORT",
        help="the next word, left to right",
    )
}
# What finds the pipelines of a model that a wing knows; without any, the core's are taken.
PIPELINES: Table = {"decoders": "bertkit.decoders.pipelines:load_pipelines"}
# The `TextScorer` of models that don't predict masked words, by the name of their class.
TEXT_SCORERS: Table = {"BertLMHeadModel": "bertkit.decoders.text_scorer:LeftToRightScorer"}


def has_wing(address: str) -> bool:
    """Return whether the room of an address is installed."""
    room = ".".join(address.partition(":")[0].split(".")[:2])
    return room in sys.modules or find_spec(room) is not None


def list_installed(table: Table) -> dict[str, str]:
    """Return the entries whose room is installed."""
    return {name: address for name, address in table.items() if has_wing(address)}


def load_object(address: str) -> Any:
    """Import the object at an address, `module:name`.

    Raises:
        MissingExtraError: the wing isn't installed, or a package of an extra that it needs.
    """
    if not has_wing(address):
        room = address.split(".")[1]
        raise MissingExtraError(
            f"this needs bertkit.{room}, which isn't installed; install bertkit anew"
        )
    module, _, name = address.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise MissingExtraError(describe_missing(error.name, name)) from None
