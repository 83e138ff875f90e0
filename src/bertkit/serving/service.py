"""Served models: what is loaded of each, options of requests, and loading them again."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
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
from bertkit.serving.errors import Reason
from bertkit.serving.metrics import ServerMetrics
from bertkit.serving.searcher import INDEX_SUFFIX, Searcher
from bertkit.serving.settings import ServeSettings
from bertkit.serving.sharing.worker import Worker

logger = logging.getLogger(__name__)

MAX_OPTION_CHARS = 100_000
MAX_VARIANTS = 64  # pipelines with options of requests that are kept
USUAL_BATCH_TOKENS = 2048  # of a model that no engine runs
MAX_FAILURES = 3  # batches in a row of which nothing could be computed
LEAST_SECONDS_BETWEEN_LOADS = 60.0  # of a model that fails
MAX_RELOADS = 2  # one that runs, and one that waits


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
        if options is None or not options.model_fields_set:
            return self.pipelines[task]
        try:
            return self._change(task, options)
        except TypeError:  # a value can't be hashed
            return change_options(self.pipelines, task, options)


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

    def __init__(self, name: str, path: str, settings: ServeSettings) -> None:
        self.name = name
        self.worker = Worker(name, settings, is_deterministic=settings.deterministic)
        self._loaded: ReadyModel | None = None
        self._path = path
        self._settings = settings

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
        loading = select(EmbedderSettings, self._settings)
        with copied_files():  # whoever replaces a model may write over the files of this one
            if (path := Path(self._path)).is_file() or path.suffix == INDEX_SUFFIX:
                search = Searcher.build(path, loading)
                opened = search.embedder.opened
                pipelines: Pipelines = {"embed": search.text_embedder, "search": search}
            else:
                opened = OpenModel.open(self._path, revision=self._settings.revision)
                pipelines = load_pipelines(opened, loading)
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


class Service:
    """Models by name, with the settings and metrics of their server.

    Attributes:
        models: in the order of the command line; the first that does a task is the usual one.
        is_stopping: whether no new requests are taken.
        num_bytes: of the bodies of requests, and of answers until they are sent.
        num_loading: models that are being loaded, each in a thread that can't be stopped.
        tell_others: is called when models were loaded again by a request, for other workers.
    """

    def __init__(
        self, models: Sequence[ServedModel], settings: ServeSettings, worker: str = ""
    ) -> None:
        self.models = {model.name: model for model in models}
        self.settings = settings
        self.metrics = ServerMetrics(worker)
        self.is_stopping = False
        self.num_bytes = 0
        self.num_loading = 0
        self.tell_others: Callable[[], None] = lambda: None
        self._tried_at: dict[str, float] = {}
        self._loading = asyncio.Lock()
        self.reloads: set[asyncio.Task[dict[str, str]]] = set()

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded."""
        return not self.is_stopping and all(one.is_loaded for one in self.models.values())

    async def load(self) -> None:
        """Load all models that aren't, one by one; it is a BertkitError if one can't be loaded."""
        for model in self.models.values():
            if not model.is_loaded:
                await self._load(model)

    async def reload(self, names: Collection[str], *, tells: bool) -> dict[str, str]:
        """Load models again; return why some couldn't be, which stay as they are.

        A model that is replaced finishes what waits for it.
        """
        problems = {}
        for name in names:
            try:
                await self._load(self.models[name])
            except Exception as error:  # noqa: BLE001 - nothing that is in a folder ends the server
                problems[name] = f"{name} stays as it was: {error}"
                logger.warning("%s", problems[name])
            else:
                logger.info("%s was loaded again", name)
        if tells and len(problems) < len(names):
            self.tell_others()
        return problems

    def reload_soon(self, *names: str, tells: bool = False) -> asyncio.Task[dict[str, str]] | None:
        """Load models again in the background, by default all; nothing if others wait for that."""
        if len(self.reloads) >= MAX_RELOADS:
            return None
        task = asyncio.get_running_loop().create_task(
            self.reload(names or self.models, tells=tells)
        )
        self.reloads.add(task)
        task.add_done_callback(self.reloads.discard)
        return task

    def note_failure(self, name: str) -> None:
        """Load a model again that has failed several times, but not soon after it was loaded."""
        waited = time.monotonic() - self._tried_at[name]
        num_failures = self.models[name].worker.num_failures
        if num_failures >= MAX_FAILURES and waited > LEAST_SECONDS_BETWEEN_LOADS:
            self._tried_at[name] = time.monotonic()
            logger.warning("%s failed %d times in a row, and is loaded again", name, num_failures)
            self.reload_soon(name)

    def close(self, seconds: float) -> bool:
        """End the threads of the models; return whether they, and loading, ended in time."""
        ended = [model.worker.close(seconds) for model in self.models.values()]
        return all(ended) and not self.num_loading

    async def _load(self, model: ServedModel) -> None:
        def load() -> ReadyModel:
            self.num_loading += 1
            try:
                return model.load()
            finally:
                self.num_loading -= 1

        async with self._loading:
            self._tried_at[model.name] = time.monotonic()
            loaded = await asyncio.to_thread(load)
        model.start(loaded, partial(self.metrics.note_batch, model.name))
        self.metrics.queue.labels(model.name).set_function(lambda: model.worker.num_requests)

    def find(self, name: str | None, *tasks: str) -> ServedModel:
        """Return the model of a name, or the first, that does one of some tasks, or any.

        Raises:
            ServingError: there is none, or models are being loaded.
        """
        if name is not None and name not in self.models:
            known = ", ".join(self.models)
            raise Reason.UNKNOWN_MODEL.error(f"there is no model {name!r:.80}; there are: {known}")
        asked = list(self.models.values()) if name is None else [self.models[name]]
        for model in asked:
            if not tasks or not model.loaded.pipelines.keys().isdisjoint(tasks):
                return model
        known = "; ".join(f"{one.name} does {', '.join(one.loaded.pipelines)}" for one in asked)
        raise Reason.UNKNOWN_MODEL.error(f"no model here does {' or '.join(tasks)}: {known}")
