"""Embed a file of texts: vectors in several formats, resumable."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.base.errors import BertkitError, InputError, ResumeError, SettingsError, pluralize
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
    ResumeState,
    UnfinishedVectors,
    check_finite,
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
from bertkit.retrieval.vector_writers import VECTOR_WRITERS, Block, format_rows


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
    was_done: bool = False  # whether the output was complete and nothing was computed
    num_resumed: int = 0  # rows computed by earlier calls
    elapsed_seconds: float = 0.0  # of this call, without loading the model
    tokens_per_second: float = 0.0  # of this call, special tokens included


@uploads_output(files=VECTOR_WRITERS)
def embed(
    model: str | Path | OpenModel,
    source: str | Path | Sequence[str | Path] | TextFiles,
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
    files = source if isinstance(source, TextFiles) else open_text_files(source, settings)

    def check(place: Path) -> None:
        _check_ids(place, files, settings)
        for path in (manifest_path(place), rows_path(place), record_path(place)):
            for named in files.inputs:
                refuse_input(path, named)

    with (
        stop_at_once(lambda: _describe_stop(files, output)),
        open_output(output, "writing", inputs=files.inputs, check=check) as place,
    ):
        if not settings.restart:
            earlier: ResumeState | VectorsManifest | None = read_record(place)
            if earlier is None and place.is_file() and not settings.overwrite:
                earlier = read_manifest(place)
            if earlier is not None:
                settings = keep_precision(settings, earlier.beginning.embedding)
        chosen = select(EmbedderSettings, settings)
        embedder = (Embedder.take if is_one_of_many else Embedder.load)(model, chosen)
        fingerprint = VectorsFingerprint(embedding=embedder.identity, input=files.identity())
        finished = find_finished(
            place, fingerprint, restart=settings.restart, overwrite=settings.overwrite
        )
        if finished is not None and not rows_path(place).exists():
            remove_unfinished(place)  # a leftover record if a job was killed in its last step
            counts = TextCounts(**finished.counts)
            return _summarize(embedder, place, finished.num_rows, counts, was_done=True)
        with UnfinishedVectors.open(
            place, fingerprint, embedder.dimension, restart=settings.restart
        ) as vectors:
            result = _embed_rest(embedder, files, vectors, place)
            unknown = result.counts.unknown_tokens, result.counts.text_tokens
            if is_one_of_many or not is_unknown(*unknown):
                _publish(vectors, place, result.counts, files)
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
    embedder: Embedder, files: TextFiles, write_line: Callable[[str], object]
) -> EmbedResult:
    """Write the vector of each text of a file as a JSONL line, as soon as it is computed.

    The line has no newline yet.
    """
    counts, num_rows, started = TextCounts(), 0, time.monotonic()
    for vectors, rows in embed_rows(embedder, files, counts):
        check_finite(vectors, num_rows)
        ids = [str(row.id) for row in rows] if files.has_ids else None
        for line in format_rows(vectors, num_rows, ids):
            write_line(line)
        num_rows += len(vectors)
    check_unknown(files.name, counts.unknown_tokens, counts.text_tokens)
    seconds = time.monotonic() - started
    rate = counts.tokens / max(seconds, 1e-9)
    return _summarize(
        embedder, None, num_rows, counts, elapsed_seconds=seconds, tokens_per_second=rate
    )


def embed_rows(
    embedder: Embedder, files: TextFiles, counts: TextCounts, *, skip_rows: int = 0
) -> Iterator[tuple[Vectors, list[TextRow]]]:
    """Yield vectors of the texts of a file, some rows at a time, with these rows.

    The counts are updated before; the first `skip_rows` are read but not embedded.
    """
    rows = files.rows()
    num_skipped = sum(1 for _ in islice(rows, skip_rows))
    if num_skipped < skip_rows:
        raise InputError(
            f"{files.name} has {pluralize(num_skipped, 'row')}, and {skip_rows:,} were done before;"
            " start over with --restart"
        )
    waiting: deque[TextRow] = deque()  # without their texts, until their vectors are there

    def read_texts() -> Iterator[str]:
        for row in rows:
            waiting.append(row._replace(text=""))
            yield row.text

    for _, vectors in embedder.stream_windows(embedder.read(read_texts()), counts):
        yield vectors, [waiting.popleft() for _ in vectors]
    counts.undecodable = files.num_undecodable


def _embed_rest(
    embedder: Embedder, files: TextFiles, vectors: UnfinishedVectors, output: Path
) -> EmbedResult:
    """Compute and append the missing rows, showing progress."""
    before = vectors.state
    counts = TextCounts(**before.counts)
    num_tokens, started = counts.tokens, time.monotonic()
    total = None if files.size_bytes is None else files.size_bytes - before.num_bytes
    with show_progress("Embedding", total, is_bytes=True) as progress:
        for block, rows in embed_rows(embedder, files, counts, skip_rows=before.num_rows):
            num_bytes = sum(row.num_bytes for row in rows)
            vectors.append(block, num_bytes, asdict(counts))
            progress.advance(num_bytes)
    if files.identity() != before.beginning.input:
        raise ResumeError(f"{files.name} changed while it was read; start over with --restart")
    seconds = time.monotonic() - started
    return _summarize(
        embedder,
        output,
        vectors.state.num_rows,
        counts,
        num_resumed=before.num_rows,
        elapsed_seconds=seconds,
        tokens_per_second=(counts.tokens - num_tokens) / max(seconds, 1e-9),
    )


def _check_ids(output: Path, files: TextFiles, settings: EmbedSettings) -> None:
    """Raise an error if the form of the output is unknown, or has no room for ids asked for."""
    suffix = check_suffix(output, VECTOR_WRITERS)
    if settings.id_column is None:
        return
    if VECTOR_WRITERS[suffix] is None:
        raise SettingsError(f"{output} has no room for ids; write .parquet or .jsonl")
    if files.identity() is None:
        raise SettingsError(
            f"the ids of {files.name} are read after its texts, and it can be read once; write it"
            " to a file, or print the vectors"
        )


def _publish(
    vectors: UnfinishedVectors, output: Path, counts: TextCounts, files: TextFiles
) -> None:
    """Write the output from the rows, and its manifest.

    The manifest is written first: an output that doesn't match it isn't finished, and as long as
    the rows exist the same command writes both again.
    """
    vectors.finish()
    write, state = VECTOR_WRITERS[check_suffix(output, VECTOR_WRITERS)], vectors.state

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

    def name_rows(blocks: Iterator[Vectors]) -> Iterator[Block]:
        rows = files.rows() if files.has_ids else None
        first = 0
        for block in blocks:
            ids = None if rows is None else [str(row.id) for row in islice(rows, len(block))]
            yield first, block, ids
            first += len(block)

    if write is None:
        describe(*measure_file(vectors.path)).save(manifest_path(output))
        vectors.become(output)
        return
    with durable_file(output) as file, show_progress("Writing", state.num_rows) as progress:
        blocks = name_rows(vectors.blocks(progress))
        write(file, blocks, vectors.dimension, state.beginning.embedding)
        record = file.record()
        describe(record.size_bytes, record.head_crc32).save(manifest_path(output))


def _summarize(
    embedder: Embedder, output: Path | None, num_rows: int, counts: TextCounts, **measured: Any
) -> EmbedResult:
    return EmbedResult(
        output=output,
        num_rows=num_rows,
        dimension=embedder.dimension,
        counts=counts,
        engine=embedder.engine.name,
        precision=embedder.engine.precision,
        max_length=embedder.text_encoder.max_length,
        **measured,
    )


def _describe_stop(files: TextFiles, output: Path) -> str:
    """Describe the progress and how to resume."""
    if files.size_bytes is None:
        return f"stopped; {files.name} can't be read again, so the job can't be resumed"
    state = None
    with suppress(BertkitError):  # the signal is reported in any case
        state = read_record(find_place(output))
    num_rows = 0 if state is None else state.num_rows
    return f"stopped with {pluralize(num_rows, 'row')} of {output} saved; the same command resumes"
