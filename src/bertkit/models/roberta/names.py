"""Tensor names of RoBERTa, XLM-RoBERTa and CamemBERT in Hugging Face's files."""

from bertkit.checkpoints.names import TWO_LAYERS, EncoderNames, rename_encoder, with_parameters

PREFIX = "roberta."
NAMES, PARTS = rename_encoder(PREFIX)
HEAD_NAMES = {
    **with_parameters(
        {
            "pooler.dense": [f"{PREFIX}pooler.dense"],
            "masked_lm.dense": ["lm_head.dense"],
            "masked_lm.norm": ["lm_head.layer_norm"],
            "classifier": ["classifier"],
            "qa_outputs": ["qa_outputs"],
        }
    ),
    "masked_lm.bias": ("lm_head.bias",),
}
ROBERTA = EncoderNames(
    names={**NAMES, **HEAD_NAMES},
    parts={
        **PARTS,
        "lm_head": "masked_lm",
        "classifier.dense": "pre_classifier",
    },
    prefix=PREFIX,
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    dropped=("roberta.embeddings.position_ids",),
    by_class={"BertForSequenceClassification": TWO_LAYERS},
)
