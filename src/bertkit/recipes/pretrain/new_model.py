"""The config of a new model, from a named size or a file, and its first weights."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import InputError
from bertkit.base.json_files import read_json
from bertkit.checkpoints.families import FAMILIES, find_family
from bertkit.models.bert.architectures import has_class
from bertkit.models.bert.config import BertConfig, describe_direction, find_sizes
from bertkit.models.bert.heads import WordScoringBert
from bertkit.models.bert.neighbor_heads import attend_to_neighbors
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer

# With neighbor heads, random weights have a standard deviation of this / √hidden_size.
SCALED_DEVIATION = 0.7


def build_config(settings: PretrainSettings, tokenizer: Tokenizer) -> BertConfig:
    """Build a new model's config from a preset or a file, with the tokenizer's vocabulary size."""
    assert settings.size is not None, "the settings have a size or a model"
    changes = {"vocab_size": tokenizer.vocab_size, **settings.dropout_rates}
    path = Path(settings.size)
    if settings.size.endswith(".json"):
        return check_config(
            _read_config(path, changes, settings, tokenizer), settings, tokenizer, path
        )
    if settings.architecture != "bert":
        changes |= name_ids(tokenizer)
    if settings.architecture == "roberta":
        changes["type_vocab_size"] = count_segments(settings, tokenizer)
    if settings.initialization == "neighbors":
        hidden_size = find_sizes(settings.size)["hidden_size"]
        changes["initializer_range"] = SCALED_DEVIATION / math.sqrt(hidden_size)
    direction = OBJECTIVES[settings.objective].model_kind.direction
    config = FAMILIES[settings.architecture].config.preset(settings.size, **changes, **direction)
    return check_config(config, settings, tokenizer, path)


def _read_config(
    path: Path, changes: Mapping[str, Any], settings: PretrainSettings, tokenizer: Tokenizer
) -> BertConfig:
    """Read a config's file, which says its architecture, and change some of its values."""
    content = read_json(path, limit_bytes=1 << 20)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a config's object")
    direction = OBJECTIVES[settings.objective].model_kind.direction
    if (way := describe_direction(content)) and not describe_direction(direction):
        raise InputError(
            f"{path} says {', '.join(direction)}, {way}, and the objective {settings.objective} is"
            " bidirectional; remove it there, or choose another objective"
        )
    kind = content.get("model_type", "bert")
    if settings.architecture not in ("bert", kind):
        raise InputError(
            f"{path} is a {kind!s:.40}; leave out architecture, {settings.architecture}"
        )
    ids = {} if kind == "bert" else name_ids(tokenizer)
    changes = find_family(content).config.rename_keys({**changes, **ids, **direction})
    return BertConfig.from_dict({**content, **changes}, path)


def name_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the ids of special tokens under the keys of a config, which a BERT's doesn't have."""
    first, last = tokenizer.cls_id, tokenizer.sep_id
    ids = {"pad_token_id": tokenizer.pad_id, "cls_token_id": first, "sep_token_id": last}
    return {**ids, "bos_token_id": first, "eos_token_id": last}


def check_config(
    config: BertConfig, settings: PretrainSettings, tokenizer: Tokenizer, source: Path
) -> BertConfig:
    """Return the config; raise if it doesn't fit the objective or the requested length."""
    _check_family(config, settings, tokenizer, source)
    num_segments = count_segments(settings, tokenizer)
    if 0 < config.type_vocab_size < num_segments:
        raise InputError(
            f"{source}: type_vocab_size must be at least {num_segments}, for sentences A and B,"
            f" and is {config.type_vocab_size}; change it there"
        )
    if config.max_length < settings.longest:
        name = "max_length" if settings.long_length is None else "long_length"
        raise InputError(
            f"{name} ({settings.longest}) is more than the {config.max_length} tokens that the"
            " model takes; make it smaller"
        )
    return config


def _check_family(
    config: BertConfig, settings: PretrainSettings, tokenizer: Tokenizer, source: Path
) -> None:
    """Raise if models of a config's family can't be trained as the settings say."""
    title, parts = FAMILIES[config.model_type].title, config.parts
    if not has_class(config.names, OBJECTIVES[settings.objective].model_kind.__name__):
        raise InputError(
            f"{source} is a {title}, which doesn't predict the next sentence; train it on masked"
            " words alone, with the objective mlm"
        )
    has_embeddings = parts.has_positions and parts.embedding_size is None
    if settings.initialization == "neighbors" and not has_embeddings:
        advice = ", or --architecture modernbert" * (config.model_type == "modernbert")
        raise InputError(
            f"{source} is of {title}, whose first layer can't begin with heads that attend to"
            f" neighboring tokens; give --recipe paper --objective mlm{advice}"
        )
    if parts.position_offset and tokenizer.pad_id != parts.position_offset - 1:
        raise InputError(
            f"{source}: {title} has padding as entry {parts.position_offset - 1}, and the shards'"
            f" vocabulary as entry {tokenizer.pad_id}; choose another architecture, such as roberta"
        )


def count_segments(settings: PretrainSettings, tokenizer: Tokenizer) -> int:
    """Count the token types of the objective's examples."""
    frame = tokenizer.template[OBJECTIVES[settings.objective].num_texts - 1]
    return 1 + max(frame.types)


def build_new_model(config: BertConfig, settings: PretrainSettings) -> WordScoringBert:
    """Build a model with initial weights from the seed, on the CPU."""
    torch.manual_seed(settings.seed)
    model = OBJECTIVES[settings.objective].model_kind(config)
    if settings.initialization == "neighbors":
        attend_to_neighbors(model.encoder)
    return model
