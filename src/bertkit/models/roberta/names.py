"""Tensor names of RoBERTa, XLM-RoBERTa and CamemBERT in Hugging Face's files."""

from bertkit.checkpoints.names import BERT_NAMES, PARTS, EncoderNames, with_parameters

PREFIX = "roberta."
NAMES = {
    ours: tuple(f"{PREFIX}{their.removeprefix('bert.')}" for their in theirs)
    for ours, theirs in BERT_NAMES.items()
    if theirs[0].startswith("bert.")
}
HEAD_NAMES = {
    **with_parameters(
        {
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
        **{their.replace("bert.", PREFIX): part for their, part in PARTS.items()},
        "lm_head": "masked_lm",
        "classifier.dense": "pre_classifier",
    },
    prefix=PREFIX,
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    dropped=("roberta.embeddings.position_ids",),
    by_class={
        "BertForSequenceClassification": with_parameters(
            {"pooler.dense": ["classifier.dense"], "classifier": ["classifier.out_proj"]}
        )
    },
)
