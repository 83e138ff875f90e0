"""Names of engines and precisions; settings and the command line import them without torch."""

from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["auto", "torch", "onnx"]
Precision: TypeAlias = Literal["fp32", "bf16", "int8"]
PrecisionName: TypeAlias = Literal["auto", "fp32", "bf16", "int8"]
PRECISION_HELP = (
    "Precision of matrix products. auto takes bf16 on GPUs and processors where it was measured to"
    " be faster, else fp32; bertkit devices shows which. int8: integers for the matrices of linear"
    " layers, faster on processors with avx512_vnni, avx_vnni or amx_int8, less exact; needs"
    " bertkit[onnx]."
)
