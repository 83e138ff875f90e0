"""Settings for exporting a model."""

from typing import Literal

from pydantic import Field

from bertkit.base.settings import Settings


class ExportSettings(Settings):
    """Settings of `bertkit export`."""

    to: Literal["onnx"] = Field("onnx", description="Target format.")
    precision: Literal["fp32", "int8"] = Field(
        "fp32",
        description="int8: the matrices of the linear layers as integers, for processors that"
        " multiply them faster (avx512_vnni, avx_vnni, amx_int8); a quarter of their size.",
    )
    encoder_only: bool = Field(
        False,
        description="Export hidden states instead of the results of the model's heads.",
    )
