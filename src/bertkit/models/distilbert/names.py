"""Tensor names of DistilBERT in Hugging Face's files."""

from bertkit.checkpoints.names import (
    EMBEDDINGS,
    LAYER,
    WORD_EMBEDDINGS,
    EncoderNames,
    with_parameters,
)

PREFIX = "distilbert."
WORDS = f"{PREFIX}embeddings.word_embeddings.weight"
THEIR_LAYER = f"{PREFIX}transformer.layer.{{layer}}"
NAMES = {
    WORD_EMBEDDINGS: (WORDS,),
    f"{EMBEDDINGS}.position.weight": (f"{PREFIX}embeddings.position_embeddings.weight",),
    **with_parameters(
        {
            f"{EMBEDDINGS}.norm": [f"{PREFIX}embeddings.LayerNorm"],
            f"{LAYER}.attention.query_key_value": [
                f"{THEIR_LAYER}.attention.{part}_lin" for part in "qkv"
            ],
            f"{LAYER}.attention.output": [f"{THEIR_LAYER}.attention.out_lin"],
            f"{LAYER}.attention_norm": [f"{THEIR_LAYER}.sa_layer_norm"],
            f"{LAYER}.feed_forward.up": [f"{THEIR_LAYER}.ffn.lin1"],
            f"{LAYER}.feed_forward.down": [f"{THEIR_LAYER}.ffn.lin2"],
            f"{LAYER}.feed_forward_norm": [f"{THEIR_LAYER}.output_layer_norm"],
            "masked_lm.dense": ["vocab_transform"],
            "masked_lm.norm": ["vocab_layer_norm"],
            "classifier": ["classifier"],
            "qa_outputs": ["qa_outputs"],
        }
    ),
    "masked_lm.bias": ("vocab_projector.bias",),
}
CLASSIFIERS = {
    architecture: with_parameters({"pooler.dense": ["pre_classifier"]})
    for architecture in ("BertForSequenceClassification", "BertForMultipleChoice")
}
DISTILBERT = EncoderNames(
    names=NAMES,
    parts={
        f"{PREFIX}embeddings": "encoder.embeddings",
        f"{PREFIX}transformer": "encoder.layers",
        "vocab_transform": "masked_lm",
        "vocab_layer_norm": "masked_lm",
        "vocab_projector": "masked_lm",
        "pre_classifier": "pre_classifier",
        "classifier": "classifier",
        "qa_outputs": "qa_outputs",
    },
    prefix=PREFIX,
    backbone=("embeddings", "transformer"),
    copies={"vocab_projector.weight": WORDS},
    dropped=(f"{PREFIX}embeddings.position_ids",),
    by_class=CLASSIFIERS,
)
