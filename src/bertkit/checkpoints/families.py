"""Families of encoders: where those that bertkit has are described, and what to use for others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from bertkit.base.errors import CheckpointError
from bertkit.base.wings import CONFIGS, load_object
from bertkit.checkpoints.names import EncoderNames

OUR_PREFIX = "Bert"
TRANSLATED = ("BertFor", "BertModel")  # how the names of classes begin that each family has


class Family(NamedTuple):
    """A family of encoders, whose classes have BERT's names here: BertForMaskedLM computes all."""

    title: str
    class_prefix: str  # of the names of classes in transformers, such as "Roberta"
    address: str  # of the class of its config, a floor above, so that it is named as text

    @property
    def config(self) -> Any:
        """The class of its config."""
        return load_object(self.address)

    @property
    def names(self) -> EncoderNames:
        """The names of its tensors."""
        names: EncoderNames = self.config.names
        return names

    def our_class(self, name: str) -> str:
        """Return BERT's name for the family's name of a class of models."""
        if not name.startswith(self.class_prefix):
            return name
        return f"{OUR_PREFIX}{name.removeprefix(self.class_prefix)}"

    def their_class(self, name: str) -> str:
        """Return the family's name for BERT's name of a class of models."""
        if not name.startswith(TRANSLATED):
            return name
        return f"{self.class_prefix}{name.removeprefix(OUR_PREFIX)}"


ROBERTA = "bertkit.models.roberta.config:RobertaConfig"
# By `model_type`.
FAMILIES = {
    "bert": Family("BERT", "Bert", "bertkit.models.bert.config:BertConfig"),
    "camembert": Family("CamemBERT", "Camembert", ROBERTA),
    "distilbert": Family(
        "DistilBERT", "DistilBert", "bertkit.models.distilbert.config:DistilBertConfig"
    ),
    "electra": Family("ELECTRA", "Electra", "bertkit.models.electra.config:ElectraConfig"),
    "modernbert": Family(
        "ModernBERT", "ModernBert", "bertkit.models.modernbert.config:ModernBertConfig"
    ),
    "mpnet": Family("MPNet", "MPNet", "bertkit.models.mpnet.config:MPNetConfig"),
    "roberta": Family("RoBERTa", "Roberta", ROBERTA),
    "xlm-roberta": Family("XLM-RoBERTa", "XLMRoberta", ROBERTA),
}

ENGLISH = (
    "answerdotai/ModernBERT-base and FacebookAI/roberta-base are encoders to fine-tune instead, and"
    " sentence-transformers/all-mpnet-base-v2 is one that embeds texts"
)
MULTILINGUAL = (
    "FacebookAI/xlm-roberta-base is an encoder to fine-tune instead, and BAAI/bge-m3 and"
    " sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 are ones that embed texts"
)
WRITING = (
    "`bertkit finetune translate` and `summarize` train models that rewrite texts, and `bertkit"
    " pretrain` a small model that continues texts (see --objective)"
)
# Name and advice by the `model_type` of models that bertkit doesn't have.
OTHERS = {
    "albert": ("ALBERT", ENGLISH),
    "bart": ("BART", WRITING),
    "big_bird": ("BigBird", ENGLISH),
    "bloom": ("BLOOM", WRITING),
    "convbert": ("ConvBERT", ENGLISH),
    "deberta": ("DeBERTa", ENGLISH),
    "deberta-v2": ("DeBERTa", ENGLISH),
    "eurobert": ("EuroBERT", MULTILINGUAL),
    "gemma": ("Gemma", WRITING),
    "gemma2": ("Gemma", WRITING),
    "gemma3_text": ("Gemma", MULTILINGUAL),
    "gpt2": ("GPT-2", WRITING),
    "gpt_neox": ("GPT-NeoX", WRITING),
    "llama": ("Llama", WRITING),
    "longformer": ("Longformer", ENGLISH),
    "marian": ("Marian", WRITING),
    "mbart": ("mBART", WRITING),
    "mistral": ("Mistral", WRITING),
    "mobilebert": ("MobileBERT", ENGLISH),
    "mt5": ("mT5", WRITING),
    "new": ("GTE", ENGLISH),
    "nomic_bert": ("Nomic BERT", ENGLISH),
    "opt": ("OPT", WRITING),
    "phi3": ("Phi", WRITING),
    "qwen2": ("Qwen", WRITING),
    "qwen3": ("Qwen", WRITING),
    "rembert": ("RemBERT", MULTILINGUAL),
    "squeezebert": ("SqueezeBERT", ENGLISH),
    "t5": ("T5", WRITING),
    "xlm": ("XLM", MULTILINGUAL),
    "xlm-roberta-xl": ("XLM-RoBERTa-XL", MULTILINGUAL),
    "xlnet": ("XLNet", ENGLISH),
}


def is_bert(config: Mapping[str, JsonValue]) -> bool:
    """Whether the model isn't one that a wing adds, with tensor names of its own."""
    return str(config.get("model_type")) not in CONFIGS


def find_family(config: Mapping[str, JsonValue]) -> Family:
    """Return the family that a `config.json` names; BERT if it is another one, which is refused."""
    return FAMILIES.get(str(config.get("model_type", "bert")), FAMILIES["bert"])


def check_family(config: Mapping[str, JsonValue], source: str | Path) -> None:
    """Raise a `CheckpointError` if a `config.json` is that of a model that bertkit doesn't have.

    It is one of another family, or is defined by code of its own.
    """
    kind = config.get("model_type", "bert")
    if not isinstance(kind, str):
        return
    if kind.startswith("bertkit-"):
        raise CheckpointError(f"{source} is a {kind[:80]}, not a BERT; name the folder of a BERT")
    if kind not in FAMILIES:
        name, advice = OTHERS.get(kind, (f"model_type {kind[:80]!r}", ENGLISH))
        raise CheckpointError(f"{source} is {name}, which bertkit doesn't have; {advice}")
    if config.get("auto_map"):
        raise CheckpointError(
            f"{source} is {FAMILIES[kind].title} with code of its own (auto_map), which bertkit"
            f" never runs; {ENGLISH}"
        )
