"""Tiny models of each encoder family, written by transformers, and all their heads.

Every weight is random and not zero, biases and norms included. Sizes are odd, so that no two of
them are exchanged unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from tests.tokenizer_folders import make_tokenizer
from torch import Tensor, nn
from transformers import PreTrainedModel

LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
NAMED_LABELS = {"id2label": LABELS, "label2id": {label: id_ for id_, label in LABELS.items()}}
HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 70,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
ROBERTA_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
# Positions are counted from behind the padding token's id.
ROBERTA_SIZES = {**SIZES, **ROBERTA_IDS, "type_vocab_size": 1, "layer_norm_eps": 1e-5}


@dataclass(frozen=True)
class Family:
    """What transformers calls a family, and the config of its tiny models."""

    prefix: str  # of the names of transformers' classes
    tokenizer: str  # the kind, of `tokenizer_folders`
    sizes: Mapping[str, Any]
    heads: tuple[str, ...] = HEADS
    num_segments: int = 0  # segments that a sequence may have; 0 if the model takes none
    token_keys: Mapping[str, str] = field(default_factory=dict)  # config key: a special token


FAMILIES = {
    "bert": Family("Bert", "bert", SIZES, (*HEADS, "ForPreTraining"), num_segments=2),
    "distilbert": Family(
        "DistilBert",
        "bert",
        {
            "vocab_size": VOCABULARY,
            "dim": 24,
            "n_layers": 3,
            "n_heads": 3,
            "hidden_dim": 40,
            "max_position_embeddings": 70,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "qa_dropout": 0.0,
            "seq_classif_dropout": 0.0,
        },
    ),
    "electra": Family(
        "Electra",
        "bert",
        {**SIZES, "embedding_size": 10},
        (*HEADS, "ForPreTraining"),
        num_segments=2,
    ),
    # As in electra-base: embeddings as wide as hidden states.
    "electra-wide": Family(
        "Electra",
        "bert",
        {**SIZES, "embedding_size": 24},
        (*HEADS, "ForPreTraining"),
        num_segments=2,
    ),
    "roberta": Family("Roberta", "roberta", ROBERTA_SIZES),
    "xlm-roberta": Family("XLMRoberta", "xlm-roberta", ROBERTA_SIZES),
    "camembert": Family(
        "Camembert", "camembert", {**ROBERTA_SIZES, "bos_token_id": 5, "eos_token_id": 6}
    ),
    "mpnet": Family(
        "MPNet",
        "mpnet",
        {**SIZES, **ROBERTA_IDS, "layer_norm_eps": 1e-5, "max_position_embeddings": 202},
    ),
    # Layers 0 and 3 attend to everything, the others to four tokens on either side.
    "modernbert": Family(
        "ModernBert",
        "modernbert",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 24,
            "num_hidden_layers": 5,
            "num_attention_heads": 3,
            "intermediate_size": 40,
            "max_position_embeddings": 70,
            "global_attn_every_n_layers": 3,
            "local_attention": 8,
            "pad_token_id": 3,
            "cls_token_id": 1,
            "bos_token_id": 1,
            "sep_token_id": 2,
            "eos_token_id": 2,
        },
        token_keys={"cls_token_id": "cls", "sep_token_id": "sep"},
    ),
}
# Every family with each of its heads.
FAMILY_HEADS = [(name, head) for name, family in FAMILIES.items() for head in family.heads]


def class_name(family: str, head: str) -> str:
    """Name transformers' class of a family's head."""
    return FAMILIES[family].prefix + head


def make_model(
    family: str, head: str = "Model", *, dtype: torch.dtype = torch.float32, **changes: Any
) -> PreTrainedModel:
    """Build a tiny model of transformers', of random weights and without dropout.

    Args:
        family: A name of `FAMILIES`.
        head: A head of the family, with or without the prefix of transformers' class.
        dtype: Of the weights.
        changes: Of the config.
    """
    prefix = FAMILIES[family].prefix
    name = prefix + head.removeprefix(prefix)
    labels = {"num_labels": 2} if name.endswith("ForQuestionAnswering") else NAMED_LABELS
    if "num_labels" in changes:
        labels = {}
    settings = {**FAMILIES[family].sizes, **labels, **changes}
    config = getattr(transformers, f"{prefix}Config")(**settings)
    model: PreTrainedModel = getattr(transformers, name)(config).eval().to(dtype)
    randomize(model)
    return model


def randomize(model: nn.Module, standard_deviation: float = 0.2) -> None:
    """Draw every weight, those of norms around 1, so that signals neither fade nor explode."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            noise *= standard_deviation
            parameter.copy_(noise + 1 if name.lower().endswith("norm.weight") else noise)


def make_folder(
    folder: Path,
    family: str = "bert",
    head: str = "Model",
    *,
    with_tokenizer: bool = True,
    kind: str | None = None,
    **changes: Any,
) -> Path:
    """Write a tiny model's folder as transformers does, and return it.

    With a tokenizer, the model has its vocabulary and special tokens. A tokenizer of another
    family's kind says only how many entries there are: the multilingual MiniLM is a BERT with
    XLM-R's, and its config has the special tokens of BERT. The other arguments are those of
    `make_model`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokens = write_tokenizer(folder, family, kind) if with_tokenizer else {}
    make_model(family, head, **{**tokens, **changes}).save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path, family: str, kind: str | None = None) -> dict[str, int]:
    """Write a family's tokenizer or one of a kind, and return what its config says of it."""
    make_tokenizer(folder, kind or FAMILIES[family].tokenizer)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if kind is not None:
        return {"vocab_size": len(tokenizer)}
    ids = {
        "pad": tokenizer.pad_token_id,
        "cls": tokenizer.cls_token_id,
        "sep": tokenizer.sep_token_id,
    }
    keys = {"pad_token_id": "pad", **FAMILIES[family].token_keys}
    if "bos_token_id" in FAMILIES[family].sizes:
        keys |= {"bos_token_id": "cls", "eos_token_id": "sep"}
    return {"vocab_size": len(tokenizer), **{key: ids[token] for key, token in keys.items()}}


def random_batch(family: str, lengths: list[int], seed: int = 0) -> dict[str, Tensor]:
    """What a family's models take for random sequences: arrays `[sequences, longest length]`.

    No token but padding has the padding token's id.
    """
    sizes = FAMILIES[family].sizes
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(7, VOCABULARY, shape, generator=generator)
    batch = {
        "input_ids": torch.where(mask.bool(), ids, sizes.get("pad_token_id", 0)),
        "attention_mask": mask,
    }
    if FAMILIES[family].num_segments:
        cut = torch.tensor(lengths)[:, None] // 2
        batch["token_type_ids"] = (torch.arange(max(lengths)) > cut).long() * mask
    return batch
