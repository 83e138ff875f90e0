"""Tensor names of ELECTRA's generator and discriminator in Hugging Face's files."""

from bertkit.checkpoints.names import TWO_LAYERS, EncoderNames, rename_encoder, with_parameters

PREFIX = "electra."
HEAD_NAMES = {
    **with_parameters(
        {
            "encoder.embeddings.projection": [f"{PREFIX}embeddings_project"],
            "masked_lm.dense": ["generator_predictions.dense"],
            "masked_lm.norm": ["generator_predictions.LayerNorm"],
            "discriminator.dense": ["discriminator_predictions.dense"],
            "discriminator.output": ["discriminator_predictions.dense_prediction"],
            "classifier": ["classifier"],
            "qa_outputs": ["qa_outputs"],
        }
    ),
    "masked_lm.bias": ("generator_lm_head.bias",),
}
NAMES, PARTS = rename_encoder(PREFIX)
ELECTRA = EncoderNames(
    names={**NAMES, **HEAD_NAMES},
    parts={
        **PARTS,
        f"{PREFIX}embeddings_project": "encoder.embeddings",
        **dict.fromkeys(("generator_predictions", "generator_lm_head"), "masked_lm"),
        "discriminator_predictions": "discriminator",
        "sequence_summary": "pre_classifier",
        "classifier.dense": "pre_classifier",
    },
    prefix=PREFIX,
    backbone=("embeddings", "embeddings_project", "encoder"),
    copies={"generator_lm_head.weight": f"{PREFIX}embeddings.word_embeddings.weight"},
    dropped=(f"{PREFIX}embeddings.position_ids",),
    by_class={
        "BertForSequenceClassification": TWO_LAYERS,
        "BertForMultipleChoice": with_parameters({"pooler.dense": ["sequence_summary.summary"]}),
    },
)
