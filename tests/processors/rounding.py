"""A planted rounding error: what an encoder computes differs as on another kind of processor.

A process plants it where `BERTKIT_TEST_ROUNDING_ERROR` is set, as the modules are imported; nothing
is imported for it.
"""

import sys
from collections.abc import Callable
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

ROUNDING_ERROR = "BERTKIT_TEST_ROUNDING_ERROR"  # a share of a token's largest value


def plant_rounding_error(share: float) -> None:
    """Plant it into the two paths through the encoder: PyTorch and OpenVINO.

    A second call takes the place of the first: what decorates modules must be asked behind this.
    """
    change_after_import(
        "rounding error",
        {
            "bertkit.models.bert.encoder": partial(change_torch, share=share),
            "bertkit.inference.engines.openvino_engine": partial(change_openvino, share=share),
        },
    )


def plant_bf16() -> None:
    """Let OpenVINO compute in float32 where bertkit finds bf16, and the processor has none."""
    places = {"bertkit.inference.engines.openvino_engine": take_any_precision}
    change_after_import("bf16", places)


def take_any_precision(module: ModuleType) -> None:
    """Leave out the check of the precision that was compiled."""
    check = module.check_precision
    module.check_precision = wraps(check)(lambda *_: None)


def change_after_import(what: str, places: dict[str, Callable[[ModuleType], None]]) -> None:
    """Change modules now, or as soon as they are imported: as this says, no longer as before."""
    others = [each for each in sys.meta_path if getattr(each, "what", "") != what]
    sys.meta_path[:] = [AfterImport(what, places), *others]
    for name in places.keys() & sys.modules.keys():
        places[name](sys.modules[name])


class AfterImport(MetaPathFinder):
    """Changes a class as soon as its module is imported."""

    def __init__(self, what: str, places: dict[str, Callable[[ModuleType], None]]) -> None:
        self.what, self.places = what, dict(places)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Have the others find a module, once, and change it when it is loaded."""
        change = self.places.pop(name, None)
        spec = find_spec(name) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def change_torch(module: ModuleType, share: float) -> None:
    """Change what the encoder in PyTorch gives: to tasks, to training, to views."""
    kind = module.BertEncoder
    forward, summary_states, hidden_states = kind.forward, kind.summary_states, kind.hidden_states
    kind.forward = lambda self, batch: round_otherwise(forward(self, batch), share)
    kind.summary_states = lambda self, batch: round_otherwise(summary_states(self, batch), share)
    kind.hidden_states = lambda self, *words: (
        round_otherwise(states, share) for states in hidden_states(self, *words)
    )


def change_openvino(module: ModuleType, share: float) -> None:
    """Change what the encoder in OpenVINO gives."""
    import torch

    compute = module.OpenVinoEngine.compute
    module.OpenVinoEngine.compute = lambda self, *words, **more: [
        round_otherwise(torch.from_numpy(states), share).numpy()
        for states in compute(self, *words, **more)
    ]


def round_otherwise(states: Any, share: float) -> Any:
    """Add up to a share of each token's largest value; the gradient is as without.

    The error follows from the token's values alone, so that a text has the same bits in any batch.
    """
    import torch

    if states.dtype == torch.float64:
        return states
    exact = states.detach().float()
    bits = exact.view(torch.int32).long()
    features = torch.arange(exact.shape[-1], device=exact.device)
    mixed = (bits * 0x9E3779B1 + features * 0x85EBCA6B) >> 7 & 0xFFFF
    errors = (mixed / 0x8000 - 1) * share * exact.abs().amax(dim=-1, keepdim=True)
    return states + errors.to(states.dtype)
