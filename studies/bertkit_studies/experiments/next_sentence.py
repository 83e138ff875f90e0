"""Study: pre-training with and without next-sentence prediction."""

from typing import final

from bertkit_studies.probes.pretrained_arms import PretrainedArm
from bertkit_studies.probes.pretraining import PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH
from bertkit_studies.study import Claim, Side

WITH, WITHOUT = "with", "without"
ARMS = (
    PretrainedArm(
        WITH, "masked words and next sentence, half of the pairs random", {"objective": "bert"}
    ),
    PretrainedArm(WITHOUT, "masked words, in contiguous text", {"objective": "mlm"}),
)


@final
class NextSentence(PretrainingStudy):
    """Compare both objectives of BERT with masked words alone."""

    name = "next-sentence"
    question = "Does next sentence prediction help?"
    finding = (
        "Devlin et al. 2018 (section 5.1, table 5) found that it helps where two texts are"
        " compared:"
        " without it QNLI falls from 88.4 to 84.9, MNLI from 84.4 to 83.9, SQuAD from 88.5 to 87.9;"
        " single sentences (SST-2) hardly change. Liu et al. 2019 (RoBERTa, section 4.2, table 2)"
        " found the opposite: without it, models trained on contiguous text are as good or better."
    )
    budget = (
        "Both arms are pre-trained on the same number of tokens of the same text, and fine-tuned"
        " in the same way."
    )
    caution = (
        "Whether two sentences come from the same document is closer to next sentence prediction"
        " than the paper's tasks are (--labeled uses your own labels). Masked words are evaluated"
        " in contiguous text, the only kind that the arm without next sentence was trained on. In"
        " Liu et al., leaving it out “matches or slightly improves” tasks; here a claim is shown"
        " only if results are better. " + BEST_EPOCH
    )

    arms = ARMS
    claims = (
        Claim(
            "Next sentence prediction helps to compare two texts",
            "Devlin et al. 2018, section 5.1, table 5",
            "pairs",
            better=Side(WITH),
            worse=Side(WITHOUT),
        ),
        Claim(
            "Without next sentence prediction, tasks on words get better",
            "Liu et al. 2019, section 4.2, table 2",
            "masked_loss",
            better=Side(WITHOUT),
            worse=Side(WITH),
        ),
    )
