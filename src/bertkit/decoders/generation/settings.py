"""Settings for continuing and summarizing texts; the file that marks an encoder-decoder folder."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, CheckpointError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import Settings
from bertkit.decoders.decoding.settings import DecodingSettings


class GeneratorSettings(DecodingSettings):
    """How the next tokens are chosen; by default the likeliest, 64 at most."""

    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        default=64,
        description="Maximum number of tokens to generate, the end token included; never more"
        " than the model's maximum length.",
    )


DEFAULT_SENTENCES = 3
LENGTHS = ("sentences", "share", "words")
MAX_SENTENCES = 1000  # per summary; each one is compared with all sentences of the text


class SummarySettings(Settings):
    """How long a summary is, and how its sentences are chosen."""

    sentences: Annotated[int, Field(ge=1, le=MAX_SENTENCES)] | None = Field(
        default=None,
        description="Sentences of a summary, if neither share nor words are given; by default 3.",
    )
    share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="Share of the sentences to extract, such as 0.2; at least one sentence, and at"
        f" most {MAX_SENTENCES:,}.",
    )
    words: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Maximum words of a summary. If no sentence is short enough, the shortest is"
        " taken. In scripts without spaces between words, characters are counted.",
    )
    diversity: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.3,
        description="Penalty for sentences similar to ones already taken, from 0 to 1.",
    )
    position: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="Weight of a sentence's position, from 0 to 1: useful for news, whose first"
        " sentences matter most.",
    )
    language: str = Field(default="en", description="ISO 639-1 code, for sentence splitting.")

    @model_validator(mode="after")
    def _has_one_length(self) -> Self:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; give one of them")
        return self


REWRITER_FILE = "bertkit_seq2seq.json"
KindName = Literal["translate", "summarize"]


class Seq2SeqSettingsFile(ChecksummedModel):
    """The content of `bertkit_seq2seq.json`."""

    description: ClassVar[str] = "the settings of an encoder-decoder"
    limit_bytes: ClassVar[int] = 4 << 20
    error_kind: ClassVar[type[BertkitError]] = CheckpointError

    format_version: Literal[1] = 1
    kind: KindName  # the task that the model was trained for
    decoding: DecodingSettings
    spacing: dict[str, Any]  # how pieces are joined into text, by `Spacing.to_dict`
    max_source_length: int = Field(ge=3)  # in tokens, [CLS] and [SEP] included
    max_target_length: int = Field(ge=1)  # in tokens, the end token included


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
