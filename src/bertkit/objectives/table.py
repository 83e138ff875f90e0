"""The pre-training objectives, by their `--objective` names."""

from typing import Any

from bertkit.objectives.bert import BertObjective
from bertkit.objectives.causal import CausalObjective
from bertkit.objectives.mlm import MaskedObjective
from bertkit.objectives.objective import Objective
from bertkit.objectives.settings import ObjectiveName

OBJECTIVES: dict[ObjectiveName, type[Objective[Any]]] = {
    "bert": BertObjective,
    "mlm": MaskedObjective,
    "causal": CausalObjective,
}
