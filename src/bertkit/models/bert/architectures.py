"""The models' classes by name: the heads that each needs, and the shapes of its weights.

The names are BERT's, whatever the family; only files have those of their family.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.base.wings import load_object
from bertkit.checkpoints.families import Family, find_family
from bertkit.checkpoints.names import EMBEDDINGS, HEADS, LAYER, EncoderNames
from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.models.bert.config import (
    CLASSIFICATION,
    ENCODER,
    MULTIPLE_CHOICE,
    QUESTION_ANSWERING,
    READ_TOKENS,
    TAGGING,
    BertConfig,
    check_bidirectional,
)
from bertkit.models.bert.feature_head import LAYERS, read_feature_head
from bertkit.models.bert.labels import ConfigValues

if TYPE_CHECKING:
    from bertkit.models.bert.pretrained import PretrainedBert

IS_NEXT, NOT_NEXT = 0, 1  # outputs of the next sentence head
Shapes = dict[str, tuple[int, ...]]  # by our name of a weight

PRE_TRAINING = "BertForPreTraining"
NEXT_SENTENCE = "BertForNextSentencePrediction"
CAUSAL = "BertLMHeadModel"
MASKED_LM = "BertForMaskedLM"


class Architecture(NamedTuple):
    """A class of models, and the heads that it needs."""

    address: str  # of the class, which needs torch
    heads: frozenset[str]

    @property
    def kind(self) -> type["PretrainedBert"]:
        """The class; loads torch."""
        kind: type[PretrainedBert] = load_object(self.address)
        return kind


# The most heads first: a config that names no architecture gets the first that fits.
ARCHITECTURES: dict[str, Architecture] = {
    name: Architecture(f"bertkit.models.bert.{module}:{name}", frozenset(heads))
    for name, module, heads in (
        (PRE_TRAINING, "heads", ("pooler", "masked_lm", "next_sentence")),
        (NEXT_SENTENCE, "heads", ("pooler", "next_sentence")),
        (MASKED_LM, "heads", ("masked_lm",)),
        (CLASSIFICATION, "fine_tuning", ("pooler", "classifier")),
        (MULTIPLE_CHOICE, "fine_tuning", ("pooler", "classifier")),
        (TAGGING, "fine_tuning", ("classifier",)),
        (QUESTION_ANSWERING, "fine_tuning", ("qa_outputs",)),
        (CAUSAL, "heads", ("masked_lm",)),  # only where the config says is_decoder
        (FEATURE_BASED, "feature_based", ("classifier",)),  # by name; transformers refuses it
        (ENCODER, "encoder", ()),  # and a pooler, if there is one
    )
}
# A weight of each head whose name isn't that of the head.
FIRST_WEIGHTS = {
    "pooler": "pooler.dense.weight",
    "masked_lm": "masked_lm.bias",
    "discriminator": "discriminator.dense.weight",
}
# Never chosen for a config with is_decoder, whose masked LM head belongs to `CAUSAL`.
BIDIRECTIONAL = frozenset({PRE_TRAINING, NEXT_SENTENCE, MASKED_LM})


def find_architecture(config: ConfigValues, heads: Collection[str], source: str | Path) -> str:
    """Return the class that a config names if heads and direction fit, else the first that fits.

    Args:
        heads: those that the files have, in the words of `HEADS`.
    """
    names = config.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(f"{source}: architectures must be a list of names, got {names!r:.80}")
    other_way = BIDIRECTIONAL if config.get("is_decoder") is True else {CAUSAL}
    family = find_family(config)
    fitting = [
        name
        for name in ARCHITECTURES
        if name not in other_way
        and has_class(family.names, name)
        and list_parts(family, name) <= set(heads)
    ]
    named = map(family.our_class, names[:1])
    return next((name for name in named if name in fitting), fitting[0])


def has_class(names: EncoderNames, architecture: str) -> bool:
    """Whether a family's models can have all heads of a class: few predict the next sentence."""
    return list_weights(architecture) <= names.find_names(architecture).keys()


def list_weights(architecture: str) -> set[str]:
    """Return a weight of each head of a class."""
    heads = ARCHITECTURES[architecture].heads
    return {FIRST_WEIGHTS.get(head, f"{head}.weight") for head in heads}


def list_parts(family: Family, architecture: str) -> set[str]:
    """Return the heads that files of a class have, in the words of `HEADS`."""
    table = family.names.table(architecture)
    return {
        table.find_part(their)
        for weight in list_weights(architecture)
        for their in table.their_names(weight)
    }


def list_own_heads(names: EncoderNames, architecture: str, found: Collection[str]) -> list[str]:
    """Return the heads that a class can load of files which have these, in the words of `HEADS`.

    They are named as our models name them: the first layer of a RoBERTa's classifier is a pooler.
    What a ModernBERT's files call a classifier is that of the class, and no other head.
    """
    known, own = names.find_names(architecture), ARCHITECTURES[architecture].heads
    heads: dict[str, str] = {}  # by the foreign name of a weight
    for head in sorted(HEADS, key=lambda name: name not in own):
        theirs = known.get(FIRST_WEIGHTS.get(head, f"{head}.weight"))
        if theirs and names.find_part(theirs[0]) in found:
            heads.setdefault(theirs[0], head)
    return [head for head in HEADS if head in heads.values()]


def list_used_heads(architecture: str, found: Collection[str]) -> tuple[str, ...]:
    """Return the heads that a class loads from a checkpoint that has these; bare BERTs a pooler."""
    used = {"pooler"} & set(found) if architecture == ENCODER else ARCHITECTURES[architecture].heads
    return tuple(head for head in HEADS if head in used)


def check_config(config: BertConfig, architecture: str) -> None:
    """Raise a `SettingsError` if a class can't be built from a config."""
    if architecture in ARCHITECTURES and not has_class(config.names, architecture):
        raise SettingsError(f"a model of type {config.model_type!r} has no {architecture}")
    if architecture == CAUSAL and not config.is_decoder:
        raise SettingsError(f"{CAUSAL} is a left-to-right model; its config needs is_decoder=True")
    if architecture == QUESTION_ANSWERING and config.num_labels != 2:
        raise SettingsError(
            f"{QUESTION_ANSWERING} has two logits for each token, start and end: num_labels"
            f" ({config.num_labels}) must be 2"
        )
    if architecture == FEATURE_BASED:
        read_feature_head(config)


def check_class(config: BertConfig, architecture: str, source: str | Path) -> None:
    """Raise a `CheckpointError` if a model can't be of a class.

    Its family may lack a head of the class, or it reads left to right and the class doesn't.
    """
    if architecture in ARCHITECTURES and not has_class(config.names, architecture):
        title = find_family({"model_type": config.model_type}).title
        raise CheckpointError(
            f"{source} is {title}, which has no {architecture}; load a BERT for that, such as"
            " google-bert/bert-base-uncased"
        )
    if architecture in {*BIDIRECTIONAL, ENCODER}:
        reason = (
            f"and {architecture} is bidirectional; use `bertkit generate` to continue texts, or"
            " `bertkit finetune` to train it for a task"
        )
        check_bidirectional(config, source, reason)


def expected_shapes(config: BertConfig, architecture: str, heads: Collection[str]) -> Shapes:
    """Return our tensor names and shapes of an encoder with a class's heads, and these.

    The architecture decides between one logit per choice and one per label.
    """
    size, shapes = config.hidden_size, _encoder(config)
    num_logits = 1 if architecture == MULTIPLE_CHOICE else config.num_labels
    if architecture == FEATURE_BASED:
        head = read_feature_head(config)
        num_scores = 1 if head.scores == "choice" else config.num_labels
        return shapes | linear_shapes("classifier", num_scores, size * len(LAYERS[head.layers]))
    parts = {
        "pooler": _pooler(config, architecture),
        "masked_lm": _masked_lm(config),
        "next_sentence": linear_shapes("next_sentence", 2, size),
        "classifier": linear_shapes("classifier", num_logits, size),
        "qa_outputs": linear_shapes("qa_outputs", 2, size),
        "discriminator": {
            **linear_shapes("discriminator.dense", size, size),
            **linear_shapes("discriminator.output", 1, size),
        },
    }
    has_pooler = architecture in READ_TOKENS and config.find_head(architecture) is not None
    own = {*heads, *ARCHITECTURES[architecture].heads, *(["pooler"] if has_pooler else [])}
    for name, part in parts.items():
        shapes |= part if name in own else {}
    return shapes


def _pooler(config: BertConfig, architecture: str) -> Shapes:
    size, head = config.hidden_size, config.find_head(architecture) or config.find_head(ENCODER)
    if head is None:
        return {}
    norm = norm_shapes("pooler.norm", size, has_bias=config.parts.has_biases)
    return {
        **linear_shapes("pooler.dense", size, size, has_bias=config.parts.has_head_biases),
        **(norm if head.has_norm else {}),
    }


def _masked_lm(config: BertConfig) -> Shapes:
    parts = config.parts
    size = parts.embedding_size or config.hidden_size
    return {
        "masked_lm.bias": (config.vocab_size,),
        **linear_shapes(
            "masked_lm.dense", size, config.hidden_size, has_bias=parts.has_head_biases
        ),
        **norm_shapes("masked_lm.norm", size, has_bias=parts.has_biases),
    }


def _encoder(config: BertConfig) -> Shapes:
    size, parts = config.hidden_size, config.parts
    embedded, has_bias = parts.embedding_size or size, parts.has_biases
    shapes: Shapes = {f"{EMBEDDINGS}.word.weight": (config.vocab_size, embedded)}
    if parts.has_positions:
        shapes[f"{EMBEDDINGS}.position.weight"] = (config.max_position_embeddings, embedded)
    if config.type_vocab_size:
        shapes[f"{EMBEDDINGS}.token_type.weight"] = (config.type_vocab_size, embedded)
    shapes |= norm_shapes(f"{EMBEDDINGS}.norm", embedded, has_bias=has_bias)
    if parts.embedding_size is not None:
        shapes |= linear_shapes(f"{EMBEDDINGS}.projection", size, embedded)
    if parts.num_buckets:
        shapes["encoder.relative_bias.weight"] = (parts.num_buckets, config.num_attention_heads)
    for number in range(config.num_hidden_layers):
        shapes |= _layer(config, number)
    if parts.normalizes_first:
        shapes |= norm_shapes("encoder.final_norm", size, has_bias=has_bias)
    return shapes


def _layer(config: BertConfig, number: int) -> Shapes:
    size, parts, layer = config.hidden_size, config.parts, LAYER.format(layer=number)
    wide = config.intermediate_size * (2 if parts.is_gated else 1)
    shapes = {
        f"{layer}.attention.query_key_value": (3 * size, size),
        f"{layer}.attention.output": (size, size),
        f"{layer}.attention_norm": (size,),
        f"{layer}.feed_forward.up": (wide, size),
        f"{layer}.feed_forward.down": (size, config.intermediate_size),
        f"{layer}.feed_forward_norm": (size,),
    }
    if number == 0 and not parts.has_first_norm:
        del shapes[f"{layer}.attention_norm"]
    kinds = ("weight", "bias") if parts.has_biases else ("weight",)
    return {
        f"{name}.{kind}": shape if kind == "weight" else shape[:1]
        for name, shape in shapes.items()
        for kind in kinds
    }


def linear_shapes(name: str, num_outputs: int, num_inputs: int, *, has_bias: bool = True) -> Shapes:
    """Return names and shapes of the weight and the bias of a linear layer."""
    bias = {f"{name}.bias": (num_outputs,)} if has_bias else {}
    return {f"{name}.weight": (num_outputs, num_inputs), **bias}


def norm_shapes(name: str, size: int, *, has_bias: bool = True) -> Shapes:
    """Return names and shapes of the weight and the bias of a layer norm."""
    return {f"{name}.{kind}": (size,) for kind in (("weight", "bias") if has_bias else ("weight",))}
