"""`bertkit_seq2seq.json`: settings of an encoder-decoder beside its weights and vocabulary."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.file_names import REWRITER_FILE
from bertkit.decoding.settings import DecodingSettings

LIMIT_BYTES = 4 << 20
KindName = Literal["translate", "summarize"]


class Seq2SeqSettingsFile(BaseModel):
    """The content of `bertkit_seq2seq.json`.

    Attributes:
        kind: the task that the model was trained for.
        decoding: the default decoding settings.
        spacing: how pieces are joined into text, as returned by `Spacing.to_dict`.
        max_source_length: maximum number of source tokens, [CLS] and [SEP] included.
        max_target_length: maximum number of target tokens, the end token included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    content = saved.model_dump(mode="json")
    return {REWRITER_FILE: write_checksummed_json(folder / REWRITER_FILE, content)}


def read_seq2seq_file(folder: Path) -> Seq2SeqSettingsFile:
    """Read the `bertkit_seq2seq.json` of a folder."""
    if not is_seq2seq_model(folder):
        raise CheckpointError(
            f"{folder} has no {REWRITER_FILE}; `bertkit finetune translate` and `bertkit finetune"
            " summarize` write such folders"
        )
    path = find_member(folder, REWRITER_FILE)
    try:
        return Seq2SeqSettingsFile.model_validate(
            read_checksummed_json(path, limit_bytes=LIMIT_BYTES)
        )
    except ValidationError as error:
        raise CheckpointError(f"{path}: {describe_validation(error)}") from None
