"""Study: bidirectional against left-to-right models, over the history of pre-training."""

from typing import final

from bertkit_studies.probes.frozen_bilstm import BiLstm
from bertkit_studies.probes.pretrained_arms import PretrainedArm
from bertkit_studies.probes.pretraining import DOUBLING, PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH, GAPS_PROBE, PAIRS_PROBE
from bertkit_studies.study import FIRST, LAST, Claim, Side

BOTH, LEFT_TO_RIGHT = "both-directions", "left-to-right"
BILSTM = f"{LEFT_TO_RIGHT}+bilstm"
WARM_BOTH, WARM_LEFT_TO_RIGHT = f"{BOTH}+warm", f"{LEFT_TO_RIGHT}+warm"
MASK_RATE = 0.15
ARMS = (
    PretrainedArm(
        BOTH, "masked words; bidirectional attention", {"objective": "mlm", "mask_rate": MASK_RATE}
    ),
    PretrainedArm(
        LEFT_TO_RIGHT,
        "the next word; causal attention",
        {"objective": "causal"},
    ),
    PretrainedArm(
        BILSTM,
        "the same model, frozen, under two layers of BiLSTM",
        shares=LEFT_TO_RIGHT,
        fine_tuning={"learning_rate": 3e-3},
        bilstm=BiLstm(),
    ),
    PretrainedArm(
        WARM_BOTH,
        f"goes on from {BOTH} in the same way",
        {"objective": "mlm", "mask_rate": MASK_RATE},
        starts_from=BOTH,
    ),
    PretrainedArm(
        WARM_LEFT_TO_RIGHT,
        f"goes on from {BOTH} with the next word, and predicts as many words",
        {"objective": "causal"},
        starts_from=BOTH,
        token_share=MASK_RATE,  # each token is predicted, and not only those that are masked
    ),
)
TABLE_5 = "Devlin et al. 2018, section 5.1, table 5"
FROM_RANDOM = f"{TABLE_5}, where all models start from random weights"


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
        "The first three arms are pre-trained on the same number of tokens of the same text. The"
        " first two are fine-tuned in the same way; the third is frozen, and a BiLSTM is trained on"
        f" it. The last two go on from the model of {BOTH}, and predict the same number of words:"
        " as many tokens again with 15 % of them masked, and 15 % of these tokens left to right."
        " They are measured at the end."
    )
    caution = (
        "A left-to-right model gets a loss for every token, a masked one for 15 % of them, which"
        " is an advantage when tokens are few; its pre-training on the same tokens also takes"
        " longer. The warm arms predict equally many words, but start from a model that read in"
        " both directions, which favors the arm that still does. Here the BiLSTM is trained on a"
        " frozen model (in the paper both were trained), and whether words are missing after a"
        " word is decided by what follows. " + BEST_EPOCH
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
        Claim(
            "On words, both directions are better than left to right, also with as many predicted"
            " words from one encoder",
            FROM_RANDOM,
            "gaps",
            Side(WARM_BOTH, LAST),
            Side(WARM_LEFT_TO_RIGHT, LAST),
        ),
        Claim(
            "On pairs of sentences, the same",
            FROM_RANDOM,
            "pairs",
            Side(WARM_BOTH),
            Side(WARM_LEFT_TO_RIGHT),
        ),
    )
