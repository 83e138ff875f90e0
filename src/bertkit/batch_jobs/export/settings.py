"""Settings for exporting a model."""

from typing import Literal

from pydantic import Field

from bertkit.base.settings import Settings


class ExportSettings(Settings):
    """Settings of `bertkit export`."""

    to: Literal["onnx"] = Field("onnx", description="Target format.")
