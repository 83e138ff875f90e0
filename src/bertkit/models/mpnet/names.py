"""Tensor names of MPNet in Hugging Face's files."""

from bertkit.checkpoints.names import (
    LAYER,
    TWO_LAYERS,
    EncoderNames,
    rename_encoder,
    with_parameters,
)

PREFIX = "mpnet."
THEIR_LAYER = f"{PREFIX}encoder.layer.{{layer}}"
BIAS = f"{PREFIX}encoder.relative_attention_bias"
NAMES, PARTS = rename_encoder(PREFIX)
NAMES.pop("encoder.embeddings.token_type.weight")
OTHER_NAMES = {
    **with_parameters(
        {
            f"{LAYER}.attention.query_key_value": [
                f"{THEIR_LAYER}.attention.attn.{part}" for part in "qkv"
            ],
            f"{LAYER}.attention.output": [f"{THEIR_LAYER}.attention.attn.o"],
            f"{LAYER}.attention_norm": [f"{THEIR_LAYER}.attention.LayerNorm"],
            "pooler.dense": [f"{PREFIX}pooler.dense"],
            "masked_lm.dense": ["lm_head.dense"],
            "masked_lm.norm": ["lm_head.layer_norm"],
            "classifier": ["classifier"],
            "qa_outputs": ["qa_outputs"],
        }
    ),
    "encoder.relative_bias.weight": (f"{BIAS}.weight",),
    "masked_lm.bias": ("lm_head.bias",),
}
MPNET = EncoderNames(
    names={**NAMES, **OTHER_NAMES},
    parts={
        **PARTS,
        BIAS: "encoder.relative_bias",
        "lm_head": "masked_lm",
        "classifier.dense": "pre_classifier",
    },
    prefix=PREFIX,
    copies={
        "lm_head.decoder.weight": f"{PREFIX}embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    dropped=(f"{PREFIX}embeddings.position_ids",),
    by_class={"BertForSequenceClassification": TWO_LAYERS},
)
