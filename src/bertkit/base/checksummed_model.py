"""Typed records in checksummed JSON files."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, DamagedFileError
from bertkit.base.settings import validate


class ChecksummedModel(BaseModel):
    """Base of records that are files: immutable, unknown keys are errors.

    Attributes:
        description: what such a file is, for messages.
        limit_bytes: a larger file isn't read.
        error_kind: raised if the content isn't such a record.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    description: ClassVar[str]
    limit_bytes: ClassVar[int] = 64 << 20
    error_kind: ClassVar[type[BertkitError]] = DamagedFileError

    def save(self, path: Path) -> FileRecord:
        """Write the record; errors as in `write_checksummed_json`."""
        return write_checksummed_json(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and validate a record.

        Raises:
            MissingFileError: there is no such file.
            DamagedFileError: the checksum is missing or wrong.
            BertkitError: of `error_kind`; the content isn't such a record.
            StorageError: it can't be read.
        """
        content = read_checksummed_json(path, limit_bytes=cls.limit_bytes)
        return validate(cls, content, f"{path} isn't {cls.description}", cls.error_kind)
