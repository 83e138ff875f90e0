"""The manifest of a finished file of vectors, and the fingerprint of what determines them."""

import json
import os
import zlib
from contextlib import nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, NonNegativeInt, PositiveInt

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import HEAD_BYTES
from bertkit.base.errors import DamagedFileError, SettingsError, storage_errors
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import Precision
from bertkit.inference.stream import TextCounts
from bertkit.reports.text import shorten

MANIFEST_SUFFIX = ".json"
LIMIT_BYTES = 1 << 20
MAX_SHOWN_CHANGES, MAX_SHOWN_CHARS = 3, 60

Vectors = npt.NDArray[np.float32]
Identity = dict[str, str | bool | int | None]  # of an embedder, or of its input
AnySettings = TypeVar("AnySettings", bound=EmbedderSettings)


def _check_names(counts: dict[str, int]) -> dict[str, int]:
    unknown = counts.keys() - {field.name for field in fields(TextCounts)}
    if unknown:
        raise ValueError(f"unknown counts: {_show([*sorted(unknown)])}")
    return counts


Counts = Annotated[dict[str, NonNegativeInt], AfterValidator(_check_names)]


class VectorsFingerprint(BaseModel):
    """Everything that determines the vectors of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedding: Identity  # everything of the embedder that matters
    input: Identity | None  # to notice changes; None if it can't be read again

    def list_changes(self, now: "VectorsFingerprint") -> list[str]:
        """Describe the differences to another one; a model's name only if its files differ.

        The engine, which older versions recorded, makes no difference.
        """
        changes = []
        for name in ("embedding", "input"):
            old, new = (dict(getattr(each, name) or {}) for each in (self, now))
            if old.get("model_sha256") == new.get("model_sha256"):
                old.pop("model", None)
                new.pop("model", None)
            if name == "embedding":
                old.pop("engine", None)
                new.pop("engine", None)
            changes += [
                f"{key}: {_show(old.get(key))} → {_show(new.get(key))}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            ]
        more = len(changes) - MAX_SHOWN_CHANGES
        return changes[:MAX_SHOWN_CHANGES] + ([f"{more} more"] if more > 0 else [])


class VectorsManifest(ChecksummedModel):
    """The manifest of a finished file of vectors."""

    description: ClassVar[str] = "the manifest of a file of vectors"
    limit_bytes: ClassVar[int] = LIMIT_BYTES

    beginning: VectorsFingerprint  # the fingerprint of the vectors
    num_rows: NonNegativeInt  # one per text
    dimension: PositiveInt
    counts: Counts  # by the names of `TextCounts`
    rows_crc32: NonNegativeInt  # of all vectors as little-endian float32, row by row
    size_bytes: NonNegativeInt
    head_crc32: NonNegativeInt  # of the first 4 KiB

    def describes(self, output: Path) -> bool:
        """Whether a file matches the manifest, judged by its size and first 4 KiB."""
        return measure_file(output) == (self.size_bytes, self.head_crc32)


def manifest_path(output: Path) -> Path:
    """Return the path of the manifest of a vectors file."""
    return output.with_name(output.name + MANIFEST_SUFFIX)


def read_manifest(output: Path) -> VectorsManifest | None:
    """Read the manifest of a vectors file; None if there is none."""
    path = manifest_path(output)
    return VectorsManifest.load(path) if path.exists() else None


def find_finished(
    output: Path, fingerprint: VectorsFingerprint, *, overwrite: bool
) -> VectorsManifest | None:
    """Return the manifest of an output that is up to date; None if it must be computed."""
    manifest = None
    with suppress(DamagedFileError) if overwrite else nullcontext():
        manifest = read_manifest(output)
    with storage_errors(output, "read"):
        if not output.exists():
            return None
        if not output.is_file():
            raise SettingsError(f"{output} isn't a file; name another --output")
    if manifest is None or not manifest.describes(output):
        changes = ["it has no matching manifest"]
    else:
        changes = manifest.beginning.list_changes(fingerprint)
        if fingerprint.input is None:
            changes.append("input: standard input or a pipe can't be read again")
    if not changes:
        return manifest
    if not overwrite:
        raise SettingsError(
            f"{output} exists and differs from what would be written"
            f" ({'; '.join(changes)}); name another --output, or add --overwrite to replace it"
        )
    return None


def keep_precision(settings: AnySettings, embedding: Identity) -> AnySettings:
    """Return the settings with the precision of existing vectors, unless one is asked for."""
    found = embedding.get("precision")
    if found not in get_args(Precision) or settings.precision != "auto":
        return settings
    return settings.model_copy(update={"precision": found})


def measure_file(path: Path) -> tuple[int, int]:
    """Return the size of a file and the CRC-32 of its first 4 KiB."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        return os.fstat(stream.fileno()).st_size, zlib.crc32(stream.read(HEAD_BYTES))


def _show(value: JsonValue) -> str:
    """Format a value for a message, truncated if it is long."""
    return shorten(json.dumps(value, ensure_ascii=False), MAX_SHOWN_CHARS)
