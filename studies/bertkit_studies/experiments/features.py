"""Study: a fine-tuned encoder against frozen vectors, its own and older methods'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, final

from bertkit.inference.embeddings.settings import PoolingName
from bertkit.models.bert.config import PRESETS
from bertkit_studies.baselines.vector_classifier import Encode, score_vectors
from bertkit_studies.baselines.vector_sources import (
    LEARNERS,
    SKIP_GRAM,
    SKIP_THOUGHT,
    Learning,
    freeze,
)
from bertkit_studies.baselines.word_vectors import load_word2vec
from bertkit_studies.probes.downstream import MAX_LENGTH, LabeledTask, TaskTuning
from bertkit_studies.probes.frozen_bilstm import BiLstm
from bertkit_studies.probes.pretrained_arms import SCALES, PretrainedArm, PretrainingScale
from bertkit_studies.probes.pretraining import TOKENS, PretrainingStudy, name_steps
from bertkit_studies.probes.probes import LABELED, LABELED_PROBE, PAIRS_PROBE, Probe
from bertkit_studies.probes.text_tasks import PAIRS
from bertkit_studies.study import Cell, Claim, Decision, Figure, Measure, Side

FINE_TUNED, LAST_FOUR_READ = "fine-tuned", "last-four+bilstm"
LAST_FOUR, LAST_LAYER = "last-four", "last-layer"
TABLE_7 = "Devlin et al. 2018, section 5.3, table 7"


@dataclass(frozen=True)
class VectorArm(PretrainedArm):
    """A frozen encoder with logistic regression.

    Attributes:
        pooling: how its hidden states become one vector.
    """

    pooling: PoolingName = "mean"


# Masked words only: next-sentence prediction would train the encoder for the pairs task.
ARMS = (
    PretrainedArm(FINE_TUNED, "the whole encoder is fine-tuned", {"objective": "mlm"}),
    PretrainedArm(
        LAST_FOUR_READ,
        "frozen encoder; a BiLSTM of two layers reads its last four layers",
        shares=FINE_TUNED,
        fine_tuning={"learning_rate": 3e-3},
        bilstm=BiLstm(layers=(-4, -3, -2, -1)),
    ),
    VectorArm(
        LAST_FOUR,
        "frozen encoder; the mean of its last four layers, concatenated",
        shares=FINE_TUNED,
        pooling="last_four_concat",
    ),
    VectorArm(LAST_LAYER, "frozen encoder; the mean of its last layer", shares=FINE_TUNED),
    PretrainedArm(
        SKIP_THOUGHT,
        "the state of a GRU trained to predict neighboring sentences",
        shares=FINE_TUNED,
    ),
    PretrainedArm(SKIP_GRAM, "the mean of static vectors of words", shares=FINE_TUNED),
)


@final
class Features(PretrainingStudy):
    """Compare fine-tuning, features of the same encoder, and vectors from before BERT."""

    name = "features"
    question = "Is fine-tuning better than frozen features?"
    finding = (
        "Devlin et al. 2018 (section 5.3, table 7) found that on named entities the feature-based"
        " approach, a BiLSTM on the concatenated last four layers (96.1 F1), is nearly as good as"
        " fine-tuning (96.4), and better than the last layer alone (94.9). Reimers and Gurevych"
        " 2019 (section 5) found the mean of BERT's last layer better than that of static vectors"
        " under logistic regression, and Kiros et al. 2015 (section 3.4) skip-thought vectors"
        " better than means of words on most sets."
    )
    budget = (
        "All models are pre-trained on the same shards: encoder and skip-thought on the same"
        " number of tokens in about the same number of steps, skip-gram for the nearest whole"
        " number of epochs, or, if the text has more tokens, on sentences drawn from it. Labels"
        " and held-out examples are the same for all."
    )
    caution = (
        f"Of a text {MAX_LENGTH} tokens are read at most. The two arms that learn through the"
        " encoder read a pair of texts together, as many tokens of both; for the others each"
        " text is a vector of its own, and a pair is their difference and product. Fine-tuning"
        " keeps its best epoch and logistic regression the best of four regularization strengths,"
        " both selected on the held-out examples, so all figures are slightly optimistic. The"
        " encoder is trained on masked words only. Skip-thought's tokens are those of each"
        " sentence and of the two neighbors that it predicts; that is close to the task used"
        " without labels, whether two sentences come from the same document (--labeled uses your"
        " own labels). Skip-gram needs far less computation for the same tokens, and the encoder"
        " is tiny: published ones were trained on ten thousand times as many tokens."
    )
    # The smallest model with four layers.
    scales: ClassVar[Mapping[str, PretrainingScale]] = {
        "small": replace(
            SCALES["small"],
            pretraining={**SCALES["small"].pretraining, "size": "mini"},
            fine_tuning=TaskTuning(num_train=1_000, num_dev=500, learning_rate=3e-4),
        ),
        "large": SCALES["large"],
    }
    probes = (
        replace(PAIRS_PROBE, measure=replace(PAIRS_PROBE.measure, title="Same document or not")),
    )
    measures_words = False

    @property
    def all_probes(self) -> list[Probe]:
        """The probes, with titles that fit arms without fine-tuning."""
        measure = replace(LABELED_PROBE.measure, title="The labeled examples")
        more = [replace(LABELED_PROBE, measure=measure)]
        return [*self.probes, *(more if self.settings.labeled is not None else [])]

    @property
    def measures(self) -> Sequence[Measure]:
        """The measures; that of the labeled examples first, if there are any."""
        return [probe.measure for probe in reversed(self.all_probes)]

    arms = ARMS

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims on the labeled examples, or on pairs if there are none."""
        measure = PAIRS if self.settings.labeled is None else LABELED
        found = (
            (
                "Fine-tuning is better than a BiLSTM on the frozen last four layers",
                TABLE_7,
                FINE_TUNED,
                LAST_FOUR_READ,
            ),
            ("The last four layers are better than the last one", TABLE_7, LAST_FOUR, LAST_LAYER),
            (
                "Fine-tuning is better than the frozen last layer",
                TABLE_7,
                FINE_TUNED,
                LAST_LAYER,
            ),
            (
                "The frozen last layer is better than static vectors",
                "Reimers and Gurevych 2019, section 5",
                LAST_LAYER,
                SKIP_GRAM,
            ),
            (
                "Skip-thought vectors are better than static vectors",
                "Kiros et al. 2015, section 3.4",
                SKIP_THOUGHT,
                SKIP_GRAM,
            ),
        )
        return tuple(
            Claim(text, source, measure, Side(better), Side(worse))
            for text, source, better, worse in found
        )

    def decide(self) -> Decision:
        """Check the last arm's requirements first; otherwise they would fail only after hours."""
        if not self.settings.only or SKIP_GRAM in self.settings.only:
            load_word2vec()
        return super().decide()

    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Learn vectors without an encoder, or pre-train one unless another arm shares it."""
        if cell.arm not in LEARNERS:
            return super().run_cell(cell, folder, decision)
        tokens, steps = (int(decision.values[name]) for name in (TOKENS, name_steps(FINE_TUNED)))
        learning = Learning(
            data=self.settings.data,
            output=folder / cell.place / "vectors",
            tokens=tokens,
            tokens_per_step=tokens / steps,
            num_features=PRESETS[self.scale.pretraining["size"]]["hidden_size"],
            max_length=MAX_LENGTH,
            seed=cell.seed,
            device=self.settings.device,
        )
        values = self._score(cell, LEARNERS[cell.arm](learning), self._list_tasks(folder, decision))
        return [Figure(name, value) for name, value in values.items()]

    def _measure(
        self,
        cell: Cell,
        checkpoint: Path,
        place: Path,
        tasks: Mapping[str, LabeledTask],
        *,
        is_end: bool,
    ) -> dict[str, float]:
        """Return all measured values of a checkpoint, by measure."""
        arm = self._find_arm(cell.arm)
        if not isinstance(arm, VectorArm):
            return super()._measure(cell, checkpoint, place, tasks, is_end=is_end)
        encode = freeze(checkpoint, arm.pooling, MAX_LENGTH, self.settings.device)
        return self._score(cell, encode, tasks)

    def _score(
        self, cell: Cell, encode: Encode, tasks: Mapping[str, LabeledTask]
    ) -> dict[str, float]:
        """Score vectors on each task; return the values by measure."""
        settings = self.scale.fine_tuning.choose(cell.seed, self.settings.device, {})
        return {
            probe.measure.name: score_vectors(tasks[probe.task], encode, settings)
            for probe in self.all_probes
            if probe.task in tasks
        }
