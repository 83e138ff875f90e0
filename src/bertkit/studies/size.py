"""Layers and width."""

from collections.abc import Sequence
from typing import final

from bertkit.studies.pretrained_arms import PretrainedArm
from bertkit.studies.pretraining import PretrainingStudy
from bertkit.studies.probes import BEST_EPOCH, GAPS_PROBE, PAIRS_PROBE
from bertkit.studies.study import Claim, Side

SUMMARIES = {
    "tiny": "2 layers of 128 features",
    "mini": "4 layers of 256 features",
    "small": "4 layers of 512 features",
    "medium": "8 layers of 512 features",
}
SIZES = {"small": ("tiny", "mini"), "large": ("tiny", "mini", "small", "medium")}
TABLE_6 = "Devlin et al. 2018, section 5.2, table 6"


@final
class Size(PretrainingStudy):
    """The published small sizes against each other."""

    name = "size"
    question = "Are larger models better on the same text?"
    finding = (
        "Devlin et al. 2018 (section 5.2, table 6) found that each larger model is better, in the"
        " perplexity of held-out masked words (from 5.84 with 3 layers of 768 to 3.23 with 24 of"
        " 1,024) and after fine-tuning on every task, the smallest too (MRPC 79.8 to 87.8)."
    )
    budget = "Every arm is pre-trained on as many tokens; the larger ones take longer for them."
    caution = (
        "Larger models need more tokens and a lower learning rate to show what they can: all have"
        " the same rate here, and on few tokens none has read enough to need its size. With equal"
        " time in place of equal tokens, small models would come off better. " + BEST_EPOCH
    )
    probes = (GAPS_PROBE, PAIRS_PROBE)

    @property
    def arms(self) -> Sequence[PretrainedArm]:
        """More sizes in a larger study."""
        return [
            PretrainedArm(name, SUMMARIES[name], {"model": name, "objective": "mlm"})
            for name in SIZES[self.settings.size]
        ]

    @property
    def claims(self) -> Sequence[Claim]:
        """The largest against the smallest."""
        smallest, *_, largest = SIZES[self.settings.size]
        better, worse = Side(largest), Side(smallest)
        words, tasks = "Larger models predict words better", "Larger models are better on tasks"
        return (
            Claim(words, TABLE_6, "masked_loss", better, worse),
            Claim(tasks, TABLE_6, "gaps", better, worse),
        )
