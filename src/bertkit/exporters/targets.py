"""The table of export targets."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.exporters.onnx import write_onnx
from bertkit.exporters.onnx_models import ExportedKind
from bertkit.models.bert.pretrained import PretrainedBert

# Writes a model and its sentence-embedding modules to a folder in a precision; returns file name →
# record, and the names of the outputs.
Exporter: TypeAlias = Callable[
    [Path, PretrainedBert, ExportedKind, SentenceModel | None, Literal["fp32", "int8"]],
    tuple[dict[str, FileRecord], tuple[str, ...]],
]

EXPORTERS: dict[str, Exporter] = {"onnx": write_onnx}
