"""Study: bidirectional against left-to-right models, over the course of pre-training."""

from collections.abc import Sequence
from typing import final

from bertkit.studies.probes.pretrained_arms import PretrainedArm
from bertkit.studies.probes.pretraining import DOUBLING, PretrainingStudy
from bertkit.studies.probes.probes import BEST_EPOCH, GAPS_PROBE, PAIRS_PROBE
from bertkit.studies.study import FIRST, LAST, Claim, Side

BOTH, LEFT_TO_RIGHT = "both-directions", "left-to-right"
ARMS = (
    PretrainedArm(BOTH, "masked words, every word sees all others", {"objective": "mlm"}),
    PretrainedArm(
        LEFT_TO_RIGHT,
        "the next word, every word sees those before it",
        {"objective": "causal"},
    ),
    PretrainedArm(
        f"{LEFT_TO_RIGHT}+bilstm",
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
    question = "Do models that read in both directions learn more than those left to right?"
    finding = (
        "Devlin et al. 2018 (section 5.1, table 5) found that a left-to-right model without next"
        " sentence is worse than one that masks words on all tasks: MNLI 82.1 against 83.9, MRPC"
        " 77.5 against 86.5, SQuAD 77.8 against 87.9. A BiLSTM on top brings SQuAD to 84.9 and"
        " helps no task of GLUE. Over the steps (appendix C.1, figure 5), masked words converge"
        " a little more slowly, and are better almost from the beginning."
    )
    budget = (
        "Every arm is pre-trained on as many tokens of the same text. The first two are fine-tuned"
        " alike; the third stays frozen under a BiLSTM that learns."
    )
    caution = (
        "A left-to-right model learns from every token, a masked one from 15 % of them, so that it"
        " has far more to learn from on few tokens; on the same tokens its pre-training also takes"
        " longer. Here the BiLSTM stands on a frozen model (in the paper both were trained), and"
        " whether words are missing behind a word is told by what follows. " + BEST_EPOCH
    )
    probes = (GAPS_PROBE, PAIRS_PROBE)
    parts = DOUBLING
    measures_words = False

    @property
    def arms(self) -> Sequence[PretrainedArm]:
        """Both models, and the left-to-right one frozen under a BiLSTM."""
        return ARMS

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims on word and sentence tasks, at the end and early in pre-training."""
        both, left = Side(BOTH, LAST), Side(LEFT_TO_RIGHT, LAST)
        bilstm = Side(f"{LEFT_TO_RIGHT}+bilstm", LAST)
        words, sentences, early = (
            "On words (SQuAD), both directions are better than left to right",
            "On pairs of sentences (MRPC, MNLI), both directions are better than left to right",
            "Both directions are better almost from the beginning of pre-training",
        )
        return (
            Claim(words, TABLE_5, "gaps", both, left),
            Claim(sentences, TABLE_5, "pairs", Side(BOTH), Side(LEFT_TO_RIGHT)),
            Claim("On words, a BiLSTM on top helps left to right", TABLE_5, "gaps", bilstm, left),
            Claim("But both directions stay better than that", TABLE_5, "gaps", both, bilstm),
            Claim(
                early,
                "Devlin et al. 2018, appendix C.1, figure 5",
                "gaps",
                Side(BOTH, FIRST),
                Side(LEFT_TO_RIGHT, FIRST),
            ),
        )
