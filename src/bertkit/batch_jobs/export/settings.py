"""Settings of the job."""

from typing import Literal

from pydantic import Field

from bertkit.base.settings import Settings


class ExportSettings(Settings):
    """Settings of `bertkit export`."""

    to: Literal["onnx"] = Field("onnx", description="What to export to.")
