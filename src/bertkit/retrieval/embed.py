"""Embed a file of texts: vectors in several formats, resumable."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bertkit.base import storage
from bertkit.base.errors import (
    BertkitError,
    InputError,
    ResumeError,
    SettingsError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import durable_file
from bertkit.base.output import find_place, open_output, refuse_input
from bertkit.base.progress import show_progress
from bertkit.base.settings import select
from bertkit.base.signals import stop_at_once
from bertkit.base.transfers import uploads_output
from bertkit.data.file_parts import FilesResult, FilesSettings, OneOfMany, make_files
from bertkit.data.problems import check_unknown, is_unknown
from bertkit.data.tables.text_files import TextFiles, open_text_files
from bertkit.data.tables.texts import TextRow
from bertkit.data.writers import check_suffix
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.loading import stamp_model
from bertkit.inference.stream import TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.retrieval.settings import EmbedSettings
from bertkit.retrieval.unfinished_vectors import (
    VECTOR_WRITERS,
    ResumeState,
    UnfinishedVectors,
    check_finite,
    format_rows,
    read_record,
    record_path,
    remove_unfinished,
    rows_path,
)
from bertkit.retrieval.vector_file import (
    Vectors,
    VectorsFingerprint,
    VectorsManifest,
    find_finished,
    keep_precision,
    manifest_path,
    measure_file,
    read_manifest,
)


@dataclass(frozen=True)
class EmbedResult:
    """The result of an embedding job."""

    output: Path | None  # None if they were printed
    num_rows: int
    dimension: int
    counts: TextCounts  # of all texts, including those of earlier calls
    engine: str
    precision: str
    max_length: int  # in tokens, of a text or of a part of it
    was_done: bool  # whether the output was complete and nothing was computed
    num_resumed: int  # rows computed by earlier calls
    elapsed_seconds: float  # of this call, without loading the model
    tokens_per_second: float  # of this call, special tokens included

    @classmethod
    def of(
        cls,
        embedder: Embedder,
        output: Path | None,
        num_rows: int,
        counts: TextCounts,
        *,
        started: float | None = None,
        resumed: ResumeState | None = None,
    ) -> Self:
        """Return the result of a job that `started` then, of `time.monotonic`; None: was done."""
        seconds = 0.0 if started is None else time.monotonic() - started
        num_before = 0 if resumed is None else resumed.counts.get("tokens", 0)
        return cls(
            output=output,
            num_rows=num_rows,
            dimension=embedder.dimension,
            counts=counts,
            engine=embedder.engine.name,
            precision=embedder.engine.precision,
            max_length=embedder.text_encoder.max_length,
            was_done=started is None,
            num_resumed=0 if resumed is None else resumed.num_rows,
            elapsed_seconds=seconds,
            tokens_per_second=(counts.tokens - num_before) / max(seconds, 1e-9),
        )


@uploads_output(files=VECTOR_WRITERS)
def embed(
    model: str | Path | OpenModel,
    source: str | Path | Sequence[str | Path],
    output: Path,
    settings: EmbedSettings = EmbedSettings(),  # noqa: B008
    *,
    is_one_of_many: bool = False,
) -> EmbedResult:
    """Write a vector for each text of a file, or resume an unfinished job.

    The source is a file of texts, a folder, a glob, or several of these; or - for standard input.
    `output` ends with .npy, .parquet or .jsonl, and is written atomically, with a manifest beside
    it. With precision auto, unfinished or finished work keeps its own. A `ResumeError` says that
    the job was started with another model, other settings or another input, or that another process
    is running it; a `StoppedError` says how to resume. A file of which no word is in the vocabulary
    is an error, but of one of many files it is written. The model of these is kept.
    """
    files = open_text_files(source, settings)

    def check(place: Path) -> None:
        suffix = check_suffix(place, VECTOR_WRITERS)
        if settings.id_column is not None and VECTOR_WRITERS[suffix] is None:
            raise SettingsError(f"{place} has no room for ids; write .parquet or .jsonl")
        for path in (manifest_path(place), rows_path(place), record_path(place)):
            for named in files.inputs:
                refuse_input(path, named)

    with (
        stop_at_once(lambda: _describe_stop(files, output)),
        open_output(output, "writing", inputs=files.inputs, check=check) as place,
    ):
        if not settings.overwrite:
            earlier: ResumeState | VectorsManifest | None = read_record(place)
            if earlier is None and place.is_file():
                earlier = read_manifest(place)
            if earlier is not None:
                settings = keep_precision(settings, earlier.beginning.embedding)
        chosen = select(EmbedderSettings, settings)
        embedder = (Embedder.take if is_one_of_many else Embedder.load)(model, chosen)
        fingerprint = VectorsFingerprint(embedding=embedder.identity, input=files.identity())
        finished = find_finished(place, fingerprint, overwrite=settings.overwrite)
        if finished is not None and not rows_path(place).exists():
            remove_unfinished(place)  # a leftover record if a job was killed in its last step
            return EmbedResult.of(embedder, place, finished.num_rows, TextCounts(**finished.counts))
        with UnfinishedVectors.open(
            place,
            fingerprint,
            embedder.dimension,
            has_ids=files.has_ids and VECTOR_WRITERS[place.suffix.lower()] is not None,
            overwrite=settings.overwrite,
        ) as vectors:
            result = _embed_rest(embedder, files, vectors, place)
            unknown = result.counts.unknown_tokens, result.counts.text_tokens
            if is_one_of_many or not is_unknown(*unknown):
                _publish(vectors, place, result.counts)
        remove_unfinished(place)
        if not is_one_of_many:
            check_unknown(files.name, *unknown)
    return result


@uploads_output()
def embed_files(
    model: str | Path,
    inputs: Sequence[str],
    output: Path,
    settings: EmbedSettings = EmbedSettings(),  # noqa: B008
    files: FilesSettings = FilesSettings(),  # noqa: B008
) -> FilesResult:
    """Write a file of vectors for each file of texts into a folder, those that are missing.

    Inputs are files, folders and globs. An error of one file is raised when the others are done.
    """
    made_with = {"command": "embed", **stamp_model(model, settings.revision)}
    find, suffixes = partial(Embedder.find, model, settings.revision), (".npy", *VECTOR_WRITERS)
    run = OneOfMany(embed, find, settings)
    return make_files(run, inputs, output, files, suffixes, made_with, settings)


def embed_lines(
    embedder: Embedder, files: TextFiles, write_line: Callable[[str], None]
) -> EmbedResult:
    """Write the vector of each text of a file as a JSONL line, as soon as it is computed.

    The line has no newline yet.
    """
    counts, num_rows, started = TextCounts(), 0, time.monotonic()
    for vectors, rows in embed_rows(embedder, files.rows(), counts):
        check_finite(vectors, num_rows)
        ids = [str(row.id) for row in rows] if files.has_ids else None
        for line in format_rows(vectors, num_rows, ids):
            write_line(line)
        num_rows += len(vectors)
    counts.undecodable = files.num_undecodable
    check_unknown(files.name, counts.unknown_tokens, counts.text_tokens)
    return EmbedResult.of(embedder, None, num_rows, counts, started=started)


def embed_rows(
    embedder: Embedder, rows: Iterable[TextRow], counts: TextCounts
) -> Iterator[tuple[Vectors, list[TextRow]]]:
    """Yield vectors of the texts of rows, some at a time, with these rows; update the counts."""
    waiting: deque[TextRow] = deque()  # without their texts, until their vectors are there

    def read_texts() -> Iterator[str]:
        for row in rows:
            waiting.append(row._replace(text=""))
            yield row.text

    for _, vectors in embedder.stream_windows(embedder.read(read_texts()), counts):
        yield vectors, [waiting.popleft() for _ in vectors]


def _embed_rest(
    embedder: Embedder, files: TextFiles, vectors: UnfinishedVectors, output: Path
) -> EmbedResult:
    """Compute and append the missing rows, showing progress."""
    rows, before, started = files.rows(), vectors.state, time.monotonic()
    counts = TextCounts(**before.counts)
    num_skipped = vectors.skip(rows)
    if num_skipped < before.num_rows:
        raise InputError(
            f"{files.name} has {pluralize(num_skipped, 'row')}, and {before.num_rows:,} were done"
            " before; start over with --overwrite"
        )
    total = None if files.size_bytes is None else files.size_bytes - before.num_bytes
    with show_progress("Embedding", total, is_bytes=True) as progress:
        for block, named in embed_rows(embedder, rows, counts):
            progress.advance(vectors.append(block, named, asdict(counts)))
    counts.undecodable = files.num_undecodable
    if files.identity() != before.beginning.input:
        raise ResumeError(f"{files.name} changed while it was read; start over with --overwrite")
    return EmbedResult.of(
        embedder, output, vectors.state.num_rows, counts, started=started, resumed=before
    )


def _publish(vectors: UnfinishedVectors, output: Path, counts: TextCounts) -> None:
    """Write the output from the rows, and its manifest.

    The manifest is written first: an output that doesn't match it isn't finished, and as long as
    the rows exist the same command writes both again.
    """
    vectors.finish()
    write, state = VECTOR_WRITERS[output.suffix.lower()], vectors.state

    def describe(size_bytes: int, head_crc32: int) -> VectorsManifest:
        return VectorsManifest(
            beginning=state.beginning,
            num_rows=state.num_rows,
            dimension=vectors.dimension,
            counts=asdict(counts),
            rows_crc32=state.rows_crc32,
            size_bytes=size_bytes,
            head_crc32=head_crc32,
        )

    if write is None:
        describe(*measure_file(vectors.path)).save(manifest_path(output))
        with storage_errors(output, "written"):
            storage.rename(vectors.path, output)
            storage.sync_folder(output.parent)
        return
    with durable_file(output) as file, show_progress("Writing", state.num_rows) as progress:
        write(file, vectors.blocks(progress), vectors.dimension, state.beginning.embedding)
        record = file.record()
        describe(record.size_bytes, record.head_crc32).save(manifest_path(output))


def _describe_stop(files: TextFiles, output: Path) -> str:
    """Describe the progress and how to resume."""
    if files.size_bytes is None:
        return f"stopped; {files.name} can't be read again, so the job can't be resumed"
    state = None
    with suppress(BertkitError):  # the signal is reported in any case
        state = read_record(find_place(output))
    num_rows = 0 if state is None else state.num_rows
    return f"stopped with {pluralize(num_rows, 'row')} of {output} saved; the same command resumes"
