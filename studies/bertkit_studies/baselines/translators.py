"""Train and evaluate the translators of the translation study."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from bertkit.base.checksums import record_file
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.decoders.decoding.sequences import Sequences
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.examples import PairFiles
from bertkit.decoders.seq2seq.job import Seq2SeqJob
from bertkit.decoders.seq2seq.run import Seq2SeqTraining, train_seq2seq
from bertkit.decoders.seq2seq.settings import TranslateSettings
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.training.budget import StepPace, measure_pace
from bertkit.training.job import Machine
from bertkit.training.log import read_log
from bertkit.training.run import Run
from bertkit_studies.baselines import run as recurrent_run
from bertkit_studies.baselines.settings import TranslatorSettings
from bertkit_studies.baselines.translator import plan_translator, train_translator
from bertkit_studies.recurrent.sequences import TranslatorSequences
from bertkit_studies.recurrent.translator import AttentionalTranslator


@dataclass(frozen=True)
class Translated:
    """The measured values of a translator.

    Attributes:
        bleu: BLEU on the held-out pairs.
        chrf: chrF on the held-out pairs.
        loss: cross-entropy of the reference tokens of the held-out pairs, in nats.
        tokens_per_second: median training speed; tokens of both sides.
        parameters: number of parameters.
    """

    bleu: float
    chrf: float
    loss: float
    tokens_per_second: float
    parameters: float


@dataclass(frozen=True)
class Trial:
    """Measurements that are made before the first run.

    Attributes:
        paces: the cost of a step of the Transformer and of the recurrent translator.
        num_held_out: number of held-out pairs.
    """

    paces: tuple[StepPace, StepPace]
    num_held_out: int


@dataclass(frozen=True)
class RecurrentGenerator(Seq2SeqGenerator):
    """Generates with a recurrent translator instead of an encoder-decoder of Transformers."""

    model: AttentionalTranslator  # type: ignore[assignment]  # both hooks below use this one

    def start(self, sources: PackedBatch) -> Sequences:
        """Start one target for each source."""
        return TranslatorSequences(self.model, sources)

    @property
    def num_scores(self) -> int:
        """Number of scores of a next token."""
        return self.model.config.vocab_size


def train_transformer(files: PairFiles, output: Path, settings: TranslateSettings) -> Translated:
    """Train an encoder-decoder, or load its result; raises what `train_seq2seq` raises."""
    saved = train_seq2seq(files, output, settings).saved
    return Translated(
        bleu=saved.metrics["bleu"],
        chrf=saved.metrics["chrf"],
        loss=saved.metrics["word_loss"],
        tokens_per_second=read_speed(output / RUN_FOLDER),
        parameters=count_parameters(EncoderDecoderModel.from_pretrained(output)),
    )


def train_recurrent(
    files: PairFiles, output: Path, settings: TranslatorSettings, shared: TranslateSettings
) -> Translated:
    """Train a recurrent translator on the same tokens, or load its result.

    Args:
        files: pairs of texts.
        output: the run's folder.
        settings: settings of the translator.
        shared: settings of the Transformer: they decide vocabulary, lengths and held-out pairs.
    """
    job = open_job(files, shared)
    result = train_translator(job.train, job.dev, job.tokenizer, output, settings)
    net = AttentionalTranslator.from_pretrained(result.checkpoint).to(job.machine.device)
    with job.machine.mixed_precision():
        written = write_translations(net, job)
    metrics = job.measure(written)
    return Translated(
        bleu=metrics["bleu"],
        chrf=metrics["chrf"],
        loss=result.metrics["word_loss"],
        tokens_per_second=read_speed(output),
        parameters=count_parameters(net),
    )


def open_job(files: PairFiles, settings: TranslateSettings) -> Seq2SeqJob:
    """Read the pairs, and build the Transformer."""
    return Seq2SeqTraining(files, settings).open(None, Machine.choose(settings))


def write_translations(net: AttentionalTranslator, job: Seq2SeqJob) -> list[str]:
    """Translate the held-out texts."""
    generator = RecurrentGenerator(net, job.tokenizer, job.saved, job.saved.decoding)
    return [answer.text for answer in generator.stream(job.data.dev.sources)]


def try_both(files: PairFiles, settings: TranslateSettings, recurrent: TranslatorSettings) -> Trial:
    """Measure a few steps of the Transformer and of the recurrent translator."""
    job = open_job(files, settings)
    plan = plan_translator(job.train, job.dev, job.tokenizer, recurrent)
    net = plan.begin().to(job.machine.device)
    other = recurrent_run.BaselineJob(plan, net, job.machine, recurrent)
    return Trial((measure_pace(job), measure_pace(other)), len(job.dev))


def draw_encoder(name: str, folder: Path, seed: int) -> Path:
    """Return an encoder of the same sizes and vocabulary with random weights.

    Args:
        name: the encoder, as in `OpenModel.open`.
        folder: the folder of the random encoder; an existing one is kept.
        seed: the seed of the weights.
    """
    if not (folder / "model.safetensors").exists():
        encoder = OpenModel.open(name)
        torch.manual_seed(seed)
        encoder.tokenizer.save(folder)
        BertForMaskedLM(encoder.config).save_pretrained(folder)
    return folder


def identify_inputs(files: PairFiles, model: str | None) -> str:
    """Return checksums of the pairs, and of the encoder if there is one, as JSON."""
    files.check()
    given = {"train": files.train, "dev": files.dev}
    found: dict[str, Any] = {
        name: [record_file(path).sha256 for path in paths]
        for name, paths in given.items()
        if isinstance(paths, tuple)
    }
    if model is not None:
        found["model"] = OpenModel.open(model).identify()["sha256"]
    return json.dumps(found, sort_keys=True)


def read_speed(run: Path) -> float:
    """Return the median tokens per second of a run's logged steps."""
    rows = read_log(Run(run).log_path)
    return float(median(row["tokens_per_second"] for row in rows if row["event"] == "train"))


def count_parameters(net: nn.Module) -> float:
    """Return the number of parameters."""
    return float(sum(parameter.numel() for parameter in net.parameters()))
