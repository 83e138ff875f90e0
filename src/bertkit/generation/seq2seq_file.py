"""`bertkit_seq2seq.json`: settings of an encoder-decoder beside its weights and vocabulary."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from bertkit.base.checksummed_model import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, CheckpointError
from bertkit.base.members import find_member, has_member
from bertkit.checkpoints.file_names import REWRITER_FILE
from bertkit.decoding.settings import DecodingSettings

LIMIT_BYTES = 4 << 20
KindName = Literal["translate", "summarize"]


class Seq2SeqSettingsFile(ChecksummedModel):
    """The content of `bertkit_seq2seq.json`.

    Attributes:
        kind: the task that the model was trained for.
        decoding: the default decoding settings.
        spacing: how pieces are joined into text, as returned by `Spacing.to_dict`.
        max_source_length: maximum number of source tokens, [CLS] and [SEP] included.
        max_target_length: maximum number of target tokens, the end token included.
    """

    description: ClassVar[str] = "the settings of an encoder-decoder"
    limit_bytes: ClassVar[int] = 4 << 20
    error_kind: ClassVar[type[BertkitError]] = CheckpointError

    format_version: Literal[1] = 1
    kind: KindName
    decoding: DecodingSettings
    spacing: dict[str, Any]
    max_source_length: int = Field(ge=3)
    max_target_length: int = Field(ge=1)


def is_seq2seq_model(folder: Path) -> bool:
    """Whether `bertkit finetune translate` or `summarize` wrote this folder."""
    return has_member(folder, REWRITER_FILE)


def write_seq2seq_file(folder: Path, saved: Seq2SeqSettingsFile) -> dict[str, FileRecord]:
    """Write `bertkit_seq2seq.json` and return its record by file name."""
    return {REWRITER_FILE: saved.save(folder / REWRITER_FILE)}


def read_seq2seq_file(folder: Path) -> Seq2SeqSettingsFile:
    """Read the `bertkit_seq2seq.json` of a folder."""
    if not is_seq2seq_model(folder):
        raise CheckpointError(
            f"{folder} has no {REWRITER_FILE}; `bertkit finetune translate` and `bertkit finetune"
            " summarize` write such folders"
        )
    return Seq2SeqSettingsFile.load(find_member(folder, REWRITER_FILE))
