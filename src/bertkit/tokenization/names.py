"""The names of a tokenizer's files, of its algorithms and of its special tokens."""

from typing import Literal, NamedTuple

from pydantic import JsonValue

Kind = Literal["WordPiece", "Unigram", "BPE"]
Object = dict[str, JsonValue]  # the content of a file

VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
ENGINE_FILE = "tokenizer.json"
ADDED_FILE = "added_tokens.json"
MANIFEST_FILE = "tokenizer_manifest.json"
TOKENIZER_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE)


class SpecialTokens(NamedTuple):
    """The entries that aren't text, by their use."""

    pad: str
    unk: str
    cls: str  # before the first text
    sep: str  # behind each text
    mask: str


OF_BERT = SpecialTokens("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
