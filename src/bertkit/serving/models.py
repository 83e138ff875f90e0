"""Served models: which pipelines a model has, loading, options of requests, replacing."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch

from bertkit.base.errors import storage_errors
from bertkit.base.settings import select
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.inference.embeddings.embedder import Embedder, find_prompt
from bertkit.inference.embeddings.features import as_array
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.generation.generator import Generator
from bertkit.inference.generation.seq2seq_generator import Translator
from bertkit.inference.generation.settings import read_seq2seq_file
from bertkit.inference.generation.summarizer import (
    AbstractiveSummarizer,
    TrainedSummarizer,
    is_extractor,
)
from bertkit.inference.loading import LoadedModel, find_max_length
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline, compute_in_batches, start_engine
from bertkit.inference.predictor import EncodedExamples, Predictor
from bertkit.inference.settings import EngineSettings, LoadingSettings
from bertkit.inference.stream import EncodedTexts
from bertkit.inference.text_scorer import TextScorer
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.serving.errors import LoadingError
from bertkit.serving.settings import ServeSettings
from bertkit.serving.worker import ComputedBatch, Worker
from bertkit.tasks.saved import BY_ARCHITECTURE
from bertkit.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MAX_VARIANTS = 64  # pipelines with options of requests that are kept
USUAL_BATCH_TOKENS = 2048  # of a model that no engine runs
Pipelines = dict[str, Pipeline[Any, Any]]


def load_pipelines(opened: OpenModel, settings: ServeSettings) -> Pipelines:
    """Load the pipelines of a model, by the name of what each does; they share its weights."""
    engine, whole = select(EngineSettings, settings), select(LoadingSettings, settings)
    if opened.is_encoder_decoder:
        kind = read_seq2seq_file(opened.folder).kind
        writer = Translator if kind == "translate" else AbstractiveSummarizer
        return {kind: writer.load(opened, take_whole(whole))}
    if opened.is_sentence_encoder:
        return {"embed": load_embedder(opened, settings)}
    if opened.is_causal and "masked_lm" in opened.heads:
        generator = Generator.load(opened, take_whole(whole))
        return {"generate": generator, "score": TextScorer.load(opened, engine)}
    if is_extractor(opened.folder):
        return {"summarize": TrainedSummarizer.load(opened, engine)}
    if (opened.folder / TASK_FILE).exists() or opened.architecture in BY_ARCHITECTURE:
        predictor: Predictor[Any, Any, Any] = Predictor.load(opened, engine)
        return {predictor.task.name: predictor}
    if "masked_lm" in opened.heads:
        return load_pretrained(opened, engine)
    return {"embed": load_embedder(opened, settings)}


def load_pretrained(opened: OpenModel, settings: EngineSettings) -> Pipelines:
    """Load what the heads of pre-training do."""
    reads_pairs = "next_sentence" in opened.heads and "pooler" in opened.heads
    kind = BertForPreTraining if reads_pairs else BertForMaskedLM
    loaded: LoadedModel[Any] = LoadedModel.load(kind, opened, settings.device)
    engine = start_engine(loaded.model, settings)
    found: Pipelines = {
        "fill-mask": FillMask(loaded, engine),
        "score": TextScorer(loaded, engine),
    }
    return found | ({"next-sentence": NextSentence(loaded, engine)} if reads_pairs else {})


def load_embedder(opened: OpenModel, settings: ServeSettings) -> Embedder:
    """Load an embedder."""
    return Embedder.load(opened, select(EmbedderSettings, settings))


def take_whole(settings: LoadingSettings) -> LoadingSettings:
    """Return the settings of a model that no engine runs, for which int8 isn't meant."""
    return settings.model_copy(update={"precision": "auto"} if settings.precision == "int8" else {})


RAW = {"raw": True}  # the option of a predictor that gives logits


class LogitsOf(Predictor[Any, Any, Any]):
    """Gives the logits of each input, `[rows, labels]`, with a row for each of its windows."""

    def decode_window(self, encoded: EncodedExamples[Any], computed: Sequence[Any]) -> Any:
        """Return the logits as they are."""
        return computed


@dataclass(eq=False)
class ReadyModel:
    """A model that is ready: its pipelines, and those with options of requests."""

    opened: OpenModel
    pipelines: Pipelines
    _variants: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def batch_tokens(self) -> int:
        """Tokens that are computed at once."""
        engines = (getattr(pipeline, "engine", None) for pipeline in self.pipelines.values())
        sizes = [engine.tokens_per_batch for engine in engines if engine is not None]
        return max(sizes, default=USUAL_BATCH_TOKENS)

    @cached_property
    def changed(self) -> int:
        """The time of its folder's last change, in seconds since 1970."""
        with storage_errors(self.opened.folder, "read"):
            return int(self.opened.folder.stat().st_mtime)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        return self.opened.tokenizer

    def find_prompt(self, name: str) -> str:
        """Return a prompt of an embedder; `SettingsError` if it has none of this name."""
        embedder = self.pipelines.get("embed")
        sentences = embedder.opened.sentences if isinstance(embedder, Embedder) else None
        return find_prompt(sentences, EmbedderSettings(prompt_name=name))

    @cached_property
    def inspected(self) -> InspectedModel:
        """Its encoder for views of attention, loaded when it is first asked for."""
        return InspectedModel.load(self.opened, "cpu")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of a classifier, in their order."""
        return tuple((self.opened.config.id2label or {}).values())

    @property
    def precision(self) -> str:
        """The type of its weights and products, as text-embeddings-inference names it."""
        engines = (getattr(pipeline, "engine", None) for pipeline in self.pipelines.values())
        precision = next((engine.precision for engine in engines if engine is not None), "fp32")
        return {"fp32": "float32", "bf16": "bfloat16"}.get(precision, precision)

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a text, special ones included."""
        embedder = self.pipelines.get("embed")
        if isinstance(embedder, Embedder):
            return embedder.text_encoder.max_length
        return find_max_length(self.opened.halves[0], self.opened.model_max_length)

    @property
    def usual(self) -> tuple[str, Any]:
        """The task that it is for, and the pipeline."""
        return next(iter(self.pipelines.items()))

    def limit_batches(self, num_tokens: int | None) -> None:
        """Let the engines compute at most so many tokens at once."""
        for pipeline in self.pipelines.values():
            if num_tokens is not None and hasattr(pipeline, "engine"):
                pipeline.engine.tokens_per_batch = num_tokens

    def choose(self, task: str, options: Mapping[str, Any]) -> Any:
        """Return a pipeline with the options of a request; equal options give the same object."""
        pipeline = self.pipelines[task]
        if not options:
            return pipeline
        key = json.dumps([task, options], sort_keys=True, default=str)
        found = self._variants.get(key)
        if found is None:
            if len(self._variants) >= MAX_VARIANTS:
                self._variants.pop(next(iter(self._variants)))
            found = self._variants[key] = change_options(pipeline, options)
        return found


class TokenEmbedder(Embedder):
    """Gives the last hidden states of each text's tokens, `[tokens, hidden]`."""

    @torch.inference_mode()
    def compute_window(self, encoded: EncodedTexts) -> Any:
        """Compute the states of a window of texts, none of which is divided into parts."""
        return compute_in_batches(
            encoded.ids, list(map(len, encoded.ids)), self.engine.tokens_per_batch, self._compute
        )

    def _compute(self, batch: Sequence[list[int]]) -> list[Any]:
        packed = PackedBatch.from_single(batch)
        states = as_array(self.engine(packed)[-1])
        return np.split(states, packed.first_tokens[1:].tolist())


def change_options(pipeline: Pipeline[Any, Any], options: Mapping[str, Any]) -> Any:
    """Return a pipeline with other options."""
    if isinstance(pipeline, Embedder):
        rest = {**options}
        kind = TokenEmbedder if rest.pop("by_token", False) else Embedder
        return copy_as(kind, pipeline.change(**rest))
    if isinstance(pipeline, Predictor) and options == RAW:
        return copy_as(LogitsOf, pipeline)
    return pipeline.with_options(**options)


def copy_as(kind: Any, pipeline: Any) -> Any:
    """Return a pipeline as another class with the same fields."""
    return kind(**{one.name: getattr(pipeline, one.name) for one in fields(pipeline)})


def warm_up(pipeline: Pipeline[Any, Any]) -> None:
    """Compute something, which starts the threads of an engine."""
    if isinstance(pipeline, Embedder):
        pipeline(["a", "b " * 100])


class ServedModel:
    """A model of the server: what is loaded now, its thread, and how it is loaded again.

    Attributes:
        name: by which requests name it.
        is_loaded: whether it was loaded once; else there is neither of the following.
        loaded: its pipelines.
        worker: its thread.
    """

    def __init__(self, name: str, path: str, settings: ServeSettings) -> None:
        self.name = name
        self._loaded: ReadyModel | None = None
        self._worker: Worker | None = None
        self._path = path
        self._settings = settings

    @property
    def is_loaded(self) -> bool:
        """Whether it was loaded once."""
        return self._loaded is not None

    @property
    def loaded(self) -> ReadyModel:
        """Its pipelines; LoadingError before it is loaded."""
        if self._loaded is None:
            raise LoadingError(f"{self.name} is being loaded; try again")
        return self._loaded

    @property
    def worker(self) -> Worker:
        """Its thread; LoadingError before it is loaded."""
        if self._worker is None:
            raise LoadingError(f"{self.name} is being loaded; try again")
        return self._worker

    def close(self) -> None:
        """End its thread when what waits is done."""
        if self._worker is not None:
            self._worker.close()

    def load(self) -> ReadyModel:
        """Load the model and compute something with it, so that the first request is fast."""
        opened = OpenModel.open(self._path, revision=self._settings.revision)
        loaded = ReadyModel(opened, load_pipelines(opened, self._settings))
        loaded.limit_batches(self._settings.max_batch_tokens)
        for pipeline in loaded.pipelines.values():
            warm_up(pipeline)
        return loaded

    def start(self, loaded: ReadyModel, note: Callable[[ComputedBatch], None]) -> None:
        """Serve what was loaded; what waits for an earlier one is computed by that."""
        self._loaded = loaded
        if self._worker is None:
            self._worker = Worker(
                self.name,
                self._settings,
                batch_tokens=loaded.batch_tokens,
                is_deterministic=self._settings.deterministic,
                note=note,
            )
