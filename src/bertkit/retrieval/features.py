"""Extract the features of a file of texts, or of many files."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError
from bertkit.base.files import check_new_file, durable_file
from bertkit.base.output import open_output, refuse_input
from bertkit.base.parts import PartsSettings
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.base.settings import select
from bertkit.base.transfers import uploads_output
from bertkit.data.file_parts import FilesResult, FilesSettings, OneOfMany, make_files
from bertkit.data.problems import check_unknown
from bertkit.data.tables.texts import open_texts
from bertkit.data.writers import check_suffix
from bertkit.inference.embeddings.features import FeatureExtractor, TextOrPair
from bertkit.inference.embeddings.settings import FeatureSettings
from bertkit.inference.loading import stamp_model
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.retrieval.feature_writers import FEATURE_WRITERS, FeatureRow, OutputLayout, format_line
from bertkit.retrieval.settings import FeaturesSettings
from bertkit.retrieval.vector_file import manifest_path


@dataclass(frozen=True)
class FeaturesResult:
    """The result of feature extraction."""

    output: Path | None  # None if they were printed
    shape: tuple[int, ...]  # of one token's features
    counts: TextCounts
    identity: dict[str, Any]  # everything that the features depend on
    engine: str
    elapsed_seconds: float  # without loading the model
    tokens_per_second: float  # special tokens included


class FeatureStream:
    """A stream of the features of a file's texts; a source - is standard input."""

    def __init__(
        self,
        model: str | Path | OpenModel,
        source: str | Path,
        settings: FeaturesSettings,
        *,
        is_one_of_many: bool = False,
    ) -> None:
        self.table = open_texts(source, settings)
        self.settings = settings
        self._is_one_of_many = is_one_of_many
        load = FeatureExtractor.take if is_one_of_many else FeatureExtractor.load
        extractor = load(model, select(EngineSettings, settings))
        self._extractor = extractor.with_options(select(FeatureSettings, settings))
        self.form = OutputLayout(
            self._extractor.plan,
            self._extractor.identity,
            has_ids=self.table.id_column is not None,
            is_google=settings.output_format == "google",
        )
        self._counts = TextCounts()
        self._elapsed_seconds = 0.0

    def read(self, progress: ProgressBar | None = None) -> Iterator[FeatureRow]:
        """Yield the id and the features of each text; can be read once."""
        started, separator = time.monotonic(), self.settings.pair_separator
        ids: deque[str | None] = deque()  # of texts whose features aren't there yet

        def read_texts() -> Iterator[TextOrPair]:
            for row in self.table.rows():
                if progress is not None:
                    progress.advance(row.num_bytes)
                ids.append(row.id)
                yield row.text if separator is None else split_pair(row.text, separator)

        for features in self._extractor.stream(read_texts(), counts=self._counts):
            yield ids.popleft(), features
        self._counts.undecodable = self.table.num_undecodable
        if not self._is_one_of_many:
            check_unknown(self.table.name, self._counts.unknown_tokens, self._counts.text_tokens)
        self._elapsed_seconds = time.monotonic() - started

    def summarize(self, output: Path | None) -> FeaturesResult:
        """Return the result, after all features were read."""
        return FeaturesResult(
            output=output,
            shape=self.form.plan.shape,
            counts=self._counts,
            identity=self.form.identity,
            engine=self._extractor.engine.name,
            elapsed_seconds=self._elapsed_seconds,
            tokens_per_second=self._counts.tokens / max(self._elapsed_seconds, 1e-9),
        )


def split_pair(text: str, separator: str) -> TextOrPair:
    """Split a text pair at its last separator; return the text itself if there is none."""
    first, found, second = text.rpartition(separator)
    return (first, second) if found else text


def print_features(stream: FeatureStream, write: Callable[[str], None]) -> FeaturesResult:
    """Write a JSON line for each text; errors as in `FeatureStream.read`."""
    for row, text in enumerate(stream.read()):
        write(format_line(row, text, stream.form))
    return stream.summarize(None)


def extract(
    model: str | Path | OpenModel,
    source: str | Path,
    output: Path,
    settings: FeaturesSettings,
    *,
    is_one_of_many: bool = False,
) -> FeaturesResult:
    """Write the features of each text of a file, atomically, with a manifest beside them."""
    check = partial(check_output, source, settings=settings)
    with open_output(output, "writing features into", inputs=[source], check=check) as place:
        stream = FeatureStream(model, source, settings, is_one_of_many=is_one_of_many)
        with (
            show_progress("Extracting", stream.table.size_bytes, is_bytes=True) as progress,
            durable_file(place) as file,
        ):
            FEATURE_WRITERS[place.suffix.lower()](file, stream.read(progress), stream.form)
            result = stream.summarize(place)
            # First, so that a process killed between the two leaves no file without its manifest.
            record = file.record()
            manifest = {
                "features": result.identity,
                "input": stream.table.identity(),
                "pair_separator": settings.pair_separator,
                "shape": result.shape,
                "counts": asdict(result.counts),
                "size_bytes": record.size_bytes,
                "content_sha256": record.sha256,
            }
            write_checksummed_json(manifest_path(place), manifest)
    return result


@uploads_output()
def extract_files(
    model: str | Path,
    inputs: Sequence[str],
    output: Path,
    settings: FeaturesSettings,
    files: PartsSettings,
) -> FilesResult:
    """Write a file of features for each file of texts into a folder, as `embed_files` does."""
    made_with = {"command": "features", **stamp_model(model, settings.revision)}
    find = partial(FeatureExtractor.find, model, settings.revision)
    named = FilesSettings(**dict(files), output_format=find_extension(settings))
    if settings.output_format != "google":  # the extension is in each output's name
        settings = settings.model_copy(update={"output_format": None})
    run, suffixes = OneOfMany(extract, find, settings), (".parquet", *FEATURE_WRITERS)
    return make_files(run, inputs, output, named, suffixes, made_with, settings)


def find_extension(settings: FeaturesSettings) -> str | None:
    """Return the extension of the format that was asked for; None if none was."""
    return "jsonl" if settings.output_format == "google" else settings.output_format


def check_output(source: str | Path, output: Path, settings: FeaturesSettings) -> None:
    """Raise an error if the output can't be written or would overwrite other files."""
    suffix, asked = check_suffix(output, FEATURE_WRITERS), find_extension(settings)
    if asked not in {None, suffix[1:]}:
        raise SettingsError(f"{output} must end with .{asked} for {settings.output_format}")
    refuse_input(manifest_path(output), source)
    check_new_file(output, overwrite=settings.overwrite)
    is_orphaned = False  # a manifest without its file, as a killed command leaves it
    with suppress(MissingFileError, DamagedFileError):
        is_orphaned = not output.exists() and "features" in read_checksummed_json(
            manifest_path(output)
        )
    if not is_orphaned:
        check_new_file(manifest_path(output), overwrite=settings.overwrite)
