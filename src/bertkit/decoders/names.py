"""Tensor names of an encoder-decoder: ours, and those of transformers' `EncoderDecoderModel`."""

from bertkit.checkpoints.names import (
    BERT_NAMES,
    COPIES,
    DROPPED,
    LAYER,
    THEIR_LAYER,
    NameTable,
    with_parameters,
)

MODEL_TYPE = "encoder-decoder"
# bertkit only, for what BERT's format lacks, such as the final norm of pre-norm layers.
OWN_MODEL_TYPE = "bertkit-encoder-decoder"

CROSS = f"{THEIR_LAYER}.crossattention"
# Cross-attention of the decoder: our name: transformers' names, as in `BERT_NAMES`.
CROSS_NAMES = with_parameters(
    {
        f"{LAYER}.cross_attention.query": [f"{CROSS}.self.query"],
        f"{LAYER}.cross_attention.key_value": [f"{CROSS}.self.key", f"{CROSS}.self.value"],
        f"{LAYER}.cross_attention.output": [f"{CROSS}.output.dense"],
        f"{LAYER}.cross_attention_norm": [f"{CROSS}.output.LayerNorm"],
    }
)
FINAL_NORMS = with_parameters(
    {f"{side}.final_norm": [f"{side}.final_norm"] for side in ("encoder", "decoder")}
)
DECODER_NAMES = {**BERT_NAMES, **CROSS_NAMES}
# Prefix of a foreign name: the part of the model, for counting parameters.
PARTS = {
    "encoder.embeddings": "encoder.embeddings",
    "encoder.encoder": "encoder.layers",
    "encoder.pooler": "encoder.pooler",
    "decoder.bert.embeddings": "decoder.embeddings",
    "decoder.bert.encoder": "decoder.layers",
    "decoder.cls.predictions": "masked_lm",
}


def their_names(name: str) -> tuple[str, ...]:
    """Return the foreign names for one of our names."""
    if name in FINAL_NORMS:
        return FINAL_NORMS[name]
    side, _, rest = name.partition(".")
    if side == "masked_lm":
        return tuple(f"decoder.{their}" for their in BERT_NAMES[name])
    layer = ""
    key = f"encoder.{rest}"
    if rest.startswith("layers."):
        _, layer, rest = rest.split(".", maxsplit=2)
        key = f"{LAYER}.{rest}"
    theirs = (their.format(layer=layer) for their in DECODER_NAMES[key])
    if side == "encoder":
        return tuple(f"encoder.{their.removeprefix('bert.')}" for their in theirs)
    return tuple(f"decoder.{their}" for their in theirs)


def find_part(name: str) -> str:
    """Return the part of the model that a foreign tensor belongs to, or its name's beginning."""
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
# Equal if encoder and decoder share their word embeddings.
SHARED = (
    "encoder.embeddings.word_embeddings.weight",
    "decoder.bert.embeddings.word_embeddings.weight",
)
