"""Opens the model that fine-tuning starts from, and loads its weights below a head for the task."""

from pathlib import Path

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import announce
from bertkit.checkpoints.peft import AdapterOrigin, identify_base
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.feature_head import FeatureHead
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.settings import POOLINGS, PoolingName, TextSettings
from bertkit.tasks.task import AnyTask

SENTENCE_ENCODER = "is_sentence_encoder"  # key of a checkpoint's facts
TASK_HEADS = frozenset({"classifier", "qa_outputs"})


def open_pretrained(
    name: str | Path | OpenModel, task: AnyTask, settings: FineTuneSettings
) -> OpenModel:
    """Open a model with the task's labels and the run's dropout; check that it can be trained."""
    opened = OpenModel.open(name)
    if settings.features is not None and not task.has_solvable_head:
        raise SettingsError(
            f"`features` solves a last linear layer, and a model for {task.name} has none; leave it"
            " out"
        )
    pooling: PoolingName = "cls"
    if isinstance(task.settings, TextSettings | RerankSettings):
        pooling = task.settings.pooling or find_pooling(opened)
    changes = task.config_changes | settings.dropout_rates
    layers = settings.features or "last"
    if layers != "last" or pooling != "cls":  # a head that only bertkit has
        head = FeatureHead(layers=layers, scores=task.scored, pooling=pooling)
        changes[FEATURE_HEAD] = head.model_dump(exclude_defaults=True) | {"lstm_hidden": None}
    opened = opened.change(**changes)
    length, limit = task.settings.max_length, opened.config.max_length
    if length > limit:
        raise InputError(
            f"max_length ({length}) is more than the {limit} tokens that the model takes; set"
            f" max_length to {limit} or less"
        )
    _ = opened.tokenizer  # read and checked before the data are
    return opened


def identify(parent: OpenModel) -> dict[str, str | bool | dict[str, str] | None]:
    """Return the identity of a model, for the run's record."""
    return {
        **parent.identify(),
        **({SENTENCE_ENCODER: True} if parent.is_sentence_encoder else {}),
    }


def name_origin(parent: OpenModel) -> AdapterOrigin:
    """Return how an adapter names its base model: id and commit on the Hub, or the folder.

    Raises:
        InputError: the model is an adapter itself.
    """
    if parent.checkpoint.base is not None:
        raise InputError(
            f"{parent.path} is an adapter, to which --lora would add another; merge it into its"
            f" base model first, with `bertkit convert {parent.path} merged/`"
        )
    sha256 = identify_base(parent.checkpoint)
    if parent.is_from_hub:
        return AdapterOrigin(parent.name, parent.path.name, sha256)
    is_prefix = parent.checkpoint.format == "tensorflow"
    folder = parent.path if is_prefix else parent.folder
    return AdapterOrigin(str(folder.resolve()), None, sha256)


def find_pooling(opened: OpenModel) -> PoolingName:
    """Return how a model pools the tokens of a text, by its modules or its config."""
    if opened.sentences is not None:
        module = opened.sentences.modules[0]
        modes = module.modes if isinstance(module, Pooling) else ()
        if found := [name for name in POOLINGS if modes == (name,)]:
            return found[0]
        announce(
            f"{opened.title} pools tokens in a way that no classifier does; it reads [CLS] instead"
        )
    head = opened.checkpoint.config.get(FEATURE_HEAD)
    pooling = head.get("pooling") if isinstance(head, dict) else None
    return next((name for name in POOLINGS if name == pooling), "cls")


def load_pretrained(parent: OpenModel, kind: type[FineTunedBert]) -> FineTunedBert:
    """Build the model with the parent's encoder; a head of another task is reinitialized."""
    has_head = parent.architecture == kind.__name__
    if has_head:  # other tools omit default names, such as those of question answering
        before = BertConfig.from_dict(parent.checkpoint.config, parent.folder)
        has_head = before.label_names == parent.config.label_names
    is_replaced = not has_head and not TASK_HEADS.isdisjoint(parent.heads)
    source = parent.without_parts(TASK_HEADS) if is_replaced else parent
    model = kind.from_pretrained(source, new_heads=True)
    if is_replaced:
        announce(f"the head of {parent.name} is for other labels, and is replaced")
    if drawn := [head for head in model.new_heads if not (is_replaced and head in TASK_HEADS)]:
        announce(f"new weights for {', '.join(drawn)}, which {parent.name} doesn't have")
    return model
