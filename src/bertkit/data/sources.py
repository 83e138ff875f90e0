"""The sources of a corpus: files, standard input, and texts in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from bertkit.base.errors import InputError, MissingFileError, StorageError
from bertkit.base.remote import RemoteFile
from bertkit.base.settings import Settings
from bertkit.data.encodings import Encoding, MaxBroken
from bertkit.data.input_files import (
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    FileId,
    distinguish,
    find_extension,
    find_files,
    look_at,
)
from bertkit.data.tables.formats import find_format
from bertkit.data.tables.settings import FORMAT, TableSettings
from bertkit.data.tables.texts import MEMORY, TextTable

CorpusFormat = Literal["auto", "text", "jsonl", "csv", "tsv", "parquet", "mediawiki"]


class ReaderSettings(Settings):
    """Settings of every command that reads a corpus."""

    encoding: Encoding = None
    format: CorpusFormat = Field(default="auto", description=FORMAT)
    text_column: str = Field(default="text", description="Column, or field of JSON, of the texts.")
    max_broken: MaxBroken = 1.0


@dataclass
class TextSource(TextTable):
    """A table of texts that a corpus joins into documents; its format is of `CorpusFormat`.

    Attributes:
        is_held_out: whether all of its documents are held out.
        refusal: why it is skipped, as a key of `OUTCOMES` and a cause; None if it is read.
    """

    sha256: str | None = None  # of texts in memory
    is_held_out: bool = False
    refusal: tuple[str, str] | None = field(default=None, init=False, compare=False)
    own_name: str = field(default="", init=False, compare=False)  # without its folder

    def refuse(self, name: str, cause: str) -> None:
        """Mark this source as skipped, with a size of 0 bytes."""
        self.refusal, self.size_bytes = (name, cause), 0


CorpusInput = str | TextSource
SourceId = FileId | Path | RemoteFile | None  # for finding duplicates


def memory_source(texts: Sequence[str]) -> TextSource:
    """Return texts as a source; the SHA-256 tells other texts of the same length apart."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode(errors="surrogatepass"))
    return TextSource(
        "texts", MEMORY, size_bytes=sum(map(len, texts)), texts=texts, sha256=digest.hexdigest()
    )


def find_sources(
    inputs: Sequence[CorpusInput],
    settings: ReaderSettings,
    held_out_inputs: Sequence[CorpusInput] = (),
) -> list[TextSource]:
    """Return all sources that the inputs name, in input order, with folders sorted.

    Held-out inputs come last, and what they name isn't read as part of the other inputs.
    """
    if not inputs:
        raise InputError("no input: name files, folders, globs or -")
    sources: list[TextSource] = []
    found: dict[SourceId, str] = {}
    taken: set[str] = set()
    held_out = [(argument, list(_find(argument, settings))) for argument in held_out_inputs]
    excluded = {identity for _, pairs in held_out for _, identity in pairs}
    named = [(argument, _find(argument, settings)) for argument in inputs]
    for position, (argument, pairs) in enumerate([*named, *held_out]):
        is_held_out = position >= len(named)
        here: set[SourceId] = set()
        for source, identity in pairs:
            if not is_held_out and identity in excluded:
                continue
            source.is_held_out = is_held_out
            if identity in here:
                source.refuse("repeated-file", f"it is {found[identity]}")
            elif identity in found:
                raise InputError(
                    f"{source.path or argument} would be read twice, as {found[identity]} and as"
                    f" {source.name}; name it once"
                )
            here.add(identity)
            found.setdefault(identity, source.name)
            source.own_name = source.own_name or source.name
            source.name = distinguish(source.name, taken)
            sources.append(source)
    return sources


def _find(argument: CorpusInput, settings: ReaderSettings) -> Iterator[tuple[TextSource, SourceId]]:
    """Yield the sources that one input names, each with its identity for finding duplicates."""
    if isinstance(argument, TextSource):
        yield argument, argument.sha256
        return
    reading = TableSettings(encoding=settings.encoding)
    chosen: str | None = None if settings.format == "auto" else settings.format
    if argument == STANDARD_INPUT:
        yield TextSource(STANDARD_INPUT_NAME, chosen or "text", reading=reading), argument
        return
    for path, name in find_files(argument):
        known = chosen or find_format(path, get_args(CorpusFormat)) or "text"
        source = TextSource(name, known, path, reading, size_bytes=0)
        source.own_name = name.partition("/")[2]
        identity: SourceId = path
        with suppress(MissingFileError, StorageError):  # reading it will report and count the error
            state = look_at(path)
            source.size_bytes, identity = state.size_bytes, state.file_id
            is_pipe = state.size_bytes is None and isinstance(path, Path)
            if is_pipe and path != Path(argument):  # one inside a folder might never end
                source.refuse("unreadable-file", "not a regular file")
            elif chosen is None and (advice := NOT_TEXT.get(find_extension(path))):
                source.refuse("not-text", advice)
        yield source, identity
