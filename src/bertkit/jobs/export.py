"""Export a model for other programs, atomically."""

from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import describe_install, has_package
from bertkit.base.files import durable_folder
from bertkit.base.json_files import write_json
from bertkit.base.output import open_output
from bertkit.checkpoints.elements import ElementType
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import find_kind
from bertkit.jobs.convert import WrittenFolder, check_output, write_companions
from bertkit.jobs.settings import ExportSettings
from bertkit.models.bert.arrays import describe_config
from bertkit.models.bert.config import ENCODER
from bertkit.models.open_model import OpenModel


@dataclass(frozen=True, kw_only=True)
class ExportResult(WrittenFolder):
    """The result of an export."""

    target: str  # onnx
    outputs: tuple[str, ...]  # of the exported model


def export(
    source: str | Path,
    output: Path,
    settings: ExportSettings = ExportSettings(),  # noqa: B008
    *,
    revision: str | None = None,
) -> ExportResult:
    """Export a model with its heads, or an encoder with its sentence-embedding modules.

    The folder is new and written atomically. A `CheckpointError` says that config and tensors don't
    match, need features that bertkit's BERT lacks, or aren't finite; or that the architecture can't
    be exported. A `MissingExtraError` says that the extra `onnx` isn't installed.
    """
    if not has_package("onnx"):
        raise MissingExtraError(
            f"exporting a model needs onnx, which isn't installed; {describe_install('onnx')}"
        )
    with open_output(output, "exporting into", inputs=[source], check=check_output) as place:
        return _export(OpenModel.open(source, revision=revision), place, settings)


def _export(opened: OpenModel, output: Path, settings: ExportSettings) -> ExportResult:
    """Export into a folder that the caller has locked."""
    architecture = opened.architecture
    if settings.encoder_only or opened.sentences is not None:
        architecture = ENCODER
    kind = find_kind(architecture, opened.config, opened.folder)
    config, weights = opened.config, opened.read_arrays(architecture)
    modules, notes = opened.sentences, tuple[str, ...]()
    if modules is not None:
        pooling = modules.modules[0]
        if not isinstance(pooling, Pooling) or not pooling.include_prompt:
            modules = None
            note = (
                "there is no sentence_embedding: this model excludes prompt tokens from its"
                " pooling, and an exported model can't distinguish them"
            )
            notes = (note,)
    with durable_folder(output) as folder:
        files, outputs = write_onnx(folder, config, weights, kind, modules, settings.precision)
        content = describe_config(config.to_dict(), architecture, ElementType.F32)
        files[CONFIG_FILE] = write_json(folder / CONFIG_FILE, content)
        companions, remarks = write_companions(opened, folder, opened.sentences)
        check_output(output)  # again, because files may have appeared meanwhile
    if unused := opened.list_unused_heads(architecture, weights):
        name = opened.family.their_class(architecture)
        notes += (f"{name} was exported, without {' and '.join(unused)}",)
    return ExportResult(
        folder=output,
        target="onnx",
        outputs=outputs,
        notes=notes + remarks,
        files=files | companions,
    )
