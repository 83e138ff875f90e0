"""The pre-training objectives, by their `--objective` names."""

from bertkit.base.wings import load_object
from bertkit.tasks.objectives.bert import BertObjective, MaskedObjective
from bertkit.tasks.objectives.objective import AnyObjective
from bertkit.tasks.objectives.settings import ADDED, ObjectiveName

OBJECTIVES: dict[ObjectiveName, type[AnyObjective]] = {
    "bert": BertObjective,
    "mlm": MaskedObjective,
    **{name: load_object(added.objective) for name, added in ADDED.items()},
}
