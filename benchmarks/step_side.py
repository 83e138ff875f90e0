"""One side of `bench_step.py` and `bench_memory.py`: a model that takes a step when told to.

    python benchmarks/step_side.py SIDE MODEL BATCHES DEVICE PRECISION

SIDE is bertkit, transformers, kept or compiled; MODEL is a folder of weights or a preset of random
ones, and BATCHES a folder of batches. It first tells the loss of batch 0 without dropout; then it
reads numbers of batches from standard input, a line each, and answers with a line of JSON each.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.tasks.objectives.bert import PreTrainingBatch
from bertkit.training.budget import peak_memory_bytes
from bertkit.training.device import prepare_memory
from devices import Place
from minilm import read_config
from pretraining_sides import Side, import_side
from program import answer, obey
from saved_batches import read_batches
from sides import Stepper

CPU = torch.device("cpu")


def main() -> None:
    name, model_name, folder, *words = sys.argv[1:]
    place = Place.of(*words)
    if name in ("bertkit", "kept"):
        prepare_memory(CPU)  # as `bertkit pretrain` does
    side = import_side("bertkit" if name == "bertkit" else "transformers")
    if Path(model_name).is_dir():
        config = read_config(Path(model_name))
        build = partial(side.load, Path(model_name))
    else:
        config = BertConfig.preset(model_name)
        build = partial(side.build, config)
    given = [side.give(batch) for batch in read_batches(Path(folder))]
    libraries_bytes = peak_memory_bytes(CPU)
    model = build().to(place.device)
    if name == "compiled":
        model.compile()
    losses = [partial(find_loss, side, model, batch, place) for batch in given]
    stepper = Stepper(model, place)
    loss = stepper.find_loss(losses[0])
    place.count_memory_anew()
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    known = {"libraries_bytes": libraries_bytes, "parameters": num_parameters}
    answer({"loss": loss, **known})
    obey(lambda line: {**stepper.take(losses[int(line)]), "peak_bytes": peak_memory_bytes(CPU)})


def find_loss(side: Side, model: nn.Module, batch: object, place: Place) -> Tensor:
    """The loss of a batch; a step begins with moving it to the device."""
    return side.loss_of(model, move(batch, place))


def move(batch: object, place: Place) -> object:
    if isinstance(batch, PreTrainingBatch):
        return batch.to(place.device)
    assert isinstance(batch, dict)
    return {name: each.to(place.device, non_blocking=True) for name, each in batch.items()}


if __name__ == "__main__":
    main()
