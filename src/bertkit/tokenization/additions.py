"""Checks for added tokens and tokenizer classes that bertkit doesn't support.

transformers splits a text at added tokens before WordPiece runs. They are listed in up to three
files: `tokenizer.json`, `tokenizer_config.json`, and in old folders `added_tokens.json`. All five
special tokens are usually among them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertkit.base.errors import InputError
from bertkit.tokenization.engine import SPECIAL_TOKENS

ADDED_FILE = "added_tokens.json"
# transformers' classes that are exactly BERT's WordPiece; the Japanese ones first split words.
CLASSES = tuple(
    f"{model}Tokenizer{suffix}"
    for model in ("Bert", "DistilBert", "Electra")
    for suffix in ("", "Fast")
)


def check_class(config: Mapping[str, Any], path: Path) -> None:
    """Reject a `tokenizer_config.json` whose class isn't BERT's; for folders without an engine."""
    name = config.get("tokenizer_class")
    if name not in (None, *CLASSES):
        raise InputError(
            f"{path}: tokenizer_class must be {CLASSES[0]!r}, got {name!r:.80}, and there is no"
            " tokenizer.json that defines it"
        )


def list_added(
    engine: Mapping[str, Any], engine_path: Path, config: Mapping[str, Any], config_path: Path
) -> list[tuple[Path, Any, Any]]:
    """List added tokens of `tokenizer.json` and `tokenizer_config.json` as (file, token, id)."""
    listed = engine.get("added_tokens") or []
    if not isinstance(listed, list) or not all(isinstance(token, dict) for token in listed):
        raise InputError(f"{engine_path}: added_tokens must be a list of objects")
    by_id = config.get("added_tokens_decoder") or {}
    if not isinstance(by_id, dict) or not all(isinstance(token, dict) for token in by_id.values()):
        raise InputError(f"{config_path}: added_tokens_decoder must map ids to objects")
    return [
        *((engine_path, token.get("content"), token.get("id")) for token in listed),
        *((config_path, token.get("content"), index) for index, token in by_id.items()),
    ]


def check_added(added: Iterable[tuple[Path, Any, Any]], vocabulary: Iterable[str]) -> None:
    """Reject added tokens other than the special ones, because bertkit would split them.

    Args:
        added: file, token and id of each; an id that was a JSON key is a string.
        vocabulary: the entries.
    """
    ids = {token: str(index) for index, token in enumerate(vocabulary)}
    for path, content, index in added:
        if ids.get(str(content)) != str(index):
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't entry {index!r:.80} of the"
                " vocabulary; bertkit doesn't support tokens outside of it"
            )
        if content not in SPECIAL_TOKENS:
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't one of BERT's special tokens, and"
                " bertkit would split it into pieces; remove it there if that is intended"
            )
