"""Study: number of layers and hidden size."""

from collections.abc import Sequence
from typing import final

from bertkit_studies.probes.pretrained_arms import PretrainedArm
from bertkit_studies.probes.pretraining import PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH, GAPS_PROBE, PAIRS_PROBE
from bertkit_studies.study import Claim, Side

SUMMARIES = {
    "tiny": "2 layers of 128 features",
    "mini": "4 layers of 256 features",
    "small": "4 layers of 512 features",
    "medium": "8 layers of 512 features",
}
# Peak learning rates of fine-tuning: wider and deeper models need lower ones.
RATES = {
    "small": {"tiny": 1e-3, "mini": 3e-4},
    "large": {"tiny": 3e-4, "mini": 1e-4, "small": 1e-4, "medium": 5e-5},
}
TABLE_6 = "Devlin et al. 2018, section 5.2, table 6"


@final
class Size(PretrainingStudy):
    """Compare the published small model sizes."""

    name = "size"
    question = "Are larger models better on the same text?"
    finding = (
        "Devlin et al. 2018 (section 5.2, table 6) found that larger models are better, both in"
        " the perplexity of held-out masked words (from 5.84 with 3 layers of 768 to 3.23 with 24"
        " of 1,024) and after fine-tuning on every task, even the smallest (MRPC 79.8 to 87.8)."
    )
    budget = (
        "All arms are pre-trained on the same number of tokens, which takes larger models longer."
    )
    caution = (
        "Larger models need more tokens and a lower learning rate. Here all are pre-trained at"
        " the same rate, larger ones are fine-tuned at lower, untuned rates, and no model reads"
        " enough tokens to need its size. At equal time instead of equal tokens, small models"
        " would do better. " + BEST_EPOCH
    )
    probes = (GAPS_PROBE, PAIRS_PROBE)

    @property
    def arms(self) -> Sequence[PretrainedArm]:
        """The sizes to compare; a larger study has more."""
        return [
            PretrainedArm(
                name,
                SUMMARIES[name],
                {"size": name, "objective": "mlm"},
                fine_tuning={"learning_rate": rate},
            )
            for name, rate in RATES[self.settings.size].items()
        ]

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims on the largest against the smallest size."""
        smallest, *_, largest = RATES[self.settings.size]
        better, worse = Side(largest), Side(smallest)
        words, tasks = "Larger models predict words better", "Larger models are better on tasks"
        return (
            Claim(words, TABLE_6, "masked_loss", better, worse),
            Claim(tasks, TABLE_6, "gaps", better, worse),
        )
