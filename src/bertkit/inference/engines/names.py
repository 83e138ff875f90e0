"""Names of engines and precisions; settings and the command line import them without torch."""

from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["auto", "torch", "onnx"]
Precision: TypeAlias = Literal["fp32", "bf16"]
