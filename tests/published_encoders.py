"""The published encoders that bertkit loads: their configs, and how many parameters they have.

Sources: each repository's `config.json` on the Hugging Face hub as of its model card, with the keys
that describe the model (those of tools, versions and outputs are left out); the rounded counts are
those of the papers and model cards:

- BERT: Devlin et al. 2018, section 3; MiniLM: the cards of sentence-transformers
- DistilBERT: Sanh et al. 2019, table 3
- ELECTRA: Clark et al. 2020, table 1 and appendix B
- RoBERTa: Liu et al. 2019, section 5; XLM-R: Conneau et al. 2019, table 1; CamemBERT: Martin et
  al. 2019, section 4; BGE-M3: Chen et al. 2024 and its card
- MPNet: Song et al. 2020, section 4 (the size of BERT-base)
- ModernBERT: Warner et al. 2024, table 4

The exact counts are those of transformers' base models, pooler included where they have one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PublishedEncoder:
    """An encoder on the Hugging Face hub."""

    name: str
    family: str  # of `families.FAMILIES`
    config: Mapping[str, Any]  # of its config.json
    num_parameters: int  # of the encoder, and of its pooler
    published_millions: float  # the rounded count that its authors give


BERT = {
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
}
MINILM = {"architectures": ["BertModel"], "hidden_size": 384, "intermediate_size": 1536}
DISTILBERT = {
    "activation": "gelu",
    "architectures": ["DistilBertForMaskedLM"],
    "attention_dropout": 0.1,
    "dim": 768,
    "dropout": 0.1,
    "hidden_dim": 3072,
    "initializer_range": 0.02,
    "max_position_embeddings": 512,
    "model_type": "distilbert",
    "n_heads": 12,
    "n_layers": 6,
    "pad_token_id": 0,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False,
    "tie_weights_": True,
    "vocab_size": 30522,
}
ELECTRA = {
    **BERT,
    "architectures": ["ElectraForPreTraining"],
    "embedding_size": 768,
    "model_type": "electra",
}
ELECTRA_SMALL = {
    "embedding_size": 128,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_attention_heads": 4,
}
ROBERTA = {
    "architectures": ["RobertaForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 514,
    "model_type": "roberta",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "type_vocab_size": 1,
    "vocab_size": 50265,
}
XLM_ROBERTA = {
    **ROBERTA,
    "architectures": ["XLMRobertaForMaskedLM"],
    "model_type": "xlm-roberta",
    "output_past": True,
    "vocab_size": 250002,
}
CAMEMBERT = {
    **ROBERTA,
    "architectures": ["CamembertForMaskedLM"],
    "bos_token_id": 5,
    "eos_token_id": 6,
    "model_type": "camembert",
    "output_past": True,
    "vocab_size": 32005,
}
MPNET = {
    "architectures": ["MPNetForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 514,
    "model_type": "mpnet",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "relative_attention_num_buckets": 32,
    "vocab_size": 30527,
}
MODERNBERT = {
    "architectures": ["ModernBertForMaskedLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 50281,
    "classifier_activation": "gelu",
    "classifier_bias": False,
    "classifier_dropout": 0.0,
    "classifier_pooling": "mean",
    "cls_token_id": 50281,
    "decoder_bias": True,
    "deterministic_flash_attn": False,
    "embedding_dropout": 0.0,
    "eos_token_id": 50282,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "hidden_activation": "gelu",
    "hidden_size": 768,
    "initializer_cutoff_factor": 2.0,
    "initializer_range": 0.02,
    "intermediate_size": 1152,
    "layer_norm_eps": 1e-5,
    "local_attention": 128,
    "local_rope_theta": 10000.0,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "mlp_dropout": 0.0,
    "model_type": "modernbert",
    "norm_bias": False,
    "norm_eps": 1e-5,
    "num_attention_heads": 12,
    "num_hidden_layers": 22,
    "pad_token_id": 50283,
    "position_embedding_type": "absolute",
    "sep_token_id": 50282,
    "tie_word_embeddings": True,
    "vocab_size": 50368,
}
MODERNBERT_LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 2624,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
}
MULTILINGUAL_MINILM = {**BERT, **MINILM, "vocab_size": 250037}
BGE_M3 = {
    **XLM_ROBERTA,
    **LARGE,
    "architectures": ["XLMRobertaModel"],
    "max_position_embeddings": 8194,
}

PUBLISHED = [
    PublishedEncoder("google-bert/bert-base-uncased", "bert", BERT, 109_482_240, 110),
    PublishedEncoder("google-bert/bert-large-uncased", "bert", {**BERT, **LARGE}, 335_141_888, 340),
    PublishedEncoder(
        "sentence-transformers/all-MiniLM-L6-v2",
        "bert",
        {**BERT, **MINILM, "num_hidden_layers": 6},
        22_713_216,
        22.7,
    ),
    PublishedEncoder(
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        "bert",
        MULTILINGUAL_MINILM,
        117_653_760,
        118,
    ),
    PublishedEncoder(
        "distilbert/distilbert-base-uncased", "distilbert", DISTILBERT, 66_362_880, 66
    ),
    PublishedEncoder(
        "google/electra-small-discriminator",
        "electra",
        {**ELECTRA, **ELECTRA_SMALL},
        13_483_008,
        14,
    ),
    PublishedEncoder("google/electra-base-discriminator", "electra", ELECTRA, 108_891_648, 110),
    PublishedEncoder("FacebookAI/roberta-base", "roberta", ROBERTA, 124_645_632, 125),
    PublishedEncoder("FacebookAI/roberta-large", "roberta", {**ROBERTA, **LARGE}, 355_359_744, 355),
    PublishedEncoder("FacebookAI/xlm-roberta-base", "xlm-roberta", XLM_ROBERTA, 278_043_648, 270),
    PublishedEncoder("BAAI/bge-m3", "xlm-roberta", BGE_M3, 567_754_752, 568),
    PublishedEncoder("almanach/camembert-base", "camembert", CAMEMBERT, 110_621_952, 110),
    PublishedEncoder("microsoft/mpnet-base", "mpnet", MPNET, 109_486_464, 110),
    PublishedEncoder("sentence-transformers/all-mpnet-base-v2", "mpnet", MPNET, 109_486_464, 109),
    PublishedEncoder("answerdotai/ModernBERT-base", "modernbert", MODERNBERT, 149_014_272, 149),
    PublishedEncoder(
        "answerdotai/ModernBERT-large",
        "modernbert",
        {**MODERNBERT, **MODERNBERT_LARGE},
        394_781_696,
        395,
    ),
]
