"""Tensor names: ours, and those in Hugging Face's files, of BERT and of families of encoders.

A table maps each of our tensors to the foreign tensors that it is made of; several are
concatenated along their first dimension. The mapping is reversible; `transfer.py` applies it in
both directions.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bertkit.base.errors import CheckpointError

EMBEDDINGS = "encoder.embeddings"
WORD_EMBEDDINGS = f"{EMBEDDINGS}.word.weight"
LAYER = "encoder.layers.{layer}"
THEIR_LAYER = "bert.encoder.layer.{layer}"


def with_parameters(layers: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the names of the weight and the bias of each layer."""
    return {
        f"{ours}.{kind}": tuple(f"{their}.{kind}" for their in theirs)
        for ours, theirs in layers.items()
        for kind in ("weight", "bias")
    }


# A classifier of sequences whose own first layer stands in the pooler's place, in several families.
TWO_LAYERS = with_parameters(
    {"pooler.dense": ["classifier.dense"], "classifier": ["classifier.out_proj"]}
)
# Our name: Hugging Face's names. `{layer}` counts from 0.
BERT_NAMES: dict[str, tuple[str, ...]] = {
    WORD_EMBEDDINGS: ("bert.embeddings.word_embeddings.weight",),
    f"{EMBEDDINGS}.position.weight": ("bert.embeddings.position_embeddings.weight",),
    f"{EMBEDDINGS}.token_type.weight": ("bert.embeddings.token_type_embeddings.weight",),
    **with_parameters(
        {
            f"{EMBEDDINGS}.norm": ["bert.embeddings.LayerNorm"],
            f"{LAYER}.attention.query_key_value": [
                f"{THEIR_LAYER}.attention.self.query",
                f"{THEIR_LAYER}.attention.self.key",
                f"{THEIR_LAYER}.attention.self.value",
            ],
            f"{LAYER}.attention.output": [f"{THEIR_LAYER}.attention.output.dense"],
            f"{LAYER}.attention_norm": [f"{THEIR_LAYER}.attention.output.LayerNorm"],
            f"{LAYER}.feed_forward.up": [f"{THEIR_LAYER}.intermediate.dense"],
            f"{LAYER}.feed_forward.down": [f"{THEIR_LAYER}.output.dense"],
            f"{LAYER}.feed_forward_norm": [f"{THEIR_LAYER}.output.LayerNorm"],
            "pooler.dense": ["bert.pooler.dense"],
            "masked_lm.dense": ["cls.predictions.transform.dense"],
            "masked_lm.norm": ["cls.predictions.transform.LayerNorm"],
            "next_sentence": ["cls.seq_relationship"],
            "classifier": ["classifier"],
            "qa_outputs": ["qa_outputs"],
        }
    ),
    "masked_lm.bias": ("cls.predictions.bias",),
}

# Tied tensors that some files store a second time under these names.
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Not a weight: the buffer 0, 1, 2 … of older files, which isn't checked.
DROPPED = ("bert.embeddings.position_ids",)
# Prefix of a foreign name: the part of the model, for counting parameters.
PARTS = {
    "bert.embeddings": "encoder.embeddings",
    "bert.encoder": "encoder.layers",
    "bert.pooler": "pooler",
    "cls.predictions": "masked_lm",
    "cls.seq_relationship": "next_sentence",
    "classifier": "classifier",
    "qa_outputs": "qa_outputs",
}
# Parts that are ignored by models that don't use them: the heads of models by our names, and what
# only other families have: a classifier's first layer, that of any head, and what finds words that
# were replaced.
HEADS = (
    *("pooler", "masked_lm", "next_sentence", "classifier", "qa_outputs"),
    *("pre_classifier", "prediction_head", "discriminator"),
)

# Names of layer norms in older files, such as `bert-base-uncased`.
OLD_NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
BACKBONE = ("embeddings", "encoder", "pooler")  # what a bare encoder stores without `bert.`
# Where torch's DataParallel and torch.compile keep the model that they wrap.
WRAPPERS = ("module.", "_orig_mod.")

MAX_SHOWN_CHARS = 120

Named = TypeVar("Named")


@dataclass(frozen=True)
class NameTable:
    """The tensor name rules of an architecture."""

    their_names: Callable[[str], tuple[str, ...]]  # of one of ours: those that it is made of
    find_part: Callable[[str], str]  # of a foreign name: the part of the model that it belongs to
    copies: Mapping[str, str]  # some files store them: copy → original tensor
    dropped: Collection[str]  # names that aren't weights


@dataclass(frozen=True)
class EncoderNames:
    """The tensor names of a family of encoders.

    Attributes:
        names: of each of our names those that it is made of; `{layer}` counts from 0.
        parts: the part of the model by the first three words of a foreign name, or fewer.
        prefix: what stands before the names of the encoder, except in files of a bare encoder.
        backbone: the first words of the names in files of a bare encoder.
        copies: tied tensors that some files store a second time: copy → original.
        dropped: names that aren't weights.
        by_class: names that differ in a class of models, by BERT's name of the class.
    """

    names: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, str]
    prefix: str
    backbone: tuple[str, ...] = BACKBONE
    copies: Mapping[str, str] = field(default_factory=dict)
    dropped: Collection[str] = ()
    by_class: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def table(self, architecture: str | None = None) -> NameTable:
        """Return the names of a class of models."""
        names = self.find_names(architecture)

        def their_names(name: str) -> tuple[str, ...]:
            if not name.startswith("encoder.layers."):
                return names[name]
            layer, _, rest = name.removeprefix("encoder.layers.").partition(".")
            return tuple(their.format(layer=layer) for their in names[f"{LAYER}.{rest}"])

        return NameTable(their_names, self.find_part, self.copies, self.dropped)

    def find_names(self, architecture: str | None = None) -> Mapping[str, tuple[str, ...]]:
        """Return the names of a class of models, as in `names`."""
        return {**self.names, **self.by_class.get(architecture or "", {})}

    def find_part(self, name: str) -> str:
        """Return the part of the model that a tensor belongs to, or its name's first word."""
        words = name.split(".")
        beginnings = (".".join(words[:number]) for number in (3, 2, 1))
        return next((self.parts[each] for each in beginnings if each in self.parts), words[0])

    def list_heads(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the heads (pooler included) that foreign names contain, in the table's order."""
        parts = {self.find_part(name) for name in names}
        return tuple(head for head in HEADS if head in parts)

    def complete(self, tensors: Mapping[str, Named]) -> dict[str, Named]:
        """Rename tensors to the table's names: with the encoder's prefix and current norm names."""
        renamed: dict[str, Named] = {}
        for name, tensor in remove_wrappers(tensors).items():
            for old, new in OLD_NORMS.items():
                name = name.replace(old, new)
            if name.partition(".")[0] in self.backbone:
                name = f"{self.prefix}{name}"
            if name in renamed:
                raise CheckpointError(
                    f"two tensors mean {show(name)}; the file must have one of them"
                )
            renamed[name] = tensor
        return renamed


def rename_encoder(prefix: str) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return names and parts of a family that only has another prefix than BERT; no heads."""
    names = {
        ours: tuple(f"{prefix}{their.removeprefix('bert.')}" for their in theirs)
        for ours, theirs in BERT_NAMES.items()
        if ours.startswith("encoder.")
    }
    return names, {their.replace("bert.", prefix): part for their, part in PARTS.items()}


BERT = EncoderNames(BERT_NAMES, PARTS, "bert.", copies=COPIES, dropped=DROPPED)


def remove_wrappers(tensors: Mapping[str, Named]) -> Mapping[str, Named]:
    """Remove the prefixes that a wrapped model's `state_dict()` has before all of its names."""
    for prefix in WRAPPERS * 2:  # each may wrap the other
        if tensors and all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


def show(name: str) -> str:
    """Return a foreign name fit for a message: short, without control characters."""
    return name if name.isprintable() and len(name) <= MAX_SHOWN_CHARS else ascii(name[:80])


def count_parameters(
    shapes: Mapping[str, tuple[int, ...]], names: "NameTable | EncoderNames"
) -> dict[str, int]:
    """Count parameters by part, the encoder's first; tied copies aren't counted.

    Args:
        shapes: by foreign name.
    """
    parts: Counter[str] = Counter()
    for name, shape in shapes.items():
        if name not in names.dropped and names.copies.get(name) not in shapes:
            parts[names.find_part(name)] += math.prod(shape)
    return dict(sorted(parts.items(), key=lambda part: not part[0].startswith("encoder.")))
