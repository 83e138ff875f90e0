"""Families of models beside BERT: their names, and which BERT does their job."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from bertkit.base.errors import CheckpointError
from bertkit.base.wings import CONFIGS

ENGLISH = (
    "google-bert/bert-base-uncased is a BERT to fine-tune instead, and"
    " sentence-transformers/all-MiniLM-L6-v2 one that embeds texts"
)
MULTILINGUAL = (
    "google-bert/bert-base-multilingual-cased is a BERT to fine-tune instead, and"
    " sentence-transformers/LaBSE one that embeds texts"
)
WRITING = (
    "`bertkit finetune translate` and `summarize` train models that rewrite texts, and `bertkit"
    " pretrain` a small model that continues texts (see --objective)"
)
# Name and advice by `model_type`.
FAMILIES = {
    "albert": ("ALBERT", ENGLISH),
    "bart": ("BART", WRITING),
    "camembert": ("CamemBERT", MULTILINGUAL),
    "deberta": ("DeBERTa", ENGLISH),
    "deberta-v2": ("DeBERTa", ENGLISH),
    "distilbert": ("DistilBERT", ENGLISH),
    "electra": ("ELECTRA", ENGLISH),
    "gpt2": ("GPT-2", WRITING),
    "llama": ("Llama", WRITING),
    "marian": ("Marian", WRITING),
    "mbart": ("mBART", WRITING),
    "mistral": ("Mistral", WRITING),
    "modernbert": ("ModernBERT", ENGLISH),
    "mpnet": ("MPNet", ENGLISH),
    "mt5": ("mT5", WRITING),
    "new": ("GTE", ENGLISH),
    "nomic_bert": ("Nomic BERT", ENGLISH),
    "qwen2": ("Qwen", WRITING),
    "qwen3": ("Qwen", WRITING),
    "roberta": ("RoBERTa", ENGLISH),
    "t5": ("T5", WRITING),
    "xlm-roberta": ("XLM-RoBERTa", MULTILINGUAL),
}


def is_bert(config: Mapping[str, JsonValue]) -> bool:
    """Whether the model isn't one that a wing adds, with tensor names of its own."""
    return str(config.get("model_type")) not in CONFIGS


def check_family(config: Mapping[str, JsonValue], source: str | Path) -> None:
    """Raise a `CheckpointError` if a `config.json` is that of another family than BERT."""
    kind = config.get("model_type", "bert")
    if kind == "bert" or not isinstance(kind, str):
        return
    if kind.startswith("bertkit-"):
        raise CheckpointError(f"{source} is a {kind[:80]}, not a BERT; name the folder of a BERT")
    name, advice = FAMILIES.get(kind, (f"model_type {kind[:80]!r}", ENGLISH))
    raise CheckpointError(f"{source} is {name}, and bertkit runs BERT only; {advice}")
