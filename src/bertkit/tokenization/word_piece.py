"""BERT's WordPiece in files: its algorithm, and the switches of normalization."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, processors

from bertkit.base.errors import InputError
from bertkit.tokenization.engine import CONTINUATION, build_engine
from bertkit.tokenization.names import CONFIG_FILE, ENGINE_FILE, OF_BERT, Object
from bertkit.tokenization.settings import CASED, MAX_WORD_CHARS, UNCASED, TokenizerSettings
from bertkit.tokenization.vocabulary import order_entries

# The values that `tokenizer.json` must have; the rest are switches, entries or special tokens.
ALGORITHM: dict[str, dict[str, str | int | bool]] = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": OF_BERT.unk,
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": MAX_WORD_CHARS,
    },
}
DEFAULT_VALUES = {("model", "type"): "WordPiece"}  # files of 2020 lack the key; the others imply it
# A quarter of a cased vocabulary's entries have capitals. Uncased ones may have a few that people
# added: copies of google's Chinese vocabulary exist with the letters A to Z.
CASED_SHARE = 0.01


def read_word_pieces(content: Object, source: str) -> list[str]:
    """Return the entries of a `tokenizer.json` of WordPiece, in the order of their ids."""
    for name, expected in ALGORITHM.items():
        part = content.get(name)
        if not isinstance(part, dict):
            raise InputError(f"{source} has no object named {name}")
        for key, value in expected.items():
            if part.get(key, DEFAULT_VALUES.get((name, key))) != value:
                found = f"{part.get(key)!r:.80}"
                raise InputError(f"{source}: {name}.{key} must be {value!r}, got {found}")
    model = content["model"]
    return order_entries(model.get("vocab") if isinstance(model, dict) else None, source)


def guess_switches(vocabulary: Sequence[str]) -> TokenizerSettings:
    """Guess the switches of a vocabulary that comes without any, as google's do: cased or uncased.

    It is cased if at least one percent of its entries are words or pieces with capitals and two or
    more letters. Entries such as `[CLS]`, `[unused1]` and `<S>` aren't words.
    """
    words = [token.removeprefix(CONTINUATION) for token in vocabulary]
    num_capitalized = sum(
        len(word) > 1 and word.isalpha() and word != word.lower() for word in words
    )
    return CASED if num_capitalized >= CASED_SHARE * len(words) else UNCASED


def read_switches(
    folder: Path, engine: Object, config: Object, vocabulary: Sequence[str]
) -> TokenizerSettings:
    """Read the switches from `tokenizer_config.json`, else `tokenizer.json`, else guess them.

    Where `strip_accents` isn't set, it follows lowercasing, as in the original BERT.
    """
    normalizer = engine.get("normalizer")
    guessed = guess_switches(vocabulary)

    def read(config_key: str, engine_key: str, default: bool) -> bool:
        value, source = config.get(config_key), CONFIG_FILE
        if value is None and isinstance(normalizer, dict):
            value, source = normalizer.get(engine_key), ENGINE_FILE
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(
                f"{folder / source}: {config_key} must be true or false, got {value!r:.80}"
            )
        return value

    lowercase = read("do_lower_case", "lowercase", guessed.lowercase)
    return TokenizerSettings(
        lowercase=lowercase,
        strip_accents=read("strip_accents", "strip_accents", lowercase),
        split_cjk=read("tokenize_chinese_chars", "handle_chinese_chars", guessed.split_cjk),
    )


def engine_json(vocabulary: Sequence[str], settings: TokenizerSettings) -> str:
    """Return `tokenizer.json`: the engine, with the post-processor that adds [CLS] and [SEP]."""
    engine = build_engine(vocabulary, settings)
    engine.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in OF_BERT]
    )
    engine.post_processor = processors.BertProcessing(
        *((token, vocabulary.index(token)) for token in (OF_BERT.sep, OF_BERT.cls))
    )
    return engine.to_str(pretty=True) + "\n"


def config_content(settings: TokenizerSettings) -> Object:
    """Return `tokenizer_config.json`: the switches under transformers' names."""
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": settings.lowercase,
        "strip_accents": settings.strip_accents,
        "tokenize_chinese_chars": settings.split_cjk,
        "pad_token": OF_BERT.pad,
        "unk_token": OF_BERT.unk,
        "cls_token": OF_BERT.cls,
        "sep_token": OF_BERT.sep,
        "mask_token": OF_BERT.mask,
    }
