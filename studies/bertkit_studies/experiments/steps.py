"""Study: the length of pre-training."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, final

from bertkit_studies.probes.pretrained_arms import SCALES, PretrainedArm, PretrainingScale
from bertkit_studies.probes.pretraining import DOUBLING, PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH, GAPS_PROBE
from bertkit_studies.study import FIRST, LAST, Claim, Side

ARM = "bert"
START, END = Side(ARM, FIRST), Side(ARM, LAST)
MORE = 4  # times the tokens of the other studies: there is one arm
FIGURE_5 = "Devlin et al. 2018, appendix C.1, figure 5"


@final
class Steps(PretrainingStudy):
    """Measure one run at several steps."""

    name = "steps"
    question = "Is longer pre-training better?"
    finding = (
        "Devlin et al. 2018 (appendix C.1, figure 5) found that it is: after 1,000,000 steps MNLI"
        " accuracy is almost 1 point higher than after 500,000, and still rising."
    )
    budget = "One run per seed, measured after an eighth, a quarter, half and all of its steps."
    caution = (
        "The learning rate falls to 0 by the end, so an earlier measurement is of a model in the"
        " middle of its training, not of one trained for that long. " + BEST_EPOCH
    )
    scales: ClassVar[Mapping[str, PretrainingScale]] = {
        name: replace(scale, tokens=MORE * scale.tokens) for name, scale in SCALES.items()
    }
    probes = (GAPS_PROBE,)
    parts = DOUBLING

    arms = (PretrainedArm(ARM, "masked words and next sentence", {"objective": "bert"}),)
    claims = (
        Claim(
            "Longer pre-training predicts masked words better", FIGURE_5, "masked_loss", END, START
        ),
        Claim("Longer pre-training is better on tasks", FIGURE_5, "gaps", END, START),
    )
