"""A tokenizer that needs no training, and files for it."""

import string
from pathlib import Path

from bertkit.base.parts import WorkersSettings
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer


def letters_tokenizer() -> Tokenizer:
    """One whose pieces are letters, digits and the full stop."""
    letters = [*string.ascii_lowercase, *string.digits, "."]
    return Tokenizer([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])


def write_letters(folder: Path, names: str, num_documents: int) -> None:
    """Make a folder with one file for each letter of `names`, of documents of three sentences."""
    folder.mkdir()
    for name in names:
        documents = [
            f"file {name} has document {number}. it goes on.\nand it ends here.\n"
            for number in range(num_documents)
        ]
        (folder / f"{name}.txt").write_text("\n".join(documents))


def prepare_corpus(
    corpus: Path,
    output: Path,
    tokenizer: Path | None = None,
    *,
    held_out: float = 0.1,
    workers: int = 1,
) -> None:
    """Make shards of a file or folder, by default with the tokenizer beside it."""
    prepare(
        [str(corpus)],
        tokenizer or corpus.with_name("tokenizer"),
        output,
        PrepareSettings(held_out=held_out),
        workers=WorkersSettings(workers=workers),
    )
