"""Names of engines and precisions; settings and the command line import them without torch."""

from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["auto", "torch", "onnx"]
Precision: TypeAlias = Literal["fp32", "bf16", "int8"]
PrecisionName: TypeAlias = Literal["auto", "fp32", "bf16", "int8"]
PRECISION_HELP = (
    "auto takes bf16 where the processor or GPU computes it natively and it measures faster, else"
    " fp32. int8: integers for the matrices of linear layers, faster on processors with"
    " avx512_vnni, avx_vnni or amx_int8, less exact; needs bertkit[onnx]."
)
