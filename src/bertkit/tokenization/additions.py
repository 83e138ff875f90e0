"""What a folder adds to a vocabulary or to BERT's algorithm, and bertkit would pass over.

transformers cuts a text at added tokens before WordPiece sees it. They stand in up to three files:
`tokenizer.json`, `tokenizer_config.json`, and of the first years `added_tokens.json`. All five
special tokens are usually among them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertkit.base.errors import InputError
from bertkit.tokenization.engine import SPECIAL_TOKENS

ADDED_FILE = "added_tokens.json"
# Classes of transformers that are BERT's WordPiece, and no more. Japanese ones cut words first.
CLASSES = tuple(
    f"{model}Tokenizer{suffix}"
    for model in ("Bert", "DistilBert", "Electra")
    for suffix in ("", "Fast")
)


def check_class(config: Mapping[str, Any], path: Path) -> None:
    """Refuse a `tokenizer_config.json` whose class isn't BERT's, where nothing else tells."""
    name = config.get("tokenizer_class")
    if name not in (None, *CLASSES):
        raise InputError(
            f"{path}: tokenizer_class must be {CLASSES[0]!r}, got {name!r:.80}, and there is no"
            " tokenizer.json that says what it does"
        )


def list_added(
    engine: Mapping[str, Any], engine_path: Path, config: Mapping[str, Any], config_path: Path
) -> list[tuple[Path, Any, Any]]:
    """The added tokens of `tokenizer.json` and `tokenizer_config.json`: file, token, id."""
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
    """Refuse added tokens, which we would cut into pieces; the special ones may be listed.

    Args:
        added: file, token and id of each; in JSON an id that is a key is a text.
        vocabulary: the entries.
    """
    ids = {token: str(index) for index, token in enumerate(vocabulary)}
    for path, content, index in added:
        if ids.get(str(content)) != str(index):
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't entry {index!r:.80} of the"
                " vocabulary; bertkit knows no tokens beside it"
            )
        if content not in SPECIAL_TOKENS:
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't one of BERT's special tokens, and"
                " bertkit would cut it into pieces; remove it there if that is meant"
            )
