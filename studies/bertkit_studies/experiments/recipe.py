"""Study: the settings of pre-training that are worth their time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

from bertkit_studies.probes.pretrained_arms import SCALES as COMMON_SCALES
from bertkit_studies.probes.pretrained_arms import PretrainedArm, PretrainingScale
from bertkit_studies.probes.pretraining import PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH
from bertkit_studies.study import Claim, Side

WORDS = {"objective": "mlm"}
NO_DROPOUT = {**WORDS, "dropout": 0.0}
NEIGHBORS = {**NO_DROPOUT, "initialization": "neighbors"}
MASK_40 = {**NEIGHBORS, "mask_rate": 0.4}
MUON = {**MASK_40, "optimizer": "muon", "muon_learning_rate": 0.02}
MORE = 4  # times the tokens of the other studies
SCALES = {
    name: replace(
        scale,
        pretraining={**scale.pretraining, "learning_rate": 2e-3},
        tokens=MORE * scale.tokens,
    )
    for name, scale in COMMON_SCALES.items()
}


@final
class TrainingRecipes(PretrainingStudy):
    """Change the paper's recipe step by step, at equal time."""

    name = "recipe"
    question = "Which settings of pre-training are worth their time?"
    finding = (
        "Trockman and Kolter 2023 found that attention learns faster if it starts with the"
        " patterns of trained models; Geiping and Goldstein 2022 (“Cramming”, section 4.3) that"
        " dropout costs more than it gives in a single day of training; Liu et al. 2019 that next"
        " sentence prediction isn't needed; Jordan et al. 2024 that Muon needs less time than"
        " AdamW; Wettig et al. 2023 that masking 40 % instead of 15 % helps large models."
    )
    budget = (
        "All arms train for the time that the first needs for its tokens; each of the first five"
        " adds one change to the one before it, and the others change the fifth."
    )
    caution = (
        "Small models and a few minutes: what costs time at first may pay off later. Arms are"
        " compared on masked words of contiguous text, 15 % of them; arms with other objectives or"
        " mask rates are measured in the same way. A step's time is measured before the first run;"
        " other work on the machine at that moment changes the number of steps. " + BEST_EPOCH
    )
    scales: ClassVar[Mapping[str, PretrainingScale]] = SCALES
    probes = ()
    is_equal_time = True

    @property
    def arms(self) -> Sequence[PretrainedArm]:
        """The arms; learning rates follow the scale's."""
        rate = float(self.scale.pretraining["learning_rate"])
        return [
            PretrainedArm("paper", "as in Devlin et al. 2018", {"objective": "bert"}),
            PretrainedArm("words-alone", "without next sentence prediction", WORDS),
            PretrainedArm("no-dropout", "also without dropout", NO_DROPOUT),
            PretrainedArm("neighbors", "also with heads that start at neighbors", NEIGHBORS),
            PretrainedArm("mask-40", "also with 40 % masked", MASK_40),
            _at(rate / 2, "half-rate", "as mask-40, at half the learning rate", MASK_40),
            _at(2 * rate, "double-rate", "as mask-40, at twice the learning rate", MASK_40),
            PretrainedArm("muon", "as mask-40, with Muon at 0.02", MUON),
            _muon_at(0.01, "muon-half-rate", "with Muon at 0.01"),
            _muon_at(0.04, "muon-double-rate", "with Muon at 0.04"),
        ]

    claims = (
        Claim(
            "Without next sentence prediction, words are predicted better",
            "Liu et al. 2019, section 4.2, table 2",
            "masked_loss",
            better=Side("words-alone"),
            worse=Side("paper"),
        ),
        Claim(
            "Without dropout, a short training ends better",
            "Geiping and Goldstein 2022, section 4.3",
            "masked_loss",
            better=Side("no-dropout"),
            worse=Side("words-alone"),
        ),
        Claim(
            "Attention that starts with patterns of trained models learns faster",
            "Trockman and Kolter 2023, abstract",
            "masked_loss",
            better=Side("neighbors"),
            worse=Side("no-dropout"),
        ),
        Claim(
            "A higher mask rate is better (found for large models)",
            "Wettig et al. 2023, abstract",
            "masked_loss",
            better=Side("mask-40"),
            worse=Side("neighbors"),
        ),
        Claim(
            "Muon learns faster than AdamW",
            "Jordan et al. 2024",
            "masked_loss",
            better=Side("muon"),
            worse=Side("mask-40"),
        ),
    )


def _at(rate: float, name: str, summary: str, changes: Mapping[str, Any]) -> PretrainedArm:
    return PretrainedArm(name, summary, {**changes, "learning_rate": rate})


def _muon_at(rate: float, name: str, summary: str) -> PretrainedArm:
    return PretrainedArm(name, f"as mask-40, {summary}", {**MUON, "muon_learning_rate": rate})
