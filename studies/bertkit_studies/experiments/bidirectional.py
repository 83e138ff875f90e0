"""Study: bidirectional against left-to-right models, over the history of pre-training."""

from typing import final

from bertkit_studies.probes.pretrained_arms import PretrainedArm
from bertkit_studies.probes.pretraining import DOUBLING, PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH, GAPS_PROBE, PAIRS_PROBE
from bertkit_studies.study import FIRST, LAST, Claim, Side

BOTH, LEFT_TO_RIGHT = "both-directions", "left-to-right"
BILSTM = f"{LEFT_TO_RIGHT}+bilstm"
ARMS = (
    PretrainedArm(BOTH, "masked words; bidirectional attention", {"objective": "mlm"}),
    PretrainedArm(
        LEFT_TO_RIGHT,
        "the next word; causal attention",
        {"objective": "causal"},
    ),
    PretrainedArm(
        BILSTM,
        "the same model, frozen, under two layers of BiLSTM",
        shares=LEFT_TO_RIGHT,
        fine_tuning={"features": "bilstm", "lstm_hidden": 64, "learning_rate": 3e-3},
    ),
)
TABLE_5 = "Devlin et al. 2018, section 5.1, table 5"


@final
class Bidirectional(PretrainingStudy):
    """Compare masked-word and next-word pre-training."""

    name = "bidirectional"
    question = "Are bidirectional models better than left-to-right ones?"
    finding = (
        "Devlin et al. 2018 (section 5.1, table 5) found that a left-to-right model without next"
        " sentence is worse than one that masks words on all tasks: MNLI 82.1 against 83.9, MRPC"
        " 77.5 against 86.5, SQuAD 77.8 against 87.9. A BiLSTM on top brings SQuAD to 84.9 and no"
        " GLUE task. Over the steps (appendix C.1, figure 5), masked words converge slightly more"
        " slowly, but are better almost from the start."
    )
    budget = (
        "All arms are pre-trained on the same number of tokens of the same text. The first two"
        " are fine-tuned in the same way; the third is frozen, and a BiLSTM is trained on it."
    )
    caution = (
        "A left-to-right model gets a loss for every token, a masked one for 15 % of them, which"
        " is an advantage when tokens are few; its pre-training on the same tokens also takes"
        " longer. Here the BiLSTM is trained on a frozen model (in the paper both were trained),"
        " and whether words are missing after a word is decided by what follows. " + BEST_EPOCH
    )
    probes = (GAPS_PROBE, PAIRS_PROBE)
    parts = DOUBLING
    measures_words = False

    arms = ARMS
    claims = (
        Claim(
            "On words (SQuAD), both directions are better than left to right",
            TABLE_5,
            "gaps",
            Side(BOTH, LAST),
            Side(LEFT_TO_RIGHT, LAST),
        ),
        Claim(
            "On pairs of sentences (MRPC, MNLI), both directions are better than left to right",
            TABLE_5,
            "pairs",
            Side(BOTH),
            Side(LEFT_TO_RIGHT),
        ),
        Claim(
            "On words, a BiLSTM on top helps left to right",
            TABLE_5,
            "gaps",
            Side(BILSTM, LAST),
            Side(LEFT_TO_RIGHT, LAST),
        ),
        Claim(
            "But both directions stay better than that",
            TABLE_5,
            "gaps",
            Side(BOTH, LAST),
            Side(BILSTM, LAST),
        ),
        Claim(
            "Both directions are better almost from the start of pre-training",
            "Devlin et al. 2018, appendix C.1, figure 5",
            "gaps",
            Side(BOTH, FIRST),
            Side(LEFT_TO_RIGHT, FIRST),
        ),
    )
