"""Tensor names of DistilBERT in Hugging Face's files."""

from bertkit.checkpoints.names import LAYER, EncoderNames, rename_encoder, with_parameters

PREFIX = "distilbert."
THEIR_LAYER = f"{PREFIX}transformer.layer.{{layer}}"
NAMES, PARTS = rename_encoder(PREFIX)
OTHER_NAMES = with_parameters(
    {
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
)
CLASSIFIERS = {
    architecture: with_parameters({"pooler.dense": ["pre_classifier"]})
    for architecture in ("BertForSequenceClassification", "BertForMultipleChoice")
}
DISTILBERT = EncoderNames(
    names={**NAMES, **OTHER_NAMES, "masked_lm.bias": ("vocab_projector.bias",)},
    parts={
        **PARTS,
        f"{PREFIX}transformer": "encoder.layers",
        **dict.fromkeys(("vocab_transform", "vocab_layer_norm", "vocab_projector"), "masked_lm"),
    },
    prefix=PREFIX,
    backbone=("embeddings", "transformer"),
    copies={"vocab_projector.weight": f"{PREFIX}embeddings.word_embeddings.weight"},
    dropped=(f"{PREFIX}embeddings.position_ids",),
    by_class=CLASSIFIERS,
)
