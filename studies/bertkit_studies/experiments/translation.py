"""Study: a Transformer against a recurrent translator, and the gain from an encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from bertkit.base.progress import announce
from bertkit.base.settings import validate
from bertkit.decoders.metrics import translation_signatures
from bertkit.decoders.seq2seq.examples import PairFiles
from bertkit.decoders.seq2seq.pairs import PairSettings
from bertkit.decoders.seq2seq.settings import TranslateSettings
from bertkit.models.open_model import OpenModel
from bertkit_studies.baselines.settings import TranslatorSettings
from bertkit_studies.baselines.translators import (
    Translated,
    draw_encoder,
    identify_inputs,
    train_recurrent,
    train_transformer,
    try_both,
)
from bertkit_studies.probes.downstream import SPLIT_SEED
from bertkit_studies.settings import TranslationSettings
from bertkit_studies.study import Arm, Cell, Claim, Decision, Figure, Measure, Side, Study

SMALL = Path(__file__).with_name("translation_small.json")  # sizes of a Transformer
TRANSFORMER, RECURRENT, WARM = "transformer", "bahdanau", "warm-start"
TOKENS, HELD_OUT, SIGNATURE = "tokens of training", "held-out pairs", "BLEU"
DRAWN_FOLDER = "drawn"
EVALUATED = 16  # pairs that are translated while it trains; the held-out loss tells the best step
NUM_EVALUATIONS = 20


@dataclass(frozen=True)
class TranslationScale:
    """Sizes and budgets of the study.

    Attributes:
        transformer: sizes and vocabulary of a Transformer that starts from random weights.
        recurrent: sizes that give the recurrent translator about as many parameters.
        training: training settings of all arms.
        tokens: training budget of a cell, tokens of both sides.
        warm_rate: peak learning rate of both Transformers if an encoder is given.
        wide_rate: that of the recurrent translator, which is then as wide as the encoder.
    """

    transformer: Mapping[str, Any]
    recurrent: Mapping[str, Any]
    training: Mapping[str, Any]
    tokens: int
    warm_rate: float = 5e-4
    wide_rate: float = 1e-3


SCALES: dict[str, TranslationScale] = {
    "small": TranslationScale(
        {"size": str(SMALL), "vocab_size": 4000, "learning_rate": 3e-3},
        {
            "embedding_size": 128,
            "hidden_size": 128,
            "attention_size": 128,
            "learning_rate": 3e-3,
        },
        {"tokens_per_batch": 2048, "label_smoothing": 0.1, "dropout": 0.1},
        tokens=3_000_000,
    ),
    "large": TranslationScale(
        {"vocab_size": 6000, "learning_rate": 1e-3},
        {
            "embedding_size": 256,
            "hidden_size": 352,
            "attention_size": 352,
            "learning_rate": 1e-3,
        },
        {"tokens_per_batch": 4096, "label_smoothing": 0.1, "dropout": 0.2},
        tokens=60_000_000,
    ),
}

MEASURES = (
    Measure("bleu", "Translations, BLEU", "0 to 100; of all held-out pairs, 5 beams"),
    Measure("chrf", "Translations, chrF", "0 to 100; of the same"),
    Measure("loss", "Held-out loss", "nats for a token", is_higher_better=False),
    Measure("tokens_per_second", "Training tokens per second", "on this machine", is_speed=True),
    Measure("parameters", "Parameters", "of the whole model", is_higher_better=False),
)
ATTENTION_PAPER = "Vaswani et al. 2017, section 6.1, table 2"
WARM_PAPER = "Rothe et al. 2020, section 4.3"


@final
class Translation(Study[TranslationSettings]):
    """Compare a Transformer, Bahdanau's translator, and a Transformer from an encoder."""

    name = "translation"
    question = "Does a Transformer translate better than a recurrent net with attention?"
    finding = (
        "Vaswani et al. 2017 (section 6.1, table 2) found the Transformer better than the recurrent"
        " and convolutional translators of its time (28.4 BLEU against 24.6 of a recurrent one,"
        " English to German), after far less training. Rothe et al. 2020 found that translation"
        " gains if encoder and decoder start from a pre-trained encoder."
    )
    budget = (
        "All arms are trained on the same number of tokens of the same pairs with the same"
        " vocabulary, and use the same beam search."
    )
    caution = (
        "The recurrent translator is that of Bahdanau et al. 2014, not the eight-layer model that"
        " the Transformer was compared with. The step with the lowest held-out loss is evaluated"
        " on the same held-out pairs, so all figures are slightly optimistic. With few tokens,"
        " the model that starts learning sooner wins; --minutes or --tokens give more. With"
        " --model, the recurrent translator has the encoder's width, and its number of parameters"
        " differs from the others'. Tokens per second depend on the machine."
    )

    measures = MEASURES

    @property
    def scale(self) -> TranslationScale:
        """The scale for the chosen size."""
        return SCALES[self.settings.size]

    @property
    def files(self) -> PairFiles:
        """The files of text pairs."""
        return PairFiles(self.settings.train, self.settings.dev or None)

    @property
    def arms(self) -> Sequence[Arm]:
        """Two arms from random weights, and a third if an encoder is given."""
        same = "" if self.settings.model is None else ", with the encoder's sizes and vocabulary"
        arms = (
            Arm(TRANSFORMER, f"Transformer, from scratch{same}"),
            Arm(RECURRENT, "GRUs with attention (Bahdanau), from scratch"),
        )
        if self.settings.model is None:
            return arms
        return (*arms, Arm(WARM, "Transformer, encoder and decoder initialized from the encoder"))

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims on quality and speed, and on the gain from an encoder."""
        attention, recurrent = Side(TRANSFORMER), Side(RECURRENT)
        claims = (
            Claim(
                "The Transformer translates better than a recurrent translator",
                ATTENTION_PAPER,
                "bleu",
                attention,
                recurrent,
            ),
            Claim(
                "The Transformer trains faster",
                ATTENTION_PAPER,
                "tokens_per_second",
                attention,
                recurrent,
            ),
        )
        if self.settings.model is None:
            return claims
        text = "Translations are better if encoder and decoder are initialized from an encoder"
        return (*claims, Claim(text, WARM_PAPER, "bleu", Side(WARM), attention))

    def identify_data(self) -> str:
        """Return checksums of the pairs and of the encoder."""
        return identify_inputs(self.files, self.settings.model)

    def decide(self) -> Decision:
        """Convert the budget to tokens, by the slower net; record how BLEU is computed."""
        announce("measuring a few steps of each kind of model")
        tokens = self.settings.tokens or self.scale.tokens
        choices = self.choose(0, tokens, self.settings.model), self.choose_recurrent(0, tokens)
        trial = try_both(self.files, *choices)
        speeds = [pace.tokens_per_step / pace.step_seconds for pace in trial.paces]
        if self.settings.minutes is not None:
            tokens = max(1, int(60 * self.settings.minutes * min(speeds)))
        seconds = [
            tokens / speed + NUM_EVALUATIONS * pace.evaluation_seconds
            for speed, pace in zip(speeds, trial.paces, strict=True)
        ]
        guesses = {TRANSFORMER: seconds[0], RECURRENT: seconds[1], WARM: seconds[0]}
        known = {arm.name: guesses[arm.name] for arm in self.arms}
        held_out = trial.num_held_out
        values: dict[str, int | float | str] = {
            TOKENS: tokens,
            HELD_OUT: held_out,
            SIGNATURE: translation_signatures(held_out)["bleu"],
        }
        return Decision(values, known)

    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Train a translator, and translate the held-out texts."""
        tokens = int(decision.values[TOKENS])
        found = self._train(cell, folder, tokens)
        return [Figure(name, value) for name, value in asdict(found).items()]

    def _train(self, cell: Cell, folder: Path, tokens: int) -> Translated:
        output, model = folder / cell.place / "model", self.settings.model
        if cell.arm == RECURRENT:
            settings = self.choose_recurrent(cell.seed, tokens)
            shared = self.choose(cell.seed, tokens, model)
            return train_recurrent(self.files, output, settings, shared)
        if cell.arm == TRANSFORMER and model is not None:
            drawn = folder / DRAWN_FOLDER / f"seed{cell.seed}"
            model = str(draw_encoder(model, drawn, cell.seed))
        return train_transformer(self.files, output, self.choose(cell.seed, tokens, model))

    def choose(self, seed: int, tokens: int, model: str | None) -> TranslateSettings:
        """Return the settings of a Transformer.

        Args:
            seed: the seed of the run.
            tokens: its budget.
            model: the encoder to start from; None for random weights.
        """
        begins: Mapping[str, Any] = self.scale.transformer
        if model is not None:
            begins = {"model": model, "learning_rate": self.scale.warm_rate}
        values = {
            **self._training(seed, tokens),
            **self.settings.model_dump(include=set(PairSettings.model_fields)),
            **begins,
            "average": 1,
            "metric": "loss",
            "eval_examples": EVALUATED,
            "split_seed": SPLIT_SEED,
        }
        return validate(TranslateSettings, values, TRANSFORMER)

    def choose_recurrent(self, seed: int, tokens: int) -> TranslatorSettings:
        """Return the settings of the recurrent translator; as wide as the encoder if given."""
        sizes = dict(self.scale.recurrent)
        if self._encoder_width is not None:
            names = ("embedding_size", "hidden_size", "attention_size")
            sizes |= dict.fromkeys(names, self._encoder_width)
            sizes |= {"learning_rate": self.scale.wide_rate}
        values = {**self._training(seed, tokens), **sizes}
        return validate(TranslatorSettings, values, RECURRENT)

    def _training(self, seed: int, tokens: int) -> dict[str, Any]:
        """Return settings of all arms; equally many evaluations, because the best is kept."""
        num_steps = tokens / self.scale.training["tokens_per_batch"]
        return {
            **self.scale.training,
            "schedule": "linear",
            "beta2": 0.98,
            "weight_decay": 1e-4,
            "eval_every": max(1, round(num_steps / NUM_EVALUATIONS)),
            "seed": seed,
            "tokens": tokens,
            "device": self.settings.device,
        }

    @cached_property
    def _encoder_width(self) -> int | None:
        """Hidden size of the encoder; None if there is none."""
        if self.settings.model is None:
            return None
        config = OpenModel.open(self.settings.model).config
        return config.hidden_size
