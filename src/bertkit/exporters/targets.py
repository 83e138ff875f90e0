"""The table of export targets."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.exporters.onnx import write_onnx
from bertkit.models.bert.encoder import BertModel

# Writes a model and its sentence-embedding modules to a folder; returns file name → record.
Exporter: TypeAlias = Callable[[Path, BertModel, SentenceModel | None], dict[str, FileRecord]]

EXPORTERS: dict[str, Exporter] = {"onnx": write_onnx}
