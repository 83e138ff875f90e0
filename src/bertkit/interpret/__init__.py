"""Interpretation of a BERT: attention capture, head ablation and views of both.

The public names are loaded when they are first used, so that importing it doesn't load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertkit.interpret.ablation import HeadName as HeadName
    from bertkit.interpret.ablation import ablate as ablate
    from bertkit.interpret.ablation import importance_by_ablation as importance_by_ablation
    from bertkit.interpret.ablation import importance_by_gradient as importance_by_gradient
    from bertkit.interpret.build import build_page as build_page
    from bertkit.interpret.capture import capture_attention as capture_attention
    from bertkit.interpret.contexts import compare_contexts as compare_contexts
    from bertkit.interpret.contexts import predict_words as predict_words
    from bertkit.interpret.contexts import read_words as read_words
    from bertkit.interpret.geometry import nearest_by_layer as nearest_by_layer
    from bertkit.interpret.geometry import project as project
    from bertkit.interpret.geometry import project_layers as project_layers
    from bertkit.interpret.head_predictions import compare as compare
    from bertkit.interpret.head_predictions import find_outcome as find_outcome
    from bertkit.interpret.inspected_model import InspectedModel as InspectedModel
    from bertkit.interpret.patterns import find_patterns as find_patterns
    from bertkit.interpret.views.view import ViewInputs as ViewInputs

_NAMES = {
    "ablation": "HeadName ablate importance_by_ablation importance_by_gradient",
    "build": "build_page",
    "capture": "capture_attention",
    "contexts": "compare_contexts predict_words read_words",
    "geometry": "nearest_by_layer project project_layers",
    "head_predictions": "compare find_outcome",
    "inspected_model": "InspectedModel",
    "patterns": "find_patterns",
    "views.view": "ViewInputs",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]  # noqa: PLE0604 - the table is the list


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bertkit.interpret' has no attribute {name!r}")
    return getattr(import_module(f"bertkit.interpret.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
