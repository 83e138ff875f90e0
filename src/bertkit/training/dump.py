"""Dumps of steps whose loss or gradient wasn't finite, with everything needed to reproduce them.

`run/dumps/step-00001234/` holds the weights from before the step (under the model's own names,
even if they aren't finite), the model's config and tokenizer, the tensors of the step's
micro-batches, and `dump.json`. It is as large as a checkpoint without the optimizer's state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from torch import Tensor

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.files import durable_folder, make_folder, read_json, write_json
from bertkit.base.settings import validate
from bertkit.checkpoints.run_folder import STEP_PREFIX, seal_checkpoint, verify_checkpoint
from bertkit.checkpoints.safetensors_file import read_safetensors, write_safetensors
from bertkit.training.job import AnyBatch, Job

DUMPS = "dumps"
MOST_DUMPS = 3  # per run, so that a diverging run doesn't fill the disk
RECORD_FILE = "dump.json"
WEIGHTS_FILE = "weights.safetensors"
BATCHES_FILE = "batches.safetensors"


def _check_number(text: str) -> str:
    float(text)
    return text


class DumpRecord(BaseModel):
    """The contents of `dump.json`.

    Attributes:
        format_version: version of the dump format.
        step: number of the step, counted from 1 as in the log.
        num_micro_batches: number of micro-batches in the step.
        metrics: the step's metrics, each as Python's `repr`, including `nan` and `inf`.
        device: type of the device that computed the step.
        precision: precision of matrix products.
        settings: settings of the run.
        versions: versions of the software, and the machine's properties.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format_version: Literal[1] = 1
    step: int = Field(ge=1)
    num_micro_batches: int = Field(ge=1)
    metrics: dict[str, Annotated[str, AfterValidator(_check_number)]]
    device: str
    precision: Literal["fp32", "bf16"]
    settings: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True)
class Dump:
    """A dump loaded from disk.

    Attributes:
        record: the contents of `dump.json`.
        weights: the model's tensors before the step, by the model's own names.
        batches: the named tensors of each micro-batch.
    """

    record: DumpRecord
    weights: dict[str, Tensor]
    batches: list[dict[str, Tensor]]


def dump_path(run: Path, step: int) -> Path:
    """Return the folder of a step's dump; steps are counted from 1."""
    return run / DUMPS / f"{STEP_PREFIX}{step:08d}"


def has_room(run: Path, step: int) -> bool:
    """Whether to dump a step: if it was dumped already, or the run has fewer than `MOST_DUMPS`.

    A resumed run therefore ends with the same dumps as an uninterrupted one.
    """
    return dump_path(run, step) in (dumps := list_dumps(run)) or len(dumps) < MOST_DUMPS


def list_dumps(run: Path) -> list[Path]:
    """List a run's dumps, earliest step first."""
    names = (run / DUMPS).glob(f"{STEP_PREFIX}*")
    return sorted(path for path in names if path.name.removeprefix(STEP_PREFIX).isdigit())


def write_dump(
    run: Path, record: DumpRecord, job: Job[AnyBatch], batches: Sequence[AnyBatch]
) -> Path:
    """Write a dump atomically and return its folder.

    Args:
        run: the run's folder.
        record: the contents of `dump.json`.
        job: the training job, whose model still has the weights from before the step.
        batches: the step's micro-batches.
    """
    path = dump_path(run, record.step)
    weights = {name: tensor.detach().cpu() for name, tensor in job.model.state_dict().items()}
    tensors = {
        f"{number}.{name}": tensor.cpu()
        for number, batch in enumerate(batches)
        for name, tensor in job.batch_tensors(batch).items()
    }
    make_folder(path.parent)
    with durable_folder(path) as folder:
        files = {
            **job.save_architecture(folder),
            WEIGHTS_FILE: write_safetensors(folder / WEIGHTS_FILE, weights),
            BATCHES_FILE: write_safetensors(folder / BATCHES_FILE, tensors),
            RECORD_FILE: write_json(folder / RECORD_FILE, record.model_dump(mode="json")),
        }
        seal_checkpoint(folder, record.step, files)
    return path


def read_dump(path: Path) -> Dump:
    """Read a dump and verify the checksum of each file."""
    if not (path / RECORD_FILE).is_file():
        found = ", ".join(str(dump) for dump in list_dumps(path))
        raise MissingFileError(
            f"{path} isn't a dump: expected a folder with {RECORD_FILE}, such as"
            f" {found or 'run/dumps/step-00001234'}"
        )
    verify_checkpoint(path)
    message = f"{path / RECORD_FILE} isn't the record of a dump"
    record = validate(DumpRecord, read_json(path / RECORD_FILE), message, DamagedFileError)
    batches: dict[str, dict[str, Tensor]] = {}
    for name, tensor in read_safetensors(path / BATCHES_FILE).items():
        number, _, rest = name.partition(".")
        batches.setdefault(number, {})[rest] = tensor
    numbers = [str(number) for number in range(len(batches))]
    if len(batches) != record.num_micro_batches or batches.keys() != set(numbers):
        raise DamagedFileError(
            f"{path / BATCHES_FILE} doesn't hold the {record.num_micro_batches:,} micro-batches"
            " of its record, numbered from 0"
        )
    weights = read_safetensors(path / WEIGHTS_FILE)
    return Dump(record, weights, [batches[number] for number in numbers])
