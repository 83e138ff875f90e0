"""Settings for continuing and summarizing texts; the file that marks an encoder-decoder folder."""

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, CheckpointError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import NO_FLAG, Count, Settings
from bertkit.decoders.decoding.settings import DecodingSettings


class GeneratorSettings(DecodingSettings):
    """How the next tokens are chosen; by default the likeliest, 64 at most."""

    max_tokens: Count | None = Field(
        default=64,
        description="Maximum number of tokens to generate, the end token included.",
    )


LENGTH = re.compile(
    r"(?P<sentences>\d{1,9})|(?P<percent>\d{1,3}(\.\d+)?) ?%|(?P<words>\d{1,9}) words?", re.ASCII
)
MAX_SENTENCES = 1000  # per summary; each one is compared with all sentences of the text


class SummaryLength(NamedTuple):
    """The length of an extractive summary: one of these."""

    sentences: int | None = None
    share: float | None = None  # of the sentences, and at least one
    words: int | None = None  # at most; characters in scripts without spaces between words


class SummarySettings(Settings):
    """How long an extractive summary is, and how its sentences are chosen."""

    length: Annotated[str | int, BeforeValidator(str)] = Field(
        default="3",
        description="Length of an extracted summary: a number of sentences (3), a share of them"
        " (20%), or the most words ('100 words').",
    )
    diversity: Annotated[float, Field(ge=0, le=1), NO_FLAG] = Field(
        default=0.3,
        description="Penalty for sentences similar to ones already taken, from 0 to 1.",
    )
    language: str = Field(
        default="en", description="Language of the text, for splitting it into sentences."
    )

    def parse_length(self) -> SummaryLength:
        """Return what `length` says.

        Raises:
            ValueError: it says none, or one that is too small or large.
        """
        if found := LENGTH.fullmatch(str(self.length)):
            sentences, percent, words = found["sentences"], found["percent"], found["words"]
            if sentences and 1 <= int(sentences) <= MAX_SENTENCES:
                return SummaryLength(sentences=int(sentences))
            if percent and 0 < float(percent) <= 100:
                return SummaryLength(share=float(percent) / 100)
            if words and int(words):
                return SummaryLength(words=int(words))
        raise ValueError(
            f"{self.length!r:.40} is no length; give a number of sentences up to {MAX_SENTENCES:,}"
            " (3), a share of them (20%), or the most words ('100 words')"
        )

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        self.parse_length()
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

    @field_validator("decoding", mode="before")
    @classmethod
    def _read_earlier(cls, decoding: JsonValue) -> JsonValue:
        """Read the decoding of earlier versions, which had `sample` and `early_stop`."""
        if isinstance(decoding, dict) and "sample" in decoding:
            dropped = {"sample", "early_stop"} | (set() if decoding["sample"] else {"temperature"})
            return {name: value for name, value in decoding.items() if name not in dropped}
        return decoding


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
