"""The names of an encoder-decoder's tensors: ours, and those that transformers gives them.

There it is an EncoderDecoderModel of two BERTs. The encoder's names are BERT's without `bert.`,
behind `encoder.`; the decoder's are those of a BERT with a masked-LM head, behind `decoder.`, with
a second attention in each layer.
"""

from bertkit.checkpoints.names import (
    BERT_NAMES,
    COPIES,
    DROPPED,
    LAYER,
    THEIR_LAYER,
    NameTable,
)

MODEL_TYPE = "encoder-decoder"
# Only ours: what a BERT has no place for, such as a last norm behind blocks that normalize first.
OWN_MODEL_TYPE = "bertkit-encoder-decoder"

CROSS = f"{THEIR_LAYER}.crossattention"
# Of the decoder; ours: theirs, as `BERT_NAMES` has those of an encoder.
CROSS_NAMES: dict[str, tuple[str, ...]] = {
    f"{LAYER}.cross_attention.query.weight": (f"{CROSS}.self.query.weight",),
    f"{LAYER}.cross_attention.query.bias": (f"{CROSS}.self.query.bias",),
    f"{LAYER}.cross_attention.key_value.weight": (
        f"{CROSS}.self.key.weight",
        f"{CROSS}.self.value.weight",
    ),
    f"{LAYER}.cross_attention.key_value.bias": (
        f"{CROSS}.self.key.bias",
        f"{CROSS}.self.value.bias",
    ),
    f"{LAYER}.cross_attention.output.weight": (f"{CROSS}.output.dense.weight",),
    f"{LAYER}.cross_attention.output.bias": (f"{CROSS}.output.dense.bias",),
    f"{LAYER}.cross_attention_norm.weight": (f"{CROSS}.output.LayerNorm.weight",),
    f"{LAYER}.cross_attention_norm.bias": (f"{CROSS}.output.LayerNorm.bias",),
}
FINAL_NORMS = {
    f"{side}.final_norm.{kind}": (f"{side}.final_norm.{kind}",)
    for side in ("encoder", "decoder")
    for kind in ("weight", "bias")
}
DECODER_NAMES = {**BERT_NAMES, **CROSS_NAMES}
# Where a foreign name begins: the part of the model, as people count it.
PARTS = {
    "encoder.embeddings": "encoder.embeddings",
    "encoder.encoder": "encoder.layers",
    "encoder.pooler": "encoder.pooler",
    "decoder.bert.embeddings": "decoder.embeddings",
    "decoder.bert.encoder": "decoder.layers",
    "decoder.cls.predictions": "masked_lm",
}
HEAD = "masked_lm"
LAYERS = "layers"


def their_names(name: str) -> tuple[str, ...]:
    """Look one of our names up in the tables."""
    if name in FINAL_NORMS:
        return FINAL_NORMS[name]
    side, _, rest = name.partition(".")
    if side == HEAD:
        return tuple(f"decoder.{their}" for their in BERT_NAMES[name])
    layer = ""
    key = f"encoder.{rest}"
    if rest.startswith(f"{LAYERS}."):
        _, layer, rest = rest.split(".", maxsplit=2)
        key = f"{LAYER}.{rest}"
    theirs = (their.format(layer=layer) for their in DECODER_NAMES[key])
    if side == "encoder":
        return tuple(f"encoder.{their.removeprefix('bert.')}" for their in theirs)
    return tuple(f"decoder.{their}" for their in theirs)


def find_part(name: str) -> str:
    """The part of the model that a foreign tensor belongs to, or how its name begins."""
    words = name.split(".")
    beginning = ".".join(words[:2])
    return PARTS.get(beginning, PARTS.get(".".join(words[:3]), beginning))


ENCODER_DECODER = NameTable(
    their_names,
    find_part,
    copies={f"decoder.{copy}": f"decoder.{original}" for copy, original in COPIES.items()},
    dropped=[
        name
        for their in DROPPED
        for name in (f"encoder.{their.removeprefix('bert.')}", f"decoder.{their}")
    ],
)
UNUSED_PARTS = ("encoder.pooler",)
# Equal where both halves share their words.
SHARED = (
    "encoder.embeddings.word_embeddings.weight",
    "decoder.bert.embeddings.word_embeddings.weight",
)
