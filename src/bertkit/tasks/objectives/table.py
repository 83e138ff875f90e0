"""The pre-training objectives, by their `--objective` names."""

from typing import Any

from bertkit.decoders.causal_objective import CausalObjective
from bertkit.tasks.objectives.bert import BertObjective, MaskedObjective
from bertkit.tasks.objectives.objective import Objective
from bertkit.tasks.objectives.settings import ObjectiveName

OBJECTIVES: dict[ObjectiveName, type[Objective[Any]]] = {
    "bert": BertObjective,
    "mlm": MaskedObjective,
    "causal": CausalObjective,
}
