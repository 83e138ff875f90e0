"""Tensor names of ModernBERT in Hugging Face's files."""

from bertkit.checkpoints.names import EMBEDDINGS, LAYER, EncoderNames, with_parameters

PREFIX = "model."
WORDS = f"{PREFIX}embeddings.tok_embeddings.weight"
THEIR_LAYER = f"{PREFIX}layers.{{layer}}"
NAMES = {
    f"{EMBEDDINGS}.word.weight": (WORDS,),
    **with_parameters(
        {
            f"{EMBEDDINGS}.norm": [f"{PREFIX}embeddings.norm"],
            f"{LAYER}.attention.query_key_value": [f"{THEIR_LAYER}.attn.Wqkv"],
            f"{LAYER}.attention.output": [f"{THEIR_LAYER}.attn.Wo"],
            f"{LAYER}.attention_norm": [f"{THEIR_LAYER}.attn_norm"],
            f"{LAYER}.feed_forward.up": [f"{THEIR_LAYER}.mlp.Wi"],
            f"{LAYER}.feed_forward.down": [f"{THEIR_LAYER}.mlp.Wo"],
            f"{LAYER}.feed_forward_norm": [f"{THEIR_LAYER}.mlp_norm"],
            "encoder.final_norm": [f"{PREFIX}final_norm"],
            "masked_lm.dense": ["head.dense"],
            "masked_lm.norm": ["head.norm"],
            "classifier": ["classifier"],
            "qa_outputs": ["classifier"],
        }
    ),
    "masked_lm.bias": ("decoder.bias",),
}
# The head of words becomes that of a classifier, which is trained on.
HEAD = with_parameters({"pooler.dense": ["head.dense"], "pooler.norm": ["head.norm"]})
TASKS = ("SequenceClassification", "MultipleChoice", "TokenClassification", "QuestionAnswering")
MODERNBERT = EncoderNames(
    names=NAMES,
    parts={
        f"{PREFIX}embeddings": "encoder.embeddings",
        f"{PREFIX}layers": "encoder.layers",
        f"{PREFIX}final_norm": "encoder.final_norm",
        "head": "prediction_head",
        "decoder": "masked_lm",
        "classifier": "classifier",
    },
    prefix=PREFIX,
    backbone=("embeddings", "layers", "final_norm"),
    copies={"decoder.weight": WORDS},
    by_class={f"BertFor{task}": HEAD for task in TASKS},
)
