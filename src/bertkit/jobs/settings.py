"""Settings of conversion, export and prediction."""

import re
from typing import Literal

from pydantic import Field, field_validator

from bertkit.base.settings import Settings
from bertkit.data.tables.settings import IdColumn, LayoutSettings

KILOBYTE, KIBIBYTE = 1000, 1024
UNITS = {
    "": 1,
    "kb": KILOBYTE,
    "mb": KILOBYTE**2,
    "gb": KILOBYTE**3,
    "kib": KIBIBYTE,
    "mib": KIBIBYTE**2,
    "gib": KIBIBYTE**3,
}
SIZE = re.compile(r"([0-9]{1,12})\s*([a-zA-Z]*)")
LEAST_SHARD_BYTES = 1000  # one file per tensor of a small model; smaller is useless


class ConvertSettings(Settings):
    """Settings of `bertkit convert`."""

    dtype: Literal["float32", "float16", "bfloat16"] | None = Field(
        default=None,
        description="Dtype of the weights; by default that of the source, bit for bit.",
    )
    max_shard_size: str = Field(
        default="5GB",
        description="Maximum size of a weights file, in bytes or with kB, MB, GB, KiB, MiB or GiB;"
        " larger models are sharded, with an index.",
    )

    @field_validator("max_shard_size")
    @classmethod
    def _size_can_be_read(cls, text: str) -> str:
        if parse_size(text) < LEAST_SHARD_BYTES:
            raise ValueError(f"must be at least {LEAST_SHARD_BYTES} bytes")
        return text

    @property
    def shard_bytes(self) -> int:
        """`max_shard_size` in bytes."""
        return parse_size(self.max_shard_size)


def parse_size(text: str) -> int:
    """Parse a size such as 5GB into bytes."""
    match = SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in UNITS:
        raise ValueError("must be a whole number with kB, MB, GB, KiB, MiB or GiB, such as 5GB")
    return int(match[1]) * UNITS[match[2].lower()]


class ExportSettings(Settings):
    """Settings of `bertkit export`."""

    precision: Literal["fp32", "int8"] = Field(
        default="fp32",
        description="int8: the matrices of the linear layers as integers, for processors that"
        " multiply them faster (avx512_vnni, avx_vnni, amx_int8); a quarter of their size.",
    )
    encoder_only: bool = Field(
        default=False,
        description="Export hidden states instead of the results of the model's heads.",
    )


Split = Literal["train", "dev", "test"]


class PredictSettings(LayoutSettings):
    """Settings of `bertkit <task>`."""

    split: Split = Field(
        default="test", description="Split of a GLUE folder or of a data set on the Hub."
    )
    id_column: IdColumn = None
    keep_columns: tuple[str, ...] | None = Field(
        default=None,
        description="Columns of the file to write in front of the predictions; by default all.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")
