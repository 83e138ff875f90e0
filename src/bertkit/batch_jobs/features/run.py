"""Extract features of a file of texts: row n of the output belongs to row n of the input."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError
from bertkit.base.files import check_new_file, durable_file
from bertkit.base.output import refuse_input
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.batch_jobs.embed.manifest import manifest_path
from bertkit.batch_jobs.features.outputs import WRITERS, OutputLayout, format_line
from bertkit.batch_jobs.features.settings import FeaturesSettings
from bertkit.data.tables.texts import open_texts
from bertkit.embeddings.feature_texts import TextOrPair
from bertkit.embeddings.features import FeatureExtractor, TextFeatures
from bertkit.inference.text_encoder import TextCounts

PAIR_SEPARATOR = " ||| "


@dataclass(frozen=True)
class FeaturesResult:
    """The result of feature extraction.

    Attributes:
        output: the file of features; None if they were printed.
        shape: the shape of one token's features.
        counts: statistics of the texts.
        identity: everything that the features depend on.
        engine: the inference engine.
        elapsed_seconds: time without loading the model.
    """

    output: Path | None
    shape: tuple[int, ...]
    counts: TextCounts
    identity: dict[str, Any]
    engine: str
    elapsed_seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Throughput, special tokens included."""
        return self.counts.tokens / max(self.elapsed_seconds, 1e-9)


class FeatureStream:
    """A stream of the features of a file's texts.

    Args:
        model: a folder of any format, a run, or the id of a model of the Hub.
        source: a file of texts, or - for standard input.
        settings: the settings of the extraction.
        device: auto, cpu, cuda or cuda:N.
        revision: a branch, tag or commit of a model of the Hub.

    Attributes:
        table: the texts.
        settings: the settings of the extraction.
        form: the layout of the output.

    Raises:
        MissingFileError: the file or the model doesn't exist.
        SettingsError: the model has no such layer, or another setting doesn't fit it.
        BertkitError: the model can't be loaded, as in `LoadedModel.load`.
    """

    def __init__(
        self,
        model: str | Path,
        source: str | Path,
        settings: FeaturesSettings,
        *,
        device: str = "auto",
        revision: str | None = None,
    ) -> None:
        self.table = open_texts(source, settings)
        self.settings = settings
        self._extractor = FeatureExtractor.load(model, device=device, revision=revision)
        plan, identity = self._extractor.plan(settings), self._extractor.identity(settings)
        self.form = OutputLayout(plan, settings.layout, identity)
        self._counts = TextCounts()
        self._elapsed_seconds = 0.0

    def read(self, progress: ProgressBar | None = None) -> Iterator[TextFeatures]:
        """Yield the features of each text; can be read once."""
        started = time.monotonic()
        texts = self._read_texts(progress)
        yield from self._extractor.stream(texts, self.settings, self._counts)
        self._counts.undecodable = self.table.num_undecodable
        self._elapsed_seconds = time.monotonic() - started

    def summarize(self, output: Path | None) -> FeaturesResult:
        """Return the result, after all features were read."""
        return FeaturesResult(
            output=output,
            shape=self.form.plan.shape,
            counts=self._counts,
            identity=self.form.identity,
            engine=self._extractor.find_engine(self.settings).name,
            elapsed_seconds=self._elapsed_seconds,
        )

    def _read_texts(self, progress: ProgressBar | None) -> Iterator[TextOrPair]:
        for row in self.table.rows():
            if progress is not None:
                progress.advance(row.num_bytes)
            yield split_pair(row.text) if self.settings.pairs else row.text


def split_pair(text: str) -> TextOrPair:
    """Split a text pair at the last ` ||| `; return the text itself if there is none."""
    first, separator, second = text.rpartition(PAIR_SEPARATOR)
    return (first, second) if separator else text


def print_features(stream: FeatureStream, write: Callable[[str], None]) -> FeaturesResult:
    """Write a JSON line for each text; errors as in `FeatureStream.read`."""
    for row, text in enumerate(stream.read()):
        write(format_line(row, text, stream.form))
    return stream.summarize(None)


def write_features(stream: FeatureStream, output: Path) -> FeaturesResult:
    """Write features to a file, and the manifest to `OUTPUT.json`.

    The file is written atomically. The caller must hold its lock.

    Args:
        stream: the texts and the model.
        output: a file whose name ends as a key of `WRITERS`.

    Raises:
        StorageError: writing failed.
        BertkitError: as in `FeatureStream.read`.
    """
    with (
        show_progress("Extracting", stream.table.size_bytes, is_bytes=True) as progress,
        durable_file(output) as file,
    ):
        WRITERS[output.suffix.lower()](file, stream.read(progress), stream.form)
        result = stream.summarize(output)
        # First, so that a process killed between the two leaves no file without its manifest.
        record = file.record()
        manifest = {
            "features": result.identity,
            "input": stream.table.identity(),
            "pairs": stream.settings.pairs,
            "shape": result.shape,
            "counts": asdict(result.counts),
            "size_bytes": record.size_bytes,
            "content_sha256": record.sha256,
        }
        write_checksummed_json(manifest_path(output), manifest)
    return result


def check_output(source: str, output: Path, settings: FeaturesSettings) -> None:
    """Raise an error if the output can't be written or would overwrite other files."""
    ending = output.suffix.lower()
    if ending not in WRITERS:
        raise SettingsError(f"{output} must end with {' or '.join(WRITERS)}, which sets its format")
    if settings.layout == "google" and ending != ".jsonl":
        raise SettingsError(f"layout google is JSONL; {output} must end with .jsonl")
    refuse_input(manifest_path(output), source)
    check_new_file(output, overwrite=settings.overwrite)
    if not _is_orphaned_manifest(output):
        check_new_file(manifest_path(output), overwrite=settings.overwrite)


def _is_orphaned_manifest(output: Path) -> bool:
    """Whether there is a manifest without its file, as a killed command leaves it."""
    if output.exists():
        return False
    try:
        return "features" in read_checksummed_json(manifest_path(output))
    except (MissingFileError, DamagedFileError):
        return False
