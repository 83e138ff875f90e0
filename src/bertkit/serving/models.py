"""Served models: what is loaded of each, options of requests, replacing."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

from bertkit.base.errors import SettingsError, storage_errors
from bertkit.base.settings import Settings, select
from bertkit.checkpoints.checkpoint import copied_files
from bertkit.inference.embeddings.embedder import Embedder, find_prompt
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.engine import Engine
from bertkit.inference.loading import find_max_length
from bertkit.inference.opening import Pipelines, load_pipelines
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import Precision
from bertkit.models.open_model import OpenModel
from bertkit.retrieval.settings import SearchSettings
from bertkit.serving.errors import Reason
from bertkit.serving.searcher import Searcher
from bertkit.serving.settings import ServeSettings
from bertkit.serving.sharing.worker import Worker

logger = logging.getLogger(__name__)

MAX_OPTION_CHARS = 100_000
MAX_VARIANTS = 64  # pipelines with options of requests that are kept
USUAL_BATCH_TOKENS = 2048  # of a model that no engine runs


@dataclass(eq=False)
class ReadyModel:
    """A model that is ready: its pipelines, and those with options of requests.

    It reads its folder no longer, which may hold another model by then.

    Attributes:
        max_length: maximum number of tokens of a text, special ones included.
    """

    opened: OpenModel
    pipelines: Pipelines
    changed: int  # the time of its folder's last change, in seconds since 1970
    whole_precision: Precision  # of a model that no engine computes
    max_length: int = field(init=False)

    def __post_init__(self) -> None:
        self.max_length = find_max_length(self.opened.halves[0], self.opened.model_max_length)
        embedder = self.pipelines.get("embed")
        if isinstance(embedder, Embedder):
            self.max_length = embedder.text_encoder.max_length
        self.opened = self.opened.without_weights()
        self._change = lru_cache(MAX_VARIANTS)(partial(change_options, self.pipelines))

    @cached_property
    def engine(self) -> Engine | None:
        """The engine of its pipelines; None for an encoder-decoder."""
        engines = (getattr(pipeline, "engine", None) for pipeline in self.pipelines.values())
        return next((engine for engine in engines if engine is not None), None)

    @property
    def precision(self) -> Precision:
        """What it computes in, in the task that it is for."""
        engine: Engine | None = getattr(self.usual[1], "engine", None)
        return self.whole_precision if engine is None else engine.precision

    @property
    def batch_tokens(self) -> int:
        """Tokens that are computed at once."""
        return USUAL_BATCH_TOKENS if self.engine is None else self.engine.tokens_per_batch

    def find_prompt(self, name: str) -> str:
        """Return a prompt of an embedder; `SettingsError` if it has none of this name."""
        embedder = self.pipelines.get("embed")
        sentences = embedder.opened.sentences if isinstance(embedder, Embedder) else None
        return find_prompt(sentences, EmbedderSettings(prompt_name=name))

    @property
    def usual(self) -> tuple[str, Any]:
        """The task that it is for, and the pipeline."""
        return next(iter(self.pipelines.items()))

    def choose(self, task: str, options: Settings | None = None) -> Pipeline[Any, Any]:
        """Return a pipeline with the options of a request; equal options give the same object."""
        is_usual = options is None or not options.model_fields_set
        return self.pipelines[task] if is_usual else self._change(task, options)


def change_options(pipelines: Pipelines, task: str, options: Settings) -> Pipeline[Any, Any]:
    """Return a pipeline with options."""
    if len(options.model_dump_json()) > MAX_OPTION_CHARS:
        raise SettingsError(f"options take {MAX_OPTION_CHARS:,} characters; give fewer")
    return pipelines[task].with_options(options)


class ServedModel:
    """A model of the server: what is loaded now, its thread, and how it is loaded again.

    Attributes:
        name: by which requests name it.
        worker: its thread.
    """

    def __init__(
        self, name: str, path: str, settings: ServeSettings, corpus: str | None = None
    ) -> None:
        self.name = name
        self.worker = Worker(name, settings, is_deterministic=settings.deterministic)
        self._loaded: ReadyModel | None = None
        self._path = path
        self._settings = settings
        self._corpus = corpus  # that it searches

    @property
    def is_loaded(self) -> bool:
        """Whether it was loaded once."""
        return self._loaded is not None

    @property
    def loaded(self) -> ReadyModel:
        """Its pipelines; an error before it is loaded."""
        if self._loaded is None:
            raise Reason.LOADING.error(f"{self.name} is being loaded; try again")
        return self._loaded

    def load(self) -> ReadyModel:
        """Load the model and compute something with it, so that the first request is fast."""
        with copied_files():  # whoever replaces a model may write over the files of this one
            opened = OpenModel.open(self._path, revision=self._settings.revision)
            if self._corpus is None:
                pipelines = load_pipelines(opened, select(EmbedderSettings, self._settings))
            else:
                loading = select(SearchSettings, self._settings)
                search = Searcher.build(opened, loading, self._corpus)
                pipelines = {"embed": search.text_embedder, "search": search}
            with storage_errors(opened.folder, "read"):
                changed = int(opened.folder.stat().st_mtime)
        whole: Precision = "bf16" if self._settings.precision == "bf16" else "fp32"
        loaded = ReadyModel(opened, pipelines, changed, whole)
        if loaded.engine is not None and self._settings.max_batch_tokens is not None:
            loaded.engine.tokens_per_batch = self._settings.max_batch_tokens
        for pipeline in loaded.pipelines.values():
            pipeline.warm_up()
        return loaded

    def start(self, loaded: ReadyModel, note: Callable[[int, int], None]) -> None:
        """Serve what was loaded; what waits for an earlier one is computed by that."""
        self.worker.batch_tokens = self._settings.max_batch_tokens or loaded.batch_tokens
        self.worker.num_failures = 0
        if not self.is_loaded:
            self.worker.start(note)
        self._loaded = loaded
