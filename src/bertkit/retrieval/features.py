"""Extract features of a file of texts, in several formats."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError
from bertkit.base.files import DurableFile, check_new_file, durable_file
from bertkit.base.output import open_output, refuse_input
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.base.settings import select
from bertkit.base.transfers import uploads_output
from bertkit.data.file_parts import FilesResult, FilesSettings, make_files
from bertkit.data.problems import check_unknown
from bertkit.data.tables.texts import open_texts
from bertkit.data.writers import build_schema, check_suffix, write_lines, write_tables
from bertkit.inference.embeddings.features import (
    Array,
    FeatureExtractor,
    FeaturePlan,
    TextFeatures,
    TextOrPair,
)
from bertkit.inference.embeddings.settings import FeatureSettings
from bertkit.inference.loading import load_once, stamp_model
from bertkit.inference.stream import TextCounts
from bertkit.retrieval.settings import FeaturesSettings
from bertkit.retrieval.vector_file import manifest_path

if TYPE_CHECKING:
    import pyarrow as pa

DECIMALS = 6  # as in google-research/bert's script
GROUP_BYTES = 64 << 20  # of features, in one row group of Parquet


@dataclass(frozen=True)
class OutputLayout:
    """The layout of the output."""

    plan: FeaturePlan
    layout: str  # bertkit or google
    identity: dict[str, Any]  # everything that the features depend on

    @property
    def column_names(self) -> tuple[str, ...]:
        """`features`; or one column per layer, such as `layer_12`, if layers aren't combined."""
        if self.plan.combine != "none":
            return ("features",)
        return tuple(f"layer_{layer}" for layer in self.plan.layers)

    def cut_columns(self, features: Array) -> dict[str, Array]:
        """Split features into columns by name, each `[tokens, width]`."""
        if self.plan.combine != "none":
            return {"features": features}
        return {name: features[:, number] for number, name in enumerate(self.column_names)}


def format_line(row: int, text: TextFeatures, form: OutputLayout) -> str:
    """Format a row as JSON, without the newline; row 0 is the first."""
    if form.layout == "google":
        return _format_google_line(row, text, form.plan)
    encoding = text.encoding
    fields = {
        "row": str(row),
        "tokens": json.dumps(encoding.tokens, ensure_ascii=False),
        "token_type_ids": json.dumps(encoding.token_type_ids),
        "offsets": json.dumps(encoding.offsets),
        "truncated": json.dumps(text.is_truncated),
    }
    for name, features in form.cut_columns(text.features).items():
        fields[name] = _format_matrix(features)
    fields["c"] = _format_matrix(text.sequence[None])[1:-1]
    fields["c_from"] = json.dumps(form.identity["sequence_from"])
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


def _format_matrix(matrix: Array) -> str:
    """Format a matrix as nested lists; numbers in their shortest float32 round-trip form."""
    import pyarrow as pa

    numbers = pa.array(matrix.ravel()).cast(pa.string()).to_pylist()
    width = matrix.shape[1]
    rows = (numbers[start : start + width] for start in range(0, len(numbers), width))
    return "[" + ", ".join(f"[{', '.join(row)}]" for row in rows) + "]"


def _format_google_line(row: int, text: TextFeatures, plan: FeaturePlan) -> str:
    """Format a row as google-research/bert does; an index is the layer number as requested."""
    values = np.round(text.features.astype(np.float64), DECIMALS).tolist()
    features = [
        {
            "token": token,
            "layers": [
                {"index": index, "values": layer}
                for index, layer in zip(plan.requested, layers, strict=True)
            ],
        }
        for token, layers in zip(text.encoding.tokens, values, strict=True)
    ]
    return json.dumps({"linex_index": row, "features": features}, ensure_ascii=False)


def write_jsonl(file: DurableFile, texts: Iterable[TextFeatures], form: OutputLayout) -> None:
    """Write one JSON line per text."""
    write_lines(file, (format_line(row, text, form) for row, text in enumerate(texts)))


def write_parquet(file: DurableFile, texts: Iterable[TextFeatures], form: OutputLayout) -> None:
    """Write one row per text with lists of token features; the identity is in the metadata."""
    schema = choose_schema(form)
    vectors = [f"{name}.list.element.list.element" for name in form.column_names]
    write_tables(
        file,
        schema,
        (build_table(group, row, form, schema) for row, group in cut_groups(texts)),
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=[*vectors, "c.list.element"],  # a seventh smaller, not slower
    )


def cut_groups(texts: Iterable[TextFeatures]) -> Iterator[tuple[int, list[TextFeatures]]]:
    """Yield row groups of Parquet of about `GROUP_BYTES`, with the number of their first row."""
    group: list[TextFeatures] = []
    row = num_bytes = 0
    for text in texts:
        group.append(text)
        num_bytes += text.features.nbytes
        if num_bytes >= GROUP_BYTES:
            yield row, group
            row, group, num_bytes = row + len(group), [], 0
    if group:
        yield row, group


def choose_schema(form: OutputLayout) -> "pa.Schema":
    """Return the Parquet schema.

    | column | type |
    | --- | --- |
    | `row` | int64 |
    | `tokens` | list<string> |
    | `token_type_ids`, `starts`, `ends` | list<int32> |
    | `truncated` | bool |
    | `features`, or `layer_12` … | list<fixed_size_list<float>> |
    | `c` | fixed_size_list<float> |
    """
    import pyarrow as pa

    hidden_size, integers = form.plan.hidden_size, pa.list_(pa.int32())
    width = form.plan.shape[-1]
    return build_schema(
        [
            ("row", pa.int64()),
            ("tokens", pa.list_(pa.string())),
            *((name, integers) for name in ("token_type_ids", "starts", "ends")),
            ("truncated", pa.bool_()),
            *((name, pa.list_(pa.list_(pa.float32(), width))) for name in form.column_names),
            ("c", pa.list_(pa.float32(), hidden_size)),
        ],
        form.identity,
    )


def build_table(
    texts: Sequence[TextFeatures], first_row: int, form: OutputLayout, schema: "pa.Schema"
) -> "pa.Table":
    """Build a table from texts."""
    import pyarrow as pa

    encodings = [text.encoding for text in texts]
    starts = pa.array(np.cumsum([0, *map(len, encodings)]), pa.int32())
    columns = {
        "row": range(first_row, first_row + len(texts)),
        "tokens": [encoding.tokens for encoding in encodings],
        "token_type_ids": [encoding.token_type_ids for encoding in encodings],
        "starts": [[start for start, _ in encoding.offsets] for encoding in encodings],
        "ends": [[end for _, end in encoding.offsets] for encoding in encodings],
        "truncated": [text.is_truncated for text in texts],
    }
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    named = form.cut_columns(np.concatenate([text.features for text in texts]))
    for name, features in named.items():
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
        arrays[name] = pa.ListArray.from_arrays(starts, vectors)
    sequences = np.stack([text.sequence for text in texts])
    arrays["c"] = pa.FixedSizeListArray.from_arrays(pa.array(sequences.ravel()), sequences.shape[1])
    return pa.table(arrays, schema=schema)


FEATURE_WRITERS: dict[str, Callable[[DurableFile, Iterable[TextFeatures], OutputLayout], None]] = {
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
}


PAIR_SEPARATOR = " ||| "


@dataclass(frozen=True)
class FeaturesResult:
    """The result of feature extraction."""

    output: Path | None  # None if they were printed
    shape: tuple[int, ...]  # of one token's features
    counts: TextCounts
    identity: dict[str, Any]  # everything that the features depend on
    engine: str
    elapsed_seconds: float  # without loading the model

    @property
    def tokens_per_second(self) -> float:
        """Throughput, special tokens included."""
        return self.counts.tokens / max(self.elapsed_seconds, 1e-9)


class FeatureStream:
    """A stream of the features of a file's texts; a source - is standard input."""

    def __init__(
        self,
        model: str | Path,
        source: str | Path,
        settings: FeaturesSettings,
        *,
        is_one_of_many: bool = False,
    ) -> None:
        self.table = open_texts(source, settings)
        self.settings = settings
        self._is_one_of_many = is_one_of_many
        load = FeatureExtractor.load
        load = partial(load_once, load) if is_one_of_many else load
        self._extractor = load(model, settings).with_options(select(FeatureSettings, settings))
        self.form = OutputLayout(self._extractor.plan, settings.layout, self._extractor.identity)
        self._counts = TextCounts()
        self._elapsed_seconds = 0.0

    def read(self, progress: ProgressBar | None = None) -> Iterator[TextFeatures]:
        """Yield the features of each text; can be read once."""
        started = time.monotonic()
        texts = self._read_texts(progress)
        yield from self._extractor.stream(texts, counts=self._counts)
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

    The file is written atomically; its name ends as a key of `FEATURE_WRITERS`. The caller must
    hold its lock.
    """
    with (
        show_progress("Extracting", stream.table.size_bytes, is_bytes=True) as progress,
        durable_file(output) as file,
    ):
        FEATURE_WRITERS[output.suffix.lower()](file, stream.read(progress), stream.form)
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


def extract(
    model: str | Path,
    source: str,
    output: Path,
    settings: FeaturesSettings,
    *,
    is_one_of_many: bool = False,
) -> FeaturesResult:
    """Write the features of each text of a file, atomically, with a manifest beside them."""
    check = partial(check_output, source, settings=settings)
    with open_output(output, "writing features into", inputs=[source], check=check) as place:
        stream = FeatureStream(model, source, settings, is_one_of_many=is_one_of_many)
        return write_features(stream, place)


@uploads_output()
def extract_files(
    model: str | Path,
    inputs: Sequence[str],
    output: Path,
    settings: FeaturesSettings,
    files: FilesSettings,
) -> FilesResult:
    """Write a file of features for each file of texts into a folder, as `embed_files` does."""
    made_with = {"command": "features", **stamp_model(model, settings.revision)}
    run, suffixes = partial(_extract_file, model, settings), (".parquet", *FEATURE_WRITERS)
    return make_files(run, inputs, output, files, suffixes, made_with, settings)


def _extract_file(
    model: str | Path,
    settings: FeaturesSettings,
    source: str,
    output: Path,
    *,
    overwrite: bool,
    restart: bool,
) -> dict[str, int]:
    chosen = settings.model_copy(update={"overwrite": overwrite})
    return asdict(extract(model, source, output, chosen, is_one_of_many=True).counts)


def check_output(source: str, output: Path, settings: FeaturesSettings) -> None:
    """Raise an error if the output can't be written or would overwrite other files."""
    if check_suffix(output, FEATURE_WRITERS) != ".jsonl" and settings.layout == "google":
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
